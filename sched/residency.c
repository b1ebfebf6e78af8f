/* SPDX-License-Identifier: MIT
 * Which transfers must come before work runs. Start at tnd_residency_work; residency_regions.c
 * lists the regions. */
#include "sched/residency.h"

#include "backends/task.h"
#include "base/tnd_assert.h"

enum { HOST = 0 };

static struct tnd_span hull(struct tnd_span a, struct tnd_span b)
{
    if (a.begin >= a.end) {
        return b;
    }
    if (b.begin >= b.end) {
        return a;
    }
    return (struct tnd_span){a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

static struct tnd_span common(struct tnd_span a, struct tnd_span b)
{
    return (struct tnd_span){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

static bool is_empty(struct tnd_span span)
{
    return span.begin >= span.end;
}

static bool is_inside(struct tnd_span inner, struct tnd_span outer)
{
    return is_empty(inner) || (inner.begin >= outer.begin && inner.end <= outer.end);
}

struct tnd_copy *tnd_residency_copy(const struct tnd_residency *residency,
                                    const struct tnd_region *region, int side)
{
    TND_ASSERT(side >= 0 && side < residency->n_sides);
    return &residency->copies[(region - residency->regions) * residency->n_sides + side];
}

static struct tnd_span *stale_of(const struct tnd_residency *residency,
                                 const struct tnd_region *region, int side)
{
    return &tnd_residency_copy(residency, region, side)->stale;
}

/* ---- one region ---- */

struct moves {
    struct tnd_move *list;
    int n;
};

static void add_move(const struct tnd_residency *residency, struct moves *moves,
                     const struct tnd_region *region, bool is_download, int side,
                     struct tnd_span span)
{
    TND_ASSERT(moves->n < TND_MAX_MOVES && span.begin < span.end);
    TND_ASSERT(span.end <= region->extent.bytes);
    struct tnd_move *move = &moves->list[moves->n++];
    move->is_download = is_download;
    move->slot = residency->slot_of[side];
    move->writer = region->writer;
    move->extent.space = region->extent.space;
    move->extent.region = (int32_t)(region - residency->regions);
    move->extent.begin = region->extent.begin + span.begin;
    move->extent.bytes = span.end - span.begin;
}

/* Removes the needed bytes from the stale span and returns them: extended so that what stays stale
 * is one span. */
static struct tnd_span take_needed(struct tnd_span *io_stale, struct tnd_span needed)
{
    struct tnd_span stale = *io_stale;
    struct tnd_span taken = common(stale, needed);
    if (taken.begin == stale.begin) {
        stale.begin = taken.end;
    } else if (taken.end == stale.end) {
        stale.end = taken.begin;
    } else {
        taken.begin = stale.begin;
        stale.begin = taken.end;
    }
    *io_stale = stale;
    return taken;
}

/* Makes bytes `needed` valid on `side`; a transfer between devices goes through the host. */
static void bring(const struct tnd_residency *residency, struct tnd_region *region, int side,
                  struct tnd_span needed, struct moves *moves)
{
    struct tnd_span *stale = stale_of(residency, region, side);
    region->sides |= UINT32_C(1) << side;
    if (region->kind == TND_REGION_CONSTANT || is_empty(common(*stale, needed))) {
        return;
    }
    TND_ASSERT(side != region->owner);
    struct tnd_span moved = take_needed(stale, needed);
    if (side == HOST) {
        add_move(residency, moves, region, true, region->owner, moved);
        return;
    }
    struct tnd_span *on_host = stale_of(residency, region, HOST);
    if (!is_empty(common(*on_host, moved))) {
        struct tnd_span first = take_needed(on_host, moved);
        add_move(residency, moves, region, true, region->owner, first);
    }
    add_move(residency, moves, region, false, side, moved);
}

/* `is_dense`: the task writes all bytes of the span. */
static void bring_for_writing(struct tnd_residency *residency, struct tnd_region *region, int side,
                              struct tnd_span span, bool is_dense, struct moves *moves)
{
    struct tnd_span *stale = stale_of(residency, region, side);
    region->sides |= UINT32_C(1) << side;
    if (!is_dense || !is_inside(*stale, span)) {
        bring(residency, region, side, *stale, moves);
    }
}

static void note_written(struct tnd_residency *residency, struct tnd_region *region, int side,
                         struct tnd_span span, int writer)
{
    for (int i = 0; i < residency->n_sides; i++) {
        struct tnd_span *stale = stale_of(residency, region, i);
        *stale = i == side ? (struct tnd_span){0, 0} : hull(*stale, span);
    }
    region->owner = (uint8_t)side;
    region->writer = writer;
}

/* ---- tensors ---- */

struct tnd_region *tnd_residency_region(const struct tnd_residency *residency,
                                        const struct tandem_tensor *node, int i)
{
    TND_ASSERT(node->index >= 0 && node->index < residency->n_nodes && i < node->n_src);
    int32_t region = residency->touched[residency->first_touched[node->index] + 1 + i];
    TND_ASSERT(region >= 0 && region < residency->n_regions);
    return &residency->regions[region];
}

struct tnd_span tnd_residency_span(const struct tnd_region *region,
                                   const struct tandem_tensor *tensor)
{
    size_t begin = tensor->root_offset;
    if (region->extent.space == TND_SPACE_MEMORY) {
        begin += (uintptr_t)tensor->root->data - region->extent.begin;
    }
    return (struct tnd_span){begin, begin + tandem_tensor_bytes(tensor)};
}

static void read_operand(const struct tnd_residency *residency, const struct tandem_tensor *node,
                         int i, int side, struct moves *moves)
{
    if (node->src[i] != NULL) {
        struct tnd_region *region = tnd_residency_region(residency, node, i);
        bring(residency, region, side, tnd_residency_span(region, node->src[i]), moves);
    }
}

bool tnd_residency_is_valid(const struct tnd_residency *residency, const struct tandem_tensor *node,
                            int i, int slot)
{
    const struct tnd_region *region = tnd_residency_region(residency, node, i);
    struct tnd_span span = tnd_residency_span(region, i < 0 ? node : node->src[i]);
    return is_empty(common(*stale_of(residency, region, residency->side_of[slot]), span));
}

/* ---- works ---- */

static bool reads_operand(const struct tandem_tensor *node, uint32_t task, int i)
{
    if (i > 0) { /* cpy only writes its second operand */
        return tnd_task_is(task, TND_TASK_READS_X) && node->op != TANDEM_OP_CPY;
    }
    return tnd_task_is(task, TND_TASK_READS_W) ||
           (tnd_task_is(task, TND_TASK_USES_LEFT_W) && node->src[0]->type == TANDEM_TYPE_F32);
}

/* Bytes of dequantised weights, the only part of a workspace that other backends read. */
static size_t dequantized_bytes(const struct tandem_tensor *node, size_t workspace_bytes)
{
    size_t bytes = (size_t)tandem_tensor_elements(node->src[0]) * sizeof(float);
    return bytes < workspace_bytes ? bytes : workspace_bytes;
}

static struct tnd_region *workspace_of(struct tnd_residency *residency)
{
    return &residency->regions[residency->n_regions];
}

static void write_result(struct tnd_residency *residency, const struct tandem_tensor *node,
                         int side, struct moves *moves)
{
    struct tnd_region *region = tnd_residency_region(residency, node, -1);
    struct tnd_span span = tnd_residency_span(region, node);
    bool is_dense = tandem_tensor_is_contiguous(node);
    bring_for_writing(residency, region, side, span, is_dense, moves);
    note_written(residency, region, side, span, node->index);
}

static void read_operands(const struct tnd_residency *residency, const struct tandem_tensor *node,
                          uint32_t task, int side, struct moves *moves)
{
    for (int i = 0; i < node->n_src; i++) {
        bool in_flight = i == 0 && tnd_task_is(task, TND_TASK_STREAMS_W) &&
                         tnd_residency_region(residency, node, 0)->kind == TND_REGION_CONSTANT;
        if (reads_operand(node, task, i) && !in_flight) {
            read_operand(residency, node, i, side, moves);
        }
    }
}

bool tnd_residency_fetch_result(struct tnd_residency *residency, const struct tandem_tensor *node,
                                struct tnd_move *out)
{
    struct moves moves = {out, 0};
    struct tnd_region *region = tnd_residency_region(residency, node, -1);
    if (region->kind == TND_REGION_RESULT) {
        bring(residency, region, HOST, tnd_residency_span(region, node), &moves);
    }
    return moves.n > 0;
}

int tnd_residency_work(struct tnd_residency *residency, const struct tandem_tensor *node,
                       uint32_t task, int slot, size_t workspace_offset, size_t workspace_bytes,
                       struct tnd_move list[TND_MAX_MOVES])
{
    struct moves moves = {list, 0};
    int side = residency->side_of[slot];
    struct tnd_region *workspace = workspace_of(residency);
    read_operands(residency, node, task, side, &moves);
    if (tnd_task_is(task, TND_TASK_LEAVES_W)) {
        struct tnd_span whole = {0, dequantized_bytes(node, workspace_bytes)};
        workspace->extent =
            (struct tnd_extent){TND_SPACE_WORKSPACE, -1, workspace_offset, workspace_bytes};
        note_written(residency, workspace, side, whole, node->index);
    } else if (tnd_task_is(task, TND_TASK_USES_LEFT_W)) {
        struct tnd_span all = {0, workspace_bytes};
        bring(residency, workspace, side, all, &moves);
    }
    if (tnd_task_is(task, TND_TASK_WRITES_RESULT)) {
        write_result(residency, node, side, &moves);
    }
    return moves.n;
}

void tnd_residency_begin_node(struct tnd_residency *residency)
{
    struct tnd_region *workspace = workspace_of(residency);
    for (int i = 0; i < residency->n_sides; i++) {
        *stale_of(residency, workspace, i) = (struct tnd_span){0, 0};
    }
    workspace->owner = HOST;
}

/* Whether the newest bytes may stay on the owner as a debt. */
static bool is_owed(const struct tnd_residency *residency, const struct tnd_region *region)
{
    const struct tnd_span *stale = stale_of(residency, region, HOST);
    return region->kind == TND_REGION_STATE && !is_empty(*stale) &&
           tnd_may_owe(region->root, stale->end - stale->begin,
                       tnd_residency_copy(residency, region, region->owner)->n_owed);
}

bool tnd_residency_next_output(struct tnd_residency *residency, int *cursor, struct tnd_move *out)
{
    struct moves moves = {out, 0};
    while (*cursor < residency->n_regions && moves.n == 0) {
        struct tnd_region *region = &residency->regions[(*cursor)++];
        if (region->extent.space == TND_SPACE_MEMORY && region->root != NULL &&
            !is_owed(residency, region)) {
            struct tnd_span *stale = stale_of(residency, region, HOST);
            bring(residency, region, HOST, *stale, &moves);
        }
    }
    return moves.n > 0;
}
