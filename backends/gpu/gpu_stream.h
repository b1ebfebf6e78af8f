/* SPDX-License-Identifier: MIT
 * Weights in flight: uploads in a queue of their own, concurrent with work. Events of a block keep
 * the order: a stream into a block waits for work that uses it, and work that uses it waits for the
 * stream. Any thread may call any function. */
#ifndef TND_GPU_STREAM_H
#define TND_GPU_STREAM_H

#include "backends/gpu/gpu_memory.h"

/** The backend's function of this name. */
enum tandem_status tnd_gpu_stream(struct tnd_gpu_device *device, struct tandem_place to,
                                  const void *from, size_t bytes, struct tandem_error *error);

/** Makes commands added to the work queue from now on wait for the streams into the block. */
enum tandem_status tnd_gpu_stream_await(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                        struct tandem_error *error);

/** Makes later streams into the block wait for everything in the work queue now. */
enum tandem_status tnd_gpu_stream_mark(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                       struct tandem_error *error);

/** Call before and after the commands of a work: it waits for streams into what it uses, and later
 * streams wait for it. Almost free if nothing was streamed. Under submit_lock. */
enum tandem_status tnd_gpu_stream_begin_work(struct tnd_gpu_device *device,
                                             const struct tandem_work *work,
                                             struct tandem_error *error);
enum tandem_status tnd_gpu_stream_end_work(struct tnd_gpu_device *device,
                                           const struct tandem_work *work,
                                           struct tandem_error *error);

/** Releases the events of a block that is freed. */
void tnd_gpu_stream_forget(const struct tnd_gpu_device *device, struct tnd_gpu_block *block);

#endif
