/* SPDX-License-Identifier: MIT
 * The schedule of a plan as data: parts of nodes, the order of nodes, predicted spans. Knows no
 * graph: items.c interprets it. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/plan.h"

static enum tandem_status out_of_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "plan", 0, 0, "plan: out of memory");
}

static struct tnd_plan_schedule *need_schedule(tandem_plan *plan)
{
    if (plan->schedule == NULL) {
        plan->schedule = tnd_calloc(1, sizeof(*plan->schedule));
    }
    return plan->schedule;
}

/* Rejects NaN; 1e15 us are 30 years. */
static bool is_time(float us)
{
    return us >= 0 && us <= 1e15F;
}

/* ---- parts ---- */

/* Index of the first part of a node from `begin` on; else the index where it would be inserted. */
static int find_part(const struct tnd_plan_schedule *schedule, int node, int64_t begin)
{
    int low = 0;
    int high = schedule->n_parts;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const struct tandem_plan_part *part = &schedule->parts[middle];
        if (part->node < node || (part->node == node && part->begin < begin)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_whole_part(const tandem_plan *plan, const struct tandem_plan_part *part)
{
    bool is_valid = part->node >= 0 && part->node < plan->n_nodes &&
                    part->split <= TANDEM_SPLIT_COLUMNS && part->begin >= 0 &&
                    part->begin < part->end;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        is_valid = is_valid && is_time(part->choice.predicted_us[s]);
    }
    return is_valid;
}

/* Whether the part at index i, if it exists, does not overlap another one beside it. */
static bool fits_beside(const struct tnd_plan_schedule *schedule, int i,
                        const struct tandem_plan_part *part)
{
    if (i < 0 || i >= schedule->n_parts || schedule->parts[i].node != part->node) {
        return true;
    }
    const struct tandem_plan_part *other = &schedule->parts[i];
    return other->split == part->split && (other->end <= part->begin || part->end <= other->begin);
}

enum tandem_status tandem_plan_add_part(tandem_plan *plan, const struct tandem_plan_part *part,
                                        struct tandem_error *error)
{
    if (plan == NULL || part == NULL || !is_whole_part(plan, part)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", part != NULL ? part->node : 0, 0,
                             "plan: a part that has no node, no split, no rows or no times");
    }
    struct tnd_plan_schedule *schedule = need_schedule(plan);
    if (schedule == NULL) {
        return out_of_memory(error);
    }
    plan->observed_key = 0;
    int at = find_part(schedule, part->node, part->begin);
    if (!fits_beside(schedule, at - 1, part) || !fits_beside(schedule, at, part)) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "plan", part->begin, part->end,
            "plan: node %d has a part that overlaps with %lld .. %lld, or is split "
            "otherwise",
            (int)part->node, (long long)part->begin, (long long)part->end);
    }
    if (tnd_vector_insert(&schedule->parts_vector, sizeof(*part), INT32_MAX / 4, at) != TANDEM_OK) {
        return out_of_memory(error);
    }
    schedule->parts[at] = *part;
    schedule->parts[at].choice.profile[sizeof(part->choice.profile) - 1] = '\0';
    return TANDEM_OK;
}

int tandem_plan_part_count(const tandem_plan *plan)
{
    return plan != NULL && plan->schedule != NULL ? plan->schedule->n_parts : 0;
}

const struct tandem_plan_part *tandem_plan_part(const tandem_plan *plan, int i)
{
    return i >= 0 && i < tandem_plan_part_count(plan) ? &plan->schedule->parts[i] : NULL;
}

int tnd_plan_parts_of(const struct tandem_plan *plan, int i,
                      const struct tandem_plan_part **out_first)
{
    *out_first = NULL;
    if (tandem_plan_part_count(plan) == 0) {
        return 0;
    }
    const struct tnd_plan_schedule *schedule = plan->schedule;
    int first = find_part(schedule, i, 0);
    int n = 0;
    while (first + n < schedule->n_parts && schedule->parts[first + n].node == i) {
        n++;
    }
    *out_first = n > 0 ? &schedule->parts[first] : NULL;
    return n;
}

