/* SPDX-License-Identifier: MIT
 * Stands in for the OpenCL backend where it was built without OpenCL's headers: says so. */
#include "backends/opencl/cl_profiles.h"
#include "base/tnd_status.h"
#include "tandem/backend.h"

static enum tandem_status refuse(const char *where, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, where, 0, 0,
                         "opencl: this library was built without OpenCL's headers "
                         "(opencl-headers)");
}

static enum tandem_status absent_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)out_backend;
    return refuse("opencl", error);
}

static void absent_close(tandem_backend *backend)
{
    (void)backend;
}

static enum tandem_status absent_supports(tandem_backend *backend, const tandem_tensor *node,
                                          uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)node;
    (void)task;
    return refuse("opencl", error);
}

static int absent_devices(struct tandem_device_info *out, int n, struct tandem_error *error)
{
    (void)out;
    (void)n;
    refuse("devices", error);
    return 0;
}

extern const struct tandem_backend_api tnd_backend_opencl;
const struct tandem_backend_api tnd_backend_opencl = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "opencl",
    .kind = TANDEM_KIND_OPENCL,
    .open = absent_open,
    .close = absent_close,
    .supports = absent_supports,
    .devices = absent_devices,
    .profile = tnd_cl_profile,
    .setting = tnd_cl_setting,
};
