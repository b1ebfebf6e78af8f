/* SPDX-License-Identifier: MIT
 * Shared by the files that build nets. */
#ifndef TND_NET_INTERNAL_H
#define TND_NET_INTERNAL_H

#include "graph/net.h"

/** A value that is no view and that nothing makes yet. */
int tnd_net_new_value(struct tnd_net *net, enum tnd_dtype type, const struct tnd_dims *shape);

/** Frees the arrays that no value has as its known ones any more. False: no memory to find them. */
bool tnd_net_free_unknown(struct tnd_net *net);

#endif
