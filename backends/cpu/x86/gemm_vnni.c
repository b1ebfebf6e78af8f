/* SPDX-License-Identifier: MIT
 * Integer kernels for AVX-512 with VNNI: a tile is 32 rows (two panels) and up to 6 tokens; one
 * instruction multiplies 4 unsigned weight bytes by 4 activation bytes in each of 16 lanes. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { LANES = 16, PANELS = 2, TOKENS = 6 };

TND_INLINE __m512i broadcast_4(const void *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm512_set1_epi32(value);
}

/* Sums of one group (n_steps times 4 values) for all rows and tokens of the tile. */
TND_INLINE void dot_group(const uint8_t *w, size_t w_panel, const struct tnd_x_block *const *x,
                          size_t x_blocks, int first, const int n_steps, const int n_tokens,
                          __m512i sum[PANELS][TOKENS])
{
    TND_UNROLL
    for (int j = 0; j < n_steps; j++) {
        const uint8_t *step = w + j * 4 * LANES;
        __m512i w0 = _mm512_load_si512((const void *)step);
        __m512i w1 = _mm512_load_si512((const void *)(step + w_panel));
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            __m512i v = broadcast_4(x[t / 3][(size_t)(t % 3) * x_blocks].q + first + 4 * j);
            sum[0][t] = _mm512_dpbusd_epi32(sum[0][t], w0, v);
            sum[1][t] = _mm512_dpbusd_epi32(sum[1][t], w1, v);
        }
    }
}

TND_INLINE void gemm_tile(const struct tnd_tile_q *tile, const int form, const int n_tokens)
{
    const int n_groups = (form & TND_GROUPS_OF_16) != 0 ? 2 : 1;
    const size_t panel_scales = tile->scales_panel;
    const size_t x_blocks = tile->x_blocks;
    /* three tokens per pointer: base, base + stride, base + 2 * stride are addressing modes */
    const struct tnd_x_block *x[2] = {tile->x, tile->x + 3 * x_blocks};
    const uint8_t *w = tile->values;
    const float *scales = tile->scales;
    const float *mins = tile->mins;
    __m512 y[PANELS][TOKENS];
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        float *from = tile->y + (size_t)t * tile->y_stride;
        y[0][t] = tile->accumulate ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
        y[1][t] = tile->accumulate ? _mm512_loadu_ps(from + LANES) : _mm512_setzero_ps();
    }
    for (int b = 0; b < tile->n_blocks; b++) {
        TND_UNROLL
        for (int g = 0; g < n_groups; g++) {
            __m512i sum[PANELS][TOKENS];
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                const struct tnd_x_block *block = x[t / 3] + (size_t)(t % 3) * x_blocks;
                sum[0][t] = (form & TND_AFFINE) != 0 ? _mm512_setzero_si512()
                                                     : broadcast_4(&block->group.correction[g]);
                sum[1][t] = sum[0][t];
            }
            dot_group(w, tile->values_panel, x, x_blocks, g * 16, 8 / n_groups, n_tokens, sum);
            w += 8 / n_groups * 4 * LANES;
            __m512 scale_0 = _mm512_load_ps(scales);
            __m512 scale_1 = _mm512_load_ps(scales + panel_scales);
            scales += LANES;
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                const struct tnd_x_block *block = x[t / 3] + (size_t)(t % 3) * x_blocks;
                __m512 x_scale = _mm512_set1_ps(block->scale);
                __m512 part_0 = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[0][t]), x_scale);
                __m512 part_1 = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[1][t]), x_scale);
                y[0][t] = _mm512_fmadd_ps(part_0, scale_0, y[0][t]);
                y[1][t] = _mm512_fmadd_ps(part_1, scale_1, y[1][t]);
                if ((form & TND_AFFINE) != 0) {
                    __m512 x_sum = _mm512_set1_ps(block->group.sum[g]);
                    y[0][t] = _mm512_fmadd_ps(_mm512_load_ps(mins), x_sum, y[0][t]);
                    y[1][t] = _mm512_fmadd_ps(_mm512_load_ps(mins + panel_scales), x_sum, y[1][t]);
                }
            }
            mins += LANES;
        }
        x[0]++;
        x[1]++;
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        float *to = tile->y + (size_t)t * tile->y_stride;
        _mm512_storeu_ps(to, y[0][t]);
        _mm512_storeu_ps(to + LANES, y[1][t]);
    }
}

#define GEMM_FORM(name, form)                                                                      \
    static void name(const struct tnd_tile_q *tile)                                                \
    {                                                                                              \
        switch (tile->n_tokens) {                                                                  \
        case 1:                                                                                    \
            gemm_tile(tile, form, 1);                                                              \
            break;                                                                                 \
        case 2:                                                                                    \
            gemm_tile(tile, form, 2);                                                              \
            break;                                                                                 \
        case 3:                                                                                    \
            gemm_tile(tile, form, 3);                                                              \
            break;                                                                                 \
        case 4:                                                                                    \
            gemm_tile(tile, form, 4);                                                              \
            break;                                                                                 \
        case 5:                                                                                    \
            gemm_tile(tile, form, 5);                                                              \
            break;                                                                                 \
        default:                                                                                   \
            gemm_tile(tile, form, 6);                                                              \
            break;                                                                                 \
        }                                                                                          \
    }
GEMM_FORM(gemm_symmetric, 0)
GEMM_FORM(gemm_affine, TND_AFFINE)
GEMM_FORM(gemm_symmetric_16, TND_GROUPS_OF_16)
GEMM_FORM(gemm_affine_16, TND_AFFINE | TND_GROUPS_OF_16)
#undef GEMM_FORM

static tnd_gemm_q_fn *const gemm_of_form[] = {gemm_symmetric, gemm_affine, gemm_symmetric_16,
                                              gemm_affine_16};

void tnd_fill_gemm_vnni(struct tnd_cpu_kernels *out)
{
    out->isa_q = "avx512+vnni";
    out->q.panels = PANELS;
    out->q.tokens = TOKENS;
#define FILL(NAME, form, offset, bits, is_super)                                                   \
    out->q.gemm[TANDEM_TYPE_##NAME] = gemm_of_form[(form)&3];
    TND_QUANT_KERNELS(FILL)
#undef FILL
}
#else
typedef int tnd_no_vnni;
#endif
