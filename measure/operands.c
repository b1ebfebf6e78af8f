/* SPDX-License-Identifier: MIT
 * Random operands. A few rows are random, and are copied to all rows of the weights: 32000 x 4096
 * floats are half a gigabyte, and preparing must not take longer than measuring. */
#include "measure/operands.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/rng.h"

enum { DISTINCT_ROWS = 61, ALIGNMENT = 64 };

struct sizes {
    size_t row_bytes;    /* of W */
    size_t weight_bytes; /* one copy */
    size_t stride;
    size_t x_bytes;
};

static bool find_sizes(const struct tnd_operands *operands, struct sizes *out)
{
    return tnd_mul_size(out->row_bytes, (size_t)operands->n, &out->weight_bytes) &&
           tnd_align_up(out->weight_bytes, ALIGNMENT, &out->stride) &&
           tnd_mul_size((size_t)operands->k, sizeof(float), &out->x_bytes) &&
           tnd_mul_size(out->x_bytes, (size_t)operands->m_max, &out->x_bytes);
}

/* Number of copies that fill `rotate_bytes` within the limit. 0: not even one fits. */
static int count_copies(const struct sizes *sizes, const struct tnd_operands_limits *limits)
{
    if (sizes->x_bytes > limits->limit_bytes ||
        sizes->stride > limits->limit_bytes - sizes->x_bytes) {
        return 0;
    }
    size_t most = (limits->limit_bytes - sizes->x_bytes) / sizes->stride;
    size_t wanted = limits->rotate_bytes / sizes->stride + 1;
    wanted = wanted < most ? wanted : most;
    return wanted < (size_t)limits->max_copies ? (int)wanted : limits->max_copies;
}

/* Values like those of trained models: mean 0, small. Sum of two uniform numbers, to avoid
 * logarithms. */
static void fill_values(struct tnd_rng *rng, float *values, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        values[i] = (tnd_rng_float(rng) + tnd_rng_float(rng) - 1.0F) * scale;
    }
}

static enum tandem_status fill_weights(struct tnd_operands *operands, const struct sizes *sizes,
                                       struct tnd_rng *rng)
{
    int64_t rows = operands->n < DISTINCT_ROWS ? operands->n : DISTINCT_ROWS;
    float *row = tnd_alloc((size_t)operands->k * sizeof(float));
    if (row == NULL) {
        return TANDEM_E_MEMORY;
    }
    enum tandem_status status = TANDEM_OK;
    for (int64_t i = 0; i < rows && status == TANDEM_OK; i++) {
        fill_values(rng, row, operands->k, 0.05F);
        status = tandem_quantize(operands->type, row,
                                 operands->weights + (size_t)i * sizes->row_bytes, operands->k);
    }
    tnd_free(row);
    for (int64_t i = rows; i < operands->n; i++) {
        memcpy(operands->weights + (size_t)i * sizes->row_bytes,
               operands->weights + tnd_rng_below(rng, (uint64_t)rows) * sizes->row_bytes,
               sizes->row_bytes);
    }
    for (int i = 1; i < operands->n_copies; i++) {
        memcpy(operands->weights + (size_t)i * sizes->stride, operands->weights,
               sizes->weight_bytes);
    }
    return status;
}

static enum tandem_status check_shape(enum tandem_type type, int64_t n, int64_t k, int64_t m_max,
                                      size_t *out_row_bytes, struct tandem_error *error)
{
    if (!tandem_type_is_valid(type) || n < 1 || k < 1 || m_max < 1) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "measure", n, 1,
                             "measure: weights of type %s, n %lld, k %lld, m up to %lld; expected "
                             "a type and extents from 1",
                             tandem_type_name(type), (long long)n, (long long)k, (long long)m_max);
    }
    *out_row_bytes = tandem_type_row_bytes(type, k);
    if (*out_row_bytes == 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "measure", k, tandem_type_block_values(type),
                             "measure: k %lld is no multiple of the %lld values in a block of %s",
                             (long long)k, (long long)tandem_type_block_values(type),
                             tandem_type_name(type));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_operands_init(enum tandem_type type, int64_t n, int64_t k, int64_t m_max,
                                     uint64_t seed, const struct tnd_operands_limits *limits,
                                     struct tnd_operands *out, struct tandem_error *error)
{
    struct tnd_operands operands = {.type = type, .n = n, .k = k, .m_max = m_max};
    struct sizes sizes = {0};
    TND_TRY(check_shape(type, n, k, m_max, &sizes.row_bytes, error));
    if (!find_sizes(&operands, &sizes)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "measure", n, 0,
                             "measure: operands of n %lld, k %lld, m %lld are too large",
                             (long long)n, (long long)k, (long long)m_max);
    }
    operands.n_copies = count_copies(&sizes, limits);
    if (operands.n_copies == 0) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "measure", (int64_t)sizes.stride,
                             (int64_t)limits->limit_bytes,
                             "measure: %s weights of %lld x %lld take %zu bytes, and activations "
                             "%zu; allowed are %zu in all",
                             tandem_type_name(type), (long long)n, (long long)k, sizes.stride,
                             sizes.x_bytes, limits->limit_bytes);
    }
    operands.copy_stride = sizes.stride;
    operands.weight_bytes = sizes.weight_bytes;
    operands.weights = tnd_alloc((size_t)operands.n_copies * sizes.stride);
    operands.x = tnd_alloc(sizes.x_bytes);
    struct tnd_rng rng;
    tnd_rng_init(&rng, seed);
    enum tandem_status status = TANDEM_E_MEMORY;
    if (operands.weights != NULL && operands.x != NULL) {
        fill_values(&rng, operands.x, k * m_max, 1.0F);
        status = fill_weights(&operands, &sizes, &rng);
    }
    if (status != TANDEM_OK) {
        tnd_operands_fini(&operands);
        return tnd_error_set(error, status, "measure", (int64_t)sizes.stride, 0,
                             "measure: %s weights of %lld x %lld: %s", tandem_type_name(type),
                             (long long)n, (long long)k, tandem_status_text(status));
    }
    *out = operands;
    return TANDEM_OK;
}

void tnd_operands_fini(struct tnd_operands *operands)
{
    tnd_free(operands->weights);
    tnd_free(operands->x);
    operands->weights = NULL;
    operands->x = NULL;
}

void *tnd_operands_weights(const struct tnd_operands *operands, uint64_t i)
{
    return operands->weights + (size_t)(i % (uint64_t)operands->n_copies) * operands->copy_stride;
}
