/* SPDX-License-Identifier: MIT
 * Weights of every type to the panels of kernels.h, written once for all vector widths. A lane
 * is a row: a transposing load brings the same 4 bytes of all rows into one vector, and from there
 * on the bit layout of a type is unpacked for all rows at once. decode_<isa>.c includes it and
 * brings:
 *   vec, LANES                  LANES 32-bit integers
 *   v_transpose(p, stride, out) out[i], lane l: 4 bytes at p + l * stride + 4 * i, i in 0..3
 *   v_first(p, stride)          lane l: 4 bytes at p + l * stride; 16 bytes there are readable
 *   v_last(p, stride)           the same; 12 bytes before p + l * stride are readable
 *   v_set v_and v_or v_xor v_sub v_mul v_sll v_srl v_sra   32-bit lanes, constant shifts
 *   v_book(codes, v)            each byte of v, which is below 16, to that byte of `codes`
 *   v_store                     to 64-byte aligned memory
 *   v_codes, v_pair             only where a panel does not hold step by step: see decode_i8mm.c
 *   vecf, vf_half (low 16 bits as f16), vf_int, vf_mul, vf_negate, vf_store, v_store_f (bits)
 * Layouts: ggml-common.h of the ggml project; the plain form of each is in ggml-like/quant_k.c. */

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_grid.h"

/* Bytes per group (4 values) and per block (32 values) in a panel. */
#define GROUP ((size_t)4 * LANES)
#define BLOCK (8 * GROUP)

/* Order of the codes of two steps a and b (4 values per lane each) in the panel: one after the
 * other. */
#if !defined(v_codes)
#define v_codes v_transpose
TND_INLINE void v_pair(vec a, vec b, vec out[2])
{
    out[0] = a;
    out[1] = b;
}
#endif

/* Loads 32 bytes of each row into 8 vectors. */
TND_INLINE void load_32(const uint8_t *p, size_t stride, vec out[8])
{
    v_codes(p, stride, out);
    v_codes(p + 16, stride, out + 4);
}

/* Moves 4 bits (bits 4 * j to 4 * j + 3 of each lane, shifted here to the low 4 bits of `bits`) to
 * bit 4 of the four bytes. The factor puts bit i at 8 * i + 4; the products do not overlap. */
TND_INLINE vec fifth_bits(vec bits)
{
    vec spread = v_mul(v_and(bits, v_set(15)), v_set(0x02040810));
    return v_and(spread, v_set(0x10101010));
}

/* ---- blocks of 32 ---- */

/* 16 bytes of nibbles at p: values 0..15 low, 16..31 high. */
TND_INLINE void store_nibbles(const uint8_t *p, size_t stride, uint8_t *values)
{
    const vec mask = v_set(0x0f0f0f0f);
    vec q[4];
    v_codes(p, stride, q);
    TND_UNROLL
    for (int j = 0; j < 4; j++) {
        v_store(values + (size_t)j * GROUP, v_and(q[j], mask));
        v_store(values + (size_t)(4 + j) * GROUP, v_and(v_srl(q[j], 4), mask));
    }
}

/* As store_nibbles, with a fifth bit per value at qh. */
TND_INLINE void store_five_bits(const uint8_t *p, const uint8_t *qh, size_t stride, uint8_t *values)
{
    const vec mask = v_set(0x0f0f0f0f);
    vec q[4];
    vec low[2];
    vec high[2];
    vec bits = v_first(qh, stride);
    v_pair(bits, v_srl(bits, 4), low);
    v_pair(v_srl(bits, 16), v_srl(bits, 20), high);
    v_codes(p, stride, q);
    TND_UNROLL
    for (int j = 0; j < 4; j++) {
        v_store(values + (size_t)j * GROUP, v_or(v_and(q[j], mask), fifth_bits(low[j % 2])));
        v_store(values + (size_t)(4 + j) * GROUP,
                v_or(v_and(v_srl(q[j], 4), mask), fifth_bits(high[j % 2])));
        low[j % 2] = v_srl(low[j % 2], 8);
        high[j % 2] = v_srl(high[j % 2], 8);
    }
}

