/* SPDX-License-Identifier: MIT
 * Fusion: nodes that work row by row, such as a sum, its norm and the norm's weights, run as one
 * step. Each row passes through all of them while it is in the cache, by the same kernels as
 * without fusion: results are bitwise equal. Candidates are found by operands, readers and memory;
 * the backend says which operations it can fuse. */
#ifndef TND_FUSE_H
#define TND_FUSE_H

#include "sched/items.h"

/** Largest distance in the graph between the first and the last of fused nodes. */
#define TND_FUSE_REACH 8

/** Fills `from` and `into` of items that were not checked yet. Only nodes that run whole, in host
 *  memory, on workers of the same backend are fused. The last one represents all of them; no item
 *  in between accesses memory of the earlier ones. */
void tnd_fuse(const struct tandem_graph *graph, const struct tnd_registry *registry,
              struct tnd_items *items);

/** The fused items that end with item `last`, in order; at most TANDEM_FUSED_NODES. */
int tnd_fused_items(const struct tnd_items *items, int last, int *out_items);

/** Whether exactly one other node reads the node's result, so that it need not be stored. */
bool tnd_is_read_once(const struct tandem_tensor *node);

#endif
