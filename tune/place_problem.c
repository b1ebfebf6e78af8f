/* SPDX-License-Identifier: MIT
 * Builds a scheduling problem from a graph. Dependencies follow from the residency's regions: the
 * last writer of a region, and its readers since then. An intermediate result that reuses the
 * memory of others waits for their readers. */
#include "tune/place_problem.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "table/tnd_table.h"
#include "tune/moves.h"
#include "tune/policy.h"
#include "tune/rule.h"

enum { NONE = -1, HOST = 0 };

/* Memory of an intermediate result, until another one reuses it. */
struct taken {
    size_t begin, end;
    int32_t region;
};

struct building {
    const struct tnd_place_options *options;
    const struct tnd_residency *residency;
    const struct tnd_place_node *nodes;
    struct tandem_error *error;
    struct tnd_place_problem *out;
    struct tnd_schedule_time *times;
    double *bytes;
    int32_t *first_edge;
    int16_t *split_of;
    int32_t *writer;      /* last problem node that wrote a region; NONE */
    int32_t *last_reader; /* last reader of a region since then: index into `mentions`; NONE */
    struct mention {
        int32_t node, next;
    } * mentions;
    int32_t n_mentions;
    struct taken *taken;
    int n_taken;
    uint32_t streams; /* bit a side: has weights in flight */
};

static enum tandem_status out_of_memory(const struct building *b)
{
    int n = b->options->graph->n_nodes;
    return tnd_error_set(b->error, TANDEM_E_MEMORY, "planner", n, 0,
                         "planner: out of memory for the schedule of %d nodes", n);
}

/* ---- edges ---- */

static enum tandem_status add_edge(struct building *b, int32_t node, int32_t from, bool is_ordered)
{
    struct tnd_place_problem *out = b->out;
    for (int32_t e = b->first_edge[node]; e < out->n_edges; e++) {
        if (out->edges[e].from == from) {
            out->edges[e].is_ordered &= is_ordered;
            return TANDEM_OK;
        }
    }
    if (out->n_edges == out->edges_capacity) {
        int capacity = 2 * out->edges_capacity;
        struct tnd_schedule_edge *edges =
            capacity > INT32_MAX / 4
                ? NULL
                : tnd_realloc(out->edges, (size_t)out->n_edges * sizeof(edges[0]),
                              (size_t)capacity * sizeof(edges[0]));
        if (edges == NULL) {
            return out_of_memory(b);
        }
        out->edges = edges;
        out->edges_capacity = capacity;
    }
    out->edges[out->n_edges++] = (struct tnd_schedule_edge){from, is_ordered};
    return TANDEM_OK;
}

