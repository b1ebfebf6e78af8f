/* SPDX-License-Identifier: MIT
 * Choosing one of n values on the CPU in O(n) without sorting: counting keys by digits finds the
 * last one that is kept, since values with equal keys have equal weights. */
#include "ggml-like/tnd_sample.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/tnd_assert.h"
#include "ggml-like/sample_weights.h"

/* ---- settings ---- */

void tandem_sample_settings_fill(struct tandem_sample_settings *out, float temperature,
                                 int64_t top_k, float top_p, float min_p, uint64_t draw)
{
    struct tandem_sample_settings settings = {.least = 1, .draw = draw};
    if (out == NULL) {
        return;
    }
    if (temperature > 0.0f) {
        int exponent = 0;
        const double fraction = frexp(1.44269504088896340736 / (double)temperature, &exponent);
        settings.scale = (uint32_t)fmin(fraction * 0x1p32, 0xffffffffp0);
        settings.exponent = exponent - 32;
        settings.k = top_k < INT32_MAX ? (uint32_t)top_k : 0;
        if (top_p > 0.0f && top_p < 1.0f) {
            settings.share = (uint64_t)fmax((double)top_p * 0x1p64, 1.0);
        }
        const double least = ceil((double)min_p * TANDEM_SAMPLE_ONE);
        settings.least = least > 1.0 ? (uint32_t)least : 1;
    }
    *out = settings;
}

/* ---- keys and weights ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

uint32_t tnd_sample_key(uint32_t bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u || bits == 0xff800000u) {
        return 0;
    }
    return bits >> 31 == 0 ? bits | 0x80000000u : bits == 0x80000000u ? bits : ~bits;
}

/* The value of a key. Subnormal numbers count as 0 everywhere, because some devices flush them. */
static float value_of(uint32_t key)
{
    uint32_t bits = key >> 31 != 0 ? key & 0x7fffffffu : ~key;
    float value;
    bits = (bits & 0x7f800000u) == 0 ? 0 : bits;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* a * b / 2^32 */
static uint32_t high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* 2^31 2^-x for x = f / 2^32, to within 2 units: 1 - x p(x) */
static uint32_t power(uint32_t f)
{
    static const uint32_t coefficients[] = TND_SAMPLE_POWER;
    uint32_t p = coefficients[0];
    for (int i = 1; i < TND_SAMPLE_DEGREE; i++) {
        p = coefficients[i] - high(f, p);
    }
    return TANDEM_SAMPLE_ONE - ((high(f, p) + 1) >> 1);
}

uint32_t tnd_sample_weight(const struct tandem_sample_settings *settings, uint32_t largest,
                           uint32_t key)
{
    if (key == largest) {
        return TANDEM_SAMPLE_ONE;
    }
    /* rounded to nearest on every CPU and device; subnormal differences are exact */
    const uint32_t distance = bits_of(value_of(largest) - value_of(key));
    const uint32_t biased = distance >> 23;
    if (biased == 0) {
        return TANDEM_SAMPLE_ONE;
    }
    /* x = distance * scale, in units of 1/2^32; from x = 32 on the weight is 0 */
    const int32_t shift = 118 - (int32_t)biased - tnd_sample_exponent(settings);
    const uint64_t product = (uint64_t)((distance & 0x7fffffu) | 0x800000u) * settings->scale;
    if (biased == 255 || shift < 0) {
        return 0;
    }
    const uint64_t x = shift < 64 ? product >> shift : 0;
    const uint32_t whole = x >> 37 != 0 ? 32 : (uint32_t)(x >> 32);
    if (whole == 32) {
        return 0;
    }
    const uint32_t one = power((uint32_t)x);
    return whole == 0 ? one : (one + (1u << (whole - 1))) >> whole;
}

/* ---- candidates ---- */

static inline bool may(const bool *mask, const uint32_t *bits, int64_t i)
{
    return mask != NULL ? mask[i] : bits == NULL || (bits[i / 32] >> (i % 32) & 1) != 0;
}

/* Updates of the maximum are rare: a well-predicted branch costs a third of a chain of conditional
 * moves. */
static int64_t likeliest(const float *logits, int64_t n, const bool *mask, const uint32_t *bits)
{
    int64_t best = -1;
    float largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (__builtin_expect(logits[i] > largest, 0) && may(mask, bits, i)) {
            largest = logits[i];
            best = i;
        }
    }
    return best;
}

