/* SPDX-License-Identifier: MIT
 * Each method to compute a convolution against the reference, whose sums are in double precision:
 * odd shapes, groups, steps, padding, values that are not finite, how exact Winograd's method is,
 * and how a method is chosen. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "graph/lower.h"
#include "tandem/runtime.h"
#include "tests/net_levels.h"
#include "tests/prefer_method.h"
#include "tests/support.h"

struct problem {
    int n; /* dimensions of the window */
    int64_t images, channels, filters, groups;
    int64_t in[3], window[3], stride[3], dilation[3], begin[3], end[3];
    bool is_block; /* bias, input and bounds follow, with nothing else */
};

/* Numbers from -4 to 4, whose sums of products are exact in any order; or real ones. */
static struct tnd_array *filled(struct tnd_rng *rng, const struct tnd_dims *shape, bool is_real)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    for (int64_t i = 0; i < array->n; i++) {
        ((float *)array->data)[i] =
            is_real ? tnd_rng_float(rng) * 2 - 1 : (float)tnd_rng_below(rng, 9) - 4;
    }
    return array;
}

static struct tnd_dims input_of(const struct problem *p)
{
    struct tnd_dims shape = {.n = p->n + 2, .dims = {p->images, p->channels}};
    memcpy(shape.dims + 2, p->in, (size_t)p->n * sizeof(int64_t));
    return shape;
}

/* A residual block's end: what one tile after another of the result may get at once. */
static void add_block(struct tnd_net *net, int x, int y)
{
    const struct tnd_dims shape = {4, {1, tnd_net_value(net, y)->shape.dims[1], 1, 1}};
    struct tnd_rng rng;
    tnd_rng_init(&rng, 3);
    const int bias = tnd_net_constant(net, filled(&rng, &shape, false));
    const int sum = tnd_net_binary(net, TANDEM_BINARY_ADD, y, bias);
    const int both = tnd_net_binary(net, TANDEM_BINARY_ADD, sum, x);
    (void)tnd_net_output(net, tnd_net_binary(net, TANDEM_BINARY_MAX, both,
                                             tnd_net_scalar(net, TANDEM_DTYPE_F32, 0)));
}

static struct tnd_window window_of(const struct problem *p)
{
    struct tnd_window window = {.n = p->n, .groups = p->groups};
    memcpy(window.extent, p->window, sizeof(window.extent));
    memcpy(window.stride, p->stride, sizeof(window.stride));
    memcpy(window.dilation, p->dilation, sizeof(window.dilation));
    memcpy(window.begin, p->begin, sizeof(window.begin));
    memcpy(window.end, p->end, sizeof(window.end));
    return window;
}

/* A net of one convolution with a constant filter, whose result is read plainly and by a chain. */
static struct tnd_net *net_of(const struct problem *p, struct tnd_array *filter)
{
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims shape = input_of(p);
    const struct tnd_window window = window_of(p);
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
    const int y = tnd_net_conv(net, x, tnd_net_constant(net, filter), &window);
    if (p->is_block) {
        add_block(net, x, y);
    } else {
        (void)tnd_net_output(net, y);
        (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_NEG, x));
        (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_ABS, y));
    }
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    return net;
}

static struct tnd_array *filter_of(const struct problem *p, struct tnd_rng *rng, bool is_real)
{
    struct tnd_dims shape = {.n = p->n + 2, .dims = {p->filters, p->channels / p->groups}};
    memcpy(shape.dims + 2, p->window, (size_t)p->n * sizeof(int64_t));
    return filled(rng, &shape, is_real);
}

static tandem_runtime *open_runtime(int n_threads)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.n_threads = n_threads;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, &error));
    return runtime;
}

/* All outputs by one method; false where it is none for this convolution. No threads: by the
 * reference of the nodes. */
