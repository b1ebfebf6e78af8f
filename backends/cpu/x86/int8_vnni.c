/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for AVX-512 with VNNI: a tile is 12 rows by two panels. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "backends/cpu/kernels/int8_lanes.h"

enum { ROWS = 12 };

TND_INLINE __m512i four_bytes(const uint8_t *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm512_set1_epi32(value);
}

TND_INLINE void multiply_rows(const struct tnd_int8_tile *tile, const int rows, const int panels)
{
    __m512i sum[ROWS][TND_INT8_PANELS];
    /* four rows per pointer: base + {0, 1, 2, 3} strides */
    const uint8_t *x[3] = {tile->x, tile->x + 4 * tile->x_stride, tile->x + 8 * tile->x_stride};
    const int64_t stride = tile->x_stride;
    const int8_t *w = tile->w;
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    }
    for (int64_t k = 0; k < tile->k; k += 4, w += 4 * PANEL) {
        const __m512i w0 = _mm512_loadu_si512((const void *)w);
        const __m512i w1 = panels > 1 ? _mm512_loadu_si512((const void *)(w + tile->w_panel)) : w0;
        TND_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m512i v = four_bytes(x[r / 4] + (r % 4) * stride + k);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], v, w0);
            if (panels > 1) {
                sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], v, w1);
            }
        }
    }
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_si512((void *)(tile->sums + r * TILE), sum[r][0]);
        if (panels > 1) {
            _mm512_storeu_si512((void *)(tile->sums + r * TILE + PANEL), sum[r][1]);
        }
    }
}

static void multiply(const struct tnd_int8_tile *tile)
{
    switch (tile->n_rows * 2 + (tile->n_panels > 1)) {
#define ROWS_CASE(n)                                                                               \
    case (n)*2:                                                                                    \
        multiply_rows(tile, n, 1);                                                                 \
        break;                                                                                     \
    case (n)*2 + 1:                                                                                \
        multiply_rows(tile, n, 2);                                                                 \
        break;
        ROWS_CASE(1)
        ROWS_CASE(2)
        ROWS_CASE(3)
        ROWS_CASE(4)
        ROWS_CASE(5)
        ROWS_CASE(6)
        ROWS_CASE(7)
        ROWS_CASE(8)
        ROWS_CASE(9)
        ROWS_CASE(10)
        ROWS_CASE(11)
        ROWS_CASE(12)
    default:
        break;
    }
}

/* ---- finishing sums ---- */

/* How four vectors of integers become bytes: zero point and bounds; saturation alone may do for
 * bounds. */
struct rounding {
    __m512i zero, low, high, flip;
};

TND_INLINE struct rounding rounding_of(bool is_signed, int32_t zero, int32_t low, int32_t high)
{
    const int flip = is_signed ? 128 : 0; /* (signed bytes are shifted to become unsigned) */
    return (struct rounding){
        _mm512_set1_epi16((short)(zero + flip)), _mm512_set1_epi8((char)(low + zero + flip)),
        _mm512_set1_epi8((char)(high + zero + flip)), _mm512_set1_epi8((char)flip)};
}

/* 128-bit lane i gets four bytes of lane i of each vector. */
TND_INLINE __m512i as_bytes(const struct rounding *rounding, const __m512i whole[4])
{
    const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), rounding->zero);
    const __m512i second =
        _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), rounding->zero);
    __m512i bytes = _mm512_packus_epi16(first, second);
    bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, rounding->low), rounding->high);
    return _mm512_xor_si512(bytes, rounding->flip);
}

/* Moves the bytes of vector i to 128-bit lane i. */
TND_INLINE __m512i by_vector(__m512i bytes)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

TND_INLINE struct rounding rounding_for(const struct tnd_conv_int8 *conv)
{
    return rounding_of(conv->result == TND_INT8_S8, conv->zero_y,
                       _mm_cvtss_si32(_mm_set_ss(conv->low)),
                       _mm_cvtss_si32(_mm_set_ss(conv->high)));
}

/* Bit-identical to int8_lanes.h: product and sum are not fused. */
TND_INLINE __m512 scaled_16(__m512i whole, __m512 scale, __m512 offset)
{
    return _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(whole), scale), offset);
}

