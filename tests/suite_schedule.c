/* SPDX-License-Identifier: MIT
 * The pool once more, under a scheduler of the test: its sources are included with the primitives
 * replaced, so that threads are coroutines and a seed decides at every atomic access, lock and wait
 * who goes on. What deadlocks or miscounts under a seed does so again. Time is the test's, and the
 * timed re-check of park.c does not exist here: a lost wake-up is a deadlock. All memory is in one
 * order (ThreadSanitizer and tests/model look at the rest).
 *
 * TANDEM_TEST_SCHEDULES is the number of schedules, TANDEM_TEST_SCHEDULE runs one alone. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "sched/pool_threads.h"
#include "tests/support.h"

/* ---- the scheduler ---- */

enum { MOST_TASKS = 16, TASK_STACK = 128 * 1024, MOST_POINTS = 2000000 };
#define RECHECK 40000000 /* a wait of this many nanoseconds or more is for ever: park.c re-checks */

enum task_state { FREE, READY, WANTS_LOCK, WAITS, JOINS, DONE };

/* What a mutex or a condition variable of the pool holds here, in place of its own contents. */
struct fake_lock {
    int holder; /* task + 1; 0: nobody */
};

static struct task {
    enum task_state state;
    struct fake_lock *lock; /* WANTS_LOCK; WAITS: to be taken again */
    const void *condition;  /* WAITS */
    uint64_t until_ns;      /* WAITS; UINT64_MAX: until it is woken */
    int joined;             /* JOINS: the task that must be done */
    bool inside_run;        /* tnd_pool_inside_run of this thread */
    void *(*fn)(void *user);
    void *user;
    ucontext_t context;
    char *stack;
} tasks[MOST_TASKS];

static struct {
    uint64_t random;
    uint64_t now_ns;
    int current;
    long points;
    bool is_stuck;           /* nobody could go on */
    bool waits_in_two_steps; /* planted: whoever waits can miss a broadcast */
    ucontext_t driver;
    uint64_t seed;
} world;

static uint64_t draw(uint64_t below)
{
    world.random ^= world.random << 13; /* xorshift, Marsaglia 2003 */
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return (world.random >> 11) % below;
}

static bool can_go_on(const struct task *task)
{
    switch (task->state) {
    case READY:
        return true;
    case WANTS_LOCK:
        return task->lock->holder == 0;
    case WAITS: /* its time may come at any moment */
        return task->until_ns != UINT64_MAX && task->lock->holder == 0;
    case JOINS:
        return tasks[task->joined].state == DONE;
    default:
        return false;
    }
}

/* Brings a task that can go on to READY. */
static void grant(struct task *task, int index)
{
    if (task->state == WAITS && world.now_ns < task->until_ns) {
        world.now_ns = task->until_ns;
    }
    if (task->state == WAITS || task->state == WANTS_LOCK) {
        task->lock->holder = index + 1;
    }
    task->state = READY;
}

/* Some task goes on, perhaps this one; when none can, the driver ends the schedule. */
static void switch_task(void)
{
    int able[MOST_TASKS];
    int n = 0;
    int from = world.current;
    for (int i = 0; i < MOST_TASKS; i++) {
        if (can_go_on(&tasks[i])) {
            able[n++] = i;
        }
    }
    if (n == 0 || ++world.points > MOST_POINTS) {
        world.is_stuck = true;
        setcontext(&world.driver);
    }
    int to = able[draw((uint64_t)n)];
    grant(&tasks[to], to);
    if (to != from) {
        tasks[from].inside_run = tnd_pool_inside_run;
        tnd_pool_inside_run = tasks[to].inside_run;
        world.current = to;
        swapcontext(&tasks[from].context, &tasks[to].context);
    }
}

/* Whoever is here may lose the CPU. */
static void point(void)
{
    world.now_ns += 1 + draw(200);
    if (draw(3) == 0) {
        switch_task();
    }
}

static void run_task(void)
{
    struct task *self = &tasks[world.current];
    (void)self->fn(self->user);
    self = &tasks[world.current];
    self->state = DONE;
    switch_task();
}

static void make_context(struct task *task)
{
    getcontext(&task->context);
    task->context.uc_stack.ss_sp = task->stack;
    task->context.uc_stack.ss_size = TASK_STACK;
    task->context.uc_link = NULL;
    makecontext(&task->context, run_task, 0);
}

