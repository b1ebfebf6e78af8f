/* SPDX-License-Identifier: MIT
 * The tests of the opencl suites, each array ended by CU_TEST_INFO_NULL, and what they share. */
#ifndef TND_TESTS_SUITE_OPENCL_H
#define TND_TESTS_SUITE_OPENCL_H

#include "backends/opencl/cl_device.h"
#include "tests/support.h"

extern CU_TestInfo tnd_tests_opencl_bcml1[];    /* suite_opencl_bcml1.c */
extern CU_TestInfo tnd_tests_opencl_device[];   /* suite_opencl_device.c */
extern CU_TestInfo tnd_tests_opencl_faults[];   /* suite_opencl_faults.c */
extern CU_TestInfo tnd_tests_opencl_matmul[];   /* suite_opencl_matmul.c */
extern CU_TestInfo tnd_tests_opencl_memory[];   /* suite_opencl_memory.c */
extern CU_TestInfo tnd_tests_opencl_ops[];      /* suite_opencl_ops.c */
extern CU_TestInfo tnd_tests_opencl_programs[]; /* suite_opencl_programs.c */
extern CU_TestInfo tnd_tests_opencl_tune[];     /* suite_opencl_tune.c */

/** Opens the first device there is, without a cache unless `options` names one; NULL after a skip
 *  or a failure. */
struct tnd_cl_device *tnd_test_cl_open(struct tnd_cl_options options);
struct tnd_cl_statistics tnd_test_cl_statistics(struct tnd_cl_device *device);

#endif
