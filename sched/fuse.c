/* SPDX-License-Identifier: MIT
 * Finding what to fuse: one walk over the nodes, each of which may join the fused nodes of one of
 * its operands. Runs for every token: what cannot be fused is left at the first look at its
 * operation. Why memory matters: the memory plan has given bytes to later nodes that earlier ones
 * need, in the order of the graph. Fused nodes keep that order for each row alone. */
#include "sched/fuse.h"

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "sched/conflict.h"
#include "sched/plan.h"

struct fusion {
    int nodes[TANDEM_FUSED_NODES];
    int n;
};

/* Whether the node's one stage runs it whole on workers. */
static bool runs_whole(const struct tandem_plan *plan, const struct tnd_registry *registry, int i)
{
    const struct tandem_plan_node *choice = &plan->nodes[i];
    const struct tandem_task_config *compute = &choice->stage[TANDEM_STAGE_COMPUTE];
    const tandem_backend *backend = tnd_registry_backend(registry, compute->backend);
    bool is_whole = plan->items == NULL || plan->items[i].role == TND_ITEM_WHOLE;
    return is_whole && choice->stage[TANDEM_STAGE_INIT].backend == TANDEM_BACKEND_NONE &&
           choice->stage[TANDEM_STAGE_FINALIZE].backend == TANDEM_BACKEND_NONE &&
           tnd_task_is(compute->task, TND_TASK_WHOLE) && !compute->wait && !compute->own_threads &&
           backend != NULL && !tnd_backend_is_async(backend);
}

/* Whether row i of both lies in the same place, for all i. */
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

static bool is_kept(const struct tandem_graph *graph, const struct fusion *fusion, int i)
{
    return i == fusion->n - 1 || !tnd_is_read_once(graph->nodes[fusion->nodes[i]]);
}

/* Whether what member `reader` reads is there still, when the rows of `written` are written from
 * member `first` on. */
static bool reads_in_time(const struct tandem_graph *graph, const struct fusion *fusion, int reader,
                          const struct tandem_tensor *written, int first)
{
    const struct tandem_tensor *node = graph->nodes[fusion->nodes[reader]];
    for (int i = 0; i < node->n_src; i++) {
        const struct tandem_tensor *read = node->src[i];
        bool is_link = reader > 0 && read == graph->nodes[fusion->nodes[reader - 1]];
        if (!is_link && tnd_tensors_overlap(read, written) &&
            !(reader <= first && has_same_rows(read, written))) {
            return false;
        }
    }
    return true;
}

/* Whether the members may run row by row. Results that only the next member reads are written to
 * the rows of the last one's result. */
