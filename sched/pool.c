/* SPDX-License-Identifier: MIT
 * Worker threads. Each worker waits for its own word, so that a run with few workers leaves the
 * others asleep. A run: take a ticket, publish the function, raise the words of the workers that
 * take part, run worker 0's share, wait until the last worker has raised `done`. */
#include "sched/pool.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/pool_threads.h"

/* ---- tickets ---- */

static void take_ticket(struct tnd_pool *pool)
{
    pthread_mutex_lock(&pool->ticket_lock);
    uint64_t mine = pool->ticket_next++;
    while (pool->ticket_served != mine) {
        tnd_condition_wait(&pool->ticket_cond, &pool->ticket_lock);
    }
    pthread_mutex_unlock(&pool->ticket_lock);
}

static void serve_next(struct tnd_pool *pool)
{
    pthread_mutex_lock(&pool->ticket_lock);
    TND_ASSERT(pool->ticket_served < pool->ticket_next);
    pool->ticket_served++;
    if (pool->ticket_served != pool->ticket_next) {
        pthread_cond_broadcast(&pool->ticket_cond);
    }
    pthread_mutex_unlock(&pool->ticket_lock);
}

/* ---- creating and freeing ---- */

static enum tandem_status copy_cpus(const int *cpu_ids, int n_cpu_ids, int **out_copy)
{
    *out_copy = NULL;
    if (n_cpu_ids < 0 || (n_cpu_ids > 0 && cpu_ids == NULL)) {
        return TANDEM_E_ARGUMENT;
    }
    for (int i = 0; i < n_cpu_ids; i++) {
        if (cpu_ids[i] < 0 || cpu_ids[i] >= CPU_SETSIZE) {
            return TANDEM_E_ARGUMENT;
        }
    }
    if (n_cpu_ids == 0) {
        return TANDEM_OK;
    }
    int *copy = tnd_calloc((size_t)n_cpu_ids, sizeof(*copy));
    if (copy == NULL) {
        return TANDEM_E_MEMORY;
    }
    memcpy(copy, cpu_ids, (size_t)n_cpu_ids * sizeof(*copy));
    *out_copy = copy;
    return TANDEM_OK;
}

static bool init_waiting(struct tnd_pool *pool)
{
    if (!tnd_park_init(&pool->done_park, &pool->park_counts)) {
        return false;
    }
    if (pthread_mutex_init(&pool->ticket_lock, NULL) != 0) {
        tnd_park_fini(&pool->done_park);
        return false;
    }
    if (!tnd_condition_init(&pool->ticket_cond)) {
        pthread_mutex_destroy(&pool->ticket_lock);
        tnd_park_fini(&pool->done_park);
        return false;
    }
    return true;
}

static void keep_surroundings(struct tnd_pool *pool)
{
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0); /* of this thread; -1 may be a value */
    pool->nice_base = errno == 0 ? nice : 0;
    pool->has_cpus_base = sched_getaffinity(0, sizeof(pool->cpus_base), &pool->cpus_base) == 0;
}

enum tandem_status tnd_pool_new(const struct tnd_pool_options *options, struct tnd_pool **out_pool,
                                struct tandem_error *error)
{
    if (options->n_threads < 1 || options->n_threads > TND_POOL_MAX_THREADS) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "pool", options->n_threads,
                             TND_POOL_MAX_THREADS, "pool: %d threads; 1 to %d are possible",
                             options->n_threads, (int)TND_POOL_MAX_THREADS);
    }
    int *cpu_ids;
    enum tandem_status status = copy_cpus(options->cpu_ids, options->n_cpu_ids, &cpu_ids);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, "pool", options->n_cpu_ids, CPU_SETSIZE,
                             "pool: the list of %d CPUs cannot be used", options->n_cpu_ids);
    }
    struct tnd_pool *pool = tnd_calloc(1, sizeof(*pool));
    struct tnd_pool_worker **workers = tnd_calloc((size_t)options->n_threads, sizeof(*workers));
    if (pool == NULL || workers == NULL || !tnd_pool_read_nodes(pool, options->topology) ||
        !init_waiting(pool)) {
        tnd_free(cpu_ids);
        tnd_free(workers);
        tnd_free(pool != NULL ? pool->cpu_nodes : NULL);
        tnd_free(pool);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pool", options->n_threads, 0,
                             "pool: out of memory for %d threads", options->n_threads);
    }
    keep_surroundings(pool);
    pool->workers = workers;
    pool->cpu_ids = cpu_ids;
    pool->n_cpu_ids = options->n_cpu_ids;
    pool->n_cpus = options->n_cpus > 0 ? options->n_cpus : 1;
    pool->spin_limit = options->spin_limit < 0 ? TND_SPIN_DEFAULT : options->spin_limit;
    pool->start_thread = options->start_thread != NULL ? options->start_thread : pthread_create;
    pool->team = options->team;
    pool->team_user = options->team_user;
    atomic_init(&pool->n_threads, options->n_threads);
    pool->nice = pool->nice_base + options->nice;
    tnd_pool_place_workers(pool, options->n_threads);
    *out_pool = pool;
    return TANDEM_OK;
}

