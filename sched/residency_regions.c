/* SPDX-License-Identifier: MIT
 * The regions of a graph: one for each planned result, and those of leaves and outputs, listed once
 * and merged where they overlap. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/residency.h"

/* What is computed: the nodes of a graph, by index, and the tensors that the items of its plan
 * add. */
struct tensors {
    const struct tandem_graph *graph;
    const struct tnd_item_tensor *made;
    int n;
};

static const struct tandem_tensor *tensor_at(const struct tensors *tensors, int i)
{
    const int n_nodes = tensors->graph->n_nodes;
    return i < n_nodes ? tensors->graph->nodes[i] : &tensors->made[i - n_nodes].tensor;
}

/* ---- leaves ---- */

/* Upper bound of what all nodes access: results and operands, planned ones too. */
static size_t count_mentions(const struct tensors *tensors)
{
    size_t n = 0;
    for (int i = 0; i < tensors->n; i++) {
        n += 1 + (size_t)tensor_at(tensors, i)->n_src;
    }
    return n;
}

/* Index of a root in the list of leaves. If its buffer records no index in this list, the root is
 * new, or another graph with it is being unfolded at the same time: it may then be listed twice,
 * which merging corrects. */
static int32_t add_leaf(struct tnd_residency *residency, const struct tandem_tensor *root,
                        bool is_written)
{
    TND_ASSERT(root->buffer != NULL);
    int32_t i = atomic_load_explicit(&root->buffer->leaf, memory_order_relaxed);
    if (i >= residency->n_leaves || residency->leaves[i].root != root) {
        i = residency->n_leaves++;
        residency->leaves[i] = (struct tnd_leaf){root, -1, false};
        atomic_store_explicit(&root->buffer->leaf, i, memory_order_relaxed);
    }
    residency->leaves[i].is_written |= is_written;
    return i;
}

/* Records what each node accesses: the region of a planned result, or a leaf as -2 - its index. */
static void find_leaves(struct tnd_residency *residency, const struct tensors *tensors)
{
    int32_t n = 0;
    for (int i = 0; i < tensors->n; i++) {
        const struct tandem_tensor *node = tensor_at(tensors, i);
        residency->first_touched[node->index] = n;
        for (int j = -1; j < node->n_src; j++) {
            const struct tandem_tensor *tensor = j < 0 ? node : node->src[j];
            int32_t region = -1;
            if (tensor != NULL) {
                const struct tandem_tensor *root = tensor->root;
                region =
                    root->plan_offset >= 0 ? root->index : -2 - add_leaf(residency, root, j < 0);
            }
            residency->touched[n++] = region;
        }
    }
    residency->n_touched = n;
}

/* ---- regions ---- */

static void begin_region(struct tnd_residency *residency, struct tnd_region *region,
                         struct tnd_extent extent, const struct tandem_tensor *root)
{
    region->extent = extent;
    region->root = root;
    region->owner = 0;
    region->writer = -1;
    region->sides = 0;
    for (int side = 0; side < residency->n_sides; side++) {
        *tnd_residency_copy(residency, region, side) = (struct tnd_copy){{0, 0}, NULL, {0, 0}, 0};
    }
}

static void plan_results(struct tnd_residency *residency, const struct tensors *tensors)
{
    struct tnd_extent nothing = {TND_SPACE_INTERMEDIATES, -1, 0, 0};
    for (int i = 0; i < tensors->n; i++) {
        begin_region(residency, &residency->regions[i], nothing, NULL);
        residency->regions[i].kind = TND_REGION_RESULT;
    }
    for (int i = 0; i < tensors->n; i++) {
        const struct tandem_tensor *root = tensor_at(tensors, i)->root;
        if (root->plan_offset >= 0) {
            struct tnd_region *region = &residency->regions[root->index];
            region->extent =
                (struct tnd_extent){TND_SPACE_INTERMEDIATES, root->index, (size_t)root->plan_offset,
                                    tandem_tensor_bytes(root)};
            region->root = root;
        }
    }
}

