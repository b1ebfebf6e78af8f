/* SPDX-License-Identifier: MIT
 * The kernels of attention_few.h written once for every width of vectors; included by the files
 * vec_<isa>.c behind vec_lanes.h. They also define FEW_QUERIES (queries of a block), FEW_SUMS (sums
 * that stand in registers, a multiple of LANES), v_zip_low, v_zip_high, v_load_i8, v_load_q4 and
 * v_set_f16; with HAS_FOLD also v_fold: in lanes without the bit `half` a of the lane and of the
 * one `half` further, in the others b of the lane and of the one `half` before. */
#ifndef TND_ATTENTION_FEW_LANES_H
#define TND_ATTENTION_FEW_LANES_H

#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { Q_VALUES = 32, Q8_0_BYTES = 34, Q4_0_BYTES = 18 }; /* ggml-like/quant_legacy.c */

/* A vector from value i of a row on; `rest` < LANES only for F32. */
TND_INLINE vec few_load(const char *row, int64_t i, int rest, const enum tandem_type type)
{
    if (type == TANDEM_TYPE_F16) {
        return v_load_f16((const uint16_t *)(const void *)(row + 2 * i));
    }
    if (type == TANDEM_TYPE_BF16) {
        return v_load_bf16((const uint16_t *)(const void *)(row + 2 * i));
    }
    if (type == TANDEM_TYPE_Q8_0) {
        const char *block = row + i / Q_VALUES * Q8_0_BYTES;
        return v_mul(v_set_f16(block), v_load_i8(block + 2 + i % Q_VALUES));
    }
    if (type == TANDEM_TYPE_Q4_0) { /* the second half of a block lies in the upper bits */
        const char *block = row + i / Q_VALUES * Q4_0_BYTES;
        const int at = (int)(i % Q_VALUES);
        return v_mul(v_set_f16(block),
                     v_load_q4(block + 2 + at % (Q_VALUES / 2), at < Q_VALUES / 2 ? 0 : 4));
    }
    return v_load_part((const float *)(const void *)row + i, rest);
}

static void few_lay(const float *const *rows, int n_rows, int64_t n, float *y)
{
    int width = 1;
    while (width < n_rows) {
        width *= 2;
    }
    for (int64_t i = 0; i < n; i += LANES) {
        const int rest = (int)(n - i < LANES ? n - i : LANES);
        for (int r = 0; r < width; r++, y += LANES) {
            v_store(y, r < n_rows ? v_load_part(rows[r] + i, rest) : v_set(0.0f));
        }
    }
}

/* Lane l of the result: the sum of x[l], halves added to halves. */
TND_INLINE vec fold(const vec *x)
{
    vec y[LANES];
    memcpy(y, x, sizeof(y));
    TND_UNROLL
    for (int half = LANES / 2; half > 0; half /= 2) {
        TND_UNROLL
        for (int i = 0; i < half; i++) {
#if defined(HAS_FOLD)
            y[i] = v_fold(y[i], y[i + half], half);
#else
            y[i] = v_add(v_zip_low(y[i], y[i + half]), v_zip_high(y[i], y[i + half]));
#endif
        }
    }
    return y[0];
}

/* Scores of `width` queries and FEW_SUMS / width keys. */
TND_INLINE void few_scores_block(const float *queries, const char *const *keys, int64_t n,
                                 float *out, const int width, const enum tandem_type type)
{
    const int n_keys = FEW_SUMS / width;
    vec sum[FEW_SUMS];
    TND_UNROLL
    for (int s = 0; s < FEW_SUMS; s++) {
        sum[s] = v_set(0.0f);
    }
    for (int64_t i = 0; i < n; i += LANES, queries += width * LANES) {
        const int rest = type != TANDEM_TYPE_F32 || n - i >= LANES ? LANES : (int)(n - i);
        vec key[FEW_SUMS];
        TND_UNROLL
        for (int k = 0; k < n_keys; k++) {
            key[k] = few_load(keys[k], i, rest, type);
        }
        TND_UNROLL
        for (int r = 0; r < width; r++) {
            const vec q = v_load(queries + r * LANES);
            TND_UNROLL
            for (int k = 0; k < n_keys; k++) {
                sum[r * n_keys + k] = v_fmadd(q, key[k], sum[r * n_keys + k]);
            }
        }
    }
    TND_UNROLL
    for (int s = 0; s < FEW_SUMS; s += LANES) {
        v_store(out + s, fold(sum + s));
    }
}

TND_INLINE void few_scores_of(const float *queries, const char *keys, size_t stride, int n_keys,
                              int64_t n, float *scores, const int width,
                              const enum tandem_type type)
{
    const int step = FEW_SUMS / width;
    float out[FEW_SUMS];
    for (int j = 0; j < n_keys; j += step) {
        const int n_here = n_keys - j < step ? n_keys - j : step;
        const char *rows[FEW_SUMS];
        for (int k = 0; k < step; k++) { /* the last one again in place of those that are not */
            rows[k] = keys + (size_t)(j + (k < n_here ? k : n_here - 1)) * stride;
        }
        few_scores_block(queries, rows, n, out, width, type);
        if (n_here == step) {
            TND_UNROLL
            for (int r = 0; r < width; r++) {
                memcpy(scores + r * TND_FEW_STRIDE + j, out + r * step,
                       sizeof(float) * (size_t)step);
            }
        } else {
            for (int r = 0; r < width; r++) {
                memcpy(scores + r * TND_FEW_STRIDE + j, out + r * step,
                       sizeof(float) * (size_t)n_here);
            }
        }
    }
}

