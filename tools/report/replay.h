/* SPDX-License-Identifier: MIT
 * A graph run by a virtual clock: the steps of a plan on their lanes, as sched/run.c would run
 * them, each taking what a table predicts. Works for any table, and so for machines that are not
 * here (stub_backends.h). Runs nothing and touches no tensor's values. */
#ifndef TND_REPLAY_H
#define TND_REPLAY_H

#include "sched/plan.h"
#include "table/tnd_table.h"

enum { TND_REPLAY_LANES = 64, TND_REPLAY_PARTS = 48, TND_REPLAY_NAME = 48 };

/* Who works: workers of the CPU that run steps of one backend together, a device, one direction of
 * its transfers; at last the waking of workers that slept. */
struct tnd_replay_lane {
    char name[TND_REPLAY_NAME]; /* "cpu, 4 threads", "opencl", "opencl upload", "waking" */
    bool is_host;               /* it is worker 0's time */
    int workers;                /* of the CPU; 0: none is needed */
    double busy_us;
    int n_events;
};

struct tnd_replay_event {
    int32_t step; /* index; -1: waking */
    int32_t item; /* of the steps */
    int32_t lane;
    uint8_t stage; /* enum tandem_stage; of waking: of the stage that wakes */
    int32_t cause; /* event whose end let this one begin; -1: nothing */
    double begin_us, end_us;
    double alone_us; /* had no other lane slowed it down */
    bool is_timed;   /* false: the table has no time for it, so it took none */
};

/* A share of the critical path. */
struct tnd_replay_part {
    char name[TND_REPLAY_NAME]; /* of a profile, or of a lane that moves or wakes */
    double us;
    int n_events;
};

struct tnd_replay {
    int n_events;
    struct tnd_replay_event *events; /* in the order of their submission */
    int n_lanes;
    struct tnd_replay_lane lanes[TND_REPLAY_LANES];
    double makespan_us;
    double host_busy_us; /* worker 0 */
    double worker_us;    /* of all workers of the CPU together */
    int n_parts;
    struct tnd_replay_part parts[TND_REPLAY_PARTS]; /* of the critical path, longest first */
    int n_untimed;                                  /* steps without a time */
    int n_untimed_products; /* of plain products among them: the makespan is too short */
};

struct tnd_replay_options {
    const struct tnd_steps *steps; /* of a plan that is still there, tnd_steps_new */
    const struct tnd_registry *registry;
    const struct tandem_table *table;
    double memory_gbps; /* operations that no table times read and write at this rate in GB/s; 0:
                           they take no time */
};

/** The steps of a plan as they are in the second run of the graph: states (KV caches) are where the
 *  first one left them. Columns of weights are gone. `registry` is one of stubs. Ended with
 *  tnd_steps_free, before the plan. Errors: those of tnd_steps_new. */
enum tandem_status tnd_replay_unfold(const struct tandem_graph *graph,
                                     const struct tandem_plan *plan,
                                     const struct tnd_registry *registry,
                                     struct tnd_steps **out_steps, struct tandem_error *error);

/** Runs the steps. The same input gives the same bits. `out` is ended with tnd_replay_fini. Errors:
 *  MEMORY, LIMIT (lanes). */
enum tandem_status tnd_replay(const struct tnd_replay_options *options, struct tnd_replay *out,
                              struct tandem_error *error);
void tnd_replay_fini(struct tnd_replay *replay);

#endif