static bool is_safe(const struct tandem_graph *graph, const struct fusion *fusion)
{
    const struct tandem_tensor *last = graph->nodes[fusion->nodes[fusion->n - 1]];
    int first_of_last = 0; /* member that writes to the rows of `last` first */
    while (is_kept(graph, fusion, first_of_last) && first_of_last < fusion->n - 1) {
        first_of_last++;
    }
    for (int w = 0; w < fusion->n; w++) {
        const struct tandem_tensor *written = graph->nodes[fusion->nodes[w]];
        if (!is_kept(graph, fusion, w)) {
            continue;
        }
        for (int other = w + 1; other < fusion->n; other++) {
            const struct tandem_tensor *later = graph->nodes[fusion->nodes[other]];
            if (is_kept(graph, fusion, other) && tnd_tensors_overlap(written, later)) {
                return false;
            }
        }
        for (int r = 0; r < fusion->n; r++) {
            if (!reads_in_time(graph, fusion, r, written, written == last ? first_of_last : w)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether a device goes on by itself with the node. */
static bool is_on_device(const struct tandem_plan *plan, const struct tnd_registry *registry, int i)
{
    const tandem_backend *backend =
        tnd_registry_backend(registry, plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend);
    return backend != NULL && tnd_backend_is_async(backend);
}

/* Whether no node in between touches what members before it do, which now run later. In a plan with
 * a schedule none is a device's: what a member fetches would wait for it. */
static bool can_wait(const struct tandem_graph *graph, const struct tandem_plan *plan,
                     const struct tnd_registry *registry, const struct fusion *fusion)
{
    int last = fusion->nodes[fusion->n - 1];
    for (int m = 0; m < fusion->n - 1; m++) {
        for (int i = fusion->nodes[m] + 1, next = m + 1; i < last; i++) {
            if (i == fusion->nodes[next]) {
                next++;
            } else if (tnd_nodes_conflict(graph->nodes[fusion->nodes[m]], graph->nodes[i]) ||
                       (plan->items != NULL && is_on_device(plan, registry, i))) {
                return false;
            }
        }
    }
    return true;
}

static bool may_join(const struct tandem_graph *graph, const struct tandem_plan *plan,
                     const struct tnd_registry *registry, const struct tnd_fused *fused, int from,
                     int i)
{
    const struct tandem_tensor *nodes[TANDEM_FUSED_NODES];
    struct fusion fusion;
    int slot = plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend;
    int length = 1;
    for (int j = from; fused[j].from >= 0; j = fused[j].from) {
        length++;
    }
    if (fused[from].into >= 0 || length >= TANDEM_FUSED_NODES ||
        plan->nodes[from].stage[TANDEM_STAGE_COMPUTE].backend != slot ||
        !runs_whole(plan, registry, from)) {
        return false;
    }
    fusion.n = tnd_fused_nodes(fused, from, fusion.nodes) + 1;
    fusion.nodes[fusion.n - 1] = i;
    TND_ASSERT(fusion.n <= TANDEM_FUSED_NODES && from < i);
    if (i - fusion.nodes[0] > TND_FUSE_REACH) {
        return false;
    }
    for (int j = 0; j < fusion.n; j++) {
        nodes[j] = graph->nodes[fusion.nodes[j]];
    }
    return is_safe(graph, &fusion) && can_wait(graph, plan, registry, &fusion) &&
           tnd_backend_fuses(tnd_registry_backend(registry, slot), nodes, fusion.n);
}

/* The operand of node i whose fused nodes it joins; -1: none. */
static int find_from(const struct tandem_graph *graph, const struct tandem_plan *plan,
                     const struct tnd_registry *registry, const struct tnd_fused *fused, int i)
{
    const struct tandem_tensor *node = graph->nodes[i];
    if (!tnd_op_is_row_wise(node->op) || !runs_whole(plan, registry, i)) {
        return -1;
    }
    for (int s = 0; s < node->n_src; s++) {
        const struct tandem_tensor *operand = node->src[s];
        if (!tnd_graph_computes(graph, operand) || operand->root != operand ||
            !tnd_op_is_row_wise(operand->op) || !has_same_shape(operand, node)) {
            continue;
        }
        int from = tnd_graph_position(graph, operand->index);
        if (graph->nodes[from] == operand && may_join(graph, plan, registry, fused, from, i)) {
            return from;
        }
    }
    return -1;
}

void tnd_fuse(const struct tandem_graph *graph, const struct tandem_plan *plan,
              const struct tnd_registry *registry, struct tnd_fused *out)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        out[i].into = -1;
        out[i].from = find_from(graph, plan, registry, out, i);
        if (out[i].from >= 0) {
            out[out[i].from].into = i;
        }
    }
}

int tnd_fused_nodes(const struct tnd_fused *fused, int last, int *out_nodes)
{
    int n = 1;
    for (int i = fused[last].from; i >= 0; i = fused[i].from) {
        n++;
    }
    TND_ASSERT(n <= TANDEM_FUSED_NODES);
    for (int i = last, place = n; i >= 0; i = fused[i].from) {
        out_nodes[--place] = i;
    }
    return n;
}

bool tnd_is_read_once(const struct tandem_tensor *node)
{
    return node->n_readers == 1 && (node->flags & TND_TENSOR_OUTPUT) == 0;
}
