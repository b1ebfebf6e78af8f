/* SPDX-License-Identifier: MIT
 * The regions of a graph: one a planned result, and those of leaves and outputs, found by their
 * roots and joined where they overlap. */
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "sched/residency.h"

/* ---- roots ---- */

static size_t hash_of(const struct tandem_tensor *root)
{
    uint64_t bits = (uint64_t)(uintptr_t)root * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(bits >> 32);
}

/* The slot of the root, or the free one where it belongs. */
static size_t find_hashed(const struct tnd_residency *residency, const struct tandem_tensor *root)
{
    size_t i = hash_of(root) & (residency->n_hashed - 1);
    while (residency->hashed[i] >= 0 && residency->settled[residency->hashed[i]].root != root) {
        i = (i + 1) & (residency->n_hashed - 1);
    }
    return i;
}

const struct tnd_settled *tnd_residency_find(const struct tnd_residency *residency,
                                             const struct tandem_tensor *root)
{
    return &residency->settled[residency->hashed[find_hashed(residency, root)]];
}

static void add_settled(struct tnd_residency *residency, const struct tandem_tensor *root,
                        bool is_written)
{
    size_t i = find_hashed(residency, root);
    if (residency->hashed[i] < 0) {
        residency->hashed[i] = residency->n_settled;
        residency->settled[residency->n_settled++] = (struct tnd_settled){root, -1, false};
    }
    struct tnd_settled *settled = &residency->settled[residency->hashed[i]];
    settled->is_written = settled->is_written || is_written;
}

/* Roots of leaves and outputs that nodes touch, one mention each. */
static size_t count_mentions(const struct tandem_graph *graph)
{
    size_t n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        n += node->root->plan_offset < 0;
        for (int j = 0; j < node->n_src; j++) {
            n += node->src[j] != NULL && node->src[j]->root->plan_offset < 0;
        }
    }
    return n;
}

static void find_settled(struct tnd_residency *residency, const struct tandem_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        if (node->root->plan_offset < 0) {
            add_settled(residency, node->root, true);
        }
        for (int j = 0; j < node->n_src; j++) {
            if (node->src[j] != NULL && node->src[j]->root->plan_offset < 0) {
                add_settled(residency, node->src[j]->root, false);
            }
        }
    }
}

/* ---- regions ---- */

static void begin_region(struct tnd_residency *residency, struct tnd_region *region,
                         struct tnd_extent extent, const struct tandem_tensor *root)
{
    region->extent = extent;
    region->root = root;
    region->kind = TND_REGION_RESULT;
    region->owner = 0;
    region->writer = -1;
    region->sides = 0;
    region->held = 0;
    for (int side = 0; side < residency->n_sides; side++) {
        *tnd_residency_stale(residency, region, side) = (struct tnd_span){0, 0};
    }
}

static void plan_results(struct tnd_residency *residency, const struct tandem_graph *graph)
{
    struct tnd_extent nothing = {TND_SPACE_INTERMEDIATES, 0, 0};
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        struct tnd_region *region = &residency->regions[i];
        bool is_planned = node->root == node && node->plan_offset >= 0;
        struct tnd_extent extent = {TND_SPACE_INTERMEDIATES, (size_t)node->plan_offset,
                                    is_planned ? tandem_tensor_bytes(node) : 0};
        begin_region(residency, region, is_planned ? extent : nothing, is_planned ? node : NULL);
    }
}

static enum tnd_region_kind kind_of(const struct tandem_graph *graph,
                                    const struct tnd_settled *settled)
{
    const struct tandem_tensor *root = settled->root;
    if (root->op != TANDEM_OP_NONE && root->graph == graph) {
        return TND_REGION_RESULT;
    }
    if ((root->flags & TND_TENSOR_STATE) != 0) {
        return TND_REGION_STATE;
    }
    bool is_constant = (root->flags & TND_TENSOR_CONSTANT) != 0 && !settled->is_written;
    return is_constant ? TND_REGION_CONSTANT : TND_REGION_INPUT;
}

static bool is_before(const struct tnd_residency *residency, int32_t a, int32_t b)
{
    return (uintptr_t)residency->settled[a].root->data <
           (uintptr_t)residency->settled[b].root->data;
}

static void sift_down(const struct tnd_residency *residency, int32_t *order, int top, int n)
{
    for (int child = 2 * top + 1; child < n; child = 2 * top + 1) {
        if (child + 1 < n && is_before(residency, order[child], order[child + 1])) {
            child++;
        }
        if (!is_before(residency, order[top], order[child])) {
            return;
        }
        int32_t swap = order[top];
        order[top] = order[child];
        order[child] = swap;
        top = child;
    }
}

/* By address. In place, and never slow: graphs may come from anywhere. */
static void sort(const struct tnd_residency *residency, int32_t *order, int n)
{
    bool is_sorted = true;
    for (int i = 1; i < n && is_sorted; i++) {
        is_sorted = !is_before(residency, order[i], order[i - 1]);
    }
    for (int i = n / 2; i-- > 0 && !is_sorted;) {
        sift_down(residency, order, i, n);
    }
    for (int end = n - 1; end > 0 && !is_sorted; end--) {
        int32_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        sift_down(residency, order, 0, end);
    }
}

