/* SPDX-License-Identifier: MIT
 * Finding concurrent nodes. Asked for every node of every token: the common case, a node whose
 * neighbour needs it, is left after one comparison. */
#include "sched/concurrent.h"

#include "base/tnd_assert.h"
#include "sched/conflict.h"

/* Whether every stage runs on workers, in host memory, and leaves the other workers alone. What
 * belongs to a split product stands alone: its pieces share weights and memory in ways of their
 * own. */
static bool may_stand_beside(const struct tandem_graph *graph, const struct tandem_plan *plan,
                             const struct tnd_registry *registry, int i)
{
    const struct tandem_plan_node *choice = &plan->nodes[i];
    if (graph->nodes[i]->op == TANDEM_OP_CUSTOM ||
        (plan->items != NULL && plan->items[i].role != TND_ITEM_WHOLE)) {
        return false;
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tandem_task_config *config = &choice->stage[s];
        if (config->backend == TANDEM_BACKEND_NONE) {
            continue;
        }
        const tandem_backend *backend = tnd_registry_backend(registry, config->backend);
        if (backend == NULL || tnd_backend_is_async(backend) || config->wait ||
            config->own_threads) {
            return false;
        }
    }
    return true;
}

int tnd_concurrent_end(const struct tandem_graph *graph, const struct tandem_plan *plan,
                       const struct tnd_registry *registry, const struct tnd_fused *fused,
                       int first)
{
    const struct tandem_plan_node *choice = &plan->nodes[first];
    int end = first + 1;
    TND_ASSERT(first >= 0 && first < graph->n_nodes);
    if (fused[first].into >= 0 || fused[first].from >= 0 ||
        !choice->stage[TANDEM_STAGE_COMPUTE].parallel || choice->n_threads < 2 ||
        !may_stand_beside(graph, plan, registry, first)) {
        return end;
    }
    for (; end < graph->n_nodes && end - first < TND_CONCURRENT_NODES; end++) {
        if (fused[end].into >= 0) {
            continue;
        }
        /* Workers of a group meet in one barrier, so they are equally many in all of its steps. */
        int n_threads = plan->nodes[end].n_threads;
        if (fused[end].from >= 0 || (n_threads != choice->n_threads && n_threads != 1)) {
            break;
        }
        for (int i = first; i < end; i++) {
            if (fused[i].into < 0 && tnd_nodes_conflict(graph->nodes[i], graph->nodes[end])) {
                return end;
            }
        }
        if (!may_stand_beside(graph, plan, registry, end)) {
            break;
        }
    }
    return end;
}

bool tnd_concurrent_shares_init(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                const struct tnd_registry *registry, int a, int b)
{
    const struct tandem_task_config *init = &plan->nodes[a].stage[TANDEM_STAGE_INIT];
    const struct tandem_task_config *other = &plan->nodes[b].stage[TANDEM_STAGE_INIT];
    return init->backend != TANDEM_BACKEND_NONE && init->backend == other->backend &&
           init->task == other->task &&
           tnd_backend_is_same_work(tnd_registry_backend(registry, init->backend), graph->nodes[a],
                                    graph->nodes[b], (enum tandem_task)init->task);
}