enum { BLOCK = 256 };

/* Keys and weights of up to BLOCK values; without settings each weight is 1. Values above the
 * largest one are masked and weigh nothing. */
static void weigh(const struct tandem_sample_settings *settings, uint32_t largest,
                  const float *logits, int64_t n, uint32_t *keys, uint32_t *weights)
{
    int64_t i = 0;
#if defined(__x86_64__)
    if (settings != NULL && (tnd_cpu_features() & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        i = n / 8 * 8;
        tnd_sample_weights_avx2(settings, value_of(largest), largest, logits, i, keys, weights);
    }
#elif defined(__aarch64__)
    if (settings != NULL) {
        i = n / 8 * 8;
        tnd_sample_weights_neon(settings, value_of(largest), largest, logits, i, keys, weights);
    }
#endif
    for (; i < n; i++) {
        const uint32_t key = tnd_sample_key(bits_of(logits[i]));
        const bool has_chance = key != 0 && key <= largest;
        keys[i] = key;
        weights[i] = !has_chance        ? 0
                     : settings == NULL ? 1
                                        : tnd_sample_weight(settings, largest, key);
    }
}

static int64_t fill(const struct tandem_sample_settings *settings, const float *logits, int64_t n,
                    const bool *mask, const uint32_t *bits, uint32_t largest,
                    struct tnd_sample_candidate *out)
{
    uint32_t keys[BLOCK], weights[BLOCK];
    int64_t n_kept = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t m = n - begin < BLOCK ? n - begin : BLOCK;
        weigh(settings, largest, logits + begin, m, keys, weights);
        for (int64_t i = 0; i < m; i++) {
            out[n_kept] = (struct tnd_sample_candidate){keys[i], weights[i], (int32_t)(begin + i)};
            n_kept += weights[i] > 0 && may(mask, bits, begin + i);
        }
    }
    return n_kept;
}

/* ---- which candidates are kept ---- */

/* Count and weight of the candidates above a digit. */
struct above {
    uint64_t count, sum;
};

/* Counts candidates by digit and finds the digit of the last one that is kept: candidates with
 * higher digits, together with `above`, are fewer than k and weigh less than `mass`. */
static uint32_t find_digit(const struct tnd_sample_candidate *c, int64_t n, int shift, int n_bits,
                           uint64_t k, uint64_t mass, struct tnd_sample_memory *memory,
                           struct above *above)
{
    const uint32_t most = (1u << n_bits) - 1;
    memset(memory->sums, 0, ((size_t)most + 1) * sizeof(memory->sums[0]));
    memset(memory->counts, 0, ((size_t)most + 1) * sizeof(memory->counts[0]));
    for (int64_t i = 0; i < n && mass == UINT64_MAX; i++) {
        memory->counts[c[i].key >> shift & most]++;
    }
    for (int64_t i = 0; i < n && mass != UINT64_MAX; i++) {
        memory->sums[c[i].key >> shift & most] += c[i].weight;
    }
    uint32_t digit = most;
    while (digit > 0 && above->count + memory->counts[digit] < k &&
           above->sum + memory->sums[digit] < mass) {
        above->count += memory->counts[digit];
        above->sum += memory->sums[digit];
        digit--;
    }
    return digit;
}

/* Keeps the first k of n candidates, or as many as are needed to weigh `mass`. There are at least
 * k, and they weigh at least that much. Returns how many are kept. */
