/* SPDX-License-Identifier: MIT
 * Device memory by host address. Mirrors here, resident weights in cl_weights.c. A buffer that is
 * given up while commands use it is kept by the driver until they are over (OpenCL 1.2, section
 * 5.2: clReleaseMemObject), so nothing here waits for the queue, except where a buffer lies in the
 * host's own memory, which may go away. */
#include "backends/opencl/cl_memory.h"

#include "backends/opencl/cl_memory_state.h"
#include "backends/opencl/cl_transfer.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "ggml-like/tnd_tensor.h"

enum { SCRATCH_STEP = 1 << 20 };

/* ---- opening ---- */

enum tandem_status tnd_cl_memory_open(struct tnd_cl_device *device, uint64_t budget_bytes,
                                      struct tandem_error *error)
{
    struct tnd_cl_memory *memory = tnd_calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "opencl", (int64_t)sizeof(*memory), 0,
                             "backend opencl: no memory");
    }
    enum tandem_status status = tnd_cl_transfer_open(device, error);
    if (status != TANDEM_OK) {
        tnd_free(memory);
        return status;
    }
    /* A fifth stays for activations, the KV cache and programs. */
    uint64_t budget = budget_bytes != 0 ? budget_bytes : device->caps.global_bytes / 5 * 4;
    memory->budget = budget < INT64_MAX ? (int64_t)budget : INT64_MAX;
    pthread_mutex_init(&memory->lock, NULL);
    device->memory = memory;
    return TANDEM_OK;
}

static void free_regions(const struct tnd_cl_device *device, struct tnd_cl_regions *regions)
{
    for (int i = 0; i < regions->n; i++) {
        tnd_cl_region_free(device, &regions->rows[i]);
    }
    tnd_free(regions->rows);
}

void tnd_cl_memory_close(struct tnd_cl_device *device)
{
    struct tnd_cl_memory *memory = device->memory;
    if (memory != NULL) {
        free_regions(device, &memory->mirrors);
        free_regions(device, &memory->weights);
        for (int i = 0; i < TND_CL_SCRATCH_COUNT; i++) {
            if (memory->scratch[i].buffer != NULL) {
                device->library->cl.ReleaseMemObject(memory->scratch[i].buffer);
            }
        }
        pthread_mutex_destroy(&memory->lock);
        tnd_free(memory);
        device->memory = NULL;
    }
    tnd_cl_transfer_close(device);
}

void tnd_cl_memory_count(struct tnd_cl_device *device, struct tnd_cl_statistics *statistics)
{
    struct tnd_cl_memory *memory = device->memory;
    tnd_cl_transfer_count(device, statistics);
    pthread_mutex_lock(&memory->lock);
    statistics->resident_bytes = memory->weights.bytes;
    statistics->resident_count = memory->weights.n;
    statistics->mirror_bytes = memory->mirrors.bytes;
    statistics->mirror_count = memory->mirrors.n;
    pthread_mutex_unlock(&memory->lock);
}

/* ---- finding ---- */

enum tandem_status tnd_cl_find(struct tnd_cl_device *device, const void *address, size_t bytes,
                               struct tnd_cl_range *out_range, struct tandem_error *error)
{
    struct tnd_cl_memory *memory = device->memory;
    uintptr_t begin = (uintptr_t)address;
    pthread_mutex_lock(&memory->lock);
    const struct tnd_cl_region *row = tnd_cl_regions_find(&memory->mirrors, begin, bytes);
    if (row == NULL) {
        row = tnd_cl_regions_find(&memory->weights, begin, bytes);
        row = row != NULL && row->buffer == NULL ? NULL : row;
    }
    if (row != NULL) {
        *out_range = (struct tnd_cl_range){row->buffer, row->offset + (begin - row->begin)};
    }
    pthread_mutex_unlock(&memory->lock);
    if (row == NULL) {
        return tnd_error_set(error, TANDEM_E_STATE, device->name, (int64_t)bytes, 0,
                             "opencl device '%.60s': %zu bytes at %p are not on the device",
                             device->name, bytes, address);
    }
    return TANDEM_OK;
}

size_t tnd_cl_span(const tandem_tensor *tensor)
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

enum tandem_status tnd_cl_find_tensor(struct tnd_cl_device *device, const tandem_tensor *tensor,
                                      struct tnd_cl_range *out_range, struct tandem_error *error)
{
    size_t bytes = tnd_cl_span(tensor);
    if (bytes == 0) {
        *out_range = (struct tnd_cl_range){NULL, 0};
        return TANDEM_OK;
    }
    return tnd_cl_find(device, tensor->data, bytes, out_range, error);
}

/* ---- buffers ---- */