static void decode_Q4_0(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    (void)mins;
    for (int64_t b = 0; b < n / 32; b++, rows += 18) {
        vf_store(scales + b * LANES, vf_half(v_first(rows, row_bytes)));
        store_nibbles(rows + 2, row_bytes, values + (size_t)b * BLOCK);
    }
}

static void decode_Q4_1(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    for (int64_t b = 0; b < n / 32; b++, rows += 20) {
        vec head = v_first(rows, row_bytes);
        vf_store(scales + b * LANES, vf_half(head));
        vf_store(mins + b * LANES, vf_half(v_srl(head, 16)));
        store_nibbles(rows + 4, row_bytes, values + (size_t)b * BLOCK);
    }
}

static void decode_Q5_0(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    (void)mins;
    for (int64_t b = 0; b < n / 32; b++, rows += 22) {
        vf_store(scales + b * LANES, vf_half(v_first(rows, row_bytes)));
        store_five_bits(rows + 6, rows + 2, row_bytes, values + (size_t)b * BLOCK);
    }
}

static void decode_Q5_1(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    for (int64_t b = 0; b < n / 32; b++, rows += 24) {
        vec head = v_first(rows, row_bytes);
        vf_store(scales + b * LANES, vf_half(head));
        vf_store(mins + b * LANES, vf_half(v_srl(head, 16)));
        store_five_bits(rows + 8, rows + 4, row_bytes, values + (size_t)b * BLOCK);
    }
}

static void decode_Q8_0(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    (void)mins;
    const vec sign = v_set((int32_t)0x80808080u); /* q + 128 as an unsigned byte */
    for (int64_t b = 0; b < n / 32; b++, rows += 34) {
        vec q[8];
        vf_store(scales + b * LANES, vf_half(v_first(rows, row_bytes)));
        load_32(rows + 2, row_bytes, q);
        TND_UNROLL
        for (int j = 0; j < 8; j++) {
            v_store(values + (size_t)b * BLOCK + (size_t)j * GROUP, v_xor(q[j], sign));
        }
    }
}

/* Looks up nibbles, stored as in store_nibbles, in a codebook. */
TND_INLINE void store_book(const uint8_t *p, size_t stride, const int form, uint8_t *values)
{
    const uint8_t *codes = tnd_book_codes(form);
    const vec mask = v_set(0x0f0f0f0f);
    vec q[4];
    v_codes(p, stride, q);
    TND_UNROLL
    for (int j = 0; j < 4; j++) {
        v_store(values + (size_t)j * GROUP, v_book(codes, v_and(q[j], mask)));
        v_store(values + (size_t)(4 + j) * GROUP, v_book(codes, v_and(v_srl(q[j], 4), mask)));
    }
}

static void decode_IQ4_NL(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                          float *scales, float *mins)
{
    (void)mins;
    for (int64_t b = 0; b < n / 32; b++, rows += 18) {
        vf_store(scales + b * LANES, vf_half(v_first(rows, row_bytes)));
        store_book(rows + 2, row_bytes, TND_BOOK_IQ4, values + (size_t)b * BLOCK);
    }
}

static void decode_MXFP4(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                         float *scales, float *mins)
{
    (void)mins;
    for (int64_t b = 0; b < n / 32; b++, rows += 17) {
        for (int l = 0; l < LANES; l++) {
            scales[b * LANES + l] = tnd_bf16_to_f32(tnd_e8m0_half(rows[(size_t)l * row_bytes]));
        }
        store_book(rows + 1, row_bytes, TND_BOOK_FP4, values + (size_t)b * BLOCK);
    }
}

