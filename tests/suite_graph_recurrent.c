/* SPDX-License-Identifier: MIT
 * Recurrent layers: random ones, by the kernels of every instruction set and on one to three
 * threads, against the reference; those that are cancelled. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "graph/lower.h"
#include "runtime/runtime_internal.h"
#include "sched/exec.h"
#include "sched/plan.h"
#include "tandem/runtime.h"
#include "tests/net_levels.h"
#include "tests/support.h"
#include "tandem/backend.h"
#include "backends/cpu/ops/cpu_ops.h"

enum { MOST_INPUTS = 5 };

struct size {
    int64_t steps, batch, hidden;
};

static struct tnd_array *filled(struct tnd_rng *rng, const struct tnd_dims *shape, double scale)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    for (int64_t i = 0; i < array->n; i++) {
        ((float *)array->data)[i] = (float)(scale * (double)tnd_rng_normal(rng));
    }
    return array;
}

/* Integers of 256 values in a row, which begin at -255, -128 or 0. */
static struct tnd_array *levels_of(struct tnd_rng *rng, const struct tnd_dims *shape)
{
    static const int firsts[] = {-255, -128, 0};
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_I32, shape);
    for (int64_t i = 0; i < array->n; i++) {
        ((int32_t *)array->data)[i] = firsts[i / shape->dims[2] % 3] + (int)tnd_rng_below(rng, 256);
    }
    return array;
}

static struct tnd_array *lengths_of(struct tnd_rng *rng, const struct size *size)
{
    const struct tnd_dims shape = {1, {size->batch}};
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_I64, &shape);
    for (int64_t i = 0; i < array->n; i++) {
        ((int64_t *)array->data)[i] = (int64_t)tnd_rng_below(rng, (uint64_t)size->steps + 3) - 1;
    }
    return array;
}

/* Settings of a layer by the bits of `which`. */
static struct tnd_recurrent layer_of(unsigned which)
{
    struct tnd_recurrent layer;
    memset(&layer, 0, sizeof(layer));
    layer.cell = (int)(which % 3);
    layer.directions = 1 + (which / 3 % 2 != 0);
    layer.reverse = which / 6 % 2 != 0 ? 1 : 2;
    layer.is_linear = layer.cell == TND_CELL_GRU && which / 12 % 2 != 0;
    layer.is_coupled = layer.cell == TND_CELL_LSTM && which / 12 % 2 != 0;
    layer.is_8_bit = layer.cell == TND_CELL_LSTM && which / 24 % 2 != 0;
    layer.clip = which / 48 % 2 != 0 ? 0.75F : 0.0F;
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < 3; i++) {
            const int kind = which % 5 != 0 ? (int)((which + (unsigned)(3 * i + d)) % 11)
                             : i == 0       ? TND_ACTIVATION_SIGMOID
                                            : TND_ACTIVATION_TANH;
            layer.activations[d][i] = (struct tnd_activation){kind, 0.4F, 0.6F};
        }
    }
    return layer;
}

struct made {
    struct tnd_net *net;
    struct tnd_array *inputs[MOST_INPUTS];
    int n;
};

/* A constant, or an input of the net with these values. */
static int value_of(struct made *made, struct tnd_array *array, bool is_input)
{
    if (!is_input) {
        return tnd_net_constant(made->net, array);
    }
    made->inputs[made->n++] = array;
    return tnd_net_input(made->net, array->type, &array->shape, "x", NULL);
}

