/* SPDX-License-Identifier: MIT
 * The tests of the opencl suites, each array ended by CU_TEST_INFO_NULL, and what they share. */
#ifndef TND_TESTS_SUITE_OPENCL_H
#define TND_TESTS_SUITE_OPENCL_H

#include "tests/support.h"

extern CU_TestInfo tnd_tests_opencl_bcml1[];  /* suite_opencl_bcml1.c */
extern CU_TestInfo tnd_tests_opencl_device[]; /* suite_opencl_device.c */
extern CU_TestInfo tnd_tests_opencl_faults[]; /* suite_opencl_faults.c */
extern CU_TestInfo tnd_tests_opencl_matmul[]; /* suite_opencl_matmul.c */
extern CU_TestInfo tnd_tests_opencl_ops[];    /* suite_opencl_ops.c */
extern CU_TestInfo tnd_tests_opencl_tune[];   /* suite_opencl_tune.c */

#endif
