/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for any CPU. */
#include "backends/cpu/kernels/int8_lanes.h"

static void multiply(const struct tnd_int8_tile *tile)
{
    for (int row = 0; row < tile->n_rows; row++) {
        const uint8_t *x = tile->x + row * tile->x_stride;
        for (int panel = 0; panel < tile->n_panels; panel++) {
            const int8_t *w = tile->w + panel * tile->w_panel;
            int32_t sums[PANEL] = {0};
            for (int64_t k = 0; k < tile->k; k += 4, w += 4 * PANEL) {
                for (int f = 0; f < PANEL; f++) {
                    sums[f] += x[k] * w[4 * f] + x[k + 1] * w[4 * f + 1] + x[k + 2] * w[4 * f + 2] +
                               x[k + 3] * w[4 * f + 3];
                }
            }
            memcpy(tile->sums + row * TILE + panel * PANEL, sums, sizeof(sums));
        }
    }
}

void tnd_fill_int8_scalar(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(8, multiply);
}
