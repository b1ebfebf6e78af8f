/* SPDX-License-Identifier: MIT
 * bench-waiting: the cost of workers that wait for a device. A graph of small CPU nodes around one
 * device stage runs alternately with several methods of waiting; each line is the median over the
 * rounds of wall time and of the process's CPU time, per graph. Takes some seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/registry.h"
#include "base/clock.h"
#include "bench/arguments.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/exec.h"
#include "sched/topology.h"

enum { CPU_NODES = 8, ELEMENTS = 1 << 16, GRAPHS = 10, MOST_ROUNDS = 999 };

static double device_us = 2000;
static int n_threads = 2;
static int n_rounds = 25;

static const char usage[] =
    "usage: bench-waiting [--device-us US] [--threads N] [--rounds N]\n"
    "  --device-us US  time of the device stage, default 2000\n"
    "  --threads N     threads of the CPU nodes, default 2\n"
    "  --rounds N      rounds of all ways in turn, 10 graphs each, default 25\n";

static void give_up(const char *what)
{
    fprintf(stderr, "bench-waiting: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    return tnd_clock_real()->now_ns(tnd_clock_real());
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- a device that ends at a given time, and whose sync keeps a CPU busy, as some do ---- */

struct spinning_device {
    tandem_backend base;
    uint64_t done_ns;
};

static enum tandem_status open_spinning(const struct tandem_backend_options *options,
                                        tandem_backend **out_backend, struct tandem_error *error);
static void close_spinning(tandem_backend *backend)
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
static enum tandem_status submit_spinning(tandem_backend *backend, const struct tandem_work *work,
                                          uint64_t *out_ticket, struct tandem_error *error)
{
    struct spinning_device *device = (struct spinning_device *)backend;
    (void)error;
    memset(work->node->data, 0, tandem_tensor_bytes(work->node));
    device->done_ns = now_ns() + (uint64_t)(device_us * 1000);
    *out_ticket = 1;
    return TANDEM_OK;
}
static enum tandem_status sync_spinning(tandem_backend *backend, uint64_t ticket,
                                        struct tandem_error *error)
{
    const struct spinning_device *device = (struct spinning_device *)backend;
    (void)ticket;
    (void)error;
    while (now_ns() < device->done_ns) {
    }
    return TANDEM_OK;
}
static const struct tandem_backend_api spinning_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "spinning",
    .kind = TANDEM_KIND_SIM,
    .open = open_spinning,
    .close = close_spinning,
    .supports = supports_all,
    .submit = submit_spinning,
    .sync = sync_spinning,
};
static enum tandem_status open_spinning(const struct tandem_backend_options *options,
                                        tandem_backend **out_backend, struct tandem_error *error)
{
    static struct spinning_device device = {{&spinning_api}, 0};
    (void)options;
    (void)error;
    *out_backend = &device.base;
    return TANDEM_OK;
}

/* ---- the graph ---- */

struct subject {
    tandem_context *context;
    tandem_graph *graph;
    struct tnd_registry *registry;
    int device_node;
};

static struct subject subject_new(void)
{
    struct subject subject = {.device_node = -1};
    char settings[64];
    snprintf(settings, sizeof(settings), "sim:latency_us=%.1f", device_us);
    struct tnd_registry_options options = {
        .backends = "cpu,sim", .settings = settings, .n_threads_max = n_threads};
    if (tnd_registry_open(&options, &subject.registry, NULL) != TANDEM_OK ||
        tnd_registry_add(subject.registry, &spinning_api, NULL, NULL) != TANDEM_OK ||
        tandem_context_new(NULL, &subject.context, NULL) != TANDEM_OK) {
        give_up("no backends");
    }
    tandem_context *context = subject.context;
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){ELEMENTS});
    tandem_tensor *s = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){64});
    memset(x->data, 0, tandem_tensor_bytes(x));
    memset(s->data, 0, tandem_tensor_bytes(s));
    for (int i = 0; i < CPU_NODES / 2; i++) {
        x = tandem_scale(context, x, 2);
    }
    tandem_tensor *device = tandem_scale(context, s, 3);
    x = tandem_add(context, x, device);
    for (int i = 0; i < CPU_NODES / 2 - 1; i++) {
        x = tandem_scale(context, x, 2);
    }
    subject.graph = tandem_graph_new(context);
    tandem_graph_add(subject.graph, x);
    if (tandem_graph_finish(subject.graph, NULL) != TANDEM_OK) {
        give_up("no graph");
    }
    for (int i = 0; i < subject.graph->n_nodes; i++) {
        subject.device_node = subject.graph->nodes[i] == device ? i : subject.device_node;
    }
    return subject;
}

/* ---- methods of waiting ---- */

struct method {
    const char *name;
    bool is_parallel;   /* all threads, else one */
    int64_t spin_limit; /* of the pool; < 0: default */
    bool wait;          /* of the device stage */
    double predicted;   /* prediction of its time, as a multiple of the real one; 0: none */
};

