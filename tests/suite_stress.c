/* SPDX-License-Identifier: MIT
 * The pool once more, compiled with random yields at the named points (TND_POINT) where a thread
 * that is taken off its CPU could do harm. The sources are included, so that the library itself
 * carries no trace of this; they define all symbols of their files, and the archive's copies
 * stay out. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

static _Thread_local uint64_t point_state;
static atomic_ullong points_passed;

static _Thread_local void (*at_point)(const char *name); /* of a test that looks for one */

/* A few times in eight the thread yields, so that its neighbours overtake it right here. */
static void pass_point(const char *name)
{
    if (at_point != NULL) {
        at_point(name);
    }
    if (point_state == 0) {
        point_state = (uint64_t)(uintptr_t)&point_state | 1;
    }
    point_state ^= point_state << 13; /* xorshift, Marsaglia 2003 */
    point_state ^= point_state >> 7;
    point_state ^= point_state << 17;
    for (unsigned n = point_state % 8 < 3 ? (unsigned)(point_state >> 8) % 4 : 0; n > 0; n--) {
        sched_yield();
    }
    atomic_fetch_add_explicit(&points_passed, 1, memory_order_relaxed);
}
#define TND_POINT(name) pass_point(name)

#include "sched/barrier.c"
#include "sched/idle_cpu.c"
#include "sched/park.c"
#include "sched/pool.c"
#include "sched/pool_threads.c"
#include "tests/support.h"

enum { MAX_WORKERS = 8 };

struct tally {
    long count[MAX_WORKERS]; /* not atomic: the pool must order them */
    struct tnd_barrier barrier;
    struct tnd_spin stress_spin;
};

static long scaled(long least)
{
    return tnd_effort() >= 3 ? 100 * least : tnd_effort() == 2 ? 4 * least : least;
}

static struct tnd_pool *stress_pool(int n_threads, int64_t spin_limit)
{
    struct tnd_pool_options options = {
        .n_threads = n_threads, .n_cpus = 2, .spin_limit = spin_limit};
    struct tnd_pool *pool = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
    return pool;
}

static void add_twice(void *user, int index, int count)
{
    struct tally *tally = user;
    tally->count[index]++;
    tnd_barrier_wait(&tally->barrier, count, &tally->stress_spin);
    tally->count[(index + 1) % count]++; /* the neighbour's: the barrier lies between */
}

static void runs_survive(int64_t spin_limit, bool with_resize)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct tnd_pool *pool = stress_pool(4, spin_limit);
    struct tally tally = {
        .stress_spin = {.polls = spin_limit < 0 ? 50 : spin_limit, .crowded = true}};
    long expected = 0;
    CU_ASSERT_TRUE_FATAL(tnd_barrier_init(&tally.barrier, NULL));
    for (long i = scaled(200); i > 0; i--) {
        int count = (int)tnd_test_rng_int(&rng, 2, MAX_WORKERS);
        if (with_resize && i % 16 == 0) {
            CU_ASSERT_EQUAL(tnd_pool_resize(pool, (int)tnd_test_rng_int(&rng, 2, 6)), TANDEM_OK);
        }
        if (i % 3 == 0) { /* workers sleep by the clock, to be woken by the run */
            tnd_pool_expect(pool, now_ns() + (uint64_t)tnd_test_rng_int(&rng, 0, 1 << (i % 30)));
        }
        int size = tnd_pool_size(pool);
        tnd_pool_run(pool, count, add_twice, &tally);
        expected += 2 * (count < size ? count : size);
    }
    long sum = 0;
    for (int i = 0; i < MAX_WORKERS; i++) {
        sum += tally.count[i];
    }
    check_int(sum, expected);
    CU_ASSERT(atomic_load(&points_passed) > 0);
    tnd_barrier_fini(&tally.barrier);
    tnd_pool_free(pool);
}

static void spinning_runs_survive_yields_anywhere(void)
{
    runs_survive(60, false);
}

static void sleeping_runs_survive_yields_anywhere(void)
{
    runs_survive(0, false);
}

static void resizing_survives_yields_anywhere(void)
{
    runs_survive(20, true);
}

/* ---- gather and release, as the executor uses them ---- */

struct march {
    struct tnd_barrier barrier;
    unsigned ticket;
    long n_rounds;
    long order;               /* written by worker 0 between gather and release */
    long answer[MAX_WORKERS]; /* written by each worker in its round */
    long n_wrong;             /* counted by worker 0 */
};

