/* SPDX-License-Identifier: MIT
 * What the tune tool sees of a runtime: the rooms behind the front door, borrowed. */
#ifndef TND_RUNTIME_H
#define TND_RUNTIME_H

#include "sched/exec.h"
#include "sched/topology.h"
#include "sched/trace.h"
#include "tandem/runtime.h"
#include "tune/planner.h"

struct tnd_runtime_rooms {
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct tnd_planner *planner;
    const struct tnd_clock *clock;
    const struct tnd_topology *topology;
    const struct tandem_table *table; /* in use, or NULL */
    struct tnd_trace *trace;          /* NULL: nobody asked for one */
    const struct tnd_log *log;
};

void tnd_runtime_rooms(tandem_runtime *runtime, struct tnd_runtime_rooms *out);
/** STATE for a graph that is not finished. */
enum tandem_status tnd_runtime_check_graph(const tandem_graph *graph, struct tandem_error *error);
/** Plans by `table` from now on, which the runtime then owns; what is said of its path stays. */
void tnd_runtime_adopt_table(tandem_runtime *runtime, tandem_table *table);
/** The planner chooses anew: a backend has gone out of service. */
void tnd_runtime_forget_choices(tandem_runtime *runtime);

#endif
