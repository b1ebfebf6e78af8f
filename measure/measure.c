/* SPDX-License-Identifier: MIT
 * Measuring one product. A graph holds the product several times, as a model holds many, and runs
 * on the real executor; between two runs the weights are exchanged for other copies, so that they
 * come from memory and not from a cache. Medians, since a noisy neighbour can distort single values
 * by any factor. */
#include "measure/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "measure/operands.h"
#include "measure/probe.h"
#include "tune/policy.h"

enum {
    MAX_TIMES = 8 * TANDEM_STAGES, /* steps of one product, transfers included */
    MOST_SAMPLES = 10000           /* bounds the memory */
};

/* Samples in microseconds: one list for each stage, one for transfers, one for the total, and one
 * for the CPU time lost to other programs. */
enum { MOVING = TANDEM_STAGES, TOTAL, LOST, N_LISTS };
struct samples {
    double *us[N_LISTS];
    uint32_t count[N_LISTS];
    uint32_t capacity;
};

struct tnd_measure {
    struct tnd_measure_options options;
    struct tnd_operands operands;
    tandem_context *context;        /* of the graph */
    tandem_graph *graph;            /* for m tokens; NULL: none yet */
    tandem_tensor *x;               /* its activations */
    tandem_context *weight_context; /* outlives graphs: devices identify weights by it */
    tandem_tensor **weights;        /* one for each copy, n_copies of them */
    int64_t m;
    int n_nodes;
    uint64_t next_copy;
    bool is_packed; /* MUL_MAT_PACKED has run with all copies of the weights */
    struct samples samples;
    uint32_t n_left_out; /* samples dropped because another program ran on the workers' CPUs */
    uint64_t energy_ns;  /* when the energy of a trial began to count */
    double watts;        /* of the last trial; 0: unknown */
    double *sorted;      /* to compute medians */
    struct tnd_step_time times[TND_MEASURE_NODES * MAX_TIMES];
};

/* ---- medians ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of n > 0 values; sorts them. */
static double median(double *values, uint32_t n)
{
    TND_ASSERT(n > 0);
    qsort(values, n, sizeof(values[0]), compare_doubles);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct tnd_stage_time tnd_stage_time_of(const double *us, uint32_t count, double *scratch)
{
    struct tnd_stage_time out = {0, 0, count};
    if (count == 0) {
        return out;
    }
    memcpy(scratch, us, count * sizeof(us[0]));
    out.median_us = median(scratch, count);
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = fabs(us[i] - out.median_us);
    }
    out.spread_us = median(scratch, count);
    return out;
}

/* ---- opening ---- */

static size_t rotate_bytes(const struct tnd_measure_options *options)
{
    if (options->rotate_bytes > 0) {
        return options->rotate_bytes;
    }
    struct tnd_cpu_caches caches = tnd_cpu_caches();
    size_t largest = caches.l3_bytes > caches.l2_bytes ? caches.l3_bytes : caches.l2_bytes;
    return 2 * (largest > 0 ? largest : (size_t)32 << 20);
}

static size_t limit_bytes(const struct tnd_measure_options *options)
{
    if (options->limit_bytes > 0) {
        return options->limit_bytes;
    }
    uint64_t ram = tnd_cpu_ram_bytes() / 4;
    return ram == 0 ? (size_t)1 << 30 : ram > SIZE_MAX ? SIZE_MAX : (size_t)ram;
}

double tnd_measure_bytes(const struct tnd_measure_options *options, enum tandem_type type,
                         int64_t n, int64_t k, int64_t m_max)
{
    double weights = (double)tandem_type_row_bytes(type, k) * (double)n;
    double copies = floor((double)rotate_bytes(options) / fmax(weights, 1)) + 1;
    double tokens = (double)m_max * (double)(n + k) * sizeof(float);
    return 2 * fmin(copies, TND_MEASURE_COPIES) * weights + tokens;
}

