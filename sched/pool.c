/* SPDX-License-Identifier: MIT
 * Worker threads. Each worker waits for its own word, so that a run with few workers leaves the
 * others asleep. A run: take a ticket, publish the function, raise the words of the workers that
 * take part, do one's own part, wait until the last worker has raised `done`. */
#include "sched/pool.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "sched/idle_cpu.h"

enum { STACK_BYTES = 4 * 1024 * 1024 }; /* room for BLAS kernels and custom operations */

struct worker {
    _Alignas(TND_CACHE_LINE) atomic_uint round; /* raised by one for each run and for the end */
    struct tnd_park park;
    struct tnd_pool *pool;
    int index;
    bool must_end; /* published by `round` */
    pthread_t thread;
    atomic_int tid; /* kernel's number of the thread, 0 until it runs */
};

struct tnd_pool {
    /* ---- the run in progress: written by its caller before the rounds are raised ---- */
    tnd_pool_fn fn;
    void *user;
    int count;
    struct tnd_spin spin;
    unsigned round;          /* not 0 */
    bool moves_to_idle_cpus; /* workers do where their CPU is taken */

    _Alignas(TND_CACHE_LINE) atomic_int remaining; /* workers inside fn, the caller not counted */
    _Alignas(TND_CACHE_LINE) atomic_uint done;     /* raised by the last of them */
    _Alignas(TND_CACHE_LINE) struct tnd_park done_park;
    struct tnd_park_counts park_counts;
    atomic_bool paused;
    atomic_int
        park_requests; /* reasons for idle workers to sleep: the pause, and stages that wait */
    _Atomic uint64_t expected_ns; /* when idle workers may be needed; 0: unknown */
    struct tnd_cpu_claims claims;
    atomic_ullong cpu_moves;

    /* ---- tickets: who may run, resize, bind, in the order of asking. `ticket_lock` guards these
     * two; nothing is locked inside. ---- */
    pthread_mutex_t ticket_lock;
    pthread_cond_t ticket_cond;
    uint64_t ticket_next;
    uint64_t ticket_served;

    /* ---- changed only by the thread whose ticket is served ---- */
    struct worker **workers; /* [1 .. n_threads-1]; NULL: not started yet */
    atomic_int n_threads;
    int n_cpus;
    int64_t spin_limit;
    int *cpu_ids;
    int n_cpu_ids;
    atomic_int nice; /* absolute; read by starting workers */
    int nice_base;
    cpu_set_t cpus_base; /* CPUs of the thread that made the pool */
    bool has_cpus_base;
    int (*start_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    atomic_ullong runs;
    atomic_ullong shortfall;
    atomic_int threads_alive;
};

/* Whether this thread is inside a run of any pool. A nested run could wait for a ticket that is
 * returned only after itself, so it runs alone. */
static _Thread_local bool inside_run;

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
    pool->ticket_served++;
    if (pool->ticket_served != pool->ticket_next) {
        pthread_cond_broadcast(&pool->ticket_cond);
    }
    pthread_mutex_unlock(&pool->ticket_lock);
}

/* ---- threads ---- */

static bool set_cpu_of(const struct tnd_pool *pool, const struct worker *worker)
{
    cpu_set_t set;
    if (pool->n_cpu_ids > 0) {
        CPU_ZERO(&set);
        CPU_SET((size_t)pool->cpu_ids[worker->index % pool->n_cpu_ids], &set);
    } else if (pool->has_cpus_base) {
        set = pool->cpus_base;
    } else {
        return true;
    }
    return pthread_setaffinity_np(worker->thread, sizeof(set), &set) == 0;
}

static void introduce(struct worker *worker)
{
    char name[16];
    snprintf(name, sizeof(name), "tandem-w%d", worker->index % 10000);
    pthread_setname_np(pthread_self(), name);
    /* Timed waits end by the clock: the system must not put that off to save wake-ups. Advice. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    int tid = (int)syscall(SYS_gettid);
    /* Both seq_cst, as in tnd_pool_set_nice: either it sees our number or we see its value. */
    atomic_store(&worker->tid, tid);
    int nice = atomic_load(&worker->pool->nice);
    if (nice != worker->pool->nice_base) {
        setpriority(PRIO_PROCESS, (id_t)tid, nice);
    }
}

