/* SPDX-License-Identifier: MIT
 * Device memory by host address. Two sorted lists: mirrors, and resident weights. A buffer that is
 * given up while commands use it is kept by the driver until they are over (OpenCL 1.2, section
 * 5.2: clReleaseMemObject), so nothing here waits for the queue, except where a buffer lies in the
 * host's own memory, which may go away. */
#include "backends/opencl/cl_memory.h"

#include <stdint.h>
#include <string.h>

#include "backends/opencl/cl_transfer.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "ggml-like/tnd_tensor.h"

enum {
    PAGE_BYTES = 4096,
    PROBE_BYTES = 64,
    N_SCRATCH = TND_CL_SCRATCH_COUNT,
    SCRATCH_STEP = 1 << 20
};

/* Another layout of a weight. */
struct form {
    int form;
    uintptr_t begin; /* of the tensor: a region may hold several */
    size_t bytes;
    cl_mem buffer;
};

/* A range of host addresses that the device has. */
struct region {
    uintptr_t begin;
    size_t bytes;
    cl_mem buffer;   /* NULL: a weight of which only a form is kept */
    size_t offset;   /* of `begin` in the buffer */
    bool is_host;    /* the buffer is the host's memory */
    bool is_wanted;  /* as it is on the host, whatever forms it has */
    uint64_t serial; /* of a weight's context */
    struct form *forms;
    int n_forms;
};

/* Sorted by begin, without overlaps. */
struct regions {
    struct region *rows;
    int n;
    int capacity;
    int64_t bytes; /* on the device, forms included */
};

struct tnd_cl_memory {
    pthread_mutex_t lock; /* guards all members; taken alone, never while waiting for the device */
    struct regions mirrors;
    struct regions weights;
    int64_t budget;
    struct tnd_cl_range scratch[N_SCRATCH]; /* offset: bytes. Under submit_lock */
};

/* ---- lists ---- */

