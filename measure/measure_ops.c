/* SPDX-License-Identifier: MIT
 * A graph holds the operation several times over the same operands and runs on the real executor;
 * the first node includes the waking of the workers and is not counted. */
#include "measure/measure_ops.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "measure/measure_moves.h"
#include "tandem/sample.h"
#include "tune/op_cost.h"
#include "tune/policy.h"

enum {
    MAX_COUNTS = 16, /* thread counts */
    HEADS_GROUP = 4, /* query heads of a KV head */
    STEPS = 4        /* of a node, transfers included */
};

static tandem_tensor *floats(tandem_context *context, int64_t a, int64_t b, int64_t c)
{
    return tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (int64_t[]){a, b, c});
}

/* ---- what is measured ---- */

struct op_row;
struct operands {
    tandem_tensor *x, *other;
};
typedef struct operands operands_fn(tandem_context *context, const struct op_row *row, int64_t m);
typedef tandem_tensor *node_fn(tandem_context *context, tandem_tensor *x, tandem_tensor *other);

struct op_row {
    enum tandem_op op;
    node_fn *node;
    operands_fn *operands;
    int64_t n, k;
    int64_t first_m, last_m; /* m = first, 8 first, .. last */
    enum tandem_type type;   /* of attention's keys and values; else F32 */
};

static tandem_tensor *silu(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    (void)other;
    return tandem_silu(context, x);
}

static tandem_tensor *rms_norm(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    (void)other;
    return tandem_rms_norm(context, x, 1e-5f);
}

static tandem_tensor *rope(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    return tandem_rope(context,
                       tandem_reshape(context, x, 3, (int64_t[]){x->ne[0], 8, x->ne[1] / 8}), other,
                       NULL);
}

static tandem_tensor *soft_max(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    (void)other;
    return tandem_soft_max(context, x, NULL, 1.0f);
}

static tandem_tensor *attention(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    return tandem_attention(context, x, other, other, NULL, 1.0f);
}

enum {
    SAMPLE_STEPS = TANDEM_SAMPLE_DRAWS | TANDEM_SAMPLE_K | TANDEM_SAMPLE_SHARE,
    DRAW_PASSES = 8 /* tnd_op_sample_passes of them */
};

static tandem_tensor *greedy(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    return tandem_sample(context, x, other, NULL, 0);
}

static tandem_tensor *draw(tandem_context *context, tandem_tensor *x, tandem_tensor *other)
{
    return tandem_sample(context, x, other, NULL, SAMPLE_STEPS);
}

/* Operands of the nodes. All zero except for sample: the speed of the others does not depend on
 * values. */
static struct operands two_alike(tandem_context *context, const struct op_row *row, int64_t m)
{
    return (struct operands){floats(context, row->n, m, 1), floats(context, row->n, m, 1)};
}

static struct operands with_positions(tandem_context *context, const struct op_row *row, int64_t m)
{
    const int64_t tokens = m / 8;
    return (struct operands){floats(context, row->n, m, 1),
                             tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &tokens)};
}

static struct operands with_ids(tandem_context *context, const struct op_row *row, int64_t m)
{
    return (struct operands){floats(context, row->n, 256, 1),
                             tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &m)};
}

/* m: queries times heads, as many of which read one KV head */
static struct operands with_keys(tandem_context *context, const struct op_row *row, int64_t m)
{
    const int64_t ne[] = {row->n, row->k, 8 / HEADS_GROUP};
    return (struct operands){floats(context, row->n, m / 8, 8),
                             tandem_tensor_new(context, row->type, 3, ne)};
}

/* Logits distributed as those of language models, sampled with common settings: with equal logits
 * none would be filtered out. A sum of random numbers is close enough to a normal distribution. */
static struct operands with_settings(tandem_context *context, const struct op_row *row, int64_t m)
{
    struct tandem_sample_settings one;
    const int64_t ne[] = {sizeof(one) / sizeof(int32_t), m};
    const struct operands operands = {floats(context, row->n, m, 1),
                                      tandem_tensor_new(context, TANDEM_TYPE_I32, 2, ne)};
    float *logits = tandem_tensor_data(operands.x);
    char *settings = tandem_tensor_data(operands.other);
    struct tnd_rng rng;
    tnd_rng_init(&rng, 1);
    for (int64_t i = 0; logits != NULL && i < row->n * m; i++) {
        logits[i] = 4 * (tnd_rng_float(&rng) + tnd_rng_float(&rng) + tnd_rng_float(&rng));
    }
    for (int64_t i = 0; settings != NULL && i < m; i++) {
        tandem_sample_settings_fill(&one, 0.8F, 40, 0.95F, 0, tnd_rng_u64(&rng));
        memcpy(settings + (size_t)i * sizeof(one), &one, sizeof(one));
    }
    return operands;
}

