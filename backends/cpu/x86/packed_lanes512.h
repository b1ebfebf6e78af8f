/* SPDX-License-Identifier: MIT
 * Products of packed weights (packed.h) with vectors of 16 rows, one panel each, and VNNI. Codes
 * are unpacked in registers and used for all tokens; the weights are one stream of memory. Sums
 * have the order of gemm_vnni.c and so the same bits. Including files may also be compiled for GFNI
 * and VBMI, which unpack codes of 2 and 3 bits in about half as many instructions. */

enum { LANES = 16, TOKENS = TND_PACKED_TOKENS, STEP = 64 };

TND_INLINE __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512((const void *)p);
}

TND_INLINE __m512i broadcast_4(const void *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm512_set1_epi32(value);
}

TND_INLINE __m512 halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

TND_INLINE __m512 bf16s(const uint8_t *p)
{
    __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

TND_INLINE __m128i bytes_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

TND_INLINE void unpack_nibbles(const uint8_t *p, __m512i w[4])
{
    const __m512i mask = _mm512_set1_epi8(15);
    TND_UNROLL
    for (int v = 0; v < 2; v++) {
        __m512i packed = load(p + v * STEP);
        w[v] = _mm512_and_si512(packed, mask);
        w[v + 2] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
    }
}

TND_INLINE void add_top_bits(const uint8_t *p, const char value, __m512i w[4])
{
    TND_UNROLL
    for (int s = 0; s < 4; s++) {
        uint64_t bits;
        memcpy(&bits, p + 8 * s, sizeof(bits));
        w[s] = _mm512_mask_add_epi8(w[s], (__mmask64)bits, w[s], _mm512_set1_epi8(value));
    }
}

#if defined(__GFNI__) && defined(__AVX512VBMI__)
/* Multiplying a byte by a bit matrix selects bits in one instruction: Intel SDM volume 2,
 * GF2P8AFFINEQB. Byte 7 - i of the matrix says which bits of the byte make up bit i. */
#define BIT(to, from) (UINT64_C(1) << (8 * (7 - (to)) + (from)))
#define PAIR(from)    (BIT(0, from) | BIT(1, (from) + 1))

TND_INLINE __m512i pick(__m512i v, const uint64_t matrix)
{
    return _mm512_gf2p8affine_epi64_epi8(v, _mm512_set1_epi64((int64_t)matrix), 0);
}

TND_INLINE void unpack_pairs(const uint8_t *p, __m512i w[4])
{
    __m512i packed = load(p);
    TND_UNROLL
    for (int s = 0; s < 4; s++) {
        w[s] = pick(packed, PAIR(2 * s));
    }
}

/* Expands words of top bits, one per step, to bytes: bits 4, 5, 6, 7, 0, 1, 2, 3 of a byte are
 * those of steps 0, 1, 4, 5, 2, 3, 6, 7. Eight bits of all words form a matrix; multiplying it by a
 * byte with only bit i set yields its column i. */
TND_INLINE __m512i top_plane(const uint8_t *p)
{
#define MATRIX(i) 40 + (i), 32 + (i), 8 + (i), (i), 56 + (i), 48 + (i), 24 + (i), 16 + (i)
    static const _Alignas(64) uint8_t order[STEP] = {MATRIX(0), MATRIX(1), MATRIX(2), MATRIX(3),
                                                     MATRIX(4), MATRIX(5), MATRIX(6), MATRIX(7)};
#undef MATRIX
    const __m512i columns = _mm512_set1_epi64((int64_t)UINT64_C(0x8040201008040201));
    return _mm512_gf2p8affine_epi64_epi8(columns, _mm512_permutexvar_epi8(load(order), load(p)), 0);
}

#define HAS_THREES
/* The pairs of two steps form a nibble of their vector; their top bits go into the other nibble. */
TND_INLINE void unpack_threes(const uint8_t *group, const int half, __m512i w[4])
{
    const __m512i low = _mm512_set1_epi8(15);
    enum { SELECT = 0xca }; /* low ? second : third */
    const int top = 2 * half;
    __m512i packed = load(group + half * STEP);
    __m512i plane = top_plane(group + 2 * STEP);
    __m512i first = _mm512_ternarylogic_epi32(low, packed, plane, SELECT);
    __m512i last = _mm512_ternarylogic_epi32(low, plane, packed, SELECT);
    w[0] = pick(first, PAIR(0) | BIT(2, 4 + top));
    w[1] = pick(first, PAIR(2) | BIT(2, 5 + top));
    w[2] = pick(last, PAIR(4) | BIT(2, top));
    w[3] = pick(last, PAIR(6) | BIT(2, 1 + top));
}
#else
TND_INLINE void unpack_pairs(const uint8_t *p, __m512i w[4])
{
    const __m512i mask = _mm512_set1_epi8(3);
    __m512i packed = load(p);
    w[0] = _mm512_and_si512(packed, mask);
    w[1] = _mm512_and_si512(_mm512_srli_epi16(packed, 2), mask);
    w[2] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
    w[3] = _mm512_and_si512(_mm512_srli_epi16(packed, 6), mask);
}

#endif

/* Adds the high 2 bits of 6-bit codes. */
TND_INLINE void add_upper_pairs(const uint8_t *p, __m512i w[4])
{
    const __m512i upper = _mm512_set1_epi8(0x30);
    __m512i u = load(p);
    w[0] = _mm512_or_si512(w[0], _mm512_and_si512(_mm512_slli_epi16(u, 4), upper));
    w[1] = _mm512_or_si512(w[1], _mm512_and_si512(_mm512_slli_epi16(u, 2), upper));
    w[2] = _mm512_or_si512(w[2], _mm512_and_si512(u, upper));
    w[3] = _mm512_or_si512(w[3], _mm512_and_si512(_mm512_srli_epi16(u, 2), upper));
}

TND_INLINE __m512i load_book(const uint8_t *p)
{
    return _mm512_broadcast_i32x4(bytes_16(p));
}

TND_INLINE __m512i look_up(__m512i book, __m512i w)
{
    return _mm512_shuffle_epi8(book, w);
}

#define SIDE_BYTES STEP
typedef __m512i codes;
#include "backends/cpu/kernels/packed_shape.h"

/* Scale and minimum of group `g` of 16 or 32 values in block `b` of a unit. */
TND_INLINE void read_scales(const uint8_t *unit, const struct shape shape, int b, const int g,
                            __m512 *scale, __m512 *min)
{
    if (!shape.is_super) {
        *scale =
            (shape.form & TND_BOOKS) == TND_BOOK_FP4 ? bf16s(unit + 32 * b) : halves(unit + 32 * b);
        if ((shape.form & TND_AFFINE) != 0) {
            *min = halves(unit + 64 + 32 * b);
        }
        return;
    }
    const bool by_16 = (shape.form & TND_GROUPS_OF_16) != 0;
    const uint8_t *bytes = unit + 64 + LANES * (by_16 ? 2 * b + g : b);
    __m512 d = halves(unit);
    if ((shape.form & TND_AFFINE) == 0) {
        *scale = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes_16(bytes))));
        if (TND_BOOK_UNIT(shape.form) != 1.0f) {
            *scale = _mm512_mul_ps(*scale, _mm512_set1_ps(TND_BOOK_UNIT(shape.form)));
        }
        return;
    }
    __m512 dmin = _mm512_sub_ps(_mm512_setzero_ps(), halves(unit + 32));
    __m512i s = _mm512_cvtepu8_epi32(bytes_16(bytes));
    __m512i m;
    if (by_16) {
        /* the look-up only uses the low 4 bits, so no mask is needed */
        const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        m = _mm512_srli_epi32(s, 4);
        *scale = _mm512_mul_ps(d, _mm512_permutexvar_ps(s, numbers));
    } else {
        m = _mm512_cvtepu8_epi32(bytes_16(bytes + 8 * LANES));
        *scale = _mm512_mul_ps(d, _mm512_cvtepi32_ps(s));
    }
    *min = _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(m));
}