static int64_t cut(int64_t n, uint64_t k, uint64_t mass, struct tnd_sample_memory *memory)
{
    static const struct {
        int shift, n_bits;
    } digits[] = {{20, TND_SAMPLE_DIGIT_BITS}, {10, 10}, {0, 10}};
    struct tnd_sample_candidate *c = memory->candidates;
    struct tnd_sample_candidate *spare = c + n;
    const struct tnd_sample_candidate *from = c;
    struct above above = {0, 0};
    uint32_t border = 0;
    int64_t m = n;
    for (size_t d = 0; d < sizeof(digits) / sizeof(digits[0]); d++) {
        border |= find_digit(from, m, digits[d].shift, digits[d].n_bits, k, mass, memory, &above)
                  << digits[d].shift;
        int64_t n_left = 0;
        for (int64_t i = 0; i < m; i++) {
            spare[n_left] = from[i];
            n_left += from[i].key >> digits[d].shift == border >> digits[d].shift;
        }
        from = spare;
        m = n_left;
    }
    TND_ASSERT(m > 0);
    const uint64_t weight = from[0].weight; /* the same for all with this key */
    uint64_t left = k - above.count;
    if (mass != UINT64_MAX) {
        left = (mass - above.sum + weight - 1) / weight;
    }
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool is_border = c[i].key == border;
        if (c[i].key > border || (is_border && left > 0)) {
            c[n_kept++] = c[i];
            left -= is_border;
        }
    }
    return n_kept;
}

static uint64_t sum_of(const struct tnd_sample_candidate *c, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += c[i].weight;
    }
    return sum;
}

/* a * b / 2^64, rounded up or down */
static uint64_t part(uint64_t a, uint64_t b, bool is_up)
{
    const uint64_t a1 = a >> 32, a0 = (uint32_t)a, b1 = b >> 32, b0 = (uint32_t)b;
    const uint64_t middle = (a0 * b0 >> 32) + (uint32_t)(a1 * b0) + (uint32_t)(a0 * b1);
    const uint64_t whole = a1 * b1 + (a1 * b0 >> 32) + (a0 * b1 >> 32) + (middle >> 32);
    return whole + (is_up && a * b != 0);
}

/* Keeps those of m candidates of positive weight that the settings `share` (top-p) and `least`
 * (min-p) allow. `sum`: the weight of all candidates, including those that are not in the list; 0:
 * all are in the list. */
static int64_t keep_weighed(const struct tandem_sample_settings *settings, int64_t m, uint64_t sum,
                            struct tnd_sample_memory *memory)
{
    struct tnd_sample_candidate *c = memory->candidates;
    if (settings->share > 0) {
        sum = sum > 0 ? sum : sum_of(c, m);
        m = cut(m, UINT64_MAX, part(sum, settings->share, true), memory);
    }
    const uint32_t least =
        settings->least < TANDEM_SAMPLE_ONE ? settings->least : TANDEM_SAMPLE_ONE;
    int64_t n_kept = 0;
    for (int64_t i = 0; i < m; i++) { /* the largest one weighs 1 */
        if (c[i].weight > 0 && c[i].weight >= least) {
            c[n_kept++] = c[i];
        }
    }
    return n_kept;
}

/* Reduces the candidates to those that are kept, in the order of the row; returns how many. */
static int64_t keep(const struct tandem_sample_settings *settings, const float *logits, int64_t n,
                    const bool *mask, const uint32_t *bits, struct tnd_sample_memory *memory)
{
    struct tnd_sample_candidate *c = memory->candidates;
    const int64_t best = likeliest(logits, n, mask, bits);
    if (best < 0) {
        return 0;
    }
    if (settings->scale == 0) {
        c[0] = (struct tnd_sample_candidate){0, TANDEM_SAMPLE_ONE, (int32_t)best};
        return 1;
    }
    const uint32_t largest = tnd_sample_key(bits_of(logits[best]));
    const bool counts_first = settings->k > 0 && (int64_t)settings->k < n;
    int64_t m = fill(counts_first ? NULL : settings, logits, n, mask, bits, largest, c);
    if (counts_first) { /* candidates without weight are the last ones */
        m = (int64_t)settings->k < m ? cut(m, settings->k, UINT64_MAX, memory) : m;
        for (int64_t i = 0; i < m; i++) {
            c[i].weight = tnd_sample_weight(settings, largest, c[i].key);
        }
    }
    return keep_weighed(settings, m, 0, memory);
}

