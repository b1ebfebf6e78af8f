/* SPDX-License-Identifier: MIT
 * The latest plans of graphs placed on devices. A graph that is rebuilt for every token has the
 * same plan as long as its operations, shapes and addresses are the same; planning it then costs
 * only a look at each node and a copy of the plan. */
#ifndef TND_PLAN_KNOWN_H
#define TND_PLAN_KNOWN_H

#include "sched/plan.h"

enum { TND_PLANS_KNOWN = 16 };

struct tnd_plan_known {
    struct {
        uint64_t key;
        uint64_t used; /* n_lookups at its last use; 0: empty */
        struct tandem_plan *plan;
    } entries[TND_PLANS_KNOWN];
    uint64_t n_lookups;
};

/** Hash of everything in a graph that its placement depends on, starting with `seed`; 0: the graph
 * contains something that the key cannot express. */
uint64_t tnd_plan_known_key(const struct tandem_graph *graph, uint64_t seed);
/** A copy of the plan stored under `key`; NULL: there is none, or memory is out. */
struct tandem_plan *tnd_plan_known_copy(struct tnd_plan_known *known, uint64_t key, int n_nodes);
/** Stores a copy, replacing the least recently used plan. */
void tnd_plan_known_keep(struct tnd_plan_known *known, uint64_t key,
                         const struct tandem_plan *plan);
/** Removes all plans, after a change of something that they depend on and the key does not contain.
 */
void tnd_plan_known_clear(struct tnd_plan_known *known);

#endif
