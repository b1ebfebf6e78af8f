/* SPDX-License-Identifier: MIT
 * Internals of a pool, and its threads. Only for pool.c, pool_nodes.c and pool_threads.c. */
#ifndef TND_POOL_THREADS_H
#define TND_POOL_THREADS_H

#include <sched.h>

#include "sched/idle_cpu.h"
#include "sched/pool.h"

struct tnd_pool_worker {
    _Alignas(TND_CACHE_LINE) atomic_uint round; /* raised by one for each run and for the end */
    struct tnd_park park;
    struct tnd_pool *pool;
    int index;
    bool must_end; /* published by `round` */
    pthread_t thread;
};

/* A machine of several NUMA nodes, as its pool sees it. */
struct tnd_pool_cpu_nodes {
    int n;
    int ids[TND_CHUNK_NODES];        /* the system's numbers */
    uint8_t node[TND_MAX_CPUS];      /* of each CPU, by the system's number */
    cpu_set_t cpus[TND_CHUNK_NODES]; /* of each node, that may be used */
    struct tnd_chunk_nodes nodes;    /* of the workers */
};

struct tnd_pool {
    /* ---- the run in progress: written by its caller before the rounds are raised ---- */
    tnd_pool_fn fn;
    void *user;
    int count;
    struct tnd_spin spin;
    unsigned round;          /* not 0 */
    bool moves_to_idle_cpus; /* workers move when their CPU is taken */

    _Alignas(TND_CACHE_LINE) atomic_int remaining; /* workers inside fn, the caller not counted */
    _Alignas(TND_CACHE_LINE) atomic_uint done;     /* raised by the last worker to leave fn */
    _Alignas(TND_CACHE_LINE) struct tnd_park done_park;
    struct tnd_park_counts park_counts;
    atomic_bool paused;
    atomic_int
        park_requests; /* reasons for idle workers to sleep: the pause, and stages that wait */
    _Atomic uint64_t expected_ns; /* when idle workers may be needed; 0: unknown */
    struct tnd_cpu_claims claims;
    atomic_ullong cpu_moves;

    /* ---- tickets: who may run, resize, bind, in the order of the calls. `ticket_lock` guards
     * these two; nothing is locked inside. ---- */
    pthread_mutex_t ticket_lock;
    pthread_cond_t ticket_cond;
    uint64_t ticket_next;
    uint64_t ticket_served;

    /* ---- changed only by the thread whose ticket is served ---- */
    struct tnd_pool_worker **workers; /* [1 .. n_threads-1]; NULL: not started yet */
    atomic_int n_threads;
    int n_cpus;
    int64_t spin_limit;
    struct tnd_pool_cpu_nodes *cpu_nodes; /* NULL: one node */
    int *cpu_ids;
    int n_cpu_ids;
    int nice; /* absolute; of the workers */
    int nice_base;
    cpu_set_t cpus_base; /* CPUs of the thread that made the pool */
    bool has_cpus_base;
    bool (*team)(void *user, int count, tnd_pool_fn body, void *data);
    void *team_user;
    int (*start_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    atomic_ullong runs;
    atomic_ullong shortfall;
    atomic_int threads_alive;
};

/** Whether this thread is inside a run of any pool. A nested run would wait for a ticket that its
 * own outer run holds, so it runs alone. */
extern _Thread_local bool tnd_pool_inside_run;

/** Stores the NUMA nodes of a machine that has several. False when out of memory. */
bool tnd_pool_read_nodes(struct tnd_pool *pool, const struct tnd_topology *topology);
/** Assigns workers to the nodes; called after each change of the CPUs or the size. */
void tnd_pool_place_workers(struct tnd_pool *pool, int n_threads);
/** Removes CPUs of other nodes than the worker's from a set, unless none would be left. */
void tnd_pool_cpus_of(const struct tnd_pool *pool, int index, cpu_set_t *set);

/** Binds a worker to its CPUs; false when the system refuses. */
bool tnd_pool_bind(const struct tnd_pool *pool, const struct tnd_pool_worker *worker);

/** Starts workers 1 .. count - 1 unless they exist; returns how many workers there are, the caller
 * included. */
int tnd_pool_ensure_workers(struct tnd_pool *pool, int count);

/** Ends a worker and frees it; it may not have been started. */
void tnd_pool_end_worker(struct tnd_pool *pool, int index);

#endif