static enum tnd_region_kind kind_of(const struct tandem_graph *graph, const struct tnd_leaf *leaf)
{
    const struct tandem_tensor *root = leaf->root;
    if (tnd_graph_computes(graph, root)) {
        return TND_REGION_RESULT;
    }
    if ((root->flags & TND_TENSOR_STATE) != 0) {
        return TND_REGION_STATE;
    }
    bool is_constant = (root->flags & TND_TENSOR_CONSTANT) != 0 && !leaf->is_written;
    return is_constant ? TND_REGION_CONSTANT : TND_REGION_INPUT;
}

static int by_address(const void *left, const void *right)
{
    const struct tnd_leaf *const *a = left;
    const struct tnd_leaf *const *b = right;
    uintptr_t begin = (uintptr_t)(*a)->root->data;
    uintptr_t other = (uintptr_t)(*b)->root->data;
    return (begin > other) - (begin < other);
}

static void join_leaf(struct tnd_residency *residency, const struct tandem_graph *graph,
                      struct tnd_leaf *leaf, const struct tnd_leaf *before)
{
    struct tnd_region *region =
        before != NULL ? &residency->regions[residency->n_regions - 1] : NULL;
    struct tnd_extent extent = {TND_SPACE_MEMORY, -1, (uintptr_t)leaf->root->data,
                                tandem_tensor_bytes(leaf->root)};
    if (region == NULL || (extent.begin >= region->extent.begin + region->extent.bytes &&
                           leaf->root != before->root)) {
        region = &residency->regions[residency->n_regions++];
        begin_region(residency, region, extent, leaf->root);
        region->kind = (uint8_t)kind_of(graph, leaf);
    } else if (leaf->root == before->root) { /* listed twice */
        bool is_new = region->root == leaf->root && region->extent.bytes == extent.bytes;
        leaf->is_written = leaf->is_written || before->is_written;
        region->kind = is_new ? (uint8_t)kind_of(graph, leaf) : TND_REGION_INPUT;
    } else {
        size_t end = extent.begin + extent.bytes - region->extent.begin;
        region->extent.bytes = end > region->extent.bytes ? end : region->extent.bytes;
        region->kind = TND_REGION_INPUT;
    }
    leaf->region = (int32_t)(region - residency->regions);
}

static bool is_range(const struct tnd_leaf *leaf)
{
    return (leaf->root->flags & TND_TENSOR_RANGE) != 0;
}

/* Leaves that share bytes with others are moved together, and their mirrors do not stay after the
 * run. Except ranges of weights: they are constant, and each device has its own. */
static void join_leaves(struct tnd_residency *residency, const struct tandem_graph *graph,
                        struct tnd_leaf **order)
{
    const struct tnd_leaf *before = NULL;
    bool is_sorted = true;
    for (int i = 0; i < residency->n_leaves; i++) {
        order[i] = &residency->leaves[i];
        is_sorted = is_sorted && (i == 0 || by_address(&order[i - 1], &order[i]) <= 0);
    }
    if (!is_sorted) {
        qsort(order, (size_t)residency->n_leaves, sizeof(order[0]), by_address);
    }
    for (int i = 0; i < residency->n_leaves; i++) {
        struct tnd_leaf *leaf = order[i];
        if (!is_range(leaf)) {
            join_leaf(residency, graph, leaf, before);
            before = leaf;
        }
    }
    for (int i = 0; i < residency->n_leaves && residency->n_nodes > graph->n_nodes; i++) {
        if (is_range(&residency->leaves[i])) {
            join_leaf(residency, graph, &residency->leaves[i], NULL);
        }
    }
    for (int i = 0; i < residency->n_touched; i++) {
        int32_t *touched = &residency->touched[i];
        *touched = *touched <= -2 ? residency->leaves[-2 - *touched].region : *touched;
    }
}

