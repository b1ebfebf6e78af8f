/* SPDX-License-Identifier: MIT
 * The last plans of graphs that were placed on devices. A graph that is rebuilt for every token
 * has the same plan as long as its operations, shapes and places in memory are the same: then
 * planning costs a look at each node and a copy. */
#ifndef TND_PLAN_KNOWN_H
#define TND_PLAN_KNOWN_H

#include "sched/plan.h"

enum { TND_PLANS_KNOWN = 16 };

struct tnd_plan_known {
    struct {
        uint64_t key;
        uint64_t used; /* when, in look-ups; 0: empty */
        struct tandem_plan *plan;
    } entries[TND_PLANS_KNOWN];
    uint64_t n_lookups;
};

/** Key of everything in a graph that its placement depends on, from `seed` on; 0: there is
 *  something that no key holds. */
uint64_t tnd_plan_known_key(const struct tandem_graph *graph, uint64_t seed);
/** A copy of a plan that was kept; NULL: there is none, or no memory. */
struct tandem_plan *tnd_plan_known_copy(struct tnd_plan_known *known, uint64_t key, int n_nodes);
/** Keeps a copy in place of the one that was unused for longest. */
void tnd_plan_known_keep(struct tnd_plan_known *known, uint64_t key,
                         const struct tandem_plan *plan);
/** Forgets all plans: something else has changed by which they were made. */
void tnd_plan_known_clear(struct tnd_plan_known *known);

#endif
