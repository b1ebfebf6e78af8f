/* SPDX-License-Identifier: MIT
 * Printing and reading plans. One line a node and one a stage, parts separated by blanks:
 *
 *     tandem-plan 1
 *     graph 8d1f... nodes 2
 *     node 0 cpu threads 2 table second 2210.7
 *       init cpu quantize_x parallel spin 30.1
 *       compute cpu mul_mat_q parallel spin 782.3
 *     node 1 cpu threads 1 only second 0
 *       compute cpu node one spin 0
 *     end
 *
 * Plans with a schedule are of version 2. Between the nodes and the end they have, in this order:
 *
 *     part 0 rows 512 1024 opencl threads 1 table second 0
 *       compute opencl mul_mat_q one sleep 391.1
 *     order 1 0
 *     span 0 own cpu compute init 0 30.1
 *     span 0 0 opencl upload init 0 12.5 */
#include "sched/plan_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_status.h"

enum { PLAN_VERSION = 2, MAX_THREADS = 65536, MIN_NODE_BYTES = 24 };

static const char *const sharing_names[] = {"one", "parallel", "own"};

/* ---- which graph ---- */

uint64_t tnd_plan_graph_hash(const struct tandem_graph *graph)
{
    uint64_t hash = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        int64_t facts[3 + TANDEM_MAX_SRC] = {(int64_t)node->op, 0, 0};
        int n = 3;
        /* the first four always count, so that plans from before there were more stay valid */
        for (int s = 0; s < TANDEM_MAX_SRC && (s < 4 || node->src[s] != NULL); s++) {
            facts[n++] = node->src[s] != NULL ? (int64_t)node->src[s]->type : -1;
        }
        if (node->op == TANDEM_OP_MUL_MAT) {
            facts[1] = node->src[0]->ne[0];
            facts[2] = node->src[0]->ne[1];
        }
        hash = tnd_hash_bytes(facts, (size_t)n * sizeof(facts[0]), hash);
    }
    return hash;
}

/* ---- printing ---- */

/* Programs can set any name; anything but one word is replaced. */
static void add_word(struct tnd_text *out, const char *word)
{
    if (word[0] == '\0') {
        tnd_text_add_char(out, '-');
    }
    for (; *word != '\0'; word++) {
        tnd_text_add_char(out, *word > ' ' && *word <= '~' ? *word : '_');
    }
}

static void add_time(struct tnd_text *out, float us)
{
    tnd_text_add_double(out, isfinite(us) && us > 0 ? (double)us : 0);
}

static bool print_stage(const struct tandem_plan_node *node, int stage,
                        const struct tnd_registry *registry, struct tnd_text *out)
{
    const struct tandem_task_config *config = &node->stage[stage];
    const char *backend = tnd_registry_name(registry, config->backend);
    if (config->backend == TANDEM_BACKEND_NONE) {
        return true;
    }
    if (backend == NULL || config->task >= TANDEM_TASK_COUNT ||
        (config->parallel && config->own_threads)) {
        return false;
    }
    int sharing = config->parallel ? 1 : config->own_threads ? 2 : 0;
    tnd_text_printf(out, "  %s %s %s %s %s ", tandem_stage_name((enum tandem_stage)stage), backend,
                    tandem_task_name((enum tandem_task)config->task), sharing_names[sharing],
                    config->wait ? "sleep" : "spin");
    add_time(out, node->predicted_us[stage]);
    tnd_text_add_char(out, '\n');
    return true;
}

/* The rest of a node's or part's line and the lines of its stages. */
static bool print_choice(const struct tandem_plan_node *node, const struct tnd_registry *registry,
                         struct tnd_text *out)
{
    bool is_valid = node->n_threads >= 1 && node->n_threads <= MAX_THREADS &&
                    node->reason <= TANDEM_REASON_FALLBACK;
    add_word(out, node->profile);
    tnd_text_printf(out, " threads %d %s second ", (int)node->n_threads,
                    tandem_plan_reason_name((enum tandem_plan_reason)node->reason));
    add_time(out, node->runner_up_us);
    tnd_text_add_char(out, '\n');
    for (int s = 0; s < TANDEM_STAGES && is_valid; s++) {
        is_valid = print_stage(node, s, registry, out);
    }
    return is_valid;
}

