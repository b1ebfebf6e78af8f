/* SPDX-License-Identifier: MIT
 * Sizes of packed weights, and packing: codes come from the decoders of the matrix kernels, already
 * transposed into lanes; headers are copied from the rows. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/packing/packing.h"
#include "base/tnd_assert.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_grid.h"
#include "ggml-like/tnd_type.h"

enum {
    LANES = TND_PANEL_ROWS,
    STEP = 4 * LANES,
    GROUP = 8 * STEP,
    MAX_UNIT_VALUES = 256,
    TAIL_BYTES = 256 /* a unit of the widest type has 210 bytes */
};

/* ---- sizes ---- */

static size_t header_bytes(const struct tnd_quant_code *code)
{
    return TND_PACKED_HEADER(code->form, code->is_super);
}

static int packed_bits(const struct tnd_quant_code *code)
{
    return TND_PACKED_BITS(code->form, code->bits);
}

int tnd_packed_unit_values(enum tandem_type type)
{
    if (tnd_quant_code(type) == NULL) {
        return 0;
    }
    int64_t block = tnd_type_traits(type)->block_values;
    return block == 32 ? 64 : (int)block;
}

size_t tnd_packed_unit_bytes(enum tandem_type type)
{
    const struct tnd_quant_code *code = tnd_quant_code(type);
    if (code == NULL) {
        return 0;
    }
    const int blocks = tnd_packed_unit_values(type) / 32;
    return header_bytes(code) + (size_t)(blocks * packed_bits(code)) * 64;
}

size_t tnd_packed_panel_bytes(enum tandem_type type, int64_t k)
{
    int64_t unit = tnd_packed_unit_values(type);
    return unit == 0 ? 0 : (size_t)((k + unit - 1) / unit) * tnd_packed_unit_bytes(type);
}

/* ---- payload ---- */

#define EVERY_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Codes are packed many bytes at a time; no code crosses a byte boundary. Vectors as wide as every
 * CPU has them; compilers merge them where a CPU has wider ones. */
typedef uint64_t words __attribute__((vector_size(16)));
typedef uint8_t sixteen __attribute__((vector_size(16)));

