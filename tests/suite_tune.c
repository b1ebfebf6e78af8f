/* SPDX-License-Identifier: MIT
 * Main of the tune suites; each tests/suite_tune_*.c brings one CU_SuiteInfo array. */
#include "tests/support.h"

extern CU_SuiteInfo suites_tune_op_cost[];
extern CU_SuiteInfo suites_tune_choosing[];
extern CU_SuiteInfo suites_tune_conv[];
extern CU_SuiteInfo suites_tune_objective[];
extern CU_SuiteInfo suites_tune_estimate[];
extern CU_SuiteInfo suites_tune_model[];
extern CU_SuiteInfo suites_tune_planner[];
extern CU_SuiteInfo suites_tune_explain[];
extern CU_SuiteInfo suites_tune_devices[];
extern CU_SuiteInfo suites_tune_moves[];
extern CU_SuiteInfo suites_tune_experts[];
extern CU_SuiteInfo suites_tune_fit[];
extern CU_SuiteInfo suites_tune_cluster[];
extern CU_SuiteInfo suites_tune_cluster_prices[];
extern CU_SuiteInfo suites_tune_overlap[];
extern CU_SuiteInfo suites_tune_numbers[];
extern CU_SuiteInfo suites_tune_prior[];
extern CU_SuiteInfo suites_tune_schedule[];
extern CU_SuiteInfo suites_tune_schedule_search[];
extern CU_SuiteInfo suites_tune_schedule_cases[];

int main(int argc, char **argv)
{
    return tnd_suites_run(
        argc, argv, suites_tune_op_cost, suites_tune_choosing, suites_tune_objective,
        suites_tune_estimate, suites_tune_model, suites_tune_planner, suites_tune_explain,
        suites_tune_devices, suites_tune_moves, suites_tune_experts, suites_tune_fit,
        suites_tune_cluster, suites_tune_cluster_prices, suites_tune_overlap, suites_tune_schedule,
        suites_tune_schedule_search, suites_tune_schedule_cases, suites_tune_prior,
        suites_tune_conv, suites_tune_numbers, NULL);
}
