/* SPDX-License-Identifier: MIT
 * Main of the table suites; each tests/suite_table_*.c brings one CU_SuiteInfo array. */
#include "tests/support.h"

extern CU_SuiteInfo suites_table_files[];
extern CU_SuiteInfo suites_table_damage[];
extern CU_SuiteInfo suites_table_invalidate[];
extern CU_SuiteInfo suites_table_exchange[];
extern CU_SuiteInfo suites_table_keep[];
extern CU_SuiteInfo suites_table_backup[];
extern CU_SuiteInfo suites_table_judge[];
extern CU_SuiteInfo suites_table_trust[];
extern CU_SuiteInfo suites_table_moves[];
extern CU_SuiteInfo suites_table_problem[];
extern CU_SuiteInfo suites_table_records[];

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_table_files, suites_table_damage,
                          suites_table_invalidate, suites_table_exchange, suites_table_keep,
                          suites_table_backup, suites_table_judge, suites_table_trust,
                          suites_table_moves, suites_table_problem, suites_table_records, NULL);
}
