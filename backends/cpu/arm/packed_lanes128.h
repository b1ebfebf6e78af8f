/* SPDX-License-Identifier: MIT
 * Products of packed weights (packed.h) with vectors of 4 rows: a panel is four of them side by
 * side, called quads. Codes are unpacked in registers and used for all tokens, in sets of SET
 * tokens. Include it after dot_<isa>.h; sums have the order of gemm_lanes128.h and so the same
 * bits. */
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { QUADS = 4, QUAD = 16, STEP = QUADS * QUAD, PANEL_LANES = TND_PANEL_ROWS };

/* ---- codes; p points to the quad's part of the first vector ---- */

TND_INLINE void unpack_nibbles(const uint8_t *p, uint8x16_t w[4])
{
    TND_UNROLL
    for (int v = 0; v < 2; v++) {
        uint8x16_t packed = vld1q_u8(p + v * STEP);
        w[v] = vandq_u8(packed, vdupq_n_u8(15));
        w[v + 2] = vshrq_n_u8(packed, 4);
    }
}

TND_INLINE void unpack_pairs(const uint8_t *p, uint8x16_t w[4])
{
    const uint8x16_t mask = vdupq_n_u8(3);
    uint8x16_t packed = vld1q_u8(p);
    w[0] = vandq_u8(packed, mask);
    w[1] = vandq_u8(vshrq_n_u8(packed, 2), mask);
    w[2] = vandq_u8(vshrq_n_u8(packed, 4), mask);
    w[3] = vshrq_n_u8(packed, 6);
}

/* Adds the top bits. `bits` points to the words of the steps, at the quad's 16 bits. */
TND_INLINE void add_top_bits(const uint8_t *bits, const uint8_t value, uint8x16_t w[4])
{
    const uint8x16_t select = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    TND_UNROLL
    for (int s = 0; s < 4; s++, bits += 8) {
        uint8x16_t bytes = vcombine_u8(vdup_n_u8(bits[0]), vdup_n_u8(bits[1]));
        w[s] = vorrq_u8(w[s], vandq_u8(vtstq_u8(bytes, select), vdupq_n_u8(value)));
    }
}

/* Adds the high 2 bits of 6-bit codes. */
TND_INLINE void add_upper_pairs(const uint8_t *p, uint8x16_t w[4])
{
    uint8x16_t upper[4];
    unpack_pairs(p, upper);
    TND_UNROLL
    for (int s = 0; s < 4; s++) {
        w[s] = vsliq_n_u8(w[s], upper[s], 4);
    }
}

#define load_book(p)     vld1q_u8(p)
#define look_up(book, w) vqtbl1q_u8(book, w)

#define SIDE_BYTES QUAD
#define load(p)    vld1q_u8(p)
typedef uint8x16_t codes;
#include "backends/cpu/kernels/packed_shape.h"

/* ---- scales of 4 rows ---- */

