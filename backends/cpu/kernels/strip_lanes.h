/* SPDX-License-Identifier: MIT
 * The kernel of fused programs, written once for every vector width. Included, and so compiled,
 * once per instruction set. */
#ifndef TND_STRIP_LANES_H
#define TND_STRIP_LANES_H

#include "backends/cpu/kernels/strip.h"
#include "backends/cpu/kernels/strip_types.h"
#include "base/lanes_math.h"

/* Vectors that are computed at once: as many as fit into registers beside operands. FEW_VECTORS is
 * for the end of a row. */
enum {
#if defined(__AVX512F__) || defined(__AVX2__)
    MANY_VECTORS = 8,
#else
    MANY_VECTORS = TND_STRIP_GRAIN / TND_VEC_LANES,
#endif
    FEW_VECTORS = TND_STRIP_GRAIN / TND_VEC_LANES,
    MANY_VALUES = MANY_VECTORS * TND_VEC_LANES
};
_Static_assert((int)MANY_VALUES <= (int)TND_STRIP_LEAST, "a block is at most a strip");

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* ---- functions ---- */

#define FUNCTION(name, expression)                                                                 \
    static void run_##name(float *values, int n)                                                   \
    {                                                                                              \
        for (int i = 0; i < n; i += TND_VEC_LANES) {                                               \
            const tnd_vec x = tnd_vec_load(values + i);                                            \
            tnd_vec_store(values + i, expression);                                                 \
        }                                                                                          \
    }
TND_CODE_FUNCTION_LIST(FUNCTION)
#undef FUNCTION

#define FUNCTION(name, expression) run_##name,
static void (*const functions[])(float *values,
                                 int n) = {TND_CODE_FUNCTION_LIST(FUNCTION) TYPES_CAST};

/* ---- blocks ---- */

#define UNARY_CASE(name, expression)                                                               \
    case TND_CODE_##name:                                                                          \
        UNROLL                                                                                     \
        for (int v = 0; v < n_vectors; v++) {                                                      \
            const tnd_vec x = sum[v];                                                              \
            sum[v] = (expression);                                                                 \
        }                                                                                          \
        break;
#define BINARY_CASE(name, expression)                                                              \
    case TND_CODE_##name:                                                                          \
        UNROLL                                                                                     \
        for (int v = 0; v < n_vectors; v++) {                                                      \
            const tnd_vec x = sum[v];                                                              \
            const tnd_vec y = tnd_vec_load(place_of(operand, at, v, of_row));                      \
            sum[v] = (expression);                                                                 \
        }                                                                                          \
        break;
#define EACH_VECTOR                                                                                \
    UNROLL                                                                                         \
    for (int v = 0; v < n_vectors; v++)

/* Address of vector `v` of the block at `at`; `of_row`: vectors per row of a tile, whose first row
 * it is. */
static inline __attribute__((always_inline)) float *
place_of(const struct tnd_strip_operand *operand, int64_t at, int v, const int of_row)
{
    return of_row > 0 ? operand->from + ((at & operand->mask) + v / of_row) * operand->row +
                            v % of_row * TND_VEC_LANES
                      : operand->from + (at & operand->mask) + (int64_t)v * TND_VEC_LANES;
}

/* Runs the codes on the block at `at`, of n_vectors; of_row: vectors per row of a tile, else 0. The
 * first code is a load. */
static inline __attribute__((always_inline)) void
run_block(const struct tnd_strip_call *call, int64_t at, const int n_vectors, const int of_row)
{
    const struct tnd_strip_operand result = {.from = call->out, .mask = -1, .row = call->line};
    tnd_vec sum[MANY_VECTORS];
    EACH_VECTOR
    {
        sum[v] = tnd_vec_load(place_of(&call->operands[call->codes[0].in], at, v, of_row));
    }
    for (const struct tnd_fuse_code *code = call->codes + 1;; code++) {
        const struct tnd_strip_operand *operand = &call->operands[code->in];
        switch ((enum tnd_code_op)code->op) {
        case TND_CODE_LOAD:
            EACH_VECTOR
            {
                sum[v] = tnd_vec_load(place_of(operand, at, v, of_row));
            }
            break;
        case TND_CODE_SAVE:
            EACH_VECTOR
            {
                tnd_vec_store(place_of(operand, at, v, of_row), sum[v]);
            }
            break;
        case TND_CODE_SELECT: {
            const struct tnd_strip_operand *other = &call->operands[code->other];
            EACH_VECTOR
            {
                sum[v] = tnd_vec_select((tnd_vec_bits)sum[v],
                                        tnd_vec_load(place_of(operand, at, v, of_row)),
                                        tnd_vec_load(place_of(other, at, v, of_row)));
            }
            break;
        }
        case TND_CODE_CALL: {
            _Alignas(sizeof(tnd_vec)) float values[MANY_VALUES];
            EACH_VECTOR
            {
                tnd_vec_store(values + v * TND_VEC_LANES, sum[v]);
            }
            functions[code->other](values, n_vectors * TND_VEC_LANES);
            EACH_VECTOR
            {
                sum[v] = tnd_vec_load(values + v * TND_VEC_LANES);
            }
            break;
        }
            TND_CODE_UNARY_LIST(UNARY_CASE)
            TND_CODE_MASK_LIST(UNARY_CASE)
            TND_CODE_BINARY_LIST(BINARY_CASE)
        default: /* TND_CODE_END */
            EACH_VECTOR
            {
                tnd_vec_store(place_of(&result, at, v, of_row), sum[v]);
            }
            return;
        }
    }
}

