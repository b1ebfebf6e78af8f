/* SPDX-License-Identifier: MIT
 * Dequantises rows of weights to floats (NEON), bit-identical to the plain codecs in ggml-like: the
 * same products and sums in the same order, nothing fused. Layouts: ggml-like/quant.h. */
#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_grid.h"

/* 32 codes. */
struct codes {
    uint8x16_t low, high;
};

static inline struct codes load_32(const uint8_t *p)
{
    return (struct codes){vld1q_u8(p), vld1q_u8(p + 16)};
}

static inline void put_4(float *dst, int16x4_t q, float scale)
{
    vst1q_f32(dst, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(q)), scale));
}

static inline void put_4_min(float *dst, int16x4_t q, float scale, float min)
{
    float32x4_t product = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(q)), scale);
    vst1q_f32(dst, vaddq_f32(product, vdupq_n_f32(min)));
}

/* Stores 16 values scale * (q - offset). */
static inline void put_16(float *dst, uint8x16_t q, const uint8_t offset, float scale)
{
    int8x16_t value = vreinterpretq_s8_u8(vsubq_u8(q, vdupq_n_u8(offset)));
    int16x8_t low = vmovl_s8(vget_low_s8(value));
    int16x8_t high = vmovl_high_s8(value);
    put_4(dst, vget_low_s16(low), scale);
    put_4(dst + 4, vget_high_s16(low), scale);
    put_4(dst + 8, vget_low_s16(high), scale);
    put_4(dst + 12, vget_high_s16(high), scale);
}

/* Stores 16 values scale * q + min. */
static inline void put_16_min(float *dst, uint8x16_t q, float scale, float min)
{
    int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(q)));
    int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(q));
    put_4_min(dst, vget_low_s16(low), scale, min);
    put_4_min(dst + 4, vget_high_s16(low), scale, min);
    put_4_min(dst + 8, vget_low_s16(high), scale, min);
    put_4_min(dst + 12, vget_high_s16(high), scale, min);
}

static inline void put_32(float *dst, struct codes q, const uint8_t offset, float scale)
{
    put_16(dst, q.low, offset, scale);
    put_16(dst + 16, q.high, offset, scale);
}

static inline void put_32_min(float *dst, struct codes q, float scale, float min)
{
    put_16_min(dst, q.low, scale, min);
    put_16_min(dst + 16, q.high, scale, min);
}

/* (q >> right & mask) << left in each byte. */
static inline struct codes bits_of(struct codes q, int right, uint8_t mask, int left)
{
    const int8x16_t shift = vdupq_n_s8((int8_t)-right);
    const int8x16_t back = vdupq_n_s8((int8_t)left);
    const uint8x16_t kept = vdupq_n_u8(mask);
    return (struct codes){vshlq_u8(vandq_u8(vshlq_u8(q.low, shift), kept), back),
                          vshlq_u8(vandq_u8(vshlq_u8(q.high, shift), kept), back)};
}

static inline struct codes both(struct codes a, struct codes b)
{
    return (struct codes){vorrq_u8(a.low, b.low), vorrq_u8(a.high, b.high)};
}

/* Values 0..15 in the low nibbles of 16 bytes, 16..31 in the high ones. */
static inline struct codes nibbles(const uint8_t *qs)
{
    uint8x16_t q = vld1q_u8(qs);
    return (struct codes){vandq_u8(q, vdupq_n_u8(15)), vshrq_n_u8(q, 4)};
}

/* Expands bit i of 2 bytes to the value 16 in byte i. */
static inline uint8x16_t fifth_bits_16(const uint8_t *qh)
{
    const uint8x8_t bit = vcreate_u8(0x8040201008040201u);
    uint8x16_t spread = vcombine_u8(vdup_n_u8(qh[0]), vdup_n_u8(qh[1]));
    return vandq_u8(vtstq_u8(spread, vcombine_u8(bit, bit)), vdupq_n_u8(16));
}

static inline struct codes fifth_bits(const uint8_t *qh)
{
    return (struct codes){fifth_bits_16(qh), fifth_bits_16(qh + 2)};
}

/* ---- blocks of 32 ---- */

static void dequantize_Q4_0(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_0 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_32(dst + i, nibbles(block->qs), 8, tnd_f16_to_f32(block->d));
    }
}

/* Looks up nibbles, stored as in Q4_0, in a codebook. */
static inline void put_book(float *dst, const uint8_t *qs, const int8_t *book, float d)
{
    const uint8x16_t table = vld1q_u8((const uint8_t *)book);
    struct codes q = nibbles(qs);
    put_16(dst, vqtbl1q_u8(table, q.low), 0, d);
    put_16(dst + 16, vqtbl1q_u8(table, q.high), 0, d);
}

static const int8_t book_iq4[16] = TND_BOOK_IQ4_VALUES;
static const int8_t book_fp4[16] = TND_BOOK_FP4_VALUES;

static void dequantize_IQ4_NL(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_iq4_nl *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_book(dst + i, block->qs, book_iq4, tnd_f16_to_f32(block->d));
    }
}

static void dequantize_MXFP4(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_mxfp4 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_book(dst + i, block->qs, book_fp4, tnd_bf16_to_f32(tnd_e8m0_half(block->e)));
    }
}

static void dequantize_IQ4_XS(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_iq4_xs *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = tnd_f16_to_f32(block->d);
        for (int g = 0; g < 8; g++) {
            put_book(dst + i + 32 * g, block->qs + 16 * g, book_iq4,
                     d * (float)tnd_iq4_xs_scale(block, g));
        }
    }
}

static void dequantize_Q4_1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_1 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_32_min(dst + i, nibbles(block->qs), tnd_f16_to_f32(block->d), tnd_f16_to_f32(block->m));
    }
}

