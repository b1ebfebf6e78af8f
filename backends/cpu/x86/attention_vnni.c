/* SPDX-License-Identifier: MIT
 * Attention of many queries in words of 16 bits for AVX-512 with VNNI, whose VPDPWSSD adds the
 * products of two pairs in each lane, twice as many as a multiply-add of floats. A row, of a query,
 * a key or a value, is a step (a float) times words. No sum of products can leave 32 bits: words of
 * queries and keys are as large as their norms (Cauchy & Schwarz) permit, weights as large as their
 * sum over a tile and the largest word of a value permit. Sums of words are exact, so they have the
 * same bits in any order.
 *
 * Errors. Rounding changes a number by half a word at most. A row becomes words only where half of
 * its numbers are 1024 words or more: none changes by more than 2^-11 of the median magnitude
 * (F16 changes each by 2^-11 of itself), whatever the outliers. So a score changes by at most
 * scale * (|k|_1 median |q| + |q|_1 median |k|) * 2^-11, some sqrt(head) times less where errors
 * are independent. Rounded weights (times the largest numbers of their values) change a tile's
 * sums by at most 64 times half a word: the greater of 2^-10 of the largest and 2^-13 of their sum.
 * Other rows, those with outliers, beyond 1e18, below 1e-18, infinite or NaN, are multiplied as
 * floats, key by key and query by query: NaN stands for their step. */
#define TND_VEC_FUSED
#include "backends/cpu/kernels/kernels.h"

#if defined(__AVX512VNNI__)
#include <float.h>

#include "backends/cpu/x86/lanes512.h"
#include "base/half.h"

enum { PANEL_VECTORS = 3, PANEL_TILE = 8 }; /* 24 sums, 3 vectors, 1 broadcast of 32 registers */
#include "backends/cpu/kernels/attention_seen_lanes.h"

/* Of words: 46000^2 and 260000 * 8191 are below 2^31, with room for what rounding adds. */
static const float most_word = 32767.0f, most_norm = 46000.0f, most_weights = 260000.0f;
static const float most_value = 8191.0f;
static const float row_min = 1e-18f, row_max = 1e18f; /* so that products of steps are normal */

/* ---- rows into words ---- */

TND_INLINE vec v_magnitude(vec x)
{
    return _mm512_abs_ps(x);
}

/* The larger of two magnitudes. NaN is the largest: its bits are. */
TND_INLINE vec v_larger(vec x, vec y)
{
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(x), _mm512_castps_si512(y)));
}

TND_INLINE float v_largest_of(vec magnitudes)
{
    return tnd_f32_from_bits((uint32_t)_mm512_reduce_max_epi32(_mm512_castps_si512(magnitudes)));
}

/* Words of a and b side by side in each lane, a's in the lower bits. */
TND_INLINE __m512i pair(vec a, vec b)
{
    const __m512i low = _mm512_cvtps_epi32(a);
    const __m512i high = _mm512_slli_epi32(_mm512_cvtps_epi32(b), 16);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, low, high);
}

/* Which words are so large that rounding changes them by 2^-11 at most. */
TND_INLINE __mmask16 is_fine(vec words)
{
    return _mm512_cmp_ps_mask(v_magnitude(words), v_set(1024.0f), _CMP_GE_OQ);
}

/* A row's step, or NaN unless half of its n words are fine. */
static float step_of(float units, int64_t n_fine, int64_t n)
{
    return units == 0.0f ? 0.0f : 2 * n_fine >= n ? 1.0f / units : NAN;
}

/* Units of a row from its largest magnitude and its sum of squares, which a row of up to 256
 * numbers cannot overflow. 0: of zeros; NaN: there are none. */
static float units_of(float largest, float squares)
{
    const float by_norm = most_norm / sqrtf(squares), by_word = most_word / largest;
    return largest >= row_min && largest <= row_max ? by_norm < by_word ? by_norm : by_word
           : largest == 0.0f                        ? 0.0f
                                                    : NAN;
}

