/* SPDX-License-Identifier: MIT
 * Quantised blocks and the values they hold, written down a second time: layouts and formulas of
 * ggml (ggml-like/quant_*.c cite them) in the plainest form, a value at a time by its index.
 * gguf-py gives the same bytes (tools/dev/stand_ins/judge.py). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/make_stand_ins.h"

enum { RANDOM_BLOCKS = 64 };

typedef const unsigned char bytes;

static float half(bytes *at)
{
    const int bits = at[0] | at[1] << 8;
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double size =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return (float)(bits >> 15 != 0 ? -size : size);
}

/* To the nearest half float, ties to even; the values here are never too large for one. */
static void put_half(float value, unsigned char *out)
{
    int exponent = 0;
    const double size = fabs((double)value);
    (void)frexp(size, &exponent);
    /* The unit in the last place is 2^(exponent - 11), at least 2^-24. */
    const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
    const int steps = (int)rint(ldexp(size, -unit));
    /* Steps of 1024 or more carry into the exponent's bits, which is what rounding up asks for. */
    const int bits = (value < 0.0f ? 0x8000 : 0) | (steps + ((unit + 24) << 10));
    out[0] = (unsigned char)bits;
    out[1] = (unsigned char)(bits >> 8);
}

/* ---- values of blocks ---- */

