/* SPDX-License-Identifier: MIT
 * Bytes to a device and back: uploads through a ring of pinned host memory, downloads as events
 * with tickets. Knows buffers, not addresses. All functions may be called by any thread. */
#ifndef TND_GPU_TRANSFER_H
#define TND_GPU_TRANSFER_H

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h" /* struct tnd_gpu_range */
#include "tandem/backend.h"

enum tandem_status tnd_gpu_transfer_open(struct tnd_gpu_device *device, struct tandem_error *error);
void tnd_gpu_transfer_close(struct tnd_gpu_device *device);
void tnd_gpu_transfer_count(struct tnd_gpu_device *device, struct tnd_gpu_statistics *statistics);

/** Copies host to device, after everything in the queue; `from` can be changed when it returns.
 * Only waits for room in the ring. */
enum tandem_status tnd_gpu_write(struct tnd_gpu_device *device, struct tnd_gpu_range to,
                                 const void *from, size_t bytes, struct tandem_error *error);

/** The same in the stream queue, after `after` (NULL: nothing) and earlier streams. `*out_event`
 * (untouched if creating it failed) is over when the bytes have arrived; the caller releases it. */
enum tandem_status tnd_gpu_write_stream(struct tnd_gpu_device *device, struct tnd_gpu_event *after,
                                        struct tnd_gpu_range to, const void *from, size_t bytes,
                                        struct tnd_gpu_event **out_event,
                                        struct tandem_error *error);

/** Starts copying device to host from `from`, which is `place`, concurrent with later work; `to`
 * has the bytes when the ticket was synced. */
enum tandem_status tnd_gpu_read(struct tnd_gpu_device *device, struct tandem_place place,
                                struct tnd_gpu_range from, void *to, size_t bytes,
                                uint64_t *out_ticket, struct tandem_error *error);

/** Makes commands added to the work queue from now on wait for downloads in flight of these bytes,
 * which they may overwrite; `*out_n`: number of these downloads. Almost free if there are none. */
enum tandem_status tnd_gpu_await_reads(struct tnd_gpu_device *device, struct tandem_place place,
                                       size_t bytes, int *out_n, struct tandem_error *error);

#endif
