/* SPDX-License-Identifier: MIT
 * Places nodes: turns their times on each side into a scheduling problem (place_problem.h), and its
 * solution into the plan. Forced placements are decided node by node instead. Start at tnd_place.
 */
#include "tune/place.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "sched/residency.h"
#include "tune/moves.h"
#include "tune/place_problem.h"
#include "tune/placement.h"

struct placing {
    const struct tnd_place_options *options;
    struct tandem_plan *plan;
    struct tandem_error *error;
    struct tnd_residency *residency;
    struct tnd_place_node *nodes;
    uint8_t *best; /* side of each node's result; for a split node the host */
    uint8_t *own;  /* side of each node's own choice; for a split node the first with a share */
    struct tnd_place_choice *choices;
};

int tnd_place_devices(const struct tnd_registry *registry, uint8_t out_slots[TND_MAX_SLOTS])
{
    uint32_t usable = tnd_registry_own_slots(registry) & ~tnd_registry_quarantined(registry);
    int n = 0;
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        if ((usable >> slot & 1) != 0) {
            out_slots[n++] = (uint8_t)slot;
        }
    }
    return n;
}

/* Backend slot of a side. */
static int slot_of(const struct placing *p, int side)
{
    TND_ASSERT(side >= 0 && side <= p->options->n_devices);
    return side > 0 ? p->options->slots[side - 1] : TANDEM_BACKEND_CPU;
}

static bool can_run(const struct tnd_place_node *node, int side)
{
    return (node->supported >> side & 1) != 0;
}

static bool is_product(const tandem_tensor *tensor)
{
    return tensor->op == TANDEM_OP_MUL_MAT_ID ||
           (tensor->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(tensor));
}

/* Whether the operation reads a weight that the side must not keep. */
static bool is_kept_off(const struct placing *p, const tandem_tensor *tensor, int side)
{
    uint32_t bit = UINT32_C(1) << slot_of(p, side);
    for (int s = 0; s < tensor->n_src && p->options->placement != NULL; s++) {
        const tandem_tensor *root = tensor->src[s] != NULL ? tensor->src[s]->root : NULL;
        if (root != NULL && (root->flags & TND_TENSOR_CONSTANT) != 0 &&
            tnd_placement_refused(p->options->placement, root->data, bit) != 0) {
            return true;
        }
    }
    return false;
}

static void read_node(struct placing *p, int i, struct tnd_place_choice *choice)
{
    const struct tnd_place_options *options = p->options;
    const tandem_tensor *tensor = options->graph->nodes[i];
    struct tnd_place_node *node = &p->nodes[i];
    *node = (struct tnd_place_node){.is_product = choice != NULL, .choice = choice};
    if (choice == NULL) {
        options->whole(options->user, tensor, &p->plan->nodes[i]);
        node->host_us = p->plan->nodes[i].predicted_us[TANDEM_STAGE_COMPUTE];
    }
    for (int side = 0; side <= options->n_devices; side++) {
        bool runs = side == 0;
        if (node->is_product) {
            runs = options->product(options->user, tensor, side, &choice[side]);
        } else if (side > 0) {
            runs = !is_kept_off(p, tensor, side) &&
                   tnd_registry_supports(options->registry, slot_of(p, side), tensor,
                                         TANDEM_TASK_NODE, NULL) == TANDEM_OK;
        }
        node->supported |= runs ? UINT32_C(1) << side : 0;
    }
}

/* ---- forced placements ---- */

/* The first device that holds all operands computed by this graph; 0: none. */
static int side_of_operands(const struct placing *p, int i)
{
    const tandem_tensor *tensor = p->options->graph->nodes[i];
    uint32_t valid = p->nodes[i].supported & ~UINT32_C(1);
    bool any = false;
    for (int s = 0; s < tensor->n_src && valid != 0; s++) {
        if (tensor->src[s] == NULL || tnd_residency_region(p->residency, tensor, s)->writer < 0) {
            continue;
        }
        any = true;
        for (int side = 1; side <= p->options->n_devices; side++) {
            bool is_there = tnd_residency_is_valid(p->residency, tensor, s, slot_of(p, side));
            valid &= is_there ? UINT32_MAX : ~(UINT32_C(1) << side);
        }
    }
    int side = 1;
    while (any && valid != 0 && (valid >> side & 1) == 0) {
        side++;
    }
    return any && valid != 0 ? side : 0;
}

