/* SPDX-License-Identifier: MIT
 * Codecs of the K-quants (Q2_K to Q6_K) in plain C: where each bit of a super-block of 256 values
 * lies. Layouts: ggml-common.h and ggml-quants.c of the ggml project. Scales are chosen in
 * quant_fit.c. */
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_fit.h"

#define SUPER TND_FIT_VALUES

/* Two-bit levels: byte l of each 32 holds values l, l + 32, l + 64 and l + 96 of its half block. */
static int two_bits(const uint8_t *qs, int i)
{
    return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

static void put_two_bits(uint8_t *qs, int i, int level)
{
    uint8_t *byte = &qs[i / 128 * 32 + i % 32];
    *byte = (uint8_t)(*byte | (level & 3) << (i % 128 / 32 * 2));
}

/* Nibbles of Q4_K and Q5_K: byte l of each 32 holds values l and l + 32 of its 64. */
static int nibble(const uint8_t *qs, int i)
{
    return qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

static void put_nibble(uint8_t *qs, int i, int level)
{
    uint8_t *byte = &qs[i / 64 * 32 + i % 32];
    *byte = (uint8_t)(*byte | (level & 15) << (i % 64 / 32 * 4));
}

/* One further bit a value: bit i / 32 of byte i % 32 (Q3_K's hmask, Q5_K's qh). */
static int plane_bit(const uint8_t *plane, int i)
{
    return plane[i % 32] >> (i / 32) & 1;
}

static void put_plane_bit(uint8_t *plane, int i, int bit)
{
    plane[i % 32] = (uint8_t)(plane[i % 32] | (bit & 1) << (i / 32));
}

/* Six-bit levels of Q6_K: low nibbles in 64 bytes a half block, upper two bits as two_bits. */
static int six_bits(const struct tnd_block_q6_k *block, int i)
{
    int low = block->ql[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    return low | two_bits(block->qh, i) << 4;
}

/* Packs the eight scales and minima (6 bits each) that Q4_K and Q5_K share; inverse of
 * tnd_k4_scale_min. */
static void pack_k4_scales(const int *scale, const int *min, uint8_t *packed)
{
    for (int g = 0; g < 4; g++) {
        packed[g] = (uint8_t)(scale[g] | (scale[g + 4] >> 4) << 6);
        packed[g + 4] = (uint8_t)(min[g] | (min[g + 4] >> 4) << 6);
        packed[g + 8] = (uint8_t)((scale[g + 4] & 15) | (min[g + 4] & 15) << 4);
    }
}

/* Inverse of tnd_q3_k_scale. */
static void pack_q3_k_scales(const int *scale, uint8_t *packed)
{
    memset(packed, 0, 12);
    for (int g = 0; g < 16; g++) {
        int value = scale[g] + 32;
        packed[g % 8] = (uint8_t)(packed[g % 8] | (value & 15) << (g / 8 * 4));
        packed[8 + g % 4] = (uint8_t)(packed[8 + g % 4] | (value >> 4) << (g / 4 * 2));
    }
}

/* The importance of block b. */
static const float *part_of(const float *importance, int64_t b)
{
    return importance != NULL ? importance + b * SUPER : NULL;
}

/* ---- Q2_K ---- */

void tnd_dequantize_Q2_K(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q2_k block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        float d = tnd_f16_to_f32(block.d);
        float dmin = tnd_f16_to_f32(block.dmin);
        for (int i = 0; i < SUPER; i++) {
            float scale = d * (float)(block.scales[i / 16] & 15);
            float min = dmin * (float)(block.scales[i / 16] >> 4);
            float scaled = scale * (float)two_bits(block.qs, i);
            dst[b * SUPER + i] = scaled - min;
        }
    }
}

void tnd_quantize_weighted_Q2_K(const float *src, const float *importance, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q2_k block = {{0}, {0}, 0, 0};
        struct tnd_fit fit;
        tnd_fit_affine(src + b * SUPER, part_of(importance, b), 16, 3, 15, &fit);
        block.d = fit.d;
        block.dmin = fit.dmin;
        for (int g = 0; g < 16; g++) {
            block.scales[g] = (uint8_t)(fit.scale[g] | fit.min[g] << 4);
        }
        for (int i = 0; i < SUPER; i++) {
            put_two_bits(block.qs, i, fit.level[i]);
        }
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- Q3_K ---- */

void tnd_dequantize_Q3_K(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q3_k block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        float d = tnd_f16_to_f32(block.d);
        for (int i = 0; i < SUPER; i++) {
            float scale = d * (float)tnd_q3_k_scale(block.scales, i / 16);
            int level = two_bits(block.qs, i) + 4 * plane_bit(block.hmask, i) - 4;
            dst[b * SUPER + i] = scale * (float)level;
        }
    }
}

void tnd_quantize_weighted_Q3_K(const float *src, const float *importance, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q3_k block = {{0}, {0}, {0}, 0};
        struct tnd_fit fit;
        tnd_fit_symmetric(src + b * SUPER, part_of(importance, b), -4, -32, &fit);
        block.d = fit.d;
        pack_q3_k_scales(fit.scale, block.scales);
        for (int i = 0; i < SUPER; i++) {
            int level = fit.level[i] + 4;
            put_two_bits(block.qs, i, level);
            put_plane_bit(block.hmask, i, level >> 2);
        }
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- Q4_K ---- */

void tnd_dequantize_Q4_K(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q4_k block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        float d = tnd_f16_to_f32(block.d);
        float dmin = tnd_f16_to_f32(block.dmin);
        for (int i = 0; i < SUPER; i++) {
            int group_scale;
            int group_min;
            tnd_k4_scale_min(block.scales, i / 32, &group_scale, &group_min);
            float scale = d * (float)group_scale;
            float min = dmin * (float)group_min;
            float scaled = scale * (float)nibble(block.qs, i);
            dst[b * SUPER + i] = scaled - min;
        }
    }
}

void tnd_quantize_weighted_Q4_K(const float *src, const float *importance, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q4_k block = {0, 0, {0}, {0}};
        struct tnd_fit fit;
        tnd_fit_affine(src + b * SUPER, part_of(importance, b), 32, 15, 63, &fit);
        block.d = fit.d;
        block.dmin = fit.dmin;
        pack_k4_scales(fit.scale, fit.min, block.scales);
        for (int i = 0; i < SUPER; i++) {
            put_nibble(block.qs, i, fit.level[i]);
        }
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- Q5_K ---- */

void tnd_dequantize_Q5_K(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q5_k block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        float d = tnd_f16_to_f32(block.d);
        float dmin = tnd_f16_to_f32(block.dmin);
        for (int i = 0; i < SUPER; i++) {
            int group_scale;
            int group_min;
            tnd_k4_scale_min(block.scales, i / 32, &group_scale, &group_min);
            float scale = d * (float)group_scale;
            float min = dmin * (float)group_min;
            int level = nibble(block.qs, i) + 16 * plane_bit(block.qh, i);
            float scaled = scale * (float)level;
            dst[b * SUPER + i] = scaled - min;
        }
    }
}

void tnd_quantize_weighted_Q5_K(const float *src, const float *importance, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q5_k block = {0, 0, {0}, {0}, {0}};
        struct tnd_fit fit;
        tnd_fit_affine(src + b * SUPER, part_of(importance, b), 32, 31, 63, &fit);
        block.d = fit.d;
        block.dmin = fit.dmin;
        pack_k4_scales(fit.scale, fit.min, block.scales);
        for (int i = 0; i < SUPER; i++) {
            put_nibble(block.qs, i, fit.level[i]);
            put_plane_bit(block.qh, i, fit.level[i] >> 4);
        }
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- Q6_K ---- */

void tnd_dequantize_Q6_K(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q6_k block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        float d = tnd_f16_to_f32(block.d);
        for (int i = 0; i < SUPER; i++) {
            float scale = d * (float)block.scales[i / 16];
            dst[b * SUPER + i] = scale * (float)(six_bits(&block, i) - 32);
        }
    }
}

void tnd_quantize_weighted_Q6_K(const float *src, const float *importance, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_q6_k block = {{0}, {0}, {0}, 0};
        struct tnd_fit fit;
        tnd_fit_symmetric(src + b * SUPER, part_of(importance, b), -32, -128, &fit);
        block.d = fit.d;
        for (int g = 0; g < 16; g++) {
            block.scales[g] = (int8_t)fit.scale[g];
        }
        for (int i = 0; i < SUPER; i++) {
            int level = fit.level[i] + 32;
            uint8_t *low = &block.ql[i / 128 * 64 + i % 64];
            *low = (uint8_t)(*low | (level & 15) << (i % 128 / 64 * 4));
            put_two_bits(block.qh, i, level >> 4);
        }
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- values that are all alike ---- */

#define QUANTIZE(NAME)                                                                             \
    void tnd_quantize_##NAME(const float *src, void *dst, int64_t n)                               \
    {                                                                                              \
        tnd_quantize_weighted_##NAME(src, NULL, dst, n);                                           \
    }
QUANTIZE(Q2_K)
QUANTIZE(Q3_K)
QUANTIZE(Q4_K)
QUANTIZE(Q5_K)
QUANTIZE(Q6_K)
