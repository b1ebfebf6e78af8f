/* SPDX-License-Identifier: MIT
 * Sizes of packed weights, and packing: codes come from the decoders of the matrix kernels, which
 * bring them into lanes already; headers are copied from the rows. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/packing/packing.h"
#include "base/tnd_assert.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_grid.h"
#include "ggml-like/tnd_type.h"

enum { LANES = TND_PANEL_ROWS, STEP = 4 * LANES, GROUP = 8 * STEP, MAX_UNIT_VALUES = 256 };

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

/* Codes are packed eight bytes at a time: no code leaves its byte. */
static uint64_t load_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

#define EVERY_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The low `bits` of 8 steps, 64 bytes each, so that a half's steps share vectors. */
static void pack_low_bits(const uint8_t *steps, int bits, uint8_t *out)
{
    int shared = 8 / bits; /* steps a vector */
    int vectors = 4 / shared;
    uint64_t mask = EVERY_BYTE((1u << bits) - 1);
    for (int half = 0; half < 2; half++, steps += 4 * STEP) {
        for (int v = 0; v < vectors; v++, out += STEP) {
            for (int i = 0; i < STEP; i += 8) {
                uint64_t packed = 0;
                for (int s = 0; s < shared; s++) {
                    packed |= (load_word(steps + (s * vectors + v) * STEP + i) & mask) << s * bits;
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
        for (int i = 0; i < GROUP; i += 8) {
            uint64_t word = load_word(steps + i) >> 4 & EVERY_BYTE(15);
            memcpy(upper + i, &word, sizeof(word));
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

/* Numbers of a book back to their places. */
static void find_places(int form, uint8_t *steps, int n)
{
    const uint8_t *codes = tnd_book_codes(form);
    uint8_t place_of[256] = {0};
    for (int i = 15; i >= 0; i--) { /* of two alike the first */
        place_of[codes[i]] = (uint8_t)i;
    }
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

/* Header of one unit for one row; `n` of its values exist. */
static void pack_header(enum tandem_type type, const uint8_t *row, int n, int lane, uint8_t *out)
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
    const struct tnd_quant_code *code = tnd_quant_code(type);
    const size_t block = tnd_type_traits(type)->block_bytes;
    TND_ASSERT(lane >= 0 && lane < LANES && code->is_super == (super_headers[type] != NULL));
    if (code->is_super) {
        super_headers[type](row, lane, out, out + 2 * 2 * LANES + lane);
        return;
    }
    for (int b = 0; b < n / 32; b++) { /* the half d comes first, m behind it */
        if ((code->form & TND_BOOKS) == TND_BOOK_FP4) {
            const uint16_t scale = tnd_e8m0_half(row[(size_t)b * block]);
            copy_half(out, b, lane, &scale);
            continue;
        }
        copy_half(out, b, lane, row + (size_t)b * block);
        if ((code->form & TND_AFFINE) != 0) {
            copy_half(out, 2 + b, lane, row + (size_t)b * block + 2);
        }
    }
}

/* ---- panels ---- */

/* Codes of `n` values (at most a unit) of all rows, step by step. */
static void decode_unit(const struct tnd_kernels_q *kernels, enum tandem_type type,
                        const uint8_t *rows, size_t row_bytes, int n, uint8_t *steps)
{
    _Alignas(64) uint8_t values[LANES * MAX_UNIT_VALUES];
    _Alignas(64) float scales[LANES * MAX_UNIT_VALUES / 16];
    _Alignas(64) float mins[LANES * MAX_UNIT_VALUES / 16];
    const int lanes = kernels->lanes;
    for (int r = 0; r < LANES; r += lanes) {
        uint8_t *to = lanes == LANES ? steps : values;
        kernels->decode[type](rows + (size_t)r * row_bytes, row_bytes, n, to, scales, mins);
        for (int step = 0; step < n / 4 && lanes != LANES; step++) {
            memcpy(steps + step * STEP + 4 * r, values + step * 4 * lanes, (size_t)(4 * lanes));
        }
    }
}

void tnd_pack_panel(const struct tnd_kernels_q *kernels, enum tandem_type type, const uint8_t *rows,
                    size_t row_bytes, int n_rows, int64_t k, uint8_t *out)
{
    _Alignas(64) uint8_t steps[LANES * MAX_UNIT_VALUES];
    uint8_t tail[LANES * 256]; /* a unit of the widest type has 210 bytes */
    const int unit = tnd_packed_unit_values(type);
    const struct tnd_quant_code *code = tnd_quant_code(type);
    const struct tnd_type_traits *traits = tnd_type_traits(type);
    const size_t row_unit = (size_t)(unit / traits->block_values) * traits->block_bytes;
    TND_ASSERT(0 < n_rows && n_rows <= LANES && k % traits->block_values == 0);
    TND_ASSERT(LANES % kernels->lanes == 0 && (uintptr_t)out % 64 == 0);
    for (int64_t k0 = 0; k0 < k; k0 += unit, rows += row_unit) {
        int n = (int)tnd_min(unit, k - k0);
        const uint8_t *from = rows;
        size_t stride = row_bytes;
        memset(out, 0, header_bytes(code));
        for (int r = 0; r < n_rows; r++) {
            pack_header(type, rows + (size_t)r * row_bytes, n, r, out);
        }
        if (n_rows < LANES) {
            size_t bytes = (size_t)(n / traits->block_values) * traits->block_bytes;
            stride = 256;
            memset(tail, 0, sizeof(tail));
            for (int r = 0; r < n_rows; r++) {
                memcpy(tail + (size_t)r * stride, rows + (size_t)r * row_bytes, bytes);
            }
            from = tail;
        }
        memset(steps, 0, sizeof(steps));
        decode_unit(kernels, type, from, stride, n, steps);
        if ((code->form & TND_BOOKS) != 0) {
            find_places(code->form, steps, LANES * n);
        }
        out += header_bytes(code);
        for (int g = 0; g < unit / 32; g++, out += packed_bits(code) * 64) {
            pack_group(steps + g * GROUP, packed_bits(code), out);
        }
    }
}

/* ---- floats ---- */

enum { ROWS = TND_PANEL_F_ROWS };

#define TRANSPOSE(name, number)                                                                    \
    static void name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, uint8_t *out)   \
    {                                                                                              \
        enum { PART = 64 }; /* of K: what is read stays in L1 until it is used */                  \
        for (int64_t k0 = 0; k0 < k; k0 += PART) {                                                 \
            int64_t end = tnd_min(k, k0 + PART);                                                   \
            for (int r = 0; r < n_rows; r++) {                                                     \
                const uint8_t *from = rows + (size_t)r * row_bytes;                                \
                for (int64_t i = k0; i < end; i++) {                                               \
                    memcpy(out + (size_t)(i * ROWS + r) * sizeof(number),                          \
                           from + (size_t)i * sizeof(number), sizeof(number));                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
TRANSPOSE(transpose_16, uint16_t)
TRANSPOSE(transpose_32, uint32_t)
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
