/* SPDX-License-Identifier: MIT
 * bench-handoff: cost of handing work between threads. Each line is the median of repeats, with the
 * least and the largest one. Takes a few seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/registry.h"
#include "bench/arguments.h"
#include "base/clock.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/barrier.h"
#include "sched/exec.h"
#include "sched/topology.h"

enum { REPEATS = 15, ROUNDS = 1000, WAKES = 100, NODES = 256, MAX_THREADS = 256 };

static uint64_t now_ns(void)
{
    return tnd_clock_real()->now_ns(tnd_clock_real());
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double report(const char *what, const char *unit, double *samples, int n)
{
    qsort(samples, (size_t)n, sizeof(*samples), by_value);
    printf("%-58s %9.1f %s   (%.1f .. %.1f)\n", what, samples[n / 2], unit, samples[0],
           samples[n - 1]);
    return samples[n / 2];
}

static void give_up(const char *what)
{
    fprintf(stderr, "bench-handoff: %s\n", what);
    exit(1);
}

static struct tnd_pool *pool_new(int n_threads, int n_cpus, int64_t spin_limit)
{
    struct tnd_pool_options options = {
        .n_threads = n_threads, .n_cpus = n_cpus, .spin_limit = spin_limit};
    struct tnd_pool *pool = NULL;
    if (tnd_pool_new(&options, &pool, NULL) != TANDEM_OK) {
        give_up("no pool");
    }
    return pool;
}

/* ---- hand-off, wake-up, barrier ---- */

struct meeting {
    struct tnd_barrier barrier;
    struct tnd_spin spin;
    unsigned ticket;
    uint64_t woken_ns; /* set by worker 1 */
    double samples[WAKES];
};

static void hand_off(void *user, int index, int count)
{
    struct meeting *meeting = user;
    unsigned ticket = meeting->ticket;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < ROUNDS; i++) {
            if (index == 0) {
                tnd_barrier_release(&meeting->barrier);
                tnd_barrier_gather(&meeting->barrier, count, &meeting->spin);
            } else {
                tnd_barrier_pass(&meeting->barrier, &ticket, &meeting->spin);
                tnd_barrier_arrive(&meeting->barrier, count);
            }
        }
        if (index == 0) {
            meeting->samples[repeat] = (double)(now_ns() - begin) / (2.0 * ROUNDS);
        }
    }
}

static void wake_up(void *user, int index, int count)
{
    struct meeting *meeting = user;
    const struct tnd_spin asleep = {.polls = 0};
    unsigned ticket = meeting->ticket;
    for (int i = 0; i < WAKES; i++) {
        if (index == 0) {
            while (atomic_load(&meeting->barrier.releases.sleepers) == 0) {
            }
            /* The worker has announced that it will sleep; wait until it does. */
            for (uint64_t begin = now_ns(); now_ns() - begin < 100000;) {
            }
            uint64_t begin = now_ns();
            tnd_barrier_release(&meeting->barrier);
            tnd_barrier_gather(&meeting->barrier, count, &meeting->spin);
            meeting->samples[i] = (double)(meeting->woken_ns - begin) / 1000.0;
        } else {
            tnd_barrier_pass(&meeting->barrier, &ticket, &asleep);
            meeting->woken_ns = now_ns();
            tnd_barrier_arrive(&meeting->barrier, count);
        }
    }
}

static void meet(void *user, int index, int count)
{
    struct meeting *meeting = user;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < ROUNDS; i++) {
            tnd_barrier_wait(&meeting->barrier, count, &meeting->spin);
        }
        if (index == 0) {
            meeting->samples[repeat] = (double)(now_ns() - begin) / ROUNDS;
        }
    }
}

static void measure_meeting(int n_threads, int n_cpus, tnd_pool_fn fn, struct meeting *meeting)
{
    struct tnd_pool *pool = pool_new(n_threads, n_cpus, -1);
    if (!tnd_barrier_init(&meeting->barrier, NULL)) {
        give_up("no barrier");
    }
    meeting->spin = tnd_pool_spin(pool, n_threads);
    meeting->ticket = tnd_barrier_ticket(&meeting->barrier);
    tnd_pool_run(pool, n_threads, fn, meeting);
    tnd_barrier_fini(&meeting->barrier);
    tnd_pool_free(pool);
}

static void nothing(void *user, int index, int count)
{
    (void)user;
    (void)index;
    (void)count;
}

static void measure_runs(int n_threads, int n_cpus, int64_t spin_limit, const char *what)
{
    struct tnd_pool *pool = pool_new(n_threads, n_cpus, spin_limit);
    double samples[REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < WAKES; i++) {
            tnd_pool_run(pool, n_threads, nothing, NULL);
        }
        samples[repeat] = (double)(now_ns() - begin) / 1000.0 / WAKES;
    }
    report(what, "us", samples, REPEATS);
    tnd_pool_free(pool);
}

