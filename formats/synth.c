/* SPDX-License-Identifier: MIT
 * Llamas with seeded random weights, for measuring without a download. A pool of values with
 * standard deviation 1 / sqrt(K) is quantised once for each K; tensors are filled with blocks of it
 * in random order, so that a billion weights take a second and activations stay finite. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/rng.h"
#include "base/tnd_status.h"
#include "formats/llama_tensors.h"

#define POOL_VALUES    65536 /* a multiple of every block; small enough to stay in the cache */
#define BLOCK_VALUES   32    /* copied at once where blocks are smaller */
#define DATA_ALIGNMENT 64

/* Values of one type and one K, ready to be copied. */
struct pool {
    unsigned char *bytes;
    size_t block_bytes;
    uint64_t n_blocks;
};

static enum tandem_status no_memory(size_t bytes, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "synthetic llama", (int64_t)bytes, 0,
                         "synthetic llama: no memory for %zu bytes of weights", bytes);
}

/* Fills `pool` with values of standard deviation 1 / sqrt(k); uniform ones serve, and are quick. */
static enum tandem_status pool_fill(struct pool *pool, enum tandem_type type, int64_t k,
                                    struct tnd_rng *rng, struct tandem_error *error)
{
    const size_t bytes = tandem_type_row_bytes(type, POOL_VALUES);
    float *values = tnd_alloc(POOL_VALUES * sizeof(float));
    unsigned char *blocks = tnd_alloc(bytes);
    if (values == NULL || blocks == NULL) {
        tnd_free(values);
        tnd_free(blocks);
        return no_memory(bytes, error);
    }
    const float half_width =
        sqrtf(3.0f / (float)k); /* uniform in +-a has the deviation a / sqrt(3) */
    for (int i = 0; i < POOL_VALUES; i++) {
        values[i] = (tnd_rng_float(rng) * 2.0f - 1.0f) * half_width;
    }
    const enum tandem_status status = tandem_quantize(type, values, blocks, POOL_VALUES);
    tnd_free(values);
    if (status != TANDEM_OK) {
        tnd_free(blocks);
        return tnd_error_set(error, status, "synthetic llama", type, 0,
                             "synthetic llama: weights cannot be %s", tandem_type_name(type));
    }
    int64_t block_values = tandem_type_block_values(type);
    if (block_values < BLOCK_VALUES) {
        block_values = BLOCK_VALUES;
    }
    tnd_free(pool->bytes);
    *pool = (struct pool){.bytes = blocks,
                          .block_bytes = tandem_type_row_bytes(type, block_values),
                          .n_blocks = (uint64_t)(POOL_VALUES / block_values)};
    return TANDEM_OK;
}

static void pool_copy(const struct pool *pool, struct tnd_rng *rng, unsigned char *to, size_t bytes)
{
    while (bytes > 0) {
        const size_t n = bytes < pool->block_bytes ? bytes : pool->block_bytes;
        const uint64_t block = tnd_rng_below(rng, pool->n_blocks);
        memcpy(to, pool->bytes + block * pool->block_bytes, n);
        to += n;
        bytes -= n;
    }
}

/* Type and bytes of one tensor of a role: vectors, and rows that blocks do not fill, are F32. */
static bool tensor_layout(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                          enum tandem_type wanted, enum tandem_type *out_type, size_t *out_bytes)
{
    int64_t ne[3];
    const int n_dims = tnd_llama_role_extents(role, dims, ne);
    const bool fits =
        n_dims > 1 && role != TND_LLAMA_FFN_ROUTER && ne[0] % tandem_type_block_values(wanted) == 0;
    *out_type = fits ? wanted : TANDEM_TYPE_F32;
    size_t bytes = tandem_type_row_bytes(*out_type, ne[0]);
    return bytes > 0 && tnd_mul_size(bytes, (size_t)ne[1], &bytes) &&
           tnd_mul_size(bytes, (size_t)ne[2], &bytes) &&
           tnd_align_up(bytes, DATA_ALIGNMENT, out_bytes);
}

