/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for ARM CPUs with dot products of bytes: a tile is 4 rows by a panel.
 * The including file has <arm_neon.h> and defines DOT(sum, w, x), for unsigned bytes of x, or, if
 * the instruction takes only signed ones, DOT_IS_SIGNED: then 128 is subtracted from x, and added
 * back as 128 times the sum of w. */
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
    int32x4_t all[VECTORS]; /* sums of w, if 128 was subtracted from x */
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

INT8_ROWS(1)
INT8_ROWS(2)
INT8_ROWS(3)
INT8_ROWS(4)

static void multiply(const struct tnd_int8_tile *tile)
{
    static int8_rows_fn *const by_rows[ROWS] = {rows_1, rows_2, rows_3, rows_4};
    int8_by_panel(tile, by_rows);
}