static enum tandem_status make_weights(struct tnd_measure *measure, struct tandem_error *error)
{
    const struct tnd_operands *o = &measure->operands;
    measure->weights = tnd_calloc((size_t)o->n_copies, sizeof(measure->weights[0]));
    if (measure->weights == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "measure", o->n_copies, 0,
                             "measure: no memory for %d tensors", o->n_copies);
    }
    for (int i = 0; i < o->n_copies; i++) {
        measure->weights[i] =
            tandem_tensor_borrow(measure->weight_context, o->type, 2, (int64_t[]){o->k, o->n},
                                 tnd_operands_weights(o, (uint64_t)i), o->weight_bytes);
        tandem_tensor_set_role(measure->weights[i], TANDEM_ROLE_CONSTANT);
    }
    return tandem_context_status(measure->weight_context, error);
}

/* Invalidates the activations on devices. */
static void forget_x(struct tnd_measure *measure)
{
    if (measure->x != NULL) {
        tnd_exec_forget(measure->options.exec, measure->x);
        measure->x = NULL;
    }
}

static void forget_weights(struct tnd_measure *measure)
{
    for (int i = 0; measure->weights != NULL && i < measure->operands.n_copies; i++) {
        if (measure->weights[i] != NULL) {
            tnd_exec_forget(measure->options.exec, measure->weights[i]);
        }
    }
}

enum tandem_status tnd_measure_open(const struct tnd_measure_options *options,
                                    enum tandem_type type, int64_t n, int64_t k, int64_t m_max,
                                    struct tnd_measure **out_measure, struct tandem_error *error)
{
    struct tnd_measure *measure = tnd_calloc(1, sizeof(*measure));
    if (measure == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "measure", (int64_t)sizeof(*measure), 0,
                             "measure: no memory");
    }
    measure->options = *options;
    struct tnd_operands_limits limits = {rotate_bytes(options), limit_bytes(options),
                                         TND_MEASURE_COPIES};
    enum tandem_status status = tandem_context_new(NULL, &measure->context, error);
    if (status == TANDEM_OK) {
        status = tandem_context_new(NULL, &measure->weight_context, error);
    }
    if (status == TANDEM_OK) {
        status =
            tnd_operands_init(type, n, k, m_max, options->seed, &limits, &measure->operands, error);
    }
    if (status == TANDEM_OK) {
        status = make_weights(measure, error);
    }
    if (status != TANDEM_OK) {
        tnd_measure_close(measure);
        return status;
    }
    *out_measure = measure;
    return TANDEM_OK;
}

void tnd_measure_close(struct tnd_measure *measure)
{
    if (measure == NULL) {
        return;
    }
    forget_x(measure);
    forget_weights(measure);
    tandem_context_free(measure->context);
    tandem_context_free(measure->weight_context);
    tnd_operands_fini(&measure->operands);
    for (int i = 0; i < N_LISTS; i++) {
        tnd_free(measure->samples.us[i]);
    }
    tnd_free(measure->sorted);
    tnd_free(measure->weights);
    tnd_free(measure);
}

/* ---- the graph ---- */

/* Whether a device takes part: its work may overlap with that of other products. */
static bool uses_device(const struct tnd_measure *measure, const struct tandem_plan_node *choice)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const tandem_backend *backend =
            tnd_registry_backend(measure->options.registry, choice->stage[s].backend);
        if (backend != NULL && tnd_backend_is_async(backend)) {
            return true;
        }
    }
    return false;
}

/* Weights in flight are transferred during the product before: only products in a row show that. */
static bool is_row_in_flight(const struct tnd_measure *measure,
                             const struct tandem_plan_node *choice)
{
    return measure->options.is_whole &&
           tnd_task_is(choice->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W);
}

/* Short products run several in a row, as in a model, where the workers are already awake when the
 * next product begins; long ones (5 ms) run alone. */
int tnd_measure_nodes(double expected_us)
{
    double nodes = TND_MEASURE_GRAPH_US / fmax(expected_us, 1);
    return nodes < 2 ? 1 : nodes > TND_MEASURE_NODES ? TND_MEASURE_NODES : (int)nodes;
}