static bool all_bytes(const struct tnd_llama_dims *dims, enum tandem_type type, size_t *out_bytes)
{
    size_t sum = 0;
    for (int role = 0; role < TND_LLAMA_ALL_ROLES; role++) {
        enum tandem_type role_type;
        size_t bytes;
        const size_t count = (size_t)tnd_llama_role_count((enum tnd_llama_role)role, dims);
        if (count == 0) {
            continue;
        }
        if (!tensor_layout((enum tnd_llama_role)role, dims, type, &role_type, &bytes) ||
            !tnd_mul_size(bytes, count, &bytes) || !tnd_add_size(sum, bytes, &sum)) {
            return false;
        }
    }
    *out_bytes = sum;
    return true;
}

/* Fills and adds all tensors of one role, from `at` on; moves `at` behind them. */
static enum tandem_status add_role(tandem_source *source, enum tnd_llama_role role,
                                   const struct tnd_llama_dims *dims, enum tandem_type wanted,
                                   struct pool *pool, struct tnd_rng *rng, unsigned char **at,
                                   struct tandem_error *error)
{
    int64_t ne[3];
    enum tandem_type type = TANDEM_TYPE_F32;
    size_t step = 0;
    const bool is_matrix = tnd_llama_role_extents(role, dims, ne) > 1;
    const int64_t count = tnd_llama_role_count(role, dims);
    (void)tensor_layout(role, dims, wanted, &type, &step);
    const size_t bytes = tandem_type_row_bytes(type, ne[0]) * (size_t)ne[1] * (size_t)ne[2];
    if (is_matrix && count > 0) {
        TND_TRY(pool_fill(pool, type, ne[0], rng, error));
    }
    for (int64_t layer = 0; layer < count; layer++) {
        if (is_matrix) {
            pool_copy(pool, rng, *at, bytes);
        } else {
            float *ones = (float *)(void *)*at;
            for (int64_t i = 0; i < ne[0]; i++) {
                ones[i] = 1.0f;
            }
        }
        TND_TRY(tnd_llama_add(source, role, layer, dims, type, *at, bytes, error));
        *at += step;
    }
    return TANDEM_OK;
}

static enum tandem_status fill_source(tandem_source *source, const struct tnd_llama_dims *dims,
                                      enum tandem_type type, uint64_t seed,
                                      struct tandem_error *error)
{
    size_t bytes;
    if (!all_bytes(dims, type, &bytes)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "synthetic llama", 0, 0,
                             "synthetic llama: its bytes do not fit into the machine's integers");
    }
    source->memory = tnd_alloc(bytes);
    if (source->memory == NULL) {
        return no_memory(bytes, error);
    }
    struct tnd_rng rng;
    tnd_rng_init(&rng, seed);
    struct pool pool = {NULL, 0, 0};
    unsigned char *at = source->memory;
    enum tandem_status status = TANDEM_OK;
    for (int role = 0; status == TANDEM_OK && role < TND_LLAMA_ALL_ROLES; role++) {
        status = add_role(source, (enum tnd_llama_role)role, dims, type, &pool, &rng, &at, error);
    }
    tnd_free(pool.bytes);
    TND_TRY(status);
    TND_TRY(tnd_llama_set_values(source, dims, error));
    /* What llama.cpp expects of a file without a tokenizer. */
    return tnd_source_set_text(source, "tokenizer.ggml.model", "no_vocab", error);
}

enum tandem_status tandem_source_synthesize(const struct tandem_llama_shape *shape,
                                            enum tandem_type type, uint64_t seed,
                                            tandem_source **out_source, struct tandem_error *error)
{
    struct tandem_llama_shape read = {.size = sizeof(read)};
    struct tnd_llama_dims dims;
    if (shape == NULL || out_source == NULL || !tandem_type_is_valid(type) ||
        type == TANDEM_TYPE_I32) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "synthetic llama", type, 0,
            "tandem_source_synthesize: expected a shape, a place for the source and "
            "a type of weights, got type %s",
            tandem_type_name(type));
    }
    TND_TRY(tnd_options_read(shape, "tandem_llama_shape", &read, sizeof(read), error));
    TND_TRY(tnd_llama_dims_from(&read, "synthetic llama", TANDEM_E_ARGUMENT, &dims, error));
    tandem_source *source;
    TND_TRY(tnd_source_new("synthetic", &source, error));
    const enum tandem_status status = fill_source(source, &dims, type, seed, error);
    return tnd_source_end(status, source, out_source);
}
