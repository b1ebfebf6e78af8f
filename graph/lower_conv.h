/* SPDX-License-Identifier: MIT
 * Shared by the files that lower convolutions of F32 with channels last: the methods in which
 * one may be computed. */
#ifndef TND_LOWER_CONV_H
#define TND_LOWER_CONV_H

#include "graph/lower_internal.h"

/* lower_device.c: sources for devices. Of sums: what tensor 1 of the node holds are the packed
 * weights. */
void tnd_conv_print_sums(struct tnd_lowering *l, const struct tnd_conv *conv, bool by_channel,
                         tandem_tensor *node);
void tnd_conv_print_columns(struct tnd_lowering *l, const struct tnd_conv *conv,
                            tandem_tensor *node);

/* lower_direct.c */
/** Sets `offsets`, for the window as it is now. */
enum tandem_status tnd_conv_find_offsets(struct tnd_lowering *l, struct tnd_conv *conv);
/* It may pad `x`, and make taps side by side one. */
enum tandem_status tnd_lower_conv_direct(struct tnd_lowering *l, struct tnd_conv *conv,
                                         const struct tnd_net_node *node, tandem_tensor *x,
                                         tandem_tensor **out);
/* lower_im2col.c */
enum tandem_status tnd_lower_conv_columns(struct tnd_lowering *l, struct tnd_conv *conv,
                                          tandem_tensor *x, tandem_tensor **out);
/* lower_winograd.c */
bool tnd_conv_may_winograd(const struct tnd_conv *conv);
/** How many times as many multiplications direct sums take, tiles that are not full included; 0
 *  where transformed tiles would go through memory, or the method is none. */
double tnd_conv_winograd_gain(const struct tnd_conv *conv);
enum tandem_status tnd_lower_conv_winograd(struct tnd_lowering *l, const struct tnd_conv *conv,
                                           tandem_tensor *x, tandem_tensor **out);

#endif