static struct made make(struct tnd_rng *rng, const struct tnd_recurrent *layer,
                        const struct size *size, unsigned how)
{
    const int64_t d = layer->directions;
    const int64_t rows = tnd_cell_gates(layer->cell) * size->hidden;
    const int64_t extras = how / 2 % 2 == 0               ? 0
                           : layer->cell == TND_CELL_LSTM ? 3
                                                          : layer->is_linear != 0;
    const struct tnd_dims rows_last = {3, {size->batch, size->steps, d * rows}};
    const struct tnd_dims rows_first = {3, {d * rows, size->steps, size->batch}};
    const bool is_last = how / 16 % 2 == 0;
    const bool takes_x = how / 32 % 2 == 0; /* (something has to be an input) */
    const struct tnd_dims r = {3, {d, rows, size->hidden}};
    const bool is_8_bit = layer->is_8_bit != 0;
    const struct tnd_dims extra = {2, {d, extras * size->hidden + (is_8_bit ? rows : 0)}};
    const struct tnd_dims state = {4, {tnd_cell_states(layer->cell), d, size->batch, size->hidden}};
    static const int orders[][3] = {{1, 2, 0}, {1, 0, 2}};
    struct made made = {.net = tnd_net_new()};
    const int of_x = value_of(&made, filled(rng, is_last ? &rows_last : &rows_first, 1), takes_x);
    const double spread = 1 / sqrt((double)size->hidden);
    const int of_r = is_8_bit ? tnd_net_constant(made.net, levels_of(rng, &r))
                              : value_of(&made, filled(rng, &r, spread), how % 2 != 0);
    const int of_extra = value_of(&made, filled(rng, &extra, is_8_bit ? spread / 255 : 1),
                                  how % 2 != 0 && extra.dims[1] > 0);
    const int of_state = value_of(&made, filled(rng, &state, 1), how / 4 % 2 != 0 || !takes_x);
    const int lengths =
        how / 8 % 2 == 0 ? TANDEM_NET_NONE : value_of(&made, lengths_of(rng, size), true);
    const int y =
        tnd_net_recurrent(made.net, layer, tnd_net_permute(made.net, of_x, orders[is_last]), of_r,
                          of_extra, of_state, lengths);
    (void)tnd_net_output(made.net, y);
    check_status(made.net->status, TANDEM_OK, NULL, &made.net->error);
    return made;
}

static const struct tandem_tensor *node_of(const struct tnd_lowered *lowered)
{
    const struct tandem_graph *graph = tnd_lowered_graph(lowered);
    for (int i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->op == TANDEM_OP_RECURRENT) {
            return graph->nodes[i];
        }
    }
    CU_FAIL("the layer is one operation");
    return NULL;
}

/* (A state between two of 256 levels may get either.) */
static bool is_near(const struct tnd_lowered *lowered, const struct tnd_array *want,
                    const float *got)
{
    const double tolerance =
        node_of(lowered)->params.work->params->recurrent.is_8_bit ? 1e-2 : 1e-4;
    for (int64_t i = 0; i < want->n; i++) {
        const double w = (double)((const float *)want->data)[i];
        const bool is_same = w == (double)got[i]; /* (infinite ones, too) */
        if (!is_same && !(fabs(w - (double)got[i]) <= tolerance * (1 + fabs(w)))) {
            printf("value %lld: %.9g, expected %.9g\n", (long long)i, (double)got[i], w);
            return false;
        }
    }
    return true;
}

static void nothing_to_wait_for(struct tandem_worker *worker)
{
    (void)worker;
}

/* The node alone, again, by the kernels of each instruction set. */
static void check_levels(const struct tnd_lowered *lowered, const struct tnd_array *want)
{
    const struct tandem_tensor *node = node_of(lowered);
    const size_t bytes = tnd_cpu_node_scratch(node);
    void *scratch = tnd_alloc(bytes);
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        struct tandem_worker worker = {
            .count = 1, .scratch = scratch, .scratch_bytes = bytes, .barrier = nothing_to_wait_for};
        memset(scratch, 0xff, bytes);
        check_ok(tnd_cpu_work(tnd_test_kernels(k), node, &worker));
        CU_ASSERT_TRUE(is_near(lowered, want, node->data));
    }
    tnd_free(scratch);
}

/* A runtime, and a plan by which all threads take part in the layer. */
static tandem_runtime *open_runtime(tandem_graph *graph, int n_threads, tandem_plan **out_plan)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.n_threads = n_threads;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, &error));
    check_ok(tandem_runtime_plan(runtime, graph, out_plan, &error));
    for (int i = 0; i < graph->n_nodes && n_threads > 1; i++) {
        if (graph->nodes[i]->op == TANDEM_OP_RECURRENT) {
            (*out_plan)->nodes[i].stage[TANDEM_STAGE_COMPUTE].parallel = true;
            (*out_plan)->nodes[i].n_threads = n_threads;
        }
    }
    return runtime;
}

static void check_threads(const struct tnd_lowered *lowered, const struct tnd_array *want,
                          int n_threads, float *first)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tnd_lowered_graph(lowered);
    tandem_plan *plan = NULL;
    tandem_runtime *runtime = open_runtime(graph, n_threads, &plan);
    check_status(tandem_runtime_compute(runtime, graph, plan, NULL, &error), TANDEM_OK, NULL,
                 &error);
    const float *got = tnd_lowered_output(lowered, 0);
    CU_ASSERT_TRUE(is_near(lowered, want, got));
    if (n_threads > 1) {
        CU_ASSERT_EQUAL(memcmp(first, got, (size_t)want->n * sizeof(float)), 0);
    }
    memcpy(first, got, (size_t)want->n * sizeof(float));
    if (n_threads == 1) {
        check_levels(lowered, want);
    }
    tandem_plan_free(plan);
    tandem_runtime_close(runtime);
}