bool tnd_plan_own_part(const struct tandem_plan *plan, int i, int64_t all,
                       struct tandem_plan_part *out_own)
{
    const struct tandem_plan_part *parts;
    int n = tnd_plan_parts_of(plan, i, &parts);
    int64_t at = 0;
    int n_rests = 0;
    for (int p = 0; p <= n && n > 0; p++) {
        int64_t next = p < n ? parts[p].begin : all;
        if (at < next) {
            *out_own = (struct tandem_plan_part){
                .node = i, .split = parts[0].split, .begin = at, .end = next};
            n_rests++;
        }
        at = p < n ? parts[p].end : at;
    }
    if (n_rests == 1) {
        out_own->choice = plan->nodes[i];
    }
    return n_rests == 1 && at <= all;
}

void tnd_plan_remove_parts(struct tandem_plan *plan, int i)
{
    const struct tandem_plan_part *first;
    int n = tnd_plan_parts_of(plan, i, &first);
    for (; n > 0; n--) {
        tnd_vector_remove(&plan->schedule->parts_vector, sizeof(*first),
                          (int)(first - plan->schedule->parts));
    }
}

/* ---- order ---- */

/* Whether each number below n occurs once in the list. `seen` has n zero bytes. */
static bool is_permutation(const int32_t *order, int n, unsigned char *seen)
{
    for (int i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= n || seen[order[i]] != 0) {
            return false;
        }
        seen[order[i]] = 1;
    }
    return true;
}

enum tandem_status tandem_plan_set_order(tandem_plan *plan, const int32_t *order, int n,
                                         struct tandem_error *error)
{
    if (plan == NULL || n != (order != NULL ? plan->n_nodes : 0)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", n, tandem_plan_node_count(plan),
                             "plan: an order of %d nodes for a plan of %d", n,
                             tandem_plan_node_count(plan));
    }
    plan->observed_key = 0;
    if (order == NULL || n == 0) {
        if (plan->schedule != NULL) {
            tnd_free(plan->schedule->order);
            plan->schedule->order = NULL;
        }
        return TANDEM_OK;
    }
    struct tnd_plan_schedule *schedule = need_schedule(plan);
    int32_t *copy = tnd_alloc((size_t)n * sizeof(*copy));
    unsigned char *seen = tnd_calloc((size_t)n, 1);
    bool has_memory = schedule != NULL && copy != NULL && seen != NULL;
    bool is_valid = has_memory && is_permutation(order, n, seen);
    tnd_free(seen);
    if (!is_valid) {
        tnd_free(copy);
        return !has_memory
                   ? out_of_memory(error)
                   : tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", n, n,
                                   "plan: the order does not have each of the %d nodes once", n);
    }
    memcpy(copy, order, (size_t)n * sizeof(*copy));
    tnd_free(schedule->order);
    schedule->order = copy;
    return TANDEM_OK;
}

const int32_t *tandem_plan_order(const tandem_plan *plan)
{
    return plan != NULL && plan->schedule != NULL ? plan->schedule->order : NULL;
}

/* ---- spans ---- */

static bool is_span(const tandem_plan *plan, const struct tandem_plan_span *span)
{
    return span->node >= 0 && span->node < plan->n_nodes && span->part >= -1 &&
           span->backend > TANDEM_BACKEND_NONE && span->backend < TANDEM_MAX_BACKENDS &&
           span->lane < TANDEM_LANES && span->stage < TANDEM_STAGES && is_time(span->begin_us) &&
           is_time(span->end_us) && span->end_us >= span->begin_us;
}

