/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for ARM CPUs with dot products of bytes: a tile is 4 rows by a panel.
 * A file that includes it defines DOT(sum, w, x), for bytes of x that count from 0, or, where the
 * instruction takes signed ones alone, DOT_IS_SIGNED: 128 is taken off x, and added for all of w. */
#ifndef TND_INT8_DOTPROD_H
#define TND_INT8_DOTPROD_H

#include <arm_neon.h>

#include "backends/cpu/kernels/int8_lanes.h"

enum { ROWS = 4, VECTORS = 4 }; /* vectors of 4 filters */

TND_INLINE uint8x16_t four_bytes(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return vreinterpretq_u8_u32(vdupq_n_u32(value));
}

TND_INLINE void multiply_rows(const struct tnd_int8_tile *tile, const int rows, const int8_t *w,
                              int32_t *sums)
{
    int32x4_t sum[ROWS][VECTORS];
    int32x4_t all[VECTORS]; /* of w, where 128 was taken off x */
    TND_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        all[v] = vdupq_n_s32(0);
        TND_UNROLL
        for (int r = 0; r < rows; r++) {
            sum[r][v] = vdupq_n_s32(0);
        }
    }
    for (int64_t k = 0; k < tile->k; k += 4, w += 4 * PANEL) {
        TND_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const int8x16_t four = vld1q_s8(w + 16 * v);
#if defined(DOT_IS_SIGNED)
            all[v] = vdotq_s32(all[v], four, vdupq_n_s8(1));
#endif
            TND_UNROLL
            for (int r = 0; r < rows; r++) {
                sum[r][v] = DOT(sum[r][v], four, four_bytes(tile->x + r * tile->x_stride + k));
            }
        }
    }
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        TND_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            vst1q_s32(sums + r * TILE + 4 * v, vaddq_s32(sum[r][v], vshlq_n_s32(all[v], 7)));
        }
    }
}

static void multiply(const struct tnd_int8_tile *tile)
{
    for (int panel = 0; panel < tile->n_panels; panel++) {
        const int8_t *w = tile->w + panel * tile->w_panel;
        int32_t *sums = tile->sums + panel * PANEL;
        switch (tile->n_rows) {
        case 1:
            multiply_rows(tile, 1, w, sums);
            break;
        case 2:
            multiply_rows(tile, 2, w, sums);
            break;
        case 3:
            multiply_rows(tile, 3, w, sums);
            break;
        default:
            multiply_rows(tile, ROWS, w, sums);
            break;
        }
    }
}

static void fill_int8(struct tnd_cpu_kernels *out)
{
    out->int8 = (struct tnd_int8_kernels){.rows = ROWS,
                                          .panels = TND_INT8_PANELS,
                                          .step = 4,
                                          .multiply = multiply,
                                          .finish = int8_finish,
                                          .depth = int8_depth};
}

#endif