#if defined(__clang__)
#define SHUFFLE(a, b, lanes, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, lanes, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})
#endif
typedef uint16_t eight __attribute__((vector_size(16)));
typedef uint32_t four __attribute__((vector_size(16)));
#define LOW_8(a, b) SHUFFLE(a, b, sixteen, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_8(a, b)                                                                               \
    SHUFFLE(a, b, sixteen, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_16(a, b)  SHUFFLE(a, b, eight, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_16(a, b) SHUFFLE(a, b, eight, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_32(a, b)  SHUFFLE(a, b, four, 0, 4, 1, 5)
#define HIGH_32(a, b) SHUFFLE(a, b, four, 2, 6, 3, 7)

/* Transposes a square of N rows of N values. Vector and lane are numbers of log2 N bits each; a
 * round rotates all of these bits up by one, the top bit of the vector number to the low end of the
 * lane number. After log2 N rounds, vector and lane are exchanged. */
#define SQUARE(name, vector, N, LOW, HIGH)                                                         \
    TND_INLINE void name##_square(const uint8_t *rows, size_t row_bytes, uint8_t *out,             \
                                  size_t out_bytes)                                                \
    {                                                                                              \
        vector v[N], next[N];                                                                      \
        TND_UNROLL                                                                                 \
        for (int r = 0; r < (N); r++) {                                                            \
            memcpy(&v[r], rows + (size_t)r * row_bytes, sizeof(v[r]));                             \
        }                                                                                          \
        TND_UNROLL                                                                                 \
        for (int moved = 1; moved < (N); moved *= 2) {                                             \
            TND_UNROLL                                                                             \
            for (int i = 0; i < (N) / 2; i++) {                                                    \
                next[2 * i] = LOW(v[i], v[i + (N) / 2]);                                           \
                next[2 * i + 1] = HIGH(v[i], v[i + (N) / 2]);                                      \
            }                                                                                      \
            memcpy(v, next, sizeof(v));                                                            \
        }                                                                                          \
        TND_UNROLL                                                                                 \
        for (int i = 0; i < (N); i++) {                                                            \
            memcpy(out + (size_t)i * out_bytes, &v[i], sizeof(v[i]));                              \
        }                                                                                          \
    }
SQUARE(transpose_8, sixteen, 16, LOW_8, HIGH_8)
SQUARE(transpose_16, eight, 8, LOW_16, HIGH_16)
SQUARE(transpose_32, four, 4, LOW_32, HIGH_32)
#undef SQUARE

TND_INLINE words load_words(const uint8_t *at)
{
    words loaded;
    memcpy(&loaded, at, sizeof(loaded));
    return loaded;
}

/* Packs the low `bits` of 8 steps, 64 bytes each; steps of a half share vectors. */
TND_INLINE void pack_low_bits(const uint8_t *steps, const int bits, uint8_t *out)
{
    const int shared = 8 / bits; /* steps per vector */
    const int vectors = 4 / shared;
    const uint64_t mask = EVERY_BYTE((1u << bits) - 1);
    for (int half = 0; half < 2; half++, steps += 4 * STEP) {
        for (int v = 0; v < vectors; v++, out += STEP) {
            for (int i = 0; i < STEP; i += (int)sizeof(words)) {
                words packed = load_words(steps + v * STEP + i) & mask;
                TND_UNROLL
                for (int s = 1; s < shared; s++) {
                    packed |= (load_words(steps + (s * vectors + v) * STEP + i) & mask)
                              << (uint64_t)(s * bits);
                }
                memcpy(out + i, &packed, sizeof(packed));
            }
        }
    }
}

/* Exchanges the bits of `mask` with those `shift` above them. */
TND_INLINE words exchange(words bits, uint64_t mask, uint64_t shift)
{
    const words other = (bits >> shift ^ bits) & mask;
    return bits ^ other ^ other << shift;
}

/* Collects one bit of each byte, the first byte's in the lowest position. Byte j of a word gets bit
 * v from byte j of vector v: a square of 8 x 8 bits, which is then transposed, in both words of a
 * vector. */
static void pack_top_bit(const uint8_t *steps, const int bit, uint8_t *out)
{
    enum { VECTORS = 8, BYTES = (int)sizeof(words) };
    for (int i = 0; i < 8 * STEP; i += VECTORS * BYTES, out += BYTES) {
        words bits = {0};
        TND_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const words one = load_words(steps + i + v * BYTES) & EVERY_BYTE(UINT64_C(1) << bit);
            bits |= v < bit ? one >> (uint64_t)(bit - v) : one << (uint64_t)(v - bit);
        }
        bits = exchange(bits, UINT64_C(0x00aa00aa00aa00aa), 7);
        bits = exchange(bits, UINT64_C(0x0000cccc0000cccc), 14);
        bits = exchange(bits, UINT64_C(0x00000000f0f0f0f0), 28);
        const words other = SHUFFLE(bits, bits, words, 1, 0); /* its bytes go between those */
        const sixteen in_order = LOW_8((sixteen)bits, (sixteen)other);
        memcpy(out, &in_order, sizeof(in_order));
    }
}

static void pack_group(const struct tnd_kernels_q *kernels, const uint8_t *steps, int bits,
                       uint8_t *out)
{
    tnd_pick_bits_fn *pick = kernels->pick_bits != NULL ? kernels->pick_bits : pack_top_bit;
    uint8_t upper[GROUP];
    switch (bits) {
    case 8:
        memcpy(out, steps, GROUP);
        break;
    case 6:
        for (int i = 0; i < GROUP; i += (int)sizeof(words)) {
            const words high = load_words(steps + i) >> 4 & EVERY_BYTE(15);
            memcpy(upper + i, &high, sizeof(high));
        }
        pack_low_bits(steps, 4, out);
        pack_low_bits(upper, 2, out + 4 * STEP);
        break;
    case 5:
        pack_low_bits(steps, 4, out);
        pick(steps, 4, out + 4 * STEP);
        break;
    case 3:
        pack_low_bits(steps, 2, out);
        pick(steps, 2, out + 2 * STEP);
        break;
    case 4:
        pack_low_bits(steps, 4, out);
        break;
    default:
        TND_ASSERT(bits == 2);
        pack_low_bits(steps, 2, out);
        break;
    }
}

/* Maps the numbers of a codebook to their indices. */
static void list_places(int form, uint8_t place_of[256])
{
    const uint8_t *codes = tnd_book_codes(form);
    memset(place_of, 0, 256);
    for (int i = 15; i >= 0; i--) { /* the first of two equal numbers wins */
        place_of[codes[i]] = (uint8_t)i;
    }
}

/* Replaces numbers of a codebook by their indices. */
static void find_places(const uint8_t *restrict place_of, uint8_t *restrict steps, int n)
{
    for (int i = 0; i < n; i++) {
        steps[i] = place_of[steps[i]];
    }
}

/* ---- header ---- */

static void copy_half(uint8_t *out, int vector, int lane, const void *half)
{
    memcpy(out + vector * 2 * LANES + 2 * lane, half, 2);
}

/* The header of one row's block of 256 values: one or two halves, and a byte per group. */
struct super_header {
    uint16_t halves[2];
    uint8_t groups[LANES];
};
typedef void super_header_fn(const void *row, struct super_header *out);

static void header_q2_k(const void *row, struct super_header *out)
{
    const struct tnd_block_q2_k *b = row;
    *out = (struct super_header){.halves = {b->d, b->dmin}};
    memcpy(out->groups, b->scales, sizeof(out->groups));
}

/* Eight scales of 4 plus 2 bits, minus 32. The top bits are set meanwhile, so that no byte borrows
 * from the next. */
static void store_scales(uint64_t low, uint64_t high, uint8_t *out)
{
    const uint64_t sum = (low & EVERY_BYTE(15)) | (high & EVERY_BYTE(3)) << 4 | EVERY_BYTE(128);
    const uint64_t scales = (sum - EVERY_BYTE(32)) ^ EVERY_BYTE(128);
    memcpy(out, &scales, sizeof(scales));
}

/* Scales as in tnd_q3_k_scale. */
static void header_q3_k(const void *row, struct super_header *out)
{
    const struct tnd_block_q3_k *b = row;
    uint64_t low;
    uint32_t high;
    *out = (struct super_header){.halves = {b->d}};
    memcpy(&low, b->scales, sizeof(low));
    memcpy(&high, b->scales + sizeof(low), sizeof(high));
    for (int i = 0; i < 2; i++, low >>= 4, high >>= 4) {
        store_scales(low, high | (uint64_t)(high >> 2) << 32, out->groups + 8 * i);
    }
}

/* As tnd_k4_scale_min, four scales at a time. Q5_K begins in the same way. */
static void header_q4_k(const void *row, struct super_header *out)
{
    const struct tnd_block_q4_k *b = row;
    uint32_t from[3];
    *out = (struct super_header){.halves = {b->d, b->dmin}};
    memcpy(from, b->scales, sizeof(from));
    const uint32_t packed[4] = {
        from[0] & 0x3f3f3f3fu,
        (from[2] & 0x0f0f0f0fu) | (from[0] >> 6 & 0x03030303u) << 4,
        from[1] & 0x3f3f3f3fu,
        (from[2] >> 4 & 0x0f0f0f0fu) | (from[1] >> 6 & 0x03030303u) << 4,
    };
    memcpy(out->groups, packed, sizeof(packed));
}

static void header_q6_k(const void *row, struct super_header *out)
{
    const struct tnd_block_q6_k *b = row;
    *out = (struct super_header){.halves = {b->d}};
    memcpy(out->groups, b->scales, sizeof(out->groups));
}

/* Scales as in tnd_iq4_xs_scale: their bits are spread to a byte each. */
static void header_iq4_xs(const void *row, struct super_header *out)
{
    const struct tnd_block_iq4_xs *b = row;
    uint32_t nibbles;
    *out = (struct super_header){.halves = {b->d}};
    memcpy(&nibbles, b->scales_l, sizeof(nibbles));
    uint64_t low = nibbles;
    uint64_t high = b->scales_h;
    low = (low | low << 16) & UINT64_C(0x0000ffff0000ffff);
    low = (low | low << 8) & UINT64_C(0x00ff00ff00ff00ff);
    low |= low << 4;
    high = (high | high << 24) & UINT64_C(0x000000ff000000ff);
    high = (high | high << 12) & UINT64_C(0x000f000f000f000f);
    high |= high << 6;
    store_scales(low, high, out->groups);
}

#define HEADER_GRID(NAME, size, group, unit)                                                       \
    static void header_##NAME(const void *row, struct super_header *out)                           \
    {                                                                                              \
        struct tnd_grid_values values;                                                             \
        tnd_grid_decode_##NAME(row, &values);                                                      \
        *out = (struct super_header){.halves = {values.d}};                                        \
        for (int g = 0; g < TND_GRID_VALUES / (group); g++) {                                      \
            out->groups[g] = (uint8_t)values.scale[g];                                             \
        }                                                                                          \
    }
TND_GRID_LIST(HEADER_GRID)
#undef HEADER_GRID

static super_header_fn *super_header_of(enum tandem_type type)
{
    static super_header_fn *const super_headers[TANDEM_TYPE_NUMBERS] = {
        [TANDEM_TYPE_Q2_K] = header_q2_k,
        [TANDEM_TYPE_Q3_K] = header_q3_k,
        [TANDEM_TYPE_Q4_K] = header_q4_k,
        [TANDEM_TYPE_Q5_K] = header_q4_k,
        [TANDEM_TYPE_Q6_K] = header_q6_k,
        [TANDEM_TYPE_IQ4_XS] = header_iq4_xs,
#define ROW(NAME, size, group, unit) [TANDEM_TYPE_##NAME] = header_##NAME,
        TND_GRID_LIST(ROW)
#undef ROW
    };
    return super_headers[type];
}

/* What is constant for all units of a panel. */
struct packing {
    const struct tnd_kernels_q *kernels;
    enum tandem_type type;
    const struct tnd_quant_code *code;
    super_header_fn *super_header; /* NULL: blocks of 32 */
    size_t block_bytes;
    int block_values, n_rows;
    uint8_t place_of[256]; /* for types whose decoders return numbers of a codebook */
};

/* Packs headers of `n` values of all rows, for blocks of 32: d comes first, then m. */
static void pack_headers(const struct packing *p, const uint8_t *rows, size_t row_bytes, int n,
                         uint8_t *out)
{
    const bool is_affine = (p->code->form & TND_AFFINE) != 0;
    const bool has_power = (p->code->form & TND_BOOKS) == TND_BOOK_FP4;
    for (int b = 0; b < n / 32; b++, rows += p->block_bytes) {
        for (int r = 0; r < p->n_rows && !has_power; r++) {
            copy_half(out, b, r, rows + (size_t)r * row_bytes);
        }
        for (int r = 0; r < p->n_rows && has_power; r++) {
            const uint16_t scale = tnd_e8m0_half(rows[(size_t)r * row_bytes]);
            copy_half(out, b, r, &scale);
        }
        for (int r = 0; r < p->n_rows && is_affine; r++) {
            copy_half(out, 2 + b, r, rows + (size_t)r * row_bytes + 2);
        }
    }
}

/* Packs headers of a unit of all rows, for blocks of 256: the halves of all rows, then group by
 * group the bytes of all rows. Writes 16 groups: for types with 8, the payload overwrites the
 * rest. */
static void pack_super_headers(const struct packing *p, const uint8_t *rows, size_t row_bytes,
                               uint8_t *out)
{
    enum { HALVES = 2 * 2 * LANES };
    _Alignas(16) uint8_t groups[LANES * LANES];
    for (int r = 0; r < LANES; r++) {
        struct super_header header = {0};
        if (r < p->n_rows) {
            p->super_header(rows + (size_t)r * row_bytes, &header);
        }
        copy_half(out, 0, r, &header.halves[0]);
        copy_half(out, 1, r, &header.halves[1]);
        memcpy(groups + r * LANES, header.groups, sizeof(header.groups));
    }
    transpose_8_square(groups, LANES, out + HALVES, LANES);
}

/* ---- panels ---- */

static bool has_places(enum tandem_type type)
{
    return type == TANDEM_TYPE_IQ4_NL || type == TANDEM_TYPE_IQ4_XS || type == TANDEM_TYPE_MXFP4;
}

/* Decodes blocks of MXFP4, which have one byte before their nibbles, from copies in the layout of
 * Q4_0. */
static void decode_copies(const struct tnd_kernels_q *kernels, const uint8_t *rows,
                          size_t row_bytes, int n_blocks, uint8_t *to, float *scales, float *mins)
{
    struct tnd_block_q4_0 copies[LANES][2];
    TND_ASSERT(n_blocks <= 2);
    for (int r = 0; r < kernels->lanes; r++, rows += row_bytes) {
        for (int b = 0; b < n_blocks; b++) {
            const uint8_t *block = rows + (size_t)b * sizeof(struct tnd_block_mxfp4);
            copies[r][b].d = 0;
            memcpy(copies[r][b].qs, block + 1, sizeof(copies[r][b].qs));
        }
    }
    kernels->decode[TANDEM_TYPE_Q4_0]((const uint8_t *)(const void *)copies, sizeof(copies[0]),
                                      n_blocks * 32, to, scales, mins);
}

/* Decodes `n` values of the rows that a vector holds. IQ4_NL and IQ4_XS store nibbles as Q4_0 does,
 * after 2 bytes: decoded as Q4_0, they are indices into the codebook. */
static void decode_rows(const struct packing *p, const uint8_t *rows, size_t row_bytes, int n,
                        uint8_t *to)
{
    _Alignas(64) float scales[LANES * MAX_UNIT_VALUES / 16];
    _Alignas(64) float mins[LANES * MAX_UNIT_VALUES / 16];
    enum { IQ4_XS_HEAD = 8, Q4_0_HEAD = 2 };
    tnd_decode_q_fn *decode = p->kernels->decode[has_places(p->type) ? TANDEM_TYPE_Q4_0 : p->type];
    if (p->type == TANDEM_TYPE_MXFP4) {
        decode_copies(p->kernels, rows, row_bytes, n / 32, to, scales, mins);
        return;
    }
    if (p->type != TANDEM_TYPE_IQ4_XS) {
        decode(rows, row_bytes, n, to, scales, mins);
        return;
    }
    rows += IQ4_XS_HEAD - Q4_0_HEAD;
    for (int g = 0; g < n / 32; g++, rows += 16, to += 32 * p->kernels->lanes) {
        decode(rows, row_bytes, 32, to, scales, mins);
    }
}

/* Decodes `n` values (at most a unit) of all rows, step by step. */
static void decode_unit(const struct packing *p, const uint8_t *rows, size_t row_bytes, int n,
                        uint8_t *steps)
{
    _Alignas(64) uint8_t values[LANES * MAX_UNIT_VALUES];
    const int lanes = p->kernels->lanes;
    for (int r = 0; r < LANES; r += lanes) {
        uint8_t *to = lanes == LANES ? steps : values;
        decode_rows(p, rows + (size_t)r * row_bytes, row_bytes, n, to);
        for (int step = 0; step < n / 4 && lanes != LANES; step++) {
            memcpy(steps + step * STEP + 4 * r, values + step * 4 * lanes, (size_t)(4 * lanes));
        }
    }
}

/* Copies the rows of a panel with fewer than 16 rows, padded with zeros. */
static const uint8_t *fill_up(const struct packing *p, const uint8_t *rows, size_t row_bytes, int n,
                              uint8_t tail[LANES * TAIL_BYTES])
{
    const size_t bytes = (size_t)(n / p->block_values) * p->block_bytes;
    memset(tail, 0, LANES * TAIL_BYTES);
    for (int r = 0; r < p->n_rows; r++) {
        memcpy(tail + (size_t)r * TAIL_BYTES, rows + (size_t)r * row_bytes, bytes);
    }
    return tail;
}

static void pack_unit(const struct packing *p, const uint8_t *rows, size_t row_bytes, int unit,
                      int n, uint8_t *out)
{
    _Alignas(64) uint8_t steps[LANES * MAX_UNIT_VALUES];
    uint8_t tail[LANES * TAIL_BYTES];
    const int bits = packed_bits(p->code);
    if (p->n_rows < LANES || n < unit) {
        memset(out, 0, header_bytes(p->code));
    }
    if (p->super_header != NULL) {
        pack_super_headers(p, rows, row_bytes, out);
    } else {
        pack_headers(p, rows, row_bytes, n, out);
    }
    if (p->n_rows < LANES) {
        rows = fill_up(p, rows, row_bytes, n, tail);
        row_bytes = TAIL_BYTES;
    }
    if (n < unit) {
        memset(steps, 0, sizeof(steps));
    }
    decode_unit(p, rows, row_bytes, n, steps);
    if ((p->code->form & TND_BOOKS) != 0 && !has_places(p->type)) {
        find_places(p->place_of, steps, LANES * n);
    }
    out += header_bytes(p->code);
    for (int g = 0; g < unit / 32; g++, out += bits * 64) {
        pack_group(p->kernels, steps + g * GROUP, bits, out);
    }
}

void tnd_pack_panel(const struct tnd_kernels_q *kernels, enum tandem_type type, const uint8_t *rows,
                    size_t row_bytes, int n_rows, int64_t k, uint8_t *out)
{
    const int unit = tnd_packed_unit_values(type);
    const size_t unit_bytes = tnd_packed_unit_bytes(type);
    const struct tnd_type_traits *traits = tnd_type_traits(type);
    struct packing p = {.kernels = kernels,
                        .type = type,
                        .code = tnd_quant_code(type),
                        .super_header = super_header_of(type),
                        .block_bytes = traits->block_bytes,
                        .block_values = (int)traits->block_values,
                        .n_rows = n_rows};
    const size_t row_unit = (size_t)(unit / p.block_values) * p.block_bytes;
    TND_ASSERT(0 < n_rows && n_rows <= LANES && k % p.block_values == 0);
    TND_ASSERT(LANES % kernels->lanes == 0 && (uintptr_t)out % 64 == 0);
    TND_ASSERT(p.code->is_super == (p.super_header != NULL));
    if ((p.code->form & TND_BOOKS) != 0 && !has_places(type)) {
        list_places(p.code->form, p.place_of);
    }
    for (int64_t k0 = 0; k0 < k; k0 += unit, rows += row_unit, out += unit_bytes) {
        pack_unit(&p, rows, row_bytes, unit, (int)tnd_min(unit, k - k0), out);
    }
}

/* ---- floats ---- */

enum { ROWS = TND_PANEL_F_ROWS, LINE = 64 };

/* Transposes values begin .. end - 1 of K. Rows may be a power of 2 apart and so share cache sets:
 * each square reads its few rows completely, while a line of those `ahead` bytes further is
 * prefetched at a time. */
#define TRANSPOSE(name, number, N)                                                                 \
    static void name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t begin,             \
                     int64_t end, size_t ahead, uint8_t *out)                                      \
    {                                                                                              \
        const int in_squares = n_rows / (N) * (N);                                                 \
        const int64_t squares_end = begin + (end - begin) / (N) * (N);                             \
        for (int r = 0; r < in_squares; r += (N)) {                                                \
            for (int64_t i = begin; i < squares_end; i += (N)) {                                   \
                const uint8_t *from = rows + (size_t)r * row_bytes + (size_t)i * sizeof(number);   \
                for (int j = 0; j < (N) && (size_t)i * sizeof(number) % LINE == 0; j++) {          \
                    __builtin_prefetch(from + (size_t)j * row_bytes + ahead, 0, 3);                \
                }                                                                                  \
                name##_square(from, row_bytes,                                                     \
                              out + (size_t)((i - begin) * ROWS + r) * sizeof(number),             \
                              ROWS * sizeof(number));                                              \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < n_rows; r++) {                                                         \
            for (int64_t i = r < in_squares ? squares_end : begin; i < end; i++) {                 \
                memcpy(out + (size_t)((i - begin) * ROWS + r) * sizeof(number),                    \
                       rows + (size_t)r * row_bytes + (size_t)i * sizeof(number), sizeof(number)); \
            }                                                                                      \
        }                                                                                          \
    }
TRANSPOSE(transpose_16, uint16_t, 8)
TRANSPOSE(transpose_32, uint32_t, 4)
#undef TRANSPOSE

void tnd_pack_panel_f(enum tandem_type type, const uint8_t *rows, size_t row_bytes, int n_rows,
                      int64_t begin, int64_t end, uint8_t *out)
{
    const size_t bytes = tandem_type_block_bytes(type);
    TND_ASSERT(0 < n_rows && n_rows <= ROWS && tandem_type_block_values(type) == 1);
    if (n_rows < ROWS) {
        memset(out, 0, (size_t)(end - begin) * ROWS * bytes);
    }
    for (int64_t k = begin; k < end; k += TND_KC_F, out += TND_KC_F * ROWS * bytes) {
        const int64_t k_end = tnd_min(k + TND_KC_F, end);
        const bool is_last = (size_t)(k + TND_KC_F) * bytes >= row_bytes;
        const size_t ahead = is_last ? ROWS * row_bytes - (size_t)k * bytes : TND_KC_F * bytes;
        (type == TANDEM_TYPE_F32 ? transpose_32 : transpose_16)(rows, row_bytes, n_rows, k, k_end,
                                                                ahead, out);
    }
}
