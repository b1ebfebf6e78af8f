/* SPDX-License-Identifier: MIT
 * Turns sums of 8-bit products into results, and computes depthwise windows: loops over panels of
 * 16, which compilers vectorise for the instruction set of the including file. All versions give
 * the same bits. */
#ifndef TND_INT8_LANES_H
#define TND_INT8_LANES_H

#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { PANEL = TND_INT8_PANEL, TILE = TND_INT8_TILE };

/* 1.5 * 2^23: adding it to a number below 2^22 rounds that to an integer, ties to even. */
#define ROUNDER 0x1.8p+23f

static inline void whole_sums(const struct tnd_int8_finish *finish, int row, int first,
                              int32_t *restrict out)
{
    const int32_t *restrict sums = finish->sums + row * finish->sums_stride + first;
    const int32_t *restrict base = finish->base + first;
    for (int f = 0; f < PANEL; f++) {
        out[f] = (int32_t)((uint32_t)sums[f] + (uint32_t)base[f]);
    }
    if (finish->x_sums != NULL) {
        const uint32_t x = (uint32_t)finish->x_sums[row];
        const int32_t *restrict zero = finish->zero_w + first;
        for (int f = 0; f < PANEL; f++) {
            out[f] = (int32_t)((uint32_t)out[f] - (uint32_t)zero[f] * x);
        }
    }
}

static inline void scaled(const struct tnd_int8_finish *finish, int first, const int32_t *whole,
                          float *restrict out)
{
    const float *restrict scale = finish->scale + first;
    const float *restrict offset = finish->offset + first;
    const float low = finish->conv->low;
    const float high = finish->conv->high;
    for (int f = 0; f < PANEL; f++) {
        const float y = (float)whole[f] * scale[f] + offset[f];
        const float above = y > low ? y : low;
        out[f] = above < high ? above : high;
    }
}

/* Finishes one row of a panel. */
static inline void finish_panel(const struct tnd_int8_finish *finish, int row, int first,
                                void *restrict y)
{
    const struct tnd_conv_int8 *conv = finish->conv;
    int32_t whole[PANEL];
    float values[PANEL];
    whole_sums(finish, row, first, whole);
    if (conv->result == TND_INT8_I32) {
        memcpy(y, whole, sizeof(whole));
        return;
    }
    scaled(finish, first, whole, values);
    if (conv->result == TND_INT8_F32) {
        memcpy(y, values, sizeof(values));
        return;
    }
    const int32_t zero = conv->zero_y;
    uint8_t bytes[PANEL];
    for (int f = 0; f < PANEL; f++) {
        bytes[f] = (uint8_t)((int32_t)((values[f] + ROUNDER) - ROUNDER) + zero);
    }
    memcpy(y, bytes, sizeof(bytes));
}

static inline void int8_finish(const struct tnd_int8_finish *finish)
{
    const size_t bytes = finish->conv->result >= TND_INT8_S8 ? 1 : 4;
    for (int row = 0; row < finish->n_rows; row++) {
        char *y = (char *)finish->y + (size_t)(row * finish->y_stride) * bytes;
        for (int first = 0; first < finish->n_filters; first += PANEL) {
            const int left = finish->n_filters - first;
            if (left >= PANEL) {
                finish_panel(finish, row, first, y + (size_t)first * bytes);
            } else {
                char part[PANEL * sizeof(float)];
                finish_panel(finish, row, first, part);
                memcpy(y + (size_t)first * bytes, part, (size_t)left * bytes);
            }
        }
    }
}

/* Sums of floats are exact: see TND_INT8_TAPS. */
static inline void depth_panel(const struct tnd_int8_depth *depth, int n_places, int place,
                               int first, int n, int32_t *restrict out)
{
    const float *restrict w = depth->w + first * depth->n_taps;
    float sums[PANEL] = {0};
    for (int64_t tap = 0; tap < depth->n_taps; tap++, w += PANEL) {
        const uint8_t *x = depth->rows[tap * n_places + place] + depth->channel + first;
        uint8_t bytes[PANEL] = {0};
        if (n == PANEL) {
            memcpy(bytes, x, PANEL);
        } else {
            memcpy(bytes, x, (size_t)n);
        }
        for (int c = 0; c < PANEL; c++) {
            sums[c] += (float)(uint8_t)(bytes[c] ^ depth->flip) * w[c];
        }
    }
    for (int c = 0; c < PANEL; c++) {
        out[c] = (int32_t)sums[c];
    }
}