static bool print_span(const struct tandem_plan_span *span, const struct tnd_registry *registry,
                       struct tnd_text *out)
{
    const char *backend = tnd_registry_name(registry, span->backend);
    tnd_text_printf(out, "span %d ", (int)span->node);
    if (span->part < 0) {
        tnd_text_add(out, "own");
    } else {
        tnd_text_printf(out, "%d", (int)span->part);
    }
    tnd_text_printf(out, " %s %s %s ", backend != NULL ? backend : "none",
                    tandem_lane_name((enum tandem_lane)span->lane),
                    tandem_stage_name((enum tandem_stage)span->stage));
    add_time(out, span->begin_us);
    tnd_text_add_char(out, ' ');
    add_time(out, span->end_us);
    tnd_text_add_char(out, '\n');
    return backend != NULL;
}

/* Returns the first node that cannot be printed, or -1. */
static int print_schedule(const struct tandem_plan *plan, const struct tnd_registry *registry,
                          struct tnd_text *out)
{
    const int32_t *order = tandem_plan_order(plan);
    for (int i = 0; i < tandem_plan_part_count(plan); i++) {
        const struct tandem_plan_part *part = tandem_plan_part(plan, i);
        tnd_text_printf(out, "part %d %s %" PRId64 " %" PRId64 " ", (int)part->node,
                        tandem_split_name((enum tandem_split)part->split), part->begin, part->end);
        if (!print_choice(&part->choice, registry, out)) {
            return part->node;
        }
    }
    tnd_text_add(out, order != NULL ? "order" : "");
    for (int i = 0; i < plan->n_nodes && order != NULL; i++) {
        tnd_text_printf(out, " %d", (int)order[i]);
    }
    tnd_text_add(out, order != NULL ? "\n" : "");
    for (int i = 0; i < tandem_plan_span_count(plan); i++) {
        if (!print_span(tandem_plan_span(plan, i), registry, out)) {
            return tandem_plan_span(plan, i)->node;
        }
    }
    return -1;
}

static bool has_schedule(const struct tandem_plan *plan)
{
    return tnd_plan_is_scheduled(plan) || tandem_plan_span_count(plan) > 0;
}

enum tandem_status tnd_plan_print(const struct tandem_plan *plan, uint64_t graph_hash,
                                  const struct tnd_registry *registry, struct tnd_text *out,
                                  struct tandem_error *error)
{
    struct tnd_text text = TND_TEXT_INIT;
    int wrong_node = -1;
    tnd_text_printf(&text, "tandem-plan %d\ngraph %016" PRIx64 " nodes %d\n",
                    has_schedule(plan) ? (int)PLAN_VERSION : 1, graph_hash, plan->n_nodes);
    for (int i = 0; i < plan->n_nodes && wrong_node < 0; i++) {
        tnd_text_printf(&text, "node %d ", i);
        wrong_node = print_choice(&plan->nodes[i], registry, &text) ? -1 : i;
    }
    if (wrong_node < 0) {
        wrong_node = print_schedule(plan, registry, &text);
    }
    tnd_text_add(&text, "end\n");
    enum tandem_status status = TANDEM_OK;
    if (wrong_node >= 0) {
        status = tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", wrong_node, plan->n_nodes,
                               "plan: node %d has a backend, task, reason or thread count that "
                               "does not exist",
                               wrong_node);
    } else if (text.failed) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "plan", 0, 0, "plan: out of memory");
    } else {
        tnd_text_add_bytes(out, text.bytes, text.n);
        if (out->failed) {
            status = tnd_error_set(error, TANDEM_E_MEMORY, "plan", 0, 0, "plan: out of memory");
        }
    }
    tnd_text_fini(&text);
    return status;
}

/* ---- reading ---- */

struct reader {
    struct tnd_scan scan;
    const char *name;
    const struct tnd_registry *registry;
    struct tandem_error *error;
};

static enum tandem_status wrong(struct reader *r, const char *expected)
{
    tnd_scan_skip_blanks(&r->scan);
    bool ended = tnd_scan_is_end(&r->scan);
    return tnd_error_set(r->error, ended ? TANDEM_E_TRUNCATED : TANDEM_E_FORMAT, r->name,
                         r->scan.line, 0, "%.120s:%lld:%lld: expected %s%s", r->name,
                         (long long)r->scan.line, (long long)tnd_scan_column(&r->scan), expected,
                         ended ? ", found the end of the file" : "");
}

/* Reads a token of at most n - 1 bytes. */
static bool take(struct reader *r, char *out, size_t n)
{
    struct tnd_scan before = r->scan;
    const char *token;
    size_t length;
    if (!tnd_scan_token(&r->scan, &token, &length) || length >= n) {
        r->scan = before;
        return false;
    }
    memcpy(out, token, length);
    out[length] = '\0';
    return true;
}

