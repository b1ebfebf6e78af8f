/* SPDX-License-Identifier: MIT
 * Made-up costs of the library's own profiles, for suites of tune/ and above. */
#include <string.h>

#include "tests/support_tune.h"
#include "tune/profiles.h"

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K };

/* Puts a made-up cost into all stages of a profile: each takes fixed + per_token * m
 * microseconds. */
void tune_add_cost(tandem_table *table, const char *profile, double fixed, double per_token)
{
    tune_add_cost_of(table, profile, N, K, fixed, per_token);
}

void tune_add_cost_of(tandem_table *table, const char *profile, int64_t n, int64_t k, double fixed,
                      double per_token)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, TANDEM_TYPE_Q4_0, &described));
    check_ok(tnd_table_add_profile(table, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        /* Fetching a result is a transfer, see tune_add_link. */
        bool has_curve = stage->backend[0] != '\0' && stage->task != TANDEM_TASK_FINALIZE;
        for (int threads = 1; threads <= 2 && has_curve; threads++) {
            struct tnd_curve_key key = tune_key(n, k, (enum tandem_task)stage->task,
                                                stage->parallel, stage->parallel ? threads : 1);
            memcpy(key.backend, stage->backend, sizeof(key.backend));
            key.stage = (uint8_t)s;
            for (int64_t m = 1; m <= 64; m *= 4) {
                struct tnd_sample sample = {m, fixed + per_token * (double)m, 0, 10, 1, 0, 0, 0, 0};
                check_ok(tnd_table_add(table, &key, &sample));
            }
        }
    }
}

struct tandem_plan_node tune_plan_one(struct tnd_planner *planner, const tandem_graph *graph,
                                      int n_threads)
{
    tandem_plan *plan = NULL;
    struct tandem_plan_node node;
    memset(&node, 0, sizeof(node));
    if (check_ok(tnd_planner_plan(planner, graph, n_threads, &plan, NULL))) {
        node = *tandem_plan_node(plan, 0);
    }
    tandem_plan_free(plan);
    return node;
}
