/* SPDX-License-Identifier: MIT
 * Finding concurrent nodes. Called for every node of every token: the common case, a node that the
 * next one depends on, returns after one comparison. */
#include "sched/concurrent.h"

#include "base/tnd_assert.h"
#include "sched/conflict.h"

/* Whether every stage runs on workers, in host memory, and does not use the other workers. Items of
 * a split product are excluded: they share weights and memory. */
static bool may_stand_beside(const struct tnd_item *item, const struct tnd_registry *registry)
{
    if (item->tensor->op == TANDEM_OP_CUSTOM || item->role != TND_ITEM_WHOLE) {
        return false;
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tandem_task_config *config = &item->choice->stage[s];
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

int tnd_concurrent_end(const struct tnd_items *items, const struct tnd_registry *registry,
                       int first)
{
    const struct tnd_item *list = items->list;
    const struct tandem_plan_node *choice = list[first].choice;
    int end = first + 1;
    TND_ASSERT(first >= 0 && first < items->n);
    if (list[first].into >= 0 || list[first].from >= 0 ||
        !choice->stage[TANDEM_STAGE_COMPUTE].parallel || choice->n_threads < 2 ||
        !may_stand_beside(&list[first], registry)) {
        return end;
    }
    for (; end < items->n && end - first < TND_CONCURRENT_NODES; end++) {
        if (list[end].into >= 0) {
            continue;
        }
        /* Workers of a group meet in one barrier, so all of its steps have the same number of
         * workers. */
        int n_threads = list[end].choice->n_threads;
        if (list[end].from >= 0 || (n_threads != choice->n_threads && n_threads != 1)) {
            break;
        }
        for (int i = first; i < end; i++) {
            if (list[i].into < 0 && tnd_nodes_conflict(list[i].tensor, list[end].tensor)) {
                return end;
            }
        }
        if (!may_stand_beside(&list[end], registry)) {
            break;
        }
    }
    return end;
}

bool tnd_concurrent_shares_init(const struct tnd_registry *registry, const struct tnd_item *a,
                                const struct tnd_item *b)
{
    const struct tandem_task_config *init = &a->choice->stage[TANDEM_STAGE_INIT];
    const struct tandem_task_config *other = &b->choice->stage[TANDEM_STAGE_INIT];
    return init->backend != TANDEM_BACKEND_NONE && init->backend == other->backend &&
           init->task == other->task &&
           tnd_backend_is_same_work(tnd_registry_backend(registry, init->backend), a->tensor,
                                    b->tensor, (enum tandem_task)init->task);
}
