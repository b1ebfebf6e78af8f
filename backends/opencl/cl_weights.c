/* SPDX-License-Identifier: MIT
 * Resident weights: shared with the host or copied to the device once, within a budget, and other
 * forms of them. */
#include <string.h>

#include "backends/opencl/cl_memory_state.h"
#include "backends/opencl/cl_transfer.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "ggml-like/tnd_tensor.h"

enum { PAGE_BYTES = 4096, PROBE_BYTES = 64 };

/* ---- weights ---- */

/* Whether the device sees the host's bytes in this buffer. Drivers may find out only when a command
 * uses it that they cannot have the pages (of a file that is mapped for reading, say). */
static bool is_seen(const struct tnd_cl_device *device, const struct tnd_cl_region *row)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    unsigned char seen[PROBE_BYTES];
    size_t n = row->bytes < sizeof(seen) ? row->bytes : sizeof(seen);
    cl_int code = CL_SUCCESS;
    cl_mem probe = cl->CreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof(seen), NULL, &code);
    if (code != CL_SUCCESS) {
        return false;
    }
    /* The copy is the device's work; reading the buffer itself might be the host's. */
    code = cl->EnqueueCopyBuffer(device->queue, row->buffer, probe, row->offset + row->bytes - n, 0,
                                 n, 0, NULL, NULL);
    if (code == CL_SUCCESS) {
        code = cl->EnqueueReadBuffer(device->queue, probe, CL_TRUE, 0, n, seen, 0, NULL, NULL);
    }
    cl->ReleaseMemObject(probe);
    return code == CL_SUCCESS &&
           memcmp(seen, (const unsigned char *)row->begin + row->bytes - n, n) == 0;
}

/* The host's own pages as a buffer that the device reads: no copy. The pages around the weight are
 * readable, and nothing writes to this buffer. False where the driver cannot. */
static bool share_weight(const struct tnd_cl_device *device, struct tnd_cl_region *row)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    uintptr_t first = row->begin / PAGE_BYTES * PAGE_BYTES;
    size_t bytes = 0;
    cl_int code = CL_SUCCESS;
    if (!device->caps.unified ||
        !tnd_align_up(row->begin - first + row->bytes, PAGE_BYTES, &bytes) ||
        bytes > device->caps.max_alloc_bytes) {
        return false;
    }
    cl_mem buffer = cl->CreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes,
                                     (void *)first, &code);
    if (code != CL_SUCCESS) {
        return false;
    }
    row->buffer = buffer;
    row->offset = row->begin - first;
    row->is_host = is_seen(device, row);
    if (!row->is_host) {
        cl->ReleaseMemObject(buffer);
        row->buffer = NULL;
        row->offset = 0;
    }
    return row->is_host;
}

static enum tandem_status place_weight(struct tnd_cl_device *device, struct tnd_cl_region *row,
                                       struct tandem_error *error)
{
    if (share_weight(device, row)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_cl_make_buffer(device, CL_MEM_READ_ONLY, row->bytes, &row->buffer, error));
    struct tnd_cl_range to = {row->buffer, 0};
    enum tandem_status status =
        tnd_cl_write(device, to, (const void *)row->begin, row->bytes, error);
    if (status != TANDEM_OK) {
        tnd_cl_region_free(device, row);
    }
    return status;
}

/* Weights at these addresses of a context that is gone, or in other parts than now. */
static void drop_weights(struct tnd_cl_device *device, uintptr_t begin, size_t bytes)
{
    struct tnd_cl_memory *memory = device->memory;
    for (;;) {
        struct tnd_cl_region row = {0};
        pthread_mutex_lock(&memory->lock);
        int at = tnd_cl_regions_at(&memory->weights, begin);
        bool found = at < memory->weights.n && memory->weights.rows[at].begin < begin + bytes;
        if (found) {
            row = tnd_cl_regions_take(&memory->weights, at);
        }
        pthread_mutex_unlock(&memory->lock);
        if (!found) {
            return;
        }
        tnd_cl_region_free(device, &row);
    }
}

static enum tandem_status over_budget(const struct tnd_cl_device *device, const char *what,
                                      size_t bytes, int64_t resident, struct tandem_error *error)
{
    int64_t budget = device->memory->budget;
    return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, what, (int64_t)bytes, budget - resident,
                         "opencl device '%.40s': '%.40s' needs %zu bytes, %lld of the budget of "
                         "%lld are left",
                         device->name, what, bytes, (long long)(budget - resident),
                         (long long)budget);
}

