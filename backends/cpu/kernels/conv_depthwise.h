/* SPDX-License-Identifier: MIT
 * Inner loops of depthwise convolutions (one filter per channel) and of pools, channels last.
 * Included, and so compiled, once per instruction set. */
#ifndef TND_CONV_DEPTHWISE_H
#define TND_CONV_DEPTHWISE_H

#include "base/lanes.h"
#include "backends/cpu/kernels/conv_ending.h"

enum { DEPTH_PLACES = 4 }; /* positions that share loaded weights */

static inline tnd_vec depth_fma(tnd_vec a, tnd_vec b, tnd_vec c)
{
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_ps(a, b, c);
#else
    return a * b + c;
#endif
}

/* Loads the first `n` values, at most a vector; the other lanes are 0. */
static inline tnd_vec depth_load(const float *from, int n)
{
#if defined(__AVX512F__)
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
#else
    tnd_vec v = tnd_vec_set(0);
    if (n == TND_VEC_LANES) {
        return tnd_vec_load(from);
    }
    for (int i = 0; i < n; i++) {
        v[i] = from[i];
    }
    return v;
#endif
}

/* One or two vectors of channels, for `places` positions from `first` on. */
static inline __attribute__((always_inline)) void depth_places(const struct tnd_conv_depth *depth,
                                                               int first, const int places,
                                                               const int n_vectors, const int n[2])
{
    tnd_vec sum[DEPTH_PLACES][2];
    const int width = 2 * TND_VEC_LANES;
    const int64_t next = TND_VEC_LANES < TND_CONV_PANEL ? TND_VEC_LANES : depth->w_panel;
    TND_CONV_UNROLL
    for (int m = 0; m < places; m++) {
        sum[m][0] = sum[m][1] = tnd_vec_set(0);
    }
    for (int64_t tap = 0; tap < depth->n_taps; tap++) {
        const float *const *rows = depth->rows + tap * depth->n_places + first;
        const float *w = depth->w + tap * TND_CONV_PANEL;
        const tnd_vec w0 = tnd_vec_load(w);
        const tnd_vec w1 = tnd_vec_load(n_vectors == 2 ? w + next : w);
        TND_CONV_UNROLL
        for (int m = 0; m < places; m++) {
            const float *x = rows[m] + depth->channel;
            sum[m][0] = depth_fma(depth_load(x, n[0]), w0, sum[m][0]);
            if (n_vectors == 2) {
                sum[m][1] = depth_fma(depth_load(x + TND_VEC_LANES, n[1]), w1, sum[m][1]);
            }
        }
    }
    TND_CONV_UNROLL
    for (int m = 0; m < places; m++) {
        tnd_vec_store(depth->y + (first + m) * width, sum[m][0]);
        if (n_vectors == 2) {
            tnd_vec_store(depth->y + (first + m) * width + TND_VEC_LANES, sum[m][1]);
        }
    }
}

static inline __attribute__((always_inline)) void depth_rows(const struct tnd_conv_depth *depth,
                                                             const int n_vectors, const int n[2])
{
    int m = 0;
    for (; m + DEPTH_PLACES <= depth->n_places; m += DEPTH_PLACES) {
        depth_places(depth, m, DEPTH_PLACES, n_vectors, n);
    }
    for (; m < depth->n_places; m++) {
        depth_places(depth, m, 1, n_vectors, n);
    }
}

static void run_depth(const struct tnd_conv_depth *depth)
{
    const int n = depth->n_channels;
    const int parts[2] = {n < TND_VEC_LANES ? n : TND_VEC_LANES, n - TND_VEC_LANES};
    const int whole[2] = {TND_VEC_LANES, TND_VEC_LANES};
    if (n == 2 * TND_VEC_LANES) {
        depth_rows(depth, 2, whole);
    } else if (n > TND_VEC_LANES) {
        depth_rows(depth, 2, parts);
    } else if (n == TND_VEC_LANES) {
        depth_rows(depth, 1, whole);
    } else {
        depth_rows(depth, 1, parts);
    }
}

/* ---- adjacent positions: each column is loaded once for all windows that see it ---- */

#if !defined(__clang__)
#define LINES_UNROLL _Pragma("GCC unroll 32")
#else
#define LINES_UNROLL TND_CONV_UNROLL
#endif

