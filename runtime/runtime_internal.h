/* SPDX-License-Identifier: MIT
 * Internals of a runtime, for runtime.c and the files of this room that observe it. */
#ifndef TND_RUNTIME_INTERNAL_H
#define TND_RUNTIME_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "ggml-like/conv_method.h"
#include "measure/probe.h"
#include "runtime/observer.h"
#include "runtime/quota.h"
#include "runtime/tnd_runtime.h"

enum { TND_TABLE_PATH_MAX = 1024 };

struct tandem_runtime {
    struct tnd_log log;
    unsigned fork_generation; /* of the process that opened it */
    const struct tnd_clock *clock;
    struct tnd_topology topology;
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct tnd_planner *planner;
    struct tnd_trace *trace; /* NULL: not requested */
    struct tnd_observer observer;
    struct tnd_quota quota;
    _Atomic uint64_t told_slow;  /* serial of the graph whose slow nodes were logged last */
    atomic_bool may_tune;        /* TANDEM_TUNE asks for it, and nothing was measured yet */
    atomic_bool packs_gradually; /* as the last tandem_runtime_prepare said */
    atomic_bool may_tune_convs;  /* the same for methods of convolutions */
    struct tandem_chooser chooser;

    char table_path[TND_TABLE_PATH_MAX]; /* written while opening only: programs read it */

    pthread_mutex_t lock; /* guards the members below; never held while planning or computing */
    tandem_table *table;
    tandem_table
        *corrected;       /* what is planned by when cells of `table` were found wrong; or NULL */
    unsigned table_round; /* incremented with each table */
    enum tandem_objective objective;
    double error_bound;
    bool is_from_file; /* `table` came from table_path, and was not replaced */
    struct tandem_error table_error;
    struct tandem_place_info placed; /* what the planner's placement is about */
    int n_threads;
};

/** Index of a profile by name; -1 for NULL. Errors: NOT_FOUND. */
enum tandem_status tnd_runtime_find_profile(const tandem_runtime *runtime, const char *name,
                                            int *out_profile, struct tandem_error *error);
/** tnd_table_update_file; logs what happened to an old file. */
enum tandem_status tnd_runtime_update_file(tandem_runtime *runtime, const char *path,
                                           const tandem_table *table, struct tandem_error *error);
/** The planner's table; NULL: none. The caller must hold `lock` while reading it: a run of another
 * thread may replace and free it (tnd_observer_end). */
const struct tandem_table *tnd_runtime_locked_table(const tandem_runtime *runtime);

#endif