/* Initial contents of devices: nothing of inputs, valid bytes of states with mirrors. */
static void begin_leaves(struct tnd_residency *residency)
{
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        struct tnd_region *region = &residency->regions[i];
        for (int side = 1; side < residency->n_sides; side++) {
            struct tnd_copy *copy = tnd_residency_copy(residency, region, side);
            if (region->kind != TND_REGION_RESULT) {
                copy->stale = (struct tnd_span){0, region->extent.bytes};
            }
            if (region->kind == TND_REGION_STATE && residency->mirrors != NULL) {
                copy->mirror =
                    tnd_mirrors_hold_state(residency->mirrors, residency->slot_of[side],
                                           region->root, &copy->stale, &copy->debt, &copy->n_owed);
            }
            if (copy->debt.begin < copy->debt.end) {
                region->owner = (uint8_t)side;
                tnd_residency_copy(residency, region, 0)->stale = copy->debt;
            }
        }
    }
}

/* Whether a device keeps bytes of a leaf under another root: changes through one root would be
 * invisible to the other. States with a mirror were checked before the mirror was made. */
static bool is_known_otherwise(const struct tnd_residency *residency)
{
    bool any = false;
    if (residency->mirrors == NULL || tnd_mirrors_state_slots(residency->mirrors) == 0) {
        return false;
    }
    for (int i = residency->n_nodes; i < residency->n_regions && !any; i++) {
        const struct tnd_region *region = &residency->regions[i];
        bool is_safe = region->kind == TND_REGION_CONSTANT;
        for (int side = 1; side < residency->n_sides; side++) {
            is_safe = is_safe || tnd_residency_copy(residency, region, side)->mirror != NULL;
        }
        any = !is_safe &&
              tnd_mirrors_has_state(residency->mirrors, (const void *)region->extent.begin,
                                    region->extent.bytes);
    }
    return any;
}

void tnd_residency_restart(struct tnd_residency *residency)
{
    for (int i = 0; i < residency->n_regions; i++) {
        struct tnd_region *region = &residency->regions[i];
        bool is_given = region->kind == TND_REGION_INPUT;
        begin_region(residency, region, region->extent, region->root);
        for (int side = 1; side < residency->n_sides && is_given; side++) {
            struct tnd_copy *copy = tnd_residency_copy(residency, region, side);
            copy->stale = (struct tnd_span){0, region->extent.bytes};
        }
    }
}

/* ---- memory ---- */

static void name_sides(struct tnd_residency *residency, uint32_t slots)
{
    residency->n_sides = 1;
    memset(residency->side_of, 0, sizeof(residency->side_of));
    residency->slot_of[0] = 0;
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        if ((slots >> slot & 1) != 0) {
            residency->side_of[slot] = (uint8_t)residency->n_sides;
            residency->slot_of[residency->n_sides++] = (uint8_t)slot;
        }
    }
}

static enum tandem_status reserve(struct tnd_residency *residency, size_t n_nodes,
                                  size_t n_mentions, struct tnd_leaf ***out_order,
                                  struct tandem_error *error)
{
    size_t n_regions = n_nodes + n_mentions + 1;
    size_t bytes = 0;
    size_t regions, copies, leaves, touched, first_touched, order;
    if (!tnd_add_array(n_regions, sizeof(struct tnd_region), &bytes, &regions) ||
        !tnd_add_array(n_regions * (size_t)residency->n_sides, sizeof(struct tnd_copy), &bytes,
                       &copies) ||
        !tnd_add_array(n_mentions, sizeof(struct tnd_leaf), &bytes, &leaves) ||
        !tnd_add_array(n_mentions, sizeof(int32_t), &bytes, &touched) ||
        !tnd_add_array(n_nodes, sizeof(int32_t), &bytes, &first_touched) ||
        !tnd_add_array(n_mentions, sizeof(struct tnd_leaf *), &bytes, &order)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "plan", (int64_t)n_mentions, 0,
                             "plan: its leaves do not fit into the address space");
    }
    if (!tnd_reserve(&residency->memory, &residency->memory_bytes, bytes)) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", (int64_t)bytes, 0,
                             "plan: out of memory for where %zu leaves are", n_mentions);
    }
    char *base = residency->memory;
    residency->regions = (struct tnd_region *)(void *)(base + regions);
    residency->copies = (struct tnd_copy *)(void *)(base + copies);
    residency->leaves = (struct tnd_leaf *)(void *)(base + leaves);
    residency->touched = (int32_t *)(void *)(base + touched);
    residency->first_touched = (int32_t *)(void *)(base + first_touched);
    *out_order = (struct tnd_leaf **)(void *)(base + order);
    return TANDEM_OK;
}

