/* SPDX-License-Identifier: MIT
 * Integer products of PANELS_Q panels of 4 rows and up to TOKENS_Q (2 or 4) tokens, in sets of SET
 * tokens. Include it after dot_<isa>.h, which defines dot() and the order of rows and tokens in a
 * vector. The order of floating-point operations is that of gemm_avx2.c. */

enum { LANES = 4, SETS = TOKENS_Q / SET, STEP = 4 * LANES };

/* The second token of a set; the first one again if there is none. */
#define SECOND(set, n_tokens)                                                                      \
    (SET * (set) + SET - 1 < (n_tokens) ? SET * (set) + SET - 1 : SET * (set))

/* Adds one group of 16 or 32 values, the g-th of a block. */
TND_INLINE void gemm_group(const struct tnd_tile_q *tile, const uint8_t *w, const float *scales,
                           const float *mins, const struct tnd_x_block *x, const int g,
                           const int form, const int bits, const int n_tokens,
                           float32x4_t y[PANELS_Q][SETS][SET])
{
    const bool affine = (form & TND_AFFINE) != 0;
    const int n_dots = (form & TND_GROUPS_OF_16) != 0 ? 1 : 2;
    const int n_sets = (n_tokens + SET - 1) / SET;
    const struct tnd_x_block *a[SETS];
    const struct tnd_x_block *b[SETS];
    int32x4_t sum[PANELS_Q][SETS][SET];
    TND_UNROLL
    for (int i = 0; i < n_sets; i++) {
        a[i] = x + (size_t)(SET * i) * tile->x_blocks;
        b[i] = x + (size_t)SECOND(i, n_tokens) * tile->x_blocks;
        int32x4_t start = !affine && CORRECTED(bits)
                              ? spread_x(a[i]->group.correction[g], b[i]->group.correction[g])
                              : vdupq_n_s32(0);
        TND_UNROLL
        for (int v = 0; v < PANELS_Q * SET; v++) {
            sum[v / SET][i][v % SET] = start;
        }
    }
    TND_UNROLL
    for (int d = 0; d < n_dots; d++) {
        int8x16_t q[SETS][SET];
        TND_UNROLL
        for (int i = 0; i < n_sets; i++) {
            load_x(a[i]->q + 16 * (g + d), b[i]->q + 16 * (g + d), q[i]);
        }
        TND_UNROLL
        for (int s = 0; s < PANELS_Q; s++) {
            const uint8_t *p = w + (size_t)s * tile->values_panel + d * 4 * STEP;
            const uint8x16_t codes[4] = {vld1q_u8(p), vld1q_u8(p + STEP), vld1q_u8(p + 2 * STEP),
                                         vld1q_u8(p + 3 * STEP)};
            TND_UNROLL
            for (int i = 0; i < n_sets; i++) {
                dot(codes, q[i], bits, sum[s][i]);
            }
        }
    }
    TND_UNROLL
    for (int i = 0; i < n_sets; i++) {
        float32x4_t x_scale = spread_x_f(a[i]->scale, b[i]->scale);
        float32x4_t x_sum =
            affine ? spread_x_f(a[i]->group.sum[g], b[i]->group.sum[g]) : vdupq_n_f32(0);
        TND_UNROLL
        for (int s = 0; s < PANELS_Q; s++) {
            float32x4_t scale[SET];
            float32x4_t min[SET];
            spread_rows(vld1q_f32(scales + (size_t)s * tile->scales_panel), scale);
            if (affine) {
                spread_rows(vld1q_f32(mins + (size_t)s * tile->scales_panel), min);
            }
            TND_UNROLL
            for (int v = 0; v < SET; v++) {
                float32x4_t part = vmulq_f32(vcvtq_f32_s32(sum[s][i][v]), x_scale);
                y[s][i][v] = vfmaq_f32(y[s][i][v], part, scale[v]);
                if (affine) {
                    y[s][i][v] = vfmaq_f32(y[s][i][v], min[v], x_sum);
                }
            }
        }
    }
}

TND_INLINE void gemm_q_tile(const struct tnd_tile_q *tile, const int form, const int bits,
                            const int n_tokens)
{
    const int n_groups = (form & TND_GROUPS_OF_16) != 0 ? 2 : 1;
    const int n_sets = (n_tokens + SET - 1) / SET;
    const struct tnd_x_block *x = tile->x;
    const uint8_t *w = tile->values;
    const float *scales = tile->scales;
    const float *mins = tile->mins;
    float32x4_t y[PANELS_Q][SETS][SET];
    float *to[SETS][2];
    TND_UNROLL
    for (int i = 0; i < n_sets; i++) {
        to[i][0] = tile->y + (size_t)(SET * i) * tile->y_stride;
        to[i][1] = tile->y + (size_t)SECOND(i, n_tokens) * tile->y_stride;
        TND_UNROLL
        for (int s = 0; s < PANELS_Q; s++) {
            if (tile->accumulate) {
                load_y(to[i][0] + s * LANES, to[i][1] + s * LANES, y[s][i]);
            } else {
                spread_rows(vdupq_n_f32(0), y[s][i]);
            }
        }
    }
    for (int block = 0; block < tile->n_blocks; block++, x++) {
        TND_UNROLL
        for (int g = 0; g < n_groups; g++) {
            gemm_group(tile, w, scales, mins, x, g, form, bits, n_tokens, y);
            w += 8 / n_groups * STEP;
            scales += LANES;
            mins += LANES;
        }
    }
    TND_UNROLL
    for (int i = 0; i < n_sets; i++) {
        TND_UNROLL
        for (int s = 0; s < PANELS_Q; s++) {
            store_y(to[i][0] + s * LANES, to[i][1] + s * LANES, y[s][i]);
        }
    }
}

TND_INLINE void gemm_q(const struct tnd_tile_q *tile, const int form, const int bits)
{
    switch (tile->n_tokens) {
    case 1:
        gemm_q_tile(tile, form, bits, 1);
        break;
#if TOKENS_Q > 2
    case 2:
        gemm_q_tile(tile, form, bits, 2);
        break;
    case 3:
        gemm_q_tile(tile, form, bits, 3);
        break;
#endif
    default:
        gemm_q_tile(tile, form, bits, TOKENS_Q);
        break;
    }
}

#define GEMM_Q(NAME, form, offset, bits, is_super)                                                 \
    static void gemm_##NAME(const struct tnd_tile_q *tile)                                         \
    {                                                                                              \
        gemm_q(tile, form, bits);                                                                  \
    }
TND_QUANT_KERNELS(GEMM_Q)
#undef GEMM_Q

static void fill_gemm_q(struct tnd_kernels_q *out)
{
    out->panels = PANELS_Q;
    out->tokens = TOKENS_Q;
#define FILL(NAME, form, offset, bits, is_super) out->gemm[TANDEM_TYPE_##NAME] = gemm_##NAME;
    TND_QUANT_KERNELS(FILL)
#undef FILL
}
