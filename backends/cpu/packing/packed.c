/* SPDX-License-Identifier: MIT
 * Sizes of packed weights, and packing: codes come from the decoders of the matrix kernels, which
 * bring them into lanes already; headers are copied from the rows. Knows no instruction set. */
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
    TAIL_BYTES = 256 /* a unit of the widest type has 210 */
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

/* Codes are packed many bytes at a time: no code leaves its byte. */
static uint64_t load_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

#define EVERY_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* As wide as every machine has them; compilers join what a machine has wider. */
typedef uint64_t words __attribute__((vector_size(16)));

TND_INLINE words load_words(const uint8_t *at)
{
    words loaded;
    memcpy(&loaded, at, sizeof(loaded));
    return loaded;
}

/* The low `bits` of 8 steps, 64 bytes each, so that a half's steps share vectors. */
TND_INLINE void pack_low_bits(const uint8_t *steps, const int bits, uint8_t *out)
{
    const int shared = 8 / bits; /* steps a vector */
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

/* One bit of each byte, the first byte's lowest: the product moves the bit of byte i, which is at
 * 8 i, by 56 - 7 i, and no two bits of it meet below. */
static void pack_top_bit(const uint8_t *steps, int bit, uint8_t *out)
{
    for (int i = 0; i < 8 * STEP; i += 8) {
        uint64_t bits = load_word(steps + i) >> bit & EVERY_BYTE(1);
        out[i / 8] = (uint8_t)(bits * UINT64_C(0x0102040810204080) >> 56);
    }
}

static void pack_group(const uint8_t *steps, int bits, uint8_t *out)
{
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
        pack_top_bit(steps, 4, out + 4 * STEP);
        break;
    case 3:
        pack_low_bits(steps, 2, out);
        pack_top_bit(steps, 2, out + 2 * STEP);
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

/* Where the numbers of a book stand in it. */
static void list_places(int form, uint8_t place_of[256])
{
    const uint8_t *codes = tnd_book_codes(form);
    memset(place_of, 0, 256);
    for (int i = 15; i >= 0; i--) { /* of two alike the first */
        place_of[codes[i]] = (uint8_t)i;
    }
}

/* Numbers of a book back to their indices. */
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

/* Headers of one unit for one row, a block of 256: halves, then a byte for each group. */
typedef void super_header_fn(const void *row, int lane, uint8_t *out, uint8_t *bytes);

static void header_q2_k(const void *row, int lane, uint8_t *out, uint8_t *bytes)
{
    const struct tnd_block_q2_k *b = row;
    copy_half(out, 0, lane, &b->d);
    copy_half(out, 1, lane, &b->dmin);
    for (int g = 0; g < 16; g++) {
        bytes[g * LANES] = b->scales[g];
    }
}

static void header_q3_k(const void *row, int lane, uint8_t *out, uint8_t *bytes)
{
    const struct tnd_block_q3_k *b = row;
    copy_half(out, 0, lane, &b->d);
    for (int g = 0; g < 16; g++) {
        bytes[g * LANES] = (uint8_t)tnd_q3_k_scale(b->scales, g);
    }
}

/* Q5_K begins alike. */
static void header_q4_k(const void *row, int lane, uint8_t *out, uint8_t *bytes)
{
    const struct tnd_block_q4_k *b = row;
    copy_half(out, 0, lane, &b->d);
    copy_half(out, 1, lane, &b->dmin);
    for (int g = 0; g < 8; g++) {
        int scale = 0;
        int min = 0;
        tnd_k4_scale_min(b->scales, g, &scale, &min);
        bytes[g * LANES] = (uint8_t)scale;
        bytes[(8 + g) * LANES] = (uint8_t)min;
    }
}

static void header_q6_k(const void *row, int lane, uint8_t *out, uint8_t *bytes)
{
    const struct tnd_block_q6_k *b = row;
    copy_half(out, 0, lane, &b->d);
    for (int g = 0; g < 16; g++) {
        bytes[g * LANES] = (uint8_t)b->scales[g];
    }
}

static void header_iq4_xs(const void *row, int lane, uint8_t *out, uint8_t *bytes)
{
    const struct tnd_block_iq4_xs *b = row;
    copy_half(out, 0, lane, &b->d);
    for (int g = 0; g < 8; g++) {
        bytes[g * LANES] = (uint8_t)tnd_iq4_xs_scale(b, g);
    }
}

#define HEADER_GRID(NAME, size, group, unit)                                                       \
    static void header_##NAME(const void *row, int lane, uint8_t *out, uint8_t *bytes)             \
    {                                                                                              \
        struct tnd_grid_values values;                                                             \
        tnd_grid_decode_##NAME(row, &values);                                                      \
        copy_half(out, 0, lane, &values.d);                                                        \
        for (int g = 0; g < TND_GRID_VALUES / (group); g++) {                                      \
            bytes[g * LANES] = (uint8_t)values.scale[g];                                           \
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

/* What stays the same for all units of a panel. */
struct packing {
    const struct tnd_kernels_q *kernels;
    enum tandem_type type;
    const struct tnd_quant_code *code;
    super_header_fn *super_header; /* NULL: blocks of 32 */
    size_t block_bytes;
    int block_values, n_rows;
    uint8_t place_of[256]; /* of types with a book */
};

/* Header of one unit for one row; `n` of its values exist. */
TND_INLINE void pack_header(const struct packing *p, const uint8_t *row, int n, int lane,
                            uint8_t *out)
{
    if (p->super_header != NULL) {
        p->super_header(row, lane, out, out + 2 * 2 * LANES + lane);
        return;
    }
    for (int b = 0; b < n / 32; b++, row += p->block_bytes) { /* d comes first, m behind it */
        if ((p->code->form & TND_BOOKS) == TND_BOOK_FP4) {
            const uint16_t scale = tnd_e8m0_half(row[0]);
            copy_half(out, b, lane, &scale);
            continue;
        }
        copy_half(out, b, lane, row);
        if ((p->code->form & TND_AFFINE) != 0) {
            copy_half(out, 2 + b, lane, row + 2);
        }
    }
}

/* ---- panels ---- */

static bool has_places(enum tandem_type type)
{
    return type == TANDEM_TYPE_IQ4_NL || type == TANDEM_TYPE_IQ4_XS;
}

/* Codes of `n` values of the rows that a vector holds. The nibbles of IQ4_NL and IQ4_XS lie as
 * those of Q4_0, behind 2 bytes: read so, they are the indices into the book. */
static void decode_rows(const struct packing *p, const uint8_t *rows, size_t row_bytes, int n,
                        uint8_t *to)
{
    _Alignas(64) float scales[LANES * MAX_UNIT_VALUES / 16];
    _Alignas(64) float mins[LANES * MAX_UNIT_VALUES / 16];
    enum { IQ4_XS_HEAD = 8, Q4_0_HEAD = 2 };
    tnd_decode_q_fn *decode = p->kernels->decode[has_places(p->type) ? TANDEM_TYPE_Q4_0 : p->type];
    if (p->type != TANDEM_TYPE_IQ4_XS) {
        decode(rows, row_bytes, n, to, scales, mins);
        return;
    }
    rows += IQ4_XS_HEAD - Q4_0_HEAD;
    for (int g = 0; g < n / 32; g++, rows += 16, to += 32 * p->kernels->lanes) {
        decode(rows, row_bytes, 32, to, scales, mins);
    }
}

/* Codes of `n` values (at most a unit) of all rows, step by step. */
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

/* The rows of a panel that has fewer than 16, and zeros. */
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
    memset(out, 0, header_bytes(p->code));
    for (int r = 0; r < p->n_rows; r++) {
        pack_header(p, rows + (size_t)r * row_bytes, n, r, out);
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
        pack_group(steps + g * GROUP, bits, out);
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
    if ((p.code->form & TND_BOOKS) != 0) {
        list_places(p.code->form, p.place_of);
    }
    for (int64_t k0 = 0; k0 < k; k0 += unit, rows += row_unit, out += unit_bytes) {
        pack_unit(&p, rows, row_bytes, unit, (int)tnd_min(unit, k - k0), out);
    }
}

/* ---- floats ---- */

enum { ROWS = TND_PANEL_F_ROWS };

#if defined(__clang__)
#define SHUFFLE(a, b, lanes, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, lanes, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})
#endif
typedef uint16_t eight __attribute__((vector_size(16)));
typedef uint32_t four __attribute__((vector_size(16)));
#define LOW_16(a, b)  SHUFFLE(a, b, eight, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_16(a, b) SHUFFLE(a, b, eight, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_32(a, b)  SHUFFLE(a, b, four, 0, 4, 1, 5)
#define HIGH_32(a, b) SHUFFLE(a, b, four, 2, 6, 3, 7)

/* A square of N rows of N values: vector and lane have log2 N bits each as their numbers, and a
 * round moves all of them up by one, the top bit of the vector to the end of the lane. After log2 N
 * rounds they have changed places. */
#define TRANSPOSE(name, number, vector, N, LOW, HIGH)                                              \
    TND_INLINE void name##_square(const uint8_t *rows, size_t row_bytes, uint8_t *out)             \
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
            memcpy(out + (size_t)(i * ROWS) * sizeof(number), &v[i], sizeof(v[i]));                \
        }                                                                                          \
    }                                                                                              \
    static void name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, uint8_t *out)   \
    {                                                                                              \
        const int in_squares = n_rows / (N) * (N);                                                 \
        const int64_t k_squares = k / (N) * (N);                                                   \
        for (int64_t i = 0; i < k_squares; i += (N)) {                                             \
            for (int r = 0; r < in_squares; r += (N)) {                                            \
                name##_square(rows + (size_t)r * row_bytes + (size_t)i * sizeof(number),           \
                              row_bytes, out + (size_t)(i * ROWS + r) * sizeof(number));           \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < n_rows; r++) {                                                         \
            for (int64_t i = r < in_squares ? k_squares : 0; i < k; i++) {                         \
                memcpy(out + (size_t)(i * ROWS + r) * sizeof(number),                              \
                       rows + (size_t)r * row_bytes + (size_t)i * sizeof(number), sizeof(number)); \
            }                                                                                      \
        }                                                                                          \
    }
TRANSPOSE(transpose_16, uint16_t, eight, 8, LOW_16, HIGH_16)
TRANSPOSE(transpose_32, uint32_t, four, 4, LOW_32, HIGH_32)
#undef TRANSPOSE

void tnd_pack_panel_f(enum tandem_type type, const uint8_t *rows, size_t row_bytes, int n_rows,
                      int64_t k, uint8_t *out)
{
    TND_ASSERT(0 < n_rows && n_rows <= ROWS && tandem_type_block_values(type) == 1);
    if (n_rows < ROWS) {
        memset(out, 0, (size_t)k * ROWS * tandem_type_block_bytes(type));
    }
    if (type == TANDEM_TYPE_F32) {
        transpose_32(rows, row_bytes, n_rows, k, out);
    } else {
        transpose_16(rows, row_bytes, n_rows, k, out);
    }
}
