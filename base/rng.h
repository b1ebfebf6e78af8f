/* SPDX-License-Identifier: MIT
 * Seeded random numbers: the same sequence on every machine. Not for secrets.
 * Generator: xoshiro256++ seeded by splitmix64 (Blackman and Vigna 2018, prng.di.unimi.it). */
#ifndef TND_RNG_H
#define TND_RNG_H

#include <math.h>
#include <stdint.h>

struct tnd_rng {
    uint64_t s[4];
};

/** One step of splitmix64: also a good hash of a counter. */
static inline uint64_t tnd_splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline void tnd_rng_init(struct tnd_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        rng->s[i] = tnd_splitmix64(&seed);
    }
}

static inline uint64_t tnd_rng_rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static inline uint64_t tnd_rng_u64(struct tnd_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = tnd_rng_rotate(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = tnd_rng_rotate(s[3], 45);
    return result;
}

/** Uniform in [0, 1), 24 random bits. */
static inline float tnd_rng_float(struct tnd_rng *rng)
{
    return (float)(tnd_rng_u64(rng) >> 40) * 0x1p-24f;
}

/** Uniform in [0, 1), 53 random bits. */
static inline double tnd_rng_double(struct tnd_rng *rng)
{
    return (double)(tnd_rng_u64(rng) >> 11) * 0x1p-53;
}

/** Uniform in [0, n), n > 0; the bias is below 2^-32 for n < 2^32. */
static inline uint64_t tnd_rng_below(struct tnd_rng *rng, uint64_t n)
{
    return n <= UINT32_MAX ? ((tnd_rng_u64(rng) >> 32) * n) >> 32 : tnd_rng_u64(rng) % n;
}

/** Mean 0, variance 1 (Box and Muller 1958). */
static inline float tnd_rng_normal(struct tnd_rng *rng)
{
    double radius = sqrt(-2.0 * log(1.0 - tnd_rng_double(rng)));
    return (float)(radius * cos(6.283185307179586 * tnd_rng_double(rng)));
}

#endif
