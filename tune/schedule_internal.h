/* SPDX-License-Identifier: MIT
 * Shared by the files of the scheduler: the virtual clock (schedule_run.c) and its faster form
 * (schedule_quick.c), list scheduling (schedule_list.c), bounds (schedule_bound.c), local search
 * (schedule_moves.c), shares of splits (schedule_shares.c), the choice (schedule.c). */
#ifndef TND_SCHEDULE_INTERNAL_H
#define TND_SCHEDULE_INTERNAL_H

#include "tune/schedule.h"

enum { TND_SCHEDULE_LANES = 3 * TND_SCHEDULE_SIDES - 2 };

struct tnd_shares {
    bool is_useful; /* a split is faster than any single side */
    double us;      /* on idle lanes, X in host memory */
    int64_t rows[TND_SCHEDULE_SIDES];
    float part_us[TND_SCHEDULE_SIDES]; /* of each side, alone */
};

/* Nodes that read each result, without those that only share its memory. */
struct tnd_readers {
    int32_t *first; /* n_nodes + 1 */
    int32_t *list;
};

/* State of handing out a placement node by node, without slow-downs; arrays are borrowed. */
struct tnd_moment {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares;
    const struct tnd_readers *readers;
    double now_us; /* time at which the host is free */
    bool slept;    /* workers slept while the host waited */
    double lanes[TND_SCHEDULE_LANES];
    double *there; /* [node * n_sides + memory]: when its result arrives; negative: never */
    uint8_t *side; /* of each node */
};

/* State of a span during a virtual run. */
struct tnd_schedule_job {
    float alone_us;
    int32_t after; /* transfers: job that must end before; -1: none */
    int32_t next;  /* next job of its lane */
};

/* State of a virtual run; arrays are borrowed from the caller's block. */
struct tnd_schedule_run {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares; /* of each split */
    const struct tnd_readers *readers;
    const uint8_t *side;
    const int32_t *order;
    struct tnd_schedule_span *spans; /* begin_us < 0: not begun; end_us < 0: not ended */
    struct tnd_schedule_job *jobs;   /* of each span */
    /* [node * n_sides + side]: job that computes or moves its result there; -1: none */
    int32_t *at;
    int32_t n_jobs;
    int32_t cause; /* job that the host waited for last */
    double now_us;
    bool slept; /* workers slept while the host waited for a device */
    int n_lanes;
    struct {
        int32_t head, tail; /* -1: idle */
        double rest_us;     /* remaining time of the head, alone */
    } lanes[TND_SCHEDULE_LANES];
};

/** Fills in the readers of all nodes; the arrays of `out` are allocated. */
void tnd_schedule_find_readers(const struct tnd_schedule_problem *problem, struct tnd_readers *out);
/** Whether a node runs in a device's memory and another memory needs its result, which is then
 * downloaded right after the node. */
bool tnd_schedule_is_fetched(const struct tnd_schedule_problem *problem,
                             const struct tnd_readers *readers, const struct tnd_shares *shares,
                             const uint8_t *side, int32_t node);
/** Upper bound of a run's jobs. */
int64_t tnd_schedule_most_jobs(const struct tnd_schedule_problem *problem);
/** Runs a placement and returns its makespan; leaves the spans in `run`. */
double tnd_schedule_run(struct tnd_schedule_run *run);

/* The larger of two numbers other than NaN; fmax would be a function call. */
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
/** Time at which all nodes handed out have ended. */
double tnd_schedule_end(const struct tnd_moment *moment);

/* Lower bounds of all placements. A node's options are the sides it can be on and, after them, the
 * split. Arrays are borrowed from the caller's block. */
struct tnd_bounds {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares;
    bool may_split;
    int n_options;
    float *us;      /* [node * n_options]; INFINITY: not possible */
    float *tail_us; /* the same, from the node's begin to the end of the graph */
    /* [node * n_sides]: time of its result to the host, and from the host */
    float *fetch_us, *bring_us;
    double least_us;
};
void tnd_schedule_bound(struct tnd_bounds *bounds);

/* Memory where an option reads and leaves results. */
static inline int tnd_schedule_option_memory(const struct tnd_bounds *bounds, int option)
{
    const struct tnd_schedule_problem *problem = bounds->problem;
    return option < problem->n_sides && problem->sides[option].own_memory ? option : 0;
}

/* Least time of moving a result from one memory to another. */
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
    int64_t n_steps, most_steps; /* steps: nodes handed out */
    uint64_t chance;
    bool has_gained;    /* the first placement is faster than all without overlaps */
    double us;          /* of the best placement so far */
    double base_us;     /* of the best placement since the search was last (re)started */
    uint8_t *best_side; /* initially the start of the search */
    int32_t *best_order;
    uint8_t *side;          /* of the present placement */
    int32_t *order, *place; /* `place`: index of each node in `order` */
    double *marks;          /* {n_nodes, 2 + lanes}: state of `moment` at each index of `order` */
    double *there;          /* as in struct tnd_moment */
    int32_t *set_at;        /* index in `order` from which on `there` is set */
};
void tnd_schedule_move(struct tnd_improving *moves);

/** Lane in which a side's work or transfer queues up. */
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

/* Bytes of X that a side gets for a share; below: bytes of the result that it sends to the host. */
static inline double tnd_schedule_x_bytes(const struct tnd_schedule_split *split, int64_t rows)
{
    return split->is_sum ? split->x_bytes * (double)rows / (double)split->rows : split->x_bytes;
}

static inline double tnd_schedule_y_bytes(const struct tnd_schedule_split *split, int64_t rows)
{
    return split->is_sum ? split->bytes_per_row : split->bytes_per_row * (double)rows;
}

/** Time of joining the shares of devices. */
double tnd_schedule_join_us(const struct tnd_schedule_split *split, int n_sides,
                            const int64_t *rows);
/** Time of a share of a split node, alone. */
double tnd_schedule_share_us(const struct tnd_schedule_split *split, int side, int64_t rows);
/** Divides the rows so that all sides end at about the same time. */
void tnd_schedule_divide(const struct tnd_schedule_problem *problem,
                         const struct tnd_schedule_split *split, struct tnd_shares *out);

/* State of list scheduling; arrays are borrowed from the caller's block. */
struct tnd_listing {
    const struct tnd_schedule_problem *problem;
    const struct tnd_shares *shares;
    bool may_split;
    bool counts_slowdown; /* slows down every time as if all other sides worked */
    int32_t *by_rank;
    float *begin_us, *end_us; /* of each node */
    float *arrival_us;        /* [node * n_sides + side] */
    uint8_t *side;            /* out */
};

/** Orders nodes by their upward rank. `rank`, `keys`: n_nodes numbers of scratch memory. */
void tnd_schedule_rank(const struct tnd_schedule_problem *problem, float *rank, uint64_t *keys,
                       int32_t *out_by_rank);
/** Orders nodes by the first final result that they lead to: one chain after another. */
void tnd_schedule_by_chain(const struct tnd_schedule_problem *problem, int32_t *chain,
                           uint64_t *keys, int32_t *out_order);
/** Places all nodes; leaves begins, ends and sides in `listing`. */
void tnd_schedule_list(struct tnd_listing *listing);

#endif