static bool compute(const struct tnd_net *net, enum tnd_conv_method method, int threads,
                    const struct tnd_array *x, struct tnd_array **out)
{
    const struct tandem_chooser chooser = prefer_method(&method);
    const struct tnd_lower_options options = {.chooser = &chooser};
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    check_status(tnd_net_lower_with(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    const struct tnd_conv_choice *choice = tnd_lowered_conv(lowered, 0);
    CU_ASSERT_PTR_NULL(tnd_lowered_conv(lowered, 1));
    CU_ASSERT_PTR_NULL(tnd_lowered_conv(lowered, -1));
    CU_ASSERT_PTR_NULL(tnd_lowered_conversion(lowered, -1));
    const struct tnd_conversion *first = tnd_lowered_conversion(lowered, 0);
    CU_ASSERT_TRUE(first != NULL && first->is_last && first->shape.n == net->values[0].shape.n);
    const bool is_method = choice != NULL && choice->method == method;
    if (is_method) {
        tandem_runtime *runtime = open_runtime(threads > 0 ? threads : 1);
        check_ok(tnd_lowered_set_input(lowered, 0, x, &error));
        if (threads == 0) {
            check_ok(tnd_test_reference(tnd_lowered_graph(lowered), &error));
        }
        for (int i = 0; threads > 0 && i < 2; i++) {
            check_status(
                tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error),
                TANDEM_OK, NULL, &error);
        }
        for (int i = 0; i < net->n_outputs; i++) {
            check_ok(tnd_lowered_get_output(lowered, i, &out[i], &error));
        }
        tandem_runtime_close(runtime);
    }
    tnd_lowered_free(lowered);
    return is_method;
}

static void free_arrays(struct tnd_array **arrays, int n)
{
    for (int i = 0; i < n; i++) {
        tnd_array_free(arrays[i]);
        arrays[i] = NULL;
    }
}

static bool is_same(const struct tnd_array *a, const struct tnd_array *b, double tolerance)
{
    bool same = a != NULL && b != NULL && tnd_dims_is_equal(&a->shape, &b->shape);
    for (int64_t i = 0; same && i < a->n; i++) {
        const double x = tnd_array_number(a, i);
        const double y = tnd_array_number(b, i);
        same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance;
        if (!same) {
            printf("value %lld: %.9g, expected %.9g\n", (long long)i, x, y);
        }
    }
    return same;
}

/* Each method by the reference of its nodes and on one to three threads; returns how many. */
static int check_problem(const struct problem *p, struct tnd_rng *rng)
{
    struct tnd_net *net = net_of(p, filter_of(p, rng, false));
    const struct tnd_dims shape = input_of(p);
    struct tnd_array *x = filled(rng, &shape, false);
    struct tnd_array *want[3] = {NULL};
    struct tnd_array *got[3] = {NULL};
    struct tandem_error error = {0};
    int methods = 0;
    check_status(tnd_net_run(net, &x, want, &error), TANDEM_OK, NULL, &error);
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        for (int threads = 0; threads <= 3; threads++) {
            const bool is_method = compute(net, (enum tnd_conv_method)method, threads, x, got);
            methods += is_method && threads == 1;
            for (int i = 0; is_method && i < net->n_outputs; i++) {
                CU_ASSERT_TRUE(is_same(got[i], want[i], 0));
            }
            free_arrays(got, 3);
        }
    }
    free_arrays(want, 3);
    tnd_array_free(x);
    tnd_net_free(net);
    return methods;
}

static struct problem square(int64_t images, int64_t channels, int64_t filters, int64_t height,
                             int64_t width, int64_t padding)
{
    return (struct problem){.n = 2,
                            .images = images,
                            .channels = channels,
                            .filters = filters,
                            .groups = 1,
                            .in = {height, width},
                            .window = {3, 3},
                            .stride = {1, 1},
                            .dilation = {1, 1},
                            .begin = {padding, padding},
                            .end = {padding, padding}};
}

static void every_way_gives_exact_sums_exactly(void)
{
    static const int64_t cases[][6] = {
        {1, 16, 32, 8, 8, 1}, {2, 17, 33, 5, 7, 1}, {1, 40, 70, 3, 3, 0},  {3, 16, 5, 4, 9, 2},
        {1, 64, 31, 1, 1, 1}, {1, 33, 1, 13, 2, 1}, {2, 48, 64, 30, 3, 0}, {1, 100, 20, 16, 15, 1}};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t *c = cases[i];
        const struct problem p = square(c[0], c[1], c[2], c[3], c[4], c[5]);
        check_int(check_problem(&p, &rng), 3);
    }
}