static int nodes_for(const struct tnd_measure *measure, int64_t m,
                     const struct tandem_plan_node *choice, double expected_us)
{
    const struct tnd_operands *o = &measure->operands;
    double guess_s =
        2.0 * (double)m * (double)o->n * (double)o->k / 5e10 + (double)o->weight_bytes / 1e10;
    if (is_row_in_flight(measure, choice)) {
        return TND_MEASURE_NODES;
    }
    if (uses_device(measure, choice)) {
        return 1;
    }
    return tnd_measure_nodes(expected_us > 0 ? expected_us : 1e6 * guess_s);
}

static enum tandem_status build_graph(struct tnd_measure *measure, int64_t m, int n_nodes,
                                      struct tandem_error *error)
{
    if (measure->graph != NULL && measure->m == m && measure->n_nodes == n_nodes) {
        return TANDEM_OK;
    }
    const struct tnd_operands *o = &measure->operands;
    tandem_context *context = measure->context;
    measure->graph = NULL;
    forget_x(measure);
    tandem_context_reset(context);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, (int64_t[]){o->k, m}, o->x,
                                            (size_t)o->k * (size_t)m * sizeof(float));
    if (!measure->options.is_whole) {
        tandem_tensor_set_role(x, TANDEM_ROLE_CONSTANT);
    }
    for (int i = 0; i < n_nodes; i++) {
        tandem_graph_add(graph, tandem_mul_mat(context, measure->weights[i % o->n_copies], x));
    }
    TND_TRY(tandem_context_status(context, error));
    TND_TRY(tandem_graph_finish(graph, error));
    for (int i = 0; i < n_nodes; i++) {
        if (graph->nodes[i]->data != NULL) { /* touches the pages before anything is measured */
            memset(graph->nodes[i]->data, 0, (size_t)m * (size_t)o->n * sizeof(float));
        }
    }
    measure->graph = graph;
    measure->x = x;
    measure->m = m;
    measure->n_nodes = n_nodes;
    return TANDEM_OK;
}

/* Exchanges the weights for the copies that were not used for longest. Each copy is a tensor of its
 * own: what backends prepare of weights (packed copies, buffers of devices) belongs to the tensor
 * and has to rotate with the rows. */
static void rotate(struct tnd_measure *measure)
{
    uint64_t n_copies = (uint64_t)measure->operands.n_copies;
    for (int i = 0; i < measure->n_nodes; i++) {
        measure->graph->nodes[i]->src[0] = measure->weights[measure->next_copy++ % n_copies];
    }
}

/* ---- running ---- */

static enum tandem_status reserve_samples(struct tnd_measure *measure, uint32_t capacity,
                                          struct tandem_error *error)
{
    struct samples *samples = &measure->samples;
    memset(samples->count, 0, sizeof(samples->count));
    measure->n_left_out = 0;
    if (capacity <= samples->capacity) {
        return TANDEM_OK;
    }
    samples->capacity = 0;
    bool failed = false;
    for (int i = 0; i <= N_LISTS; i++) {
        double **list = i < N_LISTS ? &samples->us[i] : &measure->sorted;
        tnd_free(*list);
        *list = tnd_alloc(capacity * sizeof(double));
        failed = failed || *list == NULL;
    }
    if (failed) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "measure", capacity, 0,
                             "measure: no memory for %u samples", (unsigned)capacity);
    }
    samples->capacity = capacity;
    return TANDEM_OK;
}

static void add_sample(struct samples *samples, int list, uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns >= begin_ns && samples->count[list] < samples->capacity) {
        samples->us[list][samples->count[list]++] = (double)(end_ns - begin_ns) / 1e3;
    }
}

/* Adds samples of a node: from the begin of the first to the end of the last step, for each stage
 * and in total; transfers together. */
static void add_node(struct tnd_measure *measure, int node, int n_times)
{
    uint64_t moving_ns = 0;
    uint64_t begin[N_LISTS];
    uint64_t end[N_LISTS] = {0};
    memset(begin, 0xff, sizeof(begin));
    for (int i = 0; i < n_times; i++) {
        const struct tnd_step_time *time = &measure->times[i];
        if (time->node != node || time->stage >= TANDEM_STAGES) {
            continue;
        }
        bool moves = time->kind != TND_STEP_WORK;
        const int lists[2] = {time->stage, TOTAL};
        moving_ns += moves ? time->end_ns - time->begin_ns : 0;
        for (int j = moves ? 1 : 0; j < 2; j++) {
            int list = lists[j];
            begin[list] = time->begin_ns < begin[list] ? time->begin_ns : begin[list];
            end[list] = time->end_ns > end[list] ? time->end_ns : end[list];
        }
    }
    if (moving_ns > 0) {
        add_sample(&measure->samples, MOVING, 0, moving_ns);
    }
    for (int list = 0; list < N_LISTS; list++) {
        if (begin[list] != UINT64_MAX) {
            add_sample(&measure->samples, list, begin[list], end[list]);
        }
    }
}

