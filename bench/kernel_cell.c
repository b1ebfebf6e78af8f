/* SPDX-License-Identifier: MIT
 * Measures one cell of bench-kernels. Weights rotate over more memory than the caches hold; integer
 * products include quantising the activations. */
#include "bench/kernel_cell.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/kernels/peak.h"
#include "ggml-like/tnd_tensor.h"

enum {
    SAMPLES_MAX = 1000,
    COPIES_MAX = 64,
    READ = TND_LAYOUTS, /* one kind for each number of streams */
    PEAK = READ + TND_READ_TRIALS,
    BF16_PEAK,
    KINDS,
    PEAK_ROUNDS = 100000, /* a few tenths of a millisecond */
    FEW_TOKENS = 16       /* most tokens for which weights rotate and reading them is measured */
};
static const size_t ROTATE_BYTES = (size_t)192 << 20;

/* For each layout: how activations are prepared, and the product. */
static const struct {
    uint32_t init, compute;
} tasks[TND_LAYOUTS] = {
    [TND_LAYOUT_ROWS] = {TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q},
    [TND_LAYOUT_PACKED] = {TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_PACKED},
    [TND_LAYOUT_BF16] = {TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_BF16},
    [TND_LAYOUT_TILES] = {TANDEM_TASK_TILE_X, TANDEM_TASK_MUL_MAT_TILES},
};