/* Side of a node in a forced placement. A forced device runs every node that it supports. Otherwise
 * products run on the device of the forced profile, and other operations follow their operands. */
static int forced_side(const struct placing *p, int i)
{
    const struct tnd_place_node *node = &p->nodes[i];
    int side = p->options->forced_side;
    if (side > 0) {
        return can_run(node, side) ? side : 0;
    }
    if (!node->is_product) {
        return side_of_operands(p, i);
    }
    while (side < p->options->n_devices && !can_run(node, side)) {
        side++;
    }
    return can_run(node, side) ? side : 0;
}

static void place_forced(struct placing *p)
{
    const struct tandem_graph *graph = p->options->graph;
    struct tnd_move moves[TND_MAX_MOVES];
    tnd_residency_restart(p->residency);
    for (int i = 0; i < graph->n_nodes; i++) {
        p->best[i] = p->own[i] = (uint8_t)forced_side(p, i);
        (void)tnd_residency_work(p->residency, graph->nodes[i], TANDEM_TASK_NODE,
                                 slot_of(p, p->best[i]), 0, 0, moves);
    }
}

/* ---- schedules ---- */

static enum tandem_status add_parts(struct placing *p, const struct tnd_schedule *schedule,
                                    const struct tnd_place_problem *problem)
{
    for (int i = 0; i < schedule->n_parts; i++) {
        const struct tnd_schedule_part *from = &schedule->parts[i];
        int node = from->node - problem->n_sources;
        bool is_sum = problem->splits[problem->problem.split_of[from->node]].is_sum;
        const struct tnd_place_choice *choice = &p->nodes[node].choice[from->side];
        if (from->row_begin == 0) {
            p->own[node] = from->side;
            p->nodes[node].own_share = (float)(from->us / choice->us);
            continue;
        }
        struct tandem_plan_part part = {.node = node,
                                        .split = is_sum ? TANDEM_SPLIT_COLUMNS : TANDEM_SPLIT_ROWS,
                                        .begin = from->row_begin,
                                        .end = from->row_end,
                                        .choice = choice->node};
        double share = from->us / choice->us;
        for (int s = 0; s < TANDEM_STAGES; s++) {
            part.choice.predicted_us[s] *= (float)share;
        }
        TND_TRY(tandem_plan_add_part(p->plan, &part, p->error));
    }
    return TANDEM_OK;
}

static int part_of(const struct tandem_plan *plan, int node, int slot)
{
    const struct tandem_plan_part *parts;
    int n = tnd_plan_parts_of(plan, node, &parts);
    for (int i = 0; i < n; i++) {
        if (parts[i].choice.stage[TANDEM_STAGE_COMPUTE].backend == slot) {
            return i;
        }
    }
    return -1;
}

static enum tandem_status add_spans(struct placing *p, const struct tnd_schedule *schedule,
                                    int n_sources)
{
    static const uint8_t lanes[] = {TANDEM_LANE_COMPUTE, TANDEM_LANE_UPLOAD, TANDEM_LANE_DOWNLOAD,
                                    TANDEM_LANE_COMPUTE, TANDEM_LANE_COMPUTE};
    static const uint8_t stages[] = {TANDEM_STAGE_COMPUTE, TANDEM_STAGE_INIT, TANDEM_STAGE_FINALIZE,
                                     TANDEM_STAGE_FINALIZE, TANDEM_STAGE_INIT};
    for (int i = 0; i < schedule->n_spans; i++) {
        const struct tnd_schedule_span *from = &schedule->spans[i];
        int node = from->reader - n_sources;
        if (!(from->end_us > from->begin_us) || node < 0 || node >= p->plan->n_nodes) {
            continue;
        }
        int slot = slot_of(p, from->side);
        bool is_copy = from->kind == TND_SCHEDULE_COPY;
        struct tandem_plan_span span = {.node = node,
                                        .part = from->is_part ? part_of(p->plan, node, slot) : -1,
                                        .backend = (uint8_t)(is_copy ? TANDEM_BACKEND_CPU : slot),
                                        .lane = lanes[from->kind],
                                        .stage = stages[from->kind],
                                        .begin_us = (float)from->begin_us,
                                        .end_us = (float)from->end_us};
        TND_TRY(tandem_plan_add_span(p->plan, &span, p->error));
    }
    return TANDEM_OK;
}

