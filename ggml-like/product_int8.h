/* SPDX-License-Identifier: MIT
 * Products of two computed matrices of 8-bit integers, as in the attention of quantised nets: exact
 * 32-bit sums of (x - zero_x)(w - zero_w), and how the sums become results. Nets lower to this
 * operation (graph/lower_int8.c). Products with constant weights are in conv_int8.h, where weights
 * are packed beforehand. */
#ifndef TND_PRODUCT_INT8_H
#define TND_PRODUCT_INT8_H

#include "ggml-like/conv_int8.h"

/** Layout of a matrix, in bytes: offset in its tensor, and strides between products, rows and
 * columns. Strides are not negative. */
struct tnd_int8_matrix {
    int64_t offset, product, row, column;
};

/** n products of x {rows, K} and w {K, columns}; the result {n, rows, columns} has no gaps. */
struct tnd_product_int8 {
    /* First, so that the node's params are valid as those of a convolution, too: `images` is the
     * number of rows of all products, `channels` is K, `filters` the columns; one group, no
     * window. */
    struct tnd_conv_int8 sums;
    int64_t n;
    struct tnd_int8_matrix x, w; /* x.column: 1 */
    bool w_is_signed;
    int32_t zero_w;    /* if it is known */
    bool has_zeros[2]; /* whether operands hold the zero points of x and of w, in this order */
};

/** Parameters of a node's product. */
static inline const struct tnd_product_int8 *tnd_product_int8_of(const struct tandem_tensor *node)
{
    return (const struct tnd_product_int8 *)node->params.conv_int8;
}

/** The operation. `product` is copied. x, w and the result are tensors of bytes in any type; the
 * result is as many F32 as its bytes need. filters: a struct tnd_int8_filter for each column and
 * for those that pad a panel, without zero_w and sum_w. zero_x and zero_w: one value of the type of
 * x and of w; NULL: those of `product`. Errors: SHAPE, MEMORY. */
tandem_tensor *tnd_build_product_int8(tandem_context *context,
                                      const struct tnd_product_int8 *product, tandem_tensor *x,
                                      tandem_tensor *w, tandem_tensor *filters,
                                      tandem_tensor *zero_x, tandem_tensor *zero_w);

/** Zero points of x and w of a node's product, in the range of their types. */
int32_t tnd_product_int8_zero_x(const struct tandem_tensor *node);
int32_t tnd_product_int8_zero_w(const struct tandem_tensor *node);

#endif