/* Reads a name that will be shown to people: no control characters. */
static bool take_shown(struct reader *r, char *out, size_t n)
{
    struct tnd_scan before = r->scan;
    bool valid = take(r, out, n);
    for (size_t i = 0; valid && out[i] != '\0'; i++) {
        valid = out[i] > ' ' && out[i] <= '~';
    }
    if (!valid) {
        r->scan = before;
    }
    return valid;
}

static bool take_word(struct reader *r, const char *word)
{
    struct tnd_scan before = r->scan;
    char found[24];
    if (take(r, found, sizeof(found)) && strcmp(found, word) == 0) {
        return true;
    }
    r->scan = before;
    return false;
}

/* Reads one of `n` names; returns its index, or -1. */
static int take_name(struct reader *r, const char *(*name_of)(int i), int n)
{
    struct tnd_scan before = r->scan;
    char found[32];
    if (take(r, found, sizeof(found))) {
        for (int i = 0; i < n; i++) {
            if (strcmp(found, name_of(i)) == 0) {
                return i;
            }
        }
    }
    r->scan = before;
    return -1;
}

static const char *task_name(int i)
{
    return tandem_task_name((enum tandem_task)i);
}

static const char *reason_name(int i)
{
    return tandem_plan_reason_name((enum tandem_plan_reason)i);
}

static const char *sharing_name(int i)
{
    return sharing_names[i];
}

static const char *waiting_name(int i)
{
    return i == 0 ? "spin" : "sleep";
}

static bool take_count(struct reader *r, int64_t low, int64_t high, int64_t *out)
{
    struct tnd_scan before = r->scan;
    int64_t value;
    if (tnd_scan_i64(&r->scan, &value) && value >= low && value <= high) {
        *out = value;
        return true;
    }
    r->scan = before;
    return false;
}

static bool take_time(struct reader *r, float *out)
{
    struct tnd_scan before = r->scan;
    double value;
    if (tnd_scan_double(&r->scan, &value) && value >= 0 && value <= 1e15) {
        *out = (float)value;
        return true;
    }
    r->scan = before;
    return false;
}

static bool take_hash(struct reader *r, uint64_t *out)
{
    struct tnd_scan before = r->scan;
    char digits[17];
    if (take(r, digits, sizeof(digits)) && strlen(digits) == 16 &&
        strspn(digits, "0123456789abcdef") == 16) {
        *out = strtoull(digits, NULL, 16);
        return true;
    }
    r->scan = before;
    return false;
}

static bool end_line(struct reader *r)
{
    return !tnd_scan_is_end(&r->scan) && tnd_scan_end_of_line(&r->scan);
}

static enum tandem_status read_backend(struct reader *r, uint8_t *out_slot)
{
    char backend[64];
    if (!take_shown(r, backend, sizeof(backend))) {
        return wrong(r, "the name of a backend");
    }
    const char *reason = NULL;
    int slot = tnd_registry_find(r->registry, backend, &reason);
    if (slot < 0) {
        return tnd_error_set(r->error, TANDEM_E_UNSUPPORTED_BACKEND, backend, r->scan.line, 0,
                             "%.120s:%lld: the backend '%s' is not open here: %.120s", r->name,
                             (long long)r->scan.line, backend,
                             reason != NULL ? reason : "it is not known");
    }
    *out_slot = (uint8_t)slot;
    return TANDEM_OK;
}

/* The rest of a stage's line, after its name. */
static enum tandem_status read_stage(struct reader *r, struct tandem_plan_node *node, int stage)
{
    struct tandem_task_config *config = &node->stage[stage];
    TND_TRY(read_backend(r, &config->backend));
    int task = take_name(r, task_name, TANDEM_TASK_COUNT);
    if (task < 0) {
        return wrong(r, "the name of a task");
    }
    int sharing = take_name(r, sharing_name, 3);
    if (sharing < 0) {
        return wrong(r, "one, parallel or own");
    }
    int waiting = take_name(r, waiting_name, 2);
    if (waiting < 0) {
        return wrong(r, "spin or sleep");
    }
    if (!take_time(r, &node->predicted_us[stage]) || !end_line(r)) {
        return wrong(r, "the predicted microseconds and the end of the line");
    }
    config->task = (uint8_t)task;
    config->parallel = sharing == 1;
    config->own_threads = sharing == 2;
    config->wait = waiting == 1;
    return TANDEM_OK;
}