static void dequantize_BCML1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_1 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const struct codes q = nibbles(block->qs); /* values 0, 2, .. and 1, 3, .. */
        const struct codes sorted = {vzip1q_u8(q.low, q.high), vzip2q_u8(q.low, q.high)};
        put_32_min(dst + i, sorted, tnd_f16_to_f32(block->d), tnd_f16_to_f32(block->m));
    }
}

static void dequantize_Q5_0(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q5_0 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        struct codes q = both(nibbles(block->qs), fifth_bits(block->qh));
        put_32(dst + i, q, 16, tnd_f16_to_f32(block->d));
    }
}

static void dequantize_Q5_1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q5_1 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        struct codes q = both(nibbles(block->qs), fifth_bits(block->qh));
        put_32_min(dst + i, q, tnd_f16_to_f32(block->d), tnd_f16_to_f32(block->m));
    }
}

static void dequantize_Q8_0(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q8_0 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_32(dst + i, load_32((const uint8_t *)block->qs), 0, tnd_f16_to_f32(block->d));
    }
}

/* ---- K-quants: blocks of 32 values ---- */

static void dequantize_Q2_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q2_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = tnd_f16_to_f32(block->d);
        float dmin = tnd_f16_to_f32(block->dmin);
        for (int b = 0; b < 8; b++, dst += 32) {
            struct codes q = bits_of(load_32(block->qs + b / 4 * 32), b % 4 * 2, 3, 0);
            const uint8_t *s = block->scales + 2 * b;
            put_16_min(dst, q.low, d * (float)(s[0] & 15), -(dmin * (float)(s[0] >> 4)));
            put_16_min(dst + 16, q.high, d * (float)(s[1] & 15), -(dmin * (float)(s[1] >> 4)));
        }
    }
}

static void dequantize_Q3_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q3_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = tnd_f16_to_f32(block->d);
        struct codes mask = load_32(block->hmask);
        for (int b = 0; b < 8; b++, dst += 32) {
            struct codes q = both(bits_of(load_32(block->qs + b / 4 * 32), b % 4 * 2, 3, 0),
                                  bits_of(mask, b, 1, 2));
            put_16(dst, q.low, 4, d * (float)tnd_q3_k_scale(block->scales, 2 * b));
            put_16(dst + 16, q.high, 4, d * (float)tnd_q3_k_scale(block->scales, 2 * b + 1));
        }
    }
}

static inline void put_k4(float *dst, struct codes q, const uint8_t *scales, int b, float d,
                          float dmin)
{
    int scale;
    int min;
    tnd_k4_scale_min(scales, b, &scale, &min);
    put_32_min(dst, q, d * (float)scale, -(dmin * (float)min));
}

static void dequantize_Q4_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = tnd_f16_to_f32(block->d);
        float dmin = tnd_f16_to_f32(block->dmin);
        for (int b = 0; b < 8; b++, dst += 32) {
            struct codes q = bits_of(load_32(block->qs + b / 2 * 32), b % 2 * 4, 15, 0);
            put_k4(dst, q, block->scales, b, d, dmin);
        }
    }
}

static void dequantize_Q5_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q5_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = tnd_f16_to_f32(block->d);
        float dmin = tnd_f16_to_f32(block->dmin);
        struct codes qh = load_32(block->qh);
        for (int b = 0; b < 8; b++, dst += 32) {
            struct codes q = both(bits_of(load_32(block->qs + b / 2 * 32), b % 2 * 4, 15, 0),
                                  bits_of(qh, b, 1, 4));
            put_k4(dst, q, block->scales, b, d, dmin);
        }
    }
}

static void dequantize_Q6_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q6_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = tnd_f16_to_f32(block->d);
        for (int b = 0; b < 8; b++, dst += 32) {
            const uint8_t *ql = block->ql + b / 4 * 64 + b % 2 * 32;
            struct codes q = both(bits_of(load_32(ql), b % 4 / 2 * 4, 15, 0),
                                  bits_of(load_32(block->qh + b / 4 * 32), b % 4 * 2, 3, 4));
            put_16(dst, q.low, 32, d * (float)block->scales[2 * b]);
            put_16(dst + 16, q.high, 32, d * (float)block->scales[2 * b + 1]);
        }
    }
}

/* ---- grid points ---- */

static inline void put_grid(tnd_grid_decode_fn *decode, size_t bytes, int group, float unit,
                            const void *src, float *dst, int64_t n)
{
    const char *block = src;
    for (int64_t b = 0; b < n; b += TND_GRID_VALUES, block += bytes) {
        struct tnd_grid_values values;
        decode(block, &values);
        const float d = tnd_f16_to_f32(values.d);
        for (int i = 0; i < TND_GRID_VALUES; i += 16) {
            put_16(dst + b + i, vld1q_u8((const uint8_t *)values.q + i), 0,
                   d * (float)values.scale[i / group] * unit);
        }
    }
}

#define DEQUANTIZE_GRID(NAME, bytes, group, unit)                                                  \
    static void dequantize_##NAME(const void *src, float *dst, int64_t n)                          \
    {                                                                                              \
        put_grid(tnd_grid_decode_##NAME, bytes, group, unit, src, dst, n);                         \
    }
TND_GRID_LIST(DEQUANTIZE_GRID)
#undef DEQUANTIZE_GRID

void tnd_fill_dequant_neon(struct tnd_cpu_kernels *out)
{
#define FILL(NAME, form, offset, bits, is_super)                                                   \
    out->dequantize[TANDEM_TYPE_##NAME] = dequantize_##NAME;
    TND_QUANT_KERNELS(FILL)
#undef FILL
}
#else
typedef int tnd_no_neon;
#endif