static void run(const struct tnd_strip_call *call)
{
    int64_t at = 0;
    for (; at + MANY_VALUES <= call->n; at += MANY_VALUES) {
        run_block(call, at, MANY_VECTORS, 0);
    }
    for (; at < call->n; at += TND_STRIP_GRAIN) {
        run_block(call, at, FEW_VECTORS, 0);
    }
}

static void run_tile(const struct tnd_strip_call *call)
{
    int64_t at = 0;
    if (call->is_half) {
        for (; at + TND_STRIP_ROWS <= call->n; at += TND_STRIP_ROWS) {
            run_block(call, at, TND_STRIP_ROWS, 1);
        }
        for (; at < call->n; at++) {
            run_block(call, at, 1, 1);
        }
        return;
    }
    for (; at + TND_STRIP_ROWS <= call->n; at += TND_STRIP_ROWS) {
        run_block(call, at, 2 * TND_STRIP_ROWS, 2);
    }
    for (; at + 2 <= call->n; at += 2) {
        run_block(call, at, 2 * 2, 2);
    }
    if (at < call->n) {
        run_block(call, at, 2, 2);
    }
}

/* ---- rows ---- */

/* Four vectors at once, for independent dependency chains. */
#define EXTREME(name, START, COMBINE)                                                              \
    static float name(const float *values, int64_t n)                                              \
    {                                                                                              \
        enum { AT_ONCE = 4 * TND_VEC_LANES };                                                      \
        _Alignas(sizeof(tnd_vec)) float last[TND_VEC_LANES];                                       \
        tnd_vec part[4] = {tnd_vec_set(START), tnd_vec_set(START), tnd_vec_set(START),             \
                           tnd_vec_set(START)};                                                    \
        float result = (START);                                                                    \
        for (; n >= AT_ONCE; n -= AT_ONCE, values += AT_ONCE) {                                    \
            for (int k = 0; k < 4; k++) {                                                          \
                part[k] = tnd_vec_##COMBINE(part[k], tnd_vec_load(values + k * TND_VEC_LANES));    \
            }                                                                                      \
        }                                                                                          \
        part[0] = tnd_vec_##COMBINE(tnd_vec_##COMBINE(part[0], part[1]),                           \
                                    tnd_vec_##COMBINE(part[2], part[3]));                          \
        tnd_vec_store(last, part[0]);                                                              \
        for (int k = 0; k < TND_VEC_LANES; k++) {                                                  \
            result = TND_ONE_##COMBINE(result, last[k]);                                           \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            result = TND_ONE_##COMBINE(result, values[i]);                                         \
        }                                                                                          \
        return result;                                                                             \
    }
#define TND_ONE_max(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define TND_ONE_min(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
EXTREME(run_largest, -INFINITY, max)
EXTREME(run_smallest, INFINITY, min)

/* ---- bytes ---- */

/* Bytes through a table of 256. A shuffle looks up 16 entries and yields 0 for an index of 128 or
 * more. So 112 is added with saturation, which maps all indices but those of the current 16 entries
 * there, and 16 is subtracted for the next entries. */
