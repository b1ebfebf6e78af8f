/* SPDX-License-Identifier: MIT
 * Codecs of the types whose 4-bit codes index a codebook: IQ4_NL, IQ4_XS and MXFP4. Layouts:
 * ggml-common.h of the ggml project; codebooks in quant.h. Decoded values are bit-identical to
 * ggml's. Encoding minimises the squared error: it tries scales that map the value of largest
 * magnitude to either end of the codebook, or to a number some steps beyond; for the codes that
 * each scale gives, the best scale follows in closed form. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_fit.h"

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

/* ---- the nearest number of IQ4's codebook, which is sorted ---- */

/* Twice the value is compared with sums of adjacent numbers; the sums are integers, so rounding it
 * up decides. */
enum { LOWEST = -254, HIGHEST = 226 }; /* twice the ends of the codebook */

static uint8_t place_of[HIGHEST - LOWEST + 1];
static pthread_once_t place_once = PTHREAD_ONCE_INIT;

static void make_places(void)
{
    for (int v = LOWEST; v <= HIGHEST; v++) {
        for (int i = 0; i + 1 < PLACES; i++) {
            place_of[v - LOWEST] =
                (uint8_t)(place_of[v - LOWEST] + (v > book_iq4[i] + book_iq4[i + 1] ? 1 : 0));
        }
    }
}

/* NaN gives the first one. */
static int nearest_place(float value)
{
    float twice = value > -127.0f ? 2.0f * value : (float)LOWEST;
    twice = twice < (float)HIGHEST ? twice : (float)HIGHEST;
    const int whole = (int)twice;
    return place_of[whole + ((float)whole < twice ? 1 : 0) - LOWEST];
}

static void find_places(const float *x, float d, uint8_t *places)
{
    const float id = inverse(d);
    for (int i = 0; i < BLOCK; i++) {
        places[i] = (uint8_t)nearest_place(x[i] * id);
    }
}

static double squared_error(const float *x, const float *w, float d, const uint8_t *places)
{
    double error = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double difference = (double)(d * (float)book_iq4[places[i]]) - (double)x[i];
        error += (double)w[i] * difference * difference;
    }
    return error;
}

