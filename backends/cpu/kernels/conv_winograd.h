/* SPDX-License-Identifier: MIT
 * Transforms of Winograd's F(2x2, 3x3) (Lavin & Gray 2015, arXiv 1509.09308) over vectors of
 * channels and of filters. Included, and so compiled, once per instruction set. */
#ifndef TND_CONV_WINOGRAD_H
#define TND_CONV_WINOGRAD_H

#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/conv_tile.h"

#if defined(__AVX512F__)
#define TND_WINOGRAD_LANES 16
#else
#define TND_WINOGRAD_LANES 8
#endif
typedef float tnd_winograd_lanes __attribute__((vector_size(TND_WINOGRAD_LANES * sizeof(float))));

/* Multiplies four vectors, `step` apart, by B': 1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1. */
static inline void tnd_winograd_b(tnd_winograd_lanes *v, int step)
{
    const tnd_winograd_lanes w = v[0];
    const tnd_winograd_lanes x = v[step];
    const tnd_winograd_lanes y = v[2 * step];
    const tnd_winograd_lanes z = v[3 * step];
    v[0] = w - y;
    v[step] = x + y;
    v[2 * step] = y - x;
    v[3 * step] = x - z;
}

/* B' d B of 4 by 4 input positions with `n` channels each; in `out`, each of the 16 tile positions,
 * `step` apart, is padded to a multiple of TND_WINOGRAD_IN. */
static inline void tnd_winograd_in(const float *const *rows, int64_t n, float *out, int64_t step)
{
    for (int64_t c = 0; c < n; c += TND_WINOGRAD_LANES) {
        tnd_winograd_lanes d[16];
        const int64_t left = n - c;
        if (left < TND_WINOGRAD_LANES) {
            memset(d, 0, sizeof(d));
            TND_CONV_UNROLL
            for (int i = 0; i < 16; i++) {
                memcpy(&d[i], rows[i] + c, (size_t)left * sizeof(float));
            }
        } else {
            TND_CONV_UNROLL
            for (int i = 0; i < 16; i++) {
                memcpy(&d[i], rows[i] + c, sizeof(d[i]));
            }
        }
        TND_CONV_UNROLL
        for (int i = 0; i < 4; i++) {
            tnd_winograd_b(d + i, 4);
        }
        TND_CONV_UNROLL
        for (int i = 0; i < 4; i++) {
            tnd_winograd_b(d + 4 * i, 1);
        }
        TND_CONV_UNROLL
        for (int i = 0; i < 16; i++) {
            memcpy(out + i * step + c, &d[i], sizeof(d[i]));
        }
    }
}

/* A' m A of 16 tile positions, `step` apart, to 2 by 2 output positions with `n` values each, a
 * multiple of TND_WINOGRAD_LANES; `line` is the stride between output lines. Returns whether all
 * results are finite. A': 1 1 1 0, 0 1 -1 -1. */
static inline int tnd_winograd_out(const float *m, int64_t step, int n, float *out, int64_t line)
{
    tnd_winograd_lanes sum = {0};
    float all = 0;
    for (int f = 0; f < n; f += TND_WINOGRAD_LANES) {
        tnd_winograd_lanes t[2][4];
        TND_CONV_UNROLL
        for (int j = 0; j < 4; j++) {
            tnd_winograd_lanes v[4];
            TND_CONV_UNROLL
            for (int i = 0; i < 4; i++) {
                memcpy(&v[i], m + (4 * i + j) * step + f, sizeof(v[i]));
            }
            t[0][j] = v[0] + v[1] + v[2];
            t[1][j] = v[1] - v[2] - v[3];
        }
        TND_CONV_UNROLL
        for (int i = 0; i < 2; i++) {
            const tnd_winograd_lanes y = t[i][0] + t[i][1] + t[i][2];
            const tnd_winograd_lanes z = t[i][1] - t[i][2] - t[i][3];
            memcpy(out + i * line + f, &y, sizeof(y));
            memcpy(out + i * line + n + f, &z, sizeof(z));
            sum += (y - y) + (z - z);
        }
    }
    TND_CONV_UNROLL
    for (int l = 0; l < TND_WINOGRAD_LANES; l++) {
        all += sum[l];
    }
    return all == 0;
}

#endif
