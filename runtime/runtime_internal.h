/* SPDX-License-Identifier: MIT
 * Inside of a runtime, for runtime.c and those files of this room that watch over it. */
#ifndef TND_RUNTIME_INTERNAL_H
#define TND_RUNTIME_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "measure/probe.h"
#include "runtime/guard.h"
#include "runtime/quota.h"
#include "runtime/tnd_runtime.h"
#include "tune/drift.h"

enum { TND_TABLE_PATH_MAX = 1024 };

/* Comparing run times with predictions. */
struct tnd_watch {
    bool is_off;
    atomic_uint n_runs;
    _Atomic uint64_t computed_ns; /* by all runs */
    atomic_bool is_taken;         /* by a run that is compared: guards the members below */
    struct tnd_step_time *times;
    int n_times;
    uint64_t spent_ns;              /* for comparing */
    uint64_t step_ns;               /* timing one step costs; 0: not measured yet */
    struct tnd_drift_moment moment; /* of the run, as the probe before it told */
    struct tnd_probe_best best;
    tnd_watch_probe_fn probe; /* of tests; NULL: the real one */

    pthread_mutex_t lock; /* guards the members below; taken before the runtime's */
    struct tnd_drift *drift;
    unsigned table_round; /* of the runtime, that the drift is about */
};

struct tandem_runtime {
    struct tnd_log log;
    unsigned fork_generation; /* of the process that opened it */
    const struct tnd_clock *clock;
    struct tnd_topology topology;
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct tnd_planner *planner;
    struct tnd_trace *trace; /* NULL: nobody asked for one */
    struct tnd_watch watch;
    struct tnd_guard guard;
    struct tnd_quota quota;
    _Atomic uint64_t told_slow; /* serial of the graph whose slow nodes were told of last */
    atomic_bool may_tune;       /* TANDEM_TUNE asks for it, and nothing was measured yet */

    char table_path[TND_TABLE_PATH_MAX]; /* written while opening only: programs read it */

    pthread_mutex_t lock; /* guards the members below; never held while planning or computing */
    tandem_table *table;
    tandem_table
        *corrected;       /* what is planned by when cells of `table` were found wrong; or NULL */
    unsigned table_round; /* counts tables */
    enum tandem_objective objective;
    double error_bound;
    bool is_from_file; /* `table` came from table_path, and nobody has replaced it */
    struct tandem_error table_error;
    struct tandem_place_info placed; /* what the planner's placement is about */
    int n_threads;
};

/** Errors: MEMORY. */
enum tandem_status tnd_watch_init(struct tnd_watch *watch, struct tandem_error *error);
void tnd_watch_fini(struct tnd_watch *watch);
/** Index of a profile by name; -1 for NULL. Errors: NOT_FOUND. */
enum tandem_status tnd_runtime_find_profile(const tandem_runtime *runtime, const char *name,
                                            int *out_profile, struct tandem_error *error);
/** tnd_table_update_file; what became of an old file goes to the log. */
enum tandem_status tnd_runtime_update_file(tandem_runtime *runtime, const char *path,
                                           const tandem_table *table, struct tandem_error *error);
/** What is planned by; NULL: nothing. The caller holds `lock` as long as it reads the table: a run
 *  of another thread may replace and free it (tnd_runtime_end_watch). */
const struct tandem_table *tnd_runtime_locked_table(const tandem_runtime *runtime);

#endif
