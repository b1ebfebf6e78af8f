/* SPDX-License-Identifier: MIT
 * Codecs of the plain types (F32, F16, BF16) and of the 32-value blocks (Q4_0, Q4_1, Q5_0, Q5_1,
 * Q8_0), in plain C. Layouts: ggml-common.h. Rounding: that of ggml's quantize_row_*_ref; the tests
 * compare with blocks of gguf-py bit for bit. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"

#define BLOCK 32
#define HALF  16

/* Truncates and clamps; NaN becomes `low`, so the conversion is always defined. */
static int to_level(float value, int low, int high)
{
    if (!(value > (float)low)) {
        return low;
    }
    return value < (float)high ? (int)value : high;
}

/* 1 / value, but 0 for 0; denormals may give infinity, which to_level clamps. */
static float inverse(float value)
{
    return value != 0.0f ? 1.0f / value : 0.0f;
}

/* The value of largest magnitude, with its sign; the first among equals. +0 if all values are
 * zeros. */
static float signed_extreme(const float *x)
{
    float best = 0.0f;
    for (int i = 0; i < BLOCK; i++) {
        if (fabsf(x[i]) > fabsf(best)) {
            best = x[i];
        }
    }
    return best;
}

static void range(const float *x, float *out_min, float *out_max)
{
    float low = x[0];
    float high = x[0];
    for (int i = 1; i < BLOCK; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *out_min = low;
    *out_max = high;
}

/* ---- plain types ---- */

void tnd_dequantize_F32(const void *src, float *dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * sizeof(float));
}

void tnd_quantize_F32(const float *src, void *dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * sizeof(float));
}

void tnd_dequantize_F16(const void *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)src + 2 * i, sizeof(bits));
        dst[i] = tnd_f16_to_f32(bits);
    }
}

void tnd_quantize_F16(const float *src, void *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits = tnd_f32_to_f16(src[i]);
        memcpy((char *)dst + 2 * i, &bits, sizeof(bits));
    }
}

void tnd_dequantize_BF16(const void *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)src + 2 * i, sizeof(bits));
        dst[i] = tnd_bf16_to_f32(bits);
    }
}

void tnd_quantize_BF16(const float *src, void *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits = tnd_f32_to_bf16(src[i]);
        memcpy((char *)dst + 2 * i, &bits, sizeof(bits));
    }
}

/* ---- nibbles and fifth bits ---- */

/* Levels 0..15 of values i and i + 16 share byte i. */
static void pack_nibbles(const uint8_t *levels, uint8_t *qs)
{
    for (int i = 0; i < HALF; i++) {
        qs[i] = (uint8_t)((levels[i] & 15) | (levels[i + HALF] & 15) << 4);
    }
}

static void unpack_nibbles(const uint8_t *qs, uint8_t *levels)
{
    for (int i = 0; i < HALF; i++) {
        levels[i] = qs[i] & 15;
        levels[i + HALF] = qs[i] >> 4;
    }
}

static void pack_fifth_bits(const uint8_t *levels, uint8_t *qh)
{
    memset(qh, 0, 4);
    for (int i = 0; i < BLOCK; i++) {
        qh[i / 8] = (uint8_t)(qh[i / 8] | (levels[i] >> 4 & 1) << (i % 8));
    }
}

static void add_fifth_bits(const uint8_t *qh, uint8_t *levels)
{
    for (int i = 0; i < BLOCK; i++) {
        levels[i] = (uint8_t)(levels[i] | (qh[i / 8] >> (i % 8) & 1) << 4);
    }
}

/* Levels for value = d * (level - half_range): the value of largest magnitude gets level 0. Product
 * and sum are each rounded to single precision, as in ggml's reference. */
static float quantize_symmetric(const float *x, int half_range, uint8_t *levels)
{
    float d = signed_extreme(x) / (float)-half_range;
    float id = inverse(d);
    for (int i = 0; i < BLOCK; i++) {
        float scaled = x[i] * id;
        levels[i] = (uint8_t)to_level(scaled + ((float)half_range + 0.5f), 0, 2 * half_range - 1);
    }
    return d;
}

/* Levels for value = d * level + minimum. */
static void quantize_affine(const float *x, int top, uint8_t *levels, float *out_d, float *out_min)
{
    float low;
    float high;
    range(x, &low, &high);
    float d = (high - low) / (float)top;
    float id = inverse(d);
    for (int i = 0; i < BLOCK; i++) {
        float scaled = (x[i] - low) * id;
        levels[i] = (uint8_t)to_level(scaled + 0.5f, 0, top);
    }
    *out_d = d;
    *out_min = low;
}

/* ---- Q4_0 ---- */

