/* SPDX-License-Identifier: MIT
 * Operations on a device. Nothing yet: everything is refused. */
#include "backends/opencl/cl_ops.h"

enum tandem_status tnd_cl_ops_open(struct tnd_cl_device *device, struct tandem_error *error)
{
    (void)device;
    (void)error;
    return TANDEM_OK;
}

void tnd_cl_ops_close(struct tnd_cl_device *device)
{
    (void)device;
}

enum tandem_status tnd_cl_ops_supports(struct tnd_cl_device *device, const tandem_tensor *node,
                                       struct tandem_error *error)
{
    (void)node;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, device->name, 0, 0,
                         "backend opencl: has no operations yet");
}

enum tandem_status tnd_cl_ops_submit(struct tnd_cl_device *device, const struct tandem_work *work,
                                     struct tandem_error *error)
{
    return tnd_cl_ops_supports(device, work->node, error);
}
