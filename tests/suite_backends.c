/* SPDX-License-Identifier: MIT
 * Main of the backends suites: one array of tests a file tests/suite_backends_*.c. */
#include "tests/suite_backends.h"

#include "tests/support.h"

/* clang-format off */
static CU_SuiteInfo suites[] = {
    {"registry", NULL, NULL, NULL, NULL, tnd_tests_registry},
    {"openblas", NULL, NULL, NULL, NULL, tnd_tests_openblas},
    {"sim", NULL, NULL, NULL, NULL, tnd_tests_sim},
    {"conformance", NULL, NULL, NULL, NULL, tnd_tests_conformance},
    {"cpu matmul", NULL, NULL, NULL, NULL, tnd_tests_matmul},
    {"cpu packed weights", NULL, NULL, NULL, NULL, tnd_tests_packed},
    {"cpu pack cache", NULL, NULL, NULL, NULL, tnd_tests_pack_cache},
    {"cpu bf16", NULL, NULL, NULL, NULL, tnd_tests_bf16},
    {"amx tiles", NULL, NULL, NULL, NULL, tnd_tests_amx_tiles},
    {"cpu amx", NULL, NULL, NULL, NULL, tnd_tests_amx},
    {"cpu ops", NULL, NULL, NULL, NULL, tnd_tests_cpu_ops},
    {"cpu attention", NULL, NULL, NULL, NULL, tnd_tests_attention},
    {"cpu int8", NULL, NULL, NULL, NULL, tnd_tests_int8},
    {"cpu net tiles", NULL, NULL, NULL, NULL, tnd_tests_net_tiles},
    {"cpu programs", NULL, NULL, NULL, NULL, tnd_tests_programs},
    {"cpu experts", NULL, NULL, NULL, NULL, tnd_tests_experts},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
