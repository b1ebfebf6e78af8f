/* SPDX-License-Identifier: MIT
 * Products of packed weights (packed.h) with vectors of 8 rows: one panel is two of them side by
 * side. Codes are unpacked in registers and used for all tokens. The order of sums is that of
 * gemm_avx2.c: the same bits. packed_<isa>.c includes it and brings:
 *   dot(w, q, bits, sum)  adds the products of four steps of codes (w[side][step]) and 16
 *                         activations to the sums of both sides
 *   CORRECTED(bits)       whether codes are taken as they are, so that sums begin with the
 *                         correction for their offset */

enum { HALF = 32, STEP = 2 * HALF, PANEL_LANES = TND_PANEL_ROWS };

TND_INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

TND_INLINE __m256 halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

TND_INLINE __m256 bf16s(const uint8_t *p)
{
    __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}

TND_INLINE __m128i bytes_8(const uint8_t *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

/* ---- codes; p points to the wanted rows of the first vector ---- */

TND_INLINE void unpack_nibbles(const uint8_t *p, __m256i w[4])
{
    const __m256i mask = _mm256_set1_epi8(15);
    TND_UNROLL
    for (int v = 0; v < 2; v++) {
        __m256i packed = load(p + v * STEP);
        w[v] = _mm256_and_si256(packed, mask);
        w[v + 2] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
    }
}

TND_INLINE void unpack_pairs(const uint8_t *p, __m256i w[4])
{
    const __m256i mask = _mm256_set1_epi8(3);
    __m256i packed = load(p);
    w[0] = _mm256_and_si256(packed, mask);
    w[1] = _mm256_and_si256(_mm256_srli_epi16(packed, 2), mask);
    w[2] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
    w[3] = _mm256_and_si256(_mm256_srli_epi16(packed, 6), mask);
}

/* Adds the top bits. `bits` points to the words of the steps. */
TND_INLINE void add_top_bits(const uint8_t *bits, const char value, __m256i w[4])
{
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                              0x0303030303030303); /* spreads byte i to 8 bytes */
    const __m256i select = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    TND_UNROLL
    for (int s = 0; s < 4; s++) {
        int32_t word;
        memcpy(&word, bits + 8 * s, sizeof(word));
        __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(word), spread);
        __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, select), select);
        w[s] = _mm256_or_si256(w[s], _mm256_and_si256(is_set, _mm256_set1_epi8(value)));
    }
}

/* Adds the high 2 bits of 6-bit codes. */
TND_INLINE void add_upper_pairs(const uint8_t *p, __m256i w[4])
{
    const __m256i upper = _mm256_set1_epi8(0x30);
    __m256i u = load(p);
    w[0] = _mm256_or_si256(w[0], _mm256_and_si256(_mm256_slli_epi16(u, 4), upper));
    w[1] = _mm256_or_si256(w[1], _mm256_and_si256(_mm256_slli_epi16(u, 2), upper));
    w[2] = _mm256_or_si256(w[2], _mm256_and_si256(u, upper));
    w[3] = _mm256_or_si256(w[3], _mm256_and_si256(_mm256_srli_epi16(u, 2), upper));
}

TND_INLINE __m256i load_book(const uint8_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
}

TND_INLINE __m256i look_up(__m256i book, __m256i w)
{
    return _mm256_shuffle_epi8(book, w);
}

#define SIDE_BYTES HALF
typedef __m256i codes;
#include "backends/cpu/kernels/packed_shape.h"

/* ---- scales ---- */

/* Scale and minimum of group `g` of 16 or 32 values in block `b` of a unit. */
TND_INLINE void read_scales(const uint8_t *unit, const struct shape shape, const int side, int b,
                            const int g, __m256 *scale, __m256 *min)
{
    const uint8_t *d_halves = unit + 16 * side;
    if (!shape.is_super) {
        *scale = (shape.form & TND_BOOKS) == TND_BOOK_FP4 ? bf16s(d_halves + 32 * b)
                                                          : halves(d_halves + 32 * b);
        if ((shape.form & TND_AFFINE) != 0) {
            *min = halves(d_halves + 64 + 32 * b);
        }
        return;
    }
    const bool by_16 = (shape.form & TND_GROUPS_OF_16) != 0;
    const uint8_t *bytes = unit + 64 + PANEL_LANES * (by_16 ? 2 * b + g : b) + 8 * side;
    __m256 d = halves(d_halves);
    if ((shape.form & TND_AFFINE) == 0) {
        *scale = _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes_8(bytes))));
        if (TND_BOOK_UNIT(shape.form) != 1.0f) {
            *scale = _mm256_mul_ps(*scale, _mm256_set1_ps(TND_BOOK_UNIT(shape.form)));
        }
        return;
    }
    __m256 dmin = _mm256_sub_ps(_mm256_setzero_ps(), halves(d_halves + 32));
    __m256i s = _mm256_cvtepu8_epi32(bytes_8(bytes));
    __m256i m;
    if (by_16) {
        m = _mm256_srli_epi32(s, 4);
        s = _mm256_and_si256(s, _mm256_set1_epi32(15));
    } else {
        m = _mm256_cvtepu8_epi32(bytes_8(bytes + 8 * PANEL_LANES));
    }
    *scale = _mm256_mul_ps(d, _mm256_cvtepi32_ps(s));
    *min = _mm256_mul_ps(dmin, _mm256_cvtepi32_ps(m));
}

