/* SPDX-License-Identifier: MIT
 * The kernels of attention_few.h written once for every width of vectors; included by the files
 * vec_<isa>.c behind vec_lanes.h. They also define FEW_QUERIES (queries of a block), FEW_SUMS (sums
 * that stand in registers, a multiple of LANES), FEW_TOGETHER (queries that share a vector at most,
 * up to LANES / 4), v_zip_low, v_zip_high, v_load_i8, v_load_q4 and v_set_f16; with HAS_SPREAD,
 * where FEW_TOGETHER is more than 1, v_spread and v_spread_f16 (n floats, repeated); with
 * HAS_FOLD v_fold: in lanes without the bit `half` a of the lane and of the one `half` further, in
 * the others b of the lane and of the one `half` before. */
#ifndef TND_ATTENTION_FEW_LANES_H
#define TND_ATTENTION_FEW_LANES_H

#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { Q_VALUES = 32, Q8_0_BYTES = 34, Q4_0_BYTES = 18 }; /* ggml-like/quant_legacy.c */

/* Bytes of Q_VALUES values. */
TND_INLINE size_t block_bytes(const enum tandem_type type)
{
    return type == TANDEM_TYPE_Q8_0   ? Q8_0_BYTES
           : type == TANDEM_TYPE_Q4_0 ? Q4_0_BYTES
                                      : Q_VALUES * (type == TANDEM_TYPE_F32 ? 4 : 2);
}

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

/* How many of a block's `width` queries share a vector, which has LANES / that many values of each;
 * from 4 queries on so many that two vectors meet a key's values. The more, the fewer sums are
 * folded. A score is added up in the order of a vector of one query all the same: LANES sums of
 * every LANES-th value, then halves to halves. */
TND_INLINE int few_together(int width)
{
    return width < 4 ? 1 : width / 2 < FEW_TOGETHER ? width / 2 : FEW_TOGETHER;
}

/* Per LANES values of the head: {values of a vector, queries of a vector, vectors of queries, parts
 * of the LANES values}. */
static void few_lay(const float *const *rows, int n_rows, int64_t n, float *y)
{
    int width = 1;
    while (width < n_rows) {
        width *= 2;
    }
    const int together = few_together(width);
    const int values = LANES / together;
    const int gap = width / together * LANES;
    for (int64_t i = 0; i < n; i += LANES, y += width * LANES) {
        const int rest = (int)(n - i < LANES ? n - i : LANES);
        for (int r = 0; r < width; r++) {
            const vec all = r < n_rows ? v_load_part(rows[r] + i, rest) : v_set(0.0f);
            if (together == 1) {
                v_store(y + r * LANES, all);
                continue;
            }
            float x[LANES];
            v_store(x, all);
            for (int l = 0; l < LANES; l += 4) { /* (copies of known size are instructions) */
                float *to = y + l / values * gap + r * values + l % values;
                memcpy(to, x + l, 4 * sizeof(float));
            }
        }
    }
}

/* Lane l of the result: the sum over `values` lanes, halves added to halves, of x[l % values], of
 * those lanes that l stands among. */
