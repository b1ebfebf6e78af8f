/* SPDX-License-Identifier: MIT
 * Tests of the OpenCL backend. They use the first OpenCL device there is, a CPU (PoCL) where there
 * is no other, and skip where there is none. */
#include "tests/suite_opencl.h"

static CU_SuiteInfo suites[] = {
    {"device", NULL, NULL, NULL, NULL, tnd_tests_opencl_device},
    {"bcml1", NULL, NULL, NULL, NULL, tnd_tests_opencl_bcml1},
    {"matmul", NULL, NULL, NULL, NULL, tnd_tests_opencl_matmul},
    {"ops", NULL, NULL, NULL, NULL, tnd_tests_opencl_ops},
    {"tune", NULL, NULL, NULL, NULL, tnd_tests_opencl_tune},
    {"faults", NULL, NULL, NULL, NULL, tnd_tests_opencl_faults},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