/* The rest of a node's or part's line, and its stages. */
static enum tandem_status read_choice(struct reader *r, struct tandem_plan_node *out)
{
    struct tandem_plan_node node;
    int64_t threads;
    memset(&node, 0, sizeof(node)); /* plans are compared as bytes */
    if (!take_shown(r, node.profile, sizeof(node.profile))) {
        return wrong(r, "the name of a profile");
    }
    if (strcmp(node.profile, "-") == 0) {
        node.profile[0] = '\0';
    }
    if (!take_word(r, "threads") || !take_count(r, 1, MAX_THREADS, &threads)) {
        return wrong(r, "'threads' and a number from 1 to 65536");
    }
    int reason = take_name(r, reason_name, TANDEM_REASON_FALLBACK + 1);
    if (reason < 0) {
        return wrong(r, "only, table, rule, forced or hand");
    }
    if (!take_word(r, "second") || !take_time(r, &node.runner_up_us) || !end_line(r)) {
        return wrong(r, "'second', microseconds, and the end of the line");
    }
    node.n_threads = (int32_t)threads;
    node.reason = (uint32_t)reason;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (take_word(r, tandem_stage_name((enum tandem_stage)s))) {
            TND_TRY(read_stage(r, &node, s));
        }
    }
    *out = node;
    return TANDEM_OK;
}

static enum tandem_status read_node(struct reader *r, int i, struct tandem_plan_node *out)
{
    int64_t index;
    if (!take_word(r, "node") || !take_count(r, i, i, &index)) {
        return wrong(r, "'node' and its number, which count from 0");
    }
    return read_choice(r, out);
}

/* ---- reading a schedule ---- */

static const char *split_name(int i)
{
    return tandem_split_name((enum tandem_split)i);
}

static const char *lane_name(int i)
{
    return tandem_lane_name((enum tandem_lane)i);
}

static const char *stage_name(int i)
{
    return tandem_stage_name((enum tandem_stage)i);
}

/* Turns ARGUMENT, when entries do not fit together, into an error that names the place. */
static enum tandem_status told(struct reader *r, enum tandem_status status, const char *expected)
{
    return status == TANDEM_E_ARGUMENT ? wrong(r, expected) : status;
}

static enum tandem_status read_part(struct reader *r, struct tandem_plan *plan)
{
    struct tandem_plan_part part;
    int64_t node;
    memset(&part, 0, sizeof(part));
    if (!take_count(r, 0, plan->n_nodes - 1, &node)) {
        return wrong(r, "the number of a node");
    }
    int split = take_name(r, split_name, TANDEM_SPLIT_COLUMNS + 1);
    if (split < 0) {
        return wrong(r, "rows or columns");
    }
    if (!take_count(r, 0, INT64_MAX - 1, &part.begin) ||
        !take_count(r, part.begin + 1, INT64_MAX, &part.end)) {
        return wrong(r, "the first row and the one behind the last");
    }
    TND_TRY(read_choice(r, &part.choice));
    part.node = (int32_t)node;
    part.split = (uint32_t)split;
    return told(r, tandem_plan_add_part(plan, &part, r->error), "parts that do not overlap");
}

static enum tandem_status read_order(struct reader *r, struct tandem_plan *plan)
{
    int32_t *order = tnd_alloc((size_t)plan->n_nodes * sizeof(*order));
    if (order == NULL) {
        return tnd_error_set(r->error, TANDEM_E_MEMORY, "plan", plan->n_nodes, 0,
                             "plan: out of memory");
    }
    int64_t node = 0;
    int n = 0;
    while (n < plan->n_nodes && take_count(r, 0, plan->n_nodes - 1, &node)) {
        order[n++] = (int32_t)node;
    }
    enum tandem_status status = n == plan->n_nodes && end_line(r)
                                    ? tandem_plan_set_order(plan, order, n, r->error)
                                    : TANDEM_E_ARGUMENT;
    tnd_free(order);
    return told(r, status, "each node once and the end of the line");
}

