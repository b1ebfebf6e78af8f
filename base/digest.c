/* SPDX-License-Identifier: MIT
 * Eight independent lanes consume one word each per stripe: exclusive or, multiplication by an odd
 * number, rotation. Each step is a bijection of the lane for every word and of the word for every
 * lane, so a single changed word always changes its lane. */
#include "base/digest.h"

#include <string.h>

enum { LANES = 8, WORD = 8, STRIPE = LANES * WORD };

static const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t step(uint64_t lane, uint64_t word)
{
    return rotate((lane ^ word) * odd, 29);
}

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): every output bit depends on every input
 * bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t tnd_digest_add(uint64_t digest, uint64_t next)
{
    return mix(step(digest, next) + odd);
}

/* Digests whole stripes. The lanes are separate variables so that they stay in registers. */
static const uint8_t *take_stripes(uint64_t lanes[LANES], const uint8_t *at, size_t n_stripes)
{
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    uint64_t e = lanes[4], f = lanes[5], g = lanes[6], h = lanes[7];
    for (size_t i = 0; i < n_stripes; i++, at += STRIPE) {
        a = step(a, word_at(at));
        b = step(b, word_at(at + WORD));
        c = step(c, word_at(at + 2 * WORD));
        d = step(d, word_at(at + 3 * WORD));
        e = step(e, word_at(at + 4 * WORD));
        f = step(f, word_at(at + 5 * WORD));
        g = step(g, word_at(at + 6 * WORD));
        h = step(h, word_at(at + 7 * WORD));
    }
    memcpy(lanes, (const uint64_t[]){a, b, c, d, e, f, g, h}, LANES * sizeof(lanes[0]));
    return at;
}

uint64_t tnd_digest(const void *bytes, size_t n)
{
    uint64_t lanes[LANES];
    uint8_t last[STRIPE] = {0};
    uint64_t digest = mix(n);
    for (int i = 0; i < LANES; i++) {
        lanes[i] = mix((uint64_t)(i + 1) * odd);
    }
    const uint8_t *end = take_stripes(lanes, bytes, n / STRIPE);
    if (n % STRIPE > 0) { /* the length distinguishes padding from zeros in the data */
        memcpy(last, end, n % STRIPE);
        (void)take_stripes(lanes, last, 1);
    }
    for (int i = 0; i < LANES; i++) {
        digest = tnd_digest_add(digest, lanes[i]);
    }
    return digest;
}