/* Adds one product's share of the time of a whole row. */
static void add_row(struct tnd_measure *measure, int n_times)
{
    uint64_t begin_ns = UINT64_MAX;
    uint64_t end_ns = 0;
    for (int i = 0; i < n_times; i++) {
        const struct tnd_step_time *time = &measure->times[i];
        begin_ns = time->begin_ns < begin_ns ? time->begin_ns : begin_ns;
        end_ns = time->end_ns > end_ns ? time->end_ns : end_ns;
    }
    if (end_ns > begin_ns) {
        add_sample(&measure->samples, TOTAL, 0, (end_ns - begin_ns) / (uint64_t)measure->n_nodes);
    }
}

/* Whether to drop a sample because another program ran on a worker's CPU meanwhile. On a machine
 * that is always busy every second sample is kept, for want of better ones. `out_lost_ns`: the CPU
 * time that the worker lost; 0: a negligible one. */
static bool leaves_out(struct tnd_measure *measure, int node, int n_times, uint64_t *out_lost_ns)
{
    *out_lost_ns = 0;
    for (int i = 0; i < n_times; i++) {
        const struct tnd_step_time *time = &measure->times[i];
        if (time->node == node && !tnd_time_is_quiet(time) && time->lost_ns > *out_lost_ns) {
            *out_lost_ns = time->lost_ns;
        }
    }
    bool leaves = *out_lost_ns > 0 &&
                  measure->n_left_out < TND_MEASURE_LEFT_OUT + measure->samples.count[TOTAL];
    measure->n_left_out += leaves ? 1 : 0;
    return leaves;
}

static enum tandem_status run_once(struct tnd_measure *measure, const tandem_plan *plan,
                                   bool is_warm_up, struct tandem_error *error)
{
    int n_times = 0;
    struct tnd_exec_run_options options = {
        .times = measure->times,
        .n_times = TND_MEASURE_NODES * MAX_TIMES,
        .out_n_times = &n_times,
        .sync_each = !measure->options.is_whole,
        .asks_lost = true,
        .is_plain = true,
    };
    rotate(measure);
    TND_TRY(tnd_exec_run(measure->options.exec, measure->graph, plan, &options, error));
    if (is_row_in_flight(measure, tandem_plan_node(plan, 0))) {
        if (!is_warm_up) {
            add_row(measure, n_times);
        }
        return TANDEM_OK;
    }
    /* The first of several products includes the waking of the workers. */
    int first = measure->n_nodes > 1 ? 1 : 0;
    for (int i = first; i < measure->n_nodes && !is_warm_up; i++) {
        uint64_t lost_ns;
        if (!leaves_out(measure, i, n_times, &lost_ns)) {
            add_node(measure, i, n_times);
            add_sample(&measure->samples, LOST, 0, lost_ns);
        }
    }
    return TANDEM_OK;
}

static struct tnd_measure_effort complete_effort(const struct tnd_measure_effort *effort)
{
    struct tnd_measure_effort out = {0};
    if (effort != NULL) {
        out = *effort;
    }
    out.budget_s = out.budget_s > 0 ? out.budget_s : TND_MEASURE_BUDGET_S;
    out.min_repeats = out.min_repeats > 0 ? out.min_repeats : 3;
    out.min_repeats = out.min_repeats < MOST_SAMPLES ? out.min_repeats : MOST_SAMPLES;
    out.max_repeats = out.max_repeats > 0 ? out.max_repeats : 200;
    out.max_repeats = out.max_repeats < MOST_SAMPLES ? out.max_repeats : MOST_SAMPLES;
    out.max_repeats = out.max_repeats > out.min_repeats ? out.max_repeats : out.min_repeats;
    out.spread_frac = out.spread_frac > 0 ? out.spread_frac : TND_MEASURE_SPREAD;
    return out;
}

