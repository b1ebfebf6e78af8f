/* SPDX-License-Identifier: MIT
 * The pool and its barriers: nothing is lost, nothing runs twice, nobody hangs. A hang shows as
 * the time limit of tests/process.sh. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sched/idle_cpu.h"
#include "sched/barrier.h"
#include "sched/pool.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { MAX_WORKERS = 16 };

static struct tnd_pool *pool_new(int n_threads, int64_t spin_limit)
{
    struct tnd_pool_options options = {
        .n_threads = n_threads, .n_cpus = 2, .spin_limit = spin_limit};
    struct tnd_pool *pool = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
    return pool;
}

/* 1, 4 or 100 times the least work. */
static long scaled(long least)
{
    return tnd_effort() >= 3 ? 100 * least : tnd_effort() == 2 ? 4 * least : least;
}

/* Not atomic on purpose: the pool itself must order what different workers write one after the
 * other. */
struct tally {
    long count[MAX_WORKERS];
    long sum;
    int n_workers;
    atomic_int inside;
    bool overlapped;
};

static void add_one(void *user, int index, int count)
{
    struct tally *tally = user;
    tally->count[index]++;
    if (index == 0) {
        tally->n_workers = count;
    }
}

static long total(const struct tally *tally)
{
    long sum = 0;
    for (int i = 0; i < MAX_WORKERS; i++) {
        sum += tally->count[i];
    }
    return sum;
}

static void every_worker_runs_exactly_once(void)
{
    struct tnd_pool *pool = pool_new(4, -1);
    for (int count = 1; count <= 6; count++) {
        struct tally tally = {.sum = 0};
        check_ok(tnd_pool_run(pool, count, add_one, &tally));
        int expected = count < 4 ? count : 4;
        check_int(tally.n_workers, expected);
        check_int(total(&tally), expected);
        for (int i = 0; i < expected; i++) {
            check_int(tally.count[i], 1);
        }
    }
    tnd_pool_free(pool);
}

static void a_run_with_one_worker_starts_no_thread(void)
{
    struct tnd_pool *pool = pool_new(8, -1);
    struct tnd_pool_statistics statistics;
    struct tally tally = {.sum = 0};
    check_ok(tnd_pool_run(pool, 1, add_one, &tally));
    check_ok(tnd_pool_run(pool, 0, add_one, &tally));
    tnd_pool_statistics(pool, &statistics);
    check_int(statistics.threads_alive, 0);
    check_int(statistics.runs, 0);
    check_int(total(&tally), 2);
    tnd_pool_free(pool);
    tnd_pool_free(NULL);
}

static void tiny_runs_lose_no_work(void)
{
    long n_runs = scaled(10000);
    struct tnd_pool *pool = pool_new(2, -1);
    struct tally tally = {.sum = 0};
    for (long i = 0; i < n_runs; i++) {
        tnd_pool_run(pool, 2, add_one, &tally);
    }
    check_int(tally.count[0], n_runs);
    check_int(tally.count[1], n_runs);
    tnd_pool_free(pool);
}

static void workers_that_sleep_at_once_lose_no_work(void)
{
    long n_runs = scaled(500);
    struct tnd_pool *pool = pool_new(4, 0);
    struct tnd_pool_statistics statistics;
    struct tally tally = {.sum = 0};
    for (long i = 0; i < n_runs; i++) {
        tnd_pool_run(pool, 4, add_one, &tally);
    }
    check_int(total(&tally), 4 * n_runs);
    tnd_pool_statistics(pool, &statistics);
    CU_ASSERT(statistics.parks > 0);
    CU_ASSERT(statistics.wakes > 0);
    check_int(statistics.runs, n_runs);
    tnd_pool_free(pool);
}

static void thread_count_changes_lose_no_work(void)
{
    long n_changes = scaled(1000);
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct tnd_pool *pool = pool_new(8, -1);
    struct tally tally = {.sum = 0};
    long expected = 0;
    for (long i = 0; i < n_changes; i++) {
        int count = (int)tnd_test_rng_int(&rng, 1, 8);
        tnd_pool_run(pool, count, add_one, &tally);
        expected += count;
    }
    check_int(total(&tally), expected);
    tnd_pool_free(pool);
}

