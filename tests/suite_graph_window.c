/* SPDX-License-Identifier: MIT
 * Texts of convolutions, pools, joins and gathers for devices, against the reference: compiled as
 * C, with every tensor between guard bytes and an unreadable page, and on an OpenCL device. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "graph/lower_internal.h"
#include "tests/suite_graph.h"
#include "tests/prefer_method.h"
#include "tests/support.h"

enum { MOST_TENSORS = 64, OUTPUTS = 3, PROBLEMS = 6 };

static struct tnd_rng rng;

static int64_t below(int64_t n)
{
    return (int64_t)tnd_rng_below(&rng, (uint64_t)n);
}

/* Small whole numbers, whose sums are exact in any order; some are NaN or infinite. */
static struct tnd_array *filled(const struct tnd_dims *shape, bool has_odd)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    for (int64_t i = 0; i < array->n; i++) {
        ((float *)array->data)[i] =
            has_odd && below(50) == 0 ? odd[below(3)] : (float)(below(9) - 4);
    }
    return array;
}

/* ---- random nets ---- */

static void random_window(struct tnd_window *window, int n, struct tnd_dims *x)
{
    *window = (struct tnd_window){.n = n, .groups = 1};
    for (int d = 0; d < n; d++) {
        window->extent[d] = 1 + below(3);
        window->stride[d] = 1 + below(2);
        window->dilation[d] = 1 + below(2);
        window->begin[d] = below(3);
        window->end[d] = below(3);
        x->dims[2 + d] = (window->extent[d] - 1) * window->dilation[d] + 1 + below(6);
    }
}

/* A convolution with bias, residual and bound behind it, then pools of that and of the input. */
static struct tnd_net *random_windows(void)
{
    struct tnd_net *net = tnd_net_new();
    const int n = 1 + (int)below(3);
    const int64_t groups = below(2) == 0 ? 1 : 1 + below(4);
    const int64_t of_group = below(3) == 0 ? 1 : 1 + below(5);
    const int64_t filters = groups * (below(3) == 0 ? 1 : 1 + below(40));
    struct tnd_dims x_shape = {n + 2, {1 + below(2), groups * of_group}};
    struct tnd_dims w_shape = {n + 2, {filters, of_group}};
    struct tnd_dims bias_shape = {n + 2, {1, filters}};
    struct tnd_window window;
    random_window(&window, n, &x_shape);
    for (int d = 0; d < n; d++) {
        w_shape.dims[2 + d] = window.extent[d];
        bias_shape.dims[2 + d] = 1;
    }
    window.groups = groups;
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &x_shape, "x", NULL);
    int y = tnd_net_conv(net, x, tnd_net_constant(net, filled(&w_shape, false)), &window);
    const struct tnd_dims y_shape = tnd_net_value(net, y)->shape;
    if (below(3) > 0) {
        const int bias = tnd_net_constant(net, filled(&bias_shape, false));
        const int more = tnd_net_input(net, TANDEM_DTYPE_F32, &y_shape, "more", NULL);
        y = tnd_net_binary(net, TANDEM_BINARY_ADD, tnd_net_binary(net, TANDEM_BINARY_ADD, y, bias),
                           more);
        y = tnd_net_binary(net, TANDEM_BINARY_MAX, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, 1));
    }
    (void)tnd_net_output(net, y);
    for (int d = 0; d < n; d++) {
        const int64_t room =
            y_shape.dims[2 + d] < x_shape.dims[2 + d] ? y_shape.dims[2 + d] : x_shape.dims[2 + d];
        window.extent[d] = 1 + below(room < 3 ? room : 3);
        window.dilation[d] = 1;
        window.begin[d] = below(window.extent[d]);
        window.end[d] = below(window.extent[d]);
    }
    window.groups = 1;
    (void)tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_MAX, y, &window));
    (void)tnd_net_output(
        net, tnd_net_pool(net, below(2) == 0 ? TANDEM_POOL_SUM : TANDEM_POOL_MAX, x, &window));
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    return net;
}

/* Joins along any axis, gathers of constant places, in any type, and a product of few rows with a
 * matrix as it lies. Sometimes with channels last. */