struct cell_job {
    const struct tnd_cpu_kernels *kernels;
    struct tandem_work work;
    tnd_read_fn *read;
    tnd_peak_fn *peak, *bf16_peak;
    double operations[TND_LANES_MAX * 4]; /* of each thread's peak */
    const char *memory;
    size_t bytes;
    int n_streams;
    int threads;
    bool has_failed; /* of the first worker, as of all others */
    int64_t sink[TND_LANES_MAX * 4];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void product_main(void *user, struct tandem_worker *worker)
{
    struct cell_job *job = user;
    const enum tandem_status status = tnd_cpu_mul_mat_run(job->kernels, &job->work, worker);
    if (worker->index == 0 && status != TANDEM_OK) {
        job->has_failed = true;
    }
}

static void read_main(void *user, struct tandem_worker *worker)
{
    struct cell_job *job = user;
    size_t share = job->bytes / (size_t)job->threads / 64 * 64;
    int i = worker->index;
    job->sink[i % (TND_LANES_MAX * 4)] =
        tnd_read_streams(job->read, job->memory + (size_t)i * share, share, job->n_streams);
}

static void peak_main(void *user, struct tandem_worker *worker)
{
    struct cell_job *job = user;
    job->operations[worker->index % (TND_LANES_MAX * 4)] = job->peak(PEAK_ROUNDS);
}

static void bf16_peak_main(void *user, struct tandem_worker *worker)
{
    struct cell_job *job = user;
    job->operations[worker->index % (TND_LANES_MAX * 4)] = job->bf16_peak(PEAK_ROUNDS);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Random rows, repeated: quantising all of a large matrix would take longer than the bench. */
static void fill_weights(char *w, enum tandem_type type, int64_t n, int64_t k)
{
    enum { ROWS = 16 };
    size_t row_bytes = tandem_type_row_bytes(type, k);
    float *values = malloc((size_t)k * sizeof(float));
    uint32_t state = 1;
    for (int64_t r = 0; r < n; r++) {
        if (r >= ROWS) {
            memcpy(w + (size_t)r * row_bytes, w + (size_t)(r % ROWS) * row_bytes, row_bytes);
            continue;
        }
        for (int64_t i = 0; i < k; i++) {
            state = state * 1664525u + 1013904223u;
            values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        tandem_quantize(type, values, w + (size_t)r * row_bytes, k);
    }
    free(values);
}

static void summarise(double *samples, int n, struct tnd_cell_time *out)
{
    qsort(samples, (size_t)n, sizeof(double), by_value);
    double median = samples[n / 2];
    out->samples = n;
    out->median_us = 1e6 * median;
    out->best_us = 1e6 * samples[0];
    out->spread = (samples[n * 9 / 10] - samples[n / 10]) / median;
}

/* ---- the operands ---- */

struct operands {
    tandem_context *context;
    tandem_tensor *weights, *y;
    char *w;
    size_t stride; /* bytes from one copy of the weights to the next */
    int copies;
    void *workspace;
    size_t workspace_bytes;
    struct tnd_packed_weights *store;
    struct tnd_packed_weight *packed[COPIES_MAX]; /* of the copies */
};

static void free_operands(struct operands *o)
{
    tnd_packed_weights_free(o->store);
    if (o->y != NULL) {
        free(o->y->data);
    }
    free(o->workspace);
    free(o->w);
    tandem_context_free(o->context);
}

static bool make_operands(const struct tnd_kernel_cell *cell, bool has_packed, struct operands *o)
{
    static const struct tnd_packed_options unlimited = {.limit_bytes = SIZE_MAX};
    size_t w_bytes = (size_t)cell->n * tandem_type_row_bytes(cell->type, cell->k);
    memset(o, 0, sizeof(*o));
    o->stride = (w_bytes + 4095) / 4096 * 4096;
    o->copies = w_bytes == 0 ? 0 : cell->m <= FEW_TOKENS ? (int)(ROTATE_BYTES / o->stride) + 1 : 1;
    o->copies = o->copies > COPIES_MAX ? COPIES_MAX : o->copies;
    o->w = aligned_alloc(4096, o->stride * (size_t)o->copies);
    if (o->w == NULL || tandem_context_new(NULL, &o->context, NULL) != TANDEM_OK ||
        tnd_packed_weights_new(&unlimited, &o->store, NULL) != TANDEM_OK) {
        return false;
    }
    fill_weights(o->w, cell->type, cell->n, cell->k);
    for (int i = 0; i < o->copies; i++) {
        char *copy = o->w + (size_t)i * o->stride;
        if (i > 0) {
            memcpy(copy, o->w, w_bytes);
        }
        const tandem_tensor *weight = tandem_tensor_borrow(
            o->context, cell->type, 2, (int64_t[]){cell->k, cell->n}, copy, w_bytes);
        if (weight == NULL || (has_packed && tnd_packed_weights_add(o->store, weight, &o->packed[i],
                                                                    NULL) != TANDEM_OK)) {
            return false;
        }
    }
    o->weights = tandem_tensor_borrow(o->context, cell->type, 2, (int64_t[]){cell->k, cell->n},
                                      o->w, w_bytes);
    tandem_tensor_set_role(o->weights, TANDEM_ROLE_CONSTANT);
    tandem_tensor *x =
        tandem_tensor_new(o->context, TANDEM_TYPE_F32, 2, (int64_t[]){cell->k, cell->m});
    o->y = tandem_mul_mat(o->context, o->weights, x);
    if (o->y == NULL) {
        return false;
    }
    o->y->data = aligned_alloc(64, (tandem_tensor_bytes(o->y) + 63) / 64 * 64);
    fill_weights(x->data, TANDEM_TYPE_F32, cell->m, cell->k);
    o->workspace_bytes = 64;
    for (int i = 0; i < TND_LAYOUTS; i++) {
        const size_t bytes = tnd_cpu_mul_mat_workspace(o->y, tasks[i].compute);
        o->workspace_bytes = bytes > o->workspace_bytes ? bytes : o->workspace_bytes;
    }
    o->workspace = aligned_alloc(64, (o->workspace_bytes + 63) / 64 * 64);
    return o->y->data != NULL && o->workspace != NULL;
}

static struct tandem_work work_of(const struct operands *o, int64_t n)
{
    return (struct tandem_work){.node = o->y,
                                .row_end = n,
                                .workspace = o->workspace,
                                .workspace_bytes = o->workspace_bytes};
}

/* ---- measuring ---- */

/* Seconds of one run of a kind on one copy of the weights. */
static double run_once(tnd_team *team, struct cell_job *job, struct operands *o, int kind, int copy,
                       bool quantized)
{
    o->weights->data = o->w + (size_t)copy * o->stride;
    job->work.prepared = kind == TND_LAYOUT_ROWS ? NULL : o->packed[copy];
    /* Packed weights are in huge pages: the reading that they are compared with must use those too.
     */
    job->memory = o->packed[copy] != NULL ? (const char *)o->packed[copy]->panels
                                          : (const char *)o->weights->data;
    job->n_streams = READ <= kind && kind < PEAK ? TND_READ_STREAMS[kind - READ] : 1;
    double begin = now();
    if (kind >= TND_LAYOUTS) {
        tnd_team_run(team,
                     kind < PEAK    ? read_main
                     : kind == PEAK ? peak_main
                                    : bf16_peak_main,
                     job);
        return now() - begin;
    }
    if (quantized || kind == TND_LAYOUT_TILES) {
        job->work.task = tasks[kind].init;
        tnd_team_run(team, product_main, job);
    }
    job->work.task = quantized || kind != TND_LAYOUT_ROWS ? tasks[kind].compute : TANDEM_TASK_NODE;
    tnd_team_run(team, product_main, job);
    return now() - begin;
}

/* The median over the turns. */
static double median_ratio(const double *a, const double *b, int n)
{
    static double ratios[SAMPLES_MAX];
    for (int i = 0; i < n; i++) {
        ratios[i] = a[i] / b[i];
    }
    qsort(ratios, (size_t)n, sizeof(ratios[0]), by_value);
    return ratios[n / 2];
}

/* The kind of reading with the least median time. */
static int fastest_read(double samples[KINDS][SAMPLES_MAX], int n)
{
    static double sorted[SAMPLES_MAX];
    double best = 0;
    int fastest = READ;
    for (int kind = READ; kind < PEAK; kind++) {
        memcpy(sorted, samples[kind], (size_t)n * sizeof(sorted[0]));
        qsort(sorted, (size_t)n, sizeof(sorted[0]), by_value);
        if (kind == READ || sorted[n / 2] < best) {
            best = sorted[n / 2];
            fastest = kind;
        }
    }
    return fastest;
}

static bool can_pack(const struct tnd_cpu_kernels *kernels, enum tandem_type type)
{
    return tandem_type_is_quantized(type) ? kernels->packed[type].multiply != NULL
                                          : kernels->packed_f[type] != NULL;
}

static double operations_of(const struct cell_job *job)
{
    double sum = 0;
    for (int i = 0; i < job->threads; i++) {
        sum += job->operations[i];
    }
    return sum;
}

bool tnd_kernel_cell_measure(tnd_team *team, int threads, const struct tnd_cpu_kernels *kernels,
                             double budget_s, struct tnd_kernel_cell *cell)
{
    static double samples[KINDS][SAMPLES_MAX];
    static double tails[KINDS][SAMPLES_MAX];
    bool quantized = tandem_type_is_quantized(cell->type);
    const struct tnd_peaks peaks = tnd_peaks_find();
    struct cell_job job = {.kernels = kernels,
                           .read = peaks.read,
                           .peak = quantized ? peaks.int8 : peaks.fma,
                           .bf16_peak = peaks.bf16,
                           .threads = threads};
    struct operands o;
    const bool has_packed = can_pack(kernels, cell->type);
    memset(cell->layout, 0, sizeof(cell->layout));
    if (!make_operands(cell, has_packed, &o)) {
        free_operands(&o);
        return false;
    }
    cell->bytes[TND_LAYOUT_ROWS] = (size_t)cell->n * tandem_type_row_bytes(cell->type, cell->k);
    cell->bytes[TND_LAYOUT_PACKED] = tnd_packed_weights_bytes(o.store) / (size_t)o.copies;
    cell->bytes[TND_LAYOUT_BF16] = cell->bytes[TND_LAYOUT_PACKED];
    cell->bytes[TND_LAYOUT_TILES] = cell->bytes[TND_LAYOUT_PACKED];
    job.bytes = cell->bytes[TND_LAYOUT_ROWS];
    job.work = work_of(&o, cell->n);
    const bool reads = cell->m <= FEW_TOKENS;
    const bool has_tiles = has_packed && kernels->amx.name != NULL;
    const bool has_bf16 = cell->type == TANDEM_TYPE_BF16 && has_packed &&
                          kernels->packed_bf16.multiply != NULL && peaks.bf16 != NULL;
    const bool exists[KINDS] = {true,  has_packed, has_bf16, has_tiles, reads,
                                reads, reads,      reads,    true,      has_bf16};
    for (int i = 0; i < o.copies && has_packed; i++) {
        run_once(team, &job, &o, TND_LAYOUT_PACKED, i, quantized); /* packs */
    }
    double operations[KINDS - PEAK] = {0}; /* operations in a run of a peak */
    int copy = 0;
    double start = now();
    int n = 0;
    for (int i = -2; n < SAMPLES_MAX; i++) { /* two to warm up */
        for (int kind = 0; kind < KINDS; kind++) {
            /* The copy that was read least recently: the caches hold nothing of it. */
            copy = exists[kind] ? (copy + 1) % o.copies : copy;
            double seconds = exists[kind] ? run_once(team, &job, &o, kind, copy, quantized) : 0;
            if (kind >= PEAK && exists[kind]) {
                operations[kind - PEAK] = operations_of(&job);
            }
            if (i >= 0) {
                samples[kind][n] = seconds;
                tails[kind][n] = exists[kind] ? tnd_team_tail_s(team) / seconds : 0;
            }
        }
        n += i >= 0;
        if (n >= 5 && now() - start > budget_s) {
            break;
        }
    }
    const int read = reads ? fastest_read(samples, n) : READ;
    const double wanted = 2.0 * (double)cell->n * (double)cell->k * (double)cell->m;
    for (int kind = 0; kind < TND_LAYOUTS; kind++) {
        struct tnd_cell_time *time = &cell->layout[kind];
        if (exists[kind]) { /* ratios first: summarising sorts */
            const int peak = kind == TND_LAYOUT_BF16 ? BF16_PEAK : PEAK;
            time->compute_share =
                wanted / operations[peak - PEAK] * median_ratio(samples[peak], samples[kind], n);
            time->read_share = reads ? median_ratio(samples[read], samples[kind], n) : 0;
            summarise(samples[kind], n, time);
            qsort(tails[kind], (size_t)n, sizeof(tails[kind][0]), by_value);
            time->tail = tails[kind][n * 9 / 10];
        }
    }
    struct tnd_cell_time peak = {.samples = 0};
    struct tnd_cell_time plain = {.samples = 0};
    summarise(samples[PEAK], n, &peak);
    summarise(samples[read], n, &plain);
    cell->peak_gops = 1e-3 * operations[0] / peak.median_us;
    cell->read_gbps = reads ? 1e-3 * (double)job.bytes / plain.median_us : 0;
    cell->read_streams = TND_READ_STREAMS[read - READ];
    free_operands(&o);
    return !job.has_failed;
}
