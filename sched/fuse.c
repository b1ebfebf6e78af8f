/* SPDX-License-Identifier: MIT
 * Finding what to fuse: one walk over the nodes, each of which may join the fused nodes of one of
 * its operands. Runs for every token: nodes that cannot be fused are left after a look at their
 * operation. Why memory is checked: the memory plan assumes the order of the graph, and may have
 * given bytes that an earlier node still needs to a later one. Fused nodes keep the order of the
 * graph only within each row. */
#include "sched/fuse.h"

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "sched/conflict.h"

struct fusion {
    int items[TANDEM_FUSED_NODES];
    const struct tandem_tensor *nodes[TANDEM_FUSED_NODES];
    int n;
};

/* Whether the node has one stage, which runs it whole on workers. */
static bool runs_whole(const struct tnd_registry *registry, const struct tnd_item *item)
{
    const struct tandem_plan_node *choice = item->choice;
    const struct tandem_task_config *compute = &choice->stage[TANDEM_STAGE_COMPUTE];
    const tandem_backend *backend = tnd_registry_backend(registry, compute->backend);
    return item->role == TND_ITEM_WHOLE &&
           choice->stage[TANDEM_STAGE_INIT].backend == TANDEM_BACKEND_NONE &&
           choice->stage[TANDEM_STAGE_FINALIZE].backend == TANDEM_BACKEND_NONE &&
           tnd_task_is(compute->task, TND_TASK_WHOLE) && !compute->wait && !compute->own_threads &&
           backend != NULL && !tnd_backend_is_async(backend);
}

/* Whether row i of both has the same address, for all i. */
static bool has_same_rows(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    bool same = a->type == b->type && a->root->plan_offset == b->root->plan_offset &&
                (a->root->plan_offset >= 0 || a->root->data == b->root->data) &&
                a->root_offset == b->root_offset;
    for (int i = 0; i < TANDEM_MAX_DIMS && same; i++) {
        same = a->ne[i] == b->ne[i] && (a->nb[i] == b->nb[i] || a->ne[i] == 1);
    }
    return same;
}

static bool has_same_shape(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    bool same = true;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        same = same && a->ne[i] == b->ne[i];
    }
    return same;
}

static bool is_kept(const struct fusion *fusion, int i)
{
    return i == fusion->n - 1 || !tnd_is_read_once(fusion->nodes[i]);
}

/* Whether the operands of member `reader` are still intact when it reads them, given that members
 * from `first` on write to the rows of `written`. */
static bool reads_in_time(const struct fusion *fusion, int reader,
                          const struct tandem_tensor *written, int first)
{
    const struct tandem_tensor *node = fusion->nodes[reader];
    for (int i = 0; i < node->n_src; i++) {
        const struct tandem_tensor *read = node->src[i];
        bool is_link = reader > 0 && read == fusion->nodes[reader - 1];
        if (!is_link && tnd_tensors_overlap(read, written) &&
            !(reader <= first && has_same_rows(read, written))) {
            return false;
        }
    }
    return true;
}

/* Whether the members may run row by row. Results that only the next member reads are written to
 * the rows of the last member's result. */