static int start_task(void *(*fn)(void *), void *user)
{
    int i = 0;
    while (i < MOST_TASKS && tasks[i].state != FREE) {
        i++;
    }
    if (i == MOST_TASKS) {
        return -1;
    }
    struct task *task = &tasks[i];
    char *stack = task->stack != NULL ? task->stack : malloc(TASK_STACK);
    *task = (struct task){.state = READY, .fn = fn, .user = user, .stack = stack};
    make_context(task);
    return i;
}

/* ---- what the pool calls ---- */

static int fake_init(void *memory)
{
    *(struct fake_lock *)memory = (struct fake_lock){0};
    return 0;
}

static int fake_destroy(void *memory)
{
    CU_ASSERT_EQUAL(((struct fake_lock *)memory)->holder, 0);
    return 0;
}

static int fake_lock(void *memory)
{
    struct task *self = &tasks[world.current];
    self->lock = memory;
    self->state = WANTS_LOCK;
    switch_task();
    return 0;
}

static int fake_unlock(void *memory)
{
    CU_ASSERT_EQUAL(((struct fake_lock *)memory)->holder, world.current + 1);
    ((struct fake_lock *)memory)->holder = 0;
    point();
    return 0;
}

static int fake_wait(void *condition, void *lock, const struct timespec *until)
{
    struct task *self = &tasks[world.current];
    uint64_t until_ns = (uint64_t)until->tv_sec * UINT64_C(1000000000) + (uint64_t)until->tv_nsec;
    if (world.waits_in_two_steps) {
        fake_unlock(lock);
        point();
    } else {
        ((struct fake_lock *)lock)->holder = 0;
    }
    self->lock = lock;
    self->condition = condition;
    self->until_ns = until_ns >= world.now_ns + RECHECK ? UINT64_MAX : until_ns;
    self->state = WAITS;
    switch_task();
    return 0;
}

static int fake_broadcast(const void *condition)
{
    for (int i = 0; i < MOST_TASKS; i++) {
        if (tasks[i].state == WAITS && tasks[i].condition == condition) {
            tasks[i].state = WANTS_LOCK;
        }
    }
    point();
    return 0;
}

static int fake_start(pthread_t *out, const pthread_attr_t *attributes, void *(*fn)(void *),
                      void *user)
{
    (void)attributes;
    int i = draw(64) == 0 ? -1 : start_task(fn, user); /* now and then the system refuses */
    *out = (pthread_t)(i + 1);
    point();
    return i < 0;
}

static int fake_join(pthread_t thread)
{
    struct task *self = &tasks[world.current];
    self->joined = (int)thread - 1;
    self->state = JOINS;
    switch_task();
    tasks[self->joined].state = FREE;
    return 0;
}

static uint64_t fake_now_ns(const struct tnd_clock *clock)
{
    (void)clock;
    return world.now_ns;
}

static const struct tnd_clock fake_clock = {fake_now_ns, NULL, NULL};

#define pthread_mutex_init(lock, attributes)     fake_init(lock)
#define pthread_mutex_destroy(lock)              fake_destroy(lock)
#define pthread_mutex_lock(lock)                 fake_lock(lock)
#define pthread_mutex_unlock(lock)               fake_unlock(lock)
#define pthread_cond_init(condition, attributes) fake_init(condition)
#define pthread_cond_destroy(condition)          fake_destroy(condition)
#define pthread_cond_timedwait(c, lock, until)   fake_wait(c, lock, until)
#define pthread_cond_broadcast(condition)        fake_broadcast(condition)
#define pthread_join(thread, result)             fake_join(thread)
#define pthread_setname_np(thread, name)         ((void)(thread), (void)(name))
#define pthread_setaffinity_np(thread, n, set)   ((void)(thread), (void)(set), 0)
#define pthread_sigmask(how, set, before)        ((void)(set), (void)(before))
#define prctl(...)                               0
#define sched_yield()                            point()
#define tnd_clock_real()                         (&fake_clock)
#define tnd_cpu_claim(claims, round)             ((void)(claims), true)
#define tnd_cpu_move_to_idle(claims, round)      (point(), (void)(claims), draw(2) == 0)

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_exchange
#if defined(__clang__)
#define PLAIN_LOAD(at)         __c11_atomic_load(at, __ATOMIC_SEQ_CST)
#define PLAIN_STORE(at, value) __c11_atomic_store(at, value, __ATOMIC_SEQ_CST)
#define PLAIN_ADD(at, value)   __c11_atomic_fetch_add(at, value, __ATOMIC_SEQ_CST)
#define PLAIN_SWAP(at, value)  __c11_atomic_exchange(at, value, __ATOMIC_SEQ_CST)
#else
#define PLAIN_LOAD(at)         __atomic_load_n(at, __ATOMIC_SEQ_CST)
#define PLAIN_STORE(at, value) __atomic_store_n(at, value, __ATOMIC_SEQ_CST)
#define PLAIN_ADD(at, value)   __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST)
#define PLAIN_SWAP(at, value)  __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)
#endif
#define atomic_load(at)                             (point(), PLAIN_LOAD(at))
#define atomic_load_explicit(at, order)             (point(), PLAIN_LOAD(at))
#define atomic_store_explicit(at, value, order)     (point(), PLAIN_STORE(at, value))
#define atomic_fetch_add(at, value)                 (point(), PLAIN_ADD(at, value))
#define atomic_fetch_add_explicit(at, value, order) (point(), PLAIN_ADD(at, value))
#define atomic_fetch_sub_explicit(at, value, order) (point(), PLAIN_ADD(at, -(value)))
#define atomic_exchange(at, value)                  (point(), PLAIN_SWAP(at, value))

