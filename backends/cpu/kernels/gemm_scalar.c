/* SPDX-License-Identifier: MIT
 * Plain C kernels, the reference for every vector version. A panel is one row. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { PANELS = 4, TOKENS = 4 };

/* Quantises activations to bytes: scale = largest magnitude / 127, ties to even. NaN and infinity
 * propagate to the scale and so to the result; the bytes stay defined. */
static void quantize_x(const float *x, int64_t n, int form, int offset, struct tnd_x_block *out)
{
    for (int64_t b = 0; b < n / TND_X_BLOCK; b++, x += TND_X_BLOCK, out++) {
        float top = 0;
        for (int i = 0; i < TND_X_BLOCK; i++) {
            float magnitude = fabsf(x[i]);
            top = magnitude <= top ? top : magnitude; /* also if x[i] is NaN */
            if (top != top) {
                break;
            }
        }
        float inverse = top < TND_X_TINY ? 0.0f : 127.0f / top;
        int32_t sum[2] = {0, 0};
        for (int i = 0; i < TND_X_BLOCK; i++) {
            float scaled = x[i] * inverse;
            int q = fabsf(scaled) < 128.0f ? (int)rintf(scaled) : 0; /* NaN becomes 0, too */
            out->q[i] = (int8_t)q;
            sum[i / 16] += q;
        }
        tnd_x_block_finish(out, top, sum[0], sum[1], form, offset);
    }
}

static int32_t dot(const uint8_t *w, const int8_t *x, int n)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += w[i] * x[i];
    }
    return sum;
}

/* Adds one element's products over the tile's part of K. Groups have 32 or 16 values. */
static inline float element(const struct tnd_tile_q *tile, const uint8_t *w, const float *scales,
                            const float *mins, const struct tnd_x_block *x, int form, float y)
{
    int group = (form & TND_GROUPS_OF_16) != 0 ? 16 : 32;
    int n_groups = 32 / group;
    for (int b = 0; b < tile->n_blocks; b++) {
        float sum = 0;
        for (int g = 0; g < n_groups; g++) {
            int32_t start = (form & TND_AFFINE) != 0 ? 0 : x[b].group.correction[g];
            int32_t total = start + dot(w + b * 32 + g * group, x[b].q + g * group, group);
            sum += scales[b * n_groups + g] * (float)total;
        }
        y += sum * x[b].scale;
        for (int g = 0; g < n_groups && (form & TND_AFFINE) != 0; g++) {
            y += mins[b * n_groups + g] * x[b].group.sum[g];
        }
    }
    return y;
}

static inline void gemm_q(const struct tnd_tile_q *tile, int form)
{
    for (int t = 0; t < tile->n_tokens; t++) {
        const struct tnd_x_block *x = tile->x + (size_t)t * tile->x_blocks;
        for (int r = 0; r < PANELS; r++) {
            float *y = &tile->y[(size_t)t * tile->y_stride + (size_t)r];
            size_t groups = (size_t)r * tile->scales_panel;
            *y = element(tile, tile->values + (size_t)r * tile->values_panel, tile->scales + groups,
                         tile->mins + groups, x, form, tile->accumulate ? *y : 0.0f);
        }
    }
}

#define GEMM_Q(NAME, form, offset, bits, is_super)                                                 \
    static void gemm_##NAME(const struct tnd_tile_q *tile)                                         \
    {                                                                                              \
        gemm_q(tile, form);                                                                        \
    }
TND_QUANT_KERNELS(GEMM_Q)
#undef GEMM_Q

static void gemm_f(const struct tnd_tile_f *tile)
{
    for (int t = 0; t < tile->n_tokens; t++) {
        const float *x = tile->x + (size_t)t * tile->x_stride;
        for (int r = 0; r < PANELS; r++) {
            const float *w = tile->w + (size_t)r * tile->w_panel;
            float *y = &tile->y[(size_t)t * tile->y_stride + (size_t)r];
            float sum = 0;
            for (int k = 0; k < tile->n_values; k++) {
                sum += w[k] * x[k];
            }
            *y = tile->accumulate ? *y + sum : sum;
        }
    }
}

void tnd_fill_gemm_scalar(struct tnd_cpu_kernels *out)
{
    out->isa_q = "scalar";
    out->isa_f = "scalar";
    out->q.panels = PANELS;
    out->q.tokens = TOKENS;
    out->q.quantize_x = quantize_x;
#define FILL(NAME, form, offset, bits, is_super) out->q.gemm[TANDEM_TYPE_##NAME] = gemm_##NAME;
    TND_QUANT_KERNELS(FILL)
#undef FILL
    out->f.panels = PANELS;
    out->f.tokens = TOKENS;
    out->f.gemm = gemm_f;
    out->f.gemm_panel = NULL;
}
