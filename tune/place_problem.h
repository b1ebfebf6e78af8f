/* SPDX-License-Identifier: MIT
 * The scheduling problem of a graph: what its nodes cost on each side, what they read and write,
 * what transfers and slow-downs the table knows. For place.c; splits are in place_split.c. */
#ifndef TND_PLACE_PROBLEM_H
#define TND_PLACE_PROBLEM_H

#include "sched/residency.h"
#include "tune/place.h"
#include "tune/schedule.h"

/* A node of the graph, where it can run. */
struct tnd_place_node {
    uint32_t supported; /* bit a side: it can run there */
    bool is_product;    /* plain, or of experts: planned by table */
    float own_share;    /* of a split one: what its own choice takes of the time for all */
    float host_us;      /* of the others, as a whole on the CPU; 0: unknown */
    struct tnd_place_choice *choice; /* of products, one a side */
};

enum { TND_PLACE_SPLITS = 32 }; /* kinds of products that can be split */

/** Problem nodes: `n_sources` that stand for what is given, the nodes of the graph, and one that
 *  reads all results that the host gets in the end. */
struct tnd_place_problem {
    struct tnd_schedule_problem problem;
    int n_sources;
    uint64_t hash[2]; /* of all that differs between two graphs under one table */
    struct tnd_schedule_side sides[TND_SCHEDULE_SIDES];
    float slowdown[TND_SCHEDULE_SIDES * TND_SCHEDULE_SIDES];
    struct tnd_schedule_edge *edges;
    int n_edges, edges_capacity;
    void *memory;  /* of the other arrays */
    int n_refused; /* kinds in which no split pays, from the end of `splits` on */
    struct tnd_schedule_split splits[TND_PLACE_SPLITS]; /* the only member that begins unset */
};

/** `residency` is that of the graph, restarted; it is not changed. Ended with
 *  tnd_place_problem_fini. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_place_problem_init(const struct tnd_place_options *options,
                                          const struct tnd_residency *residency,
                                          const struct tnd_place_node *nodes,
                                          struct tnd_place_problem *out,
                                          struct tandem_error *error);
void tnd_place_problem_fini(struct tnd_place_problem *problem);

/** Which of the kinds of splits the node is, a new one if need be; -1: it can not be split, or
 *  nothing would be gained. Sides and links are described. */
int tnd_place_split(const struct tnd_place_options *options, int i,
                    const struct tnd_place_node *node, struct tnd_place_problem *problem);

#endif
