/* SPDX-License-Identifier: MIT
 * Formulas of floating-point functions: the reference computes them, and generated kernels contain
 * them as text. `suffix` is f for float and empty for double. */
#ifndef TND_SCALAR_LIST_H
#define TND_SCALAR_LIST_H

/* constants of gelu as double and float */
#define SQRT1_2    0.70710678118654752440
#define SQRT1_2f   0.70710678118654752440f
#define SQRT_2_PI  0.79788456080286535588
#define SQRT_2_PIf 0.79788456080286535588f
#define GELU_CUBE  0.044715
#define GELU_CUBEf 0.044715f

/** X(kind, function of `v`) */
#define TND_UNARY_FLOAT_LIST(X, suffix)                                                            \
    X(TANDEM_UNARY_NEG, -v)                                                                        \
    X(TANDEM_UNARY_ABS, fabs##suffix(v))                                                           \
    X(TANDEM_UNARY_SIGN, (v > 0) ? 1 : (v < 0) ? -1 : v)                                           \
    X(TANDEM_UNARY_EXP, exp##suffix(v))                                                            \
    X(TANDEM_UNARY_LOG, log##suffix(v))                                                            \
    X(TANDEM_UNARY_SQRT, sqrt##suffix(v))                                                          \
    X(TANDEM_UNARY_RECIPROCAL, 1 / v)                                                              \
    X(TANDEM_UNARY_SIN, sin##suffix(v))                                                            \
    X(TANDEM_UNARY_COS, cos##suffix(v))                                                            \
    X(TANDEM_UNARY_TAN, tan##suffix(v))                                                            \
    X(TANDEM_UNARY_ASIN, asin##suffix(v))                                                          \
    X(TANDEM_UNARY_ACOS, acos##suffix(v))                                                          \
    X(TANDEM_UNARY_ATAN, atan##suffix(v))                                                          \
    X(TANDEM_UNARY_SINH, sinh##suffix(v))                                                          \
    X(TANDEM_UNARY_COSH, cosh##suffix(v))                                                          \
    X(TANDEM_UNARY_TANH, tanh##suffix(v))                                                          \
    X(TANDEM_UNARY_ASINH, asinh##suffix(v))                                                        \
    X(TANDEM_UNARY_ACOSH, acosh##suffix(v))                                                        \
    X(TANDEM_UNARY_ATANH, atanh##suffix(v))                                                        \
    X(TANDEM_UNARY_ERF, erf##suffix(v))                                                            \
    X(TANDEM_UNARY_FLOOR, floor##suffix(v))                                                        \
    X(TANDEM_UNARY_CEIL, ceil##suffix(v))                                                          \
    X(TANDEM_UNARY_ROUND, nearbyint##suffix(v))                                                    \
    X(TANDEM_UNARY_NOT, v == 0)                                                                    \
    X(TANDEM_UNARY_IS_NAN, isnan(v) ? 1 : 0)                                                       \
    X(TANDEM_UNARY_IS_INF, isinf(v) ? (v > 0 ? 1 : -1) : 0)                                        \
    X(TANDEM_UNARY_GELU, v / 2 * (1 + erf##suffix(v * SQRT1_2##suffix)))                           \
    X(TANDEM_UNARY_GELU_TANH,                                                                      \
      v / 2 * (1 + tanh##suffix(SQRT_2_PI##suffix * (v + GELU_CUBE##suffix * v * v * v))))         \
    X(TANDEM_UNARY_SILU, v / (1 + exp##suffix(-v)))                                                \
    X(TANDEM_UNARY_HARD_SWISH,                                                                     \
      v *((v + 3 > 0 ? v + 3 < 6 ? v + 3 : 6 : 0) * 0.16666666666666666667##suffix))

/** X(kind, function of `a` and `b`). POW must have the bits of the operations that passes replace
 * it by. */
#define TND_BINARY_FLOAT_LIST(X, suffix)                                                           \
    X(TANDEM_BINARY_ADD, a + b)                                                                    \
    X(TANDEM_BINARY_SUB, a - b)                                                                    \
    X(TANDEM_BINARY_MUL, a *b)                                                                     \
    X(TANDEM_BINARY_DIV, a / b)                                                                    \
    X(TANDEM_BINARY_POW, b == 2                      ? a * a                                       \
                         : b == -1                   ? 1 / a                                       \
                         : b == 0.5##suffix && a > 0 ? sqrt##suffix(a)                             \
                                                     : pow##suffix(a, b))                          \
    X(TANDEM_BINARY_FMOD, fmod##suffix(a, b))                                                      \
    X(TANDEM_BINARY_MOD, floor_mod##suffix(a, b))                                                  \
    X(TANDEM_BINARY_MAX, isnan(a) || a > b ? a : b)                                                \
    X(TANDEM_BINARY_MIN, isnan(a) || a < b ? a : b)

#endif
