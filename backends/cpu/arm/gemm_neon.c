/* SPDX-License-Identifier: MIT
 * Integer and float kernels for every 64-bit ARM CPU (NEON), and quantisation of activations. */
#if defined(__aarch64__)
#include "backends/cpu/arm/dot_neon.h"

#define PANELS_Q 2
#define TOKENS_Q 2 /* with more, the 16-bit sums would spill */
enum { PANELS_F = 4, TOKENS_F = 4 };

#include "backends/cpu/arm/gemm_lanes128.h"

/* ---- floats: 16 rows and up to 4 tokens ---- */

/* y += w * x[k] for value k of 4. */
TND_INLINE float32x4_t multiply_add(float32x4_t y, float32x4_t w, float32x4_t x, const int k)
{
    return k == 0   ? vfmaq_laneq_f32(y, w, x, 0)
           : k == 1 ? vfmaq_laneq_f32(y, w, x, 1)
           : k == 2 ? vfmaq_laneq_f32(y, w, x, 2)
                    : vfmaq_laneq_f32(y, w, x, 3);
}

TND_INLINE void gemm_f_tile(const struct tnd_tile_f *tile, const int n_tokens)
{
    const float *w = tile->w;
    const float *x = tile->x;
    float32x4_t sum[PANELS_F][TOKENS_F];
    TND_UNROLL
    for (int i = 0; i < PANELS_F * n_tokens; i++) {
        sum[i % PANELS_F][i / PANELS_F] = vdupq_n_f32(0);
    }
    int left = tile->n_values;
    for (; left >= 4; left -= 4, x += 4) {
        float32x4_t four[TOKENS_F];
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            four[t] = vld1q_f32(x + (size_t)t * tile->x_stride);
        }
        TND_UNROLL
        for (int k = 0; k < 4; k++, w += LANES) {
            TND_UNROLL
            for (int s = 0; s < PANELS_F; s++) {
                float32x4_t rows = vld1q_f32(w + (size_t)s * tile->w_panel);
                TND_UNROLL
                for (int t = 0; t < n_tokens; t++) {
                    sum[s][t] = multiply_add(sum[s][t], rows, four[t], k);
                }
            }
        }
    }
    for (; left > 0; left--, x++, w += LANES) {
        TND_UNROLL
        for (int s = 0; s < PANELS_F; s++) {
            float32x4_t rows = vld1q_f32(w + (size_t)s * tile->w_panel);
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                sum[s][t] = vfmaq_n_f32(sum[s][t], rows, x[(size_t)t * tile->x_stride]);
            }
        }
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        float *y = tile->y + (size_t)t * tile->y_stride;
        TND_UNROLL
        for (int s = 0; s < PANELS_F; s++) {
            float32x4_t all = sum[s][t];
            vst1q_f32(y + s * LANES,
                      tile->accumulate ? vaddq_f32(all, vld1q_f32(y + s * LANES)) : all);
        }
    }
}

static void gemm_f(const struct tnd_tile_f *tile)
{
    switch (tile->n_tokens) {
    case 1:
        gemm_f_tile(tile, 1);
        break;
    case 2:
        gemm_f_tile(tile, 2);
        break;
    case 3:
        gemm_f_tile(tile, 3);
        break;
    default:
        gemm_f_tile(tile, 4);
        break;
    }
}

/* ---- activations to bytes, as quantize_x of gemm_scalar.c ---- */

/* The largest magnitude, compared as bits: NaN is above infinity, infinity above all numbers. */
static float top_magnitude(const float32x4_t x[8])
{
    uint32x4_t top = vdupq_n_u32(0);
    for (int i = 0; i < 8; i++) {
        top = vmaxq_u32(top, vreinterpretq_u32_f32(vabsq_f32(x[i])));
    }
    return vgetq_lane_f32(vreinterpretq_f32_u32(vdupq_n_u32(vmaxvq_u32(top))), 0);
}

static void quantize_x(const float *x, int64_t n, int form, int offset, struct tnd_x_block *out)
{
    for (int64_t b = 0; b < n / TND_X_BLOCK; b++, x += TND_X_BLOCK, out++) {
        float32x4_t values[8];
        for (int i = 0; i < 8; i++) {
            values[i] = vld1q_f32(x + 4 * i);
        }
        float top = top_magnitude(values);
        float inverse = top < TND_X_TINY ? 0.0f : 127.0f / top;
        int32_t sum[2];
        for (int half = 0; half < 2; half++) {
            int16x4_t q[4];
            for (int i = 0; i < 4; i++) { /* NaN becomes 0 */
                float32x4_t scaled = vmulq_n_f32(values[4 * half + i], inverse);
                q[i] = vmovn_s32(vcvtnq_s32_f32(scaled));
            }
            int8x16_t bytes = vcombine_s8(vmovn_s16(vcombine_s16(q[0], q[1])),
                                          vmovn_s16(vcombine_s16(q[2], q[3])));
            vst1q_s8(out->q + 16 * half, bytes);
            sum[half] = vaddlvq_s8(bytes);
        }
        tnd_x_block_finish(out, top, sum[0], sum[1], form, offset);
    }
}

void tnd_fill_gemm_neon(struct tnd_cpu_kernels *out)
{
    fill_gemm_q(&out->q);
    out->isa_q = "neon";
    out->isa_f = "neon";
    out->q.quantize_x = quantize_x;
    out->f.panels = PANELS_F;
    out->f.tokens = TOKENS_F;
    out->f.gemm = gemm_f;
}
#else
typedef int tnd_no_neon;
#endif
