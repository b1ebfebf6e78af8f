/* SPDX-License-Identifier: MIT
 * Between the files of the scheduler: the virtual clock (schedule_run.c) and its short form
 * (schedule_quick.c), list scheduling (schedule_list.c), bounds (schedule_bound.c), moves from
 * there (schedule_moves.c), shares of splits (schedule_shares.c), the choice (schedule.c). */
#ifndef TND_SCHEDULE_INTERNAL_H
#define TND_SCHEDULE_INTERNAL_H

#include "tune/schedule.h"

enum { TND_SCHEDULE_LANES = 3 * TND_SCHEDULE_SIDES - 2 };

struct tnd_shares {
    bool is_useful; /* a split is faster than any one side */
    double us;      /* on idle lanes, X in host memory */
    int64_t rows[TND_SCHEDULE_SIDES];
    float part_us[TND_SCHEDULE_SIDES]; /* of each side, alone */
};

/* Nodes that read a result, without those that share memory only. */
struct tnd_readers {
    int32_t *first; /* n_nodes + 1 */
    int32_t *list;
};

/* A placement that is handed out node by node, without slow-downs; arrays are borrowed. */
struct tnd_moment {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares;
    const struct tnd_readers *readers;
    double now_us; /* the host is free */
    bool slept;    /* workers, while the host waited for a device */
    double lanes[TND_SCHEDULE_LANES];
    double *there; /* [node * n_sides + memory]: when its result is there; negative: never */
    uint8_t *side; /* of all nodes */
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
    const struct tnd_readers *readers;
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

/** Fills in the readers of all nodes; their arrays are given. */
void tnd_schedule_find_readers(const struct tnd_schedule_problem *problem, struct tnd_readers *out);
/** Whether a node runs in a device's memory and another memory needs its result: then it is fetched
 *  right behind the node. */
bool tnd_schedule_is_fetched(const struct tnd_schedule_problem *problem,
                             const struct tnd_readers *readers, const struct tnd_shares *shares,
                             const uint8_t *side, int32_t node);
/** Most jobs that a run can have. */
int64_t tnd_schedule_most_jobs(const struct tnd_schedule_problem *problem);
/** Runs a placement; returns its makespan. The spans are left in `run`. */
double tnd_schedule_run(struct tnd_schedule_run *run);

/* The larger of two numbers, neither of which is NaN: fmax would be a call. */
static inline double tnd_later(double a, double b)
{
    return a > b ? a : b;
}

static inline double tnd_sooner(double a, double b)
{
    return a < b ? a : b;
}

void tnd_schedule_begin(struct tnd_moment *moment);
/** Hands out the next node. */
void tnd_schedule_step(struct tnd_moment *moment, int32_t node, int side);
/** When all that was handed out is over. */
double tnd_schedule_end(const struct tnd_moment *moment);

/* What no placement can be faster than. A node can be on each side, or split: the option behind
 * the sides. Arrays are borrowed from the caller's block. */
struct tnd_bounds {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares;
    bool may_split;
    int n_options;
    float *us;                  /* [node * n_options]; INFINITY: it cannot */
    float *tail_us;             /* the same, to the end of all */
    float *fetch_us, *bring_us; /* [node * n_sides]: its result to the host, and from there */
    double least_us;
};
void tnd_schedule_bound(struct tnd_bounds *bounds);

/* The memory in which an option reads and leaves results. */
static inline int tnd_schedule_option_memory(const struct tnd_bounds *bounds, int option)
{
    const struct tnd_schedule_problem *problem = bounds->problem;
    return option < problem->n_sides && problem->sides[option].own_memory ? option : 0;
}

/* What it takes at least to bring a result from one memory to another. */
static inline float tnd_schedule_bring_us(const struct tnd_bounds *bounds, int node, int from,
                                          int to)
{
    int at = node * bounds->problem->n_sides;
    return from == to ? 0 : bounds->fetch_us[at + from] + bounds->bring_us[at + to];
}

struct tnd_improving {
    const struct tnd_bounds *bounds;
    struct tnd_schedule_run *run;
    struct tnd_moment *moment;
    int64_t n_steps, most_steps; /* nodes that were handed out */
    uint64_t chance;
    bool has_gained;    /* the placement at first, over those without overlaps */
    double us;          /* of the best placement, which is replaced by better ones */
    double base_us;     /* of the best one since moves began, or began anew */
    uint8_t *best_side; /* at first the one that moves are made from */
    int32_t *best_order;
    uint8_t *side;          /* of the one that moves are made from */
    int32_t *order, *place; /* and where each node is in it */
    double *marks;          /* n_nodes * (2 + lanes) */
    double *there;          /* as in a moment */
    int32_t *set_at;        /* place in the order from which on it is there */
};
void tnd_schedule_move(struct tnd_improving *moves);

/** Lane that a side's work or transfer queues up in. */
static inline int tnd_schedule_queue(const struct tnd_schedule_problem *problem, int side,
                                     enum tnd_schedule_kind kind)
{
    return problem->sides[side].in_order ? side : tnd_schedule_lane(problem->n_sides, side, kind);
}

static inline int tnd_schedule_memory(const struct tnd_schedule_problem *problem, int side)
{
    return problem->sides[side].own_memory ? side : 0;
}

static inline const struct tnd_schedule_time *
tnd_schedule_time(const struct tnd_schedule_problem *problem, int node, int side)
{
    return &problem->times[(int64_t)node * problem->n_sides + side];
}

/* Bytes that a side gets of X for a share, and that it brings to the host. */
static inline double tnd_schedule_x_bytes(const struct tnd_schedule_split *split, int64_t rows)
{
    return split->is_sum ? split->x_bytes * (double)rows / (double)split->rows : split->x_bytes;
}

static inline double tnd_schedule_y_bytes(const struct tnd_schedule_split *split, int64_t rows)
{
    return split->is_sum ? split->bytes_per_row : split->bytes_per_row * (double)rows;
}

/** What it takes to put the shares of devices together. */
double tnd_schedule_join_us(const struct tnd_schedule_split *split, int n_sides,
                            const int64_t *rows);
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
    int32_t *by_rank;
    float *begin_us, *end_us; /* of each node */
    float *arrival_us;        /* [node * n_sides + side] */
    uint8_t *side;            /* out */
};

/** Orders nodes by their rank upward. `rank`, `keys`: n_nodes numbers of scratch memory. */
void tnd_schedule_rank(const struct tnd_schedule_problem *problem, float *rank, uint64_t *keys,
                       int32_t *out_by_rank);
/** Orders nodes by the first result of the graph that they lead to: one chain after another. */
void tnd_schedule_by_chain(const struct tnd_schedule_problem *problem, int32_t *chain,
                           uint64_t *keys, int32_t *out_order);
/** Places all nodes; begins, ends and sides are left in `listing`. */
void tnd_schedule_list(struct tnd_listing *listing);

#endif
