/* SPDX-License-Identifier: MIT
 * Fusion: nodes that work row by row, such as a sum, its norm and the norm's weights, run as one
 * step. Each row passes through all of them while it is in the cache, by the same kernels as node
 * by node: the same bits. Finds them by operands, readers and memory; the backend says which
 * operations it can fuse. */
#ifndef TND_FUSE_H
#define TND_FUSE_H

#include "sched/items.h"

/** How far apart the first and the last of fused nodes may stand in the graph. */
#define TND_FUSE_REACH 8

/** Fills `from` and `into` of items that were not checked yet. Fused are nodes that run whole, in
 *  host memory, on workers of the same backend. The last one stands for all of them; no item in
 *  between touches what earlier ones do. */
void tnd_fuse(const struct tandem_graph *graph, const struct tnd_registry *registry,
              struct tnd_items *items);

/** The fused items that end with item `last`, in order; at most TANDEM_FUSED_NODES. */
int tnd_fused_items(const struct tnd_items *items, int last, int *out_items);

/** Whether nobody but one other node reads the node's result: it need not be kept. */
bool tnd_is_read_once(const struct tandem_tensor *node);

#endif
