/* SPDX-License-Identifier: MIT
 * Device memory in blocks: mirrors; resident weights are in gpu_weights.c. The driver keeps a freed
 * buffer until the commands that use it are over, so nothing here waits for the queue, unless a
 * buffer is host memory, which may become invalid. */
#include "backends/gpu/gpu_memory.h"

#include "backends/gpu/gpu_memory_state.h"
#include "backends/gpu/gpu_stream.h"
#include "backends/gpu/gpu_transfer.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"

enum { SCRATCH_STEP = 1 << 20 };

/* ---- opening ---- */

enum tandem_status tnd_gpu_memory_open(struct tnd_gpu_device *device, uint64_t budget_bytes,
                                       struct tandem_error *error)
{
    struct tnd_gpu_memory *memory = tnd_calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return tnd_gpu_no_memory(device, sizeof(*memory), error);
    }
    enum tandem_status status = tnd_gpu_transfer_open(device, error);
    if (status != TANDEM_OK) {
        tnd_free(memory);
        return status;
    }
    /* a fifth stays free for activations, the KV cache and programs */
    uint64_t budget = budget_bytes != 0 ? budget_bytes : device->caps.global_bytes / 5 * 4;
    memory->budget = budget < INT64_MAX ? (int64_t)budget : INT64_MAX;
    pthread_mutex_init(&memory->lock, NULL);
    device->memory = memory;
    return TANDEM_OK;
}

void tnd_gpu_memory_close(struct tnd_gpu_device *device)
{
    struct tnd_gpu_memory *memory = device->memory;
    if (memory != NULL) {
        while (memory->blocks != NULL) {
            tnd_gpu_give_back(device, memory->blocks);
        }
        for (int i = 0; i < TND_GPU_SCRATCH_COUNT; i++) {
            device->driver->buffer_free(device->context, memory->scratch[i].buffer);
        }
        pthread_mutex_destroy(&memory->lock);
        tnd_free(memory);
        device->memory = NULL;
    }
    tnd_gpu_transfer_close(device);
}

void tnd_gpu_memory_count(struct tnd_gpu_device *device, struct tnd_gpu_statistics *statistics)
{
    struct tnd_gpu_memory *memory = device->memory;
    tnd_gpu_transfer_count(device, statistics);
    pthread_mutex_lock(&memory->lock);
    statistics->resident_bytes = memory->weight_bytes;
    statistics->budget_bytes = memory->budget;
    statistics->resident_count = memory->n_weights;
    statistics->mirror_bytes = memory->mirror_bytes;
    statistics->mirror_count = memory->n_mirrors;
    statistics->constant_bytes = memory->constant_bytes;
    statistics->constant_count = memory->n_constants;
    statistics->shared_bytes = memory->shared_bytes;
    statistics->shared_count = memory->n_shared;
    pthread_mutex_unlock(&memory->lock);
}

/* ---- finding ---- */

enum tandem_status tnd_gpu_find(struct tnd_gpu_device *device, struct tandem_place place,
                                size_t bytes, struct tnd_gpu_range *out_range,
                                struct tandem_error *error)
{
    const struct tnd_gpu_block *block = place.handle;
    if (block == NULL || block->buffer == NULL || bytes > block->bytes ||
        place.offset > block->bytes - bytes) {
        return tnd_error_set(error, TANDEM_E_STATE, device->name, (int64_t)bytes,
                             block != NULL ? (int64_t)block->bytes : 0,
                             "%s device '%.60s': %zu bytes are not on the device",
                             device->driver->name, device->name, bytes);
    }
    *out_range = (struct tnd_gpu_range){block->buffer, block->offset + place.offset};
    return TANDEM_OK;
}