/* Multiplies four steps by all tokens. */
TND_INLINE void dot_half(const __m512i w[4], const struct tnd_x_block *const x[3], size_t x_blocks,
                         const int half, const int n_tokens, __m512i sum[TOKENS])
{
    TND_UNROLL
    for (int s = 0; s < 4; s++) {
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            const struct tnd_x_block *block = x[t / 3] + (size_t)(t % 3) * x_blocks;
            sum[t] = _mm512_dpbusd_epi32(sum[t], w[s], broadcast_4(block->q + 16 * half + 4 * s));
        }
    }
}

TND_INLINE void start_sums(const struct tnd_x_block *const x[3], size_t x_blocks, const int form,
                           const int g, const int n_tokens, __m512i sum[TOKENS])
{
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        const struct tnd_x_block *block = x[t / 3] + (size_t)(t % 3) * x_blocks;
        sum[t] = (form & TND_AFFINE) != 0 ? _mm512_setzero_si512()
                                          : broadcast_4(&block->group.correction[g]);
    }
}

TND_INLINE void add_sums(const struct tnd_x_block *const x[3], size_t x_blocks, const int form,
                         const int g, const int n_tokens, const __m512i sum[TOKENS], __m512 scale,
                         __m512 min, __m512 y[TOKENS])
{
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        const struct tnd_x_block *block = x[t / 3] + (size_t)(t % 3) * x_blocks;
        __m512 part = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[t]), _mm512_set1_ps(block->scale));
        y[t] = _mm512_fmadd_ps(part, scale, y[t]);
        if ((form & TND_AFFINE) != 0) {
            y[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(block->group.sum[g]), y[t]);
        }
    }
}