enum tandem_status tnd_cl_prepare(struct tnd_cl_device *device, const tandem_tensor *weight,
                                  struct tandem_error *error)
{
    struct tnd_cl_memory *memory = device->memory;
    struct tnd_cl_region row = {.begin = (uintptr_t)weight->data,
                                .bytes = tnd_cl_span(weight),
                                .serial = tnd_context_serial(weight->context)};
    if (row.bytes == 0) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&memory->lock);
    const struct tnd_cl_region *old = tnd_cl_regions_find(&memory->weights, row.begin, row.bytes);
    bool is_there = old != NULL && old->serial == row.serial;
    pthread_mutex_unlock(&memory->lock);
    if (is_there) {
        return TANDEM_OK;
    }
    drop_weights(device, row.begin, row.bytes);
    pthread_mutex_lock(&memory->lock);
    int64_t resident = memory->weights.bytes;
    pthread_mutex_unlock(&memory->lock);
    if (row.bytes > INT64_MAX / 2 || (int64_t)row.bytes > memory->budget - resident) {
        return over_budget(device, weight->name, row.bytes, resident, error);
    }
    TND_TRY(place_weight(device, &row, error));
    pthread_mutex_lock(&memory->lock);
    /* Another thread may have been quicker. */
    is_there = tnd_cl_regions_overlap(&memory->weights, row.begin, row.bytes);
    bool added = !is_there && tnd_cl_regions_insert(&memory->weights, &row);
    pthread_mutex_unlock(&memory->lock);
    if (!added) {
        tnd_cl_region_free(device, &row);
    }
    return added || is_there ? TANDEM_OK
                             : tnd_error_set(error, TANDEM_E_MEMORY, device->name, 0, 0,
                                             "backend opencl: no memory for the list of weights");
}

void tnd_cl_forget(struct tnd_cl_device *device, const tandem_tensor *weight)
{
    size_t bytes = tnd_cl_span(weight);
    if (bytes > 0) {
        drop_weights(device, (uintptr_t)weight->data, bytes);
    }
}

/* ---- other forms of weights ---- */

