/* SPDX-License-Identifier: MIT
 * What kernels run of a program: codes over a block of F32 that stays in vector registers, the
 * accumulator. Each code combines it with an operand in memory, so that of a chain nothing but its
 * operands is loaded and nothing but its result is stored. One kernel an instruction set; all give
 * the same bits. */
#ifndef TND_FUSE_CODE_H
#define TND_FUSE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-like/array.h"

enum {
    TND_STRIP = 128,      /* values of a register of programs */
    TND_STRIP_GRAIN = 32, /* kernels work on multiples of this */
    TND_STRIP_ROWS = 4    /* most of a block of a tile */
};

/** X(NAME, of the accumulator `x`) */
#define TND_CODE_UNARY_LIST(X)                                                                     \
    X(NEG, -x)                                                                                     \
    X(ABS, tnd_vec_abs(x))                                                                         \
    X(SIGN, tnd_vec_sign_of(x))                                                                    \
    X(SQRT, tnd_vec_sqrt(x))                                                                       \
    X(RECIPROCAL, 1.0f / x)                                                                        \
    X(FLOOR, tnd_vec_floor(x))                                                                     \
    X(CEIL, tnd_vec_ceil(x))                                                                       \
    X(ROUND, tnd_vec_round(x))                                                                     \
    X(IS_NAN, (tnd_vec)(x != x))
/** X(NAME, of the accumulator `x`): from numbers to masks, and back */
#define TND_CODE_MASK_LIST(X)                                                                      \
    X(IS_TRUE, (tnd_vec)(x != 0.0f))                                                               \
    X(INVERT, (tnd_vec)(~(tnd_vec_bits)x))                                                         \
    X(ONE, (tnd_vec)((tnd_vec_bits)x & 0x3f800000u))
/** X(NAME, of the accumulator `x` and the operand `y`) */
#define TND_CODE_BINARY_LIST(X)                                                                    \
    X(ADD, x + y)                                                                                  \
    X(SUB, x - y)                                                                                  \
    X(SUB_FROM, y - x)                                                                             \
    X(MUL, x *y)                                                                                   \
    X(DIV, x / y)                                                                                  \
    X(DIV_BY, y / x)                                                                               \
    X(MAX, tnd_vec_max(x, y))                                                                      \
    X(MAX_OF, tnd_vec_max(y, x))                                                                   \
    X(MIN, tnd_vec_min(x, y))                                                                      \
    X(MIN_OF, tnd_vec_min(y, x))                                                                   \
    X(EQUAL, (tnd_vec)(x == y))                                                                    \
    X(LESS, (tnd_vec)(x < y))                                                                      \
    X(MORE, (tnd_vec)(x > y))                                                                      \
    X(LESS_EQUAL, (tnd_vec)(x <= y))                                                               \
    X(MORE_EQUAL, (tnd_vec)(x >= y))                                                               \
    X(AND, (tnd_vec)((tnd_vec_bits)x & (tnd_vec_bits)y))                                           \
    X(OR, (tnd_vec)((tnd_vec_bits)x | (tnd_vec_bits)y))                                            \
    X(XOR, (tnd_vec)((tnd_vec_bits)x ^ (tnd_vec_bits)y))
/** X(NAME, of `x`): longer functions, which go through memory */
#define TND_CODE_FUNCTION_LIST(X)                                                                  \
    X(EXP, tnd_vec_exp(x))                                                                         \
    X(LOG, tnd_vec_log(x))                                                                         \
    X(TANH, tnd_vec_tanh(x))                                                                       \
    X(ERF, tnd_vec_erf(x))                                                                         \
    X(GELU, tnd_vec_gelu(x))                                                                       \
    X(GELU_TANH, tnd_vec_gelu_tanh(x))                                                             \
    X(SILU, tnd_vec_silu(x))

#define TND_CODE_ENUM(name, expression)  TND_CODE_##name,
#define TND_STRIP_ENUM(name, expression) TND_STRIP_##name,
enum tnd_code_op {
    TND_CODE_LOAD,
    TND_CODE_SAVE,   /* to register `in` */
    TND_CODE_END,    /* writes the result */
    TND_CODE_SELECT, /* by the accumulator's bits: `in`, or `other` */
    TND_CODE_CALL,   /* function `in` */
    TND_CODE_UNARY_LIST(TND_CODE_ENUM) TND_CODE_MASK_LIST(TND_CODE_ENUM)
        TND_CODE_BINARY_LIST(TND_CODE_ENUM) TND_N_CODES
};
/* Behind the functions: casts of floats to a type that they can hold, by enum tandem_dtype. */
enum tnd_strip_function { TND_CODE_FUNCTION_LIST(TND_STRIP_ENUM) TND_N_STRIP_FUNCTIONS };

struct tnd_fuse_code {
    uint8_t op;
    uint8_t in, other; /* registers */
};

/** Where the values of a register are: value `i` of a call is from[i & mask], for whole grains. Of
 *  a tile: value `c` of row `r` of a block from row `b` on is from[((b & mask) + r) * row + c]. */
struct tnd_strip_operand {
    float *from;
    int64_t mask;
    int64_t row;
};

struct tnd_strip_call {
    const struct tnd_fuse_code *codes;
    const struct tnd_strip_operand *operands; /* by register */
    float *out;
    int64_t n;    /* a multiple of TND_STRIP_GRAIN; of a tile: rows */
    int64_t line; /* of a tile: values from one row of `out` to the next */
    bool is_half; /* of a tile: rows of one vector */
};

struct tnd_strip_kernel {
    void (*run)(const struct tnd_strip_call *call);
    /* some rows of two vectors each, or of one */
    void (*run_tile)(const struct tnd_strip_call *call);
    int width; /* values of two vectors */
    /* of `n` values, a multiple of TND_STRIP_GRAIN, in place: functions, and behind them the casts
     * to each type; NULL: there is none */
    void (*functions[TND_N_STRIP_FUNCTIONS + TND_N_DTYPES])(float *values, int n);
    /* the largest and the smallest of a row; NaN where one is */
    float (*largest)(const float *values, int64_t n);
    float (*smallest)(const float *values, int64_t n);
    /* adds rows of `n` values, one after the other, to a sum for each column */
    void (*add_rows)(const float *from, int64_t stride, int64_t n_rows, int n, double *sums);
    /* to[i] = table[from[i]], of 256 entries; `to` may be `from` */
    void (*look_up)(const uint8_t *table, const uint8_t *from, uint8_t *to, int64_t n);
    /* values of a type in memory as floats, and floats that are such values back; any `n` */
    void (*load[TND_N_DTYPES])(const void *restrict from, float *restrict to, int64_t n);
    void (*store[TND_N_DTYPES])(const float *restrict from, void *restrict to, int64_t n);
};

/** For any CPU: what it has no function for, no kernel has. */
extern const struct tnd_strip_kernel tnd_strip_scalar;
/** The function of a kind of enum tandem_unary; -1: none. */
int tnd_strip_function_of(int kind);

#endif