/* ---- empty nodes: a backend that does nothing ---- */

static enum tandem_status open_idle(const struct tandem_backend_options *options,
                                    tandem_backend **out_backend, struct tandem_error *error);
static void close_idle(tandem_backend *backend)
{
    (void)backend;
}
static enum tandem_status supports_all(tandem_backend *backend, const tandem_tensor *node,
                                       uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)node;
    (void)task;
    (void)error;
    return TANDEM_OK;
}
static enum tandem_status run_idle(tandem_backend *backend, const struct tandem_work *work,
                                   struct tandem_worker *worker)
{
    int64_t begin;
    int64_t end;
    (void)backend;
    (void)work;
    (void)worker->next(worker, 1, 1, &begin, &end);
    return TANDEM_OK;
}
static const struct tandem_backend_api idle_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "idle",
    .kind = TANDEM_KIND_CPU,
    .open = open_idle,
    .close = close_idle,
    .supports = supports_all,
    .run = run_idle,
};
static enum tandem_status open_idle(const struct tandem_backend_options *options,
                                    tandem_backend **out_backend, struct tandem_error *error)
{
    static tandem_backend idle = {&idle_api};
    (void)options;
    (void)error;
    *out_backend = &idle;
    return TANDEM_OK;
}

struct empty_graph {
    tandem_context *context;
    tandem_graph *graph;
    tandem_plan *plan;
    struct tnd_registry *registry;
};

static struct empty_graph empty_graph_new(void)
{
    struct empty_graph empty;
    struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = MAX_THREADS};
    if (tnd_registry_open(&options, &empty.registry, NULL) != TANDEM_OK ||
        tnd_registry_add(empty.registry, &idle_api, NULL, NULL) != TANDEM_OK ||
        tandem_context_new(NULL, &empty.context, NULL) != TANDEM_OK) {
        give_up("no backend");
    }
    tandem_tensor *x = tandem_tensor_new(empty.context, TANDEM_TYPE_F32, 1, (const int64_t[]){64});
    for (int i = 0; i < NODES; i++) {
        x = tandem_scale(empty.context, x, 2);
    }
    empty.graph = tandem_graph_new(empty.context);
    tandem_graph_add(empty.graph, x);
    if (tandem_graph_finish(empty.graph, NULL) != TANDEM_OK ||
        tandem_plan_new(NODES, &empty.plan, NULL) != TANDEM_OK) {
        give_up("no graph");
    }
    return empty;
}

static void plan_all(struct empty_graph *empty, const char *backend, int n_threads)
{
    int slot = tnd_registry_find(empty->registry, backend, NULL);
    for (int i = 0; i < NODES; i++) {
        struct tandem_plan_node *node = &empty->plan->nodes[i];
        node->stage[TANDEM_STAGE_COMPUTE].backend = (uint8_t)slot;
        node->stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
        node->stage[TANDEM_STAGE_COMPUTE].parallel = n_threads > 1;
        node->n_threads = n_threads;
    }
}

static void measure_nodes(struct empty_graph *empty, const char *backend, int n_threads, int n_cpus,
                          const char *what)
{
    struct tnd_pool *pool = pool_new(n_threads, n_cpus, -1);
    struct tnd_exec *exec = NULL;
    double samples[REPEATS];
    plan_all(empty, backend, n_threads);
    if (tnd_exec_new(pool, empty->registry, tnd_clock_real(), &exec, NULL) != TANDEM_OK) {
        give_up("no executor");
    }
    for (int repeat = -1; repeat < REPEATS; repeat++) { /* the first one warms up */
        uint64_t begin = now_ns();
        for (int i = 0; i < 20; i++) {
            tnd_exec_run(exec, empty->graph, empty->plan, NULL, NULL);
        }
        if (repeat >= 0) {
            samples[repeat] = (double)(now_ns() - begin) / (20.0 * NODES);
        }
    }
    report(what, "ns", samples, REPEATS);
    tnd_exec_free(exec);
    tnd_pool_free(pool);
}

static void measure_unfolding(struct empty_graph *empty, bool is_kept, const char *what)
{
    struct tnd_steps *steps = NULL;
    double samples[REPEATS];
    plan_all(empty, "idle", 2);
    tnd_steps_new(empty->graph, empty->plan, empty->registry, &steps, NULL);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < 100; i++) {
            steps->kept.is_whole = is_kept && steps->kept.is_whole;
            tnd_steps_renew(empty->graph, empty->plan, empty->registry, NULL,
                            TANDEM_EXECUTE_DEFAULT, &steps, NULL);
        }
        samples[repeat] = (double)(now_ns() - begin) / (100.0 * NODES);
    }
    report(what, "ns", samples, REPEATS);
    tnd_steps_free(steps);
}

