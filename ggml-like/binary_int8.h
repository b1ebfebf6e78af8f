/* SPDX-License-Identifier: MIT
 * Sums and products of two arrays of 8-bit integers that stand for real numbers, as ONNX's
 * QLinearAdd and QLinearMul say it:
 *
 *   y = zero_y + between(round(((a - zero_a) * scale_a OP (b - zero_b) * scale_b) / scale_y))
 *
 * in single precision, each step rounded, to the nearest integer with ties to even. Nets lower to
 * this operation what quantisers write around additions and multiplications
 * (graph/lower_pairs.c). */
#ifndef TND_BINARY_INT8_H
#define TND_BINARY_INT8_H

#include "ggml-like/tnd_tensor.h"

struct tnd_binary_int8 {
    bool is_product; /* else a sum */
    bool a_is_signed, b_is_signed, y_is_signed;
    int32_t zero_a, zero_b, zero_y;
    float scale_a, scale_b;
    bool divides; /* by scale_y; else that is a factor */
    float scale_y;
    float low, high; /* integers: bounds of the rounded number; zero_y + them are in y's type */
    int64_t n;       /* values of a and of y */
    /* Value i of a meets value (i / (row * every)) * row + i % row of b: rows that stand for
     * `every` rows of a each. b as large as a: 1 row of n values. */
    int64_t row, every;
};

/** Whether the parameters are those of the formula: bounds in the type of y, scales far from the
 *  ends of single precision, and a result below 2^21 before it is bounded. */
bool tnd_binary_int8_is_valid(const struct tnd_binary_int8 *op);

/** Puts a factor in place of the division where it gives the same y for all 65,536 pairs, which
 *  are tried. */
void tnd_binary_int8_avoid_division(struct tnd_binary_int8 *op);

/** The operation. `op` is copied. a and b are tensors over bytes, of any type, without gaps. The
 *  result is over bytes, too: as many F32 as hold it. Errors: SHAPE, MEMORY. */
tandem_tensor *tnd_build_binary_int8(tandem_context *context, const struct tnd_binary_int8 *op,
                                     tandem_tensor *a, tandem_tensor *b);

#endif
