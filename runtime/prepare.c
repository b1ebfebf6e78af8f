/* SPDX-License-Identifier: MIT
 * Preparing weights before the first computation needs them. */
#include "base/options.h"
#include "base/tnd_log.h"
#include "base/tnd_status.h"
#include "runtime/runtime_internal.h"

/* Saves prepared weights. A backend that cannot logs it once; computing continues. */
static void keep(const struct tnd_runtime_parts *parts)
{
    for (int slot = TANDEM_BACKEND_CPU; slot < tnd_registry_count(parts->registry); slot++) {
        struct tandem_error why = {0};
        if (tnd_backend_keep(tnd_registry_backend(parts->registry, slot), &why) != TANDEM_OK) {
            tnd_log_line(parts->log, TANDEM_LOG_WARN, "runtime", "%s", why.text);
        }
    }
}

enum tandem_status tandem_runtime_prepare(tandem_runtime *runtime, const tandem_graph *graph,
                                          const tandem_plan *plan,
                                          const struct tandem_prepare_options *options,
                                          struct tandem_error *error)
{
    struct tandem_prepare_options merged = TANDEM_PREPARE_OPTIONS_INIT;
    struct tnd_runtime_parts parts;
    TND_TRY(tnd_runtime_check(runtime, "prepare", error));
    TND_REQUIRE(plan, "prepare", error);
    TND_TRY(tnd_options_read(options, "tandem_prepare_options", &merged, sizeof(merged), error));
    TND_TRY(tnd_runtime_check_graph(graph, error));
    tnd_runtime_parts(runtime, &parts);
    if (plan->n_nodes != graph->n_nodes) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "prepare", plan->n_nodes, graph->n_nodes,
                             "prepare: a plan of %d nodes for a graph of %d", plan->n_nodes,
                             graph->n_nodes);
    }
    for (int i = 0; i < plan->n_nodes; i++) { /* the program may have changed the plan */
        const struct tandem_plan_node *node = &plan->nodes[i];
        const int slot = node->stage[TANDEM_STAGE_COMPUTE].backend;
        if (slot >= tnd_registry_count(parts.registry) || node->n_threads < 1) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "prepare", slot, 0,
                                 "prepare: node %d of the plan cannot run here", i);
        }
    }
    atomic_store(&runtime->packs_gradually, merged.gradually);
    if (merged.gradually) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_exec_finish(parts.exec, graph, plan, merged.experts, merged.progress, merged.user,
                            error));
    if (merged.keeps) {
        keep(&parts);
    }
    return TANDEM_OK;
}
