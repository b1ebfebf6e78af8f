/* SPDX-License-Identifier: MIT
 * Builds the scheduling problem of a graph: times of its nodes on each side, dependencies, bytes,
 * and the table's transfers and slow-downs. Used by place.c; splits are in place_split.c. */
#ifndef TND_PLACE_PROBLEM_H
#define TND_PLACE_PROBLEM_H

#include "sched/residency.h"
#include "tune/place.h"
#include "tune/schedule.h"

/* Where a node of the graph can run. */
struct tnd_place_node {
    uint32_t supported;              /* bit a side: it can run there */
    bool is_product;                 /* a plain product or one of experts: planned by the table */
    float own_share;                 /* of a split node: its own part's share of the whole time */
    float host_us;                   /* of other operations: time on the CPU; 0: unknown */
    struct tnd_place_choice *choice; /* of products, one a side */
};

enum { TND_PLACE_SPLITS = 32 }; /* kinds of products that can be split */

/** Its nodes are: `n_sources` sources that stand for the graph's inputs, the nodes of the graph,
 * and one that reads all results that the host needs in the end. */
struct tnd_place_problem {
    struct tnd_schedule_problem problem;
    int n_sources;
    uint64_t hash[2]; /* of everything that the schedule depends on beside the table */
    struct tnd_schedule_side sides[TND_SCHEDULE_SIDES];
    float slowdown[TND_SCHEDULE_SIDES * TND_SCHEDULE_SIDES];
    struct tnd_schedule_edge *edges;
    int n_edges, edges_capacity;
    void *memory; /* of the other arrays */
    /* kinds that do not gain by a split; stored from the end of `splits` backwards */
    int n_refused;
    /* the only member without an initial value */
    struct tnd_schedule_split splits[TND_PLACE_SPLITS];
};

/** Builds a problem. `residency` is that of the graph, restarted; it is not changed. Free `out`
 * with tnd_place_problem_fini. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_place_problem_init(const struct tnd_place_options *options,
                                          const struct tnd_residency *residency,
                                          const struct tnd_place_node *nodes,
                                          struct tnd_place_problem *out,
                                          struct tandem_error *error);
void tnd_place_problem_fini(struct tnd_place_problem *problem);

/** Finds the node's kind of split, or adds it. Returns its index in `splits`; -1: the node cannot
 * be split, or would not gain by it. Sides and links of the problem are set. */
int tnd_place_split(const struct tnd_place_options *options, int i,
                    const struct tnd_place_node *node, struct tnd_place_problem *problem);

#endif