enum tandem_status tandem_plan_add_span(tandem_plan *plan, const struct tandem_plan_span *span,
                                        struct tandem_error *error)
{
    if (plan == NULL || span == NULL || !is_span(plan, span)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", span != NULL ? span->node : 0, 0,
                             "plan: a span without node, backend, lane, stage or times");
    }
    struct tnd_plan_schedule *schedule = need_schedule(plan);
    if (schedule == NULL || tnd_vector_insert(&schedule->spans_vector, sizeof(*span), INT32_MAX / 4,
                                              schedule->n_spans) != TANDEM_OK) {
        return out_of_memory(error);
    }
    schedule->spans[schedule->n_spans - 1] = *span;
    schedule->spans[schedule->n_spans - 1].pad = 0;
    return TANDEM_OK;
}

int tandem_plan_span_count(const tandem_plan *plan)
{
    return plan != NULL && plan->schedule != NULL ? plan->schedule->n_spans : 0;
}

const struct tandem_plan_span *tandem_plan_span(const tandem_plan *plan, int i)
{
    return i >= 0 && i < tandem_plan_span_count(plan) ? &plan->schedule->spans[i] : NULL;
}

/* ---- the whole schedule ---- */

void tandem_plan_clear_schedule(tandem_plan *plan)
{
    if (plan != NULL && plan->schedule != NULL) {
        plan->observed_key = 0;
        tnd_free(plan->schedule->parts);
        tnd_free(plan->schedule->order);
        tnd_free(plan->schedule->spans);
        tnd_free(plan->schedule);
        plan->schedule = NULL;
    }
}

/* A copy of `n` entries of `bytes` each; NULL for n = 0, and when out of memory. */
static void *copy_of(const void *entries, int n, size_t bytes)
{
    void *copy = entries != NULL && n > 0 ? tnd_alloc((size_t)n * bytes) : NULL;
    if (copy != NULL) {
        memcpy(copy, entries, (size_t)n * bytes);
    }
    return copy;
}

enum tandem_status tnd_plan_copy_schedule(struct tandem_plan *plan, const struct tandem_plan *from,
                                          struct tandem_error *error)
{
    const struct tnd_plan_schedule *old = from->schedule;
    TND_ASSERT(plan->schedule == NULL && plan->n_nodes == from->n_nodes);
    if (old == NULL) {
        return TANDEM_OK;
    }
    struct tnd_plan_schedule *copy = need_schedule(plan);
    if (copy == NULL) {
        return out_of_memory(error);
    }
    copy->makespan_us = old->makespan_us;
    copy->single_us = old->single_us;
    copy->best_us = old->best_us;
    copy->gain_error_us = old->gain_error_us;
    copy->parts = copy_of(old->parts, old->n_parts, sizeof(old->parts[0]));
    copy->order = copy_of(old->order, from->n_nodes, sizeof(old->order[0]));
    copy->spans = copy_of(old->spans, old->n_spans, sizeof(old->spans[0]));
    copy->n_parts = copy->parts_capacity = copy->parts != NULL ? old->n_parts : 0;
    copy->n_spans = copy->spans_capacity = copy->spans != NULL ? old->n_spans : 0;
    if (copy->n_parts != old->n_parts || copy->n_spans != old->n_spans ||
        (copy->order == NULL) != (old->order == NULL)) {
        tandem_plan_clear_schedule(plan);
        return out_of_memory(error);
    }
    return TANDEM_OK;
}

const char *tandem_split_name(enum tandem_split split)
{
    static const char *const names[] = {"rows", "columns"};
    return (unsigned)split < sizeof(names) / sizeof(names[0]) ? names[split] : "unknown";
}

const char *tandem_lane_name(enum tandem_lane lane)
{
    static const char *const names[TANDEM_LANES] = {"compute", "upload", "download"};
    return (unsigned)lane < TANDEM_LANES ? names[lane] : "unknown";
}

double tnd_plan_predicted_us(const struct tandem_plan *plan)
{
    double us = 0;
    if (plan->schedule != NULL && plan->schedule->makespan_us > 0) {
        return (double)plan->schedule->makespan_us;
    }
    for (int i = 0; i < TANDEM_STAGES * plan->n_nodes; i++) {
        us += (double)plan->nodes[i / TANDEM_STAGES].predicted_us[i % TANDEM_STAGES];
    }
    return us;
}