TND_INLINE float32x4_t halves(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

TND_INLINE float32x4_t bf16s(const uint8_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

TND_INLINE uint16x4_t bytes_4(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof(four));
    return vget_low_u16(vmovl_u8(vcreate_u8(four)));
}

TND_INLINE float32x4_t floats_4(uint16x4_t v)
{
    return vcvtq_f32_u32(vmovl_u16(v));
}

/* As floats_4, of signed bytes. */
TND_INLINE float32x4_t signed_floats_4(uint16x4_t v)
{
    int16x4_t value = vshr_n_s16(vreinterpret_s16_u16(vshl_n_u16(v, 8)), 8);
    return vcvtq_f32_s32(vmovl_s16(value));
}

/* Scale and minimum of group `g` of 16 or 32 values in block `b` of a unit. */
TND_INLINE void read_scales(const uint8_t *unit, const struct shape shape, const int quad, int b,
                            const int g, float32x4_t *scale, float32x4_t *min)
{
    const uint8_t *d_halves = unit + 8 * quad;
    if (!shape.is_super) {
        *scale = (shape.form & TND_BOOKS) == TND_BOOK_FP4 ? bf16s(d_halves + 32 * b)
                                                          : halves(d_halves + 32 * b);
        if ((shape.form & TND_AFFINE) != 0) {
            *min = halves(d_halves + 64 + 32 * b);
        }
        return;
    }
    const bool by_16 = (shape.form & TND_GROUPS_OF_16) != 0;
    const uint8_t *bytes = unit + 64 + PANEL_LANES * (by_16 ? 2 * b + g : b) + 4 * quad;
    float32x4_t d = halves(d_halves);
    uint16x4_t s = bytes_4(bytes);
    if ((shape.form & TND_AFFINE) == 0) {
        *scale = vmulq_f32(d, signed_floats_4(s));
        if (TND_BOOK_UNIT(shape.form) != 1.0f) {
            *scale = vmulq_n_f32(*scale, TND_BOOK_UNIT(shape.form));
        }
        return;
    }
    uint16x4_t m;
    if (by_16) {
        m = vshr_n_u16(s, 4);
        s = vand_u16(s, vdup_n_u16(15));
    } else {
        m = bytes_4(bytes + 8 * PANEL_LANES);
    }
    *scale = vmulq_f32(d, floats_4(s));
    *min = vmulq_f32(vnegq_f32(halves(d_halves + 32)), floats_4(m));
}

/* ---- products ---- */

/* Intermediate result of one set of tokens for a panel. In memory if there are several sets: the
 * codes of four steps fill half of the registers, so sets are processed one after the other. */
struct result {
    int32x4_t sum[QUADS][SET];
    float32x4_t y[QUADS][SET];
};

/* Ends a group: y += scale * sum * x_scale, and for affine types y += min * x_sum. */
TND_INLINE void add_group(struct result *r, int32x4_t sum[QUADS][SET],
                          const float32x4_t scale[QUADS], const float32x4_t min[QUADS],
                          const struct tnd_x_block *a, const struct tnd_x_block *b, const int g,
                          const bool affine)
{
    const float32x4_t x_scale = spread_x_f(a->scale, b->scale);
    const float32x4_t x_sum =
        affine ? spread_x_f(a->group.sum[g], b->group.sum[g]) : vdupq_n_f32(0);
    TND_UNROLL
    for (int quad = 0; quad < QUADS; quad++) {
        float32x4_t scales[SET];
        float32x4_t mins[SET];
        spread_rows(scale[quad], scales);
        if (affine) {
            spread_rows(min[quad], mins);
        }
        TND_UNROLL
        for (int v = 0; v < SET; v++) {
            float32x4_t part = vmulq_f32(vcvtq_f32_s32(sum[quad][v]), x_scale);
            float32x4_t y = vfmaq_f32(r->y[quad][v], part, scales[v]);
            r->y[quad][v] = affine ? vfmaq_f32(y, mins[v], x_sum) : y;
        }
    }
}

/* Multiplies 32 values of all rows by all tokens. */
TND_INLINE void multiply_block(const uint8_t *unit, const struct shape shape, int block,
                               const struct tnd_x_block *x, size_t x_blocks, const int n_tokens,
                               struct result *results)
{
    const uint8_t *group = unit + shape.header + block * shape.group;
    const bool by_16 = (shape.form & TND_GROUPS_OF_16) != 0;
    const bool affine = (shape.form & TND_AFFINE) != 0;
    TND_UNROLL
    for (int half = 0; half < 2; half++) {
        const bool is_begin = by_16 || half == 0; /* of a group */
        const bool is_end = by_16 || half == 1;
        const int g = by_16 ? half : 0;
        uint8x16_t w[QUADS][4];
        float32x4_t scale[QUADS];
        float32x4_t min[QUADS];
        TND_UNROLL
        for (int quad = 0; quad < QUADS; quad++) {
            unpack_half(group, quad, half, shape, w[quad]);
            if (is_end) {
                read_scales(unit, shape, quad, block, g, &scale[quad], &min[quad]);
            }
        }
        for (int t = 0; t < n_tokens; t += SET) {
            const struct tnd_x_block *a = x + (size_t)t * x_blocks;
            const struct tnd_x_block *b = t + SET <= n_tokens ? a + (SET - 1) * x_blocks : a;
            struct result *r = &results[t / SET];
            int32x4_t sum[QUADS][SET];
            int8x16_t q[SET];
            int32x4_t start = !affine && CORRECTED(shape.code_bits)
                                  ? spread_x(a->group.correction[g], b->group.correction[g])
                                  : vdupq_n_s32(0);
            load_x(a->q + 16 * half, b->q + 16 * half, q);
            TND_UNROLL
            for (int quad = 0; quad < QUADS; quad++) {
                TND_UNROLL
                for (int v = 0; v < SET; v++) {
                    sum[quad][v] = is_begin ? start : r->sum[quad][v];
                }
                dot(w[quad], q, shape.code_bits, sum[quad]);
            }
            if (is_end) {
                add_group(r, sum, scale, min, a, b, g, affine);
            } else {
                memcpy(r->sum, sum, sizeof(sum));
            }
        }
    }
}

TND_INLINE void multiply(const struct tnd_tile_packed *tile, const struct shape shape,
                         const int n_tokens)
{
    const size_t unit_bytes = (size_t)(shape.header + shape.blocks * shape.group);
    const struct tnd_x_block *x = tile->x;
    const uint8_t *unit = tile->units;
    struct result results[TND_PACKED_TOKENS / SET];
    for (int t = 0; t < n_tokens; t += SET) {
        const float *a = tile->y + (size_t)t * tile->y_stride;
        const float *b = t + SET <= n_tokens ? a + (SET - 1) * tile->y_stride : a;
        for (int quad = 0; quad < QUADS; quad++) {
            if (tile->accumulate) {
                load_y(a + 4 * quad, b + 4 * quad, results[t / SET].y[quad]);
            } else {
                spread_rows(vdupq_n_f32(0), results[t / SET].y[quad]);
            }
        }
    }
    for (int left = tile->n_blocks; left > 0; left -= shape.blocks, unit += unit_bytes) {
        const int blocks = left < shape.blocks ? left : shape.blocks;
        fetch_header(tile, unit, shape);
        for (int b = 0; b < blocks; b++, x++) {
            fetch_block(tile, unit, shape, b);
            multiply_block(unit, shape, b, x, tile->x_blocks, n_tokens, results);
        }
    }
    for (int t = 0; t < n_tokens; t += SET) {
        float *a = tile->y + (size_t)t * tile->y_stride;
        float *b = t + SET <= n_tokens ? a + (SET - 1) * tile->y_stride : a;
        for (int quad = 0; quad < QUADS; quad++) {
            store_y(a + 4 * quad, b + 4 * quad, results[t / SET].y[quad]);
        }
    }
}

/* ---- one function per type ---- */

TND_QUANT_KERNELS(PACKED_ONE_OR_MANY)

static void fill_packed(struct tnd_cpu_kernels *out)
{
    TND_QUANT_KERNELS(FILL_PACKED)
}
