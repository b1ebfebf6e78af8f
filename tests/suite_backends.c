/* SPDX-License-Identifier: MIT
 * Main of the backends suites: one array of tests a file tests/suite_backends_*.c. */
#include "tests/suite_backends.h"

#include <stddef.h>

#include "tests/support.h"

/* clang-format off */
static CU_SuiteInfo suites[] = {
    {"registry", NULL, NULL, NULL, NULL, tnd_tests_registry},
    {"openblas", NULL, NULL, NULL, NULL, tnd_tests_openblas},
    {"sim", NULL, NULL, NULL, NULL, tnd_tests_sim},
    {"conformance", NULL, NULL, NULL, NULL, tnd_tests_conformance},
    {"cpu matmul", NULL, NULL, NULL, NULL, tnd_tests_matmul},
    {"cpu ops", NULL, NULL, NULL, NULL, tnd_tests_cpu_ops},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */

/* Drops the suites whose file is not linked (their arrays are weak references). */
static void drop_absent(void)
{
    size_t kept = 0;
    for (size_t i = 0; suites[i].pName != NULL; i++) {
        if (suites[i].pTests != NULL) {
            suites[kept++] = suites[i];
        }
    }
    suites[kept] = (CU_SuiteInfo)CU_SUITE_INFO_NULL;
}

int main(int argc, char **argv)
{
    drop_absent();
    return tnd_suites_run(argc, argv, suites, NULL);
}
