/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for AVX2. _mm256_maddubs_epi16 multiplies unsigned by signed bytes and
 * adds pairs with saturation, but 255 * 127 * 2 does not fit into 16 bits. So 128 is subtracted
 * from x, which is split into magnitude and sign, and for a negative x the weight is inverted: -w -
 * 1 instead of -w, which is a byte for every w. Sums of two then fit: -128 * 128 * 2 to 128 * 127 *
 * 2. What is missing, the magnitude of each negative x, is added once for all filters. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "backends/cpu/kernels/int8_lanes.h"

enum { ROWS = 16, X_LESS = 128, MOST_AT_ONCE = 4, MOST_VECTORS = 4 };

/* ---- products ---- */

/* The sum of the magnitudes of all negative x - 128. */
TND_INLINE int32_t negative_sizes(const uint8_t *x, int64_t n)
{
    __m256i sum = _mm256_setzero_si256();
    int64_t k = 0;
    for (; k + 32 <= n; k += 32) {
        const __m256i size =
            _mm256_subs_epu8(_mm256_set1_epi8(-X_LESS), _mm256_loadu_si256((const void *)(x + k)));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(size, _mm256_setzero_si256()));
    }
    int32_t result = _mm256_extract_epi32(sum, 0) + _mm256_extract_epi32(sum, 2) +
                     _mm256_extract_epi32(sum, 4) + _mm256_extract_epi32(sum, 6);
    for (; k < n; k++) {
        result += x[k] < X_LESS ? X_LESS - x[k] : 0;
    }
    return result;
}

/* 4 bytes of a row in all lanes, minus 128 */
TND_INLINE __m256i four_bytes(const uint8_t *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm256_xor_si256(_mm256_set1_epi32(value), _mm256_set1_epi8(-X_LESS));
}

/* Multiplies `rows` rows from `row` on by `panels` panels. */
TND_INLINE void multiply_rows(const struct tnd_int8_tile *tile, int row, const int rows,
                              const int panels)
{
    const __m256i one = _mm256_set1_epi16(1);
    const uint8_t *first = tile->x + row * tile->x_stride;
    const int8_t *w = tile->w;
    __m256i sum[MOST_AT_ONCE][MOST_VECTORS];
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[r][0] = _mm256_set1_epi32(negative_sizes(first + r * tile->x_stride, tile->k));
        TND_UNROLL
        for (int v = 1; v < 2 * panels; v++) {
            sum[r][v] = sum[r][0];
        }
    }
    for (int64_t k = 0; k < tile->k; k += 4, w += 4 * PANEL) {
        __m256i size[MOST_AT_ONCE], is_negative[MOST_AT_ONCE];
        TND_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i x = four_bytes(first + r * tile->x_stride + k);
            size[r] = _mm256_abs_epi8(x);
            is_negative[r] = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
        }
        TND_UNROLL
        for (int v = 0; v < 2 * panels; v++) {
            const __m256i bytes =
                _mm256_loadu_si256((const void *)(w + v / 2 * tile->w_panel + v % 2 * 32));
            TND_UNROLL
            for (int r = 0; r < rows; r++) {
                const __m256i pairs =
                    _mm256_maddubs_epi16(size[r], _mm256_xor_si256(bytes, is_negative[r]));
                sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(pairs, one));
            }
        }
    }
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        TND_UNROLL
        for (int v = 0; v < 2 * panels; v++) {
            _mm256_storeu_si256((void *)(tile->sums + (row + r) * TILE + 8 * v), sum[r][v]);
        }
    }
}

TND_INLINE void multiply_tile(const struct tnd_int8_tile *tile, const int panels)
{
    int row = 0;
    for (; panels == 1 && row + 4 <= tile->n_rows; row += 4) {
        multiply_rows(tile, row, 4, panels);
    }
    for (; row + 2 <= tile->n_rows; row += 2) {
        multiply_rows(tile, row, 2, panels);
    }
    if (row < tile->n_rows) {
        multiply_rows(tile, row, 1, panels);
    }
}

static void multiply(const struct tnd_int8_tile *tile)
{
    if (tile->n_panels > 1) {
        multiply_tile(tile, 2);
    } else {
        multiply_tile(tile, 1);
    }
}

/* ---- finishing sums ---- */

/* What turns the sums of 8 filters into rounded results. */
struct ending {
    __m256i base, zero_w;
    __m256 scale, offset, low, high;
};

TND_INLINE struct ending ending_of(const struct tnd_int8_finish *finish, int first)
{
    return (struct ending){_mm256_loadu_si256((const void *)(finish->base + first)),
                           _mm256_loadu_si256((const void *)(finish->zero_w + first)),
                           _mm256_loadu_ps(finish->scale + first),
                           _mm256_loadu_ps(finish->offset + first),
                           _mm256_set1_ps(finish->conv->low),
                           _mm256_set1_ps(finish->conv->high)};
}

/* Bit-identical to int8_lanes.h: product and sum are not fused, and NaN becomes `low`. */
TND_INLINE __m256i rounded_8(const struct ending *e, const int32_t *sums, const int32_t *x_sum)
{
    __m256i whole = _mm256_add_epi32(_mm256_loadu_si256((const void *)sums), e->base);
    if (x_sum != NULL) {
        whole = _mm256_sub_epi32(whole, _mm256_mullo_epi32(e->zero_w, _mm256_set1_epi32(*x_sum)));
    }
    const __m256 y = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(whole), e->scale), e->offset);
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(y, e->low), e->high));
}

