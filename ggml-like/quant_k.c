/* SPDX-License-Identifier: MIT
 * Codecs of the K-quants (Q2_K to Q6_K) in plain C: where each bit of a super-block of 256 values
 * is stored. Layouts: ggml-common.h and ggml-quants.c of the ggml project. Scales are chosen in
 * quant_fit.c. */
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_fit.h"

#define SUPER TND_FIT_VALUES

/* Two-bit levels: in each 32 bytes, byte l holds values l, l + 32, l + 64 and l + 96 of a half
 * block. */
static int two_bits(const uint8_t *qs, int i)
{
    return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

static void put_two_bits(uint8_t *qs, int i, int level)
{
    uint8_t *byte = &qs[i / 128 * 32 + i % 32];
    *byte = (uint8_t)(*byte | (level & 3) << (i % 128 / 32 * 2));
}

/* Nibbles of Q4_K and Q5_K: in each 32 bytes, byte l holds values l and l + 32 of 64. */
static int nibble(const uint8_t *qs, int i)
{
    return qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

static void put_nibble(uint8_t *qs, int i, int level)
{
    uint8_t *byte = &qs[i / 64 * 32 + i % 32];
    *byte = (uint8_t)(*byte | (level & 15) << (i % 64 / 32 * 4));
}

/* One more bit per value: bit i / 32 of byte i % 32 (Q3_K's hmask, Q5_K's qh). */
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

/* ---- Q2_K ---- */

static void get_q2_k(const struct tnd_block_q2_k *block, float *y)
{
    float d = tnd_f16_to_f32(block->d);
    float dmin = tnd_f16_to_f32(block->dmin);
    for (int i = 0; i < SUPER; i++) {
        float scale = d * (float)(block->scales[i / 16] & 15);
        float min = dmin * (float)(block->scales[i / 16] >> 4);
        float scaled = scale * (float)two_bits(block->qs, i);
        y[i] = scaled - min;
    }
}
TND_DEQUANTIZE_BLOCKS(Q2_K, q2_k, SUPER)

static void put_q2_k(const float *x, const float *importance, struct tnd_block_q2_k *block)
{
    struct tnd_fit fit;
    tnd_fit_affine(x, importance, 16, 3, 15, &fit);
    block->d = fit.d;
    block->dmin = fit.dmin;
    for (int g = 0; g < 16; g++) {
        block->scales[g] = (uint8_t)(fit.scale[g] | fit.min[g] << 4);
    }
    for (int i = 0; i < SUPER; i++) {
        put_two_bits(block->qs, i, fit.level[i]);
    }
}
TND_QUANTIZE_BLOCKS_WEIGHTED(Q2_K, q2_k, SUPER)

/* ---- Q3_K ---- */

static void get_q3_k(const struct tnd_block_q3_k *block, float *y)
{
    float d = tnd_f16_to_f32(block->d);
    for (int i = 0; i < SUPER; i++) {
        float scale = d * (float)tnd_q3_k_scale(block->scales, i / 16);
        int level = two_bits(block->qs, i) + 4 * plane_bit(block->hmask, i) - 4;
        y[i] = scale * (float)level;
    }
}
TND_DEQUANTIZE_BLOCKS(Q3_K, q3_k, SUPER)

static void put_q3_k(const float *x, const float *importance, struct tnd_block_q3_k *block)
{
    struct tnd_fit fit;
    tnd_fit_symmetric(x, importance, -4, -32, &fit);
    block->d = fit.d;
    pack_q3_k_scales(fit.scale, block->scales);
    for (int i = 0; i < SUPER; i++) {
        int level = fit.level[i] + 4;
        put_two_bits(block->qs, i, level);
        put_plane_bit(block->hmask, i, level >> 2);
    }
}
TND_QUANTIZE_BLOCKS_WEIGHTED(Q3_K, q3_k, SUPER)

/* ---- Q4_K ---- */

static void get_q4_k(const struct tnd_block_q4_k *block, float *y)
{
    float d = tnd_f16_to_f32(block->d);
    float dmin = tnd_f16_to_f32(block->dmin);
    for (int i = 0; i < SUPER; i++) {
        int group_scale;
        int group_min;
        tnd_k4_scale_min(block->scales, i / 32, &group_scale, &group_min);
        float scale = d * (float)group_scale;
        float min = dmin * (float)group_min;
        float scaled = scale * (float)nibble(block->qs, i);
        y[i] = scaled - min;
    }
}
TND_DEQUANTIZE_BLOCKS(Q4_K, q4_k, SUPER)

static void put_q4_k(const float *x, const float *importance, struct tnd_block_q4_k *block)
{
    struct tnd_fit fit;
    tnd_fit_affine(x, importance, 32, 15, 63, &fit);
    block->d = fit.d;
    block->dmin = fit.dmin;
    pack_k4_scales(fit.scale, fit.min, block->scales);
    for (int i = 0; i < SUPER; i++) {
        put_nibble(block->qs, i, fit.level[i]);
    }
}
TND_QUANTIZE_BLOCKS_WEIGHTED(Q4_K, q4_k, SUPER)

/* ---- Q5_K ---- */

static void get_q5_k(const struct tnd_block_q5_k *block, float *y)
{
    float d = tnd_f16_to_f32(block->d);
    float dmin = tnd_f16_to_f32(block->dmin);
    for (int i = 0; i < SUPER; i++) {
        int group_scale;
        int group_min;
        tnd_k4_scale_min(block->scales, i / 32, &group_scale, &group_min);
        float scale = d * (float)group_scale;
        float min = dmin * (float)group_min;
        int level = nibble(block->qs, i) + 16 * plane_bit(block->qh, i);
        float scaled = scale * (float)level;
        y[i] = scaled - min;
    }
}
TND_DEQUANTIZE_BLOCKS(Q5_K, q5_k, SUPER)

static void put_q5_k(const float *x, const float *importance, struct tnd_block_q5_k *block)
{
    struct tnd_fit fit;
    tnd_fit_affine(x, importance, 32, 31, 63, &fit);
    block->d = fit.d;
    block->dmin = fit.dmin;
    pack_k4_scales(fit.scale, fit.min, block->scales);
    for (int i = 0; i < SUPER; i++) {
        put_nibble(block->qs, i, fit.level[i]);
        put_plane_bit(block->qh, i, fit.level[i] >> 4);
    }
}
TND_QUANTIZE_BLOCKS_WEIGHTED(Q5_K, q5_k, SUPER)

/* ---- Q6_K ---- */

static void get_q6_k(const struct tnd_block_q6_k *block, float *y)
{
    float d = tnd_f16_to_f32(block->d);
    for (int i = 0; i < SUPER; i++) {
        float scale = d * (float)block->scales[i / 16];
        y[i] = scale * (float)(six_bits(block, i) - 32);
    }
}
TND_DEQUANTIZE_BLOCKS(Q6_K, q6_k, SUPER)

static void put_q6_k(const float *x, const float *importance, struct tnd_block_q6_k *block)
{
    struct tnd_fit fit;
    tnd_fit_symmetric(x, importance, -32, -128, &fit);
    block->d = fit.d;
    for (int g = 0; g < 16; g++) {
        block->scales[g] = (int8_t)fit.scale[g];
    }
    for (int i = 0; i < SUPER; i++) {
        int level = fit.level[i] + 32;
        uint8_t *low = &block->ql[i / 128 * 64 + i % 64];
        *low = (uint8_t)(*low | (level & 15) << (i % 128 / 64 * 4));
        put_two_bits(block->qh, i, level >> 4);
    }
}
TND_QUANTIZE_BLOCKS_WEIGHTED(Q6_K, q6_k, SUPER)
