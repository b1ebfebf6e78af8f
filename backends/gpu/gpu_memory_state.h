/* SPDX-License-Identifier: MIT
 * Internals that gpu_memory.c and gpu_weights.c share. */
#ifndef TND_GPU_MEMORY_STATE_H
#define TND_GPU_MEMORY_STATE_H

#include "backends/gpu/gpu_memory.h"

struct tnd_gpu_memory {
    pthread_mutex_t lock; /* guards the members below; taken alone, and by no launch */
    struct tnd_gpu_block *blocks;
    int64_t weight_bytes, mirror_bytes; /* on the device, including forms */
    int64_t n_weights, n_mirrors;
    int64_t budget;                /* for weights */
    struct tnd_gpu_shared *shared; /* buffers of small constants (gpu_constants.c), newest first */
    int64_t n_shared, shared_bytes, n_constants, constant_bytes;
    struct tnd_gpu_range scratch[TND_GPU_SCRATCH_COUNT]; /* offset: bytes. Under submit_lock */
};

/** Bytes from a tensor's first to the end of its last element. */
size_t tnd_gpu_span(const tandem_tensor *tensor);

/** Creates a buffer of at least one byte. Errors: DEVICE_MEMORY, DEVICE. */
enum tandem_status tnd_gpu_make_buffer(const struct tnd_gpu_device *device, size_t bytes,
                                       struct tnd_gpu_buffer **out_buffer,
                                       struct tandem_error *error);

/** Allocates a block's bytes in a shared buffer of small constants; false: it is no small
 * constant, or memory is short. */
bool tnd_gpu_share_buffer(const struct tnd_gpu_device *device, struct tnd_gpu_block *block);
/** Frees a block's buffer of any kind, if it has one. May wait for the device. */
void tnd_gpu_release_buffer(const struct tnd_gpu_device *device, struct tnd_gpu_block *block);

/** A block that is not listed yet; NULL if memory is short. */
struct tnd_gpu_block *tnd_gpu_new_block(const struct tnd_gpu_device *device, size_t bytes,
                                        const void *host, struct tandem_error *error);
/** Lists a block and counts its bytes. */
void tnd_gpu_add_block(struct tnd_gpu_device *device, struct tnd_gpu_block *block);
/** Frees a block that is not listed, with its device memory. May wait for the device. */
void tnd_gpu_free_block(const struct tnd_gpu_device *device, struct tnd_gpu_block *block);
/** Adds to the bytes of weights; may be negative. */
void tnd_gpu_count_weights(struct tnd_gpu_device *device, int64_t bytes);

#endif