/* Sums of `width` queries over n_vectors vectors of the values. */
TND_INLINE void few_sums_block(const float *weights, const char *values, size_t stride,
                               int n_values, int64_t i, int rest, float *sums, int64_t sum_stride,
                               const int width, const int n_vectors, const enum tandem_type type)
{
    vec sum[FEW_QUERIES * 2 > 4 ? FEW_QUERIES * 2 : 4];
    TND_UNROLL
    for (int r = 0; r < width; r++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[r * n_vectors + v] = v_load(sums + r * sum_stride + i + v * LANES);
        }
    }
    for (int j = 0; j < n_values; j++, values += stride) {
        vec value[4];
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            value[v] = few_load(values, i + v * LANES, rest, type);
        }
        TND_UNROLL
        for (int r = 0; r < width; r++) {
            const vec w = v_set(weights[r * TND_FEW_STRIDE + j]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[r * n_vectors + v] = v_fmadd(w, value[v], sum[r * n_vectors + v]);
            }
        }
    }
    TND_UNROLL
    for (int r = 0; r < width; r++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            v_store(sums + r * sum_stride + i + v * LANES, sum[r * n_vectors + v]);
        }
    }
}

TND_INLINE void few_sums_of(const float *weights, const char *values, size_t stride, int n_values,
                            int64_t n, float *sums, int64_t sum_stride, const int width,
                            const enum tandem_type type)
{
    const int n_vectors = width < FEW_QUERIES ? 4 : 2; /* as many as there are registers for */
    int64_t i = 0;
    for (; i + n_vectors * LANES <= n; i += n_vectors * LANES) {
        few_sums_block(weights, values, stride, n_values, i, LANES, sums, sum_stride, width,
                       n_vectors, type);
    }
    for (; i < n; i += LANES) {
        const int rest = (int)(n - i < LANES ? n - i : LANES);
        few_sums_block(weights, values, stride, n_values, i, rest, sums, sum_stride, width, 1,
                       type);
    }
}

TND_INLINE void few_floats_of(const char *rows, size_t stride, int n_rows, int64_t n, float *y,
                              int64_t y_stride, const enum tandem_type type)
{
    for (int j = 0; j < n_rows; j++, rows += stride, y += y_stride) {
        for (int64_t i = 0; i < n; i += LANES) {
            v_store(y + i, few_load(rows, i, (int)(n - i < LANES ? n - i : LANES), type));
        }
    }
}

/* Some functions a type, which leave the compiler one body for each width. */
#define FEW(NAME)                                                                                  \
    static void few_scores_##NAME(const float *queries, int n_queries, const void *keys,           \
                                  size_t stride, int n_keys, int64_t n, float *scores)             \
    {                                                                                              \
        const enum tandem_type type = TANDEM_TYPE_##NAME;                                          \
        if (n_queries > 4) {                                                                       \
            few_scores_of(queries, keys, stride, n_keys, n, scores, FEW_QUERIES, type);            \
        } else if (n_queries > 2) {                                                                \
            few_scores_of(queries, keys, stride, n_keys, n, scores, 4, type);                      \
        } else if (n_queries > 1) {                                                                \
            few_scores_of(queries, keys, stride, n_keys, n, scores, 2, type);                      \
        } else {                                                                                   \
            few_scores_of(queries, keys, stride, n_keys, n, scores, 1, type);                      \
        }                                                                                          \
    }                                                                                              \
    static void few_sums_##NAME(const float *weights, int n_queries, const void *values,           \
                                size_t stride, int n_values, int64_t n, float *sums,               \
                                int64_t sum_stride)                                                \
    {                                                                                              \
        const enum tandem_type type = TANDEM_TYPE_##NAME;                                          \
        if (n_queries > 4) {                                                                       \
            few_sums_of(weights, values, stride, n_values, n, sums, sum_stride, FEW_QUERIES,       \
                        type);                                                                     \
        } else if (n_queries > 2) {                                                                \
            few_sums_of(weights, values, stride, n_values, n, sums, sum_stride, 4, type);          \
        } else if (n_queries > 1) {                                                                \
            few_sums_of(weights, values, stride, n_values, n, sums, sum_stride, 2, type);          \
        } else {                                                                                   \
            few_sums_of(weights, values, stride, n_values, n, sums, sum_stride, 1, type);          \
        }                                                                                          \
    }                                                                                              \
    static void few_floats_##NAME(const void *rows, size_t stride, int n_rows, int64_t n,          \
                                  float *y, int64_t y_stride)                                      \
    {                                                                                              \
        few_floats_of(rows, stride, n_rows, n, y, y_stride, TANDEM_TYPE_##NAME);                   \
    }
FEW(F32)
FEW(F16)
FEW(BF16)
FEW(Q8_0)
FEW(Q4_0)

static void fill_few(struct tnd_few_kernels *out)
{
    out->queries = FEW_QUERIES;
    out->whole = LANES;
    out->lay = few_lay;
#define FILL_FEW(NAME)                                                                             \
    out->scores[TANDEM_TYPE_##NAME] = few_scores_##NAME;                                           \
    out->sums[TANDEM_TYPE_##NAME] = few_sums_##NAME;                                               \
    out->floats[TANDEM_TYPE_##NAME] = few_floats_##NAME;
    FILL_FEW(F32)
    FILL_FEW(F16)
    FILL_FEW(BF16)
    FILL_FEW(Q8_0)
    FILL_FEW(Q4_0)
#undef FILL_FEW
}

#endif