#if defined(__AVX512F__)
#define BYTES_OF(name) _mm512_##name
#define BYTES_OR(a, b) _mm512_or_si512(a, b)
#define BYTES_LOAD(at) _mm512_loadu_si512(at)
#define BYTES_16(at)   _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(at)))
#define BYTES_STORE    _mm512_storeu_si512
typedef __m512i tnd_bytes;
#elif defined(__AVX2__)
#define BYTES_OF(name)     _mm256_##name
#define BYTES_OR(a, b)     _mm256_or_si256(a, b)
#define BYTES_LOAD(at)     _mm256_loadu_si256((const void *)(at))
#define BYTES_16(at)       _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(at)))
#define BYTES_STORE(at, v) _mm256_storeu_si256((void *)(at), v)
typedef __m256i tnd_bytes;
#endif

static void run_look_up(const uint8_t *table, const uint8_t *from, uint8_t *to, int64_t n)
{
    int64_t i = 0;
#if defined(__AVX2__)
    tnd_bytes parts[16];
    for (int k = 0; k < 16; k++) {
        parts[k] = BYTES_16(table + 16 * k);
    }
    for (; i + (int64_t)sizeof(tnd_bytes) <= n; i += (int64_t)sizeof(tnd_bytes)) {
        tnd_bytes index = BYTES_LOAD(from + i);
        tnd_bytes sum =
            BYTES_OF(shuffle_epi8)(parts[0], BYTES_OF(adds_epu8)(index, BYTES_OF(set1_epi8)(0x70)));
#pragma GCC unroll 15
        for (int k = 1; k < 16; k++) {
            index = BYTES_OF(sub_epi8)(index, BYTES_OF(set1_epi8)(16));
            sum =
                BYTES_OR(sum, BYTES_OF(shuffle_epi8)(
                                  parts[k], BYTES_OF(adds_epu8)(index, BYTES_OF(set1_epi8)(0x70))));
        }
        BYTES_STORE(to + i, sum);
    }
#elif defined(__aarch64__)
    for (; i + 16 <= n; i += 16) {
        const uint8x16_t index = vld1q_u8(from + i);
        uint8x16_t sum = vqtbl4q_u8(vld1q_u8_x4(table), index);
        for (int k = 1; k < 4; k++) {
            sum = vqtbx4q_u8(sum, vld1q_u8_x4(table + 64 * k),
                             vsubq_u8(index, vdupq_n_u8((uint8_t)(64 * k))));
        }
        vst1q_u8(to + i, sum);
    }
#endif
    for (; i < n; i++) {
        to[i] = table[from[i]];
    }
}

/* Sums of columns in double precision: row by row, so that all instruction sets give the same
 * bits. */
typedef double strip_doubles __attribute__((vector_size(TND_VEC_LANES * sizeof(float))));
typedef float strip_floats __attribute__((vector_size(TND_VEC_LANES / 2 * sizeof(float))));

static inline __attribute__((always_inline)) void
add_columns(const float *from, int64_t stride, int64_t n_rows, const int n_vectors, double *sums)
{
    enum { EACH = TND_VEC_LANES / 2, MOST = 8 };
    strip_doubles sum[MOST];
    memcpy(sum, sums, (size_t)n_vectors * sizeof(sum[0]));
    for (int64_t r = 0; r < n_rows; r++, from += stride) {
        UNROLL
        for (int v = 0; v < n_vectors; v++) {
            strip_floats values;
            memcpy(&values, from + v * EACH, sizeof(values));
            sum[v] += __builtin_convertvector(values, strip_doubles);
        }
    }
    memcpy(sums, sum, (size_t)n_vectors * sizeof(sum[0]));
}

static void run_add_rows(const float *from, int64_t stride, int64_t n_rows, int n, double *sums)
{
    enum { EACH = TND_VEC_LANES / 2 };
    int i = 0;
    for (; i + 8 * EACH <= n; i += 8 * EACH) {
        add_columns(from + i, stride, n_rows, 8, sums + i);
    }
    for (; i + EACH <= n; i += EACH) {
        add_columns(from + i, stride, n_rows, 1, sums + i);
    }
    for (; i < n; i++) {
        for (int64_t r = 0; r < n_rows; r++) {
            sums[i] += (double)from[r * stride + i];
        }
    }
}

#define TND_STRIP_KERNEL                                                                           \
    {                                                                                              \
        run, run_tile, 2 * TND_VEC_LANES, {TND_CODE_FUNCTION_LIST(FUNCTION) TYPES_CAST},           \
            run_largest, run_smallest, run_add_rows, run_look_up, {TYPES_LOAD},                    \
        {                                                                                          \
            TYPES_STORE                                                                            \
        }                                                                                          \
    }

#endif