static enum tandem_status set_order(struct placing *p, const struct tnd_schedule *schedule,
                                    int n_sources)
{
    int n = p->plan->n_nodes;
    int n_found = 0;
    bool is_graphs = true;
    int32_t *order = tnd_alloc((size_t)n * sizeof(order[0]) + 1);
    if (order == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int i = 0; i < schedule->n_nodes; i++) {
        int node = schedule->order[i] - n_sources;
        if (node >= 0 && node < n) {
            is_graphs = is_graphs && node == n_found;
            order[n_found++] = node;
        }
    }
    TND_ASSERT(n_found == n);
    /* A plan that overlaps on purpose always has an order, even the graph's: other code recognises
     * it by that. */
    enum tandem_status status = is_graphs && !schedule->is_taken
                                    ? TANDEM_OK
                                    : tandem_plan_set_order(p->plan, order, n, p->error);
    tnd_free(order);
    return status;
}

static enum tandem_status keep_schedule(struct placing *p, const struct tnd_schedule *schedule,
                                        const struct tnd_place_problem *problem)
{
    int n_sources = problem->n_sources;
    for (int i = 0; i < p->plan->n_nodes; i++) {
        bool is_split = schedule->side[n_sources + i] == TND_SCHEDULE_SPLIT;
        p->best[i] = p->own[i] = is_split ? 0 : schedule->side[n_sources + i];
    }
    TND_TRY(add_parts(p, schedule, problem));
    TND_TRY(set_order(p, schedule, n_sources));
    TND_TRY(add_spans(p, schedule, n_sources));
    if (p->plan->schedule != NULL) {
        p->plan->schedule->single_us = (float)schedule->single_us;
        p->plan->schedule->best_us = (float)schedule->best_us;
        p->plan->schedule->gain_error_us = (float)schedule->gain_error_us;
        p->plan->schedule->makespan_us = (float)schedule->makespan_us;
    }
    return TANDEM_OK;
}

static enum tandem_status place_by_schedule(struct placing *p, struct tnd_schedule_cache *cache)
{
    struct tnd_place_problem problem;
    const struct tnd_schedule *schedule = NULL;
    TND_TRY(tnd_place_problem_init(p->options, p->residency, p->nodes, &problem, p->error));
    enum tandem_status status =
        tnd_schedule_cached(cache, problem.hash, &problem.problem, &schedule, p->error);
    if (status == TANDEM_OK) {
        status = keep_schedule(p, schedule, &problem);
    }
    tnd_place_problem_fini(&problem);
    return status;
}

/* ---- nodes of the plan ---- */

static void fill(const struct placing *p, struct tandem_plan_node *nodes)
{
    const struct tnd_place_options *options = p->options;
    for (int i = 0; i < options->graph->n_nodes; i++) {
        int side = p->own[i];
        if (p->nodes[i].is_product) {
            nodes[i] = p->nodes[i].choice[side].node;
            for (int s = 0; s < TANDEM_STAGES && p->nodes[i].own_share > 0; s++) {
                nodes[i].predicted_us[s] *= p->nodes[i].own_share;
            }
            continue;
        }
        if (side > 0) {
            struct tandem_task_config *config = &nodes[i].stage[TANDEM_STAGE_COMPUTE];
            int slot = slot_of(p, side);
            struct tnd_schedule_time time;
            if (options->device_op != NULL &&
                options->device_op(options->user, options->graph->nodes[i], side, &time)) {
                nodes[i].predicted_us[TANDEM_STAGE_COMPUTE] = time.us;
            }
            memset(nodes[i].profile, 0, sizeof(nodes[i].profile));
            strncpy(nodes[i].profile, tnd_registry_name(options->registry, slot),
                    sizeof(nodes[i].profile) - 1);
            config->backend = (uint8_t)slot;
            config->parallel = false;
            config->wait = true;
            nodes[i].n_threads = 1;
            nodes[i].reason = options->forced_products ? TANDEM_REASON_FORCED : TANDEM_REASON_TABLE;
        }
    }
}

/* Adds a download for a result that the host reads, or that is an output, as FINALIZE of the node
 * that wrote it. */
