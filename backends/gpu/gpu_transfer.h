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

/** Host to device, behind everything in the queue; `from` may be changed when it returns. Waits
 *  only for room in the ring. */
enum tandem_status tnd_gpu_write(struct tnd_gpu_device *device, struct tnd_gpu_range to,
                                 const void *from, size_t bytes, struct tandem_error *error);

/** The same in the queue of the streams, behind `after` (NULL: nothing) and what stands there.
 *  `*out_event` (untouched on failure before it was made) is over when the bytes are there; the
 *  caller releases it. */
enum tandem_status tnd_gpu_write_stream(struct tnd_gpu_device *device, struct tnd_gpu_event *after,
                                        struct tnd_gpu_range to, const void *from, size_t bytes,
                                        struct tnd_gpu_event **out_event,
                                        struct tandem_error *error);

/** Starts device to host, from `from`, which is `place`, beside works that come later; `to` has the
 *  bytes when the ticket is synced. */
enum tandem_status tnd_gpu_read(struct tnd_gpu_device *device, struct tandem_place place,
                                struct tnd_gpu_range from, void *to, size_t bytes,
                                uint64_t *out_ticket, struct tandem_error *error);

/** What is put into the queue of works from now on may overwrite these bytes: it waits for the
 *  downloads of them that are in flight, `*out_n` in number. Next to nothing without any. */
enum tandem_status tnd_gpu_await_reads(struct tnd_gpu_device *device, struct tandem_place place,
                                       size_t bytes, int *out_n, struct tandem_error *error);

#endif
