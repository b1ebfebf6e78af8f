/* SPDX-License-Identifier: MIT
 * Comparing thread counts. */
#include "tools/tandem-llama/thread_compare.h"

#include <stdio.h>

void tnd_thread_compare_adjust(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    const struct tnd_thread_compare *compare = user;
    (void)graph;
    for (int i = 0; compare->forced > 0 && i < tandem_plan_node_count(plan); i++) {
        struct tandem_plan_node node = *tandem_plan_node(plan, i);
        node.n_threads = compare->forced;
        node.reason = TANDEM_REASON_HAND; /* the prediction no longer applies */
        for (int s = 0; s < TANDEM_STAGES; s++) {
            struct tandem_task_config *config = &node.stage[s];
            if (config->backend == TANDEM_BACKEND_CPU) {
                config->parallel = compare->forced > 1;
            }
        }
        (void)tandem_plan_set_node(plan, i, &node);
    }
}

void tnd_thread_compare_print(const struct tnd_thread_compare *compare, const char *test,
                              const struct tnd_speed *planned)
{
    for (int c = 0; c < compare->n; c++) {
        char other[64];
        snprintf(other, sizeof(other), "with %d thread%s for every node", compare->counts[c],
                 compare->counts[c] == 1 ? "" : "s");
        (void)tnd_speed_print_ratio(test, other, &compare->speed[c], planned);
    }
}
