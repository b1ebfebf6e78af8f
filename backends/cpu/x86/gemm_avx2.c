/* SPDX-License-Identifier: MIT
 * Integer and float kernels for AVX2. Products of bytes are added in pairs to 16-bit sums, which
 * must not overflow: with few bits per weight, several such sums are added before widening; with 8
 * bits, the sign of the weight is moved to the activation. */
#if defined(__AVX2__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { LANES = 8, TOKENS_Q = 4, PANELS_F = 2, TOKENS_F = 6 };

/* ---- integers: 8 rows and up to 4 tokens ---- */

TND_INLINE __m256i broadcast_4(const void *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm256_set1_epi32(value);
}

/* 16-bit sums of 2 products of bytes each. */
TND_INLINE __m256i multiply(__m256i w, __m256i x, const int bits)
{
    if (bits < 8) {
        return _mm256_maddubs_epi16(w, x);
    }
    __m256i value = _mm256_xor_si256(w, _mm256_set1_epi8(-128)); /* w - 128, signed */
    return _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
}

/* Steps of 4 values whose 16-bit sums can be added: steps * 2 * 127 * (2^bits - 1) < 2^15. */
#define SPAN(bits) ((bits) <= 4 ? 8 : (bits) == 5 ? 4 : (bits) == 6 ? 2 : 1)

TND_INLINE void dot_group(const uint8_t *w, const struct tnd_x_block *x, size_t x_blocks, int first,
                          const int n_steps, const int bits, const int n_tokens,
                          __m256i sum[TOKENS_Q])
{
    const int span = SPAN(bits) < n_steps ? SPAN(bits) : n_steps;
    TND_UNROLL
    for (int begin = 0; begin < n_steps; begin += span) {
        __m256i words[TOKENS_Q];
        TND_UNROLL
        for (int j = begin; j < begin + span; j++) {
            __m256i v = _mm256_load_si256((const __m256i *)(const void *)(w + j * 4 * LANES));
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                __m256i q = broadcast_4(x[(size_t)t * x_blocks].q + first + 4 * j);
                __m256i product = multiply(v, q, bits);
                words[t] = j == begin ? product : _mm256_add_epi16(words[t], product);
            }
        }
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            __m256i wide = _mm256_madd_epi16(words[t], _mm256_set1_epi16(1));
            sum[t] = _mm256_add_epi32(sum[t], wide);
        }
    }
}

TND_INLINE void gemm_q_tile(const struct tnd_tile_q *tile, const int form, const int bits,
                            const int n_tokens)
{
    const int n_groups = (form & TND_GROUPS_OF_16) != 0 ? 2 : 1;
    const bool corrected = (form & TND_AFFINE) == 0 && bits < 8;
    const size_t x_blocks = tile->x_blocks;
    const struct tnd_x_block *x = tile->x;
    const uint8_t *w = tile->values;
    const float *scales = tile->scales;
    const float *mins = tile->mins;
    __m256 y[TOKENS_Q];
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        y[t] = tile->accumulate ? _mm256_loadu_ps(tile->y + (size_t)t * tile->y_stride)
                                : _mm256_setzero_ps();
    }
    for (int b = 0; b < tile->n_blocks; b++, x++) {
        TND_UNROLL
        for (int g = 0; g < n_groups; g++) {
            __m256i sum[TOKENS_Q];
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                sum[t] = corrected ? broadcast_4(&x[(size_t)t * x_blocks].group.correction[g])
                                   : _mm256_setzero_si256();
            }
            dot_group(w, x, x_blocks, g * 16, 8 / n_groups, bits, n_tokens, sum);
            w += 8 / n_groups * 4 * LANES;
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                const struct tnd_x_block *block = x + (size_t)t * x_blocks;
                __m256 part =
                    _mm256_mul_ps(_mm256_cvtepi32_ps(sum[t]), _mm256_set1_ps(block->scale));
                y[t] = _mm256_fmadd_ps(part, _mm256_load_ps(scales), y[t]);
                if ((form & TND_AFFINE) != 0) {
                    y[t] = _mm256_fmadd_ps(_mm256_load_ps(mins),
                                           _mm256_set1_ps(block->group.sum[g]), y[t]);
                }
            }
            scales += LANES;
            mins += LANES;
        }
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        _mm256_storeu_ps(tile->y + (size_t)t * tile->y_stride, y[t]);
    }
}

