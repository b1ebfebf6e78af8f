/* SPDX-License-Identifier: MIT
 * Codecs of the types whose 4-bit codes are places in a book of numbers: IQ4_NL, IQ4_XS and MXFP4.
 * Layouts: ggml-common.h of the ggml project; books in quant.h. Decoded values have the bits of
 * ggml's. Encoding looks for the least squared error: scales are tried for which either end of the
 * book, or a number some steps beyond it, meets the value of largest magnitude; for the numbers
 * that each gives, the best scale follows in closed form. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"

enum { BLOCK = 32, HALF = 16, SUPER = 256, GROUPS = SUPER / BLOCK, PLACES = 16 };

static const int8_t book_iq4[PLACES] = TND_BOOK_IQ4_VALUES;
static const int8_t book_fp4[PLACES] = TND_BOOK_FP4_VALUES;

static void unpack(const uint8_t *qs, const int8_t *book, float d, float *dst)
{
    for (int i = 0; i < HALF; i++) {
        dst[i] = d * (float)book[qs[i] & 15];
        dst[i + HALF] = d * (float)book[qs[i] >> 4];
    }
}

static void pack(const uint8_t *places, uint8_t *qs)
{
    for (int i = 0; i < HALF; i++) {
        qs[i] = (uint8_t)(places[i] | places[i + HALF] << 4);
    }
}

static float inverse(float value)
{
    return value != 0.0f ? 1.0f / value : 0.0f;
}

/* ---- the nearest number of IQ4's book, which is sorted ---- */

/* Midpoints of neighbours, doubled so that they are whole. NaN is above none of them. */
static int nearest_place(float value)
{
    int place = 0;
    for (int i = 0; i + 1 < PLACES; i++) {
        place += 2.0f * value > (float)(book_iq4[i] + book_iq4[i + 1]) ? 1 : 0;
    }
    return place;
}

static void find_places(const float *x, float d, uint8_t *places)
{
    const float id = inverse(d);
    for (int i = 0; i < BLOCK; i++) {
        places[i] = (uint8_t)nearest_place(x[i] * id);
    }
}

static double squared_error(const float *x, float d, const uint8_t *places)
{
    double error = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double difference = (double)(d * (float)book_iq4[places[i]]) - (double)x[i];
        error += difference * difference;
    }
    return error;
}

/* The scale of least squared error of 32 values; 0 where there is none. */
static float fit_scale(const float *x)
{
    enum { STEPS = 9 };
    float extreme = 0;
    float best = 0;
    float best_gain = 0; /* by how much the error is below that of zeros */
    for (int i = 0; i < BLOCK; i++) {
        extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
    }
    if (!(fabsf(extreme) > 0) || isinf(extreme)) {
        return 0;
    }
    for (int t = 0; t < 2 * STEPS; t++) {
        const int at = t / 2 * 2 - 8; /* -8, -6 .. 8 */
        const float end = t % 2 == 0 ? (float)(book_iq4[0] + at) : (float)(book_iq4[15] + at);
        const float id = end / extreme;
        float xq = 0;
        float qq = 0;
        for (int i = 0; i < BLOCK; i++) {
            const float q = (float)book_iq4[nearest_place(x[i] * id)];
            xq += x[i] * q;
            qq += q * q;
        }
        const float gain = qq > 0 ? xq * xq / qq : 0;
        if (gain > best_gain * 1.00001f) {
            best_gain = gain;
            best = xq / qq;
        }
    }
    return best;
}

/* ---- IQ4_NL ---- */

void tnd_dequantize_IQ4_NL(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / BLOCK; b++) {
        struct tnd_block_iq4_nl block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        unpack(block.qs, book_iq4, tnd_f16_to_f32(block.d), dst + b * BLOCK);
    }
}

void tnd_quantize_IQ4_NL(const float *src, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / BLOCK; b++) {
        struct tnd_block_iq4_nl block;
        uint8_t places[BLOCK];
        block.d = tnd_f32_to_f16(fit_scale(src + b * BLOCK));
        find_places(src + b * BLOCK, tnd_f16_to_f32(block.d), places);
        pack(places, block.qs);
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- IQ4_XS ---- */

void tnd_dequantize_IQ4_XS(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_iq4_xs block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        const float d = tnd_f16_to_f32(block.d);
        for (int g = 0; g < GROUPS; g++) {
            const float scale = d * (float)tnd_iq4_xs_scale(&block, g);
            unpack(block.qs + g * HALF, book_iq4, scale, dst + b * SUPER + g * BLOCK);
        }
    }
}

/* What one choice of d gives. */
struct super {
    uint16_t d;
    int scale[GROUPS]; /* -32..31 */
    uint8_t places[SUPER];
    double error;
};

static int to_scale(float value)
{
    return !(value > -32.0f) ? -32 : value > 31.0f ? 31 : (int)lrintf(value);
}