static void what_follows_is_computed_with_each_way(void)
{
    static const int64_t cases[][3] = {{32, 8, 8}, {17, 5, 31}, {70, 3, 3}, {16, 1, 60}};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t *c = cases[i];
        struct problem p = square(2, c[0], c[0], c[1], c[2], 1);
        p.is_block = true;
        check_int(check_problem(&p, &rng), 3);
    }
}

static int64_t below(struct tnd_rng *rng, int64_t n)
{
    return (int64_t)tnd_rng_below(rng, (uint64_t)n);
}

static struct problem random_problem(struct tnd_rng *rng)
{
    struct problem p = {.n = 1 + (int)below(rng, 3), .images = 1 + below(rng, 3)};
    p.groups = 1 + below(rng, 4);
    p.channels = p.groups * (1 + below(rng, 9));
    p.filters = p.groups * (1 + below(rng, 20));
    for (int d = 0; d < p.n; d++) {
        p.window[d] = 1 + below(rng, 4);
        p.stride[d] = 1 + below(rng, 3);
        p.dilation[d] = 1 + below(rng, 2);
        p.begin[d] = below(rng, 3);
        p.end[d] = below(rng, 3);
        p.in[d] = (p.window[d] - 1) * p.dilation[d] + 1 + below(rng, 6);
    }
    return p;
}

static bool is_depthwise(const struct problem *p)
{
    return p->channels == p->groups && p->filters == p->groups;
}

static void windows_with_steps_groups_and_gaps_have_two_ways(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < 60; i++) {
        const struct problem p = random_problem(&rng);
        check_int(check_problem(&p, &rng), is_depthwise(&p) ? 1 : 2);
    }
}

static bool has_product(const struct tandem_graph *graph)
{
    bool has = false;
    for (int i = 0; i < graph->n_nodes; i++) {
        has = has || graph->nodes[i]->op == TANDEM_OP_MUL_MAT;
    }
    return has;
}

static void check_computed(tandem_runtime *runtime, const struct problem *p, struct tnd_rng *rng)
{
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims shape = input_of(p);
    const struct tnd_window window = window_of(p);
    struct tnd_array *in[] = {filled(rng, &shape, false), filter_of(p, rng, false)};
    struct tnd_array *want = NULL;
    struct tnd_array *got = NULL;
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &in[0]->shape, "x", NULL);
    const int w = tnd_net_input(net, TANDEM_DTYPE_F32, &in[1]->shape, "w", NULL);
    (void)tnd_net_output(net, tnd_net_conv(net, x, w, &window));
    check_ok(tnd_net_run(net, in, &want, &error));
    check_ok(tnd_net_lower(net, &lowered, &error));
    CU_ASSERT_EQUAL(has_product(tnd_lowered_graph(lowered)), !is_depthwise(p));
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_lowered_set_input(lowered, i, in[i], &error));
    }
    check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error));
    check_ok(tnd_lowered_get_output(lowered, 0, &got, &error));
    CU_ASSERT_TRUE(is_same(got, want, 0));
    free_arrays(in, 2);
    free_arrays(&want, 1);
    free_arrays(&got, 1);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

static void computed_weights_are_of_a_product(void)
{
    tandem_runtime *runtime = open_runtime(2);
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < 60; i++) {
        const struct problem p = random_problem(&rng);
        check_computed(runtime, &p, &rng);
    }
    tandem_runtime_close(runtime);
}

static void few_channels_are_padded_and_summed_by_rows(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < 40; i++) {
        struct problem p = square(1 + below(&rng, 2), 1 + below(&rng, 5), 2 + below(&rng, 40),
                                  5 + below(&rng, 9), 5 + below(&rng, 20), 0);
        p.window[1] = 2 + below(&rng, 4);
        p.begin[1] = below(&rng, 5);
        p.end[1] = below(&rng, 5);
        p.begin[0] = below(&rng, 3);
        p.stride[1] = 1 + below(&rng, 3);
        check_int(check_problem(&p, &rng), 2);
    }
}