/* Whether there are enough samples. A cell that is much slower than expected may end with one
 * sample, so that a whole bench keeps to its budget. */
static bool is_enough(const struct tnd_measure *measure, const struct tnd_measure_effort *effort,
                      double elapsed_s)
{
    const struct samples *samples = &measure->samples;
    uint32_t count = samples->count[TOTAL];
    if (count == 0) {
        return false; /* samples were dropped: continue, but not for long */
    }
    if (count >= (uint32_t)effort->max_repeats || elapsed_s >= 3 * effort->budget_s) {
        return true;
    }
    if (count < (uint32_t)effort->min_repeats) {
        return false;
    }
    if (elapsed_s >= effort->budget_s) {
        return true;
    }
    struct tnd_stage_time total = tnd_stage_time_of(samples->us[TOTAL], count, measure->sorted);
    return count >= TND_MEASURE_REPEATS &&
           total.spread_us / sqrt((double)count) <= effort->spread_frac * total.median_us;
}

static void begin_energy(struct tnd_measure *measure)
{
    const struct tnd_clock *clock = measure->options.clock;
    if (measure->options.energy != NULL) {
        measure->energy_ns = clock->now_ns(clock);
        (void)tnd_energy_lap(measure->options.energy, measure->energy_ns);
    }
}

/* Counters have a coarse resolution: repeats short products, unmeasured, until it does not
 * matter. */
static enum tandem_status end_energy(struct tnd_measure *measure, const tandem_plan *plan,
                                     struct tandem_error *error)
{
    struct tnd_energy *energy = measure->options.energy;
    const struct tnd_clock *clock = measure->options.clock;
    measure->watts = 0;
    if (energy == NULL) {
        return TANDEM_OK;
    }
    uint64_t until_ns = measure->energy_ns + (uint64_t)(tnd_energy_least_s(energy) * 1e9);
    uint64_t now_ns = clock->now_ns(clock);
    while (now_ns < until_ns) {
        TND_TRY(run_once(measure, plan, true, error));
        now_ns = clock->now_ns(clock);
    }
    double joules = tnd_energy_lap(energy, now_ns);
    measure->watts = joules > 0 ? joules / ((double)(now_ns - measure->energy_ns) * 1e-9) : 0;
    return TANDEM_OK;
}

static enum tandem_status repeat(struct tnd_measure *measure, const tandem_plan *plan,
                                 const struct tnd_measure_effort *effort,
                                 struct tandem_error *error)
{
    const struct tnd_clock *clock = measure->options.clock;
    uint64_t begin_ns = clock->now_ns(clock);
    double elapsed_s = 0;
    if (!effort->is_warm) {
        TND_TRY(run_once(measure, plan, true, error));
    }
    begin_energy(measure);
    for (int i = 0; i < MOST_SAMPLES && !is_enough(measure, effort, elapsed_s); i++) {
        TND_TRY(run_once(measure, plan, false, error));
        elapsed_s = (double)(clock->now_ns(clock) - begin_ns) / 1e9;
    }
    return end_energy(measure, plan, error);
}

/* A plan that runs all products of the graph by `choice`. */
static enum tandem_status new_plan(const struct tnd_measure *measure,
                                   const struct tandem_plan_node *choice, tandem_plan **out_plan,
                                   struct tandem_error *error)
{
    TND_TRY(tandem_plan_new(measure->n_nodes, out_plan, error));
    for (int i = 0; i < measure->n_nodes; i++) {
        (void)tandem_plan_set_node(*out_plan, i,
                                   choice); /* running it reports errors of the choice in more
                                             * detail */
    }
    return TANDEM_OK;
}

