/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * Types of values of nets, and kinds of their operations: the types of an array and the functions
 * that tandem/nets.h takes. */
#ifndef TANDEM_NET_LIST_H
#define TANDEM_NET_LIST_H

#include <stddef.h>

#include "tandem/version.h"

TANDEM_BEGIN_C

#define TANDEM_NET_MAX_DIMS   8
#define TANDEM_NET_MAX_WINDOW 3  /**< dimensions that a window moves along */
#define TANDEM_NET_NONE       -1 /**< no value */

/** Types of values. X(NAME, number): numbers are pinned. */
#define TANDEM_DTYPE_LIST(X)                                                                       \
    X(F32, 0)                                                                                      \
    X(F64, 1)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 3)                                                                                     \
    X(I8, 4)                                                                                       \
    X(I16, 5)                                                                                      \
    X(I32, 6)                                                                                      \
    X(I64, 7)                                                                                      \
    X(U8, 8)                                                                                       \
    X(U16, 9)                                                                                      \
    X(U32, 10)                                                                                     \
    X(U64, 11)                                                                                     \
    X(BOOL, 12)       /* a byte, 0 or 1 */                                                         \
    X(F8E4M3FN, 13)   /* a byte: sign, 4 bits of exponent, 3 of mantissa; no infinity */           \
    X(F8E4M3FNUZ, 14) /* like F8E4M3FN without -0, half as large */                                \
    X(F8E5M2, 15)     /* a byte: the upper half of F16 */                                          \
    X(F8E5M2FNUZ, 16) /* like F8E5M2 without -0 and infinity, half as large */                     \
    X(F8E8M0, 17)     /* a byte: 2^(byte - 127), a scale */                                        \
    X(F4E2M1, 18)     /* 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, one a byte */             \
    X(F6E2M3, 19)     /* up to 7.5, one a byte */                                                  \
    X(F6E3M2, 20)     /* up to 28, one a byte */
/** Functions of one value. GELU_TANH is the approximation by tanh; HARD_SWISH is x * min(max(x + 3,
 * 0), 6) / 6; IS_NAN and IS_INF return BOOL; ROUND breaks ties to even. */
#define TANDEM_UNARY_LIST(X)                                                                       \
    X(NEG, 0)                                                                                      \
    X(ABS, 1)                                                                                      \
    X(SIGN, 2)                                                                                     \
    X(EXP, 3)                                                                                      \
    X(LOG, 4)                                                                                      \
    X(SQRT, 5)                                                                                     \
    X(RECIPROCAL, 6)                                                                               \
    X(SIN, 7)                                                                                      \
    X(COS, 8)                                                                                      \
    X(TAN, 9)                                                                                      \
    X(ASIN, 10)                                                                                    \
    X(ACOS, 11)                                                                                    \
    X(ATAN, 12)                                                                                    \
    X(SINH, 13)                                                                                    \
    X(COSH, 14)                                                                                    \
    X(TANH, 15)                                                                                    \
    X(ASINH, 16)                                                                                   \
    X(ACOSH, 17)                                                                                   \
    X(ATANH, 18)                                                                                   \
    X(ERF, 19)                                                                                     \
    X(FLOOR, 20)                                                                                   \
    X(CEIL, 21)                                                                                    \
    X(ROUND, 22)                                                                                   \
    X(NOT, 23)                                                                                     \
    X(IS_NAN, 24)                                                                                  \
    X(IS_INF, 25)                                                                                  \
    X(GELU, 26)                                                                                    \
    X(GELU_TANH, 27)                                                                               \
    X(SILU, 28)                                                                                    \
    X(HARD_SWISH, 29)
/** Functions of two values. MOD has the sign of the divisor, FMOD that of the dividend; MAX and MIN
 * return NaN if one operand is; AND to SHIFT_RIGHT are bitwise; EQUAL, LESS and LESS_EQUAL return
 * BOOL. */