/* Spreads the four nibbles in the low half of each lane to a byte each. */
TND_INLINE vec spread_nibbles(vec v)
{
    v = v_and(v_or(v, v_sll(v, 8)), v_set(0x00ff00ff));
    return v_and(v_or(v, v_sll(v, 4)), v_set(0x0f0f0f0f));
}

static void decode_BCML1(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                         float *scales, float *mins)
{
    for (int64_t b = 0; b < n / 32; b++, rows += 20) {
        vec head = v_first(rows, row_bytes);
        vec words[4];
        vf_store(scales + b * LANES, vf_half(head));
        vf_store(mins + b * LANES, vf_half(v_srl(head, 16)));
        v_transpose(rows + 4, row_bytes, words);
        TND_UNROLL
        for (int j = 0; j < 4; j++) { /* a word has 8 values: two steps */
            uint8_t *to = values + (size_t)b * BLOCK + (size_t)(2 * j) * GROUP;
            vec steps[2];
            v_pair(spread_nibbles(v_and(words[j], v_set(0xffff))),
                   spread_nibbles(v_srl(words[j], 16)), steps);
            v_store(to, steps[0]);
            v_store(to + GROUP, steps[1]);
        }
    }
}

/* ---- K-quants ---- */

/* Scales and minima from the 16 bytes {d, dmin, 12 of packed scales} of Q4_K and Q5_K; see
 * tnd_k4_scale_min. */
TND_INLINE void store_k4_scales(const uint8_t *p, size_t stride, float *scales, float *mins)
{
    const vec low_6 = v_set(63);
    const vec low_4 = v_set(15);
    const vec high_2 = v_set(48);
    vec head[4];
    v_transpose(p, stride, head);
    vecf d = vf_half(head[0]);
    vecf dmin = vf_negate(vf_half(v_srl(head[0], 16)));
    vec a = head[1];
    vec b = head[2];
    vec c = head[3];
    TND_UNROLL
    for (int g = 0; g < 4; g++) {
        vec scale_4 = v_or(v_and(c, low_4), v_and(v_srl(a, 2), high_2));
        vec min_4 = v_or(v_and(v_srl(c, 4), low_4), v_and(v_srl(b, 2), high_2));
        vf_store(scales + g * LANES, vf_mul(d, vf_int(v_and(a, low_6))));
        vf_store(mins + g * LANES, vf_mul(dmin, vf_int(v_and(b, low_6))));
        vf_store(scales + (4 + g) * LANES, vf_mul(d, vf_int(scale_4)));
        vf_store(mins + (4 + g) * LANES, vf_mul(dmin, vf_int(min_4)));
        a = v_srl(a, 8);
        b = v_srl(b, 8);
        c = v_srl(c, 8);
    }
}

static void decode_Q4_K(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    const vec mask = v_set(0x0f0f0f0f);
    for (int64_t b = 0; b < n / 256; b++, rows += 144) {
        store_k4_scales(rows, row_bytes, scales, mins);
        scales += 8 * LANES;
        mins += 8 * LANES;
        for (int pair = 0; pair < 4; pair++) {
            vec q[8];
            load_32(rows + 16 + 32 * pair, row_bytes, q);
            TND_UNROLL
            for (int j = 0; j < 8; j++) {
                v_store(values + (size_t)j * GROUP, v_and(q[j], mask));
                v_store(values + BLOCK + (size_t)j * GROUP, v_and(v_srl(q[j], 4), mask));
            }
            values += 2 * BLOCK;
        }
    }
}

