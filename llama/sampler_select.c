/* SPDX-License-Identifier: MIT
 * Counting sort by half-precision keys finds the bucket in which the border lies; what is above it
 * is kept unsorted, and only the bucket itself is sorted, by the bits of its floats. */
#include "llama/sampler_select.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

uint32_t tnd_select_key(float weight)
{
    if (weight < 0x1p-14f) {
        return (uint32_t)(weight * 0x1p24f); /* subnormal halves: steps of 2^-24 */
    }
    return (bits_of(weight) >> 13) - ((127 - 15) << 10);
}

/* Returns the sum of all weights. */
static double count_keys(const struct tnd_token_candidate *candidates, int64_t n,
                         struct tnd_select_memory *memory)
{
    double all = 0.0;
    memset(memory->counts, 0, sizeof(memory->counts));
    memset(memory->sums, 0, sizeof(memory->sums));
    for (int64_t i = 0; i < n; i++) {
        const uint32_t key = tnd_select_key(candidates[i].weight);
        memory->counts[key]++;
        memory->sums[key] += (double)candidates[i].weight;
        all += (double)candidates[i].weight;
    }
    return all;
}

/* Sorts by descending weight, equal ones as they stand: 3 passes over 11 bits, the last of them the
 * highest. Non-negative floats stand in the order of their bits. */
static void sort_bucket(struct tnd_token_candidate *a, struct tnd_token_candidate *b, int64_t n)
{
    enum { DIGITS = 2048 };
    for (int pass = 0; pass < 3; pass++) {
        int64_t starts[DIGITS + 1] = {0};
        const int shift = 11 * pass;
        for (int64_t i = 0; i < n; i++) {
            starts[DIGITS - (bits_of(a[i].weight) >> shift & (DIGITS - 1))]++;
        }
        for (int64_t digit = 1; digit <= DIGITS; digit++) {
            starts[digit] += starts[digit - 1];
        }
        for (int64_t i = 0; i < n; i++) {
            b[starts[DIGITS - 1 - (bits_of(a[i].weight) >> shift & (DIGITS - 1))]++] = a[i];
        }
        struct tnd_token_candidate *other = a;
        a = b;
        b = other;
    }
    memcpy(b, a, (size_t)n * sizeof(a[0])); /* after 3 passes the result is in the spare one */
}

/* The bucket that has the border; what is above it has fewer than k and less than `mass`. */
static uint32_t find_border(const struct tnd_select_memory *memory, int64_t k, double mass,
                            int64_t *out_count, double *out_mass)
{
    int64_t count = 0;
    double above = 0.0;
    uint32_t key = TND_SELECT_KEYS - 1;
    for (; key > 0; key--) {
        if (count + memory->counts[key] >= k || above + memory->sums[key] >= mass) {
            break;
        }
        count += memory->counts[key];
        above += memory->sums[key];
    }
    *out_count = count;
    *out_mass = above;
    return key;
}

/* How many of a sorted bucket are needed: one at least. */
static int64_t take_bucket(const struct tnd_token_candidate *bucket, int64_t n, int64_t k,
                           double mass)
{
    int64_t taken = 0;
    double sum = 0.0;
    do {
        sum += (double)bucket[taken++].weight;
    } while (taken < n && taken < k && sum < mass);
    return taken;
}

/* Whether a candidate of the border's bucket comes not behind the last that is kept. */
static int is_kept(const struct tnd_token_candidate *one, const struct tnd_token_candidate *last)
{
    return one->weight > last->weight || (one->weight == last->weight && one->token <= last->token);
}

int64_t tnd_select(struct tnd_token_candidate *candidates, int64_t n, int64_t k, double share,
                   struct tnd_select_memory *memory)
{
    if (n < 1 || (k >= n && share >= 1.0)) {
        return n;
    }
    const double all = count_keys(candidates, n, memory);
    const double mass = share >= 1.0 ? 1e300 : share * all;
    int64_t above;
    double mass_above;
    const uint32_t border = find_border(memory, k, mass, &above, &mass_above);
    struct tnd_token_candidate *bucket = memory->spare;
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        if (tnd_select_key(candidates[i].weight) == border) {
            bucket[m++] = candidates[i];
        }
    }
    if (m == 0) { /* rounding: all together are needed for the share */
        return n;
    }
    sort_bucket(bucket, bucket + n, m);
    const int64_t taken = take_bucket(bucket, m, k - above, mass - mass_above);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t key = tnd_select_key(candidates[i].weight);
        if (key > border || (key == border && is_kept(&candidates[i], &bucket[taken - 1]))) {
            candidates[kept++] = candidates[i];
        }
    }
    return kept;
}
