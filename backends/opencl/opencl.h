/* SPDX-License-Identifier: MIT
 * For tests and tools that look behind an open OpenCL backend. */
#ifndef TND_OPENCL_H
#define TND_OPENCL_H

#include "tandem/backend.h"

struct tnd_gpu_device;

/** The device of a backend whose kind is TANDEM_KIND_OPENCL. Lives as long as the backend. */
struct tnd_gpu_device *tnd_opencl_device(tandem_backend *backend);

#endif
