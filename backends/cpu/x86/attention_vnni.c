/* SPDX-License-Identifier: MIT
 * Attention of many queries in words of 16 bits for AVX-512 with VNNI, whose VPDPWSSD adds the
 * products of two pairs in each lane, twice as many as a multiply-add of floats. A row, of a query,
 * a key or a value, is a step (a float) times words. No sum of products can leave 32 bits: words of
 * queries and keys are as large as their norms (Cauchy & Schwarz) permit, weights as large as their
 * sum over a tile and the largest word of a value permit. Sums of words are exact, so they have the
 * same bits in any order. */
#define TND_VEC_FUSED
#include "backends/cpu/kernels/kernels.h"

#if defined(__AVX512VNNI__)
#include <float.h>

#include "backends/cpu/x86/lanes512.h"

enum { PANEL_VECTORS = 3, PANEL_TILE = 8 }; /* 24 sums, 3 vectors, 1 broadcast of 32 registers */
#include "backends/cpu/kernels/attention_seen_lanes.h"

/* Of words: 46000^2 and 260000 * 8191 are below 2^31, with room for what rounding adds. */
static const float most_word = 32767.0f, most_norm = 46000.0f, most_weights = 260000.0f;
static const float most_value = 8191.0f;
static const float least = 1e-30f; /* smaller rows count as 0, so that no step is subnormal */

/* ---- rows into words ---- */

TND_INLINE vec v_magnitude(vec x)
{
    return _mm512_abs_ps(x);
}

/* As v_max, but NaN stays. */
TND_INLINE vec v_max_or_nan(vec x, vec y)
{
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_blend_ps(is_nan, v_max(x, y), x);
}

/* Words of a and b side by side in each lane, a's in the lower bits. */
TND_INLINE __m512i pair(vec a, vec b)
{
    const __m512i low = _mm512_cvtps_epi32(a);
    const __m512i high = _mm512_slli_epi32(_mm512_cvtps_epi32(b), 16);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, low, high);
}

/* Units of a row's numbers a word, from its largest magnitude, and the sum of squares of its
 * numbers over that. */
static float words_of_unit(float largest, float squares)
{
    const float by_norm = most_norm / sqrtf(squares);
    return (by_norm < most_word ? by_norm : most_word) / largest;
}

static void lay_queries(const float *queries, int64_t head, int32_t *words, float *steps)
{
    for (int r = 0; r < PANEL; r += LANES) {
        vec largest = v_set(0.0f), squares = v_set(0.0f), factor;
        for (int64_t i = 0; i < head; i++) {
            largest = v_max_or_nan(v_magnitude(v_load(queries + i * PANEL + r)), largest);
        }
        float most[LANES], sums[LANES], units[LANES];
        v_store(most, largest);
        const vec inverse = v_div(v_set(1.0f), v_max(largest, v_set(least)));
        for (int64_t i = 0; i < head; i++) {
            const vec x = v_mul(v_load(queries + i * PANEL + r), inverse);
            squares = v_fmadd(x, x, squares);
        }
        v_store(sums, squares);
        for (int l = 0; l < LANES; l++) {
            units[l] =
                most[l] > least && most[l] <= FLT_MAX ? words_of_unit(most[l], sums[l]) : 0.0f;
            steps[r + l] = units[l] > 0.0f ? 1.0f / units[l] : most[l] <= FLT_MAX ? 0.0f : NAN;
        }
        factor = v_load(units);
        for (int64_t i = 0; i < head; i += 2) {
            const vec a = v_mul(v_load(queries + i * PANEL + r), factor);
            const vec b =
                i + 1 < head ? v_mul(v_load(queries + (i + 1) * PANEL + r), factor) : v_set(0.0f);
            _mm512_storeu_si512(words + i / 2 * PANEL + r, pair(a, b));
        }
    }
}

static float largest_of(const float *row, int64_t n)
{
    vec largest = v_set(0.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        largest = v_max_or_nan(v_magnitude(v_load(row + i)), largest);
    }
    const __mmask16 is_nan = _mm512_cmp_ps_mask(largest, largest, _CMP_UNORD_Q);
    return is_nan != 0 ? NAN : v_largest(largest);
}