/* The representatives of tandem/op-list.h. Rows of 64 values occur in small models and in heads. At
 * most 512 Ki values, as in a prompt. Attention, which takes most of the time, comes last, with a
 * deep cache for each type that keys and values may have. */
static const struct op_row op_rows[] = {
    {TANDEM_OP_ADD, tandem_add, two_alike, 64, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_ADD, tandem_add, two_alike, 2048, 1, 1, 256, TANDEM_TYPE_F32},
    {TANDEM_OP_MUL, tandem_mul, two_alike, 64, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_MUL, tandem_mul, two_alike, 2048, 1, 1, 256, TANDEM_TYPE_F32},
    {TANDEM_OP_SILU, silu, two_alike, 64, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_SILU, silu, two_alike, 2048, 1, 1, 256, TANDEM_TYPE_F32},
    {TANDEM_OP_RMS_NORM, rms_norm, two_alike, 64, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_RMS_NORM, rms_norm, two_alike, 2048, 1, 1, 256, TANDEM_TYPE_F32},
    {TANDEM_OP_ROPE, rope, with_positions, 8, 1, 8, 4096, TANDEM_TYPE_F32},
    {TANDEM_OP_ROPE, rope, with_positions, 64, 1, 8, 4096, TANDEM_TYPE_F32},
    {TANDEM_OP_SOFT_MAX, soft_max, two_alike, 64, 1, 1, 4096, TANDEM_TYPE_F32},
    {TANDEM_OP_SOFT_MAX, soft_max, two_alike, 512, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_GET_ROWS, tandem_get_rows, with_ids, 64, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_GET_ROWS, tandem_get_rows, with_ids, 2048, 1, 1, 64, TANDEM_TYPE_F32},
    {TANDEM_OP_CPY, tandem_cpy, two_alike, 64, 1, 1, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_CPY, tandem_cpy, two_alike, 2048, 1, 1, 256, TANDEM_TYPE_F32},
    {TANDEM_OP_SAMPLE, greedy, with_settings, 32768, 1, 1, 8, TANDEM_TYPE_F32},
    {TANDEM_OP_SAMPLE, greedy, with_settings, 131072, 1, 1, 1, TANDEM_TYPE_F32},
    {TANDEM_OP_SAMPLE, draw, with_settings, 32768, DRAW_PASSES, 1, 8, TANDEM_TYPE_F32},
    {TANDEM_OP_SAMPLE, draw, with_settings, 131072, DRAW_PASSES, 1, 1, TANDEM_TYPE_F32},
    {TANDEM_OP_ATTENTION, attention, with_keys, 8, 64, 8, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_ATTENTION, attention, with_keys, 64, 128, 8, 512, TANDEM_TYPE_F32},
    {TANDEM_OP_ATTENTION, attention, with_keys, 128, 2048, 8, 512, TANDEM_TYPE_F16},
    {TANDEM_OP_ATTENTION, attention, with_keys, 128, 2048, 8, 512, TANDEM_TYPE_Q8_0},
    {TANDEM_OP_ATTENTION, attention, with_keys, 128, 2048, 8, 512, TANDEM_TYPE_Q4_0},
};
enum { N_OP_ROWS = sizeof(op_rows) / sizeof(op_rows[0]), STEP_M = 8 };
/* The first node of a graph includes the waking of the workers and is not counted. */
enum { OPS_NODES = TND_MEASURE_NODES + 1 };

struct op_bench {
    const struct tnd_measure_options *options;
    int slot; /* TANDEM_BACKEND_CPU, or that of a device */
    double round_trip_us;
    const int *thread_counts;
    int n_thread_counts;
    uint64_t first_ns;      /* duration of first runs on a device: many compile their kernels
                             * then */
    uint64_t most_first_ns; /* limit of what is not counted as measuring */
    double cell_s;          /* for all thread counts of one graph */
    int64_t when;
    struct tandem_table *table;
    tandem_context *context;
    struct tnd_step_time times[OPS_NODES * STEPS];
    double us[MAX_COUNTS][TND_OPS_RUNS * OPS_NODES];
    uint32_t count[MAX_COUNTS];
    double scratch[TND_OPS_RUNS * OPS_NODES];
};

static bool is_device(const struct op_bench *bench)
{
    return bench->slot != TANDEM_BACKEND_CPU;
}

