/* SPDX-License-Identifier: MIT
 * Device times of works: events before and after each of them, if the device was opened with the
 * setting profile=on. */
#ifndef TND_GPU_TIMES_H
#define TND_GPU_TIMES_H

#include "backends/gpu/gpu_device.h"

/** Nothing without profile=on. Errors: MEMORY. */
enum tandem_status tnd_gpu_times_open(struct tnd_gpu_device *device, struct tandem_error *error);
void tnd_gpu_times_close(struct tnd_gpu_device *device);

/** Call before and after a work's commands; the second call assigns the ticket. A work without
 * events has no time, but does not fail. Under submit_lock. */
struct tnd_gpu_event *tnd_gpu_times_begin(struct tnd_gpu_device *device);
void tnd_gpu_times_end(struct tnd_gpu_device *device, struct tnd_gpu_event *begin, uint64_t ticket);

/** The backend's function of this name. */
bool tnd_gpu_took(struct tnd_gpu_device *device, uint64_t ticket, int64_t *out_ns);

#endif
