/* SPDX-License-Identifier: MIT
 * Replacing choices that cannot run any more. */
#include "runtime/fallback.h"

#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "tune/profiles.h"
#include "tune/rule.h"

static bool is_stopped(const struct tnd_runtime_parts *parts, const tandem_tensor *node,
                       const struct tandem_plan_node *choice, uint32_t out)
{
    bool streams = tnd_task_is(choice->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W);
    for (int s = 0; s < TANDEM_STAGES; s++) {
        int slot = choice->stage[s].backend;
        if (slot < TND_MAX_SLOTS &&
            ((out >> slot & 1) != 0 || tnd_exec_is_refused(parts->exec, slot, node, streams))) {
            return true;
        }
    }
    return false;
}

static bool is_part_stopped(const struct tnd_runtime_parts *parts, const tandem_tensor *node,
                            const struct tandem_plan_part *part, uint32_t out)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        int slot = part->choice.stage[s].backend;
        if (slot < TND_MAX_SLOTS &&
            ((out >> slot & 1) != 0 || tnd_exec_is_part_refused(parts->exec, slot, node, part))) {
            return true;
        }
    }
    return false;
}

/* Whether a part of the node, or the node's own choice for the rest, cannot run. */
static bool is_split_stopped(const struct tnd_runtime_parts *parts, const tandem_tensor *node,
                             const struct tandem_plan *plan, int i, uint32_t out)
{
    const struct tandem_plan_part *first;
    struct tandem_plan_part own;
    int n = tnd_plan_parts_of(plan, i, &first);
    if (n == 0 || node->src[0] == NULL) {
        return false;
    }
    for (int p = 0; p < n; p++) {
        if (is_part_stopped(parts, node, &first[p], out)) {
            return true;
        }
    }
    int64_t all = node->src[0]->ne[first[0].split == TANDEM_SPLIT_ROWS ? 1 : 0];
    return tnd_plan_own_part(plan, i, all, &own) && is_part_stopped(parts, node, &own, out);
}

bool tnd_fallback_is_needed(const struct tnd_runtime_parts *parts, const struct tandem_graph *graph,
                            const struct tandem_plan *plan, uint32_t excluded)
{
    uint32_t out = excluded | tnd_registry_quarantined(parts->registry);
    if (out == 0 && !tnd_exec_has_refused(parts->exec)) {
        return false;
    }
    for (int i = 0; i < plan->n_nodes && i < graph->n_nodes; i++) {
        if (is_stopped(parts, graph->nodes[i], &plan->nodes[i], out) ||
            is_split_stopped(parts, graph->nodes[i], plan, i, out)) {
            return true;
        }
    }
    return false;
}

static void choose_cpu(const struct tnd_runtime_parts *parts, const tandem_tensor *node,
                       int n_threads, struct tandem_plan_node *out)
{
    struct tandem_plan_node choice;
    int threads = tnd_rule_threads(node, n_threads, 0);
    memset(&choice, 0, sizeof(choice));
    if ((!tnd_mul_mat_is_plain(node) && node->op != TANDEM_OP_MUL_MAT_ID) ||
        !tnd_plan_node_for_profile(parts->registry, 0, node->src[0]->type, threads, &choice)) {
        memcpy(choice.profile, "cpu", 4);
        choice.stage[TANDEM_STAGE_COMPUTE].backend = TANDEM_BACKEND_CPU;
        choice.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
        choice.stage[TANDEM_STAGE_COMPUTE].parallel = threads > 1;
        choice.n_threads = threads;
    }
    *out = choice;
}

enum tandem_status tnd_fallback_adapt(const struct tnd_runtime_parts *parts,
                                      const struct tandem_graph *graph, int n_threads,
                                      uint32_t excluded, struct tandem_plan *plan,
                                      struct tandem_error *error)
{
    uint32_t out = excluded | tnd_registry_quarantined(parts->registry);
    struct tandem_plan *fresh = NULL;
    if (!tnd_fallback_is_needed(parts, graph, plan, excluded)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_planner_plan(parts->planner, graph, n_threads, &fresh, error));
    plan->observed_key = 0;
    TND_ASSERT(plan->n_nodes == graph->n_nodes && fresh->n_nodes == graph->n_nodes);
    for (int i = 0; i < plan->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        struct tandem_plan_node *choice = &plan->nodes[i];
        bool is_split = is_split_stopped(parts, node, plan, i, out);
        if (is_split) {
            tnd_plan_remove_parts(plan, i); /* its own choice computes the whole node */
            choice->reason = TANDEM_REASON_FALLBACK;
        }
        if (!is_stopped(parts, node, choice, out)) {
            continue;
        }
        tnd_plan_remove_parts(plan, i);
        *choice = fresh->nodes[i];
        if (is_stopped(parts, node, choice, out)) {
            choose_cpu(parts, node, n_threads, choice);
        }
        choice->reason = TANDEM_REASON_FALLBACK;
    }
    tandem_plan_free(fresh);
    return TANDEM_OK;
}