/* Index of the first region that ends behind `address`. */
static int lower_bound(const struct regions *regions, uintptr_t address)
{
    int low = 0;
    int high = regions->n;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct region *row = &regions->rows[middle];
        if (row->begin + row->bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The region that has all of these bytes, or NULL. */
static struct region *find_region(const struct regions *regions, uintptr_t address, size_t bytes)
{
    int i = lower_bound(regions, address);
    if (i == regions->n) {
        return NULL;
    }
    struct region *row = &regions->rows[i];
    bool inside =
        row->begin <= address && bytes <= row->bytes && address - row->begin <= row->bytes - bytes;
    return inside ? row : NULL;
}

static bool overlaps(const struct regions *regions, uintptr_t address, size_t bytes)
{
    int i = lower_bound(regions, address);
    return i < regions->n && regions->rows[i].begin < address + bytes;
}

static bool insert(struct regions *regions, const struct region *row)
{
    if (regions->n == regions->capacity) {
        int capacity = regions->capacity * 2 + 16;
        struct region *grown =
            tnd_realloc(regions->rows, (size_t)regions->capacity * sizeof(*grown),
                        (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        regions->rows = grown;
        regions->capacity = capacity;
    }
    int at = lower_bound(regions, row->begin);
    memmove(regions->rows + at + 1, regions->rows + at,
            (size_t)(regions->n - at) * sizeof(*regions->rows));
    regions->rows[at] = *row;
    regions->n++;
    regions->bytes += (int64_t)row->bytes;
    return true;
}

/* Takes a region out of its list; it is the caller's now. */
static struct region take_out(struct regions *regions, int at)
{
    struct region row = regions->rows[at];
    regions->n--;
    memmove(regions->rows + at, regions->rows + at + 1,
            (size_t)(regions->n - at) * sizeof(*regions->rows));
    regions->bytes -= row.buffer != NULL ? (int64_t)row.bytes : 0;
    for (int i = 0; i < row.n_forms; i++) {
        regions->bytes -= (int64_t)row.forms[i].bytes;
    }
    return row;
}

/* Not under the lock: may wait for the device. */
static void free_region(const struct tnd_cl_device *device, struct region *row)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    if (row->is_host) {
        cl->Finish(device->queue);
    }
    for (int i = 0; i < row->n_forms; i++) {
        cl->ReleaseMemObject(row->forms[i].buffer);
    }
    if (row->buffer != NULL) {
        cl->ReleaseMemObject(row->buffer);
    }
    tnd_free(row->forms);
}

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

static void free_regions(const struct tnd_cl_device *device, struct regions *regions)
{
    for (int i = 0; i < regions->n; i++) {
        free_region(device, &regions->rows[i]);
    }
    tnd_free(regions->rows);
}

void tnd_cl_memory_close(struct tnd_cl_device *device)
{
    struct tnd_cl_memory *memory = device->memory;
    if (memory != NULL) {
        free_regions(device, &memory->mirrors);
        free_regions(device, &memory->weights);
        for (int i = 0; i < N_SCRATCH; i++) {
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
    const struct region *row = find_region(&memory->mirrors, begin, bytes);
    if (row == NULL) {
        row = find_region(&memory->weights, begin, bytes);
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

/* Bytes from the first to behind the last element. */
static size_t span_of(const tandem_tensor *tensor)
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
    size_t bytes = span_of(tensor);
    if (bytes == 0) {
        *out_range = (struct tnd_cl_range){NULL, 0};
        return TANDEM_OK;
    }
    return tnd_cl_find(device, tensor->data, bytes, out_range, error);
}

/* ---- buffers ---- */

static enum tandem_status make_buffer(const struct tnd_cl_device *device, cl_mem_flags flags,
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
        TND_TRY(make_buffer(device, CL_MEM_READ_WRITE, rounded, &buffer, error));
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
    struct region row = {.begin = (uintptr_t)begin, .bytes = bytes};
    if (bytes == 0) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&memory->lock);
    const struct region *old = find_region(&memory->mirrors, row.begin, bytes);
    bool is_mapped = old != NULL && old->begin == row.begin && old->bytes == bytes;
    bool is_mixed = !is_mapped && overlaps(&memory->mirrors, row.begin, bytes);
    pthread_mutex_unlock(&memory->lock);
    if (is_mapped) {
        return TANDEM_OK;
    }
    if (is_mixed) {
        return tnd_error_set(error, TANDEM_E_STATE, device->name, (int64_t)bytes, 0,
                             "opencl device '%.60s': %zu bytes at %p overlap a mirror",
                             device->name, bytes, begin);
    }
    TND_TRY(make_buffer(device, CL_MEM_READ_WRITE, bytes, &row.buffer, error));
    pthread_mutex_lock(&memory->lock);
    bool added = insert(&memory->mirrors, &row);
    pthread_mutex_unlock(&memory->lock);
    if (!added) {
        free_region(device, &row);
        return tnd_error_set(error, TANDEM_E_MEMORY, device->name, 0, 0,
                             "backend opencl: no memory for the list of mirrors");
    }
    return TANDEM_OK;
}

void tnd_cl_unmap(struct tnd_cl_device *device, void *begin)
{
    struct tnd_cl_memory *memory = device->memory;
    struct region row = {0};
    pthread_mutex_lock(&memory->lock);
    int at = lower_bound(&memory->mirrors, (uintptr_t)begin);
    bool found = at < memory->mirrors.n && memory->mirrors.rows[at].begin == (uintptr_t)begin;
    if (found) {
        row = take_out(&memory->mirrors, at);
    }
    pthread_mutex_unlock(&memory->lock);
    if (found) {
        free_region(device, &row);
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

/* ---- weights ---- */

/* Whether the device sees the host's bytes in this buffer. Drivers may find out only when a command
 * uses it that they cannot have the pages (of a file that is mapped for reading, say). */
static bool is_seen(const struct tnd_cl_device *device, const struct region *row)
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
static bool share_weight(const struct tnd_cl_device *device, struct region *row)
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

static enum tandem_status place_weight(struct tnd_cl_device *device, struct region *row,
                                       struct tandem_error *error)
{
    if (share_weight(device, row)) {
        return TANDEM_OK;
    }
    TND_TRY(make_buffer(device, CL_MEM_READ_ONLY, row->bytes, &row->buffer, error));
    struct tnd_cl_range to = {row->buffer, 0};
    enum tandem_status status =
        tnd_cl_write(device, to, (const void *)row->begin, row->bytes, error);
    if (status != TANDEM_OK) {
        free_region(device, row);
    }
    return status;
}

/* Weights at these addresses of a context that is gone, or in other parts than now. */
static void drop_weights(struct tnd_cl_device *device, uintptr_t begin, size_t bytes)
{
    struct tnd_cl_memory *memory = device->memory;
    for (;;) {
        struct region row = {0};
        pthread_mutex_lock(&memory->lock);
        int at = lower_bound(&memory->weights, begin);
        bool found = at < memory->weights.n && memory->weights.rows[at].begin < begin + bytes;
        if (found) {
            row = take_out(&memory->weights, at);
        }
        pthread_mutex_unlock(&memory->lock);
        if (!found) {
            return;
        }
        free_region(device, &row);
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
    struct region row = {.begin = (uintptr_t)weight->data,
                         .bytes = span_of(weight),
                         .serial = tnd_context_serial(weight->context)};
    if (row.bytes == 0) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&memory->lock);
    const struct region *old = find_region(&memory->weights, row.begin, row.bytes);
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
    is_there = overlaps(&memory->weights, row.begin, row.bytes);
    bool added = !is_there && insert(&memory->weights, &row);
    pthread_mutex_unlock(&memory->lock);
    if (!added) {
        free_region(device, &row);
    }
    return added || is_there ? TANDEM_OK
                             : tnd_error_set(error, TANDEM_E_MEMORY, device->name, 0, 0,
                                             "backend opencl: no memory for the list of weights");
}

void tnd_cl_forget(struct tnd_cl_device *device, const tandem_tensor *weight)
{
    size_t bytes = span_of(weight);
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
    const struct region *row = find_region(&memory->weights, begin, span);
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
                     const struct form *form)
{
    bool added = false;
    pthread_mutex_lock(&memory->lock);
    struct region *row = find_region(&memory->weights, (uintptr_t)weight->data, span);
    if (row != NULL) {
        size_t bytes = sizeof(*form);
        struct form *grown = tnd_realloc(row->forms, (size_t)row->n_forms * bytes,
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
    size_t span = span_of(weight);
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
    struct form made = {form, (uintptr_t)weight->data, bytes, NULL};
    TND_TRY(make_buffer(device, CL_MEM_READ_WRITE, bytes, &made.buffer, error));
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
    size_t span = span_of(weight);
    cl_mem buffer = NULL;
    pthread_mutex_lock(&memory->lock);
    struct region *row = find_region(&memory->weights, (uintptr_t)weight->data, span);
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
    size_t span = span_of(tensor);
    struct region copy = {0};
    pthread_mutex_lock(&memory->lock);
    struct region *row = find_region(&memory->weights, begin, span);
    if (row != NULL && row->buffer == NULL) {
        copy = (struct region){.begin = row->begin, .bytes = row->bytes, .serial = row->serial};
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
    row = find_region(&memory->weights, begin, span);
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
        free_region(device, &copy);
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