/* ---- products ---- */

/* Intermediate result of one token for a panel. In memory if there are several tokens: the codes of
 * four steps fill half of the registers, so tokens are processed one after the other. */
struct result {
    __m256i sum[2];
    __m256 y[2];
};

/* Multiplies 32 values of all rows by all tokens. */
TND_INLINE void multiply_block(const uint8_t *unit, const struct shape shape, int b,
                               const struct tnd_x_block *x, size_t x_blocks, const int n_tokens,
                               struct result results[TND_PACKED_TOKENS])
{
    const uint8_t *group = unit + shape.header + b * shape.group;
    const bool by_16 = (shape.form & TND_GROUPS_OF_16) != 0;
    const bool affine = (shape.form & TND_AFFINE) != 0;
    TND_UNROLL
    for (int half = 0; half < 2; half++) {
        const bool is_begin = by_16 || half == 0; /* of a group */
        const bool is_end = by_16 || half == 1;
        const int g = by_16 ? half : 0;
        const struct tnd_x_block *block = x;
        __m256i w[2][4];
        __m256 scale[2];
        __m256 min[2];
        TND_UNROLL
        for (int side = 0; side < 2; side++) {
            unpack_half(group, side, half, shape, w[side]);
            if (is_end) {
                read_scales(unit, shape, side, b, g, &scale[side], &min[side]);
            }
        }
        for (int t = 0; t < n_tokens; t++, block += x_blocks) {
            struct result *r = &results[t];
            __m256i sum[2];
            if (is_begin) {
                sum[0] = !affine && CORRECTED(shape.code_bits)
                             ? _mm256_set1_epi32(block->group.correction[g])
                             : _mm256_setzero_si256();
                sum[1] = sum[0];
            } else {
                sum[0] = r->sum[0];
                sum[1] = r->sum[1];
            }
            dot(w, block->q + 16 * half, shape.code_bits, sum);
            if (!is_end) {
                r->sum[0] = sum[0];
                r->sum[1] = sum[1];
                continue;
            }
            TND_UNROLL
            for (int side = 0; side < 2; side++) {
                __m256 part =
                    _mm256_mul_ps(_mm256_cvtepi32_ps(sum[side]), _mm256_set1_ps(block->scale));
                __m256 y = _mm256_fmadd_ps(part, scale[side], r->y[side]);
                if (affine) {
                    y = _mm256_fmadd_ps(min[side], _mm256_set1_ps(block->group.sum[g]), y);
                }
                r->y[side] = y;
            }
        }
    }
}

TND_INLINE void multiply(const struct tnd_tile_packed *tile, const struct shape shape,
                         const int n_tokens)
{
    const size_t unit_bytes = (size_t)(shape.header + shape.blocks * shape.group);
    const size_t x_blocks = tile->x_blocks;
    const struct tnd_x_block *x = tile->x;
    const uint8_t *unit = tile->units;
    struct result results[TND_PACKED_TOKENS];
    for (int t = 0; t < n_tokens; t++) {
        const float *from = tile->y + (size_t)t * tile->y_stride;
        results[t].y[0] = tile->accumulate ? _mm256_loadu_ps(from) : _mm256_setzero_ps();
        results[t].y[1] = tile->accumulate ? _mm256_loadu_ps(from + 8) : _mm256_setzero_ps();
    }
    for (int left = tile->n_blocks; left > 0; left -= shape.blocks, unit += unit_bytes) {
        const int blocks = left < shape.blocks ? left : shape.blocks;
        fetch_header(tile, unit, shape);
        for (int b = 0; b < blocks; b++, x++) {
            fetch_block(tile, unit, shape, b);
            multiply_block(unit, shape, b, x, x_blocks, n_tokens, results);
        }
    }
    for (int t = 0; t < n_tokens; t++) {
        float *to = tile->y + (size_t)t * tile->y_stride;
        _mm256_storeu_ps(to, results[t].y[0]);
        _mm256_storeu_ps(to + 8, results[t].y[1]);
    }
}

/* ---- one function per type ---- */

TND_QUANT_KERNELS(PACKED_ONE_OR_MANY)

static void fill_packed(struct tnd_cpu_kernels *out)
{
    TND_QUANT_KERNELS(FILL_PACKED)
}