/* Bounded first: values too large for an integer would become the smallest one. */
TND_INLINE __m512i rounded_16(__m512 value, __m512 high)
{
    return _mm512_cvt_roundps_epi32(_mm512_min_ps(value, high),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TND_INLINE __m512i whole_16(const struct tnd_int8_finish *finish, int row, int first)
{
    const int32_t *sums = finish->sums + row * finish->sums_stride + first;
    __m512i whole = _mm512_add_epi32(_mm512_loadu_si512((const void *)sums),
                                     _mm512_loadu_si512((const void *)(finish->base + first)));
    if (finish->x_sums != NULL) {
        const __m512i zero = _mm512_loadu_si512((const void *)(finish->zero_w + first));
        whole = _mm512_sub_epi32(whole,
                                 _mm512_mullo_epi32(zero, _mm512_set1_epi32(finish->x_sums[row])));
    }
    return whole;
}

TND_INLINE __mmask16 panel_mask(int left)
{
    return left >= PANEL ? 0xffff : (__mmask16)((1u << left) - 1);
}

/* Finishes 32-bit results. */
static void finish_words(const struct tnd_int8_finish *finish)
{
    const struct tnd_conv_int8 *conv = finish->conv;
    for (int row = 0; row < finish->n_rows; row++) {
        for (int first = 0; first < finish->n_filters; first += PANEL) {
            const __mmask16 mask = panel_mask(finish->n_filters - first);
            char *y = (char *)finish->y + (row * finish->y_stride + first) * 4;
            const __m512i whole = whole_16(finish, row, first);
            if (conv->result == TND_INT8_I32) {
                _mm512_mask_storeu_epi32(y, mask, whole);
                continue;
            }
            __m512 value = scaled_16(whole, _mm512_loadu_ps(finish->scale + first),
                                     _mm512_loadu_ps(finish->offset + first));
            value = _mm512_max_ps(value, _mm512_set1_ps(conv->low));
            _mm512_mask_storeu_ps(y, mask, _mm512_min_ps(value, _mm512_set1_ps(conv->high)));
        }
    }
}

/* Finishes bytes of `n` rows of a panel, at most four. */
TND_INLINE void finish_four(const struct tnd_int8_finish *finish, const struct rounding *rounding,
                            __m512 high, int row, int first, const int n, __mmask16 mask)
{
    const __m512 scale = _mm512_loadu_ps(finish->scale + first);
    const __m512 offset = _mm512_loadu_ps(finish->offset + first);
    uint8_t *y = (uint8_t *)finish->y + row * finish->y_stride + first;
    __m512i whole[4];
    TND_UNROLL
    for (int r = 0; r < 4; r++) {
        whole[r] =
            r < n ? rounded_16(scaled_16(whole_16(finish, row + r, first), scale, offset), high)
                  : whole[0];
    }
    const __m512i bytes = by_vector(as_bytes(rounding, whole));
    TND_UNROLL
    for (int r = 0; r < n; r++) {
        const __m128i one = r == 0   ? _mm512_castsi512_si128(bytes)
                            : r == 1 ? _mm512_extracti32x4_epi32(bytes, 1)
                            : r == 2 ? _mm512_extracti32x4_epi32(bytes, 2)
                                     : _mm512_extracti32x4_epi32(bytes, 3);
        if (mask == 0xffff) {
            _mm_storeu_si128((void *)(y + r * finish->y_stride), one);
        } else {
            _mm_mask_storeu_epi8(y + r * finish->y_stride, mask, one);
        }
    }
}

static void finish_bytes(const struct tnd_int8_finish *finish)
{
    const struct rounding rounding = rounding_for(finish->conv);
    const __m512 high = _mm512_set1_ps(finish->conv->high);
    for (int first = 0; first < finish->n_filters; first += PANEL) {
        const __mmask16 mask = panel_mask(finish->n_filters - first);
        int row = 0;
        for (; row + 4 <= finish->n_rows; row += 4) {
            finish_four(finish, &rounding, high, row, first, 4, mask);
        }
        for (; row < finish->n_rows; row++) {
            finish_four(finish, &rounding, high, row, first, 1, mask);
        }
    }
}

static void finish_rows(const struct tnd_int8_finish *finish)
{
    if (finish->conv->result >= TND_INT8_S8) {
        finish_bytes(finish);
    } else {
        finish_words(finish);
    }
}

/* ---- depthwise ---- */

enum { MOST_GROUPS = TND_INT8_TAPS / 4 };

/* Interleaves bytes of four taps by channel: vector j holds channels 16 i + 4 j .. + 3 in its
 * 128-bit lane i. */
TND_INLINE void interleave(const __m512i x[4], __m512i out[4])
{
    const __m512i low01 = _mm512_unpacklo_epi8(x[0], x[1]);
    const __m512i high01 = _mm512_unpackhi_epi8(x[0], x[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(x[2], x[3]);
    const __m512i high23 = _mm512_unpackhi_epi8(x[2], x[3]);
    out[0] = _mm512_unpacklo_epi16(low01, low23);
    out[1] = _mm512_unpackhi_epi16(low01, low23);
    out[2] = _mm512_unpacklo_epi16(high01, high23);
    out[3] = _mm512_unpackhi_epi16(high01, high23);
}

/* Positions that share a vector of bytes if they have few panels of channels. */
TND_INLINE int sharing_places(int n_panels)
{
    return n_panels == 1 ? 4 : n_panels == 2 ? 2 : 1;
}

/* Weights of a group of taps in the same order, for all positions that share a vector; missing
 * panels are zeros. */
TND_INLINE void arrange_weights(const int8_t *w, int64_t panel, int n_panels, int sharing,
                                __m512i out[4])
{
    _Alignas(64) int8_t bytes[4][64] = {{0}};
    for (int i = 0; i < n_panels * sharing; i++) {
        for (int j = 0; j < 4; j++) {
            memcpy(bytes[j] + 16 * i, w + i % n_panels * panel + 16 * j, 16);
        }
    }
    for (int j = 0; j < 4; j++) {
        out[j] = _mm512_load_si512((const void *)bytes[j]);
    }
}

/* Stores sums in the order of channels. */
TND_INLINE void store_channels(const __m512i sum[4], int32_t *out)
{
    const __m512i a = _mm512_shuffle_i32x4(sum[0], sum[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(sum[0], sum[1], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(sum[2], sum[3], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(sum[2], sum[3], 0xee);
    _mm512_storeu_si512((void *)out, _mm512_shuffle_i32x4(a, c, 0x88));
    _mm512_storeu_si512((void *)(out + 16), _mm512_shuffle_i32x4(a, c, 0xdd));
    _mm512_storeu_si512((void *)(out + 32), _mm512_shuffle_i32x4(b, d, 0x88));
    _mm512_storeu_si512((void *)(out + 48), _mm512_shuffle_i32x4(b, d, 0xdd));
}

/* One number per channel, in the same order; missing panels are zeros. */
TND_INLINE void arrange_numbers(const void *numbers, int n_panels, int sharing, __m512i out[4])
{
    _Alignas(64) int32_t words[4][16] = {{0}};
    for (int i = 0; i < n_panels * sharing; i++) {
        for (int j = 0; j < 4; j++) {
            memcpy(words[j] + 4 * i, (const int32_t *)numbers + i % n_panels * 16 + 4 * j, 16);
        }
    }
    for (int j = 0; j < 4; j++) {
        out[j] = _mm512_load_si512((const void *)words[j]);
    }
}

/* Positions from `first` on that share a vector; the last one is repeated. */
struct sharing {
    int n_places, first;
    __mmask64 mask; /* channels of a position */
};

TND_INLINE const uint8_t *tap_row(const struct tnd_int8_depth *depth, const struct sharing *at,
                                  int64_t tap, int i)
{
    const int place = at->first + i < at->n_places ? at->first + i : at->n_places - 1;
    return depth->rows[tap * at->n_places + place] + depth->channel;
}

/* Loads tap `tap` of `n` positions as unsigned bytes. */
TND_INLINE __m512i load_tap(const struct tnd_int8_depth *depth, const struct sharing *at,
                            int64_t tap, const int n)
{
    __m512i x;
    if (n == 1) {
        x = _mm512_maskz_loadu_epi8(at->mask, tap_row(depth, at, tap, 0));
    } else if (n == 2) {
        const __mmask32 mask = (__mmask32)at->mask;
        x = _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(mask, tap_row(depth, at, tap, 0))),
            _mm256_maskz_loadu_epi8(mask, tap_row(depth, at, tap, 1)), 1);
    } else {
        const __mmask16 mask = (__mmask16)at->mask;
        x = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, tap_row(depth, at, tap, 0)));
        x = _mm512_inserti32x4(x, _mm_maskz_loadu_epi8(mask, tap_row(depth, at, tap, 1)), 1);
        x = _mm512_inserti32x4(x, _mm_maskz_loadu_epi8(mask, tap_row(depth, at, tap, 2)), 2);
        x = _mm512_inserti32x4(x, _mm_maskz_loadu_epi8(mask, tap_row(depth, at, tap, 3)), 3);
    }
    return _mm512_xor_si512(x, _mm512_set1_epi8((char)depth->flip));
}

/* Adds four taps, of which `n` exist. */
TND_INLINE void add_group(const struct tnd_int8_depth *depth, const struct sharing *at,
                          int64_t first, const int n, const int sharing, const __m512i w[4],
                          __m512i sum[4])
{
    __m512i x[4];
    __m512i by_channel[4];
    TND_UNROLL
    for (int t = 0; t < 4; t++) {
        x[t] = t < n ? load_tap(depth, at, first + t, sharing) : _mm512_setzero_si512();
    }
    interleave(x, by_channel);
    TND_UNROLL
    for (int j = 0; j < 4; j++) {
        sum[j] = _mm512_dpbusd_epi32(sum[j], by_channel[j], w[j]);
    }
}

/* Adds all taps of the positions that share a vector to `sum`. */
TND_INLINE void add_groups(const struct tnd_int8_depth *depth, const struct sharing *at,
                           const int sharing, __m512i w[][4], __m512i sum[4])
{
    const int64_t taps = depth->n_taps;
    int64_t tap = 0;
    for (; tap + 4 <= taps; tap += 4) {
        add_group(depth, at, tap, 4, sharing, w[tap / 4], sum);
    }
    if (taps - tap == 1) { /* (windows with an odd number of taps) */
        add_group(depth, at, tap, 1, sharing, w[tap / 4], sum);
    } else if (taps - tap == 2) {
        add_group(depth, at, tap, 2, sharing, w[tap / 4], sum);
    } else if (taps - tap == 3) {
        add_group(depth, at, tap, 3, sharing, w[tap / 4], sum);
    }
}

TND_INLINE void store_places(const struct tnd_int8_finish *finish, const struct sharing *at,
                             const int sharing, __m512i bytes)
{
    uint8_t *y = (uint8_t *)finish->y + at->first * finish->y_stride;
    if (sharing == 1) {
        _mm512_mask_storeu_epi8(y, at->mask, bytes);
        return;
    }
    TND_UNROLL
    for (int i = 0; i < sharing; i++, y += finish->y_stride) {
        if (at->first + i < at->n_places) {
            _mm512_mask_storeu_epi8(y, at->mask, bytes);
        }
        bytes = sharing == 2 ? _mm512_shuffle_i32x4(bytes, bytes, 0x4e)
                             : _mm512_shuffle_i32x4(bytes, bytes, 0x39);
    }
}

/* Finishes sums to bytes, and restores the order of channels. */
TND_INLINE void depth_to_bytes(const struct tnd_int8_depth *depth,
                               const struct tnd_int8_finish *finish, const int sharing,
                               __m512i w[][4], __mmask64 mask)
{
    const struct rounding rounding = rounding_for(finish->conv);
    const __m512 high = _mm512_set1_ps(finish->conv->high);
    const int n_panels = (finish->n_filters + PANEL - 1) / PANEL;
    __m512i base[4];
    __m512i scale[4];
    __m512i offset[4];
    arrange_numbers(finish->base, n_panels, sharing, base);
    arrange_numbers(finish->scale, n_panels, sharing, scale);
    arrange_numbers(finish->offset, n_panels, sharing, offset);
    struct sharing at = {finish->n_rows, 0, mask};
    for (; at.first < at.n_places; at.first += sharing) {
        __m512i sum[4] = {base[0], base[1], base[2], base[3]};
        add_groups(depth, &at, sharing, w, sum);
        TND_UNROLL
        for (int j = 0; j < 4; j++) {
            sum[j] = rounded_16(
                scaled_16(sum[j], _mm512_castsi512_ps(scale[j]), _mm512_castsi512_ps(offset[j])),
                high);
        }
        store_places(finish, &at, sharing, as_bytes(&rounding, sum));
    }
}

#define SHARING(n)                                                                                 \
    static void depth_of_##n(const struct tnd_int8_depth *depth,                                   \
                             const struct tnd_int8_finish *finish, __m512i w[][4], __mmask64 mask) \
    {                                                                                              \
        depth_to_bytes(depth, finish, n, w, mask);                                                 \
    }
SHARING(1)
SHARING(2)
SHARING(4)
static void (*const depth_by_sharing[])(const struct tnd_int8_depth *,
                                        const struct tnd_int8_finish *, __m512i[][4],
                                        __mmask64) = {depth_of_1, depth_of_2, depth_of_4};

static void depth_bytes(const struct tnd_int8_depth *depth, const struct tnd_int8_finish *finish)
{
    __m512i w[MOST_GROUPS][4];
    int32_t sums[TND_INT8_PLACES * TND_INT8_DEPTH];
    struct tnd_int8_finish with_sums = *finish;
    const int n_groups = (int)((depth->n_taps + 3) / 4);
    const int64_t panel = (int64_t)n_groups * 4 * PANEL;
    const int n = finish->n_filters;
    const __mmask64 mask = n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
    with_sums.sums = sums;
    with_sums.sums_stride = TND_INT8_DEPTH;
    if (depth->bytes == NULL) {
        int8_depth_sums(depth, finish->n_rows, n, sums);
        finish_rows(&with_sums);
        return;
    }
    const int n_panels = (n + PANEL - 1) / PANEL;
    const bool is_byte = finish->conv->result >= TND_INT8_S8;
    const int sharing = is_byte ? sharing_places(n_panels) : 1;
    for (int g = 0; g < n_groups; g++) {
        arrange_weights(depth->bytes + g * 4 * PANEL, panel, n_panels, sharing, w[g]);
    }
    if (is_byte) {
        depth_by_sharing[sharing / 2](depth, finish, w, mask);
        return;
    }
    struct sharing at = {finish->n_rows, 0, mask};
    for (; at.first < at.n_places; at.first++) {
        __m512i sum[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                          _mm512_setzero_si512()};
        add_groups(depth, &at, 1, w, sum);
        store_channels(sum, sums + at.first * TND_INT8_DEPTH);
    }
    finish_rows(&with_sums);
}

/* ---- sums and products of two operands ---- */

/* The real numbers that an operand's bytes stand for. */
struct operand {
    __m512i flip, zero; /* converts bytes to unsigned ones and subtracts the zero point */
    __m512 scale;
};

TND_INLINE struct operand operand_of(bool is_signed, int32_t zero, float scale)
{
    const int flip = is_signed ? 128 : 0;
    return (struct operand){_mm512_set1_epi32(flip), _mm512_set1_epi32(zero + flip),
                            _mm512_set1_ps(scale)};
}

TND_INLINE __m512 real_16(const struct operand *operand, const uint8_t *from, const bool flips)
{
    __m512i x = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from));
    x = flips ? _mm512_xor_si512(x, operand->flip) : x;
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(x, operand->zero)), operand->scale);
}