static struct tnd_net *random_moves(void)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_F32, TANDEM_DTYPE_F32, TANDEM_DTYPE_I64,
                                              TANDEM_DTYPE_U8};
    const struct tnd_window point = {
        .n = 2, .groups = 1, .extent = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    struct tnd_net *net = tnd_net_new();
    struct tnd_dims shape = {4, {1 + below(2), 1 + below(9), 1 + below(5), 1 + below(20)}};
    const struct tnd_dims w_shape = {4, {shape.dims[1], shape.dims[1], 1, 1}};
    const struct tnd_dims places = {1, {1 + below(12)}};
    const struct tnd_dims a_shape = {3, {2, 1 + below(8), 1 + below(30)}};
    const struct tnd_dims b_shape = {3, {2, a_shape.dims[2], 1 + below(40)}};
    const int axis = (int)below(4);
    const enum tandem_dtype type = types[below(4)];
    int parts[7];
    const int n = 2 + (int)below(6);
    int x = tnd_net_input(net, type, &shape, "x", NULL);
    if (type == TANDEM_DTYPE_F32 && below(3) > 0) {
        x = tnd_net_conv(net, x, tnd_net_constant(net, filled(&w_shape, false)), &point);
    }
    for (int i = 0; i < n; i++) {
        const int64_t start = below(shape.dims[axis]);
        parts[i] = tnd_net_slice(net, x, axis, start, shape.dims[axis] - start, 1);
        parts[i] = below(2) == 0 ? x : parts[i];
    }
    const int joined = tnd_net_concat(net, parts, n, axis);
    (void)tnd_net_output(net, joined);
    struct tnd_array *indices = tnd_array_new(TANDEM_DTYPE_I64, &places);
    for (int64_t i = 0; i < indices->n; i++) {
        ((int64_t *)indices->data)[i] = below(2 * shape.dims[axis]) - shape.dims[axis];
    }
    (void)tnd_net_output(net, tnd_net_gather(net, x, tnd_net_constant(net, indices), axis));
    const int a = tnd_net_input(net, TANDEM_DTYPE_F32, &a_shape, "a", NULL);
    const int b = tnd_net_input(net, TANDEM_DTYPE_F32, &b_shape, "b", NULL);
    (void)tnd_net_output(net, tnd_net_matmul(net, a, b));
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    return net;
}

static bool is_same(const void *values, const struct tnd_array *want)
{
    const float *got = values;
    if (want->type != TANDEM_DTYPE_F32) {
        return memcmp(got, want->data, (size_t)want->n * tandem_dtype_bytes(want->type)) == 0;
    }
    for (int64_t i = 0; i < want->n; i++) {
        const float x = got[i];
        const float y = ((const float *)want->data)[i];
        if (!(x == y || (isnan(x) && isnan(y)))) {
            printf("value %lld is %.9g, expected %.9g\n", (long long)i, (double)x, (double)y);
            return false;
        }
    }
    return true;
}

/* ---- by hand: a graph's nodes in order, each tensor between guards ---- */

struct walk {
    const tandem_tensor *tensors[MOST_TENSORS];
    char *memory[MOST_TENSORS];
    int n;
};

static char *room_for(struct walk *walk, const tandem_tensor *tensor)
{
    CU_ASSERT_FATAL(walk->n < MOST_TENSORS);
    walk->tensors[walk->n] = tensor;
    walk->memory[walk->n] = tnd_guarded_alloc(tandem_tensor_bytes(tensor), sizeof(float));
    return walk->memory[walk->n++];
}

/* Where a tensor's values are; leaves are copied when they are first read. */
static char *memory_of(struct walk *walk, const tandem_tensor *tensor)
{
    for (int i = 0; i < walk->n; i++) {
        if (walk->tensors[i] == tensor->root) {
            return walk->memory[i] + tensor->root_offset;
        }
    }
    char *copy = room_for(walk, tensor->root);
    memcpy(copy, tandem_tensor_data(tensor->root), tandem_tensor_bytes(tensor->root));
    return copy + tensor->root_offset;
}

/* OpenCL C is C, but for these words. */
static const char words[] = "#define kernel\n#define global\n"
                            "typedef unsigned char uchar;\ntypedef unsigned long ulong;\n"
                            "static unsigned as_uint(float v)\n"
                            "{ unsigned b; __builtin_memcpy(&b, &v, 4); return b; }\n"
                            "static float as_float(unsigned b)\n"
                            "{ float v; __builtin_memcpy(&v, &b, 4); return v; }\n"
                            "static unsigned item;\n#define get_global_id(d) item\n";