#include "sched/barrier.c"
#include "sched/park.c"
#include "sched/pool.c"
#include "sched/pool_threads.c"

/* ---- what is scheduled ---- */

enum { MOST_WORKERS = 5, MOST_CALLERS = 3 };

struct scene {
    struct tnd_pool *pool;
    int n_callers;
    long n_wrong;
};

/* One run: each worker once, two barriers or two gathered rounds in it. */
struct errand {
    struct scene *scene;
    bool gathers;
    struct tnd_barrier barrier;
    unsigned ticket;
    int order;
    int visits[MOST_WORKERS];
    int second[MOST_WORKERS];
    int count;
};

static void wait_twice(struct errand *errand, int index, int count, const struct tnd_spin *spin)
{
    tnd_barrier_wait(&errand->barrier, count, spin);
    for (int i = 0; i < count; i++) {
        errand->scene->n_wrong += errand->visits[i] != 1; /* all were here before anybody left */
    }
    errand->second[index]++;
    tnd_barrier_wait(&errand->barrier, count, spin);
}

static void follow_orders(struct errand *errand, int index, int count, const struct tnd_spin *spin)
{
    unsigned ticket = errand->ticket;
    for (int round = 1; round <= 2; round++) {
        if (index == 0) {
            errand->order = round;
            tnd_barrier_release(&errand->barrier);
            tnd_barrier_gather(&errand->barrier, count, spin);
            for (int i = 1; i < count; i++) {
                errand->scene->n_wrong += errand->second[i] != round;
            }
        } else {
            tnd_barrier_pass(&errand->barrier, &ticket, spin);
            errand->second[index] = errand->order;
            tnd_barrier_arrive(&errand->barrier, count);
        }
    }
}

static void do_errand(void *user, int index, int count)
{
    struct errand *errand = user;
    struct tnd_spin spin = tnd_pool_spin(errand->scene->pool, count);
    errand->visits[index]++;
    if (index == 0) {
        errand->count = count;
    }
    if (count > 1 && errand->gathers) {
        follow_orders(errand, index, count, &spin);
    } else if (count > 1) {
        wait_twice(errand, index, count, &spin);
    }
}

static void run_errand(struct scene *scene)
{
    struct errand errand = {.scene = scene, .gathers = draw(2) == 0};
    (void)tnd_barrier_init(&errand.barrier, NULL);
    errand.ticket = tnd_barrier_ticket(&errand.barrier);
    scene->n_wrong +=
        tnd_pool_run(scene->pool, 1 + (int)draw(MOST_WORKERS), do_errand, &errand) != TANDEM_OK;
    for (int i = 0; i < MOST_WORKERS; i++) {
        scene->n_wrong += errand.visits[i] != (i < errand.count);
    }
    tnd_barrier_fini(&errand.barrier);
}

/* What applications do to a pool, from any thread. */
static void *call_pool(void *user)
{
    struct scene *scene = user;
    for (uint64_t left = 1 + draw(4); left > 0; left--) {
        switch (draw(8)) {
        case 0:
            scene->n_wrong +=
                tnd_pool_resize(scene->pool, 1 + (int)draw(MOST_WORKERS)) != TANDEM_OK;
            break;
        case 1:
            tnd_pool_pause(scene->pool);
            run_errand(scene);
            tnd_pool_resume(scene->pool);
            break;
        case 2: /* a timed wait: near, far, past */
            tnd_pool_expect(scene->pool, world.now_ns + draw(4) * 70000);
            break;
        case 3:
            scene->n_wrong += tnd_pool_set_cpus(scene->pool, NULL, 0) != TANDEM_OK;
            break;
        default:
            run_errand(scene);
        }
    }
    return NULL;
}

