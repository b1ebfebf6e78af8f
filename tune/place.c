/* SPDX-License-Identifier: MIT
 * Placement: a graph is followed from node to node by the same residency that the executor unfolds
 * with, and what it says must be moved is priced by the table. Start at tnd_place, then walk. Two
 * placements of a graph differ in where products run (struct policy); the other operations follow
 * their operands. */
#include "tune/place.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/residency.h"
#include "tune/moves.h"
#include "tune/placement.h"

struct node {
    uint32_t supported;              /* bit a side: it can run there */
    bool is_product;                 /* plain: planned by table */
    uint8_t side;                    /* by the walk */
    struct tnd_place_choice *choice; /* of products, one a side */
};

struct placing {
    const struct tnd_place_options *options;
    struct tnd_residency *residency;
    struct node *nodes;
    uint8_t *best; /* sides of the best walk */
    struct tnd_place_choice *choices;
};

/* How products choose their side in a walk. */
struct policy {
    bool by_cost;   /* the cheapest where X is now, left to right */
    int side;       /* else this one where a profile runs there */
    bool takes_all; /* other operations go there too, wherever their operands are */
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

/* Backend that stands for a side. */
static int slot_of(const struct placing *p, int side)
{
    TND_ASSERT(side >= 0 && side <= p->options->n_devices);
    return side > 0 ? p->options->slots[side - 1] : TANDEM_BACKEND_CPU;
}

static bool can_run(const struct node *node, int side)
{
    return (node->supported >> side & 1) != 0;
}

static bool is_product(const tandem_tensor *tensor)
{
    return tensor->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(tensor);
}

/* Whether a side shall not keep a weight that the operation reads. */
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
    struct node *node = &p->nodes[i];
    *node = (struct node){.is_product = choice != NULL, .choice = choice};
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

/* ---- a walk ---- */

static double move_us(const struct placing *p, int slot, enum tnd_direction direction, size_t bytes)
{
    const struct tnd_place_options *options = p->options;
    struct tnd_estimate one = tnd_estimate_transfer(
        options->table, tnd_registry_name(options->registry, slot), direction, (int64_t)bytes);
    return one.us + one.error_us;
}

static double moves_us(const struct placing *p, const struct tnd_move *moves, int n)
{
    double us = 0;
    for (int i = 0; i < n; i++) {
        us += move_us(p, moves[i].slot, moves[i].is_download ? TND_DOWNLOAD : TND_UPLOAD,
                      moves[i].extent.bytes);
    }
    return us;
}

/* Left to right: what the operands cost to bring, the product, and the way back of the result,
 * since nobody knows yet who wants it. Products that pay together only are found by the walks
 * that prefer a device. */
static int cheapest_side(const struct placing *p, int i)
{
    const tandem_tensor *tensor = p->options->graph->nodes[i];
    const struct node *node = &p->nodes[i];
    double best_us = INFINITY;
    int best = 0;
    for (int side = 0; side <= p->options->n_devices; side++) {
        if (!can_run(node, side)) {
            continue;
        }
        struct tnd_move moves[TND_MAX_MOVES];
        int n = tnd_residency_try(p->residency, tensor, slot_of(p, side), moves);
        double us = node->choice[side].us + moves_us(p, moves, n);
        us += side > 0
                  ? move_us(p, slot_of(p, side), TND_DOWNLOAD, tandem_tensor_bytes(tensor->root))
                  : 0;
        if (us < best_us) {
            best_us = us;
            best = side;
        }
    }
    return best;
}

/* The first device that has all operands which this graph has computed; 0: none has. */
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

static int side_for(const struct placing *p, int i, const struct policy *policy)
{
    const struct node *node = &p->nodes[i];
    bool can = can_run(node, policy->side);
    if (node->is_product) {
        return can && !policy->by_cost ? policy->side : cheapest_side(p, i);
    }
    if (policy->takes_all) {
        return can ? policy->side : 0;
    }
    return policy->by_cost ? side_of_operands(p, i) : 0;
}

/* Places all nodes; returns the predicted time of the products and of all that moves. */
static double walk(struct placing *p, const struct policy *policy)
{
    const struct tandem_graph *graph = p->options->graph;
    double wake_us = tnd_estimate_wake(p->options->table, p->options->n_threads);
    double us = 0;
    bool asleep = false;
    struct tnd_move moves[TND_MAX_MOVES];
    tnd_residency_restart(p->residency);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct node *node = &p->nodes[i];
        node->side = (uint8_t)side_for(p, i, policy);
        int n = tnd_residency_work(p->residency, graph->nodes[i], TANDEM_TASK_NODE,
                                   slot_of(p, node->side), 0, 0, moves);
        us += moves_us(p, moves, n);
        us += node->is_product ? node->choice[node->side].us : 0;
        if (node->side > 0) {
            asleep = true;
        } else if (asleep && node->is_product && node->choice[0].node.n_threads > 1) {
            us += wake_us;
            asleep = false;
        }
    }
    for (int cursor = 0; tnd_residency_next_output(p->residency, &cursor, moves);) {
        us += moves_us(p, moves, 1);
    }
    return us;
}

