/* SPDX-License-Identifier: MIT
 * Resident weights: small ones in shared buffers, others shared with the host or copied to the
 * device, once, within a budget; and other forms of them. */
#include <string.h>

#include "backends/gpu/gpu_memory_state.h"
#include "backends/gpu/gpu_transfer.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"

enum { PAGE_BYTES = 4096, PROBE_BYTES = 64 };

/* ---- weights ---- */

/* Whether the device sees the host's bytes in this buffer. Some drivers notice only when a command
 * uses the buffer that they cannot access its pages (such as those of a file mapped read-only). */
static bool is_seen(const struct tnd_gpu_device *device, const struct tnd_gpu_block *block)
{
    unsigned char seen[PROBE_BYTES];
    size_t n = block->bytes < sizeof(seen) ? block->bytes : sizeof(seen);
    struct tnd_gpu_buffer *probe = NULL;
    if (tnd_gpu_make_buffer(device, sizeof(seen), &probe, NULL) != TANDEM_OK) {
        return false;
    }
    /* the device does the copy; a read of the buffer itself might be done by the host */
    bool is_copied =
        device->driver->copy(device->context, block->buffer, block->offset + block->bytes - n,
                             probe, 0, n, NULL) == TANDEM_OK &&
        device->driver->read(device->context, TND_GPU_QUEUE_WORK, NULL, probe, 0, seen, n, NULL,
                             NULL) == TANDEM_OK;
    device->driver->buffer_free(device->context, probe);
    return is_copied && memcmp(seen, (const unsigned char *)block->host + block->bytes - n, n) == 0;
}

/* Uses the host's own pages as a buffer that the device reads, without a copy. The pages around the
 * weight are readable, and nothing writes to this buffer. False if the driver cannot. */
static bool share_weight(const struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    uintptr_t first = (uintptr_t)block->host / PAGE_BYTES * PAGE_BYTES;
    size_t bytes = 0;
    if (!device->caps.unified ||
        !tnd_align_up((uintptr_t)block->host - first + block->bytes, PAGE_BYTES, &bytes) ||
        bytes > device->caps.max_alloc_bytes) {
        return false;
    }
    struct tnd_gpu_buffer *buffer =
        device->driver->buffer_share != NULL
            ? device->driver->buffer_share(device->context, (const void *)first, bytes)
            : NULL;
    if (buffer == NULL) {
        return false;
    }
    block->buffer = buffer;
    block->offset = (uintptr_t)block->host - first;
    block->is_host = is_seen(device, block);
    if (!block->is_host) {
        device->driver->buffer_unshare(device->context, buffer);
        block->buffer = NULL;
        block->offset = 0;
    }
    return block->is_host;
}

static enum tandem_status place_weight(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                       struct tandem_error *error)
{
    const bool is_shared = tnd_gpu_share_buffer(device, block);
    if (!is_shared && share_weight(device, block)) {
        return TANDEM_OK;
    }
    if (!is_shared) {
        TND_TRY(tnd_gpu_make_buffer(device, block->bytes, &block->buffer, error));
    }
    const struct tnd_gpu_range to = {block->buffer, block->offset};
    const enum tandem_status status = tnd_gpu_write(device, to, block->host, block->bytes, error);
    if (status != TANDEM_OK) {
        tnd_gpu_release_buffer(device, block);
    }
    return status;
}

/* DEVICE_MEMORY when the budget has not `bytes` bytes left. */
static enum tandem_status check_budget(struct tnd_gpu_device *device, const char *what,
                                       size_t bytes, struct tandem_error *error)
{
    struct tnd_gpu_memory *memory = device->memory;
    pthread_mutex_lock(&memory->lock);
    int64_t left = memory->budget - memory->weight_bytes;
    pthread_mutex_unlock(&memory->lock);
    if (bytes <= INT64_MAX / 2 && (int64_t)bytes <= left) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_DEVICE_MEMORY, what, (int64_t)bytes, left,
                         "%s device '%.40s': '%.40s' needs %zu bytes, %lld of the budget of "
                         "%lld are left",
                         device->driver->name, device->name, what, bytes, (long long)left,
                         (long long)memory->budget);
}

