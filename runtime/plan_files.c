/* SPDX-License-Identifier: MIT
 * Plans in files: written completely or not at all, and checked against the graph when read. */
#include <string.h>

#include "base/file.h"
#include "base/tnd_status.h"
#include "runtime/tnd_runtime.h"
#include "sched/plan_text.h"

enum { MAX_PLAN_BYTES = 64 << 20 };

static enum tandem_status check(const tandem_graph *graph, const char *path,
                                struct tandem_error *error)
{
    if (path == NULL || graph == NULL || !graph->finished) {
        return tnd_error_set(error, path == NULL ? TANDEM_E_ARGUMENT : TANDEM_E_STATE, "plan", 0, 0,
                             "plan: %s", path == NULL ? "no path" : "the graph is not finished");
    }
    return TANDEM_OK;
}

enum tandem_status tandem_runtime_save_plan(tandem_runtime *runtime, const tandem_graph *graph,
                                            const tandem_plan *plan, const char *path,
                                            struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    struct tnd_text text = TND_TEXT_INIT;
    TND_TRY(tnd_runtime_check(runtime, "save_plan", error));
    TND_TRY(check(graph, path, error));
    if (plan == NULL || plan->n_nodes != graph->n_nodes) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, path, tandem_plan_node_count(plan),
                             graph->n_nodes, "plan: made for %d nodes, the graph has %d",
                             tandem_plan_node_count(plan), graph->n_nodes);
    }
    tnd_runtime_parts(runtime, &parts);
    enum tandem_status status =
        tnd_plan_print(plan, tnd_plan_graph_hash(graph), parts.registry, &text, error);
    if (status == TANDEM_OK) {
        status = tnd_file_write_atomic(path, text.bytes, text.n, error);
    }
    tnd_text_fini(&text);
    return status;
}

enum tandem_status tandem_runtime_load_plan(tandem_runtime *runtime, const tandem_graph *graph,
                                            const char *path, tandem_plan **out_plan,
                                            struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    struct tnd_file file;
    tandem_plan *plan = NULL;
    uint64_t hash = 0;
    TND_TRY(tnd_runtime_check(runtime, "load_plan", error));
    TND_REQUIRE(out_plan, "load_plan", error);
    TND_TRY(check(graph, path, error));
    tnd_runtime_parts(runtime, &parts);
    TND_TRY(tnd_file_read(path, MAX_PLAN_BYTES, &file, error));
    enum tandem_status status = tnd_plan_parse((const char *)file.data, file.bytes, path,
                                               parts.registry, &plan, &hash, error);
    tnd_file_close(&file);
    TND_TRY(status);
    if (plan->n_nodes != graph->n_nodes || hash != tnd_plan_graph_hash(graph)) {
        status = tnd_error_set(error, TANDEM_E_ARGUMENT, path, plan->n_nodes, graph->n_nodes,
                               "%.120s: a plan of %d nodes for another graph; this one has %d nodes"
                               " and other operations, types or weights",
                               path, plan->n_nodes, graph->n_nodes);
        tandem_plan_free(plan);
        return status;
    }
    *out_plan = plan;
    return TANDEM_OK;
}
