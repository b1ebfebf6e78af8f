/* SPDX-License-Identifier: MIT
 * bench-attention: the CPU's fused attention of prompts and of single tokens, beside the peaks of
 * this machine, measured in the same run. Only keys that the causal mask leaves visible count as
 * work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/cpu.h"
#include "base/rng.h"
#include "bench/team.h"
#include "backends/cpu/kernels/peak.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/ops.h"

enum { LIST_MAX = 16, SAMPLES_MAX = 400, LAYERS_MAX = 128 };

struct shape {
    int64_t heads, kv_heads, head;
};

struct options {
    struct shape shapes[LIST_MAX];
    int n_shapes;
    int64_t window; /* keys that a query sees, 0: all */
    enum tandem_type types[LIST_MAX];
    int64_t keys[LIST_MAX], tokens[LIST_MAX]; /* tokens: 0: as many as keys */
    int n_types, n_keys, n_tokens;
    int layers; /* with keys and values of their own */
    int threads;
    const char *isa;
    double budget_s; /* of one cell */
};

struct cell {
    struct shape shape;
    int64_t window;
    enum tandem_type type;
    int64_t m, t; /* queries: the last m of t tokens */
    double best_us, median_us, spread;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- peaks: the best of several runs ---- */

struct peak_job {
    struct tnd_peaks peaks;
    bool reads;
    const char *memory;
    size_t bytes; /* bytes per thread */
    double done[LIST_MAX];
    int64_t sink[LIST_MAX]; /* so that the reads are not dropped */
};

static void peak_main(void *user, struct tandem_worker *worker)
{
    struct peak_job *job = user;
    const int i = worker->index;
    if (!job->reads) {
        job->done[i] = job->peaks.fma(2000000);
        return;
    }
    job->sink[i] = job->peaks.read(job->memory + (size_t)i * job->bytes, job->bytes);
    job->done[i] = (double)job->bytes;
}

static double measure_peak(tnd_team *team, struct peak_job *job, int threads)
{
    double best = 0;
    for (int i = 0; i < 7; i++) {
        const double begin = now();
        double total = 0;
        tnd_team_run(team, peak_main, job);
        for (int t = 0; t < threads; t++) {
            total += job->done[t];
        }
        const double rate = 1e-9 * total / (now() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}

/* ---- cells ---- */

struct node_job {
    const struct tnd_cpu_kernels *kernels;
    const tandem_tensor *node;
};

static void node_main(void *user, struct tandem_worker *worker)
{
    const struct node_job *job = user;
    (void)tnd_cpu_node_run(job->kernels, job->node, worker);
}

static tandem_tensor *random_tensor(tandem_context *context, enum tandem_type type,
                                    const int64_t ne[3])
{
    struct tnd_rng rng;
    tandem_tensor *tensor = tandem_tensor_new(context, type, 3, ne);
    float *row = malloc((size_t)ne[0] * sizeof(float));
    tnd_rng_init(&rng, (uint64_t)ne[1]);
    for (int64_t i = 0; tensor != NULL && row != NULL && i < ne[1] * ne[2]; i++) {
        for (int64_t j = 0; j < ne[0]; j++) {
            row[j] = tnd_rng_normal(&rng);
        }
        const size_t bytes = tandem_type_row_bytes(type, ne[0]);
        tandem_quantize(type, row, (char *)tandem_tensor_data(tensor) + (size_t)i * bytes, ne[0]);
    }
    free(row);
    return tensor;
}

/* Builds a cell's node with the layout of the llama model: heads of a token are adjacent. */
static tandem_tensor *build(tandem_context *context, const struct cell *cell)
{
    const struct shape *s = &cell->shape;
    const int64_t n_orders = cell->t + cell->m;
    tandem_tensor *q =
        random_tensor(context, TANDEM_TYPE_F32, (int64_t[]){s->head, s->heads, cell->m});
    tandem_tensor *k =
        random_tensor(context, cell->type, (int64_t[]){s->head, s->kv_heads, cell->t});
    tandem_tensor *v =
        random_tensor(context, cell->type, (int64_t[]){s->head, s->kv_heads, cell->t});
    tandem_tensor *orders = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &n_orders);
    int32_t *order = tandem_tensor_data(orders);
    for (int64_t i = 0; orders != NULL && i < n_orders; i++) {
        order[i] = (int32_t)(i < cell->t ? i : i - cell->m);
    }
    tandem_tensor *node = tandem_attention_ordered(
        context, tandem_permute(context, q, 0, 2, 1, 3), tandem_permute(context, k, 0, 2, 1, 3),
        tandem_permute(context, v, 0, 2, 1, 3), orders, cell->window, 0.125f);
    return node;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Measures a cell. False if memory is out. */
static bool measure(const struct options *o, const struct tnd_cpu_kernels *kernels,
                    struct cell *cell)
{
    static double us[SAMPLES_MAX];
    tandem_context *context = NULL;
    if (tandem_context_new(NULL, &context, NULL) != TANDEM_OK) {
        return false;
    }
    const int64_t values = cell->shape.head * cell->shape.heads * cell->m;
    float *result = aligned_alloc(64, ((size_t)values * sizeof(float) + 63) / 64 * 64);
    tandem_tensor *nodes[LAYERS_MAX];
    bool good = true;
    for (int i = 0; i < o->layers && good; i++) {
        nodes[i] = build(context, cell);
        good = nodes[i] != NULL && (nodes[i]->data = result) != NULL;
    }
    tnd_team *team = good ? tnd_team_new(o->threads, tnd_cpu_attention_scratch(nodes[0])) : NULL;
    if (team == NULL) {
        free(result);
        tandem_context_free(context);
        return false;
    }
    struct node_job job = {kernels, nodes[0]};
    const double end = now() + o->budget_s;
    int n = 0;
    tnd_team_run(team, node_main, &job);
    do {
        job.node = nodes[n % o->layers];
        const double begin = now();
        tnd_team_run(team, node_main, &job);
        us[n++] = 1e6 * (now() - begin);
    } while (n < SAMPLES_MAX && (n < 5 || now() < end));
    qsort(us, (size_t)n, sizeof(us[0]), compare_doubles);
    cell->best_us = us[0];
    cell->median_us = us[n / 2];
    cell->spread = (us[n * 9 / 10] - us[n / 10]) / us[n / 2];
    tnd_team_free(team);
    free(result);
    tandem_context_free(context);
    return true;
}

static void print_cell(const struct cell *cell, double fma_gflops, double read_gbps)
{
    const struct shape *s = &cell->shape;
    double pairs = 0;
    for (int64_t t = cell->t - cell->m + 1; t <= cell->t; t++) {
        pairs += (double)(cell->window > 0 && cell->window < t ? cell->window : t);
    }
    const double gflops = 4e-3 * pairs * (double)s->head * (double)s->heads / cell->median_us;
    const double bytes =
        2.0 * (double)cell->t * (double)tandem_type_row_bytes(cell->type, s->head * s->kv_heads);
    const double gbps = 1e-3 * bytes / cell->median_us;
    printf("| %d/%d x %d | %s | %lld | %lld | %.1f | %.1f | %.0f %% | %.1f | %.0f %% | %.1f | %.0f "
           "%% |\n",
           (int)s->heads, (int)s->kv_heads, (int)s->head, tandem_type_name(cell->type),
           (long long)cell->m, (long long)cell->t, cell->best_us, cell->median_us,
           100 * cell->spread, gflops, 100 * gflops / fma_gflops, gbps, 100 * gbps / read_gbps);
    fflush(stdout);
}

/* ---- arguments ---- */

static const char usage[] =
    "Attention of the CPU backend as shares of this machine's own peaks, in one run.\n"
    "bench-attention [--shape HEADS/KVxSIZE,..] [--type T,..] [--keys T,..] [--tokens M,..]\n"
    "                [--window N] [--layers N] [--threads N] [--isa scalar|avx2|..] [--seconds S "
    "(of a cell)]\n"
    "Defaults: 32/4x64,32/8x128, f32,f16,q8_0, 128,512,2048 keys, 0,1 tokens, no window, one\n"
    "thread a CPU, 0.3 s a cell.\n"
    "Layers take turns, each with keys and values of its own: more than caches hold, as a "
    "model's.\n"
    "Shapes are heads / KV heads x head size. The last M of T tokens ask; 0 stands for all of "
    "them.\n"
    "GFLOP/s count what mask and window let through; GB/s are all keys and values read once.\n";

static bool parse_shape(const char *text, struct shape *s)
{
    long long heads, kv_heads, head;
    const bool good = sscanf(text, "%lld/%lldx%lld", &heads, &kv_heads, &head) == 3 &&
                      kv_heads > 0 && heads > 0 && heads % kv_heads == 0 && head > 0;
    if (good) {
        *s = (struct shape){heads, kv_heads, head};
    }
    return good;
}

static bool parse_arguments(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i += 2) {
        char copy[256] = "";
        bool good = i + 1 < argc;
        const char *value = good ? argv[i + 1] : "";
        snprintf(copy, sizeof(copy), "%s", value);
        if (strcmp(argv[i], "--shape") == 0) {
            o->n_shapes = 0;
            for (char *w = strtok(copy, ","); w != NULL && good; w = strtok(NULL, ",")) {
                good = o->n_shapes < LIST_MAX && parse_shape(w, &o->shapes[o->n_shapes++]);
            }
        } else if (strcmp(argv[i], "--window") == 0) {
            o->window = atoll(value);
            good = o->window > 0;
        } else if (strcmp(argv[i], "--type") == 0) {
            o->n_types = 0;
            for (char *w = strtok(copy, ","); w != NULL && good; w = strtok(NULL, ",")) {
                good = o->n_types < LIST_MAX && tandem_type_from_name(w, &o->types[o->n_types++]);
            }
        } else if (strcmp(argv[i], "--keys") == 0) {
            o->n_keys = 0;
            for (char *w = strtok(copy, ","); w != NULL && good; w = strtok(NULL, ",")) {
                good = o->n_keys < LIST_MAX && (o->keys[o->n_keys++] = atoll(w)) > 0;
            }
        } else if (strcmp(argv[i], "--tokens") == 0) {
            o->n_tokens = 0;
            for (char *w = strtok(copy, ","); w != NULL && good; w = strtok(NULL, ",")) {
                good = o->n_tokens < LIST_MAX && (o->tokens[o->n_tokens++] = atoll(w)) >= 0;
            }
        } else if (strcmp(argv[i], "--layers") == 0) {
            o->layers = atoi(value);
            good = o->layers >= 1 && o->layers <= LAYERS_MAX;
        } else if (strcmp(argv[i], "--threads") == 0) {
            o->threads = atoi(value);
            good = o->threads >= 1 && o->threads <= LIST_MAX;
        } else if (strcmp(argv[i], "--isa") == 0) {
            o->isa = value;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            o->budget_s = atof(value);
        } else {
            good = false;
        }
        if (!good) {
            fprintf(stderr, "bench-attention: wrong argument '%s %s'\n%s", argv[i], value, usage);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct options o = {.shapes = {{32, 4, 64}, {32, 8, 128}},
                        .n_shapes = 2,
                        .types = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0},
                        .keys = {128, 512, 2048},
                        .n_types = 3,
                        .n_keys = 3,
                        .tokens = {0, 1},
                        .n_tokens = 2,
                        .layers = 1,
                        .threads = cpus < 1          ? 1
                                   : cpus > LIST_MAX ? LIST_MAX
                                                     : (int)cpus,
                        .budget_s = 0.3};
    struct tnd_cpu_kernels kernels;
    if (!parse_arguments(argc, argv, &o)) {
        return 2;
    }
    tnd_cpu_kernels_for(tnd_cpu_mask(tnd_cpu_features(), o.isa), &kernels);
    struct peak_job job = {.peaks = tnd_peaks_find(), .bytes = (size_t)64 << 20};
    char *memory = aligned_alloc(4096, job.bytes * (size_t)o.threads);
    tnd_team *team = tnd_team_new(o.threads, 64);
    if (memory == NULL || team == NULL) {
        return 1;
    }
    memset(memory, 1, job.bytes * (size_t)o.threads);
    job.memory = memory;
    const double fma_gflops = measure_peak(team, &job, o.threads);
    job.reads = true;
    const double read_gbps = measure_peak(team, &job, o.threads);
    tnd_team_free(team);
    free(memory);
    printf("%s, %d threads, %s\n\npeaks: fp32 FMA %.0f GFLOP/s, read %.1f GB/s\n\n",
           tnd_cpu_model(), o.threads, kernels.vec.isa, fma_gflops, read_gbps);
    printf(
        "| heads | KV | M | T | best us | median us | spread | GFLOP/s | of FMA | GB/s | of read "
        "|\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int s = 0; s < o.n_shapes; s++) {
        for (int i = 0; i < o.n_types * o.n_keys * o.n_tokens; i++) {
            const int64_t t = o.keys[i / o.n_tokens % o.n_keys];
            const int64_t m = o.tokens[i % o.n_tokens];
            struct cell cell = {.shape = o.shapes[s],
                                .window = o.window,
                                .type = o.types[i / o.n_tokens / o.n_keys],
                                .m = m > 0 && m < t ? m : t,
                                .t = t};
            if (!measure(&o, &kernels, &cell)) {
                fprintf(stderr, "bench-attention: no memory\n");
                return 1;
            }
            print_cell(&cell, fma_gflops, read_gbps);
        }
    }
    return 0;
}