enum tandem_status tnd_cl_make_buffer(const struct tnd_cl_device *device, cl_mem_flags flags,
                                      size_t bytes, cl_mem *out_buffer, struct tandem_error *error)
{
    if (bytes > device->caps.max_alloc_bytes) {
        return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, device->name, (int64_t)bytes,
                             (int64_t)device->caps.max_alloc_bytes,
                             "opencl device '%.60s': a buffer of %zu bytes, it takes up to %llu",
                             device->name, bytes, (unsigned long long)device->caps.max_alloc_bytes);
    }
    cl_int code = CL_SUCCESS;
    cl_mem buffer = device->library->cl.CreateBuffer(device->context, flags, bytes > 0 ? bytes : 1,
                                                     NULL, &code);
    TND_TRY(tnd_cl_check(device, "clCreateBuffer", code, error));
    *out_buffer = buffer;
    return TANDEM_OK;
}

enum tandem_status tnd_cl_scratch(struct tnd_cl_device *device, enum tnd_cl_scratch_slot slot,
                                  size_t bytes, struct tnd_cl_range *out_range,
                                  struct tandem_error *error)
{
    struct tnd_cl_range *scratch = &device->memory->scratch[slot];
    if (scratch->buffer == NULL || scratch->offset < bytes) {
        size_t rounded = 0;
        cl_mem buffer = NULL;
        if (!tnd_align_up(bytes, SCRATCH_STEP, &rounded)) {
            rounded = SIZE_MAX;
        }
        rounded = rounded > device->caps.max_alloc_bytes ? bytes : rounded;
        TND_TRY(tnd_cl_make_buffer(device, CL_MEM_READ_WRITE, rounded, &buffer, error));
        if (scratch->buffer != NULL) {
            device->library->cl.ReleaseMemObject(scratch->buffer);
        }
        *scratch = (struct tnd_cl_range){buffer, rounded};
    }
    *out_range = (struct tnd_cl_range){scratch->buffer, 0};
    return TANDEM_OK;
}

/* ---- mirrors ---- */

enum tandem_status tnd_cl_map(struct tnd_cl_device *device, void *begin, size_t bytes,
                              struct tandem_error *error)
{
    struct tnd_cl_memory *memory = device->memory;
    struct tnd_cl_region row = {.begin = (uintptr_t)begin, .bytes = bytes};
    if (bytes == 0) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&memory->lock);
    const struct tnd_cl_region *old = tnd_cl_regions_find(&memory->mirrors, row.begin, bytes);
    bool is_mapped = old != NULL && old->begin == row.begin && old->bytes == bytes;
    bool is_mixed = !is_mapped && tnd_cl_regions_overlap(&memory->mirrors, row.begin, bytes);
    pthread_mutex_unlock(&memory->lock);
    if (is_mapped) {
        return TANDEM_OK;
    }
    if (is_mixed) {
        return tnd_error_set(error, TANDEM_E_STATE, device->name, (int64_t)bytes, 0,
                             "opencl device '%.60s': %zu bytes at %p overlap a mirror",
                             device->name, bytes, begin);
    }
    TND_TRY(tnd_cl_make_buffer(device, CL_MEM_READ_WRITE, bytes, &row.buffer, error));
    pthread_mutex_lock(&memory->lock);
    bool added = tnd_cl_regions_insert(&memory->mirrors, &row);
    pthread_mutex_unlock(&memory->lock);
    if (!added) {
        tnd_cl_region_free(device, &row);
        return tnd_error_set(error, TANDEM_E_MEMORY, device->name, 0, 0,
                             "backend opencl: no memory for the list of mirrors");
    }
    return TANDEM_OK;
}

void tnd_cl_unmap(struct tnd_cl_device *device, void *begin)
{
    struct tnd_cl_memory *memory = device->memory;
    struct tnd_cl_region row = {0};
    pthread_mutex_lock(&memory->lock);
    int at = tnd_cl_regions_at(&memory->mirrors, (uintptr_t)begin);
    bool found = at < memory->mirrors.n && memory->mirrors.rows[at].begin == (uintptr_t)begin;
    if (found) {
        row = tnd_cl_regions_take(&memory->mirrors, at);
    }
    pthread_mutex_unlock(&memory->lock);
    if (found) {
        tnd_cl_region_free(device, &row);
    }
}

enum tandem_status tnd_cl_upload(struct tnd_cl_device *device, const void *begin, size_t bytes,
                                 struct tandem_error *error)
{
    struct tnd_cl_range range = {NULL, 0};
    if (bytes == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_cl_find(device, begin, bytes, &range, error));
    return tnd_cl_write(device, range, begin, bytes, error);
}

enum tandem_status tnd_cl_download(struct tnd_cl_device *device, void *begin, size_t bytes,
                                   uint64_t *out_ticket, struct tandem_error *error)
{
    struct tnd_cl_range range = {NULL, 0};
    if (bytes > 0) {
        TND_TRY(tnd_cl_find(device, begin, bytes, &range, error));
    }
    return tnd_cl_read(device, range, begin, bytes, out_ticket, error);
}