static bool find_known_form(struct tnd_cl_memory *memory, const tandem_tensor *weight, size_t span,
                            int form, size_t bytes, struct tnd_cl_range *out_range,
                            struct tnd_cl_range *out_weight, int64_t *out_resident)
{
    bool found = false;
    uintptr_t begin = (uintptr_t)weight->data;
    pthread_mutex_lock(&memory->lock);
    const struct tnd_cl_region *row = tnd_cl_regions_find(&memory->weights, begin, span);
    *out_weight = (struct tnd_cl_range){NULL, 0};
    *out_resident = memory->weights.bytes;
    if (row != NULL) {
        *out_weight = (struct tnd_cl_range){row->buffer, row->offset + (begin - row->begin)};
        for (int i = 0; i < row->n_forms && !found; i++) {
            found = row->forms[i].form == form && row->forms[i].begin == begin &&
                    row->forms[i].bytes == bytes;
            *out_range = (struct tnd_cl_range){row->forms[i].buffer, 0};
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return found;
}

static bool add_form(struct tnd_cl_memory *memory, const tandem_tensor *weight, size_t span,
                     const struct tnd_cl_form *form)
{
    bool added = false;
    pthread_mutex_lock(&memory->lock);
    struct tnd_cl_region *row =
        tnd_cl_regions_find(&memory->weights, (uintptr_t)weight->data, span);
    if (row != NULL) {
        size_t bytes = sizeof(*form);
        struct tnd_cl_form *grown = tnd_realloc(row->forms, (size_t)row->n_forms * bytes,
                                                (size_t)(row->n_forms + 1) * bytes);
        if (grown != NULL) {
            row->forms = grown;
            row->forms[row->n_forms++] = *form;
            memory->weights.bytes += (int64_t)form->bytes;
            added = true;
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return added;
}

enum tandem_status tnd_cl_find_form(struct tnd_cl_device *device, const tandem_tensor *weight,
                                    int form, size_t bytes, tnd_cl_make_form *make,
                                    struct tnd_cl_range *out_range, struct tandem_error *error)
{
    struct tnd_cl_memory *memory = device->memory;
    struct tnd_cl_range known = {NULL, 0};
    struct tnd_cl_range from = {NULL, 0};
    size_t span = tnd_cl_span(weight);
    int64_t resident = 0;
    if (find_known_form(memory, weight, span, form, bytes, &known, &from, &resident)) {
        *out_range = known;
        return TANDEM_OK;
    }
    if (from.buffer == NULL) {
        return tnd_error_set(error, TANDEM_E_STATE, weight->name, (int64_t)bytes, 0,
                             "opencl device '%.60s': weight '%.60s' is not on the device",
                             device->name, weight->name);
    }
    if (bytes > INT64_MAX / 2 || (int64_t)bytes > memory->budget - resident) {
        return over_budget(device, weight->name, bytes, resident, error);
    }
    struct tnd_cl_form made = {form, (uintptr_t)weight->data, bytes, NULL};
    TND_TRY(tnd_cl_make_buffer(device, CL_MEM_READ_WRITE, bytes, &made.buffer, error));
    struct tnd_cl_range to = {made.buffer, 0};
    enum tandem_status status = make(device, weight, from, to, error);
    if (status == TANDEM_OK && !add_form(memory, weight, span, &made)) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, weight->name, 0, 0,
                               "backend opencl: no memory for the list of weights");
    }
    if (status != TANDEM_OK) {
        device->library->cl.ReleaseMemObject(made.buffer);
        return status;
    }
    *out_range = to;
    return TANDEM_OK;
}

void tnd_cl_keep_form_only(struct tnd_cl_device *device, const tandem_tensor *weight)
{
    struct tnd_cl_memory *memory = device->memory;
    size_t span = tnd_cl_span(weight);
    cl_mem buffer = NULL;
    pthread_mutex_lock(&memory->lock);
    struct tnd_cl_region *row =
        tnd_cl_regions_find(&memory->weights, (uintptr_t)weight->data, span);
    if (row != NULL && row->bytes == span && row->n_forms > 0 && !row->is_host && !row->is_wanted) {
        buffer = row->buffer;
        memory->weights.bytes -= buffer != NULL ? (int64_t)row->bytes : 0;
        row->buffer = NULL;
    }
    pthread_mutex_unlock(&memory->lock);
    if (buffer != NULL) {
        device->library->cl.ReleaseMemObject(buffer);
    }
}

/* Puts a copy of a weight's original where only its forms were. */
static enum tandem_status bring_back(struct tnd_cl_device *device, const tandem_tensor *tensor,
                                     struct tandem_error *error)
{
    struct tnd_cl_memory *memory = device->memory;
    uintptr_t begin = (uintptr_t)tensor->data;
    size_t span = tnd_cl_span(tensor);
    struct tnd_cl_region copy = {0};
    pthread_mutex_lock(&memory->lock);
    struct tnd_cl_region *row = tnd_cl_regions_find(&memory->weights, begin, span);
    if (row != NULL && row->buffer == NULL) {
        copy =
            (struct tnd_cl_region){.begin = row->begin, .bytes = row->bytes, .serial = row->serial};
    }
    int64_t resident = memory->weights.bytes;
    pthread_mutex_unlock(&memory->lock);
    if (copy.bytes == 0) {
        return TANDEM_OK;
    }
    if ((int64_t)copy.bytes > memory->budget - resident) {
        return over_budget(device, tensor->name, copy.bytes, resident, error);
    }
    TND_TRY(place_weight(device, &copy, error));
    pthread_mutex_lock(&memory->lock);
    row = tnd_cl_regions_find(&memory->weights, begin, span);
    /* Otherwise it was forgotten meanwhile. */
    bool is_missing = row != NULL && row->buffer == NULL && row->begin == copy.begin &&
                      row->bytes == copy.bytes && row->serial == copy.serial;
    if (is_missing) {
        row->buffer = copy.buffer;
        row->offset = copy.offset;
        row->is_host = copy.is_host;
        row->is_wanted = true;
        memory->weights.bytes += (int64_t)copy.bytes;
    }
    pthread_mutex_unlock(&memory->lock);
    if (!is_missing) {
        tnd_cl_region_free(device, &copy);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cl_find_original(struct tnd_cl_device *device, const tandem_tensor *tensor,
                                        struct tnd_cl_range *out_range, struct tandem_error *error)
{
    if (tnd_cl_find_tensor(device, tensor, out_range, NULL) == TANDEM_OK) {
        return TANDEM_OK;
    }
    TND_TRY(bring_back(device, tensor, error));
    return tnd_cl_find_tensor(device, tensor, out_range, error);
}