#define GEMM_Q(NAME, form, offset, bits, is_super)                                                 \
    static void gemm_##NAME(const struct tnd_tile_q *tile)                                         \
    {                                                                                              \
        switch (tile->n_tokens) {                                                                  \
        case 1:                                                                                    \
            gemm_q_tile(tile, form, bits, 1);                                                      \
            break;                                                                                 \
        case 2:                                                                                    \
            gemm_q_tile(tile, form, bits, 2);                                                      \
            break;                                                                                 \
        case 3:                                                                                    \
            gemm_q_tile(tile, form, bits, 3);                                                      \
            break;                                                                                 \
        default:                                                                                   \
            gemm_q_tile(tile, form, bits, 4);                                                      \
            break;                                                                                 \
        }                                                                                          \
    }
TND_QUANT_KERNELS(GEMM_Q)
#undef GEMM_Q

/* ---- floats: 16 rows and up to 6 tokens ---- */

TND_INLINE void gemm_f_tile(const struct tnd_tile_f *tile, const int n_tokens)
{
    const size_t x_stride = tile->x_stride;
    const float *w0 = tile->w;
    const float *w1 = tile->w + tile->w_panel;
    const float *x[2] = {tile->x, tile->x + 3 * x_stride}; /* three tokens per pointer */
    __m256 sum[PANELS_F][TOKENS_F];
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        sum[0][t] = _mm256_setzero_ps();
        sum[1][t] = _mm256_setzero_ps();
    }
    for (int k = 0; k < tile->n_values; k++) {
        __m256 v0 = _mm256_load_ps(w0);
        __m256 v1 = _mm256_load_ps(w1);
        w0 += LANES;
        w1 += LANES;
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            __m256 value = _mm256_set1_ps(x[t / 3][(size_t)(t % 3) * x_stride]);
            sum[0][t] = _mm256_fmadd_ps(v0, value, sum[0][t]);
            sum[1][t] = _mm256_fmadd_ps(v1, value, sum[1][t]);
        }
        x[0]++;
        x[1]++;
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        float *y = tile->y + (size_t)t * tile->y_stride;
        if (tile->accumulate) {
            sum[0][t] = _mm256_add_ps(sum[0][t], _mm256_loadu_ps(y));
            sum[1][t] = _mm256_add_ps(sum[1][t], _mm256_loadu_ps(y + LANES));
        }
        _mm256_storeu_ps(y, sum[0][t]);
        _mm256_storeu_ps(y + LANES, sum[1][t]);
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
    case 4:
        gemm_f_tile(tile, 4);
        break;
    case 5:
        gemm_f_tile(tile, 5);
        break;
    default:
        gemm_f_tile(tile, 6);
        break;
    }
}

/* ---- activations to bytes, as quantize_x of gemm_scalar.c ---- */

static int32_t sum_of(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

static int32_t top_of(__m256i v)
{
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* The largest magnitude, compared as bits: NaN is above infinity, infinity above all numbers. */
static float top_magnitude(const float *x)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i top = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + 8 * i));
        top = _mm256_max_epi32(top, _mm256_and_si256(bits, magnitude));
    }
    int32_t bits = top_of(top);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void quantize_x(const float *x, int64_t n, int form, int offset, struct tnd_x_block *out)
{
    const __m256i lowest = _mm256_set1_epi32(-127);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* undoes the lanes of packs */
    for (int64_t b = 0; b < n / TND_X_BLOCK; b++, x += TND_X_BLOCK, out++) {
        float top = top_magnitude(x);
        __m256 inverse = _mm256_set1_ps(top < TND_X_TINY ? 0.0f : 127.0f / top);
        __m256i q[4];
        for (int i = 0; i < 4; i++) {
            q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
            q[i] = _mm256_max_epi32(q[i], lowest); /* NaN becomes INT32_MIN */
        }
        __m256i bytes =
            _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        _mm256_storeu_si256((__m256i *)(void *)out->q, _mm256_permutevar8x32_epi32(bytes, order));
        tnd_x_block_finish(out, top, sum_of(_mm256_add_epi32(q[0], q[1])),
                           sum_of(_mm256_add_epi32(q[2], q[3])), form, offset);
    }
}

void tnd_fill_gemm_avx2(struct tnd_cpu_kernels *out)
{
    out->isa_q = "avx2";
    out->isa_f = "avx2";
    out->q.panels = 1;
    out->q.tokens = TOKENS_Q;
    out->q.quantize_x = quantize_x;
#define FILL(NAME, form, offset, bits, is_super) out->q.gemm[TANDEM_TYPE_##NAME] = gemm_##NAME;
    TND_QUANT_KERNELS(FILL)
#undef FILL
    out->f.panels = PANELS_F;
    out->f.tokens = TOKENS_F;
    out->f.gemm = gemm_f;
}
#else
typedef int tnd_no_avx2;
#endif
