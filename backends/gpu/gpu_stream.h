/* SPDX-License-Identifier: MIT
 * Weights in flight: uploads in a queue of their own beside the works. Events of a block keep the
 * order: a stream into a block waits for the works that use it, works that use it wait for the
 * stream. All functions may be called by any thread. */
#ifndef TND_GPU_STREAM_H
#define TND_GPU_STREAM_H

#include "backends/gpu/gpu_memory.h"

/** The backend's function of this name. */
enum tandem_status tnd_gpu_stream(struct tnd_gpu_device *device, struct tandem_place to,
                                  const void *from, size_t bytes, struct tandem_error *error);

/** What is put into the queue of works from now on stands behind the streams into the block. */
enum tandem_status tnd_gpu_stream_await(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                        struct tandem_error *error);

/** Later streams into the block wait for all that is in the queue of works now. */
enum tandem_status tnd_gpu_stream_mark(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                       struct tandem_error *error);

/** Around the commands of a work: it waits for streams into what it uses, and later streams wait
 *  for it. Next to nothing where nothing was streamed. Under submit_lock. */
enum tandem_status tnd_gpu_stream_begin_work(struct tnd_gpu_device *device,
                                             const struct tandem_work *work,
                                             struct tandem_error *error);
enum tandem_status tnd_gpu_stream_end_work(struct tnd_gpu_device *device,
                                           const struct tandem_work *work,
                                           struct tandem_error *error);

/** Gives up the events of a block that goes. */
void tnd_gpu_stream_forget(const struct tnd_gpu_device *device, struct tnd_gpu_block *block);

#endif