static enum tandem_status read_span(struct reader *r, struct tandem_plan *plan)
{
    struct tandem_plan_span span;
    int64_t node;
    int64_t part = -1;
    memset(&span, 0, sizeof(span));
    if (!take_count(r, 0, plan->n_nodes - 1, &node) ||
        !(take_word(r, "own") || take_count(r, 0, INT32_MAX, &part))) {
        return wrong(r, "the number of a node, then that of a part or 'own'");
    }
    TND_TRY(read_backend(r, &span.backend));
    int lane = take_name(r, lane_name, TANDEM_LANES);
    int stage = lane < 0 ? -1 : take_name(r, stage_name, TANDEM_STAGES);
    if (stage < 0) {
        return wrong(r, "compute, upload or download, then a stage");
    }
    if (!take_time(r, &span.begin_us) || !take_time(r, &span.end_us) || !end_line(r)) {
        return wrong(r, "begin and end in microseconds, and the end of the line");
    }
    span.node = (int32_t)node;
    span.part = (int32_t)part;
    span.lane = (uint8_t)lane;
    span.stage = (uint8_t)stage;
    return told(r, tandem_plan_add_span(plan, &span, r->error),
                "a span that ends behind its begin");
}

static enum tandem_status read_schedule(struct reader *r, struct tandem_plan *plan)
{
    enum tandem_status status = TANDEM_OK;
    while (status == TANDEM_OK && take_word(r, "part")) {
        status = read_part(r, plan);
    }
    if (status == TANDEM_OK && plan->n_nodes > 0 && take_word(r, "order")) {
        status = read_order(r, plan);
    }
    while (status == TANDEM_OK && take_word(r, "span")) {
        status = read_span(r, plan);
    }
    return status;
}

static enum tandem_status read_head(struct reader *r, size_t n, int64_t *out_version,
                                    int *out_nodes, uint64_t *out_hash)
{
    int64_t version, n_nodes;
    if (!take_word(r, "tandem-plan") || !take_count(r, 1, INT32_MAX, &version)) {
        return wrong(r, "'tandem-plan' and a version");
    }
    if (version > PLAN_VERSION) {
        return tnd_error_set(r->error, TANDEM_E_TABLE_VERSION, r->name, version, PLAN_VERSION,
                             "%.120s: version %lld of plans; this library knows 1 to %d", r->name,
                             (long long)version, (int)PLAN_VERSION);
    }
    if (!end_line(r) || !take_word(r, "graph") || !take_hash(r, out_hash) ||
        !take_word(r, "nodes")) {
        return wrong(r, "'graph', 16 hexadecimal digits and 'nodes'");
    }
    if (!take_count(r, 0, INT32_MAX, &n_nodes) || !end_line(r)) {
        return wrong(r, "the number of nodes and the end of the line");
    }
    if ((uint64_t)n_nodes > n / MIN_NODE_BYTES) {
        return tnd_error_set(r->error, TANDEM_E_TRUNCATED, r->name, (int64_t)n, n_nodes,
                             "%.120s: %lld nodes do not fit into %zu bytes", r->name,
                             (long long)n_nodes, n);
    }
    *out_nodes = (int)n_nodes;
    *out_version = version;
    return TANDEM_OK;
}

enum tandem_status tnd_plan_parse(const char *bytes, size_t n, const char *name,
                                  const struct tnd_registry *registry,
                                  struct tandem_plan **out_plan, uint64_t *out_graph_hash,
                                  struct tandem_error *error)
{
    struct reader r = {.name = name, .registry = registry, .error = error};
    int64_t version = 0;
    int n_nodes = 0;
    uint64_t hash = 0;
    struct tandem_plan *plan;
    tnd_scan_init(&r.scan, bytes, n);
    TND_TRY(read_head(&r, n, &version, &n_nodes, &hash));
    TND_TRY(tandem_plan_new(n_nodes, &plan, error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n_nodes && status == TANDEM_OK; i++) {
        status = read_node(&r, i, &plan->nodes[i]);
    }
    if (status == TANDEM_OK && version > 1) {
        status = read_schedule(&r, plan);
    }
    if (status == TANDEM_OK && (!take_word(&r, "end") || !tnd_scan_end_of_line(&r.scan))) {
        status = wrong(&r, version > 1   ? "'part', 'order', 'span' or 'end'"
                           : n_nodes > 0 ? "a stage, 'node' or 'end'"
                                         : "'end'");
    }
    tnd_scan_skip_space(&r.scan);
    if (status == TANDEM_OK && !tnd_scan_is_end(&r.scan)) {
        status = wrong(&r, "the end of the file");
    }
    if (status != TANDEM_OK) {
        tandem_plan_free(plan);
        return status;
    }
    *out_plan = plan;
    *out_graph_hash = hash;
    return TANDEM_OK;
}