static void resizing_ends_threads_and_loses_no_work(void)
{
    long n_changes = scaled(300);
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 1);
    struct tnd_pool *pool = pool_new(2, -1);
    struct tally tally = {.sum = 0};
    long expected = 0;
    for (long i = 0; i < n_changes; i++) {
        int size = (int)tnd_test_rng_int(&rng, 1, 8);
        int count = (int)tnd_test_rng_int(&rng, 1, 8);
        struct tnd_pool_statistics statistics;
        CU_ASSERT_EQUAL(tnd_pool_resize(pool, size), TANDEM_OK);
        tnd_pool_run(pool, count, add_one, &tally);
        expected += count < size ? count : size;
        tnd_pool_statistics(pool, &statistics);
        CU_ASSERT(statistics.threads_alive <= size - 1);
        CU_ASSERT_EQUAL(tnd_pool_size(pool), size);
    }
    check_int(total(&tally), expected);
    check_status(tnd_pool_resize(pool, 0), TANDEM_E_ARGUMENT, NULL, NULL);
    check_status(tnd_pool_resize(pool, TND_POOL_MAX_THREADS + 1), TANDEM_E_ARGUMENT, NULL, NULL);
    tnd_pool_free(pool);
}

/* ---- several callers ---- */

struct caller {
    struct tnd_pool *pool;
    struct tally *tally;
    long n_runs;
    pthread_t thread;
};

static void add_exclusively(void *user, int index, int count)
{
    struct tally *tally = user;
    if (index == 0) {
        tally->overlapped = tally->overlapped || atomic_exchange(&tally->inside, 1) != 0;
        tally->sum += count;
    }
    tally->count[index]++;
    if (index == 0) {
        atomic_store(&tally->inside, 0);
    }
}

static void *call_often(void *user)
{
    struct caller *caller = user;
    for (long i = 0; i < caller->n_runs; i++) {
        tnd_pool_run(caller->pool, 3, add_exclusively, caller->tally);
    }
    return NULL;
}

