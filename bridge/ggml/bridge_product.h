/* SPDX-License-Identifier: MIT
 * A validated matrix product of the host: products that we may not be able to compute are left to
 * the host. */
#ifndef TND_BRIDGE_PRODUCT_H
#define TND_BRIDGE_PRODUCT_H

#include "bridge/ggml/ggml_abi.h"

/** Y = X * W^T: W is N x K, dense; X is M x K and Y is M x N, both F32 and dense. With experts, W
 * has `n_experts` matrices, and each of the M tokens has `n_used` rows of Y and `n_used_x` of X
 * (equally many, or one for all). Compared as bytes: has no padding. */
struct tnd_product {
    int64_t type; /* of W: enum tandem_type, whose numbers are ggml's */
    int64_t n, k, m;
    int64_t n_experts; /* 0: a plain product, with n_used and n_used_x 1 */
    int64_t n_used, n_used_x;
    const void *w; /* NULL if not allocated yet */
    const void *x;
    void *y;
    const void *ids;    /* experts of each token: n_used 32-bit ids; NULL: plain product */
    int64_t ids_stride; /* bytes between tokens */
};

/** Whether an operation of this name in ggml is a product. */
bool tnd_product_is_named(const char *name);
/** Reads the shape of a node. False: not a supported product (operation, types, strides, views of
 * weights, broadcasting, a requested precision or hint, sizes out of bounds). */
bool tnd_product_read(const struct ggml_tensor *node, struct tnd_product *out);
/** The product of one token with an allocated matrix. False: no supported plain product has such
 * weights. */
bool tnd_product_of_weights(const struct ggml_tensor *w, struct tnd_product *out);
/** Bytes of W, X, Y and the expert ids (0: a plain product). */
size_t tnd_product_w_bytes(const struct tnd_product *product);
size_t tnd_product_x_bytes(const struct tnd_product *product);
size_t tnd_product_y_bytes(const struct tnd_product *product);
size_t tnd_product_ids_bytes(const struct tnd_product *product);
/** Whether W is a weight in host memory: in a buffer with that usage, or in one without memory,
 * with which loaders ask where weights should be allocated. */
bool tnd_product_has_weights(const struct ggml_tensor *node);
/** Whether bytes of a tensor, or of the tensor that it is a view of, are within its buffer in host
 * memory. */
bool tnd_lies_in_buffer(const struct ggml_tensor *tensor, const void *data, size_t bytes);
/** Whether all operands are allocated, within buffers in host memory. */
bool tnd_product_is_inside(const struct ggml_tensor *node, const struct tnd_product *product);

#endif