enum tandem_status tnd_residency_renew(const struct tandem_graph *graph,
                                       const struct tnd_items *items, uint32_t own_slots,
                                       struct tnd_mirrors *mirrors,
                                       struct tnd_residency **io_residency,
                                       struct tandem_error *error)
{
    if (*io_residency == NULL) {
        *io_residency = tnd_calloc(1, sizeof(**io_residency));
        if (*io_residency == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "plan", 0, 0, "plan: out of memory");
        }
    }
    struct tnd_residency *residency = *io_residency;
    struct tnd_leaf **order = NULL;
    struct tnd_extent nothing = {TND_SPACE_WORKSPACE, -1, 0, 0};
    const struct tensors tensors = {graph, items != NULL ? items->made : NULL,
                                    graph->n_nodes + (items != NULL ? items->n_made : 0)};
    residency->mirrors = mirrors;
    residency->n_nodes = tensors.n;
    residency->n_regions = tensors.n;
    residency->n_leaves = 0;
    name_sides(residency, own_slots | (mirrors != NULL ? tnd_mirrors_state_slots(mirrors) : 0));
    TND_TRY(reserve(residency, (size_t)tensors.n, count_mentions(&tensors), &order, error));
    plan_results(residency, &tensors);
    find_leaves(residency, &tensors);
    join_leaves(residency, graph, order);
    begin_leaves(residency);
    if (is_known_otherwise(residency)) {
        tnd_residency_release(residency, true);
        return tnd_error_set(error, TANDEM_E_BUSY, "plan", 0, 0,
                             "plan: a device keeps bytes of a leaf for another tensor");
    }
    begin_region(residency, &residency->regions[residency->n_regions], nothing, NULL);
    residency->regions[residency->n_regions].kind = TND_REGION_RESULT;
    return TANDEM_OK;
}

/* After a failure nothing on a device counts as valid, except when it has a debt: then nothing has
 * run, and the owner has no stale bytes. */
static void release_copy(const struct tnd_residency *residency, const struct tnd_region *region,
                         int side, bool is_success)
{
    struct tnd_copy *copy = tnd_residency_copy(residency, region, side);
    bool is_owing = copy->debt.begin < copy->debt.end;
    struct tnd_span none = {0, 0};
    struct tnd_span stale = is_success ? copy->stale
                            : is_owing ? none
                                       : (struct tnd_span){0, region->extent.bytes};
    struct tnd_span debt = !is_success             ? copy->debt
                           : side == region->owner ? tnd_residency_copy(residency, region, 0)->stale
                                                   : none;
    tnd_mirrors_release(residency->mirrors, copy->mirror, stale, debt);
    copy->mirror = NULL;
}

void tnd_residency_release(struct tnd_residency *residency, bool is_success)
{
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        for (int side = 1; side < residency->n_sides; side++) {
            const struct tnd_region *region = &residency->regions[i];
            if (tnd_residency_copy(residency, region, side)->mirror != NULL) {
                release_copy(residency, region, side, is_success);
            }
        }
    }
}

void tnd_residency_free(struct tnd_residency *residency)
{
    if (residency != NULL) {
        tnd_free(residency->memory);
        tnd_free(residency);
    }
}
