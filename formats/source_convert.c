/* SPDX-License-Identifier: MIT
 * Converts the weight matrices of a source to another type, row by row via F32. */
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "formats/source.h"

#define DATA_ALIGNMENT 64

static enum tandem_type converted_type(const struct tandem_source_tensor *tensor,
                                       enum tandem_type type)
{
    return tnd_source_converts(tensor) && tensor->ne[0] % tandem_type_block_values(type) == 0
               ? type
               : tensor->type;
}

static int64_t rows_of(const struct tandem_source_tensor *tensor)
{
    return tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
}

/* Bytes of one tensor after conversion, and `out_step`: the same rounded up to the next tensor's
 * offset. */
static bool converted_bytes(const struct tandem_source_tensor *tensor, enum tandem_type type,
                            size_t *out_bytes, size_t *out_step)
{
    const enum tandem_type target = converted_type(tensor, type);
    size_t bytes = tensor->bytes;
    if (target != tensor->type && !tnd_mul_size(tandem_type_row_bytes(target, tensor->ne[0]),
                                                (size_t)rows_of(tensor), &bytes)) {
        return false;
    }
    *out_bytes = bytes;
    return tnd_align_up(bytes, DATA_ALIGNMENT, out_step);
}

static enum tandem_status convert_rows(const struct tandem_source_tensor *tensor,
                                       enum tandem_type target, unsigned char *to, float *row,
                                       struct tandem_error *error)
{
    const size_t from_bytes = tandem_type_row_bytes(tensor->type, tensor->ne[0]);
    const size_t to_bytes = tandem_type_row_bytes(target, tensor->ne[0]);
    const unsigned char *from = tensor->data;
    for (int64_t i = 0; i < rows_of(tensor); i++) {
        enum tandem_status status = tandem_dequantize(tensor->type, from, row, tensor->ne[0]);
        if (status == TANDEM_OK) {
            status = tandem_quantize(target, row, to, tensor->ne[0]);
        }
        if (status != TANDEM_OK) {
            return tnd_error_set(error, status, tensor->name, target, tensor->type,
                                 "%s: cannot convert %s to %s", tensor->name,
                                 tandem_type_name(tensor->type), tandem_type_name(target));
        }
        from += from_bytes;
        to += to_bytes;
    }
    return TANDEM_OK;
}

static enum tandem_status convert_tensors(const tandem_source *source, enum tandem_type type,
                                          tandem_source *copy, float *row,
                                          struct tandem_error *error)
{
    unsigned char *at = copy->memory;
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct tandem_source_tensor *tensor = &source->tensors[i];
        const enum tandem_type target = converted_type(tensor, type);
        size_t bytes = 0;
        size_t step = 0;
        (void)converted_bytes(tensor, type, &bytes, &step); /* did not overflow in take_memory */
        if (target == tensor->type) {
            memcpy(at, tensor->data, bytes);
        } else {
            TND_TRY(convert_rows(tensor, target, at, row, error));
        }
        TND_TRY(tnd_source_add(copy, tensor->name, target, tensor->n_dims, tensor->ne, at, bytes,
                               error));
        at += step;
    }
    return TANDEM_OK;
}

/* Allocates memory for all tensors, and for one row in F32. */
static enum tandem_status take_memory(const tandem_source *source, enum tandem_type type,
                                      void **out_memory, float **out_row,
                                      struct tandem_error *error)
{
    size_t sum = 0;
    size_t row_values = 1;
    for (size_t i = 0; i < source->n_tensors; i++) {
        size_t bytes;
        size_t step;
        if (!converted_bytes(&source->tensors[i], type, &bytes, &step) ||
            !tnd_add_size(sum, step, &sum)) {
            return tnd_error_set(error, TANDEM_E_OVERFLOW, source->tensors[i].name, 0, 0,
                                 "%s: the bytes as %s do not fit into the machine's integers",
                                 source->tensors[i].name, tandem_type_name(type));
        }
        if ((size_t)source->tensors[i].ne[0] > row_values) {
            row_values = (size_t)source->tensors[i].ne[0];
        }
    }
    size_t row_bytes;
    float *row = tnd_mul_size(row_values, sizeof(float), &row_bytes) ? tnd_alloc(row_bytes) : NULL;
    void *memory = tnd_alloc(sum);
    if (row == NULL || memory == NULL) {
        tnd_free(row);
        tnd_free(memory);
        return tnd_error_set(error, TANDEM_E_MEMORY, "convert", (int64_t)sum, 0,
                             "convert: no memory for %zu bytes of weights", sum);
    }
    *out_memory = memory;
    *out_row = row;
    return TANDEM_OK;
}

enum tandem_status tandem_source_convert(const tandem_source *source, enum tandem_type type,
                                         tandem_source **out_source, struct tandem_error *error)
{
    if (source == NULL || out_source == NULL || !tandem_type_is_valid(type) ||
        type == TANDEM_TYPE_I32) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "convert", type, 0,
                             "tandem_source_convert: expected a source, a place for the copy and a "
                             "type of weights, got type %s",
                             tandem_type_name(type));
    }
    tandem_source *copy;
    float *row = NULL;
    TND_TRY(tnd_source_new(source->format, &copy, error));
    enum tandem_status status = take_memory(source, type, &copy->memory, &row, error);
    if (status == TANDEM_OK) {
        status = convert_tensors(source, type, copy, row, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_source_copy_values(copy, source, "", error);
    }
    if (status == TANDEM_OK) {
        status = tnd_source_check(source, error);
    }
    tnd_free(row);
    return tnd_source_end(status, copy, out_source);
}
