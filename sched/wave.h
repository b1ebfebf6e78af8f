/* SPDX-License-Identifier: MIT
 * Waves: neighbours in a graph that do not depend on one another, such as the products of queries,
 * keys and values of one layer. Their stages share groups, so that a stage of all of them costs one
 * barrier, and threads that finish one node early go on with the next. Knows no costs. */
#ifndef TND_WAVE_H
#define TND_WAVE_H

#include "sched/plan.h"

/** Nodes of a wave, and so steps of a parallel group. */
#define TND_WAVE_NODES 8

/** Workspace of the later nodes of a wave together: side by side takes more of it than in turn. */
#define TND_WAVE_WORKSPACE ((size_t)8 << 20)

/** End of the wave that begins at node `first`: at least first + 1. More nodes follow when all of
 *  them run on workers in host memory, the first one on several, and none waits for threads of a
 *  library or calls functions of the program, which may share what they like. Chains of `fused`
 *  stand alone; their nodes but the last are passed over. */
int tnd_wave_end(const struct tandem_graph *graph, const struct tandem_plan *plan,
                 const struct tnd_registry *registry, const struct tnd_fused *fused, int first);

/** Whether INIT of node `a` leaves in its workspace what that of node `b` would. */
bool tnd_wave_shares_init(const struct tandem_graph *graph, const struct tandem_plan *plan,
                          const struct tnd_registry *registry, int a, int b);

#endif