static struct tandem_sample_choice draw(uint64_t random, const struct tnd_sample_candidate *c,
                                        int64_t n)
{
    const uint64_t total = sum_of(c, n);
    uint64_t left = part(total, random, false);
    for (int64_t i = 0; i < n; i++) {
        if (left < c[i].weight) {
            return (struct tandem_sample_choice){c[i].index, c[i].weight, total};
        }
        left -= c[i].weight;
    }
    return (struct tandem_sample_choice){0, 0, 0};
}

/* ---- rows whose parts send their first values ---- */

int64_t tandem_sample_first(const float *logits, int64_t n, int64_t k, void *memory,
                            struct tandem_sample_first *out, bool *out_is_all)
{
    struct tnd_sample_memory *room = memory;
    if (logits == NULL || memory == NULL || out == NULL || out_is_all == NULL || n < 1 || k < 1) {
        return 0;
    }
    const int64_t best = likeliest(logits, n, NULL, NULL);
    *out_is_all = best < 0;
    if (best < 0 || k == 1) {
        out[0] = best < 0 ? out[0] : (struct tandem_sample_first){logits[best], (int32_t)best};
        return best >= 0;
    }
    int64_t m =
        fill(NULL, logits, n, NULL, NULL, tnd_sample_key(bits_of(logits[best])), room->candidates);
    *out_is_all = m <= k;
    m = m <= k ? m : cut(m, (uint64_t)k, UINT64_MAX, room);
    for (int64_t i = 0; i < m; i++) {
        const int32_t index = room->candidates[i].index;
        out[i] = (struct tandem_sample_first){logits[index], index};
    }
    return m;
}

uint64_t tandem_sample_sum(const struct tandem_sample_settings *settings, float largest,
                           const float *logits, int64_t n)
{
    uint32_t keys[BLOCK], weights[BLOCK];
    uint64_t sum = 0;
    if (settings == NULL || logits == NULL || settings->scale == 0) {
        return 0;
    }
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t m = n - begin < BLOCK ? n - begin : BLOCK;
        weigh(settings, tnd_sample_key(bits_of(largest)), logits + begin, m, keys, weights);
        for (int64_t i = 0; i < m; i++) {
            sum += weights[i];
        }
    }
    return sum;
}

static bool is_before(const struct tnd_sample_candidate *a, const struct tnd_sample_candidate *b)
{
    return a->key != b->key ? a->key > b->key : a->index < b->index;
}

/* Collects candidates from the parts, in the order of the row; returns how many. They include every
 * value up to `out_limit`: of the last values of those parts that did not send everything, the
 * first in order. */
static int64_t join(const struct tandem_sample_part *parts, int n_parts,
                    struct tnd_sample_candidate *c, struct tnd_sample_candidate *out_limit)
{
    int64_t m = 0;
    *out_limit = (struct tnd_sample_candidate){0, 0, INT32_MAX};
    for (int p = 0; p < n_parts; p++) {
        struct tnd_sample_candidate last = {UINT32_MAX, 0, 0};
        for (int64_t i = 0; i < parts[p].n; i++) {
            const struct tandem_sample_first *first = &parts[p].first[i];
            c[m] = (struct tnd_sample_candidate){tnd_sample_key(bits_of(first->logit)), 0,
                                                 first->index};
            last = is_before(&last, &c[m]) ? c[m] : last;
            m += c[m].key != 0; /* (received values can be anything) */
        }
        *out_limit = !parts[p].is_all && is_before(&last, out_limit) ? last : *out_limit;
    }
    return m;
}

/* Computes the weights of m candidates and removes those without weight; `out_known`: the total
 * weight of the candidates up to `limit`. */
static int64_t weigh_all(const struct tandem_sample_settings *settings, uint32_t largest, int64_t m,
                         const struct tnd_sample_candidate *limit, struct tnd_sample_candidate *c,
                         uint64_t *out_known)
{
    int64_t n = 0;
    *out_known = 0;
    for (int64_t i = 0; i < m; i++) {
        c[n] = c[i];
        c[n].weight = tnd_sample_weight(settings, largest, c[i].key);
        *out_known += is_before(limit, &c[n]) ? 0 : c[n].weight;
        n += c[n].weight > 0;
    }
    return n;
}