static enum tandem_status wait_for_readers(struct building *b, int32_t node, int32_t region)
{
    for (int32_t at = b->last_reader[region]; at != NONE; at = b->mentions[at].next) {
        if (b->mentions[at].node != node) {
            TND_TRY(add_edge(b, node, b->mentions[at].node, true));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_region(struct building *b, int32_t node, int32_t region)
{
    if (b->residency->regions[region].kind == TND_REGION_CONSTANT) {
        return TANDEM_OK;
    }
    if (b->writer[region] != NONE) {
        TND_TRY(add_edge(b, node, b->writer[region], false));
    }
    b->mentions[b->n_mentions] = (struct mention){node, b->last_reader[region]};
    b->last_reader[region] = b->n_mentions++;
    return TANDEM_OK;
}

/* Adds edges to the readers of results whose memory the new result reuses. */
static enum tandem_status take_place(struct building *b, int32_t node, int32_t region)
{
    const struct tnd_extent *extent = &b->residency->regions[region].extent;
    size_t end = extent->begin + extent->bytes;
    int n_kept = 0;
    if (extent->space != TND_SPACE_INTERMEDIATES || b->writer[region] != NONE) {
        return TANDEM_OK;
    }
    for (int i = 0; i < b->n_taken; i++) {
        struct taken *taken = &b->taken[i];
        bool is_shared = taken->begin < end && extent->begin < taken->end;
        if (is_shared) {
            TND_TRY(add_edge(b, node, b->writer[taken->region], true));
            TND_TRY(wait_for_readers(b, node, taken->region));
        }
        if (taken->begin < extent->begin || taken->end > end) {
            b->taken[n_kept++] = *taken;
        }
    }
    b->n_taken = n_kept;
    b->taken[b->n_taken++] = (struct taken){extent->begin, end, region};
    return TANDEM_OK;
}

static enum tandem_status write_region(struct building *b, int32_t node,
                                       const tandem_tensor *tensor, int32_t region)
{
    struct tnd_span span = tnd_residency_span(&b->residency->regions[region], tensor);
    size_t all = b->residency->regions[region].extent.bytes;
    TND_TRY(take_place(b, node, region));
    TND_TRY(wait_for_readers(b, node, region));
    if (b->writer[region] != NONE) {
        bool is_whole = span.begin == 0 && span.end == all && tandem_tensor_is_contiguous(tensor);
        TND_TRY(add_edge(b, node, b->writer[region], is_whole));
    }
    b->writer[region] = node;
    b->last_reader[region] = NONE;
    return TANDEM_OK;
}

/* ---- times of nodes ---- */

/* Rounds to a quarter of an octave, so that graphs whose attention grows token by token have equal
 * problems. */
static double rounded(double value)
{
    return value > 0 ? exp2(ceil(4 * log2(value) - 1e-9) / 4) : 0;
}

/* Upload time of the first weight in flight on a side, which no other work hides. */
static double open_us(struct building *b, int i, int side)
{
    const struct tnd_place_options *options = b->options;
    const struct tandem_task_config *compute =
        &b->nodes[i].choice[side].node.stage[TANDEM_STAGE_COMPUTE];
    if (!tnd_task_is(compute->task, TND_TASK_STREAMS_W) || (b->streams >> side & 1) != 0) {
        return 0;
    }
    b->streams |= UINT32_C(1) << side;
    return tnd_estimate_transfer(options->table,
                                 tnd_registry_name(options->registry, compute->backend), TND_UPLOAD,
                                 (int64_t)tandem_tensor_bytes(options->graph->nodes[i]->src[0]))
        .us;
}

/* Whether the table has times of the device; without them, operations other than products would
 * seem to be free there. */
static bool is_known(const struct building *b, int side)
{
    const struct tnd_schedule_side *one = &b->out->sides[side];
    return side == HOST || b->options->table == NULL || one->upload.n > 0 || one->download.n > 0;
}

static bool is_measured_on(const struct building *b, int i, int side, struct tnd_schedule_time *out)
{
    const struct tnd_place_options *options = b->options;
    return (b->nodes[i].supported >> side & 1) != 0 && options->device_op != NULL &&
           options->device_op(options->user, options->graph->nodes[i], side, out);
}

/* Prices an operation on the CPU. Without a time in the table, it counts by the rule beside a
 * device that was measured; if its time is completely unknown, only transfers decide. */
static struct tnd_schedule_time price_host_op(const struct building *b, int i)
{
    const struct tnd_place_options *options = b->options;
    struct tnd_schedule_time ignored;
    double us = rounded((double)b->nodes[i].host_us);
    bool is_somewhere = us > 0;
    for (int side = 1; side < b->out->problem.n_sides && !is_somewhere; side++) {
        is_somewhere = is_measured_on(b, i, side, &ignored);
    }
    if (us > 0 || !is_somewhere) {
        return (struct tnd_schedule_time){(float)us, us > 0 ? 0 : (float)TND_SCHEDULE_UNKNOWN_US};
    }
    us = rounded(tnd_rule_us(options->table, options->graph->nodes[i], options->n_threads));
    return (struct tnd_schedule_time){(float)us, (float)(us * TND_FIT_GUESS_ERROR)};
}

/* Prices an operation on a side; on a device where it was not measured it takes the CPU's time. */
static struct tnd_schedule_time price_op(const struct building *b, int i, int side)
{
    struct tnd_schedule_time time;
    if (side > HOST && is_measured_on(b, i, side, &time)) {
        return (struct tnd_schedule_time){(float)rounded((double)time.us),
                                          (float)rounded((double)time.error_us)};
    }
    time = price_host_op(b, i);
    if (side > HOST && time.us > 0) {
        time.error_us = fmaxf(time.error_us, (float)(TND_FIT_GUESS_ERROR * (double)time.us));
    }
    return time;
}

static void price_node(struct building *b, int i)
{
    struct tnd_schedule_problem *problem = &b->out->problem;
    const struct tnd_place_node *node = &b->nodes[i];
    int at = b->out->n_sources + i;
    size_t bytes = tandem_tensor_bytes(b->options->graph->nodes[i]);
    for (int side = 0; side < problem->n_sides; side++) {
        struct tnd_schedule_time *time = &b->times[at * problem->n_sides + side];
        bool runs = (node->supported >> side & 1) != 0 && (node->is_product || is_known(b, side));
        *time = (struct tnd_schedule_time){-1, 0};
        if (runs && node->is_product) {
            *time = (struct tnd_schedule_time){(float)(node->choice[side].us + open_us(b, i, side)),
                                               (float)node->choice[side].error_us};
        } else if (runs) {
            *time = price_op(b, i, side);
        }
        if (node->is_product && side == HOST &&
            node->choice[HOST].node.reason != TANDEM_REASON_TABLE) {
            problem->only_singles = true;
        }
    }
    b->bytes[at] = node->is_product ? (double)bytes : rounded((double)bytes);
    b->split_of[at] = (int16_t)tnd_place_split(b->options, i, node, b->out);
}

static void price_given(struct building *b, int32_t at, double bytes)
{
    struct tnd_schedule_problem *problem = &b->out->problem;
    for (int side = 0; side < problem->n_sides; side++) {
        b->times[at * problem->n_sides + side] =
            (struct tnd_schedule_time){side == HOST ? 0 : -1, 0};
    }
    b->bytes[at] = bytes;
    b->split_of[at] = NONE;
}

/* ---- the machine ---- */

/* Copies points of the table's curve to a link, first and last included. */
static void draw_link(const struct tnd_place_options *options, const char *backend,
                      enum tnd_direction direction, struct tnd_schedule_link *out)
{
    const struct tnd_curve *curve =
        options->table != NULL ? tnd_table_transfer(options->table, backend, direction) : NULL;
    int n = curve != NULL ? curve->n_samples : 0;
    int n_points = n < TND_SCHEDULE_LINK_POINTS ? n : TND_SCHEDULE_LINK_POINTS;
    double errors = 0;
    for (int p = 0; p < n_points; p++) {
        int i = n_points > 1 ? p * (n - 1) / (n_points - 1) : 0;
        int64_t bytes = curve->samples[i].m;
        struct tnd_estimate one = tnd_estimate_transfer(options->table, backend, direction, bytes);
        out->bytes[p] = (double)bytes;
        out->us[p] = one.us + one.error_us;
        errors += one.us > 0 ? one.error_us / one.us / n_points : 0;
    }
    out->n = n_points;
    out->error_frac = errors;
}

static void describe_sides(struct building *b)
{
    const struct tnd_place_options *options = b->options;
    int n = options->n_devices + 1;
    bool any_slowdown = false;
    for (int side = 0; side < n; side++) {
        struct tnd_schedule_side *out = &b->out->sides[side];
        const char *name =
            side > 0 ? tnd_registry_name(options->registry, options->slots[side - 1]) : "cpu";
        memset(out, 0, sizeof(*out));
        out->own_memory = out->in_order = side > 0;
        if (side > 0) {
            draw_link(options, name, TND_UPLOAD, &out->upload);
            draw_link(options, name, TND_DOWNLOAD, &out->download);
        }
        for (int other = 0; other < n; other++) {
            const char *beside =
                other > 0 ? tnd_registry_name(options->registry, options->slots[other - 1]) : "cpu";
            double factor = 1;
            any_slowdown = (other != side && options->table != NULL &&
                            tnd_table_slowdown(options->table, name, beside, &factor)) ||
                           any_slowdown;
            b->out->slowdown[side * n + other] = (float)fmax(1, factor);
        }
    }
    b->out->problem.sides = b->out->sides;
    b->out->problem.slowdown = any_slowdown ? b->out->slowdown : NULL;
    b->out->problem.wake_us = tnd_estimate_wake(options->table, options->n_threads);
}

/* ---- the problem ---- */

static bool is_given(const struct tnd_residency *residency, int region)
{
    return residency->regions[region].kind == TND_REGION_INPUT &&
           residency->regions[region].root != NULL;
}

/* Reserves room for `n` members at the end of *io_bytes; false if the size overflows. */
static bool place(size_t n, size_t bytes, size_t *io_bytes, size_t *out_at)
{
    size_t all;
    return tnd_align_up(*io_bytes, sizeof(double), out_at) && tnd_mul_size(n, bytes, &all) &&
           tnd_add_size(*out_at, all, io_bytes);
}

static enum tandem_status reserve(struct building *b)
{
    const struct tnd_residency *residency = b->residency;
    struct tnd_schedule_problem *problem = &b->out->problem;
    size_t n = (size_t)problem->n_nodes;
    size_t n_regions = (size_t)residency->n_regions;
    size_t n_mentions = (size_t)residency->n_touched + n_regions;
    size_t bytes = 0;
    size_t times, result_bytes, first_edge, split_of, writer, last_reader, mentions, taken;
    if (!place(n * (size_t)problem->n_sides, sizeof(b->times[0]), &bytes, &times) ||
        !place(n, sizeof(b->bytes[0]), &bytes, &result_bytes) ||
        !place(n + 1, sizeof(b->first_edge[0]), &bytes, &first_edge) ||
        !place(n, sizeof(b->split_of[0]), &bytes, &split_of) ||
        !place(n_regions, sizeof(b->writer[0]), &bytes, &writer) ||
        !place(n_regions, sizeof(b->last_reader[0]), &bytes, &last_reader) ||
        !place(n_mentions, sizeof(b->mentions[0]), &bytes, &mentions) ||
        !place(n + 1, sizeof(b->taken[0]), &bytes, &taken)) {
        return tnd_error_set(b->error, TANDEM_E_OVERFLOW, "planner", problem->n_nodes, 0,
                             "planner: a graph of %d nodes does not fit into memory",
                             problem->n_nodes);
    }
    char *base = b->out->memory = tnd_calloc(bytes + 1, 1);
    b->out->edges_capacity = 4 * problem->n_nodes + 16;
    b->out->edges = tnd_alloc((size_t)b->out->edges_capacity * sizeof(b->out->edges[0]));
    if (base == NULL || b->out->edges == NULL) {
        return out_of_memory(b);
    }
    b->times = (struct tnd_schedule_time *)(void *)(base + times);
    b->bytes = (double *)(void *)(base + result_bytes);
    b->first_edge = (int32_t *)(void *)(base + first_edge);
    b->split_of = (int16_t *)(void *)(base + split_of);
    b->writer = (int32_t *)(void *)(base + writer);
    b->last_reader = (int32_t *)(void *)(base + last_reader);
    b->mentions = (struct mention *)(void *)(base + mentions);
    b->taken = (struct taken *)(void *)(base + taken);
    for (size_t i = 0; i < n_regions; i++) {
        b->writer[i] = b->last_reader[i] = NONE;
    }
    return TANDEM_OK;
}

static void add_sources(struct building *b)
{
    int32_t at = 0;
    for (int region = b->residency->n_nodes; region < b->residency->n_regions; region++) {
        if (is_given(b->residency, region)) {
            price_given(b, at, (double)b->residency->regions[region].extent.bytes);
            b->writer[region] = at++;
        }
    }
}

static enum tandem_status add_nodes(struct building *b)
{
    const struct tandem_graph *graph = b->options->graph;
    const struct tnd_residency *residency = b->residency;
    int32_t custom = NONE; /* custom functions of the program keep their order */
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        int32_t at = b->out->n_sources + i;
        b->first_edge[at] = b->out->n_edges;
        if (node->op == TANDEM_OP_CUSTOM) {
            TND_TRY(custom != NONE ? add_edge(b, at, custom, true) : TANDEM_OK);
            custom = at;
        }
        for (int s = 0; s < node->n_src; s++) {
            bool is_written = s > 0 && node->op == TANDEM_OP_CPY;
            if (node->src[s] != NULL && !is_written) {
                TND_TRY(read_region(
                    b, at,
                    (int32_t)(tnd_residency_region(residency, node, s) - residency->regions)));
            }
        }
        TND_TRY(write_region(
            b, at, node,
            (int32_t)(tnd_residency_region(residency, node, -1) - residency->regions)));
        price_node(b, i);
    }
    return TANDEM_OK;
}

/* Adds the last node, which reads outputs and results written into leaves on the host. */
static enum tandem_status add_end(struct building *b)
{
    int32_t at = b->out->problem.n_nodes - 1;
    b->first_edge[at] = b->out->n_edges;
    price_given(b, at, 0);
    for (int region = 0; region < b->residency->n_regions; region++) {
        const struct tnd_region *one = &b->residency->regions[region];
        int32_t writer = b->writer[region];
        bool is_owed = one->kind == TND_REGION_STATE && writer != NONE &&
                       tnd_may_owe(one->root, (size_t)b->bytes[writer], 0);
        if (one->extent.space == TND_SPACE_MEMORY && one->root != NULL && !is_owed &&
            writer >= b->out->n_sources) {
            TND_TRY(add_edge(b, at, b->writer[region], false));
        }
    }
    b->first_edge[at + 1] = b->out->n_edges;
    return TANDEM_OK;
}

static void hash_all(struct building *b)
{
    const struct tnd_schedule_problem *problem = &b->out->problem;
    size_t n = (size_t)problem->n_nodes;
    uint64_t heads[4] = {(uint64_t)problem->n_nodes, (uint64_t)problem->n_sides,
                         (uint64_t)b->options->n_threads, 0};
    uint64_t parts[6];
    for (int i = 0; i < b->options->n_devices; i++) {
        heads[3] |= UINT64_C(1) << b->options->slots[i];
    }
    for (int k = 0; k < problem->n_splits; k++) {
        heads[2] |= (uint64_t)problem->splits[k].is_sum << (32 + k);
    }
    heads[3] |= problem->only_singles ? UINT64_C(1) << TND_MAX_SLOTS : 0;
    parts[0] = tnd_hash_words(heads, sizeof(heads));
    parts[1] = tnd_hash_words(b->times, n * (size_t)problem->n_sides * sizeof(b->times[0]));
    parts[2] = tnd_hash_words(b->bytes, n * sizeof(b->bytes[0]));
    parts[3] = tnd_hash_words(b->out->edges, (size_t)b->out->n_edges * sizeof(b->out->edges[0]));
    parts[4] = tnd_hash_bytes(b->split_of, n * sizeof(b->split_of[0]), 0);
    parts[5] = tnd_hash_bytes(b->first_edge, (n + 1) * sizeof(b->first_edge[0]), 0);
    b->out->hash[0] = tnd_hash_words(parts, sizeof(parts));
    b->out->hash[1] = tnd_hash_bytes(parts, sizeof(parts), 1);
}

static enum tandem_status build(struct building *b)
{
    TND_TRY(reserve(b));
    describe_sides(b);
    add_sources(b);
    TND_TRY(add_nodes(b));
    TND_TRY(add_end(b));
    struct tnd_schedule_problem *problem = &b->out->problem;
    problem->times = b->times;
    problem->bytes = b->bytes;
    problem->first_edge = b->first_edge;
    problem->edges = b->out->edges;
    problem->splits = b->out->splits;
    problem->split_of = problem->n_splits > 0 ? b->split_of : NULL;
    hash_all(b);
    return TANDEM_OK;
}

enum tandem_status tnd_place_problem_init(const struct tnd_place_options *options,
                                          const struct tnd_residency *residency,
                                          const struct tnd_place_node *nodes,
                                          struct tnd_place_problem *out, struct tandem_error *error)
{
    struct building b = {
        .options = options, .residency = residency, .nodes = nodes, .error = error, .out = out};
    memset(out, 0, offsetof(struct tnd_place_problem, splits));
    for (int region = residency->n_nodes; region < residency->n_regions; region++) {
        out->n_sources += is_given(residency, region);
    }
    out->problem.n_nodes = out->n_sources + options->graph->n_nodes + 1;
    out->problem.n_sides = options->n_devices + 1;
    out->problem.only_singles = options->only_singles || options->table == NULL;
    enum tandem_status status = build(&b);
    if (status != TANDEM_OK) {
        tnd_place_problem_fini(out);
    }
    return status;
}

void tnd_place_problem_fini(struct tnd_place_problem *problem)
{
    tnd_free(problem->edges);
    tnd_free(problem->memory);
    problem->edges = NULL;
    problem->memory = NULL;
}