/* Units of a vector of queries. */
static void units_of_queries(const float *queries, int64_t head, float *units)
{
    vec largest = v_set(0.0f), squares = v_set(0.0f);
    float magnitudes[LANES], sums[LANES];
    for (int64_t i = 0; i < head; i++) {
        const vec x = v_load(queries + i * PANEL);
        largest = v_larger(v_magnitude(x), largest);
        squares = v_fmadd(x, x, squares);
    }
    v_store(magnitudes, largest);
    v_store(sums, squares);
    for (int l = 0; l < LANES; l++) {
        units[l] = units_of(magnitudes[l], sums[l]);
    }
}

static void lay_queries(const float *queries, int64_t head, int32_t *words, float *steps)
{
    for (int r = 0; r < PANEL; r += LANES) {
        float units[LANES];
        int32_t n_fine[LANES];
        __m512i fine = _mm512_setzero_si512();
        const __m512i one = _mm512_set1_epi32(1);
        units_of_queries(queries + r, head, units);
        const vec factor = v_load(units);
        for (int64_t i = 0; i < head; i += 2) {
            const vec a = v_mul(v_load(queries + i * PANEL + r), factor);
            const vec b =
                i + 1 < head ? v_mul(v_load(queries + (i + 1) * PANEL + r), factor) : v_set(0.0f);
            fine = _mm512_mask_add_epi32(fine, is_fine(a), fine, one);
            fine = _mm512_mask_add_epi32(fine, is_fine(b), fine, one);
            _mm512_storeu_si512(words + i / 2 * PANEL + r, pair(a, b));
        }
        _mm512_storeu_si512(n_fine, fine);
        for (int l = 0; l < LANES; l++) {
            steps[r + l] = step_of(units[l], n_fine[l], head);
        }
    }
}

static float units_of_key(const float *key, int64_t n)
{
    vec largest = v_set(0.0f), squares = v_set(0.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        const vec x = v_load(key + i);
        largest = v_larger(v_magnitude(x), largest);
        squares = v_fmadd(x, x, squares);
    }
    return units_of(v_largest_of(largest), _mm512_reduce_add_ps(squares));
}

static void lay_keys(const float *keys, int n_keys, int64_t n, int32_t *words, float *steps)
{
    for (int j = 0; j < n_keys; j++, keys += n, words += n / 2) {
        const float units = units_of_key(keys, n);
        const vec factor = v_set(units);
        int n_fine = 0;
        for (int64_t i = 0; i < n; i += LANES) {
            const vec x = v_mul(v_load(keys + i), factor);
            const __m512i y = _mm512_cvtps_epi32(x); /* of NaN: 0 in the lower bits */
            n_fine += __builtin_popcount(is_fine(x));
            _mm256_storeu_si256((__m256i *)(void *)(words + i / 2), _mm512_cvtepi32_epi16(y));
        }
        steps[j] = step_of(units, n_fine, n);
    }
}

static float units_of_value(const float *value, int64_t n)
{
    vec largest = v_set(0.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        largest = v_larger(v_magnitude(v_load(value + i)), largest);
    }
    const float most = v_largest_of(largest);
    return most >= row_min && most <= row_max ? most_value / most : most == 0.0f ? 0.0f : NAN;
}

static void lay_values(const float *values, int n_keys, int64_t n, int32_t *words, float *steps)
{
    for (int j = 0; j < n_keys; j += 2, values += 2 * n, words += n) {
        const bool is_pair = j + 1 < n_keys;
        const float *second = is_pair ? values + n : values;
        const float units[] = {units_of_value(values, n),
                               is_pair ? units_of_value(second, n) : 0.0f};
        int n_fine[] = {0, 0};
        for (int64_t i = 0; i < n; i += LANES) {
            const vec a = v_mul(v_load(values + i), v_set(units[0]));
            const vec b = v_mul(v_load(second + i), v_set(units[1]));
            n_fine[0] += __builtin_popcount(is_fine(a));
            n_fine[1] += __builtin_popcount(is_fine(b));
            _mm512_storeu_si512(words + i, pair(a, b));
        }
        for (int k = 0; k < (is_pair ? 2 : 1); k++) {
            steps[j + k] = step_of(units[k], n_fine[k], n);
        }
    }
}

