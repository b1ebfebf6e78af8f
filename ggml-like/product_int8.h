/* SPDX-License-Identifier: MIT
 * Products of two matrices of 8-bit integers that are both computed, as those of attention in
 * quantised nets: exact sums in 32 bits of (x - zero_x)(w - zero_w), and what is made of them.
 * Nets lower to this operation (graph/lower_int8.c). With constant weights they are of
 * conv_int8.h, whose weights are packed beforehand. */
#ifndef TND_PRODUCT_INT8_H
#define TND_PRODUCT_INT8_H

#include "ggml-like/conv_int8.h"

/** Where a matrix lies: bytes from the beginning of its tensor, from one product to the next, and
 *  from one row and one column to the next. Strides are not negative. */
struct tnd_int8_matrix {
    int64_t offset, product, row, column;
};

/** n products of x {rows, K} and w {K, columns}; the result {n, rows, columns} has no gaps. */
struct tnd_product_int8 {
    /* First, so that a node's params are those of a convolution, too: `images` are the rows of all
     * products, `channels` is K, `filters` are columns; one group, no window. */
    struct tnd_conv_int8 sums;
    int64_t n;
    struct tnd_int8_matrix x, w; /* x.column: 1 */
    bool w_is_signed;
    int32_t zero_w;    /* where it is known */
    bool has_zeros[2]; /* zero points of x and of w that operands hold, in this order */
};

/** What a node's product needs beside its operands. */
static inline const struct tnd_product_int8 *tnd_product_int8_of(const struct tandem_tensor *node)
{
    return (const struct tnd_product_int8 *)node->params.conv_int8;
}

/** The operation. `product` is copied. x and w are tensors over bytes, of any type, and so is the
 *  result: as many F32 as hold it. filters: struct tnd_int8_filter of each column, and of those
 *  that fill up a panel, without zero_w and sum_w. zero_x and zero_w: one value of the type of x,
 *  of w; NULL: those of `product`. Errors: SHAPE, MEMORY. */
tandem_tensor *tnd_build_product_int8(tandem_context *context,
                                      const struct tnd_product_int8 *product, tandem_tensor *x,
                                      tandem_tensor *w, tandem_tensor *filters,
                                      tandem_tensor *zero_x, tandem_tensor *zero_w);

/** Zero points of x and w of a node's product, as integers of their types. */
int32_t tnd_product_int8_zero_x(const struct tandem_tensor *node);
int32_t tnd_product_int8_zero_w(const struct tandem_tensor *node);

#endif