/* Lanes are values of a tap where a panel of filters would be mostly empty. */
static void few_filters_are_summed_along_the_taps(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < 40; i++) {
        struct problem p = square(1 + below(&rng, 2), 1 + below(&rng, 70), 1 + below(&rng, 6),
                                  5 + below(&rng, 9), 5 + below(&rng, 20), below(&rng, 3));
        p.groups = 1 + below(&rng, 2);
        p.channels *= p.groups;
        p.filters *= p.groups;
        p.window[1] = 1 + below(&rng, 5);
        p.stride[0] = 1 + below(&rng, 2);
        p.stride[1] = 1 + below(&rng, 3);
        p.dilation[1] = 1 + below(&rng, 2);
        p.end[1] += p.window[1];
        p.is_block = false;
        CU_ASSERT(check_problem(&p, &rng) >= 1);
    }
}

/* Windows of 3, 5 and 7 along lines of any length, whose parts share what they load. */
static void one_filter_a_channel_shares_columns(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < 60; i++) {
        struct problem p = square(1 + below(&rng, 2), 2 + below(&rng, 50), 0, 7 + below(&rng, 9),
                                  9 + below(&rng, 40), 0);
        p.filters = p.groups = p.channels;
        p.window[0] = 1 + below(&rng, 4);
        p.window[1] = 3 + 2 * below(&rng, 3);
        p.stride[0] = 1 + below(&rng, 2);
        p.stride[1] = 1 + below(&rng, 3);
        p.dilation[0] = 1 + below(&rng, 2);
        p.begin[0] = p.end[0] = 1 + below(&rng, 7);
        p.begin[1] = below(&rng, 9);
        p.end[1] = below(&rng, 9);
        check_int(check_problem(&p, &rng), 1);
    }
}

static double largest(const struct tnd_array *array)
{
    double most = 0;
    for (int64_t i = 0; i < array->n; i++) {
        most = fmax(most, fabs(tnd_array_number(array, i)));
    }
    return most;
}

static double squares_of_differences(const struct tnd_array *a, const struct tnd_array *b)
{
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++) {
        const double x = tnd_array_number(a, i) - tnd_array_number(b, i);
        sum += x * x;
    }
    return sum;
}

/* The bound that lower_winograd.c derives, and errors of the size of direct sums. (The reference
 * itself is rounded once.) */
static void winograd_is_as_exact_as_it_says(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int64_t channels = TND_WINOGRAD_CHANNELS; channels <= 256; channels *= 2) {
        const struct problem p = square(1, channels, 33, 9, 12, 1);
        struct tnd_array *filter = filter_of(&p, &rng, true);
        const double w = largest(filter);
        struct tnd_net *net = net_of(&p, filter);
        const struct tnd_dims shape = input_of(&p);
        struct tnd_array *x = filled(&rng, &shape, true);
        struct tnd_array *want[3] = {NULL};
        struct tnd_array *direct[3] = {NULL};
        struct tnd_array *got[3] = {NULL};
        struct tandem_error error = {0};
        const double c = (double)channels;
        const double u = ldexp(1, -24);
        const double bound =
            1.01 * (c + 7) * u * 81 * c * largest(x) * w + u * 9 * c * largest(x) * w;
        check_status(tnd_net_run(net, &x, want, &error), TANDEM_OK, NULL, &error);
        CU_ASSERT_TRUE(compute(net, TND_CONV_WINOGRAD, 2, x, got));
        CU_ASSERT_TRUE(compute(net, TND_CONV_DIRECT, 2, x, direct));
        CU_ASSERT_TRUE(is_same(got[0], want[0], bound));
        CU_ASSERT(squares_of_differences(got[0], want[0]) <=
                  16 * squares_of_differences(direct[0], want[0]));
        free_arrays(got, 3);
        free_arrays(direct, 3);
        free_arrays(want, 3);
        tnd_array_free(x);
        tnd_net_free(net);
    }
}

static void few_channels_are_not_exact_enough_for_winograd(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    const struct problem p = square(1, TND_WINOGRAD_CHANNELS - 1, 8, 6, 6, 1);
    check_int(check_problem(&p, &rng), 2);
}

