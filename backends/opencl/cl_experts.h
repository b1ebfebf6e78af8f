/* SPDX-License-Identifier: MIT
 * What work with indices has found out when it is over. The operations are in cl_ops_parts.h. */
#ifndef TND_CL_EXPERTS_H
#define TND_CL_EXPERTS_H

#include "backends/opencl/cl_device.h"

/** Fails with ARGUMENT, once, when work that is over has met an index that is out of range; else
 *  OK. Errors: DEVICE too. Any thread, behind a sync. */
enum tandem_status tnd_cl_experts_check(struct tnd_cl_device *device, struct tandem_error *error);

#endif