static void add_fetch(const struct placing *p, const struct tnd_move *move,
                      struct tandem_plan_node *nodes)
{
    const struct tnd_place_options *options = p->options;
    if (!move->is_download || move->writer < 0 ||
        nodes[move->writer].stage[TANDEM_STAGE_COMPUTE].backend != move->slot) {
        return;
    }
    TND_ASSERT(move->writer < options->graph->n_nodes);
    struct tandem_plan_node *writer = &nodes[move->writer];
    writer->stage[TANDEM_STAGE_FINALIZE] = (struct tandem_task_config){
        .backend = move->slot, .task = TANDEM_TASK_FINALIZE, .wait = true};
    writer->predicted_us[TANDEM_STAGE_FINALIZE] +=
        (float)tnd_estimate_transfer(options->table,
                                     tnd_registry_name(options->registry, move->slot), TND_DOWNLOAD,
                                     (int64_t)move->extent.bytes)
            .us;
}

/* Replays the placement to find its downloads; results that stay on their device get no FINALIZE.
 */
static void finalize(struct placing *p, struct tandem_plan_node *nodes)
{
    const struct tandem_graph *graph = p->options->graph;
    struct tnd_move moves[TND_MAX_MOVES];
    uint8_t any = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        memset(&nodes[i].stage[TANDEM_STAGE_FINALIZE], 0, sizeof(nodes[i].stage[0]));
        nodes[i].predicted_us[TANDEM_STAGE_FINALIZE] = 0;
        any |= p->best[i];
    }
    tnd_residency_restart(p->residency);
    for (int i = 0; i < graph->n_nodes && any != 0; i++) {
        int n = tnd_residency_work(p->residency, graph->nodes[i], TANDEM_TASK_NODE,
                                   slot_of(p, p->best[i]), 0, 0, moves);
        for (int j = 0; j < n; j++) {
            add_fetch(p, &moves[j], nodes);
        }
    }
    for (int cursor = 0; any != 0 && tnd_residency_next_output(p->residency, &cursor, moves);) {
        add_fetch(p, moves, nodes);
    }
}

static enum tandem_status out_of_memory(const struct tnd_place_options *options,
                                        struct tandem_error *error)
{
    int n = options->graph->n_nodes;
    return tnd_error_set(error, TANDEM_E_MEMORY, "planner", n, 0,
                         "planner: out of memory for %d nodes", n);
}

/* Finds for each node the sides on which it can run, with its choices. */
static enum tandem_status read_nodes(struct placing *p, struct tandem_error *error)
{
    const struct tandem_graph *graph = p->options->graph;
    size_t n_sides = (size_t)p->options->n_devices + 1;
    size_t n_choices = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        n_choices += is_product(graph->nodes[i]) ? n_sides : 0;
    }
    p->nodes = tnd_alloc((size_t)graph->n_nodes * sizeof(p->nodes[0]) + 1);
    p->best = tnd_alloc(2 * (size_t)graph->n_nodes + 1);
    p->choices = tnd_alloc(n_choices * sizeof(p->choices[0]) + 1);
    if (p->nodes == NULL || p->best == NULL || p->choices == NULL) {
        return out_of_memory(p->options, error);
    }
    p->own = p->best + graph->n_nodes;
    struct tnd_place_choice *choice = p->choices;
    for (int i = 0; i < graph->n_nodes; i++) {
        bool has_choice = is_product(graph->nodes[i]);
        read_node(p, i, has_choice ? choice : NULL);
        choice += has_choice ? n_sides : 0;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_place(const struct tnd_place_options *options,
                             struct tnd_schedule_cache *cache, struct tandem_plan *plan,
                             struct tandem_error *error)
{
    struct placing p = {.options = options, .plan = plan, .error = error};
    uint32_t slots = 0;
    for (int i = 0; i < options->n_devices; i++) {
        slots |= UINT32_C(1) << options->slots[i];
    }
    enum tandem_status status =
        tnd_residency_renew(options->graph, NULL, slots, NULL, &p.residency, error);
    if (status == TANDEM_OK) {
        status = read_nodes(&p, error);
    }
    if (status == TANDEM_OK && (options->forced_side > 0 || options->forced_products)) {
        place_forced(&p);
    } else if (status == TANDEM_OK) {
        status = place_by_schedule(&p, cache);
    }
    if (status == TANDEM_OK) {
        fill(&p, plan->nodes);
        finalize(&p, plan->nodes);
    }
    tnd_residency_free(p.residency);
    tnd_free(p.nodes);
    tnd_free(p.best);
    tnd_free(p.choices);
    return status;
}