/* Finishes all rows of the panel from filter `first` on, to bytes. */
TND_INLINE void finish_bytes(const struct tnd_int8_finish *finish, int first, const bool is_signed,
                             const bool has_x_sums)
{
    const struct ending a = ending_of(finish, first);
    const struct ending b = ending_of(finish, first + 8);
    const __m256i zero = _mm256_set1_epi16((short)finish->conv->zero_y);
    const int left = finish->n_filters - first;
    for (int row = 0; row < finish->n_rows; row++) {
        const int32_t *sums = finish->sums + row * finish->sums_stride + first;
        const int32_t *x_sum = has_x_sums ? finish->x_sums + row : NULL;
        uint8_t *y = (uint8_t *)finish->y + row * finish->y_stride + first;
        const __m256i words = _mm256_permute4x64_epi64(
            _mm256_packs_epi32(rounded_8(&a, sums, x_sum), rounded_8(&b, sums + 8, x_sum)), 0xd8);
        const __m256i moved = _mm256_add_epi16(words, zero);
        const __m128i low = _mm256_castsi256_si128(moved);
        const __m128i high = _mm256_extracti128_si256(moved, 1);
        const __m128i bytes = is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
        if (left >= PANEL) {
            _mm_storeu_si128((void *)y, bytes);
        } else {
            uint8_t part[PANEL];
            _mm_storeu_si128((void *)part, bytes);
            memcpy(y, part, (size_t)left);
        }
    }
}

static void finish_rows(const struct tnd_int8_finish *finish)
{
    if (finish->conv->result < TND_INT8_S8) {
        int8_finish(finish);
        return;
    }
    const bool is_signed = finish->conv->result == TND_INT8_S8;
    for (int first = 0; first < finish->n_filters; first += PANEL) {
        if (finish->x_sums != NULL) {
            finish_bytes(finish, first, is_signed, true);
        } else {
            finish_bytes(finish, first, is_signed, false);
        }
    }
}

/* ---- depthwise ---- */

enum { MOST_PAIRS = TND_INT8_TAPS / 2 };

/* 16 channels of two taps as pairs: channels 0 to 3 and 8 to 11, then the others. */
struct pairs {
    __m256i low, high;
};

TND_INLINE struct pairs pairs_of(__m256i first, __m256i second)
{
    return (struct pairs){_mm256_unpacklo_epi16(first, second),
                          _mm256_unpackhi_epi16(first, second)};
}

/* Weights of a tap as 16-bit integers; zeros at `end`. */
TND_INLINE __m256i tap_weights(const float *w, const float *end)
{
    if (w >= end) {
        return _mm256_setzero_si256();
    }
    const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(_mm256_loadu_ps(w)),
                                              _mm256_cvtps_epi32(_mm256_loadu_ps(w + 8)));
    return _mm256_permute4x64_epi64(packed, 0xd8);
}

TND_INLINE __m256i tap_bytes(const uint8_t *x, int n, __m128i flip)
{
    uint8_t part[PANEL] = {0};
    if (n < PANEL) {
        memcpy(part, x, (size_t)n);
        x = part;
    }
    return _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_loadu_si128((const void *)x), flip));
}

/* One position of `n` channels of a panel. Exact: 255 * 255 * TND_INT8_TAPS fits into 32 bits. */
TND_INLINE void depth_place(const struct tnd_int8_depth *depth, const struct pairs *w, int n_places,
                            int place, int first, int n, int32_t *out)
{
    const __m128i flip = _mm_set1_epi8((char)depth->flip);
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (int64_t tap = 0; tap < depth->n_taps; tap += 2, w++) {
        const uint8_t *const *rows = depth->rows + tap * n_places + place;
        const int64_t at = depth->channel + first;
        const __m256i x0 = tap_bytes(rows[0] + at, n, flip);
        const __m256i x1 = tap + 1 < depth->n_taps ? tap_bytes(rows[n_places] + at, n, flip) : x0;
        const struct pairs x = pairs_of(x0, x1);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(x.low, w->low));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(x.high, w->high));
    }
    _mm256_storeu_si256((void *)out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((void *)(out + 8), _mm256_permute2x128_si256(low, high, 0x31));
}

static void depth(const struct tnd_int8_depth *depth, const struct tnd_int8_finish *finish)
{
    int32_t sums[TND_INT8_PLACES * TND_INT8_DEPTH];
    struct tnd_int8_finish with_sums = *finish;
    with_sums.sums = sums;
    with_sums.sums_stride = TND_INT8_DEPTH;
    for (int first = 0; first < finish->n_filters; first += PANEL) {
        const int n = finish->n_filters - first < PANEL ? finish->n_filters - first : PANEL;
        const float *w = depth->w + first * depth->n_taps;
        const float *end = w + depth->n_taps * PANEL;
        struct pairs pairs[MOST_PAIRS];
        for (int i = 0; 2 * i < depth->n_taps; i++, w += 2 * PANEL) {
            pairs[i] = pairs_of(tap_weights(w, end), tap_weights(w + PANEL, end));
        }
        for (int place = 0; place < finish->n_rows; place++) {
            int32_t *out = sums + place * TND_INT8_DEPTH + first;
            if (n == PANEL) {
                depth_place(depth, pairs, finish->n_rows, place, first, PANEL, out);
            } else {
                depth_place(depth, pairs, finish->n_rows, place, first, n, out);
            }
        }
    }
    finish_rows(&with_sums);
}

void tnd_fill_int8_avx2(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(ROWS, multiply);
    out->int8.x_less = X_LESS;
    out->int8.finish = finish_rows;
    out->int8.depth = depth;
}
#else
typedef int tnd_no_int8_avx2;
#endif