/* Leaves that share bytes with others are moved together, and nothing of them stays. */
static void join_settled(struct tnd_residency *residency, const struct tandem_graph *graph,
                         int32_t *order)
{
    struct tnd_region *region = NULL;
    for (int i = 0; i < residency->n_settled; i++) {
        order[i] = i;
    }
    sort(residency, order, residency->n_settled);
    for (int i = 0; i < residency->n_settled; i++) {
        struct tnd_settled *settled = &residency->settled[order[i]];
        struct tnd_extent extent = {TND_SPACE_MEMORY, (uintptr_t)settled->root->data,
                                    tandem_tensor_bytes(settled->root)};
        if (region != NULL && extent.begin < region->extent.begin + region->extent.bytes) {
            size_t end = extent.begin + extent.bytes - region->extent.begin;
            region->extent.bytes = end > region->extent.bytes ? end : region->extent.bytes;
            region->kind = TND_REGION_INPUT;
        } else {
            region = &residency->regions[residency->n_regions++];
            begin_region(residency, region, extent, settled->root);
            region->kind = (uint8_t)kind_of(graph, settled);
        }
        settled->region = (int32_t)(region - residency->regions);
    }
}

/* What devices have at the begin: nothing of what is given, or some of a state. */
static void begin_settled(struct tnd_residency *residency)
{
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        struct tnd_region *region = &residency->regions[i];
        for (int side = 1; side < residency->n_sides; side++) {
            struct tnd_span *stale = tnd_residency_stale(residency, region, side);
            *stale = (struct tnd_span){0, region->extent.bytes};
            if (region->kind == TND_REGION_RESULT) {
                *stale = (struct tnd_span){0, 0};
            } else if (region->kind == TND_REGION_STATE && residency->mirrors != NULL &&
                       tnd_mirrors_hold_state(residency->mirrors, residency->slot_of[side],
                                              region->root, stale)) {
                region->held |= UINT32_C(1) << side;
            }
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

/* Room for `n` members at the end of *io_bytes; false when that does not fit into a size. */
static bool place(size_t n, size_t bytes, size_t *io_bytes, size_t *out_at)
{
    size_t all;
    return tnd_align_up(*io_bytes, TND_ALIGNMENT, out_at) && tnd_mul_size(n, bytes, &all) &&
           tnd_add_size(*out_at, all, io_bytes);
}

static enum tandem_status reserve(struct tnd_residency *residency, size_t n_nodes,
                                  size_t n_mentions, int32_t **out_order,
                                  struct tandem_error *error)
{
    size_t n_regions = n_nodes + n_mentions + 1;
    size_t n_hashed = 16;
    size_t bytes = 0;
    size_t regions, stale, settled, hashed, order;
    while (n_hashed < 2 * n_mentions) {
        n_hashed *= 2;
    }
    if (!place(n_regions, sizeof(struct tnd_region), &bytes, &regions) ||
        !place(n_regions * (size_t)residency->n_sides, sizeof(struct tnd_span), &bytes, &stale) ||
        !place(n_mentions, sizeof(struct tnd_settled), &bytes, &settled) ||
        !place(n_hashed, sizeof(int32_t), &bytes, &hashed) ||
        !place(n_mentions, sizeof(int32_t), &bytes, &order)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "plan", (int64_t)n_mentions, 0,
                             "plan: its leaves do not fit into the address space");
    }
    if (bytes > residency->memory_bytes) {
        tnd_free(residency->memory);
        residency->memory_bytes = 0;
        residency->memory = tnd_alloc(bytes + bytes / 2);
        if (residency->memory == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "plan", (int64_t)bytes, 0,
                                 "plan: out of memory for where %zu leaves are", n_mentions);
        }
        residency->memory_bytes = bytes + bytes / 2;
    }
    char *base = residency->memory;
    residency->regions = (struct tnd_region *)(void *)(base + regions);
    residency->stale = (struct tnd_span *)(void *)(base + stale);
    residency->settled = (struct tnd_settled *)(void *)(base + settled);
    residency->hashed = (int32_t *)(void *)(base + hashed);
    residency->n_hashed = n_hashed;
    memset(residency->hashed, 0xff, n_hashed * sizeof(int32_t)); /* -1 */
    *out_order = (int32_t *)(void *)(base + order);
    return TANDEM_OK;
}

enum tandem_status tnd_residency_renew(const struct tandem_graph *graph, uint32_t own_slots,
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
    int32_t *order = NULL;
    struct tnd_extent nothing = {TND_SPACE_WORKSPACE, 0, 0};
    residency->mirrors = mirrors;
    residency->n_nodes = graph->n_nodes;
    residency->n_regions = graph->n_nodes;
    residency->n_settled = 0;
    name_sides(residency, own_slots | (mirrors != NULL ? tnd_mirrors_state_slots(mirrors) : 0));
    TND_TRY(reserve(residency, (size_t)graph->n_nodes, count_mentions(graph), &order, error));
    plan_results(residency, graph);
    find_settled(residency, graph);
    join_settled(residency, graph, order);
    begin_settled(residency);
    begin_region(residency, &residency->regions[residency->n_regions], nothing, NULL);
    return TANDEM_OK;
}

void tnd_residency_release(struct tnd_residency *residency, bool is_success)
{
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        struct tnd_region *region = &residency->regions[i];
        for (int side = 1; side < residency->n_sides && region->held != 0; side++) {
            struct tnd_span whole = {0, region->extent.bytes};
            if ((region->held >> side & 1) != 0) {
                tnd_mirrors_release(
                    residency->mirrors, residency->slot_of[side], (void *)region->extent.begin,
                    is_success ? *tnd_residency_stale(residency, region, side) : whole);
            }
        }
        region->held = 0;
    }
}

void tnd_residency_free(struct tnd_residency *residency)
{
    if (residency != NULL) {
        tnd_free(residency->memory);
        tnd_free(residency);
    }
}