static void check_layer(struct tnd_rng *rng, unsigned which, const struct size *size)
{
    const struct tnd_recurrent layer = layer_of(which);
    struct made made = make(rng, &layer, size, (unsigned)tnd_rng_below(rng, 64));
    struct tandem_error error = {0};
    struct tnd_lowered *lowered = NULL;
    struct tnd_array *want = NULL;
    check_ok(tnd_net_run(made.net, made.inputs, &want, &error));
    check_ok(tnd_net_lower(made.net, &lowered, &error));
    for (int i = 0; i < made.n; i++) {
        check_ok(tnd_lowered_set_input(lowered, i, made.inputs[i], &error));
        tnd_array_free(made.inputs[i]);
    }
    float *first = tnd_alloc((size_t)want->n * sizeof(float));
    check_ok(tnd_test_reference(tnd_lowered_graph(lowered), &error));
    CU_ASSERT_TRUE(is_near(lowered, want, tnd_lowered_output(lowered, 0)));
    for (int threads = 1; threads <= 3; threads++) {
        check_threads(lowered, want, threads, first);
    }
    tnd_free(first);
    tnd_array_free(want);
    tnd_lowered_free(lowered);
    tnd_net_free(made.net);
}

static void layers_of_every_kind_are_those_of_the_reference(void)
{
    static const struct size sizes[] = {{1, 1, 1}, {3, 2, 5}, {4, 1, 32}, {2, 13, 33}};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (unsigned which = 0; which < 96; which++) {
        check_layer(&rng, which, &sizes[which % 4]);
    }
}

/* Enough work that workers share a direction; more values than go through the gates together. */
static void workers_that_share_a_direction_give_the_same_bits(void)
{
    static const struct size sizes[] = {{5, 1, 260}, {4, 14, 150}, {3, 2, 270}};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (unsigned which = 0; which < 36; which++) {
        check_layer(&rng, 5 * which, &sizes[which / 3 % 3]);
    }
}

static void a_layer_without_steps_keeps_its_states(void)
{
    for (unsigned which = 0; which < 6; which++) {
        const struct tnd_recurrent layer = layer_of(which);
        const struct size size = {0, 2, 3};
        struct tnd_array *want = NULL;
        struct tnd_array *got = NULL;
        struct tnd_lowered *lowered = NULL;
        struct tandem_error error = {0};
        struct tnd_rng rng;
        tnd_rng_init(&rng, tnd_test_seed());
        struct made made = make(&rng, &layer, &size, 4);
        const struct tnd_array *state = made.inputs[made.n - 1];
        check_ok(tnd_net_run(made.net, made.inputs, &want, &error));
        check_int((int)want->n, (int)state->n);
        check_bits(want->data, state->data, (size_t)state->n * sizeof(float), "states");
        check_ok(tnd_net_lower(made.net, &lowered, &error));
        for (int i = 0; i < made.n; i++) {
            check_ok(tnd_lowered_set_input(lowered, i, made.inputs[i], &error));
        }
        tandem_plan *plan = NULL;
        tandem_runtime *runtime = open_runtime(tnd_lowered_graph(lowered), 1, &plan);
        check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), plan, NULL, &error));
        check_ok(tnd_lowered_get_output(lowered, 0, &got, &error));
        check_bits(got->data, state->data, (size_t)state->n * sizeof(float), "states");
        tandem_plan_free(plan);
        tandem_runtime_close(runtime);
        tnd_lowered_free(lowered);
        tnd_array_free(want);
        tnd_array_free(got);
        for (int i = 0; i < made.n; i++) {
            tnd_array_free(made.inputs[i]);
        }
        tnd_net_free(made.net);
    }
}

struct impatient {
    struct tnd_clock_virtual clock;
    int left; /* times that it is asked before it cancels */
};

static bool cancel(void *user)
{
    struct impatient *caller = user;
    tnd_clock_virtual_advance(&caller->clock, 20 * 1000 * 1000);
    return caller->left-- <= 0;
}

