/* SPDX-License-Identifier: MIT
 * Main of the measure suites; each tests/suite_measure_*.c brings one CU_SuiteInfo array. */
#include "tests/support.h"

extern CU_SuiteInfo suites_measure_adapt[];
extern CU_SuiteInfo suites_measure_product[];
extern CU_SuiteInfo suites_measure_checks[];
extern CU_SuiteInfo suites_measure_choice[];
extern CU_SuiteInfo suites_measure_policy[];
extern CU_SuiteInfo suites_measure_energy[];
extern CU_SuiteInfo suites_measure_numbers[];
extern CU_SuiteInfo suites_measure_quiet[];

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_measure_adapt, suites_measure_product,
                          suites_measure_checks, suites_measure_choice, suites_measure_policy,
                          suites_measure_energy, suites_measure_quiet, suites_measure_numbers,
                          NULL);
}
