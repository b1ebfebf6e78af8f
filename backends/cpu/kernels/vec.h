/* SPDX-License-Identifier: MIT
 * Kernels over rows of floats, for the drivers cpu_*.c: a struct of function pointers, filled with
 * plain C versions first, then by each instruction set that the CPU supports. All accept any n >= 0
 * and any alignment; value i of a result never depends on n or on its position in a vector. */
#ifndef TND_VEC_H
#define TND_VEC_H

#include <stdint.h>

#include "tandem/ops.h"

/** y[i] = a[i] op b[i]; `y` may be `a` or `b`. */
typedef void tnd_vec_binary_fn(const float *a, const float *b, float *y, int64_t n);
/** y[i] = f(a[i]); `y` may be `a`. */
typedef void tnd_vec_unary_fn(const float *a, float *y, int64_t n);

struct tnd_vec {
    const char *isa;
    tnd_vec_binary_fn *binary[TANDEM_OP_COUNT]; /* of ADD, SUB, MUL, DIV */
    /** SQR, SQRT, RELU are exact; SILU, SIGMOID, TANH and GELU within 4 units in the last place of
     * the plain functions; GELU_ERF within 2e-7 |x|. */
    tnd_vec_unary_fn *unary[TANDEM_OP_COUNT];
    tnd_vec_unary_fn *exp; /* within 2 units in the last place */
    /** y = (a - shift) * factor; `y` may be `a`. */
    void (*affine)(const float *a, float shift, float factor, float *y, int64_t n);
    /** y = min(max(a, low), high), NaN stays NaN; `y` may be `a`. */
    void (*clamp)(const float *a, float low, float high, float *y, int64_t n);
    double (*sum)(const float *a, int64_t n);
    /** Sum of (a - shift)^2. */
    double (*sum_squares)(const float *a, float shift, int64_t n);
    /** y = a * scale + mask (`mask` may be NULL); returns the largest y that is not NaN, else
     * -inf. */
    float (*scores)(const float *a, const float *mask, float scale, float *y, int64_t n);
    /** y = exp(y - largest); returns the sum. */
    double (*exp_sum)(float *y, float largest, int64_t n);
    /** Rotates pairs (a[2i], a[2i+1]). cosines: c0 c0 c1 c1 ...; sines: -s0 s0 -s1 s1 ...; n
     * values. */
    void (*rope_adjacent)(const float *a, const float *cosines, const float *sines, float *y,
                          int64_t n);
    /** Rotates pairs (a[i], a[i + n]) with c0 c1 ... and s0 s1 ...; n pairs. */
    void (*rope_halves)(const float *a, const float *cosines, const float *sines, float *y,
                        int64_t n);
    /** y[i] += sum over j, in this order, of p[j] * rows[j * stride + i]. */
    void (*add_rows)(const float *p, const float *rows, int64_t stride, float *y, int64_t n_rows,
                     int64_t n);
};

#endif