static void compute_text(struct walk *walk, const tandem_tensor *node)
{
    struct tnd_work_source *source = node->params.work->source;
    CU_ASSERT_PTR_NULL(atomic_load(&source->text)); /* nobody has asked yet */
    const struct tnd_work_text *printed = tnd_work_text(source);
    CU_ASSERT_PTR_EQUAL(tnd_work_text(source), printed);
    struct tnd_text text = TND_TEXT_INIT;
    const char *in[TANDEM_MAX_SRC];
    void (*run)(void *, const char *const *, unsigned);
    tnd_text_printf(&text, "%s%s\nvoid run(uchar *y, const uchar *const *b, unsigned n)\n{\n",
                    words, printed->text);
    tnd_text_printf(&text, "    for (item = 0; item < n; item++) {\n        %s(y, 0",
                    source->entry);
    for (int i = 0; i < node->n_src; i++) {
        tnd_text_printf(&text, ", b[%d], 0", i);
        in[i] = memory_of(walk, node->src[i]);
    }
    tnd_text_add(&text, ");\n    }\n}\n");
    char *y = room_for(walk, node);
    void *library = graph_test_compile(&text);
    void *symbol = library == NULL ? NULL : dlsym(library, "run");
    CU_ASSERT_PTR_NOT_NULL_FATAL(symbol);
    memcpy(&run, &symbol, sizeof(run));
    run(y, in, (unsigned)source->n_items + 5);
    dlclose(library);
    tnd_text_fini(&text);
}

static void compute_product(struct walk *walk, const tandem_tensor *node)
{
    const float *w = (const float *)memory_of(walk, node->src[0]);
    const float *x = (const float *)memory_of(walk, node->src[1]);
    float *y = (float *)room_for(walk, node);
    const int64_t k = node->src[0]->ne[0];
    for (int64_t i = 0; i < node->ne[0] * node->ne[1] * node->ne[2]; i++) {
        const int64_t row = i / node->ne[0];
        const int64_t filter = i % node->ne[0] + row / node->ne[1] * node->ne[0];
        y[i] = 0;
        for (int64_t c = 0; c < k; c++) {
            y[i] += w[filter * k + c] * x[row * k + c];
        }
    }
}