static bool is_safe(const struct fusion *fusion)
{
    const struct tandem_tensor *last = fusion->nodes[fusion->n - 1];
    int first_of_last = 0; /* first member that writes to the rows of `last` */
    while (is_kept(fusion, first_of_last) && first_of_last < fusion->n - 1) {
        first_of_last++;
    }
    for (int w = 0; w < fusion->n; w++) {
        const struct tandem_tensor *written = fusion->nodes[w];
        if (!is_kept(fusion, w)) {
            continue;
        }
        for (int other = w + 1; other < fusion->n; other++) {
            const struct tandem_tensor *later = fusion->nodes[other];
            if (is_kept(fusion, other) && tnd_tensors_overlap(written, later)) {
                return false;
            }
        }
        for (int r = 0; r < fusion->n; r++) {
            if (!reads_in_time(fusion, r, written, written == last ? first_of_last : w)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the item runs asynchronously on a device. */
static bool is_on_device(const struct tnd_registry *registry, const struct tnd_item *item)
{
    const tandem_backend *backend =
        tnd_registry_backend(registry, item->choice->stage[TANDEM_STAGE_COMPUTE].backend);
    return backend != NULL && tnd_backend_is_async(backend);
}

/* Whether no item in between accesses memory of the members before it, which now run later. In a
 * plan with a schedule there must be no device item in between: the transfer of a member's operand
 * would wait for it. */
static bool can_wait(const struct tnd_items *items, const struct tnd_registry *registry,
                     const struct fusion *fusion)
{
    int last = fusion->items[fusion->n - 1];
    for (int m = 0; m < fusion->n - 1; m++) {
        for (int i = fusion->items[m] + 1, next = m + 1; i < last; i++) {
            if (i == fusion->items[next]) {
                next++;
            } else if (tnd_nodes_conflict(fusion->nodes[m], items->list[i].tensor) ||
                       (items->positions != NULL && is_on_device(registry, &items->list[i]))) {
                return false;
            }
        }
    }
    return true;
}

static bool may_join(const struct tnd_items *items, const struct tnd_registry *registry, int from,
                     int i)
{
    struct fusion fusion;
    const struct tnd_item *list = items->list;
    int slot = list[i].choice->stage[TANDEM_STAGE_COMPUTE].backend;
    int length = 1;
    for (int j = from; list[j].from >= 0; j = list[j].from) {
        length++;
    }
    if (list[from].into >= 0 || length >= TANDEM_FUSED_NODES ||
        list[from].choice->stage[TANDEM_STAGE_COMPUTE].backend != slot ||
        !runs_whole(registry, &list[from])) {
        return false;
    }
    fusion.n = tnd_fused_items(items, from, fusion.items) + 1;
    fusion.items[fusion.n - 1] = i;
    TND_ASSERT(fusion.n <= TANDEM_FUSED_NODES && from < i);
    if (i - fusion.items[0] > TND_FUSE_REACH) {
        return false;
    }
    for (int j = 0; j < fusion.n; j++) {
        fusion.nodes[j] = list[fusion.items[j]].tensor;
    }
    return is_safe(&fusion) && can_wait(items, registry, &fusion) &&
           tnd_backend_fuses(tnd_registry_backend(registry, slot), fusion.nodes, fusion.n);
}

/* The operand of item i whose fused nodes it joins; -1: none. */
static int find_from(const struct tandem_graph *graph, const struct tnd_registry *registry,
                     const struct tnd_items *items, int i)
{
    const struct tandem_tensor *node = items->list[i].tensor;
    if (!tnd_op_is_row_wise(node->op) || !runs_whole(registry, &items->list[i])) {
        return -1;
    }
    for (int s = 0; s < node->n_src; s++) {
        const struct tandem_tensor *operand = node->src[s];
        if (!tnd_graph_computes(graph, operand) || operand->root != operand ||
            !tnd_op_is_row_wise(operand->op) || !has_same_shape(operand, node)) {
            continue;
        }
        int from = tnd_item_position(items, operand->index);
        if (items->list[from].tensor == operand && may_join(items, registry, from, i)) {
            return from;
        }
    }
    return -1;
}

void tnd_fuse(const struct tandem_graph *graph, const struct tnd_registry *registry,
              struct tnd_items *items)
{
    for (int i = 0; i < items->n; i++) {
        int from = find_from(graph, registry, items, i);
        items->list[i].from = from;
        if (from >= 0) {
            items->list[from].into = i;
        }
    }
}

int tnd_fused_items(const struct tnd_items *items, int last, int *out_items)
{
    int n = 1;
    for (int i = items->list[last].from; i >= 0; i = items->list[i].from) {
        n++;
    }
    TND_ASSERT(n <= TANDEM_FUSED_NODES);
    for (int i = last, place = n; i >= 0; i = items->list[i].from) {
        out_items[--place] = i;
    }
    return n;
}

bool tnd_is_read_once(const struct tandem_tensor *node)
{
    return node->n_readers == 1 && (node->flags & TND_TENSOR_OUTPUT) == 0;
}