static void *work(void *user)
{
    struct worker *worker = user;
    struct tnd_pool *pool = worker->pool;
    /* A new thread waits for its first round as if it had just finished one. */
    struct tnd_spin spin = {
        .polls = TND_SPIN_DEFAULT, .crowded = true, .cut_short = &pool->park_requests};
    inside_run = true;
    introduce(worker);
    for (unsigned round = 1;; round++) {
        tnd_park_until(&worker->park, &worker->round, round, &spin);
        if (worker->must_end) {
            return NULL;
        }
        spin = pool->spin;
        spin.cut_short = &pool->park_requests;
        spin.expected_ns = &pool->expected_ns;
        if (pool->moves_to_idle_cpus && tnd_cpu_move_to_idle(&pool->claims, pool->round)) {
            atomic_fetch_add_explicit(&pool->cpu_moves, 1, memory_order_relaxed);
        }
        pool->fn(pool->user, worker->index, pool->count);
        TND_POINT("between the work and saying so");
        if (atomic_fetch_sub_explicit(&pool->remaining, 1, memory_order_acq_rel) == 1) {
            atomic_fetch_add(&pool->done, 1);
            tnd_park_wake(&pool->done_park);
        }
    }
}

/* Starts with all signals blocked: they are the application's business and its threads'. */
static bool start_blocked(struct tnd_pool *pool, struct worker *worker)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pool->start_thread(&worker->thread, &attributes, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed == 0;
}

static bool start_worker(struct tnd_pool *pool, int index)
{
    struct worker *worker = tnd_calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return false;
    }
    worker->pool = pool;
    worker->index = index;
    atomic_init(&worker->round, 0);
    atomic_init(&worker->tid, 0);
    if (!tnd_park_init(&worker->park, &pool->park_counts)) {
        tnd_free(worker);
        return false;
    }
    if (!start_blocked(pool, worker)) {
        tnd_park_fini(&worker->park);
        tnd_free(worker);
        return false;
    }
    if (pool->n_cpu_ids > 0) {
        (void)set_cpu_of(pool, worker); /* an unbound worker is slower, not wrong */
    }
    pool->workers[index] = worker;
    atomic_fetch_add_explicit(&pool->threads_alive, 1, memory_order_relaxed);
    return true;
}

static void end_worker(struct tnd_pool *pool, int index)
{
    struct worker *worker = pool->workers[index];
    if (worker == NULL) {
        return;
    }
    worker->must_end = true;
    atomic_fetch_add(&worker->round, 1);
    tnd_park_wake(&worker->park);
    pthread_join(worker->thread, NULL);
    tnd_park_fini(&worker->park);
    tnd_free(worker);
    pool->workers[index] = NULL;
    atomic_fetch_sub_explicit(&pool->threads_alive, 1, memory_order_relaxed);
}

/* Workers 1..count-1 exist afterwards; returns how many workers there are, the caller included. */
static int ensure_workers(struct tnd_pool *pool, int count)
{
    for (int i = 1; i < count; i++) {
        if (pool->workers[i] == NULL && !start_worker(pool, i)) {
            atomic_fetch_add_explicit(&pool->shortfall, (unsigned)(count - i),
                                      memory_order_relaxed);
            return i;
        }
    }
    return count;
}

/* ---- making and freeing ---- */

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

static void remember_surroundings(struct tnd_pool *pool)
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
    struct worker **workers = tnd_calloc((size_t)options->n_threads, sizeof(*workers));
    if (pool == NULL || workers == NULL || !init_waiting(pool)) {
        tnd_free(cpu_ids);
        tnd_free(workers);
        tnd_free(pool);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pool", options->n_threads, 0,
                             "pool: out of memory for %d threads", options->n_threads);
    }
    remember_surroundings(pool);
    pool->workers = workers;
    pool->cpu_ids = cpu_ids;
    pool->n_cpu_ids = options->n_cpu_ids;
    pool->n_cpus = options->n_cpus > 0 ? options->n_cpus : 1;
    pool->spin_limit = options->spin_limit < 0 ? TND_SPIN_DEFAULT : options->spin_limit;
    pool->start_thread = options->start_thread != NULL ? options->start_thread : pthread_create;
    atomic_init(&pool->n_threads, options->n_threads);
    atomic_init(&pool->nice, pool->nice_base + options->nice);
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
        end_worker(pool, i);
    }
    serve_next(pool);
    pthread_cond_destroy(&pool->ticket_cond);
    pthread_mutex_destroy(&pool->ticket_lock);
    tnd_park_fini(&pool->done_park);
    tnd_free(pool->workers);
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
        atomic_fetch_add(&pool->workers[i]->round, 1); /* publishes all of the above */
        tnd_park_wake(&pool->workers[i]->park);
    }
    inside_run = true;
    fn(user, 0, count);
    inside_run = false;
    tnd_park_until(&pool->done_park, &pool->done, done, &pool->spin);
    atomic_fetch_add_explicit(&pool->runs, 1, memory_order_relaxed);
}