static void decode_IQ4_XS(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                          float *scales, float *mins)
{
    const vec low_4 = v_set(15);
    const vec high_2 = v_set(48);
    const vec bias = v_set(32);
    (void)mins;
    for (int64_t b = 0; b < n / 256; b++, rows += 136) {
        vec head[4]; /* {d, upper bits of scales}, lower bits, the first 8 bytes of codes */
        v_transpose(rows, row_bytes, head);
        vecf d = vf_half(head[0]);
        vec high = v_srl(head[0], 12); /* scale 0 has its bits at 4 and 5 */
        vec low = head[1];
        TND_UNROLL
        for (int g = 0; g < 8; g++) {
            vec scale = v_or(v_and(low, low_4), v_and(high, high_2));
            vf_store(scales + g * LANES, vf_mul(d, vf_int(v_sub(scale, bias))));
            low = v_srl(low, 4);
            high = v_srl(high, 2);
        }
        scales += 8 * LANES;
        for (int g = 0; g < 8; g++, values += BLOCK) {
            store_book(rows + 8 + 16 * g, row_bytes, TND_BOOK_IQ4, values);
        }
    }
}

static void decode_Q5_K(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    const vec mask = v_set(0x0f0f0f0f);
    const vec fifth = v_set(0x10101010);
    for (int64_t b = 0; b < n / 256; b++, rows += 176) {
        store_k4_scales(rows, row_bytes, scales, mins);
        scales += 8 * LANES;
        mins += 8 * LANES;
        vec high[8];
        load_32(rows + 16, row_bytes, high);
        for (int pair = 0; pair < 4; pair++) {
            vec q[8];
            load_32(rows + 48 + 32 * pair, row_bytes, q);
            TND_UNROLL
            for (int j = 0; j < 8; j++) {
                vec low_value = v_or(v_and(q[j], mask), v_and(v_sll(high[j], 4), fifth));
                vec high_value = v_or(v_and(v_srl(q[j], 4), mask), v_and(v_sll(high[j], 3), fifth));
                v_store(values + (size_t)j * GROUP, low_value);
                v_store(values + BLOCK + (size_t)j * GROUP, high_value);
                high[j] = v_srl(high[j], 2);
            }
            values += 2 * BLOCK;
        }
    }
}

static void decode_Q2_K(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    const vec low_4 = v_set(15);
    const vec two = v_set(0x03030303);
    for (int64_t b = 0; b < n / 256; b++, rows += 84) {
        vec packed[4];
        vec head = v_last(rows + 80, row_bytes);
        vecf d = vf_half(head);
        vecf dmin = vf_negate(vf_half(v_srl(head, 16)));
        v_transpose(rows, row_bytes, packed);
        TND_UNROLL
        for (int g = 0; g < 16; g++) {
            vf_store(scales + g * LANES, vf_mul(d, vf_int(v_and(packed[g / 4], low_4))));
            vf_store(mins + g * LANES, vf_mul(dmin, vf_int(v_and(v_srl(packed[g / 4], 4), low_4))));
            packed[g / 4] = v_srl(packed[g / 4], 8);
        }
        scales += 16 * LANES;
        mins += 16 * LANES;
        for (int half = 0; half < 2; half++) {
            vec q[8];
            load_32(rows + 16 + 32 * half, row_bytes, q);
            for (int s = 0; s < 4; s++) {
                TND_UNROLL
                for (int j = 0; j < 8; j++) {
                    v_store(values + (size_t)j * GROUP, v_and(q[j], two));
                    q[j] = v_srl(q[j], 2);
                }
                values += BLOCK;
            }
        }
    }
}

/* Scales of Q3_K from the three packed dwords; see tnd_q3_k_scale. */
TND_INLINE void store_q3_k_scales(vecf d, vec a, vec b, vec c, float *scales)
{
    const vec low_4 = v_set(15);
    const vec high_2 = v_set(48);
    const vec bias = v_set(32);
    TND_UNROLL
    for (int j = 0; j < 4; j++) {
        vec g0 = v_or(v_and(a, low_4), v_and(v_sll(c, 4), high_2));
        vec g4 = v_or(v_and(b, low_4), v_and(v_sll(c, 2), high_2));
        vec g8 = v_or(v_and(v_srl(a, 4), low_4), v_and(c, high_2));
        vec g12 = v_or(v_and(v_srl(b, 4), low_4), v_and(v_srl(c, 2), high_2));
        vf_store(scales + j * LANES, vf_mul(d, vf_int(v_sub(g0, bias))));
        vf_store(scales + (4 + j) * LANES, vf_mul(d, vf_int(v_sub(g4, bias))));
        vf_store(scales + (8 + j) * LANES, vf_mul(d, vf_int(v_sub(g8, bias))));
        vf_store(scales + (12 + j) * LANES, vf_mul(d, vf_int(v_sub(g12, bias))));
        a = v_srl(a, 8);
        b = v_srl(b, 8);
        c = v_srl(c, 8);
    }
}