enum tandem_status tnd_gpu_prepare(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                   struct tnd_gpu_block **out_block, struct tandem_error *error)
{
    size_t bytes = tnd_gpu_span(weight);
    *out_block = NULL;
    if (bytes == 0) {
        return TANDEM_OK;
    }
    TND_TRY(check_budget(device, weight->name, bytes, error));
    struct tnd_gpu_block *block = tnd_gpu_new_block(device, bytes, weight->data, error);
    if (block == NULL) {
        return TANDEM_E_MEMORY;
    }
    block->is_row = tnd_tensor_rows(weight) == 1;
    enum tandem_status status = place_weight(device, block, error);
    if (status != TANDEM_OK) {
        tnd_free(block);
        return status;
    }
    tnd_gpu_add_block(device, block);
    *out_block = block;
    return TANDEM_OK;
}

/* ---- other forms of weights ---- */

static struct tnd_gpu_form *find_known(const struct tnd_gpu_block *block, int form, size_t offset,
                                       size_t bytes)
{
    struct tnd_gpu_form *known = block->forms;
    while (known != NULL &&
           (known->form != form || known->offset != offset || known->bytes != bytes)) {
        known = known->next;
    }
    return known;
}

static enum tandem_status make_form(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                    struct tnd_gpu_range from, struct tnd_gpu_form *form,
                                    tnd_gpu_make_form *make, struct tandem_error *error)
{
    TND_TRY(tnd_gpu_make_buffer(device, form->bytes, &form->buffer, error));
    struct tnd_gpu_range to = {form->buffer, 0};
    enum tandem_status status = make(device, weight, from, to, error);
    if (status != TANDEM_OK) {
        device->driver->buffer_free(device->context, form->buffer);
    }
    return status;
}

enum tandem_status tnd_gpu_find_form(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                     struct tandem_place place, int form, size_t bytes,
                                     tnd_gpu_make_form *make, struct tnd_gpu_range *out_range,
                                     struct tandem_error *error)
{
    struct tnd_gpu_block *block = place.handle;
    struct tnd_gpu_range from = {NULL, 0};
    if (block == NULL || !block->is_weight) {
        return tnd_error_set(error, TANDEM_E_STATE, weight->name, (int64_t)bytes, 0,
                             "%s device '%.60s': weight '%.60s' is not on the device",
                             device->driver->name, device->name, weight->name);
    }
    const struct tnd_gpu_form *known = find_known(block, form, place.offset, bytes);
    if (known != NULL) {
        *out_range = (struct tnd_gpu_range){known->buffer, 0};
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_find(device, place, tnd_gpu_span(weight), &from, error));
    TND_TRY(check_budget(device, weight->name, bytes, error));
    struct tnd_gpu_form *made = tnd_calloc(1, sizeof(*made));
    if (made == NULL) {
        return tnd_gpu_no_memory(device, sizeof(*made), error);
    }
    *made = (struct tnd_gpu_form){block->forms, form, place.offset, bytes, NULL};
    enum tandem_status status = make_form(device, weight, from, made, make, error);
    if (status != TANDEM_OK) {
        tnd_free(made);
        return status;
    }
    block->forms = made;
    tnd_gpu_count_weights(device, (int64_t)bytes);
    *out_range = (struct tnd_gpu_range){made->buffer, 0};
    return TANDEM_OK;
}

void tnd_gpu_keep_form_only(struct tnd_gpu_device *device, const tandem_tensor *weight,
                            struct tandem_place place)
{
    struct tnd_gpu_block *block = place.handle;
    if (block->buffer != NULL && block->bytes == tnd_gpu_span(weight) && block->forms != NULL &&
        !block->is_host && !block->is_wanted) {
        tnd_gpu_release_buffer(device, block);
        tnd_gpu_count_weights(device, -(int64_t)block->bytes);
    }
}

enum tandem_status tnd_gpu_original(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    struct tnd_gpu_range *out_range, struct tandem_error *error)
{
    struct tnd_gpu_block *block = work->places != NULL ? work->places->src[0].handle : NULL;
    if (block != NULL && block->buffer == NULL) { /* only its forms are there */
        TND_ASSERT(block->is_weight);
        TND_TRY(check_budget(device, work->node->src[0]->name, block->bytes, error));
        TND_TRY(place_weight(device, block, error));
        block->is_wanted = true;
        tnd_gpu_count_weights(device, (int64_t)block->bytes);
    }
    return tnd_gpu_operand(device, work, 0, out_range, error);
}