/* The scale of least squared error of 32 values; 0 where there is none. */
static float fit_scale(const float *x, const float *w)
{
    enum { STEPS = 9 };
    float extreme = 0;
    float best = 0;
    float best_gain = 0; /* reduction of the error against all zeros */
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
            xq += w[i] * x[i] * q;
            qq += w[i] * q * q;
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

static void get_iq4_nl(const struct tnd_block_iq4_nl *block, float *y)
{
    unpack(block->qs, book_iq4, tnd_f16_to_f32(block->d), y);
}
TND_DEQUANTIZE_BLOCKS(IQ4_NL, iq4_nl, BLOCK)

/* Weights of the errors of n values: 1 without an importance. */
static void weigh(const float *x, const float *importance, int n, float *w)
{
    pthread_once(&place_once, make_places);
    for (int i = 0; i < n; i++) {
        w[i] = 1;
    }
    if (importance != NULL) {
        tnd_fit_weigh(x, importance, n, w);
    }
}

static void put_iq4_nl(const float *x, const float *importance, struct tnd_block_iq4_nl *block)
{
    uint8_t places[BLOCK];
    float w[BLOCK];
    weigh(x, importance, BLOCK, w);
    block->d = tnd_f32_to_f16(fit_scale(x, w));
    find_places(x, tnd_f16_to_f32(block->d), places);
    pack(places, block->qs);
}
TND_QUANTIZE_BLOCKS_WEIGHTED(IQ4_NL, iq4_nl, BLOCK)

/* ---- IQ4_XS ---- */

static void get_iq4_xs(const struct tnd_block_iq4_xs *block, float *y)
{
    const float d = tnd_f16_to_f32(block->d);
    for (int g = 0; g < GROUPS; g++) {
        const float scale = d * (float)tnd_iq4_xs_scale(block, g);
        unpack(block->qs + g * HALF, book_iq4, scale, y + g * BLOCK);
    }
}
TND_DEQUANTIZE_BLOCKS(IQ4_XS, iq4_xs, SUPER)

/* The result for one choice of d. */
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

/* For one d, the best of three integers around each group's own scale. */
static void choose_scales(const float *x, const float *w, const float *scales, float d,
                          struct super *out)
{
    out->d = tnd_f32_to_f16(d);
    out->error = 0;
    const float unit = tnd_f16_to_f32(out->d);
    for (int g = 0; g < GROUPS; g++) {
        const int near = to_scale(scales[g] * inverse(unit));
        double best = INFINITY;
        out->scale[g] = 0;
        memset(out->places + g * BLOCK, 8, BLOCK); /* defined even if values are NaN */
        for (int scale = near - 1; scale <= near + 1; scale++) {
            uint8_t places[BLOCK];
            if (scale < -32 || scale > 31) {
                continue;
            }
            find_places(x + g * BLOCK, unit * (float)scale, places);
            const double error =
                squared_error(x + g * BLOCK, w + g * BLOCK, unit * (float)scale, places);
            if (error < best) {
                best = error;
                out->scale[g] = scale;
                memcpy(out->places + g * BLOCK, places, BLOCK);
            }
        }
        out->error += best;
    }
}

/* The d of least squared error for the chosen integers and codes; 0 if there is none. */
static float refit(const float *x, const float *w, const struct super *super)
{
    double aa = 0;
    double ax = 0;
    for (int i = 0; i < SUPER; i++) {
        const double a = (double)(super->scale[i / BLOCK] * book_iq4[super->places[i]]);
        aa += (double)w[i] * a * a;
        ax += (double)w[i] * a * (double)x[i];
    }
    const double d = aa > 0 ? ax / aa : 0;
    return fabs(d) > 0 && fabs(d) < 65504 ? (float)d : 0.0f;
}

static void put_iq4_xs(const float *x, const float *importance, struct tnd_block_iq4_xs *block)
{
    float w[SUPER];
    float scales[GROUPS];
    float extreme = 0;
    struct super best;
    struct super other;
    weigh(x, importance, SUPER, w);
    for (int g = 0; g < GROUPS; g++) {
        scales[g] = fit_scale(x + g * BLOCK, w + g * BLOCK);
        extreme = fabsf(scales[g]) > fabsf(extreme) ? scales[g] : extreme;
    }
    choose_scales(x, w, scales, extreme / -32.0f, &best); /* the low end has one more step */
    const float again = refit(x, w, &best);
    if (again != 0.0f) {
        choose_scales(x, w, scales, again, &other);
        best = other.error < best.error ? other : best;
    }
    block->d = best.d;
    for (int g = 0; g < GROUPS; g++) {
        const int bits = best.scale[g] + 32;
        block->scales_l[g / 2] = (uint8_t)(block->scales_l[g / 2] | (bits & 15) << (4 * (g % 2)));
        block->scales_h = (uint16_t)(block->scales_h | (bits >> 4) << (2 * g));
        pack(best.places + g * BLOCK, block->qs + g * HALF);
    }
}
TND_QUANTIZE_BLOCKS_WEIGHTED(IQ4_XS, iq4_xs, SUPER)

/* ---- MXFP4 ---- */

static void get_mxfp4(const struct tnd_block_mxfp4 *block, float *y)
{
    unpack(block->qs, book_fp4, tnd_bf16_to_f32(tnd_e8m0_half(block->e)), y);
}
TND_DEQUANTIZE_BLOCKS(MXFP4, mxfp4, BLOCK)

/* Nearest codes for one exponent; returns the squared error. */
static double choose_fp4(const float *x, uint8_t e, uint8_t *places)
{
    static const uint8_t place[25] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5,
                                      5, 5, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7};
    const double d = (double)tnd_bf16_to_f32(tnd_e8m0_half(e));
    const double id = 1.0 / d; /* a power of two */
    double error = 0;
    for (int i = 0; i < BLOCK; i++) { /* as in nearest_place */
        const double magnitude = fabs((double)x[i]) * id;
        const double twice = magnitude < 12 ? 2 * magnitude : magnitude >= 12 ? 24 : 0;
        const int whole = (int)twice;
        const int at = place[whole + ((double)whole < twice ? 1 : 0)];
        const double difference = magnitude - (double)book_fp4[at];
        places[i] = (uint8_t)(at + (x[i] < 0 && at > 0 ? 8 : 0));
        error += difference * difference;
    }
    return error * d * d;
}

/* The exponent of the specification scales the largest magnitude to 4..8, while codes reach 6; the
 * next exponent is tried, too, if it fits. */
static void put_mxfp4(const float *x, struct tnd_block_mxfp4 *block)
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
TND_QUANTIZE_BLOCKS(MXFP4, mxfp4, BLOCK)