static void decode_Q3_K(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    (void)mins;
    const vec two = v_set(0x03030303);
    const vec third = v_set(0x04040404);
    for (int64_t b = 0; b < n / 256; b++, rows += 110) {
        vec packed[4]; /* the last 4 bytes of qs, then the scales */
        vecf d = vf_half(v_srl(v_last(rows + 106, row_bytes), 16));
        v_transpose(rows + 92, row_bytes, packed);
        store_q3_k_scales(d, packed[1], packed[2], packed[3], scales);
        scales += 16 * LANES;
        vec high[8];
        load_32(rows, row_bytes, high);
        for (int half = 0; half < 2; half++) {
            vec q[8];
            load_32(rows + 32 + 32 * half, row_bytes, q);
            for (int s = 0; s < 4; s++) {
                TND_UNROLL
                for (int j = 0; j < 8; j++) {
                    vec value = v_or(v_and(q[j], two), v_and(v_sll(high[j], 2), third));
                    v_store(values + (size_t)j * GROUP, value);
                    q[j] = v_srl(q[j], 2);
                    high[j] = v_srl(high[j], 1);
                }
                values += BLOCK;
            }
        }
    }
}

static void decode_Q6_K(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                        float *scales, float *mins)
{
    (void)mins;
    const vec mask = v_set(0x0f0f0f0f);
    const vec upper = v_set(0x30303030);
    for (int64_t b = 0; b < n / 256; b++, rows += 210) {
        vec packed[4];
        vecf d = vf_half(v_srl(v_last(rows + 206, row_bytes), 16));
        v_transpose(rows + 192, row_bytes, packed);
        TND_UNROLL
        for (int g = 0; g < 16; g++) {
            vec scale = v_sra(v_sll(packed[g / 4], 24), 24);
            vf_store(scales + g * LANES, vf_mul(d, vf_int(scale)));
            packed[g / 4] = v_srl(packed[g / 4], 8);
        }
        scales += 16 * LANES;
        for (int half = 0; half < 2; half++) {
            vec high[8];
            load_32(rows + 128 + 32 * half, row_bytes, high);
            for (int s = 0; s < 2; s++) { /* low nibbles: block s, high ones: block s + 2 */
                vec q[8];
                load_32(rows + 64 * half + 32 * s, row_bytes, q);
                TND_UNROLL
                for (int j = 0; j < 8; j++) {
                    vec low_value = v_or(v_and(q[j], mask), v_and(v_sll(high[j], 4), upper));
                    vec high_value = v_or(v_and(v_srl(q[j], 4), mask), v_and(high[j], upper));
                    v_store(values + (size_t)j * GROUP, low_value);
                    v_store(values + 2 * BLOCK + (size_t)j * GROUP, high_value);
                    high[j] = v_srl(high[j], 2);
                }
                values += BLOCK;
            }
            values += 2 * BLOCK;
        }
    }
}

/* ---- grid points ---- */

