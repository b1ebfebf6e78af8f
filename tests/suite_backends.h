/* SPDX-License-Identifier: MIT
 * The arrays of tests of the backends suites, each ended by CU_TEST_INFO_NULL. Weak: a file may
 * be missing. */
#ifndef TND_TESTS_SUITE_BACKENDS_H
#define TND_TESTS_SUITE_BACKENDS_H

#include <CUnit/CUnit.h>

#define TND_TESTS_WEAK __attribute__((weak))

extern CU_TestInfo tnd_tests_registry[] TND_TESTS_WEAK;    /* suite_backends_registry.c */
extern CU_TestInfo tnd_tests_openblas[] TND_TESTS_WEAK;    /* suite_backends_openblas.c */
extern CU_TestInfo tnd_tests_sim[] TND_TESTS_WEAK;         /* suite_backends_sim.c */
extern CU_TestInfo tnd_tests_conformance[] TND_TESTS_WEAK; /* suite_backends_conformance.c */
extern CU_TestInfo tnd_tests_matmul[] TND_TESTS_WEAK;      /* suite_backends_matmul.c */
extern CU_TestInfo tnd_tests_cpu_ops[] TND_TESTS_WEAK;     /* suite_backends_cpu_ops.c */

#endif