size_t tnd_gpu_span(const tandem_tensor *tensor)
{
    size_t row = tandem_type_row_bytes(tensor->type, tensor->ne[0]);
    size_t element = tandem_type_block_bytes(tensor->type);
    size_t span = tandem_type_row_bytes(tensor->type, 1) == element && tensor->nb[0] != element
                      ? (size_t)(tensor->ne[0] - 1) * tensor->nb[0] + element
                      : row;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        if (tensor->ne[i] == 0) {
            return 0;
        }
        span += i > 0 ? (size_t)(tensor->ne[i] - 1) * tensor->nb[i] : 0;
    }
    return span;
}

enum tandem_status tnd_gpu_operand(struct tnd_gpu_device *device, const struct tandem_work *work,
                                   int i, struct tnd_gpu_range *out_range,
                                   struct tandem_error *error)
{
    static const struct tandem_places nowhere;
    const struct tandem_places *places = work->places != NULL ? work->places : &nowhere;
    TND_ASSERT(i >= -1 && i < work->node->n_src);
    size_t bytes = tnd_gpu_span(i < 0 ? work->node : work->node->src[i]);
    if (bytes == 0) {
        *out_range = (struct tnd_gpu_range){NULL, 0};
        return TANDEM_OK;
    }
    return tnd_gpu_find(device, i < 0 ? places->result : places->src[i], bytes, out_range, error);
}

/* ---- buffers ---- */

enum tandem_status tnd_gpu_make_buffer(const struct tnd_gpu_device *device, size_t bytes,
                                       struct tnd_gpu_buffer **out_buffer,
                                       struct tandem_error *error)
{
    if (bytes > device->caps.max_alloc_bytes) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, device->name, (int64_t)bytes,
                             (int64_t)device->caps.max_alloc_bytes,
                             "%s device '%.60s': a buffer of %zu bytes, it takes up to %llu",
                             device->driver->name, device->name, bytes,
                             (unsigned long long)device->caps.max_alloc_bytes);
    }
    return device->driver->buffer_new(device->context, bytes > 0 ? bytes : 1, out_buffer, error);
}

enum tandem_status tnd_gpu_scratch(struct tnd_gpu_device *device, enum tnd_gpu_scratch_slot slot,
                                   size_t bytes, struct tnd_gpu_range *out_range,
                                   struct tandem_error *error)
{
    struct tnd_gpu_range *scratch = &device->memory->scratch[slot];
    if (scratch->buffer == NULL || scratch->offset < bytes) {
        size_t rounded = 0;
        struct tnd_gpu_buffer *buffer = NULL;
        if (!tnd_align_up(bytes, SCRATCH_STEP, &rounded)) {
            rounded = SIZE_MAX;
        }
        rounded = rounded > device->caps.max_alloc_bytes ? bytes : rounded;
        TND_TRY(tnd_gpu_make_buffer(device, rounded, &buffer, error));
        device->driver->buffer_free(device->context, scratch->buffer);
        *scratch = (struct tnd_gpu_range){buffer, rounded};
    }
    *out_range = (struct tnd_gpu_range){scratch->buffer, 0};
    return TANDEM_OK;
}

/* ---- blocks ---- */

struct tnd_gpu_block *tnd_gpu_new_block(const struct tnd_gpu_device *device, size_t bytes,
                                        const void *host, struct tandem_error *error)
{
    struct tnd_gpu_block *block = tnd_calloc(1, sizeof(*block));
    if (block == NULL) {
        (void)tnd_gpu_no_memory(device, sizeof(*block), error);
        return NULL;
    }
    block->bytes = bytes;
    block->host = host;
    block->is_weight = host != NULL;
    return block;
}

void tnd_gpu_count_weights(struct tnd_gpu_device *device, int64_t bytes)
{
    struct tnd_gpu_memory *memory = device->memory;
    pthread_mutex_lock(&memory->lock);
    memory->weight_bytes += bytes;
    TND_ASSERT(memory->weight_bytes >= 0);
    pthread_mutex_unlock(&memory->lock);
}

