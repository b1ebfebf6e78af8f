/* SPDX-License-Identifier: MIT
 * Concurrent nodes: neighbours in a graph that do not depend on one another, such as the products
 * of queries, keys and values of one layer. Their stages share groups, so that a stage of all of
 * them costs one barrier, and threads that finish one node early go on with the next. Knows no
 * costs. */
#ifndef TND_CONCURRENT_H
#define TND_CONCURRENT_H

#include "sched/items.h"

/** Most concurrent nodes, and so steps of a parallel group. */
#define TND_CONCURRENT_NODES 8

/** Limit for the workspace of all concurrent nodes but the first, in bytes: nodes that run one
 *  after the other share workspace, concurrent ones do not. */
#define TND_CONCURRENT_WORKSPACE ((size_t)8 << 20)

/** End of the concurrent nodes that begin with item `first`: at least first + 1. More nodes are
 *  included when all of them run on workers in host memory, the first one on several, and none
 *  waits for threads of a library or calls functions of the program, which may share any data.
 *  Fused nodes are not included; all but the last of them are skipped. */
int tnd_concurrent_end(const struct tnd_items *items, const struct tnd_registry *registry,
                       int first);

/** Whether INIT of item `a` leaves the same contents in its workspace as that of item `b` would. */
bool tnd_concurrent_shares_init(const struct tnd_registry *registry, const struct tnd_item *a,
                                const struct tnd_item *b);

#endif