/* 64 values, which need no clamping before they are rounded: they are below 2^21. */
TND_INLINE __m512i binary_64(const struct tnd_binary_int8 *op, const struct operand operands[2],
                             const struct rounding *rounding, const uint8_t *a, const uint8_t *b,
                             const bool flips)
{
    const __m512 scale = _mm512_set1_ps(op->scale_y);
    __m512i whole[4];
    TND_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m512 x = real_16(&operands[0], a + 16 * i, flips);
        const __m512 y = real_16(&operands[1], b + 16 * i, flips);
        const __m512 sum = op->is_product ? _mm512_mul_ps(x, y) : _mm512_add_ps(x, y);
        const __m512 q = op->divides ? _mm512_div_ps(sum, scale) : _mm512_mul_ps(sum, scale);
        whole[i] = _mm512_cvt_roundps_epi32(q, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    return by_vector(as_bytes(rounding, whole));
}

TND_INLINE void binary_all(const struct tnd_int8_binary *binary, const bool flips)
{
    const struct tnd_binary_int8 op = *binary->op;
    const struct operand operands[2] = {operand_of(op.a_is_signed, op.zero_a, op.scale_a),
                                        operand_of(op.b_is_signed, op.zero_b, op.scale_b)};
    const struct rounding rounding =
        rounding_of(op.y_is_signed, op.zero_y, (int)op.low, (int)op.high);
    int64_t i = 0;
    for (; i + 64 <= binary->n; i += 64) {
        _mm512_storeu_si512(
            (void *)(binary->y + i),
            binary_64(&op, operands, &rounding, binary->a + i, binary->b + i, flips));
    }
    if (i < binary->n) {
        const __mmask64 mask = ((__mmask64)1 << (binary->n - i)) - 1;
        _Alignas(64) uint8_t part[2][64];
        _mm512_store_si512((void *)part[0], _mm512_maskz_loadu_epi8(mask, binary->a + i));
        _mm512_store_si512((void *)part[1], _mm512_maskz_loadu_epi8(mask, binary->b + i));
        _mm512_mask_storeu_epi8(binary->y + i, mask,
                                binary_64(&op, operands, &rounding, part[0], part[1], flips));
    }
}

static void binary_bytes(const struct tnd_int8_binary *binary)
{
    if (binary->op->a_is_signed || binary->op->b_is_signed) {
        binary_all(binary, true);
    } else {
        binary_all(binary, false);
    }
}

void tnd_fill_int8_vnni(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(ROWS, multiply);
    out->int8.finish = finish_rows;
    out->int8.depth = depth_bytes;
    out->int8.binary = binary_bytes;
}
#else
typedef int tnd_no_int8_vnni;
#endif