/* The first task: opens a pool, lets others call it, closes it. */
static void *play(void *user)
{
    struct scene *scene = user;
    struct tnd_pool_options options = {.n_threads = 1 + (int)draw(MOST_WORKERS),
                                       .n_cpus = 1 + (int)draw(MOST_WORKERS),
                                       .spin_limit = (int64_t)draw(6),
                                       .start_thread = fake_start};
    pthread_t callers[MOST_CALLERS];
    int n = (int)draw(MOST_CALLERS);
    if (tnd_pool_new(&options, &scene->pool, NULL) != TANDEM_OK) {
        scene->n_wrong++;
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        callers[i] = (pthread_t)(start_task(call_pool, scene) + 1);
    }
    (void)call_pool(scene);
    for (int i = 0; i < n; i++) {
        (void)fake_join(callers[i]);
    }
    tnd_pool_free(scene->pool);
    setcontext(&world.driver);
    return NULL;
}

/* False when the schedule ends in a deadlock or with a wrong count. */
static bool run_schedule(uint64_t seed, bool plants)
{
    static struct scene scene;
    memset(&scene, 0, sizeof(scene));
    for (int i = 0; i < MOST_TASKS; i++) {
        tasks[i].state = FREE;
    }
    world.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    world.now_ns = 1000000;
    world.points = 0;
    world.is_stuck = false;
    world.waits_in_two_steps = plants;
    world.seed = seed;
    world.current = start_task(play, &scene);
    tnd_pool_inside_run = false;
    swapcontext(&world.driver, &tasks[world.current].context);
    return !world.is_stuck && scene.n_wrong == 0;
}

static long number_of(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtol(text, NULL, 10) : otherwise;
}

/* An assertion of the pool ends the process: which schedule it was should be known. */
static void tell_seed(int number)
{
    char text[64];
    int n =
        snprintf(text, sizeof(text), "TANDEM_TEST_SCHEDULE=%llu\n", (unsigned long long)world.seed);
    (void)!write(STDOUT_FILENO, text, (size_t)n);
    signal(number, SIG_DFL);
    raise(number);
}

static void no_schedule_of_the_pool_deadlocks_or_loses_work(void)
{
    long n = number_of("TANDEM_TEST_SCHEDULES", tnd_effort() >= 3 ? 1000000 : 5000 * tnd_effort());
    long only = number_of("TANDEM_TEST_SCHEDULE", -1);
    uint64_t first = (tnd_test_seed() - 1) * UINT64_C(10000000);
    long long points = 0;
    signal(SIGABRT, tell_seed);
    for (long i = 0; i < (only >= 0 ? 1 : n); i++) {
        uint64_t seed = only >= 0 ? (uint64_t)only : first + (uint64_t)i;
        if (!run_schedule(seed, false)) {
            printf("%s; run it again with TANDEM_TEST_SCHEDULE=%llu\n",
                   world.is_stuck ? "a deadlock" : "a wrong count", (unsigned long long)seed);
            CU_FAIL("a schedule goes wrong");
            break;
        }
        points += world.points;
    }
    signal(SIGABRT, SIG_DFL);
    printf("(%ld schedules, %lld switches) ", only >= 0 ? 1 : n, points);
}

static void a_planted_lost_wake_up_is_found(void)
{
#if !defined(__SANITIZE_ADDRESS__) /* what a deadlock leaves behind is lost */
    int seed = 0;
    while (seed < 2000 && run_schedule((uint64_t)seed, true)) {
        seed++;
    }
    CU_ASSERT_TRUE(seed < 2000 && world.is_stuck);
    printf("(found by schedule %d) ", seed);
#endif
}

int main(int argc, char **argv)
{
    static CU_TestInfo tests[] = {
        {"no_schedule_of_the_pool_deadlocks_or_loses_work",
         no_schedule_of_the_pool_deadlocks_or_loses_work},
        {"a_planted_lost_wake_up_is_found", a_planted_lost_wake_up_is_found},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {
        {"schedule", NULL, NULL, NULL, NULL, tests},
        CU_SUITE_INFO_NULL,
    };
    return tnd_suites_run(argc, argv, suites, NULL);
}
