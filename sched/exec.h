/* SPDX-License-Identifier: MIT
 * Runs the steps of a plan on a pool and on devices. Makes no decision of its own. Executing is
 * re-entrant: several threads may run different graphs on one pool. Buffers (intermediate
 * results, workspace, scratch) are taken from a cache that grows before the run begins; nothing
 * is allocated while steps run. */
#ifndef TND_EXEC_H
#define TND_EXEC_H

#include "base/clock.h"
#include "sched/plan.h"
#include "sched/pool.h"

struct tnd_exec;

/** Measured times of one step: worker 0's clock around its group's barriers; steps that share a
 *  folded group are timed one by one. */
struct tnd_step_time {
    int32_t node;
    uint8_t stage;
    uint8_t backend;
    uint64_t begin_ns;
    uint64_t end_ns;
};

struct tnd_exec_run_options {
    /** Asked between groups by worker 0; true ends the run with CANCELLED. May be NULL. */
    bool (*cancel)(void *user);
    /** Told after groups, by worker 0: nodes finished, nodes in all. May be NULL. */
    void (*progress)(void *user, int n_done, int n_total);
    void *user;
    struct tnd_step_time *times; /* at least n_times entries or NULL; later steps are not kept */
    int n_times;
    int *out_n_times; /* entries filled; may be NULL */
};

enum tandem_status tnd_exec_new(struct tnd_pool *pool, const struct tnd_registry *registry,
                                const struct tnd_clock *clock, struct tnd_exec **out_exec,
                                struct tandem_error *error);
/** No run may be in progress. */
void tnd_exec_free(struct tnd_exec *exec);

/** Runs a finished graph by a plan. On failure outputs are undefined, devices are drained, and
 *  the runtime stays usable. Errors: those of tnd_steps_new, of backends (first one wins),
 *  CANCELLED, MEMORY. */
enum tandem_status tnd_exec_run(struct tnd_exec *exec, struct tandem_graph *graph,
                                const struct tandem_plan *plan,
                                const struct tnd_exec_run_options *options,
                                struct tandem_error *error);
/** Bytes held in the buffer cache. */
size_t tnd_exec_bytes(const struct tnd_exec *exec);

#endif
