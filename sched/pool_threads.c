/* SPDX-License-Identifier: MIT
 * The threads of a pool: they start when they are first needed, wait for rounds of their own, and
 * end with the pool or when it shrinks. */
#include "sched/pool_threads.h"

#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"

enum { STACK_BYTES = 4 * 1024 * 1024 }; /* room for BLAS kernels and custom operations */

_Thread_local bool tnd_pool_inside_run;

bool tnd_pool_bind(const struct tnd_pool *pool, const struct tnd_pool_worker *worker)
{
    cpu_set_t set;
    if (pool->n_cpu_ids > 0) {
        CPU_ZERO(&set);
        CPU_SET((size_t)pool->cpu_ids[worker->index % pool->n_cpu_ids], &set);
    } else if (pool->has_cpus_base) {
        set = pool->cpus_base;
        tnd_pool_cpus_of(pool, worker->index, &set);
    } else {
        return true;
    }
    return pthread_setaffinity_np(worker->thread, sizeof(set), &set) == 0;
}

static void introduce(struct tnd_pool_worker *worker)
{
    char name[16];
    snprintf(name, sizeof(name), "tandem-w%d", worker->index % 10000);
    pthread_setname_np(pthread_self(), name);
    /* A thread inherits the floating-point state of its creator, which may be in the middle of a
     * run that has changed it. */
    (void)fesetenv(FE_DFL_ENV);
    /* Timed waits have a deadline that the system must not delay to save wake-ups. Best effort. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    if (worker->pool->nice != worker->pool->nice_base) {
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), worker->pool->nice);
    }
}

static void *work(void *user)
{
    struct tnd_pool_worker *worker = user;
    struct tnd_pool *pool = worker->pool;
    /* A new thread waits for its first round as if it had just finished one. */
    struct tnd_spin spin = {
        .polls = TND_SPIN_DEFAULT, .crowded = true, .cut_short = &pool->park_requests};
    tnd_pool_inside_run = true;
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
        TND_ASSERT(worker->index > 0 && worker->index < pool->count);
        pool->fn(pool->user, worker->index, pool->count);
        TND_POINT("between the work and saying so");
        if (atomic_fetch_sub_explicit(&pool->remaining, 1, memory_order_acq_rel) == 1) {
            atomic_fetch_add(&pool->done, 1);
            tnd_park_wake(&pool->done_park);
        }
    }
}

/* Starts with all signals blocked except faults: signals are handled by the application's threads.
 * A fault is raised in the thread that causes it: if blocked, it would end the process without
 * calling any handler. */
static bool start_blocked(struct tnd_pool *pool, struct tnd_pool_worker *worker)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pool->start_thread(&worker->thread, &attributes, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed == 0;
}

static bool start_worker(struct tnd_pool *pool, int index)
{
    struct tnd_pool_worker *worker = tnd_calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return false;
    }
    TND_ASSERT(index > 0 && pool->workers[index] == NULL);
    worker->pool = pool;
    worker->index = index;
    atomic_init(&worker->round, 0);
    if (!tnd_park_init(&worker->park, &pool->park_counts)) {
        tnd_free(worker);
        return false;
    }
    if (!start_blocked(pool, worker)) {
        tnd_park_fini(&worker->park);
        tnd_free(worker);
        return false;
    }
    if (pool->n_cpu_ids > 0 || pool->cpu_nodes != NULL) {
        (void)tnd_pool_bind(pool, worker); /* an unbound worker is slower, not wrong */
    }
    pool->workers[index] = worker;
    atomic_fetch_add_explicit(&pool->threads_alive, 1, memory_order_relaxed);
    return true;
}

void tnd_pool_end_worker(struct tnd_pool *pool, int index)
{
    struct tnd_pool_worker *worker = pool->workers[index];
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

int tnd_pool_ensure_workers(struct tnd_pool *pool, int count)
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