/* `sums` has TND_INT8_DEPTH values per position; whole panels are written. */
static inline void int8_depth_sums(const struct tnd_int8_depth *depth, int n_places, int n_channels,
                                   int32_t *sums)
{
    for (int place = 0; place < n_places; place++) {
        for (int first = 0; first < n_channels; first += PANEL) {
            const int n = n_channels - first < PANEL ? n_channels - first : PANEL;
            depth_panel(depth, n_places, place, first, n, sums + place * TND_INT8_DEPTH + first);
        }
    }
}

static inline void int8_depth(const struct tnd_int8_depth *depth,
                              const struct tnd_int8_finish *finish)
{
    int32_t sums[TND_INT8_PLACES * TND_INT8_DEPTH];
    struct tnd_int8_finish with_sums = *finish;
    with_sums.sums = sums;
    with_sums.sums_stride = TND_INT8_DEPTH;
    int8_depth_sums(depth, finish->n_rows, finish->n_filters, sums);
    int8_finish(&with_sums);
}

/* ---- sums and products of two operands ---- */

static inline void real_numbers(const uint8_t *restrict bytes, uint8_t flip, int32_t zero,
                                float scale, float *restrict out)
{
    for (int i = 0; i < PANEL; i++) {
        out[i] = (float)((int32_t)(uint8_t)(bytes[i] ^ flip) - zero) * scale;
    }
}

/* 16 values. (Compilers vectorise each loop.) */
static inline void binary_panel(const struct tnd_binary_int8 *op, const uint8_t *a_bytes,
                                const uint8_t *b_bytes, uint8_t *restrict y)
{
    const float scale = op->scale_y;
    const float low = op->low;
    const float high = op->high;
    const int32_t zero = op->zero_y;
    const int flip_a = op->a_is_signed ? 128 : 0;
    const int flip_b = op->b_is_signed ? 128 : 0;
    float a[PANEL];
    float b[PANEL];
    real_numbers(a_bytes, (uint8_t)flip_a, op->zero_a + flip_a, op->scale_a, a);
    real_numbers(b_bytes, (uint8_t)flip_b, op->zero_b + flip_b, op->scale_b, b);
    if (op->is_product) {
        for (int i = 0; i < PANEL; i++) {
            a[i] *= b[i];
        }
    } else {
        for (int i = 0; i < PANEL; i++) {
            a[i] += b[i];
        }
    }
    if (op->divides) {
        for (int i = 0; i < PANEL; i++) {
            a[i] /= scale;
        }
    } else {
        for (int i = 0; i < PANEL; i++) {
            a[i] *= scale;
        }
    }
    for (int i = 0; i < PANEL; i++) {
        const float above = a[i] > low ? a[i] : low;
        const float inside = above < high ? above : high;
        y[i] = (uint8_t)((int32_t)((inside + ROUNDER) - ROUNDER) + zero);
    }
}

static inline void int8_binary(const struct tnd_int8_binary *binary)
{
    int64_t i = 0;
    for (; i + PANEL <= binary->n; i += PANEL) {
        binary_panel(binary->op, binary->a + i, binary->b + i, binary->y + i);
    }
    if (i < binary->n) {
        const size_t rest = (size_t)(binary->n - i);
        uint8_t part[3][PANEL] = {{0}};
        memcpy(part[0], binary->a + i, rest);
        memcpy(part[1], binary->b + i, rest);
        binary_panel(binary->op, part[0], part[1], part[2]);
        memcpy(binary->y + i, part[2], rest);
    }
}

/* ---- kernels whose tiles have one panel ---- */

typedef void int8_rows_fn(const struct tnd_int8_tile *tile, const int8_t *w, int32_t *sums);

/* multiply_rows for a number of rows that is a compile-time constant. */
#define INT8_ROWS(n)                                                                               \
    static void rows_##n(const struct tnd_int8_tile *tile, const int8_t *w, int32_t *sums)         \
    {                                                                                              \
        multiply_rows(tile, n, w, sums);                                                           \
    }

static inline void int8_by_panel(const struct tnd_int8_tile *tile, int8_rows_fn *const *by_rows)
{
    for (int panel = 0; panel < tile->n_panels; panel++) {
        by_rows[tile->n_rows - 1](tile, tile->w + panel * tile->w_panel,
                                  tile->sums + panel * PANEL);
    }
}

/* The table of kernels that read rows 4 bytes at a time, with the functions above. */
#define INT8_KERNELS(n_rows, function)                                                             \
    (struct tnd_int8_kernels)                                                                      \
    {                                                                                              \
        .rows = (n_rows), .panels = TND_INT8_PANELS, .step = 4, .multiply = (function),            \
        .finish = int8_finish, .depth = int8_depth, .binary = int8_binary                          \
    }

#endif