/* ---- scores ---- */

/* (Of the intrinsic, GCC 12 copies all sums to and fro.) */
TND_INLINE __m512i products(__m512i sum, __m512i a, __m512i b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

/* Scores of n_keys keys, from key j on, and n_vectors vectors of queries. Raises `largest`, if
 * there is one. */
TND_INLINE void scores_tile(const struct tnd_query_panel *panel, int j, float *largest,
                            const int n_keys, const int n_vectors)
{
    const int64_t stride = panel->words.key_stride;
    const int32_t *queries = panel->words.queries;
    const int32_t *keys = panel->words.keys + j * stride;
    __m512i sum[PANEL_TILE][PANEL_VECTORS];
    TND_UNROLL
    for (int k = 0; k < n_keys; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[k][v] = _mm512_setzero_si512();
        }
    }
    for (int64_t i = 0; i < panel->head; i += 2, queries += PANEL, keys++) {
        __m512i q[PANEL_VECTORS];
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            q[v] = _mm512_loadu_si512(queries + v * LANES);
        }
        TND_UNROLL
        for (int k = 0; k < n_keys; k++) {
            const __m512i key = _mm512_set1_epi32(keys[k * stride]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[k][v] = products(sum[k][v], key, q[v]);
            }
        }
    }
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        const vec step = v_load(panel->words.query_steps + v * LANES);
        vec most = v_set(-INFINITY);
        TND_UNROLL
        for (int k = 0; k < n_keys; k++) {
            const vec steps = v_mul(step, v_set(panel->words.key_steps[j + k]));
            const vec x = v_mul(_mm512_cvtepi32_ps(sum[k][v]), steps);
            v_store(panel->scores + (j + k) * PANEL + v * LANES, x);
            most = v_max(x, most); /* NaN does not count */
        }
        if (largest != NULL) {
            v_store(largest + v * LANES, v_max(most, v_load(largest + v * LANES)));
        }
    }
}

/* Replaces scores of keys or queries without words by scores in floats. */
TND_INLINE void scores_of_floats(const struct tnd_query_panel *panel, int j, const int n_keys,
                                 const int n_vectors)
{
    const int64_t stride = 2 * panel->words.key_stride;
    const float *queries = panel->queries;
    const float *keys = panel->keys + j * stride;
    vec sum[PANEL_TILE][PANEL_VECTORS];
    memset(sum, 0, sizeof(sum));
    for (int64_t i = 0; i < panel->head; i++, queries += PANEL, keys++) {
        TND_UNROLL
        for (int k = 0; k < n_keys; k++) {
            const vec key = v_set(keys[k * stride]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[k][v] = v_fmadd(key, v_load(queries + v * LANES), sum[k][v]);
            }
        }
    }
    TND_UNROLL
    for (int k = 0; k < n_keys; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            const vec steps = v_mul(v_load(panel->words.query_steps + v * LANES),
                                    v_set(panel->words.key_steps[j + k]));
            _mm512_mask_storeu_ps(panel->scores + (j + k) * PANEL + v * LANES,
                                  _mm512_cmp_ps_mask(steps, steps, _CMP_UNORD_Q), sum[k][v]);
        }
    }
}

static bool has_nan(const float *steps, int n)
{
    __mmask16 nan = 0;
    for (int j = 0; j < n; j += LANES) {
        const vec x = v_load_part(steps + j, n - j < LANES ? n - j : LANES);
        nan |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    }
    return nan != 0;
}

static void __attribute__((noinline))
meet_floats(const struct tnd_query_panel *panel, bool is_query, const int n_vectors)
{
    const float *steps = panel->words.key_steps;
    int j = 0;
    for (; j + PANEL_TILE <= panel->n_keys; j += PANEL_TILE) {
        if (is_query || has_nan(steps + j, PANEL_TILE)) {
            scores_of_floats(panel, j, PANEL_TILE, n_vectors);
        }
    }
    for (; j < panel->n_keys; j++) {
        if (is_query || has_nan(steps + j, 1)) {
            scores_of_floats(panel, j, 1, n_vectors);
        }
    }
}