/* Steps of the layer that were computed before the `asked`th question ended the run. */
static int64_t steps_before_cancel(tandem_runtime *runtime, const struct tnd_lowered *lowered,
                                   const tandem_plan *plan, struct impatient *caller, int asked)
{
    struct tandem_compute_options options = {
        .size = sizeof(options), .cancel = cancel, .user = caller};
    struct tandem_error error = {0};
    const struct tandem_tensor *node = node_of(lowered);
    const struct tnd_dims *shape = &node->params.work->shape;
    const int64_t row = tnd_dims_values(shape) / shape->dims[0];
    const uint32_t untouched = UINT32_MAX; /* (NaN) */
    int64_t n = 0;
    caller->left = asked;
    memset(node->data, 0xff, (size_t)tnd_dims_values(shape) * sizeof(float));
    check_status(
        tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), plan, &options, &error),
        TANDEM_E_CANCELLED, "cancelled", &error);
    while (memcmp((float *)node->data + n * row, &untouched, sizeof(untouched)) != 0) {
        n++;
    }
    return n;
}

static void a_layer_can_be_cancelled_between_steps(void)
{
    static const struct size size = {9, 2, 160};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (unsigned which = 0; which < 12; which++) {
        struct tnd_recurrent layer = layer_of(which);
        layer.reverse = 0;
        struct made made = make(&rng, &layer, &size, which % 2);
        struct tnd_lowered *lowered = NULL;
        struct tandem_error error = {0};
        check_ok(tnd_net_lower(made.net, &lowered, &error));
        for (int i = 0; i < made.n; i++) {
            check_ok(tnd_lowered_set_input(lowered, i, made.inputs[i], &error));
            tnd_array_free(made.inputs[i]);
        }
        for (int threads = 1; threads <= 4; threads++) {
            struct impatient caller = {.left = 0};
            tandem_plan *plan = NULL;
            tandem_runtime *runtime = open_runtime(tnd_lowered_graph(lowered), threads, &plan);
            tnd_clock_virtual_init(&caller.clock, 1);
            tnd_exec_set_clock(runtime->exec, &caller.clock.clock);
            int asked = 1;
            while (steps_before_cancel(runtime, lowered, plan, &caller, asked) == 0) {
                asked++; /* of groups before the layer */
            }
            for (int64_t n = 2; n < size.steps; n++) {
                check_int((int)steps_before_cancel(runtime, lowered, plan, &caller, ++asked),
                          (int)n);
            }
            tandem_plan_free(plan);
            tandem_runtime_close(runtime);
        }
        tnd_lowered_free(lowered);
        tnd_net_free(made.net);
    }
}

static void operands_that_do_not_fit_are_refused(void)
{
    const struct tnd_dims x = {3, {2, 1, 12}};
    const struct tnd_dims state = {4, {1, 1, 1, 4}};
    for (int wrong = 0; wrong < 4; wrong++) {
        const struct tnd_dims r = {3, {1, wrong == 0 ? 8 : 12, 4}};
        const struct tnd_dims extra = {2, {1, wrong == 1 ? 3 : 0}};
        const struct tnd_dims lengths = {1, {wrong == 2 ? 2 : 1}};
        const struct tnd_recurrent layer = {.cell = TND_CELL_GRU, .directions = wrong == 3 ? 2 : 1};
        struct tnd_net *net = tnd_net_new();
        check_int(tnd_net_recurrent(net, &layer,
                                    tnd_net_input(net, TANDEM_DTYPE_F32, &x, "x", NULL),
                                    tnd_net_input(net, TANDEM_DTYPE_F32, &r, "r", NULL),
                                    tnd_net_input(net, TANDEM_DTYPE_F32, &extra, "e", NULL),
                                    tnd_net_input(net, TANDEM_DTYPE_F32, &state, "s", NULL),
                                    tnd_net_input(net, TANDEM_DTYPE_I64, &lengths, "l", NULL)),
                  TANDEM_NET_NONE);
        check_int(net->status, TANDEM_E_SHAPE);
        tnd_net_free(net);
    }
}

static CU_TestInfo recurrent_tests[] = {
    {"layers of every kind are those of the reference",
     layers_of_every_kind_are_those_of_the_reference},
    {"workers that share a direction give the same bits",
     workers_that_share_a_direction_give_the_same_bits},
    {"a layer without steps keeps its states", a_layer_without_steps_keeps_its_states},
    {"a layer can be cancelled between steps", a_layer_can_be_cancelled_between_steps},
    {"operands that do not fit are refused", operands_that_do_not_fit_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_recurrent[] = {
    {"recurrent layers", NULL, NULL, NULL, NULL, recurrent_tests},
    CU_SUITE_INFO_NULL,
};
