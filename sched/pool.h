/* SPDX-License-Identifier: MIT
 * Worker threads. The caller of tnd_pool_run is worker 0; the others spin for a bounded time
 * waiting for work, then park. Several threads may call tnd_pool_run on one pool: runs with more
 * than one worker are served in the order of the calls, runs with one worker do not use the pool. A
 * process that forks must not use the parent's pools in the child. */
#ifndef TND_POOL_H
#define TND_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sched/park.h"
#include "backends/chunks.h"
#include "sched/topology.h"
#include "tandem/status.h"

struct tnd_pool;

struct tnd_pool_options {
    int n_threads; /* most workers of a run, the caller included; threads start when first needed */
    int n_cpus;    /* usable CPUs: with more threads than these, waiters yield early */
    int64_t spin_limit; /* polls before parking; < 0: default */
    const int *cpu_ids; /* worker i is bound to cpu_ids[i % n_cpu_ids]; NULL: not bound */
    int n_cpu_ids;
    const struct tnd_topology *topology; /* with several NUMA nodes, workers are spread over them in
                                          * proportion to their CPUs; copied. NULL: one node */
    int nice; /* niceness added to the workers (not to callers); 0: none */
    /** Runs `body` on threads of the program, see tandem_team_fn; NULL: no. With a team the pool
     *  starts no threads. */
    bool (*team)(void *user, int count, void (*body)(void *data, int index, int count), void *data);
    void *team_user;
    /** Starts a thread; NULL: pthread_create. Tests let it fail. */
    int (*start_thread)(pthread_t *out_thread, const pthread_attr_t *attributes,
                        void *(*fn)(void *), void *user);
};

enum { TND_POOL_MAX_THREADS = 1024 };

/** Work of one worker: `index` 0..count-1. */
typedef void (*tnd_pool_fn)(void *user, int index, int count);

enum tandem_status tnd_pool_new(const struct tnd_pool_options *options, struct tnd_pool **out_pool,
                                struct tandem_error *error);
/** Waits for a run in progress, ends the threads. NULL allowed. */
void tnd_pool_free(struct tnd_pool *pool);

/** Runs fn on `count` workers at once and returns when all have returned. count is limited to the
 *  pool's size: fn receives the real one. When a thread cannot be started, runs on those that
 *  exist, never fewer than the caller itself, and returns OK; the shortfall is counted in the
 *  statistics. Called from inside a run of any pool, fn runs alone on the calling thread. */
enum tandem_status tnd_pool_run(struct tnd_pool *pool, int count, tnd_pool_fn fn, void *user);

/** How workers of a run with `count` workers wait for each other. */
struct tnd_spin tnd_pool_spin(const struct tnd_pool *pool, int count);
/** Between park_begin and park_end, idle workers sleep at once instead of spinning; nests. For
 *  stages that need the CPUs for themselves. */
void tnd_pool_park_begin(struct tnd_pool *pool);
void tnd_pool_park_end(struct tnd_pool *pool);
/** Hint that idle workers may be needed at `expected_ns` of the monotonic clock and not before:
 *  they sleep until shortly before it, then spin as long as after a run. 0: unknown. The last call
 *  wins. */
void tnd_pool_expect(struct tnd_pool *pool, uint64_t expected_ns);
/** How long before its work a thread must be woken; measured by the pool's sleepers. */
uint64_t tnd_pool_wake_ns(const struct tnd_pool *pool);
/** Counters of parks in runs of this pool. */
struct tnd_park_counts *tnd_pool_park_counts(struct tnd_pool *pool);

/** Most workers of later runs; waits for a run in progress. Surplus threads end. Not from inside
 *  a run (BUSY). Errors: ARGUMENT, MEMORY. */
enum tandem_status tnd_pool_resize(struct tnd_pool *pool, int n_threads);
int tnd_pool_size(const struct tnd_pool *pool);
/** Parks all idle workers at once until tnd_pool_resume (for instance while the application is in
 *  the background). Runs in between still work: they wake the workers that they need. */
void tnd_pool_pause(struct tnd_pool *pool);
void tnd_pool_resume(struct tnd_pool *pool);
/** Changes the CPUs that workers are bound to (0 CPUs: as when the pool was made). Waits for a run
 *  in progress; BUSY from inside one. Worker 0, the caller, is not bound. Errors: ARGUMENT, MEMORY,
 *  THREAD (the system refused for at least one worker; the others are bound). */
enum tandem_status tnd_pool_set_cpus(struct tnd_pool *pool, const int *cpu_ids, int n_cpu_ids);

struct tnd_pool_statistics {
    uint64_t runs;        /* with more than one worker */
    uint64_t parks;       /* times a worker or a waiter went to sleep */
    uint64_t timed_waits; /* those of them with a deadline */
    uint64_t wakes;       /* broadcasts sent */
    uint64_t cpu_moves;   /* times a worker found its CPU taken and moved to an idle one */
    uint64_t shortfall;   /* workers asked for that could not be started */
    int threads_alive;
};
/** The NUMA node of each worker; lives as long as the pool, changes with its CPUs and its size. The
 *  caller, who is not bound, counts as if bound. NULL: there is one node. */
const struct tnd_chunk_nodes *tnd_pool_nodes(const struct tnd_pool *pool);
/** Rows at which the share of each NUMA node begins when workers 0 .. count - 1 share a weight of
 *  `rows` rows, followed by `rows`. Returns the number of nodes, 0 when rows are not divided by
 *  nodes. Any thread. */
int tnd_pool_node_rows(struct tnd_pool *pool, int count, int64_t rows,
                       int64_t out_rows[TND_CHUNK_NODES + 1]);
/** Asks the system to interleave untouched pages over all NUMA nodes; false when there is one node
 *  or the system refuses. */
bool tnd_pool_interleave(const struct tnd_pool *pool, void *pages, size_t bytes);

void tnd_pool_statistics(const struct tnd_pool *pool, struct tnd_pool_statistics *out);

#endif
