/* SPDX-License-Identifier: MIT
 * Graphs in the order of their plan, with split products as several nodes, so that residency,
 * transfers, faults and steps treat a part as they treat any node. Of a product Y = X W^T split by
 * rows of W:
 *
 *     part   T = X (rows of W)^T   on the part's backend; W's rows are a shadow (shadows.h)
 *     own    its range of Y        by the node's own choice, in place where it works in host memory
 *     join   columns of Y = T      on the CPU: FINALIZE of the node
 *
 * Split by columns of W, every part reads some columns of X, each T is as large as Y, and joining
 * adds them. The T's of one node lie behind the graph's own intermediate results; all nodes use the
 * same bytes, since each is joined before the next one begins. Nodes that are not split stand in
 * the expanded graph themselves. */
#ifndef TND_EXPAND_H
#define TND_EXPAND_H

#include "sched/plan.h"
#include "sched/shadows.h"

/** Most parts of a node. */
#define TND_MAX_PARTS TND_MAX_SLOTS

/** Memory is kept from one expansion to the next. */
struct tnd_expansion {
    struct tandem_graph graph; /* `source` is what was expanded */
    struct tandem_plan *plan;  /* with items */
    int plan_capacity;
    struct tandem_tensor *tensors; /* made here: parts, joins, views and copies of X */
    int n_tensors;
    void *memory; /* of all arrays */
    size_t memory_bytes;
};

/** Expands a finished graph by a plan for which tnd_plan_is_scheduled, into the memory of
 *  *io_expansion (NULL: none yet). Errors: ARGUMENT (a part that its node does not have; an order
 *  in which a node would run before what it needs or before one whose memory it takes over),
 *  MEMORY, OVERFLOW. */
enum tandem_status tnd_expand(const struct tandem_graph *graph, const struct tandem_plan *plan,
                              const struct tnd_registry *registry, struct tnd_shadows *shadows,
                              struct tnd_mirrors *mirrors, struct tnd_expansion **io_expansion,
                              struct tandem_error *error);
/** tnd_graph_bind of the graph that was expanded and of what was made here. */
void tnd_expansion_bind(struct tnd_expansion *expansion, void *buffer);
void tnd_expansion_free(struct tnd_expansion *expansion);

#endif
