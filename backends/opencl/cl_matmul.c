/* SPDX-License-Identifier: MIT
 * Matrix products on a device. Nothing yet: everything is refused. */
#include "backends/opencl/cl_matmul.h"

enum tandem_status tnd_cl_matmul_open(struct tnd_cl_device *device, struct tandem_error *error)
{
    (void)device;
    (void)error;
    return TANDEM_OK;
}

void tnd_cl_matmul_close(struct tnd_cl_device *device)
{
    (void)device;
}

enum tandem_status tnd_cl_matmul_supports(struct tnd_cl_device *device, const tandem_tensor *node,
                                          enum tandem_task task, struct tandem_error *error)
{
    (void)node;
    (void)task;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, device->name, 0, 0,
                         "backend opencl: has no matrix products yet");
}

size_t tnd_cl_matmul_workspace(struct tnd_cl_device *device, const tandem_tensor *node,
                               enum tandem_task task)
{
    (void)device;
    (void)node;
    (void)task;
    return 0;
}

enum tandem_status tnd_cl_matmul_submit(struct tnd_cl_device *device,
                                        const struct tandem_work *work, struct tandem_error *error)
{
    return tnd_cl_matmul_supports(device, work->node, (enum tandem_task)work->task, error);
}