/* Whether the parts have sent every candidate that is kept. */
static bool is_certain(const struct tandem_sample_settings *settings, uint32_t largest,
                       const struct tnd_sample_candidate *limit, uint64_t known, uint64_t sum)
{
    if (limit->key == 0 || settings->k > 0) { /* the list is complete, or the first k are enough */
        return true;
    }
    if (settings->share > 0) {
        return known >= part(sum, settings->share, true);
    }
    /* a smaller value may weigh more, by the error of weights */
    return tnd_sample_weight(settings, largest, limit->key) + TND_SAMPLE_OFF < settings->least;
}

bool tandem_sample_parts(const struct tandem_sample_settings *settings,
                         const struct tandem_sample_part *parts, int n_parts, void *memory,
                         struct tandem_sample_choice *out_choice)
{
    struct tnd_sample_memory *room = memory;
    struct tnd_sample_candidate limit;
    uint64_t known = 0, sum = 0;
    uint32_t largest = 0;
    int64_t best = 0;
    if (settings == NULL || parts == NULL || memory == NULL || out_choice == NULL) {
        return false;
    }
    struct tnd_sample_candidate *c = room->candidates;
    int64_t m = join(parts, n_parts, c, &limit);
    for (int64_t i = 0; i < m; i++) {
        best = c[i].key > largest ? i : best;
        largest = c[best].key;
    }
    for (int p = 0; p < n_parts; p++) {
        sum += parts[p].sum;
        if (!parts[p].is_all && parts[p].n < (settings->k > 0 ? (int64_t)settings->k : 1)) {
            return false;
        }
    }
    if (m == 0 || settings->scale == 0) {
        *out_choice = (struct tandem_sample_choice){0, 0, 0};
        if (m > 0) {
            *out_choice =
                (struct tandem_sample_choice){c[best].index, TANDEM_SAMPLE_ONE, TANDEM_SAMPLE_ONE};
        }
        return true;
    }
    if (settings->k > 0 && (int64_t)settings->k < m) {
        m = cut(m, settings->k, UINT64_MAX, room);
    }
    m = weigh_all(settings, largest, m, &limit, c, &known);
    if (!is_certain(settings, largest, &limit, known, sum)) {
        return false;
    }
    const bool is_all = limit.key == 0 || settings->k > 0;
    m = keep_weighed(settings, m, is_all ? 0 : sum, room);
    *out_choice = draw(settings->draw, c, m);
    return true;
}

/* ---- internal interface ---- */

size_t tandem_sample_memory(int64_t n)
{
    return sizeof(struct tnd_sample_memory) + 2 * (size_t)n * sizeof(struct tnd_sample_candidate);
}

int64_t tandem_sample_row(const struct tandem_sample_settings *settings, const float *logits,
                          int64_t n, const bool *mask, void *memory, int32_t *out_kept,
                          struct tandem_sample_choice *out_choice)
{
    struct tnd_sample_memory *room = memory;
    if (settings == NULL || logits == NULL || memory == NULL || out_choice == NULL || n < 1) {
        return 0;
    }
    const int64_t n_kept = keep(settings, logits, n, mask, NULL, room);
    for (int64_t i = 0; i < n_kept && out_kept != NULL; i++) {
        out_kept[i] = room->candidates[i].index;
    }
    *out_choice = draw(settings->draw, room->candidates, n_kept);
    return n_kept;
}

void tnd_sample_row(const struct tandem_sample_settings *settings, const float *logits, int64_t n,
                    const uint32_t *bits, struct tnd_sample_memory *memory,
                    struct tandem_sample_choice *out)
{
    int64_t n_kept = keep(settings, logits, n, NULL, bits, memory);
    if (n_kept == 0 && bits != NULL) {
        n_kept = keep(settings, logits, n, NULL, NULL, memory);
    }
    *out = draw(settings->draw, memory->candidates, n_kept);
}
