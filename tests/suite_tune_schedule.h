/* SPDX-License-Identifier: MIT
 * Drawn scheduling problems, for the two suites that run them. */
#ifndef TND_TESTS_SUITE_TUNE_SCHEDULE_H
#define TND_TESTS_SUITE_TUNE_SCHEDULE_H

#include "tests/support.h"
#include "tune/schedule.h"

enum { MOST_NODES = 64, MOST_EDGES = 256, MOST_SIDES = 4, MOST_KINDS = 3, MOST_JOBS = 4096 };

struct drawn {
    struct tnd_schedule_problem problem;
    struct tnd_schedule_side sides[MOST_SIDES];
    struct tnd_schedule_time times[MOST_NODES * MOST_SIDES];
    double bytes[MOST_NODES];
    int32_t first_edge[MOST_NODES + 1];
    struct tnd_schedule_edge edges[MOST_EDGES];
    struct tnd_schedule_split splits[MOST_KINDS];
    int16_t split_of[MOST_NODES];
    float slowdown[MOST_SIDES * MOST_SIDES];
    int n_edges;
    int wanted_sides, wanted_nodes;
    bool has_slowdown, has_splits;
    bool is_equal;   /* two lanes alike, moving costs nothing */
    bool is_layered; /* one node, then six that do not depend on one another, and so on */
};

/** A problem with as many nodes and sides as `d` wants. */
void tune_draw_schedule(struct tnd_test_rng *rng, struct drawn *d);

#endif
