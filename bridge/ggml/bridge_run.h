/* SPDX-License-Identifier: MIT
 * Runs: consecutive nodes of a host graph as one graph of ours. Call everything under the lock of
 * bridge_compute.c. */
#ifndef TND_BRIDGE_RUN_H
#define TND_BRIDGE_RUN_H

#include "bridge/ggml/bridge_nodes.h"
#include "tandem/runtime.h"

enum { TND_RUN_NODES = 48 };

/** Nodes that are gathered for a run, with the buffers of products' weights. */
struct tnd_bridge_batch {
    int n;
    struct tnd_node nodes[TND_RUN_NODES];
    struct ggml_backend_buffer *buffers[TND_RUN_NODES];
};

struct tnd_bridge_run {
    struct tnd_bridge_run *next;
    uint64_t hash; /* tnd_bridge_batch_hash */
    int n;
    struct tnd_node *nodes;
    tandem_context *context;
    tandem_graph *graph;
    tandem_plan *plan;
    bool was_computed;
    int64_t m;     /* tokens of the product that has most */
    double work;   /* weights that are read, or with many tokens, multiplications */
    int32_t **ids; /* dense copies, made for each computation; NULL: a plain product, or the ids of
                    * an earlier product */
};

/** Whether a node can be added: each operand was written either exactly by one node of the batch,
 * or before it, and there is room. */
bool tnd_bridge_batch_takes(const struct tnd_bridge_batch *batch, const struct tnd_node *node);
uint64_t tnd_bridge_batch_hash(const struct tnd_bridge_batch *batch);
bool tnd_bridge_run_is_of(const struct tnd_bridge_run *run, const struct tnd_bridge_batch *batch,
                          uint64_t hash);

/** The planned run of a batch; NULL: *error says why, or memory was short. `on_free` as in
 * tnd_weights_get. */
struct tnd_bridge_run *tnd_bridge_run_new(tandem_runtime *runtime,
                                          const struct tnd_bridge_batch *batch,
                                          void (*on_free)(struct ggml_backend_buffer *buffer),
                                          struct tandem_error *error);
void tnd_bridge_run_free(struct tnd_bridge_run *run);
/** Call before each computation. */
void tnd_bridge_run_copy_ids(struct tnd_bridge_run *run);

#endif