void tnd_pool_free(struct tnd_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    take_ticket(pool);
    for (int i = 1; i < atomic_load(&pool->n_threads); i++) {
        tnd_pool_end_worker(pool, i);
    }
    serve_next(pool);
    pthread_cond_destroy(&pool->ticket_cond);
    pthread_mutex_destroy(&pool->ticket_lock);
    tnd_park_fini(&pool->done_park);
    tnd_free(pool->workers);
    tnd_free(pool->cpu_nodes);
    tnd_free(pool->cpu_ids);
    tnd_free(pool);
}

/* ---- running ---- */

struct tnd_spin tnd_pool_spin(const struct tnd_pool *pool, int count)
{
    struct tnd_spin spin = {.polls = pool->spin_limit, .crowded = count > pool->n_cpus};
    return spin;
}

struct tnd_park_counts *tnd_pool_park_counts(struct tnd_pool *pool)
{
    return &pool->park_counts;
}

static void run_together(struct tnd_pool *pool, int count, tnd_pool_fn fn, void *user)
{
    TND_ASSERT(count > 1 && atomic_load(&pool->remaining) == 0);
    pool->fn = fn;
    pool->user = user;
    pool->count = count;
    pool->spin = tnd_pool_spin(pool, count);
    pool->round = pool->round == UINT_MAX ? 1 : pool->round + 1;
    pool->moves_to_idle_cpus = pool->n_cpu_ids == 0 && !pool->spin.crowded;
    if (pool->moves_to_idle_cpus) {
        (void)tnd_cpu_claim(&pool->claims, pool->round);
    }
    atomic_store_explicit(&pool->remaining, count - 1, memory_order_relaxed);
    unsigned done = atomic_load_explicit(&pool->done, memory_order_relaxed) + 1;
    for (int i = 1; i < count; i++) {
        atomic_fetch_add(&pool->workers[i]->round, 1); /* publishes the members written above */
        tnd_park_wake(&pool->workers[i]->park);
    }
    tnd_pool_inside_run = true;
    fn(user, 0, count);
    tnd_pool_inside_run = false;
    tnd_park_until(&pool->done_park, &pool->done, done, &pool->spin);
    atomic_fetch_add_explicit(&pool->runs, 1, memory_order_relaxed);
}

struct lent_work {
    tnd_pool_fn fn;
    void *user;
};

static void work_for_us(void *data, int index, int count)
{
    const struct lent_work *work = data;
    bool was_inside = tnd_pool_inside_run;
    tnd_pool_inside_run = true;
    work->fn(work->user, index, count);
    tnd_pool_inside_run = was_inside;
}

static bool run_on_team(struct tnd_pool *pool, int count, tnd_pool_fn fn, void *user)
{
    struct lent_work work = {fn, user};
    if (pool->team == NULL || count <= 1 ||
        !pool->team(pool->team_user, count, work_for_us, &work)) {
        return false;
    }
    atomic_fetch_add_explicit(&pool->runs, 1, memory_order_relaxed);
    return true;
}

enum tandem_status tnd_pool_run(struct tnd_pool *pool, int count, tnd_pool_fn fn, void *user)
{
    if (count <= 1 || tnd_pool_inside_run) {
        fn(user, 0, 1);
        return TANDEM_OK;
    }
    take_ticket(pool);
    int n_threads = atomic_load_explicit(&pool->n_threads, memory_order_relaxed);
    count = count < n_threads ? count : n_threads;
    if (run_on_team(pool, count, fn, user)) {
        serve_next(pool);
        return TANDEM_OK;
    }
    count = tnd_pool_ensure_workers(pool, count);
    if (count > 1) {
        run_together(pool, count, fn, user);
    }
    serve_next(pool);
    if (count <= 1) {
        fn(user, 0, 1);
    }
    return TANDEM_OK;
}

/* ---- changing ---- */

