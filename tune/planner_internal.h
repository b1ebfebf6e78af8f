/* SPDX-License-Identifier: MIT
 * Shared by the files of the planner: planner.c caches choices and makes plans, planner_choose.c
 * chooses for one node. Call everything with the planner's lock held. */
#ifndef TND_PLANNER_INTERNAL_H
#define TND_PLANNER_INTERNAL_H

#include <pthread.h>

#include "table/problem.h"
#include "tune/plan_cache.h"
#include "tune/plan_known.h"
#include "tune/planner.h"

struct tnd_planner {
    const struct tnd_registry *registry;
    const struct tnd_clock *clock;
    struct tnd_log log;
    int n_cpus;
    int n_cores;
    tnd_candidates_fn candidates;
    tnd_refused_fn refused_by; /* NULL: all devices have room for all weights */
    void *refused_user;
    size_t cache_bytes;
    /* guards everything below; taken before the locks of refused_by, and never with another one */
    pthread_mutex_t lock;
    const struct tandem_table *table;
    bool has_warm; /* the table has times of weights that stay in the cache */
    double error_bound;
    int forced;
    uint32_t types_reported; /* bit a type: logged that the table lacks it */
    bool idle_reported;      /* logged that a device was never measured */
    struct tnd_plan_cache memory;
    struct tnd_placement *placement; /* NULL: weights may be anywhere */
    struct tnd_schedule_cache schedules;
    struct tnd_plan_known known;
};

/* State of planning one graph. */
struct tnd_plan_run {
    struct tnd_planner *planner;
    int n_threads;
    double handoff_us; /* measured between that many threads; 0: unknown */
    bool is_warm;      /* the weights stay in the cache */
    bool is_single;    /* no weights in flight, no schedule */
    int n_devices;
    uint8_t slots[TND_MAX_SLOTS];
    bool is_new;                 /* a choice was not in the cache */
    bool is_beyond;              /* a node's M was too far from the measured ones */
    const tandem_tensor *report; /* a node that the table does not cover, to be logged */
    bool is_report_beyond;       /* because its M is too far from the measured ones */
};

/** Devices (bit a slot) without room for the weight, or not meant to keep it by the placement. */
uint32_t tnd_plan_refused(const struct tnd_planner *planner, const tandem_tensor *weight);
/** The problem of a node; for products of experts the equivalent plain product (experts.h). */
void tnd_plan_problem(const struct tnd_planner *planner, const tandem_tensor *node,
                      struct tnd_problem *out);
/** Side where a choice reads X and leaves its result; 0: host memory. */
int tnd_plan_side(const struct tnd_plan_run *run, const struct tandem_plan_node *node);

/** Finds the best candidate on one side, or on any (TND_PLACE_ANY); a profile of "" if there is
 * none. `before` (may be NULL): the choice made with an earlier table. */
void tnd_plan_choose_product(struct tnd_plan_run *run, const tandem_tensor *node, int side,
                             const struct tandem_plan_node *before, struct tnd_place_choice *out);
/** Time of direct sums (a convolution method) by the table, on all threads of the CPU or on the
 * device in a slot. False if the node is another operation or the time is unknown. */
bool tnd_plan_conv_time(const struct tnd_plan_run *run, const tandem_tensor *node, int slot,
                        struct tnd_schedule_time *out);
/** Chooses the threads of an operation that is no product: by the table if it has times of the
 * operation, else by the rule. `incumbent`: the choice made with an earlier table; 0: none. */
void tnd_plan_choose_threads(const struct tnd_plan_run *run, const tandem_tensor *node,
                             int incumbent, struct tandem_plan_node *out);
/** Time of half of the rows or columns of W with the choice made for all of them. */
double tnd_plan_half_us(const struct tnd_plan_run *run, const tandem_tensor *node,
                        const struct tnd_place_choice *choice, enum tandem_split split);

#endif
