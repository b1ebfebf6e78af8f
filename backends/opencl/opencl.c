/* SPDX-License-Identifier: MIT
 * The OpenCL backend: a GPU backend over the driver of this folder. */
#include "backends/gpu/gpu_backend.h"
#include "backends/gpu/gpu_device.h"
#include "backends/opencl/cl_driver.h"
#include "backends/opencl/cl_profiles.h"

extern const struct tandem_backend_api tnd_backend_opencl;
extern const struct tnd_tuner tnd_tuner_opencl;

static enum tandem_status opencl_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    return tnd_gpu_backend_open(&tnd_cl_driver, &tnd_backend_opencl, options, out_backend, error);
}

static int opencl_devices(struct tandem_device_info *out, int n, struct tandem_error *error)
{
    return tnd_gpu_devices(&tnd_cl_driver, out, n, error);
}

const struct tandem_backend_api tnd_backend_opencl = {
    TND_GPU_BACKEND_MEMBERS,   .name = "opencl",          .kind = TANDEM_KIND_OPENCL,
    .open = opencl_open,       .devices = opencl_devices, .profile = tnd_cl_profile,
    .setting = tnd_cl_setting,
};

const struct tnd_tuner tnd_tuner_opencl = {.api = &tnd_backend_opencl,
                                           .present = tnd_gpu_backend_present,
                                           .use = tnd_gpu_backend_use,
                                           .tune = tnd_gpu_backend_tune,
                                           .launches = tnd_gpu_backend_launches};
