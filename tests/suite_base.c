/* SPDX-License-Identifier: MIT
 * Main of the base suites: one array of tests a file tests/suite_base_*.c. */
#include "tests/suite_base.h"

/* clang-format off */
static CU_SuiteInfo suites[] = {
    {"half", NULL, NULL, NULL, NULL, tnd_tests_base_half},
    {"memory", NULL, NULL, NULL, NULL, tnd_tests_base_memory},
    {"file", NULL, NULL, NULL, NULL, tnd_tests_base_file},
    {"text", NULL, NULL, NULL, NULL, tnd_tests_base_text},
    {"digest", NULL, NULL, NULL, NULL, tnd_tests_base_digest},
    {"machine", NULL, NULL, NULL, NULL, tnd_tests_base_machine},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
