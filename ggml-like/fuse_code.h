/* SPDX-License-Identifier: MIT
 * What kernels run of a program: codes over a block of F32 that stays in vector registers, the
 * accumulator. Each code combines it with an operand in memory, so a chain only loads its operands
 * and only stores its result. All kernels give the same bits, those of base/lanes_math.h. */
#ifndef TND_FUSE_CODE_H
#define TND_FUSE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-like/array.h"

enum {
    TND_STRIP = 512,       /* most values of a program's register */
    TND_STRIP_LEAST = 128, /* and fewest */
    TND_STRIP_GRAIN = 32,  /* kernels work on multiples of this */
    TND_STRIP_ROWS = 4     /* most rows of a block of a tile */
};

/** X(NAME, of the accumulator `x`) */
#define TND_CODE_UNARY_LIST(X)                                                                     \
    X(NEG, -x)                                                                                     \
    X(ABS, tnd_vec_abs(x))                                                                         \
    X(SIGN, tnd_vec_sign_of(x))                                                                    \
    X(SQRT, tnd_vec_sqrt(x))                                                                       \
    X(RECIPROCAL, 1.0f / x)                                                                        \
    X(HARD_SWISH, tnd_vec_hard_swish(x))                                                           \
    X(FLOOR, tnd_vec_floor(x))                                                                     \
    X(CEIL, tnd_vec_ceil(x))                                                                       \
    X(ROUND, tnd_vec_round(x))                                                                     \
    X(IS_NAN, (tnd_vec)(x != x))
/** X(NAME, of the accumulator `x`): conversions between numbers, masks and 32-bit integers */
#define TND_CODE_MASK_LIST(X)                                                                      \
    X(IS_TRUE, (tnd_vec)(x != 0.0f))                                                               \
    X(INVERT, (tnd_vec)(~(tnd_vec_bits)x))                                                         \
    X(ONE, (tnd_vec)((tnd_vec_bits)x & 0x3f800000u))                                               \
    X(IS_TRUE_I32, (tnd_vec)((tnd_vec_bits)x != 0u))                                               \
    X(ONE_I32, (tnd_vec)((tnd_vec_bits)x & 1u))                                                    \
    X(FROM_I32, __builtin_convertvector((tnd_vec_ints)x, tnd_vec))                                 \
    X(TO_I32, (tnd_vec) __builtin_convertvector(x, tnd_vec_ints))
/** X(NAME, of the accumulator `x` and the operand `y`): the codes that, as HARD_SWISH, matrix and
 * convolution kernels apply before sums leave the registers */
#define TND_CODE_ENDING_LIST(X)                                                                    \
    X(ADD, x + y)                                                                                  \
    X(SUB, x - y)                                                                                  \
    X(MUL, x *y)                                                                                   \
    X(MAX, tnd_vec_max(x, y))                                                                      \
    X(MIN, tnd_vec_min(x, y))
/** X(NAME, of the accumulator `x` and the operand `y`): all */
#define TND_CODE_BINARY_LIST(X)                                                                    \
    TND_CODE_ENDING_LIST(X)                                                                        \
    X(SUB_FROM, y - x)                                                                             \
    X(DIV, x / y)                                                                                  \
    X(DIV_BY, y / x)                                                                               \
    X(MAX_OF, tnd_vec_max(y, x))                                                                   \
    X(MIN_OF, tnd_vec_min(y, x))                                                                   \
    X(EQUAL, (tnd_vec)(x == y))                                                                    \
    X(LESS, (tnd_vec)(x < y))                                                                      \
    X(MORE, (tnd_vec)(x > y))                                                                      \
    X(LESS_EQUAL, (tnd_vec)(x <= y))                                                               \
    X(MORE_EQUAL, (tnd_vec)(x >= y))                                                               \
    X(AND, (tnd_vec)((tnd_vec_bits)x & (tnd_vec_bits)y))                                           \
    X(OR, (tnd_vec)((tnd_vec_bits)x | (tnd_vec_bits)y))                                            \
    X(XOR, (tnd_vec)((tnd_vec_bits)x ^ (tnd_vec_bits)y))                                           \
    X(ADD_I32, (tnd_vec)((tnd_vec_bits)x + (tnd_vec_bits)y))                                       \
    X(SUB_I32, (tnd_vec)((tnd_vec_bits)x - (tnd_vec_bits)y))                                       \
    X(SUB_FROM_I32, (tnd_vec)((tnd_vec_bits)y - (tnd_vec_bits)x))                                  \
    X(MUL_I32, (tnd_vec)((tnd_vec_bits)x * (tnd_vec_bits)y))                                       \
    X(MAX_I32, tnd_vec_select((tnd_vec_bits)((tnd_vec_ints)x > (tnd_vec_ints)y), x, y))            \
    X(MIN_I32, tnd_vec_select((tnd_vec_bits)((tnd_vec_ints)x < (tnd_vec_ints)y), x, y))            \
    X(EQUAL_I32, (tnd_vec)((tnd_vec_ints)x == (tnd_vec_ints)y))                                    \
    X(LESS_I32, (tnd_vec)((tnd_vec_ints)x < (tnd_vec_ints)y))                                      \
    X(MORE_I32, (tnd_vec)((tnd_vec_ints)x > (tnd_vec_ints)y))                                      \
    X(LESS_EQUAL_I32, (tnd_vec)((tnd_vec_ints)x <= (tnd_vec_ints)y))                               \
    X(MORE_EQUAL_I32, (tnd_vec)((tnd_vec_ints)x >= (tnd_vec_ints)y))
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
    TND_CODE_SAVE,   /* stores to register `in` */
    TND_CODE_END,    /* stores the result */
    TND_CODE_SELECT, /* by the accumulator's bits: `in`, or `other` */
    TND_CODE_CALL,   /* calls function `in` */
    TND_CODE_UNARY_LIST(TND_CODE_ENUM) TND_CODE_MASK_LIST(TND_CODE_ENUM)
        TND_CODE_BINARY_LIST(TND_CODE_ENUM) TND_N_CODES
};
/* After the functions: casts of floats to a type whose values floats hold, by enum tandem_dtype. */
enum tnd_strip_function { TND_CODE_FUNCTION_LIST(TND_STRIP_ENUM) TND_N_STRIP_FUNCTIONS };

struct tnd_fuse_code {
    uint8_t op;
    uint8_t in, other; /* registers */
};

/** Whether the kernels that compute sums can apply an operation (TND_CODE_ENDING_LIST). */
bool tnd_code_ends_sums(enum tnd_code_op op);

/** The function for an enum tandem_unary; -1: none. */
int tnd_strip_function_of(int kind);

/** Whether strips of floats can be loaded from a type, stored to it, and cast to its values. */
bool tnd_strip_has_load(enum tandem_dtype type);
bool tnd_strip_has_store(enum tandem_dtype type);
bool tnd_strip_has_cast(enum tandem_dtype type);

#endif
