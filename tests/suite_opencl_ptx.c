/* SPDX-License-Identifier: MIT
 * CUDA with prebuilt kernels alone, without NVRTC: on the stand-in for libcuda. */
#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_program.h"
#include "backends/gpu/gpu_tune.h"
#include "tests/suite_opencl.h"

static void devices_say_where_their_kernels_come_from(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    check_contains(device->info.version, "kernels: prebuilt PTX 6.3");
    check_contains(device->info.reason, "tuning and the kernels of networks need NVRTC");
    CU_ASSERT(device->context->has_fixed_programs);
    tnd_gpu_device_close(device);
}

CU_TestInfo tnd_tests_opencl_ptx[] = {
    {"devices say where their kernels come from", devices_say_where_their_kernels_come_from},
    CU_TEST_INFO_NULL};