TND_INLINE vec fold(const vec *x, const int values)
{
    vec y[LANES];
    TND_UNROLL
    for (int i = 0; i < values; i++) {
        y[i] = x[i];
    }
    TND_UNROLL
    for (int half = values / 2; half > 0; half /= 2) {
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

TND_INLINE vec few_key(const char *key, int64_t i, int part, int rest, const int values,
                       const enum tandem_type type)
{
#if defined(HAS_SPREAD)
    if (values < LANES && type == TANDEM_TYPE_F16) {
        return v_spread_f16((const uint16_t *)(const void *)key + i + part * values, values);
    }
    if (values < LANES) {
        return v_spread((const float *)(const void *)key + i + part * values, values);
    }
#endif
    (void)part, (void)values;
    return few_load(key, i, rest, type);
}

/* Prefetches rows j .. j + n - 1 of the next rows, every `step`-th line from line `first` on. */
TND_INLINE void few_bring(const struct tnd_few_soon *soon, int j, int n, int first, int step)
{
    enum { LINE_BYTES = 64 };
    for (; n > 0 && j < soon->n; j++, n--) {
        const char *row = soon->rows + (size_t)j * soon->stride;
        const char *line = row - (uintptr_t)row % LINE_BYTES + first * LINE_BYTES;
        for (; line < row + soon->bytes; line += step * LINE_BYTES) {
            __builtin_prefetch(line, 0, 2);
        }
    }
}

/* Scores of `width` queries and n_keys keys; those of vector v of queries and of key k are sum
 * v * n_keys + k, whose lanes `fold` adds up. */
TND_INLINE void few_scores_block(const float *queries, const char *const *keys, int64_t n,
                                 float *out, const int width, const int n_keys,
                                 const enum tandem_type type)
{
    const int together = few_together(width);
    const int values = LANES / together;
    const int vectors = width / together;
    const int n_sums = vectors * n_keys;
    const int at_once = FEW_SUMS / n_sums; /* parts of LANES values: 1 or 2 */
    const int rounds = together / at_once;
    vec total[FEW_SUMS];
    TND_UNROLL
    for (int round = 0; round < rounds; round++) {
        const float *q = queries + round * vectors * LANES;
        vec sum[FEW_SUMS];
        TND_UNROLL
        for (int s = 0; s < FEW_SUMS; s++) {
            sum[s] = v_set(0.0f);
        }
        for (int64_t i = 0; i < n; i += LANES, q += width * LANES) {
            const int rest = type != TANDEM_TYPE_F32 || n - i >= LANES ? LANES : (int)(n - i);
            TND_UNROLL
            for (int part = 0; part < at_once; part++) {
                vec key[FEW_SUMS];
                TND_UNROLL
                for (int k = 0; k < n_keys; k++) {
                    key[k] = few_key(keys[k], i, round + part * rounds, rest, values, type);
                }
                TND_UNROLL
                for (int v = 0; v < vectors; v++) {
                    const vec x = v_load(q + (part * rounds * vectors + v) * LANES);
                    vec *y = sum + part * n_sums + v * n_keys;
                    TND_UNROLL
                    for (int k = 0; k < n_keys; k++) {
                        y[k] = v_fmadd(x, key[k], y[k]);
                    }
                }
            }
        }
        TND_UNROLL
        for (int s = 0; s < n_sums; s++) { /* halves of LANES, then quarters */
            const vec x = at_once > 1 ? v_add(sum[s], sum[n_sums + s]) : sum[s];
            total[s] = round > 0 ? v_add(total[s], x) : x;
        }
    }
    TND_UNROLL
    for (int s = 0; s < n_sums; s += values) {
        v_store(out + s * together, fold(total + s, values));
    }
}

TND_INLINE void few_scores_of(const float *queries, const struct tnd_few_rows *keys, int64_t n,
                              float *scores, const struct tnd_few_soon *soon, const int width,
                              const enum tandem_type type)
{
    const int together = few_together(width);
    const int values = LANES / together;
    const int step = FEW_SUMS / (width / together) / (together > 1 ? 2 : 1);
    float out[2 * FEW_SUMS];
    for (int j = 0; j < keys->n; j += step) {
        const int n_here = keys->n - j < step ? keys->n - j : step;
        const char *rows[FEW_SUMS];
        rows[0] = (const char *)keys->rows + (size_t)j * keys->stride;
        TND_UNROLL
        for (int k = 1; k < step; k++) { /* repeats the last key in place of missing ones */
            rows[k] = rows[k - 1] + (k < n_here ? keys->stride : 0);
        }
        few_bring(soon, j, step, 0, 1);
        few_scores_block(queries, rows, n, out, width, step, type);
        TND_UNROLL
        for (int r = 0; r < width; r++) {
            const int sum = r / together * step;
            const float *from = out + sum / values * LANES + r % together * values + sum % values;
            float *to = scores + r * TND_FEW_STRIDE + j;
            if (n_here == step) {
                memcpy(to, from, sizeof(float) * (size_t)step);
            } else {
                memcpy(to, from, sizeof(float) * (size_t)n_here);
            }
        }
    }
}

/* Sums of `width` queries over n_vectors vectors of the values. */
TND_INLINE void few_sums_block(const float *weights, const struct tnd_few_rows *rows, int64_t i,
                               int rest, float *sums, int64_t sum_stride,
                               const struct tnd_few_soon *soon, int line, int lines,
                               const int width, const int n_vectors, const enum tandem_type type)
{
    const char *values = rows->rows;
    vec sum[FEW_QUERIES * 2 > 4 ? FEW_QUERIES * 2 : 4];
    TND_UNROLL
    for (int r = 0; r < width; r++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[r * n_vectors + v] = v_load(sums + r * sum_stride + i + v * LANES);
        }
    }
    for (int j = 0; j < rows->n; j++, values += rows->stride) {
        vec value[4];
        few_bring(soon, j, 1, line, lines);
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

TND_INLINE void few_sums_of(const float *weights, const struct tnd_few_rows *values, int64_t n,
                            float *sums, int64_t sum_stride, const struct tnd_few_soon *soon,
                            const int width, const enum tandem_type type)
{
    static const struct tnd_few_soon nothing = {.n = 0};
    const int n_vectors = width < FEW_QUERIES ? 4 : 2; /* as many as there are registers for */
    const int rounds = n < n_vectors * LANES ? 1 : (int)(n / (n_vectors * LANES));
    int64_t i = 0;
    int round = 0;
    for (; i + n_vectors * LANES <= n; i += n_vectors * LANES, round++) {
        few_sums_block(weights, values, i, LANES, sums, sum_stride, soon, round, rounds, width,
                       n_vectors, type);
    }
    for (; i < n; i += LANES, round++) {
        const int rest = (int)(n - i < LANES ? n - i : LANES);
        few_sums_block(weights, values, i, rest, sums, sum_stride, round < rounds ? soon : &nothing,
                       round, rounds, width, 1, type);
    }
}

TND_INLINE void few_floats_of(const char *rows, size_t stride, int n_rows, int64_t n, float *y,
                              int64_t y_stride, const enum tandem_type type)
{
    for (int j = 0; j < n_rows; j++, rows += stride, y += y_stride) {
        int64_t i = 0;
        for (; i + Q_VALUES <= n; i += Q_VALUES) { /* a block, whose scale is read once */
            TND_UNROLL
            for (int at = 0; at < Q_VALUES; at += LANES) {
                v_store(y + i + at, few_load(rows + block_bytes(type) * (size_t)(i / Q_VALUES), at,
                                             LANES, type));
            }
        }
        for (; i < n; i += LANES) {
            v_store(y + i, few_load(rows, i, (int)(n - i < LANES ? n - i : LANES), type));
        }
    }
}

/* A few functions per type, so that the compiler generates one body for each width. */
#define FEW(NAME)                                                                                  \
    static void few_scores_##NAME(const float *queries, int n_queries,                             \
                                  const struct tnd_few_rows *keys, int64_t n, float *scores,       \
                                  const struct tnd_few_soon *soon)                                 \
    {                                                                                              \
        const enum tandem_type type = TANDEM_TYPE_##NAME;                                          \
        const bool is_wide =                                                                       \
            type == TANDEM_TYPE_F32 || type == TANDEM_TYPE_F16 || FEW_TOGETHER == 1;               \
        if (is_wide && n_queries > 4) {                                                            \
            few_scores_of(queries, keys, n, scores, soon, FEW_QUERIES, type);                      \
        } else if (is_wide && n_queries > 2) {                                                     \
            few_scores_of(queries, keys, n, scores, soon, 4, type);                                \
        } else if (n_queries > 1) {                                                                \
            few_scores_of(queries, keys, n, scores, soon, 2, type);                                \
        } else {                                                                                   \
            few_scores_of(queries, keys, n, scores, soon, 1, type);                                \
        }                                                                                          \
    }                                                                                              \
    static void few_sums_##NAME(const float *weights, int n_queries,                               \
                                const struct tnd_few_rows *values, int64_t n, float *sums,         \
                                int64_t sum_stride, const struct tnd_few_soon *soon)               \
    {                                                                                              \
        const enum tandem_type type = TANDEM_TYPE_##NAME;                                          \
        if (n_queries > 4) {                                                                       \
            few_sums_of(weights, values, n, sums, sum_stride, soon, FEW_QUERIES, type);            \
        } else if (n_queries > 2) {                                                                \
            few_sums_of(weights, values, n, sums, sum_stride, soon, 4, type);                      \
        } else if (n_queries > 1) {                                                                \
            few_sums_of(weights, values, n, sums, sum_stride, soon, 2, type);                      \
        } else {                                                                                   \
            few_sums_of(weights, values, n, sums, sum_stride, soon, 1, type);                      \
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
    out->wide = FEW_TOGETHER == 1 ? FEW_QUERIES + 1 : 3;
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
