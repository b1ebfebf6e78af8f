/* SPDX-License-Identifier: MIT
 * One run of a graph from a trace (TANDEM_TRACE, sched/trace.h): what each lane did, what was
 * predicted for it, and the critical path. */
#ifndef TND_TRACE_RUN_H
#define TND_TRACE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

enum { TND_TRACE_NAME = 96, TND_TRACE_LANE = 48, TND_TRACE_LANES = 24 };

struct tnd_trace_event {
    char name[TND_TRACE_NAME]; /* "mul_mat blk.0.attn_q", truncated */
    int lane;
    bool is_predicted;
    bool is_critical;
    double begin_us, end_us; /* since the start of the run */
};

struct tnd_trace_lane {
    char name[TND_TRACE_LANE]; /* "cpu", "opencl", "opencl upload" */
    double busy_us;            /* measured; overlapping steps both count */
    double critical_us;        /* the part on the critical path */
};

struct tnd_trace_run {
    int n;
    struct tnd_trace_event *events; /* measured ones first, then by begin */
    int n_measured;
    int n_lanes;
    struct tnd_trace_lane lanes[TND_TRACE_LANES];
    double took_us;      /* measured makespan */
    double predicted_us; /* 0: the plan has no predicted spans */
    double waiting_us;   /* time on the critical path in which no lane worked */
    int n_critical;
};

/** Parses `n` bytes of a trace; `name` is used in messages. Takes the last run with predicted
 * spans, or else everything measured. Critical path: from the step that ended last back to the one
 * that ended last before it began, and so on. Input is untrusted. End `out` with
 * tnd_trace_run_fini. Errors: FORMAT, LIMIT (more than 4 million steps in a run, or 24 lanes),
 * NOT_FOUND (no steps), MEMORY. */
enum tandem_status tnd_trace_run_read(const char *bytes, size_t n, const char *name,
                                      struct tnd_trace_run *out, struct tandem_error *error);
void tnd_trace_run_fini(struct tnd_trace_run *run);

#endif