/* What is not finite, and what overflows while it is transformed. */
static void values_that_are_not_finite_reach_only_places_that_see_them(void)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    const struct problem p = square(1, 16, 9, 11, 10, 1);
    const struct tnd_dims shape = input_of(&p);
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        struct tnd_net *net = net_of(&p, filter_of(&p, &rng, false));
        struct tnd_array *x = filled(&rng, &shape, false);
        struct tnd_array *want[3] = {NULL};
        struct tnd_array *got[3] = {NULL};
        struct tandem_error error = {0};
        ((float *)x->data)[3 * 110 + 5 * 10 + 6] = strange[i];
        ((float *)x->data)[7 * 110] = strange[i];
        check_status(tnd_net_run(net, &x, want, &error), TANDEM_OK, NULL, &error);
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            CU_ASSERT_TRUE(compute(net, (enum tnd_conv_method)method, 2, x, got));
            CU_ASSERT_TRUE(is_same(got[0], want[0], isfinite(strange[i]) ? 1e33 : 0));
            free_arrays(got, 3);
        }
        free_arrays(want, 3);
        tnd_array_free(x);
        tnd_net_free(net);
    }
}

enum { GUARD = 8, STEP = 64 };

static void check_kernel(const struct tnd_conv_kernel *kernel)
{
    float x[16][40];
    float out[16 * STEP + 2 * GUARD];
    float values[4 * TND_CONV_FILTERS + 2 * GUARD];
    const float *rows[16];
    for (int i = 0; i < 16; i++) {
        for (int c = 0; c < 40; c++) {
            x[i][c] = c < 33 ? (float)(i * i + c) : NAN;
        }
        rows[i] = x[i];
    }
    for (int i = 0; i < 16 * STEP + 2 * GUARD; i++) {
        out[i] = -77;
    }
    for (int i = 0; i < 4 * TND_CONV_FILTERS + 2 * GUARD; i++) {
        values[i] = -77;
    }
    const int n = kernel->panels * TND_CONV_PANEL;
    kernel->winograd_in(rows, 33, out + GUARD, STEP);
    CU_ASSERT_EQUAL(kernel->winograd_out(out + GUARD, STEP, n, values + GUARD, 2 * n), 1);
    for (int i = 0; i < GUARD; i++) {
        CU_ASSERT_EQUAL(out[i], -77);
        CU_ASSERT_EQUAL(out[GUARD + 15 * STEP + 48 + i], -77); /* 33 values take 48 places */
        CU_ASSERT_EQUAL(values[i], -77);
        CU_ASSERT_EQUAL(values[GUARD + 4 * n + i], -77);
    }
    out[GUARD + 5 * STEP + n - 1] = NAN;
    CU_ASSERT_EQUAL(kernel->winograd_out(out + GUARD, STEP, n, values + GUARD, 2 * n), 0);
}

static void transforms_write_nothing_beside_their_results(void)
{
    for (int k = 0; tnd_test_kernels(k) != NULL; k++) {
        check_kernel(&tnd_test_kernels(k)->conv);
    }
}

/* What a chooser was told and asked. */
struct asked {
    enum tnd_conv_method answer;
    bool for_device;
    int n_begun, n_asked;
    struct tnd_conv_shape begun;
    struct tnd_conv_question question;
};

static bool begin(void *user, const struct tnd_conv_shape *shapes, int n)
{
    struct asked *asked = user;
    asked->n_begun += n;
    asked->begun = shapes[0];
    return asked->for_device;
}

static void choose(void *user, const struct tnd_conv_question *question,
                   struct tnd_conv_choice *out)
{
    struct asked *asked = user;
    asked->n_asked++;
    asked->question = *question;
    tnd_conv_choose_by_rule(question, out);
    out->method = asked->answer;
}

