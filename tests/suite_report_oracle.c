/* SPDX-License-Identifier: MIT
 * What is said of a choice that was not the best. */
#include <string.h>

#include "tests/support.h"
#include "tools/report/oracle.h"

static struct tnd_oracle_cell cell_of(double predicted_us, double best_predicted_us)
{
    struct tnd_oracle_cell cell = {
        .problem = {"mul_mat", TANDEM_TYPE_Q4_0, 64, 32, 8, 2, "cpu"},
        .chosen_us = 120,
        .best_us = 100,
        .regret = 0.2,
        .best_profile = "cpu-packed",
        .best_threads = 1,
        .chosen_estimate = {.us = predicted_us, .measured_shape = true},
        .best_estimate = {.us = best_predicted_us, .measured_shape = true}};
    return cell;
}

static void a_regret_is_explained_by_what_was_predicted_wrong(void)
{
    struct tnd_oracle_cell cell = cell_of(90, 102);
    cell.chosen_estimate.outside = 1;
    tnd_oracle_explain(&cell);
    check_string(cell.why, "cpu t2 was predicted 25 % too fast (M is 2.0 times beyond the measured "
                           "ones)");
    cell = cell_of(118, 130);
    cell.best_estimate.noisy = true;
    cell.noise = 0.08;
    tnd_oracle_explain(&cell);
    check_string(cell.why, "cpu-packed t1 was predicted 30 % too slow (noisy cell); the best way "
                           "differed from itself by 8 %");
    cell = cell_of(118, 0);
    tnd_oracle_explain(&cell);
    check_string(cell.why, "nothing is known of cpu-packed t1");
    cell = cell_of(118, 102);
    tnd_oracle_explain(&cell);
    check_contains(cell.why, "both were predicted within 5 %");
}

static CU_TestInfo tests[] = {
    {"a regret is explained by what was predicted wrong",
     a_regret_is_explained_by_what_was_predicted_wrong},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_oracle[];
CU_SuiteInfo suites_report_oracle[] = {
    {"oracle", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