/* The scores of a panel and the tile in hand. Keys that all queries see, as they are, raise
 * panel->largest here: *out_done from the first one on. */
TND_INLINE int scores_all(const struct tnd_query_panel *panel, int *out_done, const int n_vectors)
{
    const bool is_query = has_nan(panel->words.query_steps, n_vectors * LANES);
    const bool has_floats = is_query || has_nan(panel->words.key_steps, panel->n_keys);
    const int n_seen = panel->cap > 0.0f || has_floats ? 0 : panel->n_seen;
    int soon = 0;
    int j = 0;
    *out_done = 0;
    for (; j + PANEL_TILE <= panel->n_keys; j += PANEL_TILE) {
        const bool is_done = j + PANEL_TILE <= n_seen;
        scores_tile(panel, j, is_done ? panel->largest : NULL, PANEL_TILE, n_vectors);
        *out_done += is_done ? PANEL_TILE : 0;
        soon = bring_some(panel, soon);
    }
    for (; j < panel->n_keys; j++) {
        scores_tile(panel, j, NULL, 1, n_vectors);
    }
    if (has_floats) {
        meet_floats(panel, is_query, n_vectors);
    }
    return soon;
}

/* ---- weights ---- */

/* e^x of x <= 0, of -infinity 0, as exact as words ask for: 2^r times the power, by a polynomial
 * whose relative error is below 2.9e-6 (least squares, weighted until the errors were even; r = 0
 * gives 1). NaN passes. */
TND_INLINE vec exp_of_words(vec x)
{
    const vec power = v_mul(x, v_set(0x1.715476p+0f));
    const vec r = _mm512_reduce_ps(power, 0);
    vec p = v_set(0x1.3a02ccp-7f);
    p = v_fmadd(p, r, v_set(0x1.c9fc46p-5f));
    p = v_fmadd(p, r, v_set(0x1.ec0378p-3f));
    p = v_fmadd(p, r, v_set(0x1.62e12cp-1f));
    p = v_fmadd(p, r, v_set(1.0f));
    return _mm512_scalef_ps(p, v_sub(power, r));
}

/* Factors of a tile's sums: {panel}. */
struct factors {
    float shrinks[PANEL]; /* of the previous sums; on entry the largest previous score */
    float steps[PANEL];   /* of the tile's weights times its values */
    int floats[TND_KEYS]; /* keys whose values are floats, with weights of their own */
    int n_floats;
};

/* Rounds a vector's weights to words; their largest and their sum are known. */
TND_INLINE void round_weights(const struct tnd_query_panel *panel, int at, vec most, vec sum,
                              float *steps)
{
    const int n_keys = panel->n_keys;
    float *weights = panel->scores + at;
    /* (NaN stays: it is the second operand of v_min) */
    const vec units = v_min(v_div(v_set(most_word), most), v_div(v_set(most_weights), sum));
    const __mmask16 is_any = _mm512_cmp_ps_mask(most, v_set(1e-33f), _CMP_NLE_UQ);
    const vec factor = _mm512_maskz_mov_ps(is_any, units);
    v_store(steps, _mm512_maskz_div_ps(is_any, v_set(1.0f), units));
    for (int j = 0; j < n_keys; j += 2) {
        const vec b = j + 1 < n_keys ? v_load(weights + (j + 1) * PANEL) : v_set(0.0f);
        const __m512i words = pair(v_mul(v_load(weights + j * PANEL), factor), v_mul(b, factor));
        _mm512_storeu_si512(weights + j / 2 * PANEL, words);
    }
}