static void get_q4_0(const struct tnd_block_q4_0 *block, float *y)
{
    uint8_t levels[BLOCK];
    unpack_nibbles(block->qs, levels);
    float d = tnd_f16_to_f32(block->d);
    for (int i = 0; i < BLOCK; i++) {
        y[i] = d * (float)(levels[i] - 8);
    }
}
TND_DEQUANTIZE_BLOCKS(Q4_0, q4_0, BLOCK)

static void put_q4_0(const float *x, struct tnd_block_q4_0 *block)
{
    uint8_t levels[BLOCK];
    block->d = tnd_f32_to_f16(quantize_symmetric(x, 8, levels));
    pack_nibbles(levels, block->qs);
}
TND_QUANTIZE_BLOCKS(Q4_0, q4_0, BLOCK)

/* ---- Q4_1 ---- */

static void get_q4_1(const struct tnd_block_q4_1 *block, float *y)
{
    uint8_t levels[BLOCK];
    unpack_nibbles(block->qs, levels);
    float d = tnd_f16_to_f32(block->d);
    float m = tnd_f16_to_f32(block->m);
    for (int i = 0; i < BLOCK; i++) {
        float scaled = d * (float)levels[i];
        y[i] = scaled + m;
    }
}
TND_DEQUANTIZE_BLOCKS(Q4_1, q4_1, BLOCK)

static void put_q4_1(const float *x, struct tnd_block_q4_1 *block)
{
    uint8_t levels[BLOCK];
    float d;
    float m;
    quantize_affine(x, 15, levels, &d, &m);
    block->d = tnd_f32_to_f16(d);
    block->m = tnd_f32_to_f16(m);
    pack_nibbles(levels, block->qs);
}
TND_QUANTIZE_BLOCKS(Q4_1, q4_1, BLOCK)

/* ---- Q5_0 ---- */

static void get_q5_0(const struct tnd_block_q5_0 *block, float *y)
{
    uint8_t levels[BLOCK];
    unpack_nibbles(block->qs, levels);
    add_fifth_bits(block->qh, levels);
    float d = tnd_f16_to_f32(block->d);
    for (int i = 0; i < BLOCK; i++) {
        y[i] = d * (float)(levels[i] - 16);
    }
}
TND_DEQUANTIZE_BLOCKS(Q5_0, q5_0, BLOCK)

static void put_q5_0(const float *x, struct tnd_block_q5_0 *block)
{
    uint8_t levels[BLOCK];
    block->d = tnd_f32_to_f16(quantize_symmetric(x, 16, levels));
    pack_nibbles(levels, block->qs);
    pack_fifth_bits(levels, block->qh);
}
TND_QUANTIZE_BLOCKS(Q5_0, q5_0, BLOCK)

/* ---- Q5_1 ---- */

static void get_q5_1(const struct tnd_block_q5_1 *block, float *y)
{
    uint8_t levels[BLOCK];
    unpack_nibbles(block->qs, levels);
    add_fifth_bits(block->qh, levels);
    float d = tnd_f16_to_f32(block->d);
    float m = tnd_f16_to_f32(block->m);
    for (int i = 0; i < BLOCK; i++) {
        float scaled = d * (float)levels[i];
        y[i] = scaled + m;
    }
}
TND_DEQUANTIZE_BLOCKS(Q5_1, q5_1, BLOCK)

static void put_q5_1(const float *x, struct tnd_block_q5_1 *block)
{
    uint8_t levels[BLOCK];
    float d;
    float m;
    quantize_affine(x, 31, levels, &d, &m);
    block->d = tnd_f32_to_f16(d);
    block->m = tnd_f32_to_f16(m);
    pack_nibbles(levels, block->qs);
    pack_fifth_bits(levels, block->qh);
}
TND_QUANTIZE_BLOCKS(Q5_1, q5_1, BLOCK)

/* ---- Q8_0 ---- */

static void get_q8_0(const struct tnd_block_q8_0 *block, float *y)
{
    float d = tnd_f16_to_f32(block->d);
    for (int i = 0; i < BLOCK; i++) {
        y[i] = d * (float)block->qs[i];
    }
}
TND_DEQUANTIZE_BLOCKS(Q8_0, q8_0, BLOCK)

static void put_q8_0(const float *x, struct tnd_block_q8_0 *block)
{
    float d = fabsf(signed_extreme(x)) / 127.0f;
    float id = inverse(d);
    block->d = tnd_f32_to_f16(d);
    for (int i = 0; i < BLOCK; i++) {
        /* roundf: halves away from zero; NaN (0 times infinity) becomes the lowest level */
        float level = roundf(x[i] * id);
        block->qs[i] = (int8_t)to_level(level, -127, 127);
    }
}
TND_QUANTIZE_BLOCKS(Q8_0, q8_0, BLOCK)
