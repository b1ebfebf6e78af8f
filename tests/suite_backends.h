/* SPDX-License-Identifier: MIT
 * The arrays of tests of the backends suites, each ended by CU_TEST_INFO_NULL. */
#ifndef TND_TESTS_SUITE_BACKENDS_H
#define TND_TESTS_SUITE_BACKENDS_H

#include <CUnit/CUnit.h>

extern CU_TestInfo tnd_tests_registry[];    /* suite_backends_registry.c */
extern CU_TestInfo tnd_tests_openblas[];    /* suite_backends_openblas.c */
extern CU_TestInfo tnd_tests_sim[];         /* suite_backends_sim.c */
extern CU_TestInfo tnd_tests_conformance[]; /* suite_backends_conformance.c */
extern CU_TestInfo tnd_tests_matmul[];      /* suite_backends_matmul.c */
extern CU_TestInfo tnd_tests_packed[];      /* suite_backends_packed.c */
extern CU_TestInfo tnd_tests_pack_cache[];  /* suite_backends_pack_cache.c */
extern CU_TestInfo tnd_tests_bf16[];        /* suite_backends_bf16.c */
extern CU_TestInfo tnd_tests_amx_tiles[];   /* suite_backends_amx_tiles.c */
extern CU_TestInfo tnd_tests_amx[];         /* suite_backends_amx.c */
extern CU_TestInfo tnd_tests_cpu_ops[];     /* suite_backends_cpu_ops.c */
extern CU_TestInfo tnd_tests_attention[];   /* suite_backends_attention.c */
extern CU_TestInfo tnd_tests_int8[];        /* suite_backends_int8.c */
extern CU_TestInfo tnd_tests_experts[];     /* suite_backends_experts.c */
extern CU_TestInfo tnd_tests_net_tiles[];   /* suite_backends_net_tiles.c */
extern CU_TestInfo tnd_tests_programs[];    /* suite_backends_programs.c */

#endif
