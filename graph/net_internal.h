/* SPDX-License-Identifier: MIT
 * Shared by the files that build nets. */
#ifndef TND_NET_INTERNAL_H
#define TND_NET_INTERNAL_H

#include "graph/net.h"

/** A value that is no view and that nothing makes yet. */
int tnd_net_new_value(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape);

/** The node that makes a value which is no view; NULL where it is of another operation or kind (-1:
 *  any). */
static inline const struct tnd_net_node *tnd_net_maker(const struct tnd_net *net, int value,
                                                       enum tnd_net_op op, int kind)
{
    const int at = net->values[value].node;
    const struct tnd_net_node *node = at < 0 ? NULL : &net->nodes[at];
    return node != NULL && node->op == op && (kind < 0 || node->params.kind == kind) ? node : NULL;
}

/** Composes `old`, a view of a value without gaps, with the view `new` that takes that value's
 *  place. An offset or stride in the old value is a sum of coordinates times its strides; the same
 *  sum times the strides of `new` is the place in that, as long as the coordinates stay inside for
 *  every index: that is checked by their least and largest sums. False: strides cannot say it. */
bool tnd_net_compose(const struct tnd_net_value *new, const struct tnd_net_value *old,
                     int64_t *offset, int64_t *strides);

/** Computes one node into a new array. `arrays` (NULL: known values alone) holds the computed ones
 *  by value. Errors: ARGUMENT (an index out of range), MEMORY. */
enum tandem_status tnd_net_compute(const struct tnd_net *net, const struct tnd_net_node *node,
                                   struct tnd_array *const *arrays, struct tnd_array **out,
                                   struct tandem_error *error);

/** Whether a constant result, of an operand of this type, is computed when somebody reads it:
 *  weights of bytes as int32 take four times the memory, and are mostly packed from the bytes. */
static inline bool tnd_net_is_late(enum tnd_net_op op, const struct tnd_net_value *result,
                                   enum tandem_dtype from)
{
    return op == TND_NET_CAST && result->type == TANDEM_DTYPE_I32 &&
           tandem_dtype_bytes(from) == 1 && tnd_dims_values(&result->shape) >= 4096;
}

/** Frees the arrays that no value has as its known ones any more. False: no memory to find them. */
bool tnd_net_free_unknown(struct tnd_net *net);

#endif
