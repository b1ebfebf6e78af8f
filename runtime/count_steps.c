/* SPDX-License-Identifier: MIT
 * Counts the steps of a plan. */
#include "base/options.h"
#include "runtime/tnd_runtime.h"
#include "sched/plan.h"

enum tandem_status tandem_runtime_count_steps(tandem_runtime *runtime, const tandem_graph *graph,
                                              const tandem_plan *plan,
                                              struct tandem_step_counts *out_counts,
                                              struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    struct tnd_steps *steps = NULL;
    TND_TRY(tnd_runtime_check(runtime, "count_steps", error));
    TND_REQUIRE(plan, "count_steps", error);
    TND_TRY(tnd_runtime_check_graph(graph, error));
    tnd_runtime_parts(runtime, &parts);
    uint32_t execution = tnd_plan_is_scheduled(plan) ? 0 : tnd_exec_execution(parts.exec);
    enum tandem_status status =
        tnd_steps_renew(graph, plan, parts.registry, NULL, execution, &steps, error);
    if (status == TANDEM_OK) {
        struct tandem_step_counts counts = {sizeof(counts), steps->n_steps, steps->n_groups, 0};
        for (int g = 0; g < steps->n_groups; g++) {
            counts.n_parallel += steps->groups[g].n_workers > 1;
        }
        status =
            tnd_results_write(&counts, sizeof(counts), "tandem_step_counts", out_counts, error);
    }
    tnd_steps_free(steps);
    return status;
}