static float value_bf16(bytes *block, int i)
{
    (void)i;
    const uint32_t bits = (uint32_t)block[0] << 16 | (uint32_t)block[1] << 24;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Values i and i + 16 of a block of 32 share byte i. */
static int nibble(bytes *at, int i)
{
    return at[i % 16] >> (i < 16 ? 0 : 4) & 15;
}

static int bit(bytes *at, int i)
{
    return at[i / 8] >> i % 8 & 1;
}

static float value_q4_0(bytes *block, int i)
{
    return half(block) * (float)(nibble(block + 2, i) - 8);
}

static float value_q4_1(bytes *block, int i)
{
    return half(block) * (float)nibble(block + 4, i) + half(block + 2);
}

static float value_q5_0(bytes *block, int i)
{
    return half(block) * (float)((nibble(block + 6, i) | bit(block + 2, i) << 4) - 16);
}

static float value_q5_1(bytes *block, int i)
{
    return half(block) * (float)(nibble(block + 8, i) | bit(block + 4, i) << 4) + half(block + 2);
}

static float value_q8_0(bytes *block, int i)
{
    return half(block) * (float)(int8_t)block[2 + i];
}

/* Two bits of value i of 256: byte i % 32 of each half of 32 bytes, pair of bits i / 32 % 4. */
static int two_bits(bytes *at, int i)
{
    return at[i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3;
}

static float value_q2_k(bytes *block, int i)
{
    const int scales = block[i / 16];
    return half(block + 80) * (float)(scales & 15) * (float)two_bits(block + 16, i) -
           half(block + 82) * (float)(scales >> 4);
}

static float value_q3_k(bytes *block, int i)
{
    bytes *scales = block + 96;
    const int s = i / 16;
    const int low = scales[s % 8] >> (s < 8 ? 0 : 4) & 15;
    const int high = scales[8 + s % 4] >> 2 * (s / 4) & 3;
    /* A clear bit of the mask takes 4 away. */
    const int q = two_bits(block + 32, i) - 4 * (1 - (block[i % 32] >> i / 32 & 1));
    return half(block + 108) * (float)((low | high << 4) - 32) * (float)q;
}

/* Six bits of scale (or minimum, 4 bytes behind) of group g of 32 values, of Q4_K and Q5_K. */
static int six_bits(bytes *at, int g, int is_minimum)
{
    const int low = is_minimum ? 4 : 0;
    return g < 4 ? at[low + g] & 63
                 : (at[4 + g] >> (is_minimum ? 4 : 0) & 15) | at[low + g - 4] >> 6 << 4;
}

/* Value i of 256 with its fifth bit. */
static float value_q45_k(bytes *block, int i, bytes *quants, int fifth)
{
    const int g = i / 32;
    const int q = (quants[i / 64 * 32 + i % 32] >> (g % 2 == 0 ? 0 : 4) & 15) | fifth << 4;
    return half(block) * (float)six_bits(block + 4, g, 0) * (float)q -
           half(block + 2) * (float)six_bits(block + 4, g, 1);
}

static float value_q4_k(bytes *block, int i)
{
    return value_q45_k(block, i, block + 16, 0);
}

static float value_q5_k(bytes *block, int i)
{
    return value_q45_k(block, i, block + 48, block[16 + i % 32] >> i / 32 & 1);
}

static float value_q6_k(bytes *block, int i)
{
    const int in_half = i % 128;
    const int low = block[i / 128 * 64 + in_half % 64] >> (in_half < 64 ? 0 : 4) & 15;
    const int high = two_bits(block + 128, i);
    return half(block + 208) * (float)(int8_t)block[192 + i / 16] * (float)((low | high << 4) - 32);
}

/* ---- blocks of values ---- */

static void make_bf16(const float *values, unsigned char *block)
{
    uint32_t bits;
    memcpy(&bits, values, sizeof(bits));
    bits += 0x7fff + (bits >> 16 & 1); /* nearest, ties to even */
    block[0] = (unsigned char)(bits >> 16);
    block[1] = (unsigned char)(bits >> 24);
}

/* The value of 32 that is farthest from zero, the first one of equals. */
static float farthest(const float *values)
{
    float best = 0.0f;
    for (int i = 0; i < 32; i++) {
        best = fabsf(values[i]) > fabsf(best) ? values[i] : best;
    }
    return best;
}

static float inverse(float scale)
{
    return scale == 0.0f ? 0.0f : 1.0f / scale;
}

static void put_quant(unsigned char *nibbles, unsigned char *bits, int i, int q)
{
    nibbles[i % 16] = (unsigned char)(nibbles[i % 16] | (q & 15) << (i < 16 ? 0 : 4));
    if (bits != NULL) {
        bits[i / 8] = (unsigned char)(bits[i / 8] | (q >> 4) << i % 8);
    }
}

/* Q4_0 and Q5_0: the value farthest from zero becomes the lowest number. */
static void make_signed(const float *values, unsigned char *block, int levels,
                        unsigned char *nibbles, unsigned char *bits)
{
    const float scale = farthest(values) / (float)(-levels / 2);
    put_half(scale, block);
    for (int i = 0; i < 32; i++) {
        const int q = (int)(values[i] * inverse(scale) + (float)(levels / 2) + 0.5f);
        put_quant(nibbles, bits, i, q < levels ? q : levels - 1);
    }
}

/* Q4_1 and Q5_1: from the lowest value to the highest. */
static void make_ranged(const float *values, unsigned char *block, int levels,
                        unsigned char *nibbles, unsigned char *bits)
{
    float low = values[0];
    float high = values[0];
    for (int i = 0; i < 32; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    const float scale = (high - low) / (float)(levels - 1);
    put_half(scale, block);
    put_half(low, block + 2);
    for (int i = 0; i < 32; i++) {
        const int q = (int)((values[i] - low) * inverse(scale) + 0.5f);
        put_quant(nibbles, bits, i, q < levels ? q : levels - 1);
    }
}

static void make_q4_0(const float *values, unsigned char *block)
{
    make_signed(values, block, 16, block + 2, NULL);
}

static void make_q4_1(const float *values, unsigned char *block)
{
    make_ranged(values, block, 16, block + 4, NULL);
}

static void make_q5_0(const float *values, unsigned char *block)
{
    make_signed(values, block, 32, block + 6, block + 2);
}

static void make_q5_1(const float *values, unsigned char *block)
{
    make_ranged(values, block, 32, block + 8, block + 4);
}

static void make_q8_0(const float *values, unsigned char *block)
{
    const float scale = fabsf(farthest(values)) / 127.0f;
    put_half(scale, block);
    for (int i = 0; i < 32; i++) {
        block[2 + i] = (unsigned char)(int)roundf(values[i] * inverse(scale));
    }
}

/* ---- files ---- */

static const struct type {
    const char *name;
    int values, bytes;
    int halves[2]; /* where half floats stand; -1 none */
    float (*value)(bytes *block, int i);
    void (*make)(const float *values, unsigned char *block);
} types[] = {
    {"BF16", 1, 2, {-1, -1}, value_bf16, make_bf16},
    {"Q4_0", 32, 18, {0, -1}, value_q4_0, make_q4_0},
    {"Q4_1", 32, 20, {0, 2}, value_q4_1, make_q4_1},
    {"Q5_0", 32, 22, {0, -1}, value_q5_0, make_q5_0},
    {"Q5_1", 32, 24, {0, 2}, value_q5_1, make_q5_1},
    {"Q8_0", 32, 34, {0, -1}, value_q8_0, make_q8_0},
    {"Q2_K", 256, 84, {80, 82}, value_q2_k, NULL},
    {"Q3_K", 256, 110, {108, -1}, value_q3_k, NULL},
    {"Q4_K", 256, 144, {0, 2}, value_q4_k, NULL},
    {"Q5_K", 256, 176, {0, 2}, value_q5_k, NULL},
    {"Q6_K", 256, 210, {208, -1}, value_q6_k, NULL},
};

static void write_files(const struct type *type, const char *set, bytes *blocks, int n_blocks)
{
    char name[64];
    snprintf(name, sizeof(name), "quants/%s.%s.blocks.bin", type->name, set);
    FILE *file = tnd_stand_in_open(name, "wb");
    tnd_stand_in_write(file, blocks, (size_t)n_blocks * (size_t)type->bytes);
    tnd_stand_in_close(file);
    snprintf(name, sizeof(name), "quants/%s.%s.f32.bin", type->name, set);
    file = tnd_stand_in_open(name, "wb");
    for (int i = 0; i < n_blocks * type->values; i++) {
        const float value = type->value(blocks + i / type->values * type->bytes, i % type->values);
        tnd_stand_in_write(file, &value, sizeof(value));
    }
    tnd_stand_in_close(file);
}

/* The generator of Steele and Lea's SplitMix64. */
static unsigned next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)(z >> 32);
}

/* Any bytes, but no scale that is infinite or not a number. */
static void fill_random(const struct type *type, unsigned char *blocks, int n_blocks)
{
    uint64_t state = (uint64_t)(type - types) + 1;
    for (int i = 0; i < n_blocks * type->bytes; i++) {
        blocks[i] = (unsigned char)next_random(&state);
    }
    for (int b = 0; b < n_blocks; b++) {
        for (int h = 0; h < 2 && type->halves[h] >= 0; h++) {
            unsigned char *high = blocks + b * type->bytes + type->halves[h] + 1;
            *high = (unsigned char)(*high & (next_random(&state) % 8 == 0 ? 0x83 : 0xbf));
        }
        if (type->values == 1) {
            blocks[2 * b + 1] &= 0xbf; /* BF16: below 2 */
        }
    }
}

void tnd_stand_in_quants(const float *values, int n)
{
    const int n_types = (int)(sizeof(types) / sizeof(types[0]));
    for (const struct type *type = types; type < types + n_types; type++) {
        const int n_blocks = type->values == 1 ? 32 * RANDOM_BLOCKS : RANDOM_BLOCKS;
        const int n_most = n > n_blocks * 4 ? n : n_blocks * 4;
        unsigned char *blocks = calloc((size_t)n_most, 64);
        if (blocks == NULL) {
            tnd_stand_in_fail("memory");
        }
        fill_random(type, blocks, n_blocks);
        write_files(type, "rand", blocks, n_blocks);
        if (type->make != NULL) {
            memset(blocks, 0, (size_t)n_most * 64);
            for (int b = 0; b < n / type->values; b++) {
                type->make(values + b * type->values, blocks + b * type->bytes);
            }
            write_files(type, "tok_embd", blocks, n / type->values);
        }
        free(blocks);
    }
}
