/* SPDX-License-Identifier: MIT
 * Tests of the OpenCL backend. They use the first OpenCL device there is, a CPU (PoCL) where there
 * is no other, and skip where there is none. */
#include "tests/suite_opencl.h"

static CU_SuiteInfo suites[] = {
    {"device", NULL, NULL, NULL, NULL, tnd_tests_opencl_device},
    {"programs", NULL, NULL, NULL, NULL, tnd_tests_opencl_programs},
    {"memory", NULL, NULL, NULL, NULL, tnd_tests_opencl_memory},
    {"bcml1", NULL, NULL, NULL, NULL, tnd_tests_opencl_bcml1},
    {"matmul", NULL, NULL, NULL, NULL, tnd_tests_opencl_matmul},
    {"ops", NULL, NULL, NULL, NULL, tnd_tests_opencl_ops},
    {"tune", NULL, NULL, NULL, NULL, tnd_tests_opencl_tune},
    {"faults", NULL, NULL, NULL, NULL, tnd_tests_opencl_faults},
    CU_SUITE_INFO_NULL,
};

struct tnd_cl_device *tnd_test_cl_open(struct tnd_cl_options options)
{
    struct tnd_cl_device *device = NULL;
    struct tandem_error error = {0};
    if (options.device == NULL) {
        options.device = "0";
    }
    if (options.cache == NULL) {
        options.cache = "off";
    }
    enum tandem_status status = tnd_cl_device_open(&options, &device, &error);
    if (status == TANDEM_E_UNSUPPORTED_MACHINE) {
        tnd_skip("opencl: %s", error.text);
        return NULL;
    }
    return check_status(status, TANDEM_OK, NULL, &error) ? device : NULL;
}

struct tnd_cl_statistics tnd_test_cl_statistics(struct tnd_cl_device *device)
{
    struct tnd_cl_statistics statistics;
    tnd_cl_statistics_get(device, &statistics);
    return statistics;
}

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
