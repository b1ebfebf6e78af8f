/* SPDX-License-Identifier: MIT
 * The host's nodes that the bridge computes: products, and nodes between them. Nodes whose
 * parameters are not known for certain are left to the host. */
#ifndef TND_BRIDGE_NODES_H
#define TND_BRIDGE_NODES_H

#include "bridge/ggml/bridge_product.h"

enum tnd_node_kind {
    TND_NODE_PRODUCT,
    TND_NODE_ADD,
    TND_NODE_MUL,
    TND_NODE_SCALE,
    TND_NODE_RMS_NORM,
    TND_NODE_SILU,
    TND_NODE_GELU,
    TND_NODE_SWIGLU, /* silu(a) * b */
    TND_NODE_GEGLU,  /* gelu(a) * b */
    TND_NODE_ROPE,
    TND_NODE_KINDS
};
enum { TND_NODE_OPERANDS = 3 };

/** A dense tensor in the host's memory. */
struct tnd_node_values {
    int64_t ne[GGML_MAX_DIMS];
    const void *data; /* NULL: no such operand */
};

/** Compared as bytes: has no padding. */
struct tnd_node {
    int64_t kind;               /* enum tnd_node_kind */
    struct tnd_product product; /* of a product; else zeros */
    struct tnd_node_values y;   /* also of a product */
    /* F32: X of a product, or a and b. ROPE: a, positions (I32), factors of the angles. */
    struct tnd_node_values operands[TND_NODE_OPERANDS];
    float number;                /* SCALE: the factor, RMS_NORM: eps */
    float freq_base, freq_scale; /* ROPE */
    int32_t n_rot;
    int64_t is_halves;
};

/** Whether a node computes nothing: views and the like. */
bool tnd_node_is_view(const struct ggml_tensor *node);
/** Reads a node. False: not one that the bridge computes. */
bool tnd_node_read(const struct ggml_tensor *node, struct tnd_node *out);
/** Whether all of its memory is allocated, within buffers in host memory. */
bool tnd_node_is_inside(const struct ggml_tensor *node, const struct tnd_node *known);
size_t tnd_node_values_bytes(const struct tnd_node_values *values);
/** The product that a node's operands come from, possibly through other nodes that the bridge
 * computes; NULL: none nearby. */
const struct ggml_tensor *tnd_node_find_product(const struct ggml_tensor *node);

#endif
