/* SPDX-License-Identifier: MIT
 * A runtime's parts, for the tune tool; borrowed. */
#ifndef TND_RUNTIME_H
#define TND_RUNTIME_H

#include "sched/exec.h"
#include "sched/topology.h"
#include "sched/trace.h"
#include "tandem/runtime.h"
#include "tune/fit_model.h"
#include "tune/planner.h"

struct tnd_runtime_parts {
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct tnd_planner *planner;
    const struct tnd_clock *clock;
    const struct tnd_topology *topology;
    double error_bound;
    struct tnd_trace *trace; /* NULL: not requested */
    const struct tnd_log *log;
};

/** A probe for tests: its time relative to the best, on the caller and on the team. */
typedef void (*tnd_watch_probe_fn)(double *out_caller, double *out_team);

void tnd_runtime_parts(tandem_runtime *runtime, struct tnd_runtime_parts *out);
/** Most threads that a plan of the graph may have now, given what other programs use. */
int tnd_runtime_graph_threads(const tandem_runtime *runtime, const tandem_graph *graph);
/** For tests: another probe, NULL: the real one. No run may be in progress. */
void tnd_runtime_set_probe(tandem_runtime *runtime, tnd_watch_probe_fn probe);
/** For tests: sets another clock and control group. */
void tnd_runtime_set_quota_files(tandem_runtime *runtime, const char *root, const char *self,
                                 const struct tnd_clock *clock);
/** Copies the table in use; the caller owns the copy. NULL: none. Errors: MEMORY. */
enum tandem_status tnd_runtime_copy_table(tandem_runtime *runtime, tandem_table **out_table,
                                          struct tandem_error *error);
/** Fills in a runtime's devices with their own memory: names, slots, and memory for weights; keeps
 * memory[side] unless 0. 0 afterwards: unknown. */
void tnd_runtime_fit_devices(const struct tnd_runtime_parts *parts,
                             struct tnd_fit_options *io_options, uint8_t out_slots[TND_MAX_SLOTS]);
/** Checks that a public call may use the runtime. Errors: ARGUMENT for NULL, STATE in a child of
 * the process that opened it, where locks may be held by threads that do not exist. */
enum tandem_status tnd_runtime_check(const tandem_runtime *runtime, const char *call,
                                     struct tandem_error *error);
/** STATE for a graph that is not finished. */
enum tandem_status tnd_runtime_check_graph(const tandem_graph *graph, struct tandem_error *error);
/** Plans by `table` from now on and takes ownership of it; its path stays. */
void tnd_runtime_adopt_table(tandem_runtime *runtime, tandem_table *table);
/** Clears the planner's choices, since a backend has gone out of service. */
void tnd_runtime_forget_choices(tandem_runtime *runtime);

#endif
