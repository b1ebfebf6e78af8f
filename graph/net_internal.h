/* SPDX-License-Identifier: MIT
 * Shared by the files that build nets. */
#ifndef TND_NET_INTERNAL_H
#define TND_NET_INTERNAL_H

#include "graph/net.h"

/** Adds a value that is neither a view nor computed by a node yet. */
int tnd_net_new_value(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape);

/** The node that computes a value; NULL: a view, or another operation or kind (-1: any). */
static inline const struct tnd_net_node *tnd_net_maker(const struct tnd_net *net, int value,
                                                       enum tnd_net_op op, int kind)
{
    const int at = net->values[value].node;
    const struct tnd_net_node *node = at < 0 ? NULL : &net->nodes[at];
    return node != NULL && node->op == op && (kind < 0 || node->params.kind == kind) ? node : NULL;
}

/** Composes `old`, a view of a dense value, with the view `new` that replaces that value. An offset
 * in the dense value is a sum of coordinates times its strides; the same sum with the strides of
 * `new` is the new offset, as long as every coordinate stays in range for every index: checked with
 * its least and largest sum. False: strides cannot express it. */
bool tnd_net_compose(const struct tnd_net_value *new, const struct tnd_net_value *old,
                     int64_t *offset, int64_t *strides);

/** Computes one node into a new array. `arrays` (NULL: only known values) has the computed ones by
 * value. Errors: ARGUMENT (an index out of range), MEMORY. */
enum tandem_status tnd_net_compute(const struct tnd_net *net, const struct tnd_net_node *node,
                                   struct tnd_array *const *arrays, struct tnd_array **out,
                                   struct tandem_error *error);

/** Whether a constant result is computed only when read: byte weights as int32 take four times the
 * memory, and are usually packed from the bytes. */
static inline bool tnd_net_is_late(enum tnd_net_op op, const struct tnd_net_value *result,
                                   enum tandem_dtype from)
{
    return op == TND_NET_CAST && result->type == TANDEM_DTYPE_I32 &&
           tandem_dtype_bytes(from) == 1 && tnd_dims_values(&result->shape) >= 4096;
}

/** Frees arrays that are no value's `known` any more. False: no memory to find them. */
bool tnd_net_free_unknown(struct tnd_net *net);

#endif
