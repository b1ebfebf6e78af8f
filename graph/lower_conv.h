/* SPDX-License-Identifier: MIT
 * Shared by the files that lower F32 convolutions with channels last: their methods. */
#ifndef TND_LOWER_CONV_H
#define TND_LOWER_CONV_H

#include "graph/lower_internal.h"

/* lower_device.c: sources for devices. Of sums: tensor 1 of the node holds the packed weights. */
void tnd_conv_print_sums(struct tnd_lowering *l, const struct tnd_conv *conv, bool by_channel,
                         tandem_tensor *node);
void tnd_conv_print_columns(struct tnd_lowering *l, const struct tnd_conv *conv,
                            tandem_tensor *node);

/* lower_direct.c */
/** Sets `offsets` for the current window. */
enum tandem_status tnd_conv_find_offsets(struct tnd_lowering *l, struct tnd_conv *conv);
/** How many times as many products of vectors of 16 direct sums take by panels of filters as with
 *  lanes along the values of a tap, their sums included. */
double tnd_conv_few_gain(const struct tnd_conv *conv);
/* lower_winograd.c */
/** How many times as many multiplications direct sums take, tiles that are not full included; 0
 *  where transformed tiles would go through memory, or the method is none. */
double tnd_conv_winograd_gain(const struct tnd_conv *conv);

/* Two functions of each method, in graph/lower_*.c: whether it can compute a convolution, and how
 * it lowers one to a node. The second may change `conv`, which has not been used by then. */
#define TND_CONV_METHOD_DECLARE(name, text, function)                                              \
    bool tnd_conv_may_##function(const struct tnd_conv *conv, bool for_device);                    \
    enum tandem_status tnd_lower_conv_##function(struct tnd_lowering *l, struct tnd_conv *conv,    \
                                                 const struct tnd_net_node *node,                  \
                                                 tandem_tensor *x, tandem_tensor **out);
TND_CONV_METHOD_LIST(TND_CONV_METHOD_DECLARE)
#undef TND_CONV_METHOD_DECLARE

#endif