/* The integers of the groups for one d: of three around each group's own scale the best. */
static void choose_scales(const float *x, const float *scales, float d, struct super *out)
{
    out->d = tnd_f32_to_f16(d);
    out->error = 0;
    const float unit = tnd_f16_to_f32(out->d);
    for (int g = 0; g < GROUPS; g++) {
        const int near = to_scale(scales[g] * inverse(unit));
        double best = INFINITY;
        out->scale[g] = 0;
        memset(out->places + g * BLOCK, 8, BLOCK); /* not-a-number leaves something defined */
        for (int scale = near - 1; scale <= near + 1; scale++) {
            uint8_t places[BLOCK];
            if (scale < -32 || scale > 31) {
                continue;
            }
            find_places(x + g * BLOCK, unit * (float)scale, places);
            const double error = squared_error(x + g * BLOCK, unit * (float)scale, places);
            if (error < best) {
                best = error;
                out->scale[g] = scale;
                memcpy(out->places + g * BLOCK, places, BLOCK);
            }
        }
        out->error += best;
    }
}

/* The d of least squared error for what is chosen; 0 where there is none. */
static float refit(const float *x, const struct super *super)
{
    double aa = 0;
    double ax = 0;
    for (int i = 0; i < SUPER; i++) {
        const double a = (double)(super->scale[i / BLOCK] * book_iq4[super->places[i]]);
        aa += a * a;
        ax += a * (double)x[i];
    }
    const double d = aa > 0 ? ax / aa : 0;
    return fabs(d) > 0 && fabs(d) < 65504 ? (float)d : 0.0f;
}

static void encode_iq4_xs(const float *x, struct tnd_block_iq4_xs *block)
{
    float scales[GROUPS];
    float extreme = 0;
    struct super best;
    struct super other;
    for (int g = 0; g < GROUPS; g++) {
        scales[g] = fit_scale(x + g * BLOCK);
        extreme = fabsf(scales[g]) > fabsf(extreme) ? scales[g] : extreme;
    }
    choose_scales(x, scales, extreme / -32.0f, &best); /* the low end reaches one further */
    const float again = refit(x, &best);
    if (again != 0.0f) {
        choose_scales(x, scales, again, &other);
        best = other.error < best.error ? other : best;
    }
    memset(block, 0, sizeof(*block));
    block->d = best.d;
    for (int g = 0; g < GROUPS; g++) {
        const int bits = best.scale[g] + 32;
        block->scales_l[g / 2] = (uint8_t)(block->scales_l[g / 2] | (bits & 15) << (4 * (g % 2)));
        block->scales_h = (uint16_t)(block->scales_h | (bits >> 4) << (2 * g));
        pack(best.places + g * BLOCK, block->qs + g * HALF);
    }
}

void tnd_quantize_IQ4_XS(const float *src, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / SUPER; b++) {
        struct tnd_block_iq4_xs block;
        encode_iq4_xs(src + b * SUPER, &block);
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}

/* ---- MXFP4 ---- */

void tnd_dequantize_MXFP4(const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / BLOCK; b++) {
        struct tnd_block_mxfp4 block;
        memcpy(&block, (const char *)src + (size_t)b * sizeof(block), sizeof(block));
        unpack(block.qs, book_fp4, tnd_bf16_to_f32(tnd_e8m0_half(block.e)), dst + b * BLOCK);
    }
}

/* Nearest numbers for one exponent; returns the squared error. */
static double choose_fp4(const float *x, uint8_t e, uint8_t *places)
{
    const double d = (double)tnd_bf16_to_f32(tnd_e8m0_half(e));
    double error = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double magnitude = fabs((double)x[i]) / d;
        int place = 0;
        for (int p = 0; p < 7; p++) {
            place += 2 * magnitude > (double)(book_fp4[p] + book_fp4[p + 1]) ? 1 : 0;
        }
        const double difference = magnitude - (double)book_fp4[place];
        places[i] = (uint8_t)(place + (x[i] < 0 && place > 0 ? 8 : 0));
        error += difference * difference;
    }
    return error * d * d;
}

/* The exponent of the specification puts the largest magnitude at 4 to 8 (of up to 6); the next
 * one, where it fits. */
static void encode_mxfp4(const float *x, struct tnd_block_mxfp4 *block)
{
    float top = 0;
    uint8_t places[2][BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    }
    int exponent = 0;
    (void)frexpf(isinf(top) ? 0x1p127f : top, &exponent);
    const int wanted = top > 0 ? exponent - 1 - 2 + 127 : 0;
    const uint8_t e = (uint8_t)(wanted < 0 ? 0 : wanted);
    const double error = choose_fp4(x, e, places[0]);
    const bool is_next_better = choose_fp4(x, (uint8_t)(e + 1), places[1]) < error;
    block->e = (uint8_t)(e + (is_next_better ? 1 : 0));
    pack(places[is_next_better ? 1 : 0], block->qs);
}

void tnd_quantize_MXFP4(const float *src, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / BLOCK; b++) {
        struct tnd_block_mxfp4 block;
        encode_mxfp4(src + b * BLOCK, &block);
        memcpy((char *)dst + (size_t)b * sizeof(block), &block, sizeof(block));
    }
}