static const struct method methods[] = {
    {"one thread, no workers", false, -1, false, 0},
    {"workers spin without end", true, INT64_MAX, false, 0},
    {"workers spin, then sleep", true, -1, false, 0},
    {"workers sleep by the plan's flag", true, -1, true, 0},
    {"workers sleep by prediction", true, -1, true, 1},
    {"  predicted 20 % too long", true, -1, true, 1.2},
    {"  predicted 20 % too short", true, -1, true, 0.8},
    {"  predicted half of it", true, -1, true, 0.5},
};

enum { N_METHODS = sizeof(methods) / sizeof(methods[0]), SPINNING = 1 };

struct setup {
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    tandem_plan *plan;
    double wall_us[MOST_ROUNDS];
    double cpu_us[MOST_ROUNDS];
};

static void setup_open(struct setup *setup, const struct subject *subject,
                       const struct method *method, int slot, int n_cpus)
{
    int n = method->is_parallel ? n_threads : 1;
    struct tnd_pool_options options = {
        .n_threads = n, .n_cpus = n_cpus, .spin_limit = method->spin_limit};
    if (tnd_pool_new(&options, &setup->pool, NULL) != TANDEM_OK ||
        tnd_exec_new(setup->pool, subject->registry, tnd_clock_real(), &setup->exec, NULL) !=
            TANDEM_OK ||
        tandem_plan_new(subject->graph->n_nodes, &setup->plan, NULL) != TANDEM_OK) {
        give_up("out of memory");
    }
    for (int i = 0; i < setup->plan->n_nodes; i++) {
        struct tandem_plan_node *node = &setup->plan->nodes[i];
        struct tandem_task_config *config = &node->stage[TANDEM_STAGE_COMPUTE];
        bool is_device = i == subject->device_node;
        config->parallel = !is_device && n > 1;
        node->n_threads = is_device ? 1 : n;
        if (is_device) {
            config->backend = (uint8_t)slot;
            config->wait = method->wait;
            node->predicted_us[TANDEM_STAGE_COMPUTE] = (float)(method->predicted * device_us);
        }
    }
}

static void setup_close(struct setup *setup)
{
    tandem_plan_free(setup->plan);
    tnd_exec_free(setup->exec);
    tnd_pool_free(setup->pool);
}

static void run_round(struct setup *setup, const struct subject *subject, int round)
{
    for (int i = -2; i < GRAPHS; i++) { /* two to warm up: workers start, buffers grow */
        if (i == 0) {
            setup->wall_us[round] = -(double)now_ns();
            setup->cpu_us[round] = -(double)cpu_ns();
        }
        if (tnd_exec_run(setup->exec, subject->graph, setup->plan, NULL, NULL) != TANDEM_OK) {
            give_up("a run failed");
        }
    }
    setup->wall_us[round] = (setup->wall_us[round] + (double)now_ns()) / (1000.0 * GRAPHS);
    setup->cpu_us[round] = (setup->cpu_us[round] + (double)cpu_ns()) / (1000.0 * GRAPHS);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median(double *samples)
{
    qsort(samples, (size_t)n_rounds, sizeof(*samples), by_value);
    return samples[n_rounds / 2];
}

static void measure(const struct subject *subject, const char *device, int n_cpus, const char *text)
{
    static struct setup beds[N_METHODS];
    int slot = tnd_registry_find(subject->registry, device, NULL);
    for (int round = 0; round < n_rounds; round++) {
        for (int w = 0; w < N_METHODS;
             w++) { /* opened anew each time: other runtimes' waiting workers would disturb */
            setup_open(&beds[w], subject, &methods[w], slot, n_cpus);
            run_round(&beds[w], subject, round);
            setup_close(&beds[w]);
        }
    }
    double spinning_us = median(beds[SPINNING].wall_us);
    printf("\n%s\n%-36s %10s %10s %14s %14s\n", text, "", "wall us", "CPU us", "wall/spinning",
           "CPU/one busy");
    for (int w = 0; w < N_METHODS; w++) {
        double wall_us = median(beds[w].wall_us);
        double used_us = median(beds[w].cpu_us);
        printf("%-36s %10.1f %10.1f %14.3f %14.3f\n", methods[w].name, wall_us, used_us,
               wall_us / spinning_us, used_us / spinning_us);
    }
}

int main(int argc, char **argv)
{
    static struct tnd_topology topology;
    struct tnd_bench_number options[] = {
        {"--device-us", 10, 1e6, device_us},
        {"--threads", 2, 256, n_threads},
        {"--rounds", 1, MOST_ROUNDS, n_rounds},
    };
    tnd_bench_arguments(argc, argv, usage, options, 3);
    device_us = options[0].value;
    n_threads = (int)options[1].value;
    n_rounds = (int)options[2].value;
    if (tnd_topology_read(&topology, NULL) != TANDEM_OK) {
        give_up("no topology");
    }
    printf("bench-waiting: %s; %d small nodes on %d threads around a device stage of %g us;\n"
           "medians of %d rounds of %d graphs, a graph; one busy: the wall time of spinning\n",
           topology.text, CPU_NODES, n_threads, device_us, n_rounds, GRAPHS);
    struct subject subject = subject_new();
    measure(&subject, "sim", topology.n_cpus, "a device whose sync sleeps (sim)");
    measure(&subject, "spinning", topology.n_cpus, "a device whose sync keeps a CPU busy");
    tandem_context_free(subject.context);
    tnd_registry_close(subject.registry);
    return 0;
}