static enum tandem_status build(struct op_bench *bench, const struct op_row *row, int64_t m,
                                tandem_graph **out_graph, struct tandem_error *error)
{
    tandem_context_reset(bench->context);
    tandem_graph *graph = tandem_graph_new(bench->context);
    const struct operands operands = row->operands(bench->context, row, m);
    for (int i = 0; i < OPS_NODES; i++) {
        tandem_graph_add(graph, row->node(bench->context, operands.x, operands.other));
    }
    TND_TRY(tandem_context_status(bench->context, error));
    TND_TRY(tandem_graph_finish(graph, error));
    *out_graph = graph;
    return TANDEM_OK;
}

static enum tandem_status run_once(struct op_bench *bench, tandem_graph *graph, tandem_plan *plan,
                                   int count, bool is_warm_up, struct tandem_error *error)
{
    int n_times = 0;
    int threads = bench->thread_counts[count];
    struct tnd_exec_run_options options = {
        .times = bench->times,
        .n_times = STEPS * OPS_NODES,
        .out_n_times = &n_times,
        .sync_each = is_device(bench),
        .is_plain = true,
    };
    for (int i = 0; i < plan->n_nodes; i++) {
        struct tandem_task_config *compute = &plan->nodes[i].stage[TANDEM_STAGE_COMPUTE];
        plan->nodes[i].n_threads = threads;
        compute->backend = (uint8_t)bench->slot;
        compute->parallel = threads > 1;
        compute->wait = is_device(bench);
    }
    TND_TRY(tnd_exec_run(bench->options->exec, graph, plan, &options, error));
    for (int i = 0; i < n_times && !is_warm_up; i++) {
        const struct tnd_step_time *time = &bench->times[i];
        if (time->node > 0 && time->kind == TND_STEP_WORK && time->end_ns >= time->begin_ns &&
            bench->count[count] < TND_OPS_RUNS * OPS_NODES) {
            bench->us[count][bench->count[count]++] = (double)(time->end_ns - time->begin_ns) / 1e3;
        }
    }
    return TANDEM_OK;
}