#define TANDEM_BINARY_LIST(X)                                                                      \
    X(ADD, 0)                                                                                      \
    X(SUB, 1)                                                                                      \
    X(MUL, 2)                                                                                      \
    X(DIV, 3)                                                                                      \
    X(POW, 4)                                                                                      \
    X(MOD, 5)                                                                                      \
    X(FMOD, 6)                                                                                     \
    X(MAX, 7)                                                                                      \
    X(MIN, 8)                                                                                      \
    X(AND, 9)                                                                                      \
    X(OR, 10)                                                                                      \
    X(XOR, 11)                                                                                     \
    X(SHIFT_LEFT, 12)                                                                              \
    X(SHIFT_RIGHT, 13)                                                                             \
    X(EQUAL, 14)                                                                                   \
    X(LESS, 15)                                                                                    \
    X(LESS_EQUAL, 16)
#define TANDEM_REDUCE_LIST(X)                                                                      \
    X(SUM, 0)                                                                                      \
    X(PROD, 1)                                                                                     \
    X(MAX, 2)                                                                                      \
    X(MIN, 3)
/** The values used for padding. */
#define TANDEM_PAD_LIST(X)                                                                         \
    X(CONSTANT, 0)                                                                                 \
    X(EDGE, 1)                                                                                     \
    X(REFLECT, 2)                                                                                  \
    X(WRAP, 3)
/** How updates are combined with existing values. */
#define TANDEM_SCATTER_LIST(X)                                                                     \
    X(SET, 0)                                                                                      \
    X(ADD, 1)                                                                                      \
    X(MUL, 2)                                                                                      \
    X(MAX, 3)                                                                                      \
    X(MIN, 4)
/** ARG_MAX: the index in the whole input; SUM is not divided; padding counts as 0. */
#define TANDEM_POOL_LIST(X)                                                                        \
    X(MAX, 0)                                                                                      \
    X(ARG_MAX, 1)                                                                                  \
    X(SUM, 2)
/** LAYER: (x - mean) / sqrt(variance + epsilon); RMS: x / sqrt(mean of squares + epsilon). */
#define TANDEM_NORM_LIST(X)                                                                        \
    X(LAYER, 0)                                                                                    \
    X(RMS, 1)

#define TANDEM_ENUM_DTYPE(name, number)   TANDEM_DTYPE_##name = (number),
#define TANDEM_ENUM_UNARY(name, number)   TANDEM_UNARY_##name = (number),
#define TANDEM_ENUM_BINARY(name, number)  TANDEM_BINARY_##name = (number),
#define TANDEM_ENUM_REDUCE(name, number)  TANDEM_REDUCE_##name = (number),
#define TANDEM_ENUM_PAD(name, number)     TANDEM_PAD_##name = (number),
#define TANDEM_ENUM_SCATTER(name, number) TANDEM_SCATTER_##name = (number),
#define TANDEM_ENUM_POOL(name, number)    TANDEM_POOL_##name = (number),
#define TANDEM_ENUM_NORM(name, number)    TANDEM_NORM_##name = (number),
/** The lists above as enumerations. */
enum tandem_dtype { TANDEM_DTYPE_LIST(TANDEM_ENUM_DTYPE) };
enum tandem_unary { TANDEM_UNARY_LIST(TANDEM_ENUM_UNARY) };
enum tandem_binary { TANDEM_BINARY_LIST(TANDEM_ENUM_BINARY) };
enum tandem_reduce { TANDEM_REDUCE_LIST(TANDEM_ENUM_REDUCE) };
enum tandem_pad { TANDEM_PAD_LIST(TANDEM_ENUM_PAD) };
enum tandem_scatter { TANDEM_SCATTER_LIST(TANDEM_ENUM_SCATTER) };
enum tandem_pool { TANDEM_POOL_LIST(TANDEM_ENUM_POOL) };
enum tandem_norm { TANDEM_NORM_LIST(TANDEM_ENUM_NORM) };
#undef TANDEM_ENUM_DTYPE
#undef TANDEM_ENUM_UNARY
#undef TANDEM_ENUM_BINARY
#undef TANDEM_ENUM_REDUCE
#undef TANDEM_ENUM_PAD
#undef TANDEM_ENUM_SCATTER
#undef TANDEM_ENUM_POOL
#undef TANDEM_ENUM_NORM

/** "float32"; "unknown" for an unknown number. Static storage. Never fails. Any thread. */
TANDEM_API const char *tandem_dtype_name(enum tandem_dtype type);
/** Bytes of a value; 0 for an unknown number. Never fails. Any thread. */
TANDEM_API size_t tandem_dtype_bytes(enum tandem_dtype type);

TANDEM_END_C

#endif
