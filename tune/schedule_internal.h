/* SPDX-License-Identifier: MIT
 * Between the files of the scheduler: the virtual clock (schedule_run.c), list scheduling
 * (schedule_list.c), shares of splits (schedule_shares.c), the choice (schedule.c). */
#ifndef TND_SCHEDULE_INTERNAL_H
#define TND_SCHEDULE_INTERNAL_H

#include "tune/schedule.h"

enum { TND_SCHEDULE_LANES = 3 * TND_SCHEDULE_SIDES - 2 };

struct tnd_shares {
    bool is_useful; /* a split is faster than any one side */
    double us;      /* on idle lanes, X in host memory */
    int64_t rows[TND_SCHEDULE_SIDES];
};

/* What a span is while it runs. */
struct tnd_schedule_job {
    float alone_us;
    int32_t after; /* transfers: job that must be over; -1: none */
    int32_t next;  /* in its lane */
};

/* One virtual run; arrays are borrowed from the caller's block. */
struct tnd_schedule_run {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares; /* of each split */
    const uint8_t *side;
    const int32_t *order;
    struct tnd_schedule_span *spans; /* begin_us < 0: not begun; end_us < 0: not over */
    struct tnd_schedule_job *jobs;   /* of each span */
    int32_t *at; /* [node * n_sides + side]: job that makes or brings its result there; -1 */
    int32_t n_jobs;
    int32_t cause; /* job whose end let the host go on last */
    double now_us;
    bool slept; /* workers, while the host waited for a device */
    int n_lanes;
    struct {
        int32_t head, tail; /* -1: idle */
        double rest_us;     /* of the head, alone */
    } lanes[TND_SCHEDULE_LANES];
};

/** Most jobs that a run can have. */
int64_t tnd_schedule_most_jobs(const struct tnd_schedule_problem *problem);
/** Runs a placement; returns its makespan. The spans are left in `run`. */
double tnd_schedule_run(struct tnd_schedule_run *run);

static inline int tnd_schedule_memory(const struct tnd_schedule_problem *problem, int side)
{
    return problem->sides[side].own_memory ? side : 0;
}

static inline const struct tnd_schedule_time *
tnd_schedule_time(const struct tnd_schedule_problem *problem, int node, int side)
{
    return &problem->times[(int64_t)node * problem->n_sides + side];
}

/** Time of a share of a split node, alone. */
double tnd_schedule_share_us(const struct tnd_schedule_split *split, int side, int64_t rows);
/** Divides the rows so that all sides end at about the same time. */
void tnd_schedule_divide(const struct tnd_schedule_problem *problem,
                         const struct tnd_schedule_split *split, struct tnd_shares *out);

/* What list scheduling works with; arrays are borrowed from the caller's block. */
struct tnd_listing {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares;
    bool may_split;
    bool counts_slowdown; /* every time as if all other sides worked */
    const uint8_t *fixed; /* sides that are given; NULL: to be chosen */
    int32_t *by_rank;
    float *begin_us, *end_us; /* of each node */
    float *arrival_us;        /* [node * n_sides + side] */
    uint8_t *side;            /* out */
};

/** Orders nodes by their rank upward; above 0, `variant` changes their times a bit, so that ties
 *  and near ties fall another way. `rank`, `keys`: n_nodes numbers of scratch memory. */
void tnd_schedule_rank(const struct tnd_schedule_problem *problem, uint32_t variant, float *rank,
                       uint64_t *keys, int32_t *out_by_rank);
/** Places all nodes; begins, ends and sides are left in `listing`. */
void tnd_schedule_list(struct tnd_listing *listing);

#endif