/* ---- more threads than cores ---- */

enum { STAGES = 50, CHUNKS = 64, CHUNK_STEPS = 4000 };

struct labour {
    struct tnd_barrier barrier;
    struct tnd_spin spin;
    struct {
        _Alignas(TND_CACHE_LINE) atomic_int next;
    } stages[STAGES];
    atomic_ullong result;
};

/* Stages of chunks with barriers in between, like the products of a model. */
static void labour_on(void *user, int index, int count)
{
    struct labour *labour = user;
    uint64_t value = (uint64_t)index + 1;
    for (int stage = 0; stage < STAGES; stage++) {
        while (atomic_fetch_add_explicit(&labour->stages[stage].next, 1, memory_order_relaxed) <
               CHUNKS) {
            for (int i = 0; i < CHUNK_STEPS; i++) {
                value = value * 6364136223846793005u + 1442695040888963407u;
            }
        }
        tnd_barrier_wait(&labour->barrier, count, &labour->spin);
    }
    atomic_fetch_xor(&labour->result, value); /* so that the work is not optimised away */
}

/* Chunks per millisecond. */
static double measure_labour(int n_threads, int n_cpus, const char *what)
{
    struct tnd_pool *pool = pool_new(n_threads, n_cpus, -1);
    struct labour labour;
    double samples[REPEATS];
    memset(&labour, 0, sizeof(labour));
    if (!tnd_barrier_init(&labour.barrier, NULL)) {
        give_up("no barrier");
    }
    labour.spin = tnd_pool_spin(pool, n_threads);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        memset(&labour.stages, 0, sizeof(labour.stages));
        uint64_t begin = now_ns();
        tnd_pool_run(pool, n_threads, labour_on, &labour);
        samples[repeat] = 1e6 * STAGES * CHUNKS / (double)(now_ns() - begin);
    }
    double median = report(what, "chunks/ms", samples, REPEATS);
    tnd_barrier_fini(&labour.barrier);
    tnd_pool_free(pool);
    return median;
}

int main(int argc, char **argv)
{
    static struct tnd_topology topology;
    tnd_bench_arguments(argc, argv,
                        "usage: bench-handoff\n"
                        "What it costs to hand work from thread to thread.\n",
                        NULL, 0);
    static struct meeting meeting;
    char what[96];
    if (tnd_topology_read(&topology, NULL) != TANDEM_OK) {
        give_up("no topology");
    }
    int n_cpus = topology.n_cpus;
    printf("bench-handoff: %s; median (smallest .. largest) of %d repeats\n", topology.text,
           REPEATS);
    measure_meeting(2, n_cpus, hand_off, &meeting);
    report("one hand-off between spinning workers", "ns", meeting.samples, REPEATS);
    measure_meeting(2, n_cpus, wake_up, &meeting);
    report("one wake-up of a parked worker", "us", meeting.samples, WAKES);
    measure_runs(2, n_cpus, -1, "an empty run of 2 workers, spinning");
    measure_runs(2, n_cpus, 0, "an empty run of 2 workers, parked");
    for (int n_threads = 2; n_threads <= 8; n_threads++) {
        measure_meeting(n_threads, n_cpus, meet, &meeting);
        snprintf(what, sizeof(what), "a barrier of %d threads%s", n_threads,
                 n_threads > n_cpus ? " (more than CPUs)" : "");
        report(what, "ns", meeting.samples, REPEATS);
    }
    struct empty_graph empty = empty_graph_new();
    measure_unfolding(&empty, false, "check and unfold a plan, a node");
    measure_unfolding(&empty, true, "find that a plan is that of the last run, a node");
    measure_nodes(&empty, "idle", 1, n_cpus, "an empty node on 1 thread, once more");
    measure_nodes(&empty, "idle", 2, n_cpus, "an empty node on 2 threads, once more");
    measure_nodes(&empty, "cpu", 1, n_cpus, "a node of 64 values on 1 thread");
    measure_nodes(&empty, "cpu", 2, n_cpus, "a node of 64 values on 2 threads");
    tandem_plan_free(empty.plan);
    tandem_context_free(empty.context);
    tnd_registry_close(empty.registry);
    int n_cores = topology.n_cores < MAX_THREADS / 4 ? topology.n_cores : MAX_THREADS / 4;
    double one = measure_labour(n_cores, n_cpus, "work on 1 thread a core");
    double four = measure_labour(4 * n_cores, n_cpus, "the same work on 4 threads a core");
    printf("%-58s %9.3f\n", "throughput of 4 threads a core relative to 1", four / one);
    return 0;
}