enum tandem_status tnd_pool_run(struct tnd_pool *pool, int count, tnd_pool_fn fn, void *user)
{
    if (count <= 1 || inside_run) {
        fn(user, 0, 1);
        return TANDEM_OK;
    }
    take_ticket(pool);
    int n_threads = atomic_load_explicit(&pool->n_threads, memory_order_relaxed);
    count = ensure_workers(pool, count < n_threads ? count : n_threads);
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
    if (n_threads > n_before) {
        struct worker **workers = tnd_calloc((size_t)n_threads, sizeof(*workers));
        if (workers == NULL) {
            return TANDEM_E_MEMORY;
        }
        memcpy(workers, pool->workers, (size_t)n_before * sizeof(*workers));
        tnd_free(pool->workers);
        pool->workers = workers;
    }
    for (int i = n_threads; i < n_before; i++) {
        end_worker(pool, i); /* the list stays long: it costs a pointer a worker */
    }
    atomic_store_explicit(&pool->n_threads, n_threads, memory_order_relaxed);
    return TANDEM_OK;
}

enum tandem_status tnd_pool_resize(struct tnd_pool *pool, int n_threads)
{
    if (n_threads < 1 || n_threads > TND_POOL_MAX_THREADS) {
        return TANDEM_E_ARGUMENT;
    }
    if (inside_run) {
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
    if (!atomic_exchange(&pool->paused, true)) {
        tnd_pool_park_begin(pool);
    }
}

void tnd_pool_resume(struct tnd_pool *pool)
{
    if (atomic_exchange(&pool->paused, false)) {
        tnd_pool_park_end(pool);
    }
}

/* relaxed: spinning workers look at it now and then, nothing else hangs on it. */
void tnd_pool_park_begin(struct tnd_pool *pool)
{
    atomic_fetch_add_explicit(&pool->park_requests, 1, memory_order_relaxed);
}

void tnd_pool_park_end(struct tnd_pool *pool)
{
    atomic_fetch_sub_explicit(&pool->park_requests, 1, memory_order_relaxed);
}

/* relaxed: as above. */
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
    if (inside_run) {
        return TANDEM_E_BUSY;
    }
    TND_TRY(copy_cpus(cpu_ids, n_cpu_ids, &copy));
    take_ticket(pool);
    tnd_free(pool->cpu_ids);
    pool->cpu_ids = copy;
    pool->n_cpu_ids = n_cpu_ids;
    enum tandem_status status = TANDEM_OK;
    for (int i = 1; i < atomic_load_explicit(&pool->n_threads, memory_order_relaxed); i++) {
        if (pool->workers[i] != NULL && !set_cpu_of(pool, pool->workers[i])) {
            status = TANDEM_E_THREAD;
        }
    }
    serve_next(pool);
    return status;
}

enum tandem_status tnd_pool_set_nice(struct tnd_pool *pool, int nice)
{
    if (inside_run) {
        return TANDEM_E_BUSY;
    }
    take_ticket(pool);
    enum tandem_status status = TANDEM_OK;
    atomic_store(&pool->nice, pool->nice_base + nice);
    for (int i = 1; i < atomic_load_explicit(&pool->n_threads, memory_order_relaxed); i++) {
        int tid = pool->workers[i] != NULL ? atomic_load(&pool->workers[i]->tid) : 0;
        if (tid != 0 && setpriority(PRIO_PROCESS, (id_t)tid, pool->nice_base + nice) != 0) {
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