static void callers_take_turns(void)
{
    enum { N_CALLERS = 4 };
    struct tally tally = {.sum = 0};
    struct tnd_pool *pool = pool_new(3, -1);
    struct caller callers[N_CALLERS];
    long n_runs = scaled(100);
    for (int i = 0; i < N_CALLERS; i++) {
        callers[i] = (struct caller){pool, &tally, n_runs, 0};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (long i = 0; i < n_runs; i++) {
        tnd_pool_pause(pool);
        tnd_pool_set_cpus(pool, NULL, 0);
        tnd_pool_resume(pool);
    }
    for (int i = 0; i < N_CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
    }
    check_int(tally.sum, 3 * N_CALLERS * n_runs);
    check_int(total(&tally), 3 * N_CALLERS * n_runs);
    CU_ASSERT_FALSE(tally.overlapped);
    tnd_pool_free(pool);
}

struct nested {
    struct tnd_pool *pool;
    struct tally tallies[MAX_WORKERS];
    enum tandem_status resize_status;
};

static void run_inside(void *user, int index, int count)
{
    struct nested *nested = user;
    (void)count;
    tnd_pool_run(nested->pool, 4, add_one, &nested->tallies[index]);
    if (index == 0) {
        nested->resize_status = tnd_pool_resize(nested->pool, 2);
    }
}

static void a_run_inside_a_run_is_done_by_its_caller_alone(void)
{
    struct nested nested = {.pool = pool_new(4, -1)};
    check_ok(tnd_pool_run(nested.pool, 4, run_inside, &nested));
    for (int i = 0; i < 4; i++) {
        check_int(nested.tallies[i].n_workers, 1);
        check_int(total(&nested.tallies[i]), 1);
    }
    check_status(nested.resize_status, TANDEM_E_BUSY, NULL, NULL);
    tnd_pool_free(nested.pool);
}

/* ---- pausing ---- */

static void runs_work_while_the_pool_is_paused(void)
{
    struct tnd_pool *pool = pool_new(4, -1);
    struct tally tally = {.sum = 0};
    for (int i = 0; i < 50; i++) {
        if (i % 10 == 0) {
            tnd_pool_pause(pool);
        }
        if (i % 10 == 5) {
            tnd_pool_resume(pool);
        }
        tnd_pool_run(pool, 4, add_one, &tally);
    }
    check_int(total(&tally), 200);
    tnd_pool_free(pool);
}

static void paused_workers_sleep(void)
{
    /* A spin limit that would last for minutes: only the pause can end it. */
    struct tnd_pool_options options = {.n_threads = 2, .n_cpus = 2, .spin_limit = INT64_MAX};
    struct tnd_pool *pool = NULL;
    struct tnd_pool_statistics statistics;
    struct tally tally = {.sum = 0};
    check_ok(tnd_pool_new(&options, &pool, NULL));
    tnd_pool_run(pool, 2, add_one, &tally);
    tnd_pool_run(pool, 2, add_one, &tally); /* from here on it spins with the run's limit */
    tnd_pool_statistics(pool, &statistics);
    uint64_t before = statistics.parks;
    tnd_pool_pause(pool);
    do {
        sched_yield();
        tnd_pool_statistics(pool, &statistics);
    } while (statistics.parks == before);
    tnd_pool_run(pool, 2, add_one, &tally);
    check_int(total(&tally), 6);
    tnd_pool_free(pool);
}

static void idle_workers_sleep_while_somebody_wants_rest(void)
{
    struct tnd_pool_options options = {.n_threads = 2, .n_cpus = 2, .spin_limit = INT64_MAX};
    struct tnd_pool *pool = NULL;
    struct tnd_pool_statistics statistics;
    check_ok(tnd_pool_new(&options, &pool, NULL));
    struct tally tally = {.sum = 0};
    tnd_pool_run(pool, 2, add_one, &tally);
    tnd_pool_statistics(pool, &statistics);
    uint64_t before = statistics.parks;
    tnd_pool_pause(pool);
    tnd_pool_resume(pool);
    tnd_pool_resume(pool); /* once too often: still no request to park is missing */
    tnd_pool_park_begin(pool);
    do {
        sched_yield();
        tnd_pool_statistics(pool, &statistics);
    } while (statistics.parks == before);
    tnd_pool_park_end(pool);
    tnd_pool_run(pool, 2, add_one, &tally);
    check_int(total(&tally), 4);
    tnd_pool_free(pool);
}

/* ---- what the system refuses ---- */

static atomic_int starts_left;

static int start_some(pthread_t *out_thread, const pthread_attr_t *attributes, void *(*fn)(void *),
                      void *user)
{
    if (atomic_fetch_sub(&starts_left, 1) <= 0) {
        return EAGAIN;
    }
    return pthread_create(out_thread, attributes, fn, user);
}

static void threads_that_cannot_start_are_done_without(void)
{
    for (int n = 0; n < 4; n++) {
        struct tnd_pool_options options = {
            .n_threads = 4, .n_cpus = 2, .spin_limit = -1, .start_thread = start_some};
        struct tnd_pool *pool = NULL;
        struct tnd_pool_statistics statistics;
        struct tally tally = {.sum = 0};
        atomic_store(&starts_left, n);
        check_ok(tnd_pool_new(&options, &pool, NULL));
        check_ok(tnd_pool_run(pool, 4, add_one, &tally));
        check_int(tally.n_workers, n + 1);
        check_int(total(&tally), n + 1);
        tnd_pool_statistics(pool, &statistics);
        check_int(statistics.shortfall, 3 - n);
        check_int(statistics.threads_alive, n);
        atomic_store(&starts_left, 4); /* the system has recovered */
        check_ok(tnd_pool_run(pool, 4, add_one, &tally));
        check_int(tally.n_workers, 4);
        tnd_pool_free(pool);
    }
}

static void allocations_that_fail_leave_nothing_behind(void)
{
    const int cpu_ids[] = {0};
    for (long n = 1;; n++) {
        long live = tnd_alloc_live();
        struct tnd_pool_options options = {
            .n_threads = 3, .n_cpus = 2, .spin_limit = -1, .cpu_ids = cpu_ids, .n_cpu_ids = 1};
        struct tnd_pool *pool = NULL;
        struct tandem_error error = {0};
        struct tally tally = {.sum = 0};
        tnd_alloc_fail_after(n);
        enum tandem_status status = tnd_pool_new(&options, &pool, &error);
        if (status == TANDEM_OK) {
            check_ok(tnd_pool_run(pool, 3, add_one, &tally));
            CU_ASSERT(total(&tally) >= 1 && total(&tally) <= 3);
            tnd_pool_free(pool);
        } else {
            check_int(status, TANDEM_E_MEMORY);
            CU_ASSERT_PTR_NULL(pool);
        }
        tnd_alloc_fail_after(-1);
        check_int(tnd_alloc_live(), live);
        if (total(&tally) == 3) {
            break;
        }
    }
}

static void wrong_options_are_refused(void)
{
    struct tandem_error error = {0};
    struct tnd_pool *pool = NULL;
    struct tnd_pool_options options = {.n_threads = 0};
    check_status(tnd_pool_new(&options, &pool, &error), TANDEM_E_ARGUMENT, "0 threads", &error);
    options.n_threads = 2;
    options.n_cpu_ids = 1;
    check_status(tnd_pool_new(&options, &pool, &error), TANDEM_E_ARGUMENT, "CPUs", &error);
    options.cpu_ids = (const int[]){-1};
    check_status(tnd_pool_new(&options, &pool, &error), TANDEM_E_ARGUMENT, "CPUs", &error);
    CU_ASSERT_PTR_NULL(pool);
}

/* ---- where workers run ---- */

struct places {
    cpu_set_t cpus[MAX_WORKERS];
    int nice[MAX_WORKERS];
    char name[MAX_WORKERS][16];
    bool blocks_signals[MAX_WORKERS];
};

static void look_around(void *user, int index, int count)
{
    struct places *places = user;
    sigset_t blocked;
    (void)count;
    sched_getaffinity(0, sizeof(places->cpus[index]), &places->cpus[index]);
    places->nice[index] = getpriority(PRIO_PROCESS, 0);
    pthread_getname_np(pthread_self(), places->name[index], sizeof(places->name[index]));
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    places->blocks_signals[index] = sigismember(&blocked, SIGINT) == 1;
}

static void workers_have_names_masks_and_niceness(void)
{
    struct places places;
    struct places before;
    memset(&places, 0, sizeof(places));
    memset(&before, 0, sizeof(before));
    const struct tnd_pool_options options = {
        .n_threads = 3, .n_cpus = 2, .spin_limit = -1, .nice = 3};
    struct tnd_pool *pool = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
    check_ok(tnd_pool_run(pool, 3, look_around, &before));
    check_string(before.name[1], "tandem-w1");
    check_string(before.name[2], "tandem-w2");
    CU_ASSERT_TRUE(before.blocks_signals[1] && before.blocks_signals[2]);
    CU_ASSERT_FALSE(before.blocks_signals[0]);

    int cpu = sched_getcpu();
    check_ok(tnd_pool_set_cpus(pool, &cpu, 1));
    check_ok(tnd_pool_run(pool, 3, look_around, &places));
    check_int(CPU_COUNT(&places.cpus[1]), 1);
    CU_ASSERT(CPU_ISSET((size_t)cpu, &places.cpus[2]));
    CU_ASSERT(CPU_EQUAL(&places.cpus[0], &before.cpus[0]));
    check_int(places.nice[1], before.nice[0] + 3 > 19 ? 19 : before.nice[0] + 3);
    check_int(places.nice[0], before.nice[0]);

    check_ok(tnd_pool_resize(pool, 1));
    check_ok(tnd_pool_resize(pool, 3)); /* new threads get it too */
    check_ok(tnd_pool_run(pool, 3, look_around, &places));
    check_int(CPU_COUNT(&places.cpus[1]), 1);
    check_int(places.nice[2], before.nice[0] + 3 > 19 ? 19 : before.nice[0] + 3);

    check_ok(tnd_pool_set_cpus(pool, NULL, 0));
    check_ok(tnd_pool_run(pool, 3, look_around, &places));
    CU_ASSERT(CPU_EQUAL(&places.cpus[1], &before.cpus[1]));
    check_status(tnd_pool_set_cpus(pool, NULL, 1), TANDEM_E_ARGUMENT, NULL, NULL);
    int absent = CPU_SETSIZE - 1;
    check_status(tnd_pool_set_cpus(pool, &absent, 1), TANDEM_E_THREAD, NULL, NULL);
    tnd_pool_free(pool);
}

/* ---- barriers ---- */

struct lockstep {
    struct tnd_barrier barrier;
    struct tnd_spin spin;
    long n_rounds;
    long round[MAX_WORKERS]; /* written by its worker alone */
    atomic_long n_wrong;
};

static void walk_in_step(void *user, int index, int count)
{
    struct lockstep *lockstep = user;
    for (long i = 0; i < lockstep->n_rounds; i++) {
        lockstep->round[index]++;
        tnd_barrier_wait(&lockstep->barrier, count, &lockstep->spin);
        for (int j = 0; j < count; j++) {
            if (lockstep->round[j] != i + 1) {
                atomic_fetch_add(&lockstep->n_wrong, 1);
            }
        }
        tnd_barrier_wait(&lockstep->barrier, count, &lockstep->spin);
    }
}

static void barriers_keep_workers_in_step(void)
{
    for (int count = 2; count <= 8; count += 3) {
        for (int sleepy = 0; sleepy < 2; sleepy++) {
            struct tnd_pool *pool = pool_new(count, -1);
            struct lockstep lockstep = {.n_rounds = scaled(100)};
            lockstep.spin = tnd_pool_spin(pool, count);
            lockstep.spin.polls = sleepy ? 0 : lockstep.spin.polls;
            CU_ASSERT_TRUE_FATAL(tnd_barrier_init(&lockstep.barrier, tnd_pool_park_counts(pool)));
            check_ok(tnd_pool_run(pool, count, walk_in_step, &lockstep));
            check_int(atomic_load(&lockstep.n_wrong), 0);
            tnd_barrier_fini(&lockstep.barrier);
            tnd_pool_free(pool);
        }
    }
}

/* ---- one CPU each ---- */

static void a_thread_whose_cpu_is_taken_moves_to_an_idle_one(void)
{
    static struct tnd_cpu_claims claims;
    cpu_set_t allowed;
    cpu_set_t after;
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    if (CPU_COUNT(&allowed) < 2) {
        tnd_skip("needs two CPUs");
        return;
    }
    unsigned round = 0;
    for (int target = 0; target < TND_CLAIM_CPUS; target++) {
        if (!CPU_ISSET((size_t)target, &allowed)) {
            continue;
        }
        round++;
        for (int cpu = 0; cpu < TND_CLAIM_CPUS; cpu++) {
            atomic_store(&claims.taken[cpu], cpu == target ? 0 : round);
        }
        (void)tnd_cpu_move_to_idle(&claims, round); /* unless it was there already */
        check_int(atomic_load(&claims.taken[target]), round);
        CU_ASSERT_FALSE(tnd_cpu_move_to_idle(&claims, round)); /* all are taken */
        CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(after), &after), 0);
        CU_ASSERT_TRUE(CPU_EQUAL(&allowed, &after));
    }
}

