/* SPDX-License-Identifier: MIT
 * A matrix product of the host, checked: what is not certain to be one that we can compute is left
 * to the host. */
#ifndef TND_BRIDGE_PRODUCT_H
#define TND_BRIDGE_PRODUCT_H

#include "bridge/ggml/ggml_abi.h"

/** Y = X * W^T: W is N x K, dense; X is M x K and Y is M x N, both F32 and dense. Of experts there
 *  are `n_experts` matrices in W: each of the M tokens has `n_used` rows of Y, and `n_used_x` (as
 *  many, or one for all) of X. Compared as bytes: every byte is set. */
struct tnd_product {
    int64_t type; /* of W: enum tandem_type, the numbers are ggml's */
    int64_t n, k, m;
    int64_t n_experts; /* 0: a plain product, with n_used and n_used_x 1 */
    int64_t n_used, n_used_x;
    const void *w; /* NULL while nothing is allocated */
    const void *x;
    void *y;
    const void *ids;    /* which experts a token uses: n_used numbers of 32 bits; NULL: plain */
    int64_t ids_stride; /* bytes from token to token */
};

/** Whether a name of ggml's is that of a product. */
bool tnd_product_is_named(const char *name);
/** Reads the shape of a node. False: no product of ours (operation, types, strides, views of
 *  weights, broadcasting, a precision or a hint that is asked for, sizes out of bounds). */
bool tnd_product_read(const struct ggml_tensor *node, struct tnd_product *out);
/** The product of one token with a matrix that has its memory. False: no plain product of ours has
 *  such weights. */
bool tnd_product_of_weights(const struct ggml_tensor *w, struct tnd_product *out);
/** Bytes of W, X, Y and the numbers of experts (0: a plain product). */
size_t tnd_product_w_bytes(const struct tnd_product *product);
size_t tnd_product_x_bytes(const struct tnd_product *product);
size_t tnd_product_y_bytes(const struct tnd_product *product);
size_t tnd_product_ids_bytes(const struct tnd_product *product);
/** Whether W lies in host memory as weights, for good: in a buffer of that usage, or in one without
 *  memory, by which loaders ask where weights shall go. */
bool tnd_product_has_weights(const struct ggml_tensor *node);
/** Whether bytes of a tensor, or of what it is a view of, lie inside of its buffer in host
 *  memory. */
bool tnd_lies_in_buffer(const struct ggml_tensor *tensor, const void *data, size_t bytes);
/** Whether all of them are allocated, inside of buffers in host memory. */
bool tnd_product_is_inside(const struct ggml_tensor *node, const struct tnd_product *product);

#endif
