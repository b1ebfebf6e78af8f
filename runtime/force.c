/* SPDX-License-Identifier: MIT
 * Sets the profile of one node of a plan, as the program asks. */
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "runtime/runtime_internal.h"
#include "sched/plan.h"
#include "tune/profiles.h"

/* Whether the profile can run the node here; if so, sets `out`. */
static bool choose(const struct tnd_registry *registry, int profile, const tandem_tensor *node,
                   int n_threads, struct tandem_plan_node *out)
{
    return tnd_plan_node_for_profile(registry, profile, node->src[0]->type, n_threads, out) &&
           tnd_node_is_supported(registry, out, node);
}

static enum tandem_status not_here(const struct tnd_registry *registry, const tandem_tensor *node,
                                   const char *profile, struct tandem_error *error)
{
    char names[160] = "";
    size_t used = 0;
    struct tandem_plan_node choice;
    for (int p = 0; p < tnd_profile_count(registry) && used < sizeof(names); p++) {
        if (choose(registry, p, node, 1, &choice)) {
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                     used > 0 ? ", " : "", choice.profile);
        }
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, 0, 0,
                         "profile %s cannot run %s %.20s here; these can: %s", profile,
                         tandem_type_name(node->src[0]->type), tandem_tensor_op_name(node), names);
}

enum tandem_status tandem_runtime_force_node(tandem_runtime *runtime, const tandem_graph *graph,
                                             tandem_plan *plan, int i, const char *profile,
                                             struct tandem_error *error)
{
    struct tandem_plan_node choice;
    int forced = -1;
    TND_TRY(tnd_runtime_check(runtime, "force_node", error));
    TND_REQUIRE(plan, "force_node", error);
    TND_REQUIRE(profile, "force_node", error);
    TND_TRY(tnd_runtime_check_graph(graph, error));
    if (plan->n_nodes != graph->n_nodes || i < 0 || i >= graph->n_nodes) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "node", i, graph->n_nodes,
                             "force_node: node %d of a plan for %d nodes; the graph has %d", i,
                             plan->n_nodes, graph->n_nodes);
    }
    TND_TRY(tnd_runtime_find_profile(runtime, profile, &forced, error));
    const tandem_tensor *node = graph->nodes[i];
    if (!tnd_mul_mat_is_plain(node) && node->op != TANDEM_OP_MUL_MAT_ID) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, node->name, i, 0,
                             "force_node: node %d is %s; profiles are for products with one matrix "
                             "of weights",
                             i, tandem_tensor_op_name(node));
    }
    if (!choose(runtime->registry, forced, node, plan->nodes[i].n_threads, &choice)) {
        return not_here(runtime->registry, node, profile, error);
    }
    choice.reason = TANDEM_REASON_FORCED;
    plan->nodes[i] = choice;
    return TANDEM_OK;
}