TND_INLINE void multiply(const struct tnd_tile_packed *tile, const struct shape shape,
                         const int n_tokens)
{
    const int n_groups = (shape.form & TND_GROUPS_OF_16) != 0 ? 2 : 1;
    const size_t unit_bytes = (size_t)(shape.header + shape.blocks * shape.group);
    const size_t x_blocks = tile->x_blocks;
    const uint8_t *unit = tile->units;
    /* three tokens per pointer: base, base + stride, base + 2 * stride are addressing modes */
    const struct tnd_x_block *x[3] = {tile->x, tile->x + (n_tokens > 3 ? 3 * x_blocks : 0),
                                      tile->x + (n_tokens > 6 ? 6 * x_blocks : 0)};
    __m512 y[TOKENS];
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        y[t] = tile->accumulate ? _mm512_loadu_ps(tile->y + (size_t)t * tile->y_stride)
                                : _mm512_setzero_ps();
    }
    for (int left = tile->n_blocks; left > 0; left -= shape.blocks, unit += unit_bytes) {
        const int blocks = left < shape.blocks ? left : shape.blocks;
        const uint8_t *group = unit + shape.header;
        fetch_header(tile, unit, shape);
        for (int b = 0; b < blocks; b++, group += shape.group) {
            __m512i sum[TOKENS];
            __m512i w[4];
            __m512 scale;
            __m512 min = _mm512_setzero_ps();
            fetch_block(tile, unit, shape, b);
            TND_UNROLL
            for (int half = 0; half < 2; half++) {
                const int g = n_groups == 2 ? half : 0;
                if (half == 0 || n_groups == 2) {
                    start_sums(x, x_blocks, shape.form, g, n_tokens, sum);
                }
                unpack_half(group, 0, half, shape, w);
                dot_half(w, x, x_blocks, half, n_tokens, sum);
                if (half == 1 || n_groups == 2) {
                    read_scales(unit, shape, b, g, &scale, &min);
                    add_sums(x, x_blocks, shape.form, g, n_tokens, sum, scale, min, y);
                }
            }
            x[0]++;
            x[1]++;
            x[2]++;
        }
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        _mm512_storeu_ps(tile->y + (size_t)t * tile->y_stride, y[t]);
    }
}
