/* SPDX-License-Identifier: MIT
 * Fusion: nodes that work row by row, such as a sum, its norm and the norm's weights, run as one
 * step. Each row passes through all of them while it is in the cache, by the same kernels as node
 * by node: the same bits. Finds them by operands, readers and memory; the backend says which
 * operations it can fuse. */
#ifndef TND_FUSE_H
#define TND_FUSE_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/profile.h"

/** How far apart the first and the last of fused nodes may stand in the graph. */
#define TND_FUSE_REACH 8

/** A node's place among fused nodes. */
struct tnd_fused {
    int32_t from; /* fused node whose result it reads; -1: it is the first one, or is not fused */
    int32_t into; /* fused node that reads its result; -1: it is the last one, or is not fused */
};

/** Fills out[0 .. n_nodes - 1] for a plan whose nodes were not checked yet. Fused are nodes that
 *  run whole, in host memory, on workers of the same backend. The last one stands for
 *  all of them; no node in between touches what earlier ones do. */
void tnd_fuse(const struct tandem_graph *graph, const struct tandem_plan *plan,
              const struct tnd_registry *registry, struct tnd_fused *out);

/** The fused nodes that end with node `last`, in order; at most TANDEM_FUSED_NODES. */
int tnd_fused_nodes(const struct tnd_fused *fused, int last, int *out_nodes);

/** Whether nobody but one other node reads the node's result: it need not be kept. */
bool tnd_is_read_once(const struct tandem_tensor *node);

#endif
