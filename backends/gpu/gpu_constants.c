/* SPDX-License-Identifier: MIT
 * Small constants of one row (weights of norms, factors of rope, masks, scalars) share buffers: a
 * device has a few large buffers instead of hundreds that take a page or more each. Kernels take a
 * buffer and an offset, so no sub-buffers are needed; offsets are multiples of 256 bytes, which
 * suits all loads and the libraries of products of both drivers.
 *
 * A buffer is filled from front to back. Freed parts are not reused until the whole buffer is empty
 * and freed: so nothing waits for a queue, and a model allocates and frees all of its constants
 * together. */
#include "backends/gpu/gpu_memory_state.h"
#include "base/alloc.h"
#include "base/tnd_assert.h"

enum {
    MOST_BYTES = 64 << 10,        /* largest small constant: a row of 16,384 floats */
    FIRST_BYTES = 2 * MOST_BYTES, /* of the first shared buffer; each next one is twice as large, */
    LARGEST_BYTES = 1 << 20,      /* up to these */
    ALIGNMENT = 256,
    GAP = 256 /* bytes that are never written between constants, so that the checks of the CUDA
               * stand-in detect reads beyond a constant */
};

struct tnd_gpu_shared {
    struct tnd_gpu_shared *next;
    struct tnd_gpu_buffer *buffer;
    size_t bytes, used;
    int64_t n; /* constants in it */
};

static struct tnd_gpu_shared *add_shared(const struct tnd_gpu_device *device)
{
    struct tnd_gpu_memory *memory = device->memory;
    const uint64_t most = device->caps.max_alloc_bytes;
    const size_t twice = memory->shared != NULL ? 2 * memory->shared->bytes : FIRST_BYTES;
    const size_t bytes = twice < LARGEST_BYTES ? twice : LARGEST_BYTES;
    struct tnd_gpu_shared *shared = tnd_calloc(1, sizeof(*shared));
    if (shared == NULL) {
        return NULL;
    }
    shared->bytes = most < bytes ? (size_t)most : bytes;
    if (tnd_gpu_make_buffer(device, shared->bytes, &shared->buffer, NULL) != TANDEM_OK) {
        tnd_free(shared);
        return NULL;
    }
    shared->next = memory->shared;
    memory->shared = shared;
    memory->n_shared++;
    memory->shared_bytes += (int64_t)shared->bytes;
    return shared;
}

bool tnd_gpu_share_buffer(const struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    struct tnd_gpu_memory *memory = device->memory;
    if (!block->is_row || block->bytes > MOST_BYTES) {
        return false;
    }
    pthread_mutex_lock(&memory->lock);
    struct tnd_gpu_shared *shared = memory->shared; /* the newest; others are full */
    if (shared == NULL || block->bytes > shared->bytes - shared->used) {
        shared = add_shared(device);
    }
    const bool is_there = shared != NULL && block->bytes <= shared->bytes - shared->used;
    if (is_there) {
        const size_t end = shared->used + block->bytes + GAP + ALIGNMENT - 1;
        block->shared = shared;
        block->buffer = shared->buffer;
        block->offset = shared->used;
        shared->used = end / ALIGNMENT * ALIGNMENT;
        shared->used = shared->used < shared->bytes ? shared->used : shared->bytes;
        shared->n++;
        memory->n_constants++;
        memory->constant_bytes += (int64_t)block->bytes;
    }
    pthread_mutex_unlock(&memory->lock);
    return is_there;
}

static void give_shared(const struct tnd_gpu_device *device, const struct tnd_gpu_block *block)
{
    struct tnd_gpu_memory *memory = device->memory;
    struct tnd_gpu_shared *shared = block->shared;
    pthread_mutex_lock(&memory->lock);
    memory->n_constants--;
    memory->constant_bytes -= (int64_t)block->bytes;
    if (--shared->n > 0) {
        shared = NULL;
    } else {
        struct tnd_gpu_shared **place = &memory->shared;
        while (*place != shared) {
            TND_ASSERT(*place != NULL);
            place = &(*place)->next;
        }
        *place = shared->next;
        memory->n_shared--;
        memory->shared_bytes -= (int64_t)shared->bytes;
    }
    pthread_mutex_unlock(&memory->lock);
    if (shared != NULL) { /* the driver keeps it until the commands that use it are over */
        device->driver->buffer_free(device->context, shared->buffer);
        tnd_free(shared);
    }
}

void tnd_gpu_release_buffer(const struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    const struct tnd_gpu_driver *driver = device->driver;
    if (block->shared != NULL) {
        give_shared(device, block);
    } else if (block->is_host) {
        (void)driver->finish(device->context, TND_GPU_QUEUE_WORK, NULL);
        driver->buffer_unshare(device->context, block->buffer);
    } else {
        driver->buffer_free(device->context, block->buffer);
    }
    block->shared = NULL;
    block->buffer = NULL;
    block->offset = 0;
}
