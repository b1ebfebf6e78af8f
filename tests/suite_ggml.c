/* SPDX-License-Identifier: MIT
 * Main of the ggml-like suites; each tests/suite_ggml_*.c brings one CU_SuiteInfo array. */
#include "tests/support.h"

extern CU_SuiteInfo suites_ggml_types[];
extern CU_SuiteInfo suites_ggml_bcml1[];
extern CU_SuiteInfo suites_ggml_tensor[];
extern CU_SuiteInfo suites_ggml_memplan[];
extern CU_SuiteInfo suites_ggml_graph[];
extern CU_SuiteInfo suites_ggml_ops[];
extern CU_SuiteInfo suites_ggml_random[];
extern CU_SuiteInfo suites_ggml_sample[];

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_ggml_types, suites_ggml_bcml1, suites_ggml_tensor,
                          suites_ggml_memplan, suites_ggml_graph, suites_ggml_ops,
                          suites_ggml_random, suites_ggml_sample, NULL);
}