/* ---- threads of an application ---- */

struct team {
    int n_lent; /* threads that it has; 0: none just now */
    int n_calls;
};
struct lent {
    pthread_t thread;
    void (*body)(void *data, int index, int count);
    void *data;
    int index, count;
};

static void *lent_thread(void *user)
{
    struct lent *lent = user;
    lent->body(lent->data, lent->index, lent->count);
    return NULL;
}

static bool lend(void *user, int count, void (*body)(void *data, int index, int count), void *data)
{
    struct team *team = user;
    struct lent lent[MAX_WORKERS];
    team->n_calls++;
    if (team->n_lent == 0) {
        return false;
    }
    count = count < team->n_lent ? count : team->n_lent;
    for (int i = 1; i < count; i++) {
        lent[i] = (struct lent){.body = body, .data = data, .index = i, .count = count};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&lent[i].thread, NULL, lent_thread, &lent[i]), 0);
    }
    body(data, 0, count);
    for (int i = 1; i < count; i++) {
        CU_ASSERT_EQUAL(pthread_join(lent[i].thread, NULL), 0);
    }
    return true;
}

static void lent_threads_work_instead_of_the_pools_own(void)
{
    struct team team = {3, 0};
    struct tnd_pool_options options = {
        .n_threads = 4, .n_cpus = 2, .spin_limit = -1, .team = lend, .team_user = &team};
    struct tnd_pool *pool = NULL;
    struct tnd_pool_statistics statistics;
    struct tally tally = {.sum = 0};
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
    for (int i = 0; i < 20; i++) {
        check_ok(tnd_pool_run(pool, 6, add_one, &tally)); /* cut to 4, of which three are there */
    }
    check_ok(tnd_pool_run(pool, 1, add_one, &tally));
    tnd_pool_statistics(pool, &statistics);
    check_int(team.n_calls, 20);
    check_int(statistics.runs, 20);
    check_int(statistics.threads_alive, 0);
    check_int(tally.count[0], 21);
    check_int(tally.count[1], 20);
    check_int(tally.count[2], 20);
    check_int(tally.count[3], 0);
    team.n_lent = 0;
    check_ok(tnd_pool_run(pool, 4, add_one, &tally));
    tnd_pool_statistics(pool, &statistics);
    check_int(statistics.threads_alive, 3);
    check_int(tally.count[3], 1);
    tnd_pool_free(pool);
}