static void lay_keys(const float *keys, int n_keys, int64_t n, int32_t *words, float *steps)
{
    for (int j = 0; j < n_keys; j++, keys += n, words += n / 2) {
        const float most = largest_of(keys, n);
        if (!(most > least && most <= FLT_MAX)) {
            memset(words, 0, (size_t)n * 2);
            steps[j] = most <= least ? 0.0f : NAN;
            continue;
        }
        const vec inverse = v_set(1.0f / most);
        vec squares = v_set(0.0f);
        for (int64_t i = 0; i < n; i += LANES) {
            const vec x = v_mul(v_load(keys + i), inverse);
            squares = v_fmadd(x, x, squares);
        }
        const float units = words_of_unit(most, (float)v_sum(squares));
        const vec factor = v_set(units);
        steps[j] = 1.0f / units;
        for (int64_t i = 0; i < n; i += LANES) {
            const __m512i x = _mm512_cvtps_epi32(v_mul(v_load(keys + i), factor));
            _mm256_storeu_si256((__m256i *)(void *)(words + i / 2), _mm512_cvtepi32_epi16(x));
        }
    }
}

static void lay_values(const float *values, int n_keys, int64_t n, int32_t *words, float *steps,
                       float *key_steps)
{
    float units[2];
    for (int j = 0; j < n_keys; j += 2, values += 2 * n, words += n) {
        for (int k = 0; k < 2; k++) {
            const float most = j + k < n_keys ? largest_of(values + k * n, n) : 0.0f;
            const bool is_fine = most > least && most <= FLT_MAX;
            units[k] = is_fine ? most_value / most : 0.0f;
            if (j + k < n_keys) {
                steps[j + k] = is_fine ? 1.0f / units[k] : 0.0f;
                key_steps[j + k] = most <= FLT_MAX ? key_steps[j + k] : NAN;
            }
        }
        const float *second = units[1] > 0.0f ? values + n : values;
        for (int64_t i = 0; i < n; i += LANES) {
            const vec a = v_mul(v_load(values + i), v_set(units[0]));
            const vec b = v_mul(v_load(second + i), v_set(units[1]));
            _mm512_storeu_si512(words + i, pair(a, b));
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

/* The scores of a panel and the tile in hand. Keys that all queries see, as they are, raise
 * panel->largest here: *out_done from the first one on. */
TND_INLINE int scores_all(const struct tnd_query_panel *panel, int *out_done, const int n_vectors)
{
    const int n_seen = panel->cap > 0.0f ? 0 : panel->n_seen;
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
    return soon;
}

/* ---- weights ---- */

/* What the sums of a tile are made of: {panel}. */
struct factors {
    float shrinks[PANEL]; /* of the sums so far; at first the largest score so far */
    float steps[PANEL];   /* of the tile's weights times its values */
};

/* Words in place of a vector's weights, the largest and the sum of which are known. */
TND_INLINE void round_weights(const struct tnd_query_panel *panel, int at, vec most, vec sum,
                              float *steps)
{
    const int n_keys = panel->n_keys;
    float *weights = panel->scores + at;
    /* (NaN stays: it is the second operand of v_min) */
    const vec units = v_min(v_div(v_set(most_word), most), v_div(v_set(most_weights), sum));
    const __mmask16 is_any = _mm512_cmp_ps_mask(most, v_set(least / most_value), _CMP_NLE_UQ);
    const vec factor = _mm512_maskz_mov_ps(is_any, units);
    v_store(steps, _mm512_maskz_div_ps(is_any, v_set(1.0f), units));
    for (int j = 0; j < n_keys; j += 2) {
        const vec b = j + 1 < n_keys ? v_load(weights + (j + 1) * PANEL) : v_set(0.0f);
        const __m512i words = pair(v_mul(v_load(weights + j * PANEL), factor), v_mul(b, factor));
        _mm512_storeu_si512(weights + j / 2 * PANEL, words);
    }
}

/* Makes weights of the scores, times the steps of the values. */
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
        /* where nothing is seen yet: -infinity less 0, not less itself */
        shift[v] = v_max(largest[v], v_set(-FLT_MAX));
        weight[v] = most[v] = sum[v] = v_set(0.0f);
    }
    for (int j = 0; j < n_keys; j++) {
        const vec step = v_set(panel->words.value_steps[j]);
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            float *s = panel->scores + j * PANEL + v * LANES;
            const vec x = tnd_vec_exp_below(v_sub(v_load(s), shift[v]));
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