/* Runs all thread counts alternately. */
static enum tandem_status run_interleaved(struct op_bench *bench, tandem_graph *graph,
                                          tandem_plan *plan, struct tandem_error *error)
{
    const struct tnd_clock *clock = bench->options->clock;
    uint64_t begin_ns = clock->now_ns(clock);
    memset(bench->count, 0, sizeof(bench->count));
    for (int run = 0; run <= TND_OPS_RUNS; run++) {
        double elapsed_s = (double)(clock->now_ns(clock) - begin_ns) / 1e9;
        if (run > TND_OPS_LEAST_RUNS && elapsed_s > bench->cell_s) {
            break;
        }
        for (int c = 0; c < bench->n_thread_counts; c++) {
            TND_TRY(run_once(bench, graph, plan, c, run == 0, error));
        }
        if (run == 0 && is_device(bench)) {
            uint64_t now_ns = clock->now_ns(clock);
            bench->first_ns += now_ns - begin_ns;
            begin_ns = now_ns;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status keep(struct op_bench *bench, const struct op_row *row, int64_t m)
{
    enum tandem_status status = TANDEM_OK;
    for (int c = 0; c < bench->n_thread_counts && status == TANDEM_OK; c++) {
        struct tnd_curve_key key =
            is_device(bench)
                ? tnd_op_device_key(row->op, row->n, row->k,
                                    tnd_registry_name(bench->options->registry, bench->slot))
                : tnd_op_key(row->op, row->n, row->k, bench->thread_counts[c]);
        key.type = row->type;
        struct tnd_stage_time time =
            tnd_stage_time_of(bench->us[c], bench->count[c], bench->scratch);
        struct tnd_sample sample = {
            .m = m,
            .median_us = tnd_without_round_trip(time.median_us, bench->round_trip_us),
            .spread_us = time.spread_us,
            .count = time.count,
            .when = bench->when};
        if (time.count > 0) {
            status = tnd_table_add(bench->table, &key, &sample);
        }
    }
    return status;
}

/* The cell is skipped if the device has no kernel or no memory for it. */
static enum tandem_status measure_cell(struct op_bench *bench, const struct op_row *row, int64_t m,
                                       struct tandem_error *error)
{
    tandem_graph *graph = NULL;
    tandem_plan *plan = NULL;
    struct tandem_error why = {0};
    TND_TRY(build(bench, row, m, &graph, error));
    if (is_device(bench) &&
        tnd_registry_supports(bench->options->registry, bench->slot, graph->nodes[1],
                              TANDEM_TASK_NODE, NULL) != TANDEM_OK) {
        return TANDEM_OK;
    }
    TND_TRY(tandem_plan_new(graph->n_nodes, &plan, error));
    enum tandem_status status = run_interleaved(bench, graph, plan, &why);
    tandem_plan_free(plan);
    if (status == TANDEM_E_DEVICE_MEMORY) {
        return TANDEM_OK;
    }
    if (status != TANDEM_OK && error != NULL) {
        *error = why;
    }
    return status == TANDEM_OK ? keep(bench, row, m) : status;
}

static int count_cells(void)
{
    int n = 0;
    for (int i = 0; i < N_OP_ROWS; i++) {
        for (int64_t m = op_rows[i].first_m; m <= op_rows[i].last_m; m *= STEP_M) {
            n++;
        }
    }
    return n;
}

/* When m rows take long on a device, larger m are skipped: other operations are more useful. */
static enum tandem_status measure_row(struct op_bench *bench, const struct op_row *row,
                                      uint64_t deadline_ns, struct tandem_error *error)
{
    const struct tnd_clock *clock = bench->options->clock;
    bool is_long = false;
    for (int64_t m = row->first_m; m <= row->last_m && !is_long; m *= STEP_M) {
        uint64_t free_ns =
            bench->first_ns < bench->most_first_ns ? bench->first_ns : bench->most_first_ns;
        uint64_t first_ns = bench->first_ns;
        uint64_t begin_ns = clock->now_ns(clock);
        if (begin_ns >= deadline_ns + free_ns) {
            break;
        }
        TND_TRY(measure_cell(bench, row, m, error));
        double took_s =
            (double)(clock->now_ns(clock) - begin_ns - (bench->first_ns - first_ns)) / 1e9;
        is_long = is_device(bench) && took_s > TND_OPS_LONG * bench->cell_s;
    }
    return TANDEM_OK;
}

/* `budget_s`: above 0. */
static enum tandem_status measure_rows(struct op_bench *bench, double budget_s,
                                       struct tandem_error *error)
{
    const struct tnd_clock *clock = bench->options->clock;
    uint64_t deadline_ns = clock->now_ns(clock) + (uint64_t)(budget_s * 1e9);
    bench->cell_s = budget_s / count_cells();
    enum tandem_status status = tandem_context_new(NULL, &bench->context, error);
    for (int i = 0; i < N_OP_ROWS && status == TANDEM_OK; i++) {
        status = measure_row(bench, &op_rows[i], deadline_ns, error);
    }
    tandem_context_free(bench->context);
    return status;
}

static struct op_bench *new_bench(const struct tnd_measure_options *options, int64_t when,
                                  struct tandem_table *table, struct tandem_error *error)
{
    struct op_bench *bench = tnd_calloc(1, sizeof(*bench));
    if (bench == NULL) {
        (void)tnd_error_set(error, TANDEM_E_MEMORY, "operations", (int64_t)sizeof(*bench), 0,
                            "measuring operations: no memory");
        return NULL;
    }
    bench->options = options;
    bench->slot = TANDEM_BACKEND_CPU;
    bench->when = when;
    bench->table = table;
    return bench;
}

enum tandem_status tnd_measure_ops(const struct tnd_measure_options *options,
                                   const int *thread_counts, int n_thread_counts, double budget_s,
                                   int64_t when, struct tandem_table *table,
                                   struct tandem_error *error)
{
    if (budget_s > 0 && budget_s < TND_OPS_LEAST_S) {
        return TANDEM_OK;
    }
    struct op_bench *bench = new_bench(options, when, table, error);
    if (bench == NULL) {
        return TANDEM_E_MEMORY;
    }
    bench->thread_counts = thread_counts;
    bench->n_thread_counts = n_thread_counts < MAX_COUNTS ? n_thread_counts : MAX_COUNTS;
    enum tandem_status status =
        measure_rows(bench, budget_s > 0 ? budget_s : TND_OPS_S * n_thread_counts, error);
    tnd_free(bench);
    return status;
}

enum tandem_status tnd_measure_device_ops(const struct tnd_measure_options *options, int slot,
                                          double round_trip_us, double budget_s, int64_t when,
                                          struct tandem_table *table, struct tandem_error *error)
{
    static const int one_thread = 1;
    if (budget_s > 0 && budget_s < TND_OPS_LEAST_S) {
        return TANDEM_OK;
    }
    struct op_bench *bench = new_bench(options, when, table, error);
    if (bench == NULL) {
        return TANDEM_E_MEMORY;
    }
    bench->slot = slot;
    bench->most_first_ns = budget_s > 0 ? 0 : (uint64_t)(TND_OPS_COMPILE_S * 1e9);
    bench->round_trip_us = round_trip_us;
    bench->thread_counts = &one_thread;
    bench->n_thread_counts = 1;
    enum tandem_status status = measure_rows(bench, budget_s > 0 ? budget_s : 2 * TND_OPS_S, error);
    tnd_free(bench);
    return status;
}