static struct tnd_lowered *lower(const struct tnd_net *net, enum tnd_conv_method method,
                                 struct tnd_array **in)
{
    const struct tandem_chooser chooser = prefer_method(&method);
    const struct tnd_lower_options options = {.chooser = &chooser, .for_device = true};
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    check_status(tnd_net_lower_with(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lowered);
    for (int i = 0; i < net->n_inputs; i++) {
        check_ok(tnd_lowered_set_input(lowered, i, in[i], &error));
    }
    return lowered;
}

static void check_texts(struct tnd_net *net, enum tnd_conv_method method, struct tnd_array **in,
                        struct tnd_array **want)
{
    struct tnd_lowered *lowered = lower(net, method, in);
    struct walk walk = {.n = 0};
    for (int i = 0; i < lowered->graph->n_nodes; i++) {
        const tandem_tensor *node = lowered->graph->nodes[i];
        if (node->op == TANDEM_OP_MUL_MAT) {
            compute_product(&walk, node);
        } else {
            CU_ASSERT_PTR_NOT_NULL_FATAL(node->params.work->source);
            compute_text(&walk, node);
        }
    }
    for (int i = 0; i < OUTPUTS; i++) {
        CU_ASSERT_TRUE(is_same(memory_of(&walk, lowered->outputs[i]), want[i]));
    }
    for (int i = 0; i < walk.n; i++) {
        tnd_guarded_free(walk.memory[i]);
    }
    tnd_lowered_free(lowered);
}

/* ---- on the device ---- */

static void check_device(tandem_runtime *runtime, struct tnd_net *net, enum tnd_conv_method method,
                         struct tnd_array **in, struct tnd_array **want)
{
    struct tnd_lowered *lowered = lower(net, method, in);
    struct tandem_error error = {0};
    bool all = true;
    for (int i = 0; i < lowered->graph->n_nodes; i++) {
        const tandem_tensor *node = lowered->graph->nodes[i];
        all = all && (node->op != TANDEM_OP_MUL_MAT || node->ne[2] == 1);
    }
    if (all) { /* (a product for each group is the CPU's) */
        CU_ASSERT_EQUAL(graph_test_on_device(runtime, lowered->graph), lowered->graph->n_nodes);
    }
    check_status(tandem_runtime_compute(runtime, lowered->graph, NULL, NULL, &error), TANDEM_OK,
                 NULL, &error);
    for (int i = 0; i < OUTPUTS; i++) {
        CU_ASSERT_TRUE(is_same(tnd_lowered_output(lowered, i), want[i]));
    }
    tnd_lowered_free(lowered);
}

static struct tnd_array *input_of(const struct tnd_net *net, int i)
{
    const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
    struct tnd_array *array =
        v->type == TANDEM_DTYPE_F32 ? filled(&v->shape, true) : tnd_array_new(v->type, &v->shape);
    const int64_t bytes = array->n * (int64_t)tandem_dtype_bytes(array->type);
    for (int64_t k = 0; k < bytes && v->type != TANDEM_DTYPE_F32; k++) {
        ((unsigned char *)array->data)[k] = (unsigned char)below(256);
    }
    return array;
}

/* Random nets by both methods. `runtime` NULL: by hand. */
static void check_random(tandem_runtime *runtime, struct tnd_net *(*make)(void))
{
    static const enum tnd_conv_method methods[] = {TND_CONV_DIRECT, TND_CONV_COLUMNS};
    const int n = PROBLEMS * tnd_effort();
    struct tnd_array *in[3];
    tnd_rng_init(&rng, tnd_test_seed());
    for (int k = 0; k < n; k++) {
        struct tnd_net *net = make();
        struct tnd_array *want[OUTPUTS] = {NULL};
        struct tandem_error error = {0};
        for (int i = 0; i < net->n_inputs; i++) {
            in[i] = input_of(net, i);
        }
        check_status(tnd_net_run(net, in, want, &error), TANDEM_OK, NULL, &error);
        if (runtime == NULL) {
            check_texts(net, methods[k % 2], in, want);
        } else {
            check_device(runtime, net, methods[k % 2], in, want);
        }
        for (int i = 0; i < OUTPUTS; i++) {
            tnd_array_free(want[i]);
        }
        for (int i = 0; i < net->n_inputs; i++) {
            tnd_array_free(in[i]);
        }
        tnd_net_free(net);
    }
}

/* ---- tests ---- */

static void texts_of_windows_stay_inside_of_their_tensors(void)
{
    if (graph_test_has_compiler()) {
        check_random(NULL, random_windows);
    }
}

static void texts_of_moves_stay_inside_of_their_tensors(void)
{
    if (graph_test_has_compiler()) {
        check_random(NULL, random_moves);
    }
}

static void windows_and_moves_run_on_the_device(void)
{
    tandem_runtime *runtime = graph_test_device();
    if (runtime != NULL) {
        check_random(runtime, random_windows);
        check_random(runtime, random_moves);
    }
    tandem_runtime_close(runtime);
}

/* 3x3, from 32 channels to 32 filters. */
static enum tnd_conv_method method_for_device(int64_t groups, int64_t side)
{
    const struct tnd_lower_options options = {.for_device = true};
    const struct tnd_dims x = {4, {1, 32, side, side}};
    const struct tnd_dims w = {4, {32, 32 / groups, 3, 3}};
    const struct tnd_window window = {.n = 2,
                                      .groups = groups,
                                      .extent = {3, 3},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .begin = {1, 1},
                                      .end = {1, 1}};
    struct tnd_net *net = tnd_net_new();
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    const int input = tnd_net_input(net, TANDEM_DTYPE_F32, &x, "x", NULL);
    const int weights = tnd_net_constant(net, filled(&w, false));
    (void)tnd_net_output(net, tnd_net_conv(net, input, weights, &window));
    check_status(tnd_net_lower_with(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    const enum tnd_conv_method method = tnd_lowered_conv(lowered, 0)->method;
    CU_ASSERT_FALSE(tnd_lowered_conv(lowered, 0)->question.may[TND_CONV_WINOGRAD]);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
    return method;
}

static void on_devices_a_rule_decides(void)
{
    tnd_rng_init(&rng, tnd_test_seed());
    CU_ASSERT_EQUAL(method_for_device(1, 14), TND_CONV_COLUMNS);
    CU_ASSERT_EQUAL(method_for_device(2, 14), TND_CONV_DIRECT);
    CU_ASSERT_EQUAL(method_for_device(32, 14), TND_CONV_DIRECT);
    CU_ASSERT_EQUAL(method_for_device(1, 1000), TND_CONV_DIRECT);
}

static CU_TestInfo tests_window[] = {
    {"texts_of_windows_stay_inside_of_their_tensors",
     texts_of_windows_stay_inside_of_their_tensors},
    {"texts_of_moves_stay_inside_of_their_tensors", texts_of_moves_stay_inside_of_their_tensors},
    {"windows_and_moves_run_on_the_device", windows_and_moves_run_on_the_device},
    {"on_devices_a_rule_decides", on_devices_a_rule_decides},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_window[] = {
    {"window", NULL, NULL, NULL, NULL, tests_window},
    CU_SUITE_INFO_NULL,
};