/* Lists the values of a tile that are floats, and their weights. */
TND_INLINE void list_floats(const struct tnd_query_panel *panel, const vec *shift,
                            struct factors *factors, const int n_vectors)
{
    factors->n_floats = 0;
    if (!has_nan(panel->words.value_steps, panel->n_keys)) {
        return;
    }
    for (int j = 0; j < panel->n_keys; j++) {
        float *weights = panel->words.weights + factors->n_floats * PANEL;
        if (isnan(panel->words.value_steps[j])) {
            for (int v = 0; v < n_vectors; v++) {
                const vec s = v_load(panel->scores + j * PANEL + v * LANES);
                v_store(weights + v * LANES, exp_of_words(v_sub(s, shift[v])));
            }
            factors->floats[factors->n_floats++] = j;
        }
    }
}

/* Turns scores into weights, multiplied by the steps of the values. */
TND_INLINE void weigh_all(const struct tnd_query_panel *panel, int n_done, struct factors *factors,
                          const int n_vectors)
{
    vec largest[PANEL_VECTORS], shift[PANEL_VECTORS], weight[PANEL_VECTORS];
    vec most[PANEL_VECTORS], sum[PANEL_VECTORS];
    const int n_keys = panel->n_keys;
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        largest[v] = v_load(panel->largest + v * LANES);
    }
    mask_all(panel, n_done, largest, n_vectors);
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        /* nothing seen yet: -infinity less 0, not less itself */
        shift[v] = v_max(largest[v], v_set(-FLT_MAX));
        weight[v] = most[v] = sum[v] = v_set(0.0f);
    }
    list_floats(panel, shift, factors, n_vectors);
    for (int j = 0; j < n_keys; j++) {
        const vec nan_or_step = v_set(panel->words.value_steps[j]);
        const vec step = _mm512_maskz_mov_ps(
            _mm512_cmp_ps_mask(nan_or_step, nan_or_step, _CMP_ORD_Q), nan_or_step);
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            float *s = panel->scores + j * PANEL + v * LANES;
            const vec x = exp_of_words(v_sub(v_load(s), shift[v]));
            const vec y = v_mul(x, step);
            weight[v] = v_add(weight[v], x);
            sum[v] = v_add(sum[v], y);
            most[v] = v_max(y, most[v]);
            v_store(s, y);
        }
    }
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        const int at = v * LANES;
        const vec shrink = tnd_vec_exp_below(v_sub(v_load(factors->shrinks + at), shift[v]));
        v_store(panel->largest + at, largest[v]);
        v_store(factors->shrinks + at, shrink);
        v_store(panel->weight + at, v_fmadd(v_load(panel->weight + at), shrink, weight[v]));
        round_weights(panel, at, most[v], sum[v], factors->steps + at);
    }
}

/* ---- sums ---- */

/* Weighted sums of the values, for n_rows queries from r on and n_vectors vectors of the values
 * from i on. */
TND_INLINE void sums_tile(const struct tnd_query_panel *panel, int r, int n_keys, int64_t i,
                          const struct factors *factors, const int n_rows, const int n_vectors)
{
    __m512i sum[PANEL_ROWS][SUM_VECTORS];
    float *y = panel->sums + r * panel->value_stride + i;
    const int32_t *values = panel->words.values + i;
    const float *weights = panel->scores + r;
    TND_UNROLL
    for (int k = 0; k < n_rows; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[k][v] = _mm512_setzero_si512();
        }
    }
    for (int j = 0; j < n_keys; j += 2, values += panel->value_stride, weights += PANEL) {
        __m512i w[PANEL_ROWS];
        TND_UNROLL
        for (int k = 0; k < n_rows; k++) {
            w[k] = _mm512_castps_si512(v_set(weights[k]));
        }
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            const __m512i x = _mm512_loadu_si512(values + v * LANES);
            TND_UNROLL
            for (int k = 0; k < n_rows; k++) {
                sum[k][v] = products(sum[k][v], w[k], x);
            }
        }
    }
    TND_UNROLL
    for (int k = 0; k < n_rows; k++) {
        const vec shrink = v_set(factors->shrinks[r + k]);
        const vec step = v_set(factors->steps[r + k]);
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            float *to = y + k * panel->value_stride + v * LANES;
            const vec former = panel->is_first ? v_set(0.0f) : v_mul(v_load(to), shrink);
            v_store(to, v_fmadd(_mm512_cvtepi32_ps(sum[k][v]), step, former));
        }
    }
}

