/* SPDX-License-Identifier: MIT
 * Sums and products of two arrays of 8-bit integers that stand for real numbers, as defined by
 * ONNX's QLinearAdd and QLinearMul: y = zero_y + clamp(round(((a - zero_a) * scale_a OP (b -
 * zero_b) * scale_b) / scale_y)) in single precision, each step rounded, and to the nearest integer
 * with ties to even. Nets lower the nodes that quantisers write around additions and
 * multiplications to this operation (graph/lower_pairs.c). */
#ifndef TND_BINARY_INT8_H
#define TND_BINARY_INT8_H

#include "ggml-like/tnd_tensor.h"

struct tnd_binary_int8 {
    bool is_product; /* else a sum */
    bool a_is_signed, b_is_signed, y_is_signed;
    int32_t zero_a, zero_b, zero_y;
    float scale_a, scale_b;
    bool divides; /* by scale_y; else scale_y is a factor */
    float scale_y;
    float low, high; /* integers: bounds of the rounded number; plus zero_y within y's type */
    int64_t n;       /* values of a and of y */
    /* Value i of `a` is combined with value (i / (row * every)) * row + i % row of `b`: a row of
     * `b` serves `every` rows of `a`. When b is as large as a: one row of n values. */
    int64_t row, every;
};

/** Whether the parameters are valid: bounds within the type of y, scales far from the limits of
 * single precision, and a result below 2^21 before it is clamped. */
bool tnd_binary_int8_is_valid(const struct tnd_binary_int8 *op);

/** Replaces the division by a multiplication if that gives the same y for all 65,536 pairs, which
 * are tried. */
void tnd_binary_int8_avoid_division(struct tnd_binary_int8 *op);

/** The operation. `op` is copied. a and b are tensors of bytes in any type, without gaps. The
 * result holds bytes, too: as many F32 as they need. Errors: SHAPE, MEMORY. */
tandem_tensor *tnd_build_binary_int8(tandem_context *context, const struct tnd_binary_int8 *op,
                                     tandem_tensor *a, tandem_tensor *b);

#endif