/* ---- the best walk ---- */

static void keep(struct placing *p)
{
    for (int i = 0; i < p->options->graph->n_nodes; i++) {
        p->best[i] = p->nodes[i].side;
    }
}

static void try_policies(struct placing *p)
{
    const struct tnd_place_options *options = p->options;
    double best_us = INFINITY;
    if (options->forced_side > 0 || options->forced_products) {
        const struct policy forced = {options->forced_side == 0, options->forced_side,
                                      options->forced_side > 0};
        (void)walk(p, &forced);
        keep(p);
        return;
    }
    /* Of equals the first: nothing moves without a reason. */
    for (int side = 0; side <= options->n_devices; side++) {
        const struct policy prefer = {false, side, side > 0};
        double us = walk(p, &prefer);
        if (side == 0 || us < best_us) {
            best_us = us;
            keep(p);
        }
    }
    const struct policy by_cost = {true, 0, false};
    if (walk(p, &by_cost) < best_us) {
        keep(p);
    }
}

static void fill(const struct placing *p, struct tandem_plan_node *nodes)
{
    const struct tnd_place_options *options = p->options;
    for (int i = 0; i < options->graph->n_nodes; i++) {
        int side = p->best[i];
        if (p->nodes[i].is_product) {
            nodes[i] = p->nodes[i].choice[side].node;
            continue;
        }
        options->whole(options->user, options->graph->nodes[i], &nodes[i]);
        if (side > 0) {
            struct tandem_task_config *config = &nodes[i].stage[TANDEM_STAGE_COMPUTE];
            int slot = slot_of(p, side);
            memset(nodes[i].profile, 0, sizeof(nodes[i].profile));
            strncpy(nodes[i].profile, tnd_registry_name(options->registry, slot),
                    sizeof(nodes[i].profile) - 1);
            config->backend = (uint8_t)slot;
            config->parallel = false;
            config->wait = true;
            nodes[i].n_threads = 1;
            nodes[i].reason = options->forced_side > 0 ? TANDEM_REASON_FORCED : TANDEM_REASON_TABLE;
        }
    }
}

/* What the host reads, or what is an output, is fetched by FINALIZE of the node that wrote it. */
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

/* Follows the best walk once more; results that stay on their device have no FINALIZE. */
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

/* Asks for all nodes where they can run. */
static enum tandem_status read_nodes(struct placing *p, struct tandem_error *error)
{
    const struct tandem_graph *graph = p->options->graph;
    size_t n_sides = (size_t)p->options->n_devices + 1;
    size_t n_choices = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        n_choices += is_product(graph->nodes[i]) ? n_sides : 0;
    }
    p->nodes = tnd_alloc((size_t)graph->n_nodes * sizeof(p->nodes[0]) + 1);
    p->best = tnd_alloc((size_t)graph->n_nodes + 1);
    p->choices = tnd_alloc(n_choices * sizeof(p->choices[0]) + 1);
    if (p->nodes == NULL || p->best == NULL || p->choices == NULL) {
        return out_of_memory(p->options, error);
    }
    struct tnd_place_choice *choice = p->choices;
    for (int i = 0; i < graph->n_nodes; i++) {
        bool has_choice = is_product(graph->nodes[i]);
        read_node(p, i, has_choice ? choice : NULL);
        choice += has_choice ? n_sides : 0;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_place(const struct tnd_place_options *options,
                             struct tandem_plan_node *nodes, struct tandem_error *error)
{
    struct placing p = {.options = options};
    uint32_t slots = 0;
    for (int i = 0; i < options->n_devices; i++) {
        slots |= UINT32_C(1) << options->slots[i];
    }
    enum tandem_status status =
        tnd_residency_renew(options->graph, slots, NULL, &p.residency, error);
    if (status == TANDEM_OK) {
        status = read_nodes(&p, error);
    }
    if (status == TANDEM_OK) {
        try_policies(&p);
        fill(&p, nodes);
        finalize(&p, nodes);
    }
    tnd_residency_free(p.residency);
    tnd_free(p.nodes);
    tnd_free(p.best);
    tnd_free(p.choices);
    return status;
}