/* `asked` NULL: no chooser. */
static struct tnd_conv_choice chosen(const struct problem *p, struct asked *asked)
{
    const struct tandem_chooser chooser = {begin, choose, asked};
    const struct tnd_lower_options options = {.chooser = asked != NULL ? &chooser : NULL};
    struct tnd_rng rng;
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    tnd_rng_init(&rng, 1);
    struct tnd_net *net = net_of(p, filter_of(p, &rng, false));
    check_status(tnd_net_lower_with(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    const struct tnd_conv_choice choice = *tnd_lowered_conv(lowered, 0);
    CU_ASSERT(choice.question.may[choice.method] && choice.reason != NULL);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
    return choice;
}

static void a_chooser_is_told_what_there_is_and_decides(void)
{
    struct problem p = square(2, 16, 9, 5, 6, 1);
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        struct asked asked = {.answer = (enum tnd_conv_method)method};
        check_int(chosen(&p, &asked).method, method);
        check_int(asked.n_begun, 1);
        check_int(asked.n_asked, 1);
        check_int(asked.question.shape.images, 2);
        check_int(asked.question.shape.result[1], 6);
        check_int(asked.question.shape.channels, 16);
        CU_ASSERT_FALSE(asked.question.shape.is_followed); /* the result itself is read too */
        CU_ASSERT_TRUE(asked.question.may[method]);
        CU_ASSERT_TRUE(asked.question.winograd_gain > 1);
    }
    struct asked asked = {.answer = TND_CONV_DIRECT};
    p.stride[0] = 2; /* which Winograd's method cannot */
    (void)chosen(&p, &asked);
    CU_ASSERT_FALSE(asked.question.may[TND_CONV_WINOGRAD]);
    CU_ASSERT_EQUAL(asked.question.winograd_gain, 0);
    p = square(1, 16, 16, 5, 6, 1);
    p.is_block = true;
    (void)chosen(&p, &asked);
    CU_ASSERT_TRUE(asked.question.shape.is_followed && asked.begun.is_followed);
    asked = (struct asked){.answer = TND_CONV_COLUMNS, .for_device = true};
    CU_ASSERT_TRUE(chosen(&p, &asked).question.for_device);
    CU_ASSERT_FALSE(asked.question.may[TND_CONV_WINOGRAD]);
}

static void without_a_chooser_the_rule_decides(void)
{
    struct problem p = square(1, 64, 64, 28, 28, 1);
    const struct tnd_conv_choice choice = chosen(&p, NULL);
    check_int(choice.method, TND_CONV_WINOGRAD);
    check_int(choice.by_rule, TND_CONV_WINOGRAD);
    CU_ASSERT_FALSE(choice.is_measured);
    CU_ASSERT_TRUE(choice.times[TND_CONV_DIRECT].us < 0);
    p = square(1, 64, 64, 1, 1, 1); /* a tile of which three places are for nothing */
    check_int(chosen(&p, NULL).method, TND_CONV_DIRECT);
    p = square(1, 3, 64, 28, 28, 1);
    check_int(chosen(&p, NULL).method, TND_CONV_DIRECT);
    p = square(1, 64, 64, 28, 28, 0);
    p.window[0] = p.window[1] = 1;
    check_int(chosen(&p, NULL).method, TND_CONV_COLUMNS);
}

static CU_TestInfo tests_conv[] = {
    {"every_way_gives_exact_sums_exactly", every_way_gives_exact_sums_exactly},
    {"what_follows_is_computed_with_each_way", what_follows_is_computed_with_each_way},
    {"windows_with_steps_groups_and_gaps_have_two_ways",
     windows_with_steps_groups_and_gaps_have_two_ways},
    {"computed weights are of a product", computed_weights_are_of_a_product},
    {"few_channels_are_padded_and_summed_by_rows", few_channels_are_padded_and_summed_by_rows},
    {"one_filter_a_channel_shares_columns", one_filter_a_channel_shares_columns},
    {"few_filters_are_summed_along_the_taps", few_filters_are_summed_along_the_taps},
    {"winograd_is_as_exact_as_it_says", winograd_is_as_exact_as_it_says},
    {"few_channels_are_not_exact_enough_for_winograd",
     few_channels_are_not_exact_enough_for_winograd},
    {"values_that_are_not_finite_reach_only_places_that_see_them",
     values_that_are_not_finite_reach_only_places_that_see_them},
    {"transforms_write_nothing_beside_their_results",
     transforms_write_nothing_beside_their_results},
    {"a_chooser_is_told_what_there_is_and_decides", a_chooser_is_told_what_there_is_and_decides},
    {"without_a_chooser_the_rule_decides", without_a_chooser_the_rule_decides},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_conv[] = {
    {"conv", NULL, NULL, NULL, NULL, tests_conv},
    CU_SUITE_INFO_NULL,
};