/* Decodes row by row to bytes, then transposes them into lanes. */
TND_INLINE void decode_grid(tnd_grid_decode_fn *decode, size_t block_bytes, const int group,
                            const float unit, const int offset, const uint8_t *rows,
                            size_t row_bytes, int64_t n, uint8_t *values, float *scales)
{
    _Alignas(64) uint8_t codes[LANES][TND_GRID_VALUES];
    for (int64_t b = 0; b < n / TND_GRID_VALUES; b++, rows += block_bytes) {
        for (int l = 0; l < LANES; l++) {
            struct tnd_grid_values block;
            decode(rows + (size_t)l * row_bytes, &block);
            const float d = tnd_f16_to_f32(block.d);
            for (int i = 0; i < TND_GRID_VALUES; i++) {
                codes[l][i] = (uint8_t)(block.q[i] + offset);
            }
            for (int g = 0; g < TND_GRID_VALUES / group; g++) {
                scales[g * LANES + l] = d * (float)block.scale[g] * unit;
            }
        }
        scales += TND_GRID_VALUES / group * LANES;
        for (int k = 0; k < TND_GRID_VALUES; k += 32, values += BLOCK) {
            vec q[8];
            load_32(codes[0] + k, TND_GRID_VALUES, q);
            TND_UNROLL
            for (int j = 0; j < 8; j++) {
                v_store(values + (size_t)j * GROUP, q[j]);
            }
        }
    }
}

#define DECODE_GRID(NAME, block_bytes, group, unit)                                                \
    static void decode_##NAME(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,   \
                              float *scales, float *mins)                                          \
    {                                                                                              \
        (void)mins;                                                                                \
        decode_grid(tnd_grid_decode_##NAME, block_bytes, group, unit, OFFSET_##NAME, rows,         \
                    row_bytes, n, values, scales);                                                 \
    }
enum {
#define OFFSET(NAME, form, offset, bits, is_super) OFFSET_##NAME = offset,
    TND_QUANT_KERNELS(OFFSET)
#undef OFFSET
};
TND_GRID_LIST(DECODE_GRID)
#undef DECODE_GRID

/* ---- floats ---- */

static void decode_F32(const uint8_t *rows, size_t row_bytes, int64_t n, float *w)
{
    for (int64_t k = 0; k < n; k += 4, rows += 16) {
        vec q[4];
        v_transpose(rows, row_bytes, q);
        TND_UNROLL
        for (int j = 0; j < 4; j++) {
            v_store_f(w + (k + j) * LANES, q[j]);
        }
    }
}

static void decode_F16(const uint8_t *rows, size_t row_bytes, int64_t n, float *w)
{
    for (int64_t k = 0; k < n; k += 8, rows += 16) {
        vec q[4];
        v_transpose(rows, row_bytes, q);
        TND_UNROLL
        for (int j = 0; j < 4; j++) {
            vf_store(w + (k + 2 * j) * LANES, vf_half(q[j]));
            vf_store(w + (k + 2 * j + 1) * LANES, vf_half(v_srl(q[j], 16)));
        }
    }
}

static void decode_BF16(const uint8_t *rows, size_t row_bytes, int64_t n, float *w)
{
    const vec upper = v_set((int32_t)0xffff0000u);
    for (int64_t k = 0; k < n; k += 8, rows += 16) {
        vec q[4];
        v_transpose(rows, row_bytes, q);
        TND_UNROLL
        for (int j = 0; j < 4; j++) {
            v_store_f(w + (k + 2 * j) * LANES, v_sll(q[j], 16));
            v_store_f(w + (k + 2 * j + 1) * LANES, v_and(q[j], upper));
        }
    }
}

static void fill_decoders_q(struct tnd_kernels_q *out)
{
#define FILL(NAME, form, offset, bits, is_super) out->decode[TANDEM_TYPE_##NAME] = decode_##NAME;
    TND_QUANT_KERNELS(FILL)
#undef FILL
    out->lanes = LANES;
}

static void fill_decoders_f(struct tnd_kernels_f *out)
{
    out->decode[TANDEM_TYPE_F32] = decode_F32;
    out->decode[TANDEM_TYPE_F16] = decode_F16;
    out->decode[TANDEM_TYPE_BF16] = decode_BF16;
    out->lanes = LANES;
}
