/* SPDX-License-Identifier: MIT
 * Runs a graph on a virtual clock: the steps of a plan on their lanes, in the order of sched/run.c,
 * each taking its predicted time. Works for any table, and so for machines that are not here
 * (stub_backends.h). Computes nothing and reads no tensor's values. */
#ifndef TND_REPLAY_H
#define TND_REPLAY_H

#include "sched/plan.h"
#include "table/tnd_table.h"

enum { TND_REPLAY_LANES = 64, TND_REPLAY_PARTS = 48, TND_REPLAY_NAME = 48 };

/* A lane: the workers that run steps of one CPU backend together, a device, one direction of its
 * transfers, or the waking of sleeping workers. */
struct tnd_replay_lane {
    char name[TND_REPLAY_NAME]; /* "cpu, 4 threads", "opencl", "opencl upload", "waking" */
    bool is_host;               /* uses worker 0's time */
    int workers;                /* CPU workers; 0: none needed */
    double busy_us;
    int n_events;
};

struct tnd_replay_event {
    int32_t step; /* index of the step; -1: waking */
    int32_t item; /* of the step */
    int32_t lane;
    uint8_t stage; /* enum tandem_stage; for waking: the stage that wakes */
    int32_t cause; /* event whose end this one waited for; -1: none */
    double begin_us, end_us;
    double alone_us; /* duration without slow-down by other lanes */
    bool is_timed;   /* false: the table has no time for it, so it took 0 */
};

/* A share of the critical path. */
struct tnd_replay_part {
    char name[TND_REPLAY_NAME]; /* of a profile, or of the lane of a transfer or wake-up */
    double us;
    int n_events;
};

struct tnd_replay {
    int n_events;
    struct tnd_replay_event *events; /* in the order of their submission */
    int n_lanes;
    struct tnd_replay_lane lanes[TND_REPLAY_LANES];
    double makespan_us;
    double host_busy_us; /* busy time of worker 0 */
    double worker_us;    /* summed over all CPU workers */
    int n_parts;
    struct tnd_replay_part parts[TND_REPLAY_PARTS]; /* of the critical path, longest first */
    int n_untimed;                                  /* steps without a time */
    int n_untimed_products; /* plain products among them: then the makespan is too short */
};

struct tnd_replay_options {
    const struct tnd_steps *steps; /* of a plan that still exists, tnd_steps_new */
    const struct tnd_registry *registry;
    const struct tandem_table *table;
    double memory_gbps; /* rate in GB/s of operations without times; 0: they take no time */
};

/** The steps of a plan as in the second run of the graph: states (KV caches) are where the first
 * run left them. Columns of weights are dropped. `registry` holds stubs. Free with tnd_steps_free,
 * before the plan. Errors: those of tnd_steps_new. */
enum tandem_status tnd_replay_unfold(const struct tandem_graph *graph,
                                     const struct tandem_plan *plan,
                                     const struct tnd_registry *registry,
                                     struct tnd_steps **out_steps, struct tandem_error *error);

/** Runs the steps. Deterministic. End `out` with tnd_replay_fini. Errors: MEMORY, LIMIT (lanes). */
enum tandem_status tnd_replay(const struct tnd_replay_options *options, struct tnd_replay *out,
                              struct tandem_error *error);
void tnd_replay_fini(struct tnd_replay *replay);

#endif
