/* SPDX-License-Identifier: MIT
 * Multiplies rows of bytes by panels of filters, tile by tile. */
#include "backends/cpu/convolution/cpu_int8_tiles.h"

#include "backends/cpu/ops/cpu_ops.h"

struct tnd_int8_parameters tnd_int8_parameters_in(void *memory, int64_t n)
{
    int32_t *const base = memory;
    int32_t *const zero_w = base + n;
    float *const scale = (void *)(zero_w + n);
    return (struct tnd_int8_parameters){zero_w, base, scale, scale + n};
}

void tnd_int8_set_parameter(const struct tnd_int8_parameters *parameters, int64_t f,
                            const struct tnd_int8_filter *filter, int64_t k, int32_t zero_x,
                            int x_less)
{
    const uint32_t sum_w = (uint32_t)filter->sum_w;
    const uint32_t of_zero = (uint32_t)zero_x * (sum_w - (uint32_t)k * (uint32_t)filter->zero_w);
    parameters->base[f] = (int32_t)((uint32_t)filter->bias - of_zero + (uint32_t)x_less * sum_w);
    parameters->zero_w[f] = filter->zero_w;
    parameters->scale[f] = filter->scale;
    parameters->offset[f] = filter->offset;
}

int32_t tnd_int8_sum_row(const uint8_t *row, int64_t n)
{
    uint32_t sum[TND_INT8_PANEL] = {0};
    int64_t i = 0;
    for (; i + TND_INT8_PANEL <= n; i += TND_INT8_PANEL) {
        for (int k = 0; k < TND_INT8_PANEL; k++) {
            sum[k] += row[i + k];
        }
    }
    for (; i < n; i++) {
        sum[0] += row[i];
    }
    for (int k = 1; k < TND_INT8_PANEL; k++) {
        sum[0] += sum[k];
    }
    return (int32_t)sum[0];
}

/* (Blocks of constant length are vectorised.) */
void tnd_int8_flip(uint8_t *bytes, int64_t n)
{
    int64_t i = 0;
    for (; i + TND_INT8_STEP <= n; i += TND_INT8_STEP) {
        for (int k = 0; k < TND_INT8_STEP; k++) {
            bytes[i + k] ^= 128;
        }
    }
    for (; i < n; i++) {
        bytes[i] ^= 128;
    }
}

/* Multiplies rows of x by the panels of a tile, from filter `first` on. */
static void run_panels(const struct tnd_int8_tiles *tiles, int64_t first)
{
    const struct tnd_int8_kernels *kernels = tiles->kernels;
    const int64_t panel_bytes = tnd_int8_up(tiles->k, TND_INT8_STEP) * TND_INT8_PANEL;
    const int64_t n = tnd_min(tiles->n_filters - first, kernels->panels * TND_INT8_PANEL);
    const int64_t bytes = tiles->conv->result >= TND_INT8_S8 ? 1 : 4;
    int32_t sums[TND_INT8_ROWS * TND_INT8_TILE];
    struct tnd_int8_finish finish = {.sums = sums,
                                     .sums_stride = TND_INT8_TILE,
                                     .n_filters = (int)n,
                                     .conv = tiles->conv,
                                     .zero_w = tiles->parameters.zero_w + first,
                                     .base = tiles->parameters.base + first,
                                     .scale = tiles->parameters.scale + first,
                                     .offset = tiles->parameters.offset + first,
                                     .y_stride = tiles->conv->filters};
    struct tnd_int8_tile tile = {.x_stride = tiles->x_stride,
                                 .w = tiles->w + first / TND_INT8_PANEL * panel_bytes,
                                 .w_panel = panel_bytes,
                                 .n_panels = (int)((n + TND_INT8_PANEL - 1) / TND_INT8_PANEL),
                                 .k = tnd_int8_up(tiles->k, kernels->step),
                                 .sums = sums};
    for (int64_t at = 0; at < tiles->n_rows; at += kernels->rows) {
        tile.x = tiles->x + at * tiles->x_stride;
        tile.n_rows = finish.n_rows = (int)tnd_min(tiles->n_rows - at, kernels->rows);
        kernels->multiply(&tile);
        finish.x_sums = tiles->x_sums != NULL ? tiles->x_sums + at : NULL;
        finish.y = (char *)tiles->y + (at * tiles->conv->filters + first) * bytes;
        kernels->finish(&finish);
    }
}

void tnd_int8_run_tiles(const struct tnd_int8_tiles *tiles)
{
    for (int64_t first = 0; first < tiles->n_filters;
         first += tiles->kernels->panels * TND_INT8_PANEL) {
        run_panels(tiles, first);
    }
}
