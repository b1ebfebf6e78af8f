/* SPDX-License-Identifier: MIT
 * Between the files of the planner: planner.c keeps what was chosen and makes plans,
 * planner_choose.c chooses for one node. All is called under the planner's lock. */
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
    tnd_refused_fn refused_by; /* NULL: there is room for all weights */
    void *refused_user;
    size_t cache_bytes;
    pthread_mutex_t lock; /* guards everything below; ahead of those of
                             refused_by, never held together with another one */
    const struct tandem_table *table;
    bool has_warm; /* the table knows times of weights that stay in the cache */
    double error_bound;
    int forced;
    uint32_t types_reported; /* bit a type: its absence from the table was logged */
    bool idle_reported;      /* a device that nobody has measured was logged */
    struct tnd_plan_cache memory;
    struct tnd_placement *placement; /* NULL: weights may be anywhere */
    struct tnd_schedule_cache schedules;
    struct tnd_plan_known known;
};

/* One graph that is being planned. */
struct tnd_plan_run {
    struct tnd_planner *planner;
    int n_threads;
    double handoff_us; /* measured between that many threads; 0: unknown */
    bool is_warm;      /* the weights stay in the cache */
    bool is_single;    /* nothing at once: no weights in flight, no schedule */
    int n_devices;
    uint8_t slots[TND_MAX_SLOTS];
    bool is_new;                 /* something was chosen that was not remembered */
    bool is_beyond;              /* for a node's M, too far from the measured ones */
    const tandem_tensor *report; /* a node that the table does not cover, to be told */
    bool is_report_beyond;       /* that is why */
};

/** Bit a slot: devices without room for the weight, or where it is not to be. */
uint32_t tnd_plan_refused(const struct tnd_planner *planner, const tandem_tensor *weight);
/** The problem of a node; for products of experts that of the plain product that stands for them.
 */
void tnd_plan_problem(const struct tnd_planner *planner, const tandem_tensor *node,
                      struct tnd_problem *out);
/** Side at which a choice reads X and leaves the result; 0: host memory. */
int tnd_plan_side(const struct tnd_plan_run *run, const struct tandem_plan_node *node);

/** The best candidate at one side, or among all (TND_PLACE_ANY); a profile of "" when there is
 *  none. `before` (may be NULL): what another table chose. */
void tnd_plan_choose_product(struct tnd_plan_run *run, const tandem_tensor *node, int side,
                             const struct tandem_plan_node *before, struct tnd_place_choice *out);
/** What direct sums take on the CPU, all threads, or on the device in a slot, by the table; false:
 *  the node is another one, or nothing is known. */
bool tnd_plan_conv_time(const struct tnd_plan_run *run, const tandem_tensor *node, int slot,
                        struct tnd_schedule_time *out);
/** Threads of another operation: by the table where it knows the operation, else by the rule.
 *  `incumbent`: what another table chose; 0: nothing. */
void tnd_plan_choose_threads(const struct tnd_plan_run *run, const tandem_tensor *node,
                             int incumbent, struct tandem_plan_node *out);
/** What half of the rows or columns of W take by a choice that the table made for all of them. */
double tnd_plan_half_us(const struct tnd_plan_run *run, const tandem_tensor *node,
                        const struct tnd_place_choice *choice, enum tandem_split split);

#endif