/* Adds values that have no words to the same sums. (A weight of 0 times infinity is nothing.) */
TND_INLINE void sums_of_floats(const struct tnd_query_panel *panel, int r, int n_keys, int64_t i,
                               const struct factors *factors, const int n_rows, const int n_vectors)
{
    vec sum[PANEL_ROWS][SUM_VECTORS];
    float *y = panel->sums + r * panel->value_stride + i;
    TND_UNROLL
    for (int k = 0; k < n_rows; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[k][v] = v_load(y + k * panel->value_stride + v * LANES);
        }
    }
    for (int f = 0; f < factors->n_floats && factors->floats[f] < n_keys; f++) {
        const float *value = panel->values + factors->floats[f] * panel->value_stride + i;
        TND_UNROLL
        for (int k = 0; k < n_rows; k++) {
            const vec w = v_set(panel->words.weights[f * PANEL + r + k]);
            const __mmask16 is_any = _mm512_cmp_ps_mask(w, v_set(0.0f), _CMP_NEQ_UQ);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[k][v] = _mm512_mask3_fmadd_ps(w, v_load(value + v * LANES), sum[k][v], is_any);
            }
        }
    }
    TND_UNROLL
    for (int k = 0; k < n_rows; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            v_store(y + k * panel->value_stride + v * LANES, sum[k][v]);
        }
    }
}

TND_INLINE int sums_rows(const struct tnd_query_panel *panel, int r, const struct factors *factors,
                         int soon, const int n_rows)
{
    const int n_keys = keys_of_rows(panel, r, n_rows);
    int64_t i = 0;
    for (; i + SUM_VECTORS * LANES <= panel->value; i += SUM_VECTORS * LANES) {
        sums_tile(panel, r, n_keys, i, factors, n_rows, SUM_VECTORS);
        soon = bring_some(panel, soon);
    }
    for (; i < panel->value; i += LANES) {
        sums_tile(panel, r, n_keys, i, factors, n_rows, 1);
    }
    for (i = 0; factors->n_floats > 0 && i + SUM_VECTORS * LANES <= panel->value;
         i += SUM_VECTORS * LANES) {
        sums_of_floats(panel, r, n_keys, i, factors, n_rows, SUM_VECTORS);
    }
    for (; factors->n_floats > 0 && i < panel->value; i += LANES) {
        sums_of_floats(panel, r, n_keys, i, factors, n_rows, 1);
    }
    return soon;
}

static void sums_all(const struct tnd_query_panel *panel, const struct factors *factors, int soon)
{
    int r = 0;
    for (; r + PANEL_ROWS <= panel->n_queries; r += PANEL_ROWS) {
        soon = sums_rows(panel, r, factors, soon, PANEL_ROWS);
    }
    for (; r < panel->n_queries; r++) {
        soon = sums_rows(panel, r, factors, soon, 1);
    }
}

TND_INLINE void attend(const struct tnd_query_panel *panel, const int n_vectors)
{
    struct factors factors;
    int n_done;
    memcpy(factors.shrinks, panel->largest, sizeof(factors.shrinks));
    const int soon = scores_all(panel, &n_done, n_vectors);
    weigh_all(panel, n_done, &factors, n_vectors);
    sums_all(panel, &factors, soon);
}

static void attend_words(const struct tnd_query_panel *panel)
{
    const int n_vectors = (panel->n_queries + LANES - 1) / LANES;
    if (n_vectors == PANEL_VECTORS) {
        attend(panel, PANEL_VECTORS);
    } else if (n_vectors == 2) {
        attend(panel, 2);
    } else {
        attend(panel, 1);
    }
}

void tnd_fill_attention_vnni(struct tnd_cpu_kernels *out)
{
    out->attention.words =
        (struct tnd_attention_words){lay_queries, lay_keys, lay_values, attend_words};
}
#endif