enum tandem_status tnd_measure_prepare(struct tnd_measure *measure,
                                       const struct tandem_plan_node *choice,
                                       struct tandem_error *error)
{
    if (measure->is_packed ||
        !tnd_task_is(choice->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_USES_PACKED)) {
        return TANDEM_OK;
    }
    /* One token is enough: the copy is made at the first use of the weights. */
    int n_copies = measure->operands.n_copies;
    int n_nodes = n_copies < TND_MEASURE_NODES ? n_copies : TND_MEASURE_NODES;
    tandem_plan *plan = NULL;
    TND_TRY(build_graph(measure, 1, n_nodes, error));
    TND_TRY(new_plan(measure, choice, &plan, error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n_copies && status == TANDEM_OK; i += n_nodes) {
        status = run_once(measure, plan, true, error);
    }
    tandem_plan_free(plan);
    measure->is_packed = status == TANDEM_OK;
    return status;
}

/* When other programs took a part of most samples, the samples may agree and all be too long: they
 * count as one sample, whose error is that part. It happens most to threads that wait for each
 * other. */
static struct tnd_stage_time time_of(struct tnd_measure *measure, int list)
{
    const struct samples *samples = &measure->samples;
    struct tnd_stage_time time =
        tnd_stage_time_of(samples->us[list], samples->count[list], measure->sorted);
    const struct tnd_stage_time lost =
        tnd_stage_time_of(samples->us[LOST], samples->count[LOST], measure->sorted);
    if (lost.median_us > 0 && time.count > 0) {
        time.spread_us = fmax(time.spread_us, fmin(lost.median_us, time.median_us));
        time.count = 1;
    }
    return time;
}

enum tandem_status tnd_measure_run(struct tnd_measure *measure, int64_t m,
                                   const struct tandem_plan_node *choice,
                                   const struct tnd_measure_effort *effort,
                                   struct tnd_measure_result *out_result,
                                   struct tandem_error *error)
{
    if (m < 1 || m > measure->operands.m_max) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "measure", m, measure->operands.m_max,
                             "measure: m %lld, expected 1 to %lld", (long long)m,
                             (long long)measure->operands.m_max);
    }
    struct tnd_measure_effort complete = complete_effort(effort);
    TND_TRY(tnd_measure_prepare(measure, choice, error));
    TND_TRY(build_graph(measure, m, nodes_for(measure, m, choice, complete.expected_us), error));
    TND_TRY(reserve_samples(measure, (uint32_t)complete.max_repeats + TND_MEASURE_NODES, error));
    tandem_plan *plan = NULL;
    TND_TRY(new_plan(measure, choice, &plan, error));
    enum tandem_status status = repeat(measure, plan, &complete, error);
    tandem_plan_free(plan);
    if (status != TANDEM_OK) {
        return status;
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        out_result->stage[s] = time_of(measure, s);
    }
    out_result->moving = time_of(measure, MOVING);
    out_result->total = time_of(measure, TOTAL);
    out_result->watts = measure->watts;
    return TANDEM_OK;
}

/* ---- for checking ---- */

const float *tnd_measure_output(const struct tnd_measure *measure)
{
    return measure->graph != NULL ? measure->graph->nodes[measure->n_nodes - 1]->data : NULL;
}

void tnd_measure_spoil(struct tnd_measure *measure)
{
    size_t bytes = (size_t)measure->m * (size_t)measure->operands.n * sizeof(float);
    for (int i = 0; measure->graph != NULL && i < measure->n_nodes; i++) {
        if (measure->graph->nodes[i]->data != NULL) {
            memset(measure->graph->nodes[i]->data, 0xff, bytes); /* NaN */
        }
    }
}

enum tandem_status tnd_measure_reference(struct tnd_measure *measure, int64_t m, float *out,
                                         struct tandem_error *error)
{
    if (m < 1 || m > measure->operands.m_max) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "measure", m, measure->operands.m_max,
                             "measure: m %lld, expected 1 to %lld", (long long)m,
                             (long long)measure->operands.m_max);
    }
    if (measure->graph == NULL || measure->m != m) {
        TND_TRY(build_graph(measure, m, 1, error));
    }
    tandem_tensor *node = measure->graph->nodes[0];
    void *data = node->data; /* the result of the last run must not be overwritten */
    node->data = out;
    enum tandem_status status = tnd_eval_ref_node(node, error);
    node->data = data;
    return status;
}