static CU_TestInfo tests[] = {
    {"every_worker_runs_exactly_once", every_worker_runs_exactly_once},
    {"a_run_with_one_worker_starts_no_thread", a_run_with_one_worker_starts_no_thread},
    {"tiny_runs_lose_no_work", tiny_runs_lose_no_work},
    {"workers_that_sleep_at_once_lose_no_work", workers_that_sleep_at_once_lose_no_work},
    {"thread_count_changes_lose_no_work", thread_count_changes_lose_no_work},
    {"resizing_ends_threads_and_loses_no_work", resizing_ends_threads_and_loses_no_work},
    {"callers_take_turns", callers_take_turns},
    {"a_run_inside_a_run_is_done_by_its_caller_alone",
     a_run_inside_a_run_is_done_by_its_caller_alone},
    {"runs_work_while_the_pool_is_paused", runs_work_while_the_pool_is_paused},
    {"paused_workers_sleep", paused_workers_sleep},
    {"idle_workers_sleep_while_somebody_wants_rest", idle_workers_sleep_while_somebody_wants_rest},
    {"threads_that_cannot_start_are_done_without", threads_that_cannot_start_are_done_without},
    {"allocations_that_fail_leave_nothing_behind", allocations_that_fail_leave_nothing_behind},
    {"wrong_options_are_refused", wrong_options_are_refused},
    {"workers_have_names_masks_and_niceness", workers_have_names_masks_and_niceness},
    {"barriers_keep_workers_in_step", barriers_keep_workers_in_step},
    {"a_thread_whose_cpu_is_taken_moves_to_an_idle_one",
     a_thread_whose_cpu_is_taken_moves_to_an_idle_one},
    {"lent_threads_work_instead_of_the_pools_own", lent_threads_work_instead_of_the_pools_own},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_pool[] = {
    {"pool", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