/* One or two vectors of channels from `first` on. */
static inline __attribute__((always_inline)) void lines_block(const struct tnd_conv_lines *lines,
                                                              int first, const int n_vectors,
                                                              const int n[2], const int taps,
                                                              const int stride)
{
    tnd_vec sum[TND_CONV_LINE_PLACES][2];
    const int n_columns = (TND_CONV_LINE_PLACES - 1) * stride + taps;
    const int64_t next = TND_VEC_LANES < TND_CONV_PANEL ? TND_VEC_LANES : lines->w_panel;
    const float *w = lines->w + first / TND_CONV_PANEL * lines->w_panel + first % TND_CONV_PANEL;
    const float *const *columns = lines->columns;
    LINES_UNROLL
    for (int m = 0; m < TND_CONV_LINE_PLACES; m++) {
        sum[m][0] = sum[m][1] = tnd_vec_set(0);
    }
    for (int line = 0; line < lines->n_lines; line++, columns += n_columns) {
        tnd_vec of_taps[TND_CONV_LINE_TAPS][2];
        LINES_UNROLL
        for (int tap = 0; tap < taps; tap++, w += TND_CONV_PANEL) {
            of_taps[tap][0] = tnd_vec_load(w);
            of_taps[tap][1] = tnd_vec_load(n_vectors == 2 ? w + next : w);
        }
        LINES_UNROLL
        for (int c = 0; c < n_columns; c++) {
            const float *at = columns[c] + lines->channel + first;
            const tnd_vec x0 = depth_load(at, n[0]);
            const tnd_vec x1 = n_vectors == 2 ? depth_load(at + TND_VEC_LANES, n[1]) : x0;
            LINES_UNROLL
            for (int m = 0; m < TND_CONV_LINE_PLACES; m++) {
                const int tap = c - m * stride;
                if (tap >= 0 && tap < taps) {
                    sum[m][0] = depth_fma(x0, of_taps[tap][0], sum[m][0]);
                    if (n_vectors == 2) {
                        sum[m][1] = depth_fma(x1, of_taps[tap][1], sum[m][1]);
                    }
                }
            }
        }
    }
    if (lines->ending.codes != NULL) {
        end_sums(&lines->ending, sum, TND_CONV_LINE_PLACES, lines->n_places, n_vectors, first,
                 n[n_vectors - 1], lines->y);
        return;
    }
    LINES_UNROLL
    for (int m = 0; m < TND_CONV_LINE_PLACES; m++) {
        float *y = lines->y + m * 2 * TND_VEC_LANES + first;
        tnd_vec_store(y, sum[m][0]);
        if (n_vectors == 2) {
            tnd_vec_store(y + TND_VEC_LANES, sum[m][1]);
        }
    }
}

/* Two vectors at a time if there are enough registers. */
#define LINES_OF(TAPS, STRIDE)                                                                     \
    static void lines_##TAPS##_##STRIDE(const struct tnd_conv_lines *lines)                        \
    {                                                                                              \
        const int whole[2] = {TND_VEC_LANES, TND_VEC_LANES};                                       \
        int first = 0;                                                                             \
        if (TND_VEC_LANES == TND_CONV_PANEL && (TAPS) <= 5 &&                                      \
            lines->n_channels == 2 * TND_VEC_LANES) {                                              \
            lines_block(lines, 0, 2, whole, TAPS, STRIDE);                                         \
            return;                                                                                \
        }                                                                                          \
        for (; first + TND_VEC_LANES <= lines->n_channels; first += TND_VEC_LANES) {               \
            lines_block(lines, first, 1, whole, TAPS, STRIDE);                                     \
        }                                                                                          \
        if (first < lines->n_channels) {                                                           \
            const int left[2] = {lines->n_channels - first, 0};                                    \
            lines_block(lines, first, 1, left, TAPS, STRIDE);                                      \
        }                                                                                          \
    }
LINES_OF(3, 1)
LINES_OF(3, 2)
LINES_OF(5, 1)
LINES_OF(5, 2)
LINES_OF(7, 1)
LINES_OF(7, 2)
#undef LINES_OF
#undef LINES_UNROLL

static void run_lines(const struct tnd_conv_lines *lines)
{
    static void (*const of[3][2])(const struct tnd_conv_lines *) = {
        {lines_3_1, lines_3_2}, {lines_5_1, lines_5_2}, {lines_7_1, lines_7_2}};
    of[lines->taps / 2 - 1][lines->stride - 1](lines);
}

static void depth_largest(const float *const *rows, int n, int64_t channel, float *y)
{
    tnd_vec a = tnd_vec_load(rows[0] + channel);
    tnd_vec b = tnd_vec_load(rows[0] + channel + TND_VEC_LANES);
    for (int i = 1; i < n; i++) {
        a = tnd_vec_max(a, tnd_vec_load(rows[i] + channel));
        b = tnd_vec_max(b, tnd_vec_load(rows[i] + channel + TND_VEC_LANES));
    }
    tnd_vec_store(y, a);
    tnd_vec_store(y + TND_VEC_LANES, b);
}

/* Channels from `c` on. (Loops of constant length are vectorised.) */
#define LARGEST_BYTES(BLOCK)                                                                       \
    for (; c + (BLOCK) <= n_channels; c += (BLOCK)) {                                              \
        uint8_t best[BLOCK];                                                                       \
        for (int k = 0; k < (BLOCK); k++) {                                                        \
            best[k] = rows[0][c + k] ^ flip;                                                       \
        }                                                                                          \
        for (int i = 1; i < n; i++) {                                                              \
            const uint8_t *row = rows[i] + c;                                                      \
            for (int k = 0; k < (BLOCK); k++) {                                                    \
                const uint8_t value = row[k] ^ flip;                                               \
                best[k] = best[k] > value ? best[k] : value;                                       \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; k < (BLOCK); k++) {                                                        \
            y[c + k] = best[k] ^ flip;                                                             \
        }                                                                                          \
    }

static void depth_largest_bytes(const uint8_t *const *rows, int n, int64_t n_channels, uint8_t flip,
                                uint8_t *y)
{
    int64_t c = 0;
    LARGEST_BYTES(64)
    LARGEST_BYTES(16)
    LARGEST_BYTES(1)
}
#undef LARGEST_BYTES

#endif