static enum tandem_status resize(struct tnd_pool *pool, int n_threads)
{
    int n_before = atomic_load_explicit(&pool->n_threads, memory_order_relaxed);
    TND_ASSERT(n_threads >= 1 && n_threads <= TND_POOL_MAX_THREADS);
    if (n_threads > n_before) {
        struct tnd_pool_worker **workers = tnd_calloc((size_t)n_threads, sizeof(*workers));
        if (workers == NULL) {
            return TANDEM_E_MEMORY;
        }
        memcpy(workers, pool->workers, (size_t)n_before * sizeof(*workers));
        tnd_free(pool->workers);
        pool->workers = workers;
    }
    for (int i = n_threads; i < n_before; i++) {
        tnd_pool_end_worker(pool, i); /* the list keeps its capacity: one pointer a worker */
    }
    atomic_store_explicit(&pool->n_threads, n_threads, memory_order_relaxed);
    tnd_pool_place_workers(pool, n_threads);
    return TANDEM_OK;
}

enum tandem_status tnd_pool_resize(struct tnd_pool *pool, int n_threads)
{
    if (n_threads < 1 || n_threads > TND_POOL_MAX_THREADS) {
        return TANDEM_E_ARGUMENT;
    }
    if (tnd_pool_inside_run) {
        return TANDEM_E_BUSY;
    }
    take_ticket(pool);
    enum tandem_status status = resize(pool, n_threads);
    serve_next(pool);
    return status;
}

int tnd_pool_size(const struct tnd_pool *pool)
{
    return atomic_load_explicit(&pool->n_threads, memory_order_relaxed);
}

void tnd_pool_pause(struct tnd_pool *pool)
{
    tnd_pool_park_begin(pool); /* before `paused`: another thread may resume at once */
    if (atomic_exchange(&pool->paused, true)) {
        tnd_pool_park_end(pool);
    }
}

void tnd_pool_resume(struct tnd_pool *pool)
{
    if (atomic_exchange(&pool->paused, false)) {
        tnd_pool_park_end(pool);
    }
}

/* relaxed: only spinning workers poll it, nothing else depends on it. */
void tnd_pool_park_begin(struct tnd_pool *pool)
{
    atomic_fetch_add_explicit(&pool->park_requests, 1, memory_order_relaxed);
}

void tnd_pool_park_end(struct tnd_pool *pool)
{
    int before = atomic_fetch_sub_explicit(&pool->park_requests, 1, memory_order_relaxed);
    TND_ASSERT(before > 0);
    (void)before;
}

/* relaxed: see tnd_pool_park_begin. */
void tnd_pool_expect(struct tnd_pool *pool, uint64_t expected_ns)
{
    atomic_store_explicit(&pool->expected_ns, expected_ns, memory_order_relaxed);
}

uint64_t tnd_pool_wake_ns(const struct tnd_pool *pool)
{
    return tnd_park_wake_ns(&pool->park_counts);
}

enum tandem_status tnd_pool_set_cpus(struct tnd_pool *pool, const int *cpu_ids, int n_cpu_ids)
{
    int *copy;
    if (tnd_pool_inside_run) {
        return TANDEM_E_BUSY;
    }
    TND_TRY(copy_cpus(cpu_ids, n_cpu_ids, &copy));
    take_ticket(pool);
    tnd_free(pool->cpu_ids);
    pool->cpu_ids = copy;
    pool->n_cpu_ids = n_cpu_ids;
    tnd_pool_place_workers(pool, tnd_pool_size(pool));
    enum tandem_status status = TANDEM_OK;
    for (int i = 1; i < atomic_load_explicit(&pool->n_threads, memory_order_relaxed); i++) {
        if (pool->workers[i] != NULL && !tnd_pool_bind(pool, pool->workers[i])) {
            status = TANDEM_E_THREAD;
        }
    }
    serve_next(pool);
    return status;
}

void tnd_pool_statistics(const struct tnd_pool *pool, struct tnd_pool_statistics *out)
{
    out->runs = atomic_load_explicit(&pool->runs, memory_order_relaxed);
    out->parks = atomic_load_explicit(&pool->park_counts.parks, memory_order_relaxed);
    out->timed_waits = atomic_load_explicit(&pool->park_counts.timed_waits, memory_order_relaxed);
    out->wakes = atomic_load_explicit(&pool->park_counts.wakes, memory_order_relaxed);
    out->cpu_moves = atomic_load_explicit(&pool->cpu_moves, memory_order_relaxed);
    out->shortfall = atomic_load_explicit(&pool->shortfall, memory_order_relaxed);
    out->threads_alive = atomic_load_explicit(&pool->threads_alive, memory_order_relaxed);
}