static void march_on(void *user, int index, int count)
{
    struct march *march = user;
    const struct tnd_spin spin = {.polls = index % 2 == 0 ? 0 : 30, .crowded = true};
    unsigned ticket = march->ticket;
    for (long round = 1; round <= march->n_rounds; round++) {
        if (index == 0) {
            march->order = round;
            tnd_barrier_release(&march->barrier);
            tnd_barrier_gather(&march->barrier, count, &spin);
            for (int i = 1; i < count; i++) {
                march->n_wrong += march->answer[i] != round;
            }
        } else {
            tnd_barrier_pass(&march->barrier, &ticket, &spin);
            march->answer[index] = march->order;
            tnd_barrier_arrive(&march->barrier, count);
        }
    }
}

static void gather_and_release_survive_yields_anywhere(void)
{
    for (int count = 2; count <= 5; count++) {
        struct tnd_pool *pool = stress_pool(count, -1);
        struct march march = {.n_rounds = scaled(100)};
        CU_ASSERT_TRUE_FATAL(tnd_barrier_init(&march.barrier, NULL));
        march.ticket = tnd_barrier_ticket(&march.barrier);
        check_ok(tnd_pool_run(pool, count, march_on, &march));
        check_int(march.n_wrong, 0);
        tnd_barrier_fini(&march.barrier);
        tnd_pool_free(pool);
    }
}

/* ---- an operator binds threads, too ---- */

static cpu_set_t bound_by_operator;
static int other_cpu; /* than the one that the thread moves to */

static void bind_at_point(const char *name)
{
    if (strcmp(name, "between moving and being free again") == 0) {
        CPU_ZERO(&bound_by_operator);
        CPU_SET((size_t)other_cpu, &bound_by_operator);
        (void)sched_setaffinity(0, sizeof(bound_by_operator), &bound_by_operator);
    }
}

/* Claims every CPU but one, so that this thread moves there unless it is there already. */
static bool move_to(int target, const cpu_set_t *allowed, struct tnd_cpu_claims *claims)
{
    static unsigned round;
    round++;
    for (int cpu = 0; cpu < TND_CLAIM_CPUS; cpu++) {
        atomic_store(&claims->taken[cpu],
                     cpu == target || !CPU_ISSET((size_t)cpu, allowed) ? 0 : round);
    }
    return tnd_cpu_move_to_idle(claims, round);
}

static int other_cpu_than(int target, const cpu_set_t *allowed)
{
    int cpu = 0;
    while (cpu == target || !CPU_ISSET((size_t)cpu, allowed)) {
        cpu++;
    }
    return cpu;
}

static void a_mask_that_somebody_sets_during_a_move_stays(void)
{
    static struct tnd_cpu_claims claims;
    cpu_set_t allowed;
    cpu_set_t found;
    int n_moved = 0;
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    if (CPU_COUNT(&allowed) < 2) {
        tnd_skip("needs two CPUs");
        return;
    }
    at_point = bind_at_point;
    for (int target = 0; target < TND_CLAIM_CPUS; target++) {
        if (!CPU_ISSET((size_t)target, &allowed)) {
            continue;
        }
        other_cpu = other_cpu_than(target, &allowed);
        if (move_to(target, &allowed, &claims)) {
            CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(found), &found), 0);
            CU_ASSERT_TRUE(CPU_EQUAL(&found, &bound_by_operator));
            n_moved++;
            (void)sched_setaffinity(0, sizeof(allowed), &allowed);
        }
    }
    at_point = NULL;
    CU_ASSERT_TRUE(n_moved > 0);
}

int main(int argc, char **argv)
{
    static CU_TestInfo tests[] = {
        {"spinning_runs_survive_yields_anywhere", spinning_runs_survive_yields_anywhere},
        {"sleeping_runs_survive_yields_anywhere", sleeping_runs_survive_yields_anywhere},
        {"resizing_survives_yields_anywhere", resizing_survives_yields_anywhere},
        {"gather_and_release_survive_yields_anywhere", gather_and_release_survive_yields_anywhere},
        {"a_mask_that_somebody_sets_during_a_move_stays",
         a_mask_that_somebody_sets_during_a_move_stays},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {
        {"stress", NULL, NULL, NULL, NULL, tests},
        CU_SUITE_INFO_NULL,
    };
    return tnd_suites_run(argc, argv, suites, NULL);
}