void tnd_gpu_add_block(struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    struct tnd_gpu_memory *memory = device->memory;
    TND_ASSERT(block->buffer != NULL && block->forms == NULL);
    pthread_mutex_lock(&memory->lock);
    block->next = memory->blocks;
    memory->blocks = block;
    memory->weight_bytes += block->is_weight ? (int64_t)block->bytes : 0;
    memory->mirror_bytes += block->is_weight ? 0 : (int64_t)block->bytes;
    memory->n_weights += block->is_weight;
    memory->n_mirrors += !block->is_weight;
    pthread_mutex_unlock(&memory->lock);
}

void tnd_gpu_free_block(const struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    const struct tnd_gpu_driver *driver = device->driver;
    while (block->forms != NULL) {
        struct tnd_gpu_form *form = block->forms;
        block->forms = form->next;
        driver->buffer_free(device->context, form->buffer);
        tnd_free(form);
    }
    tnd_gpu_release_buffer(device, block);
    tnd_gpu_stream_forget(device, block);
    tnd_free(block);
}

/* Bytes of device memory that a block takes. */
static int64_t bytes_of(const struct tnd_gpu_block *block)
{
    int64_t bytes = block->buffer != NULL ? (int64_t)block->bytes : 0;
    for (const struct tnd_gpu_form *form = block->forms; form != NULL; form = form->next) {
        bytes += (int64_t)form->bytes;
    }
    return bytes;
}

void tnd_gpu_give_back(struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    struct tnd_gpu_memory *memory = device->memory;
    if (block == NULL) {
        return;
    }
    pthread_mutex_lock(&memory->lock);
    struct tnd_gpu_block **place = &memory->blocks;
    while (*place != block) {
        TND_ASSERT(*place != NULL);
        place = &(*place)->next;
    }
    *place = block->next;
    memory->weight_bytes -= block->is_weight ? bytes_of(block) : 0;
    memory->mirror_bytes -= block->is_weight ? 0 : (int64_t)block->bytes;
    memory->n_weights -= block->is_weight;
    memory->n_mirrors -= !block->is_weight;
    pthread_mutex_unlock(&memory->lock);
    tnd_gpu_free_block(device, block);
}

/* ---- mirrors ---- */

enum tandem_status tnd_gpu_map(struct tnd_gpu_device *device, size_t bytes,
                               struct tnd_gpu_block **out_block, struct tandem_error *error)
{
    struct tnd_gpu_block *block = tnd_gpu_new_block(device, bytes, NULL, error);
    if (block == NULL) {
        return TANDEM_E_MEMORY;
    }
    enum tandem_status status = tnd_gpu_make_buffer(device, bytes, &block->buffer, error);
    if (status != TANDEM_OK) {
        tnd_free(block);
        return status;
    }
    tnd_gpu_add_block(device, block);
    *out_block = block;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_upload(struct tnd_gpu_device *device, struct tandem_place to,
                                  const void *from, size_t bytes, struct tandem_error *error)
{
    struct tnd_gpu_range range = {NULL, 0};
    if (bytes == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_find(device, to, bytes, &range, error));
    int n_reads = 0;
    TND_TRY(tnd_gpu_stream_await(device, to.handle, error));
    TND_TRY(tnd_gpu_await_reads(device, to, bytes, &n_reads, error));
    TND_TRY(tnd_gpu_write(device, range, from, bytes, error));
    return tnd_gpu_stream_mark(device, to.handle, error);
}

enum tandem_status tnd_gpu_download(struct tnd_gpu_device *device, struct tandem_place from,
                                    void *to, size_t bytes, uint64_t *out_ticket,
                                    struct tandem_error *error)
{
    struct tnd_gpu_range range = {NULL, 0};
    if (bytes > 0) {
        TND_TRY(tnd_gpu_find(device, from, bytes, &range, error));
        TND_TRY(tnd_gpu_stream_await(device, from.handle, error));
    }
    TND_TRY(tnd_gpu_read(device, from, range, to, bytes, out_ticket, error));
    return tnd_gpu_stream_mark(device, from.handle, error);
}
