/* SPDX-License-Identifier: MIT
 * Copying values between a program's memory and tensors. Knows strides and blocks, no operation and
 * no device. */
#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tensor_internal.h"

/* Checks a range and resolves TANDEM_ALL to the number of values from `first` on. */
static enum tandem_status check_range(const tandem_tensor *tensor, int64_t first, int64_t *io_n,
                                      const void *values, struct tandem_error *error)
{
    if (tensor == NULL || (values == NULL && *io_n != 0)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tensor", 0, 0, "tensor values: %s is NULL",
                             tensor == NULL ? "the tensor" : "the program's memory");
    }
    const int64_t all = tandem_tensor_elements(tensor);
    const int64_t block = tandem_type_block_values(tensor->type);
    if (*io_n == TANDEM_ALL && first >= 0 && first <= all) {
        *io_n = all - first;
    }
    if (first < 0 || *io_n < 0 || first > all || *io_n > all - first) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, tensor->name, first, all,
                             "tensor %s: %lld values from %lld on, it has %lld", tensor->name,
                             (long long)*io_n, (long long)first, (long long)all);
    }
    if (first % block != 0 || *io_n % block != 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, tensor->name, first, block,
                             "tensor %s: %lld values from %lld on are not whole blocks of %lld",
                             tensor->name, (long long)*io_n, (long long)first, (long long)block);
    }
    if (!tnd_tensor_has_values(tensor)) {
        return tnd_error_set(error, TANDEM_E_STATE, tensor->name, 0, 0,
                             "tensor %s: an intermediate result keeps no values; add it to the "
                             "graph as an output",
                             tensor->name);
    }
    return TANDEM_OK;
}

/* Address of value `at` in the order of ne (with blocks: the first of a block); `out_run`: how many
 * values follow it without a gap. */
static char *locate(const tandem_tensor *tensor, int64_t at, int64_t *out_run)
{
    const size_t block_bytes = tandem_type_block_bytes(tensor->type);
    const int64_t block = tandem_type_block_values(tensor->type);
    const int64_t column = at % tensor->ne[0];
    int64_t row = at / tensor->ne[0];
    size_t offset = (size_t)(column / block) * tensor->nb[0];
    for (int i = 1; i < TANDEM_MAX_DIMS; i++) {
        offset += (size_t)(row % tensor->ne[i]) * tensor->nb[i];
        row /= tensor->ne[i];
    }
    TND_ASSERT(row == 0 && offset + block_bytes <= tandem_tensor_bytes(tensor));
    *out_run = tensor->nb[0] == block_bytes ? tensor->ne[0] - column : block;
    return (char *)tandem_tensor_data(tensor) + offset;
}

/* Either `source` (copy into the tensor) or `target` (copy out of it) is not NULL. */
static void copy(const tandem_tensor *tensor, int64_t first, int64_t n, const char *source,
                 char *target)
{
    for (int64_t done = 0; done < n;) {
        int64_t run;
        char *place = locate(tensor, first + done, &run);
        run = run < n - done ? run : n - done;
        const size_t bytes = tandem_type_row_bytes(tensor->type, run);
        if (source != NULL) {
            memcpy(place, source, bytes);
            source += bytes;
        } else {
            memcpy(target, place, bytes);
            target += bytes;
        }
        done += run;
    }
}

enum tandem_status tandem_tensor_set(tandem_tensor *tensor, int64_t first, int64_t n,
                                     const void *values, struct tandem_error *error)
{
    TND_TRY(check_range(tensor, first, &n, values, error));
    if ((tensor->root->flags & TND_TENSOR_READ_ONLY) != 0) {
        return tnd_error_set(error, TANDEM_E_STATE, tensor->name, 0, 0,
                             "tensor %s: its memory was borrowed as const", tensor->name);
    }
    if (n > 0) {
        copy(tensor, first, n, values, NULL);
    }
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_get(const tandem_tensor *tensor, int64_t first, int64_t n,
                                     void *out_values, struct tandem_error *error)
{
    TND_TRY(check_range(tensor, first, &n, out_values, error));
    if (n > 0) {
        copy(tensor, first, n, NULL, out_values);
    }
    return TANDEM_OK;
}
