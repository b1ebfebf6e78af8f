/* SPDX-License-Identifier: MIT
 * What cl_memory.c and cl_weights.c share, and nobody else sees. */
#ifndef TND_CL_MEMORY_STATE_H
#define TND_CL_MEMORY_STATE_H

#include "backends/opencl/cl_memory.h"
#include "backends/opencl/cl_regions.h"

struct tnd_cl_memory {
    pthread_mutex_t lock; /* guards all members; taken alone, never while waiting for the device */
    struct tnd_cl_regions mirrors;
    struct tnd_cl_regions weights;
    int64_t budget;
    struct tnd_cl_range scratch[TND_CL_SCRATCH_COUNT]; /* offset: bytes. Under submit_lock */
};

/** Bytes from a tensor's first to behind its last element. */
size_t tnd_cl_span(const tandem_tensor *tensor);

/** A buffer of at least one byte. Errors: DEVICE_MEMORY, DEVICE. */
enum tandem_status tnd_cl_make_buffer(const struct tnd_cl_device *device, cl_mem_flags flags,
                                      size_t bytes, cl_mem *out_buffer, struct tandem_error *error);

#endif
