/* SPDX-License-Identifier: MIT
 * A layer as llama.cpp builds it, in memory that its nodes share as ggml's allocator lets them,
 * held node by node against double precision, from the values that the node was given. */
#include "tests/bridge/nodes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/tensor.h"

enum { WIDTH = 128, HEAD = 32, HEADS = WIDTH / HEAD, MOST_TOKENS = 33 };
enum { WEIGHTS = 3, SLOTS = 10, SLOT = WIDTH * MOST_TOKENS };
static const float EPS = 1e-5f;
static const double CLOSE = 1e-5; /* of a node, as a part of the largest value */
static const double CLOSE_PRODUCT = 2e-3;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            static char why[200];                                                                  \
            (void)snprintf(why, sizeof(why), "line %d: %s (%.90s)", __LINE__, #condition,          \
                           small_host_last_line());                                                \
            return why;                                                                            \
        }                                                                                          \
    } while (0)

/* Square weights, norms' weights and factors of angles; slots of memory for results. */
struct layer {
    struct device *device;
    struct backend *backend;
    struct buffer *constants;
    struct buffer *slots;
    struct buffer *positions_buffer;
    int32_t positions[MOST_TOKENS];
    struct tensor w[WEIGHTS];
    struct tensor norm, factors, pos;
    int64_t m;
};

static uint32_t random_state = 7;

static void fill(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        random_state = random_state * UINT32_C(1664525) + UINT32_C(1013904223);
        values[i] = (float)(random_state >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static struct tensor of_constants(const struct layer *layer, int64_t ne0, int64_t ne1, size_t at)
{
    struct tensor tensor = small_host_tensor(TANDEM_TYPE_F32, (const int64_t[]){ne0, ne1, 1, 1},
                                             layer->constants, at * sizeof(float));
    fill(tensor.data, ne0 * ne1);
    return tensor;
}

static void open_layer(struct layer *out, struct device *device, struct backend *backend, int64_t m)
{
    memset(out, 0, sizeof(*out));
    out->device = device;
    out->backend = backend;
    out->m = m;
    out->constants = small_host_buffer(device->get_buffer_type(device),
                                       sizeof(float) * WIDTH * (WEIGHTS * WIDTH + 2), 1);
    out->slots = small_host_buffer(device->get_buffer_type(device), sizeof(float) * SLOT * SLOTS,
                                   USAGE_COMPUTE);
    for (size_t i = 0; i < WEIGHTS; i++) {
        out->w[i] = of_constants(out, WIDTH, WIDTH, i * WIDTH * WIDTH);
    }
    out->norm = of_constants(out, WIDTH, 1, (size_t)WEIGHTS * WIDTH * WIDTH);
    out->factors = of_constants(out, HEAD / 2, 1, (size_t)(WEIGHTS * WIDTH + 1) * WIDTH);
    for (int i = 0; i < HEAD / 2; i++) {
        ((float *)out->factors.data)[i] += 1.5f;
    }
    out->pos = small_host_tensor(TANDEM_TYPE_I32, (const int64_t[]){m, 1, 1, 1}, NULL, 0);
    out->pos.data = out->positions;
    out->positions_buffer = device->buffer_from_host_ptr(
        device, out->positions, sizeof(out->positions), sizeof(out->positions));
    out->pos.buffer = out->positions_buffer;
    for (int i = 0; i < MOST_TOKENS; i++) {
        out->positions[i] = 3 + 5 * i;
    }
}

static void close_layer(struct layer *layer)
{
    small_host_free(layer->constants);
    small_host_free(layer->slots);
    small_host_free(layer->positions_buffer);
}

/* ---- building ---- */

static struct tensor at_slot(const struct layer *layer, int slot)
{
    return small_host_tensor(TANDEM_TYPE_F32, (const int64_t[]){WIDTH, layer->m, 1, 1},
                             layer->slots, (size_t)slot * SLOT * sizeof(float));
}

static struct tensor node(const struct layer *layer, int op, struct tensor *a, struct tensor *b,
                          int slot)
{
    struct tensor tensor = at_slot(layer, slot);
    tensor.op = op;
    tensor.src[0] = a;
    tensor.src[1] = b;
    return tensor;
}

static void set_float(struct tensor *tensor, int i, float value)
{
    memcpy(&tensor->op_params[i], &value, sizeof(value));
}

/* The same values as heads. */
static struct tensor heads_of(const struct layer *layer, struct tensor *of)
{
    struct tensor view =
        small_host_tensor(TANDEM_TYPE_F32, (const int64_t[]){HEAD, HEADS, layer->m, 1}, NULL, 0);
    view.data = of->data;
    view.op = OP_VIEW;
    view.src[0] = of;
    view.view_src = of;
    return view;
}

static struct tensor rope(struct layer *layer, struct tensor *heads, int mode,
                          struct tensor *factors, int slot)
{
    struct tensor tensor = small_host_tensor(TANDEM_TYPE_F32, heads->ne, layer->slots,
                                             (size_t)slot * SLOT * sizeof(float));
    tensor.op = OP_ROPE;
    tensor.src[0] = heads;
    tensor.src[1] = &layer->pos;
    tensor.src[2] = factors;
    tensor.op_params[1] = HEAD;
    tensor.op_params[2] = mode;
    tensor.op_params[4] = 4096;
    set_float(&tensor, 5, 10000.0f);
    set_float(&tensor, 6, 0.5f);
    set_float(&tensor, 8, 1.0f);
    set_float(&tensor, 9, 32.0f);
    set_float(&tensor, 10, 1.0f);
    return tensor;
}

static int compute(const struct layer *layer, struct tensor **nodes, int n)
{
    struct ggml_cgraph graph = {.n_nodes = n};
    memcpy(graph.nodes, nodes, (size_t)n * sizeof(nodes[0]));
    return layer->backend->graph_compute(layer->backend, &graph);
}

/* ---- double precision ---- */

struct expected {
    double values[SLOT];
};

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void expect_values(struct expected *out, const struct tensor *of)
{
    const float *values = of->data;
    for (int64_t i = 0; i < (int64_t)(of->nb[3] / sizeof(float)); i++) {
        out->values[i] = (double)values[i];
    }
}

static void expect_product(struct expected *out, const struct layer *layer, const struct tensor *w,
                           const struct expected *x)
{
    for (int64_t i = 0; i < layer->m * WIDTH; i++) {
        const float *row = (const float *)w->data + i % WIDTH * WIDTH;
        out->values[i] = 0;
        for (int64_t k = 0; k < WIDTH; k++) {
            out->values[i] += (double)row[k] * x->values[i / WIDTH * WIDTH + k];
        }
    }
}

static void expect_norm(struct expected *out, const struct layer *layer, const struct expected *x)
{
    for (int64_t m = 0; m < layer->m; m++) {
        const double *row = x->values + m * WIDTH;
        double squares = 0;
        for (int64_t k = 0; k < WIDTH; k++) {
            squares += row[k] * row[k];
        }
        for (int64_t k = 0; k < WIDTH; k++) {
            out->values[m * WIDTH + k] = row[k] / sqrt(squares / WIDTH + (double)EPS) *
                                         (double)((const float *)layer->norm.data)[k];
        }
    }
}

static void expect_rope(struct expected *out, const struct layer *layer, const struct expected *x,
                        bool halves, bool has_factors)
{
    for (int64_t i = 0; i < layer->m * WIDTH / 2; i++) {
        int64_t pair = i % (HEAD / 2);
        int64_t head = i / (HEAD / 2) * HEAD;
        int64_t a = head + (halves ? pair : 2 * pair);
        int64_t b = halves ? a + HEAD / 2 : a + 1;
        double angle =
            0.5 * layer->positions[i / (WIDTH / 2)] * pow(10000.0, -2.0 * (double)pair / HEAD);
        angle /= has_factors ? (double)((const float *)layer->factors.data)[pair] : 1;
        out->values[a] = x->values[a] * cos(angle) - x->values[b] * sin(angle);
        out->values[b] = x->values[a] * sin(angle) + x->values[b] * cos(angle);
    }
}

/* The largest difference as a part of the largest value. */
static double error_of(const struct tensor *got, const struct expected *expected)
{
    const float *values = got->data;
    double most = 0;
    double wrong = 0;
    for (size_t i = 0; i < got->nb[3] / sizeof(float); i++) {
        double difference = fabs((double)values[i] - expected->values[i]);
        most = fmax(most, fabs(expected->values[i]));
        wrong = difference <= wrong ? wrong : difference; /* NaN stays */
    }
    return wrong / most;
}

/* ---- what is computed ---- */

/* In the order in which they run. */
struct nodes {
    struct tensor x, attention;
    struct tensor out, sum_1, norm_1, weighed_1, gates, ups, both, down, sum_2, norm_2, weighed_2;
    struct tensor q, q_heads, q_turned, k, k_heads, k_turned;
};

/* Slots: 0 the text so far, 1 what attention gave, 2 the first sum in place of a product, 3 its
 * norm, 4 and 5 products, 4 then what SWIGLU makes of them, 6 the second sum, 3 again its norm, 7
 * and 8 what is rotated, in place. */
static void build_layer(struct layer *layer, struct nodes *out)
{
    out->x = at_slot(layer, 0);
    out->attention = at_slot(layer, 1);
    out->out = node(layer, OP_MUL_MAT, &layer->w[0], &out->attention, 2);
    out->sum_1 = node(layer, OP_ADD, &out->out, &out->x, 2);
    out->norm_1 = node(layer, OP_RMS_NORM, &out->sum_1, NULL, 3);
    out->weighed_1 = node(layer, OP_MUL, &out->norm_1, &layer->norm, 3);
    out->gates = node(layer, OP_MUL_MAT, &layer->w[1], &out->weighed_1, 4);
    out->ups = node(layer, OP_MUL_MAT, &layer->w[2], &out->weighed_1, 5);
    out->both = node(layer, OP_GLU, &out->gates, &out->ups, 4);
    out->down = node(layer, OP_MUL_MAT, &layer->w[0], &out->both, 6);
    out->sum_2 = node(layer, OP_ADD, &out->down, &out->sum_1, 6);
    out->norm_2 = node(layer, OP_RMS_NORM, &out->sum_2, NULL, 3);
    out->weighed_2 = node(layer, OP_MUL, &out->norm_2, &layer->norm, 3);
    out->q = node(layer, OP_MUL_MAT, &layer->w[1], &out->weighed_2, 7);
    out->q_heads = heads_of(layer, &out->q);
    out->q_turned = rope(layer, &out->q_heads, 0, NULL, 7);
    out->k = node(layer, OP_MUL_MAT, &layer->w[2], &out->weighed_2, 8);
    out->k_heads = heads_of(layer, &out->k);
    out->k_turned = rope(layer, &out->k_heads, 2, &layer->factors, 8);
    out->both.op_params[0] = GLU_SWIGLU;
    set_float(&out->norm_1, 0, EPS);
    set_float(&out->norm_2, 0, EPS);
    fill(out->x.data, layer->m * WIDTH);
    fill(out->attention.data, layer->m * WIDTH);
}

static const char *check_first_half(struct layer *layer, const struct nodes *nodes)
{
    static struct expected text, sum, norm, gate, up, both;
    expect_values(&both, &nodes->attention);
    expect_values(&text, &nodes->x);
    expect_product(&sum, layer, &layer->w[0], &both);
    for (int64_t i = 0; i < layer->m * WIDTH; i++) {
        sum.values[i] += text.values[i];
    }
    EXPECT(error_of(&nodes->sum_1, &sum) < CLOSE_PRODUCT);
    expect_values(&sum, &nodes->sum_1);
    expect_norm(&norm, layer, &sum);
    expect_product(&gate, layer, &layer->w[1], &norm);
    expect_product(&up, layer, &layer->w[2], &norm);
    EXPECT(error_of(&nodes->ups, &up) < CLOSE_PRODUCT);
    for (int64_t i = 0; i < layer->m * WIDTH; i++) {
        both.values[i] = silu(gate.values[i]) * up.values[i];
    }
    EXPECT(error_of(&nodes->both, &both) < CLOSE_PRODUCT);
    return NULL;
}

static const char *check_second_half(struct layer *layer, const struct nodes *nodes)
{
    static struct expected before, sum, norm, product, turned;
    expect_values(&before, &nodes->both);
    expect_product(&sum, layer, &layer->w[0], &before);
    expect_values(&before, &nodes->sum_1);
    for (int64_t i = 0; i < layer->m * WIDTH; i++) {
        sum.values[i] += before.values[i];
    }
    EXPECT(error_of(&nodes->sum_2, &sum) < CLOSE_PRODUCT);
    expect_values(&sum, &nodes->sum_2);
    expect_norm(&norm, layer, &sum);
    EXPECT(error_of(&nodes->weighed_2, &norm) < CLOSE);
    expect_values(&norm, &nodes->weighed_2);
    expect_product(&product, layer, &layer->w[1], &norm);
    expect_rope(&turned, layer, &product, false, false);
    EXPECT(error_of(&nodes->q_turned, &turned) < CLOSE_PRODUCT);
    expect_product(&product, layer, &layer->w[2], &norm);
    expect_rope(&turned, layer, &product, true, true);
    EXPECT(error_of(&nodes->k_turned, &turned) < CLOSE_PRODUCT);
    return NULL;
}

static const char *check_layer(struct layer *layer)
{
    static struct nodes n;
    struct tensor *list[] = {&n.out,     &n.sum_1,    &n.norm_1, &n.weighed_1, &n.gates,     &n.ups,
                             &n.both,    &n.down,     &n.sum_2,  &n.norm_2,    &n.weighed_2, &n.q,
                             &n.q_heads, &n.q_turned, &n.k,      &n.k_heads,   &n.k_turned};
    int n_list = (int)(sizeof(list) / sizeof(list[0]));
    build_layer(layer, &n);
    for (int i = 0; i < n_list; i++) {
        EXPECT(layer->device->supports_op(layer->device, list[i]));
    }
    EXPECT(compute(layer, list, n_list) == 0);
    const char *wrong = check_first_half(layer, &n);
    return wrong != NULL ? wrong : check_second_half(layer, &n);
}

const char *nodes_of_a_layer_are_right(struct device *device, struct backend *backend)
{
    static const int64_t ms[] = {1, 2, 8};
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]) && wrong == NULL; i++) {
        struct layer layer;
        open_layer(&layer, device, backend, ms[i]);
        for (int again = 0; again < 3 && wrong == NULL; again++) {
            layer.positions[0] = again * 100; /* other places in the text at the same address */
            wrong = check_layer(&layer);
        }
        close_layer(&layer);
    }
    return wrong;
}

static const char *check_single_nodes(struct layer *layer)
{
    static struct expected x, expected;
    struct tensor a = at_slot(layer, 0);
    struct tensor y = node(layer, OP_MUL_MAT, &layer->w[0], &a, 1);
    struct tensor scaled = node(layer, OP_SCALE, &y, NULL, 2);
    struct tensor silus = node(layer, OP_UNARY, &y, NULL, 3);
    struct tensor gelus = node(layer, OP_UNARY, &y, NULL, 4);
    struct tensor geglus = node(layer, OP_GLU, &y, &scaled, 5);
    struct tensor *nodes[] = {&y, &scaled, &silus, &gelus, &geglus};
    set_float(&scaled, 0, -2.5f);
    silus.op_params[0] = UNARY_SILU;
    gelus.op_params[0] = UNARY_GELU;
    geglus.op_params[0] = GLU_GEGLU;
    fill(a.data, layer->m * WIDTH);
    EXPECT(compute(layer, nodes, 5) == 0);
    expect_values(&x, &y);
    struct tensor *const results[] = {&scaled, &silus, &gelus, &geglus};
    for (int r = 0; r < 4; r++) {
        for (int64_t i = 0; i < layer->m * WIDTH; i++) {
            double v = x.values[i];
            const double of[] = {-2.5 * v, silu(v), gelu(v), gelu(v) * -2.5 * v};
            expected.values[i] = of[r];
        }
        EXPECT(error_of(results[r], &expected) < CLOSE);
    }
    return NULL;
}

/* A product's operand is overwritten behind it; then half of a result is an operand, and all of it,
 * of which a part is written in between. */
static const char *check_memory(struct layer *layer)
{
    static struct expected x, y, expected;
    struct tensor a = at_slot(layer, 0);
    struct tensor b = at_slot(layer, 3);
    struct tensor first = node(layer, OP_MUL_MAT, &layer->w[0], &a, 1);
    struct tensor over = node(layer, OP_MUL_MAT, &layer->w[1], &b, 0);
    struct tensor half = small_host_tensor(
        TANDEM_TYPE_F32, (const int64_t[]){WIDTH, layer->m / 2, 1, 1}, layer->slots, 0);
    struct tensor of_half = half;
    of_half.op = OP_SCALE;
    of_half.src[0] = &half;
    half.op = OP_VIEW;
    half.src[0] = &over;
    half.view_src = &over;
    half.data = (float *)over.data + (layer->m - layer->m / 2) * WIDTH;
    of_half.data = over.data;
    set_float(&of_half, 0, 3.0f);
    struct tensor last = node(layer, OP_MUL_MAT, &layer->w[2], &over, 4);
    struct tensor *nodes[] = {&first, &over, &half, &of_half, &last};
    fill(a.data, layer->m * WIDTH);
    fill(b.data, layer->m * WIDTH);
    expect_values(&x, &a);
    EXPECT(compute(layer, nodes, 5) == 0);
    expect_product(&expected, layer, &layer->w[0], &x);
    EXPECT(error_of(&first, &expected) < CLOSE_PRODUCT);
    expect_values(&x, &b);
    expect_product(&y, layer, &layer->w[1], &x);
    for (int64_t i = 0; i < layer->m / 2 * WIDTH; i++) {
        y.values[i] = 3 * y.values[(layer->m - layer->m / 2) * WIDTH + i];
    }
    EXPECT(error_of(&over, &y) < CLOSE_PRODUCT);
    expect_product(&expected, layer, &layer->w[2], &y);
    EXPECT(error_of(&last, &expected) < CLOSE_PRODUCT);
    return NULL;
}

const char *memory_that_the_host_uses_again_is_right(struct device *device, struct backend *backend)
{
    struct layer layer;
    open_layer(&layer, device, backend, 6);
    const char *wrong = check_single_nodes(&layer);
    for (int again = 0; again < 2 && wrong == NULL; again++) {
        wrong = check_memory(&layer);
    }
    close_layer(&layer);
    return wrong;
}

/* ---- what is taken ---- */

static const char *check_taken(struct layer *layer)
{
    struct device *device = layer->device;
    struct tensor x = at_slot(layer, 0);
    struct tensor y = node(layer, OP_MUL_MAT, &layer->w[0], &x, 1);
    struct tensor sum = node(layer, OP_ADD, &x, &y, 2);
    struct tensor norm = node(layer, OP_RMS_NORM, &sum, NULL, 3);
    struct tensor weighed = node(layer, OP_MUL, &norm, &layer->norm, 4);
    struct tensor heads = heads_of(layer, &weighed);
    struct tensor turned = rope(layer, &heads, 2, NULL, 5);
    EXPECT(device->supports_op(device, &turned));
    EXPECT(device->supports_op(device, &weighed));
    layer->m = MOST_TOKENS; /* more than 8 */
    struct tensor long_x = at_slot(layer, 0);
    struct tensor long_y = node(layer, OP_MUL_MAT, &layer->w[0], &long_x, 1);
    struct tensor long_sum = node(layer, OP_ADD, &long_y, &long_x, 2);
    EXPECT(device->supports_op(device, &long_y) && !device->supports_op(device, &long_sum));
    layer->m = x.ne[1];
    sum.op = OP_ARGSORT; /* the host's: what follows from it is so, too */
    EXPECT(!device->supports_op(device, &sum) && !device->supports_op(device, &norm));
    EXPECT(!device->supports_op(device, &turned));
    sum = node(layer, OP_ADD, &x, &x, 2);
    EXPECT(!device->supports_op(device, &sum) && !device->supports_op(device, &weighed));
    sum = node(layer, OP_ADD, &y, &x, 2);
    layer->constants->usage = USAGE_COMPUTE; /* a product that is the host's */
    EXPECT(!device->supports_op(device, &sum) && !device->supports_op(device, &weighed));
    layer->constants->usage = USAGE_WEIGHTS;
    EXPECT(device->supports_op(device, &weighed));
    struct tensor *rounds[] = {&norm, &weighed};
    norm.src[0] = &weighed; /* no graph of a host; it ends nevertheless */
    EXPECT(!device->supports_op(device, rounds[0]));
    return NULL;
}

const char *nodes_are_taken_where_they_follow_from_products(struct device *device)
{
    struct layer layer;
    open_layer(&layer, device, NULL, 4);
    const char *wrong = check_taken(&layer);
    close_layer(&layer);
    return wrong;
}

#define REFUSES(node, change)                                                                      \
    do {                                                                                           \
        const struct tensor taken = node;                                                          \
        EXPECT(device->supports_op(device, &(node)));                                              \
        change;                                                                                    \
        EXPECT(!device->supports_op(device, &(node)));                                             \
        (node) = taken;                                                                            \
    } while (0)

static const char *check_rotations(struct layer *layer)
{
    struct device *device = layer->device;
    struct tensor x = at_slot(layer, 0);
    struct tensor y = node(layer, OP_MUL_MAT, &layer->w[0], &x, 1);
    struct tensor heads = heads_of(layer, &y);
    struct tensor r = rope(layer, &heads, 0, &layer->factors, 2);
    REFUSES(r, r.op_params[0] = 1);
    REFUSES(r, r.op_params[1] = HEAD - 1);
    REFUSES(r, r.op_params[1] = HEAD / 2); /* factors of another length */
    REFUSES(r, r.op_params[1] = 2 * HEAD);
    REFUSES(r, r.op_params[1] = 0);
    REFUSES(r, r.op_params[2] = 1);
    REFUSES(r, r.op_params[2] = 8); /* several positions a token */
    REFUSES(r, r.op_params[2] = 24);
    REFUSES(r, r.op_params[2] = 40);
    REFUSES(r, set_float(&r, 5, 0.0f));
    REFUSES(r, set_float(&r, 6, NAN));
    REFUSES(r, set_float(&r, 7, 1.0f));
    REFUSES(r, set_float(&r, 8, 1.1f));
    REFUSES(r, r.op_params[11] = 8);
    REFUSES(r, r.op_params[15] = 2); /* an offset */
    REFUSES(r, r.src[1] = NULL);
    REFUSES(r, r.src[1] = &layer->norm);
    layer->pos.ne[0] = layer->m - 1;
    EXPECT(!device->supports_op(device, &r));
    layer->pos.ne[0] = layer->m;
    REFUSES(r, r.type = TANDEM_TYPE_F16);
    REFUSES(r, r.nb[1] += 4);
    REFUSES(r, r.src[0] = NULL);
    return NULL;
}

static const char *check_others(struct layer *layer)
{
    struct device *device = layer->device;
    struct tensor x = at_slot(layer, 0);
    struct tensor y = node(layer, OP_MUL_MAT, &layer->w[0], &x, 1);
    struct tensor y_view = y;
    struct tensor sum = node(layer, OP_ADD, &y, &x, 2);
    struct tensor scaled = node(layer, OP_SCALE, &y, NULL, 2);
    struct tensor norm = node(layer, OP_RMS_NORM, &y, NULL, 2);
    struct tensor unary = node(layer, OP_UNARY, &y, NULL, 2);
    struct tensor glu = node(layer, OP_GLU, &y, &x, 2);
    unary.op_params[0] = UNARY_SILU;
    glu.op_params[0] = GLU_SWIGLU;
    y_view.op = OP_VIEW;
    y_view.src[0] = &y;
    y_view.nb[1] *= 2;
    REFUSES(sum, sum.op_params[0] = 1);
    REFUSES(sum, sum.src[1] = NULL);
    REFUSES(sum, sum.src[2] = &x);
    REFUSES(sum, sum.src[0] = &y_view);
    REFUSES(sum, sum.ne[0] = WIDTH / 2);
    REFUSES(sum, sum.ne[1] = INT64_MAX);
    REFUSES(sum, sum.ne[1] = 0);
    REFUSES(scaled, set_float(&scaled, 1, 0.5f)); /* a bias */
    REFUSES(scaled, scaled.src[1] = &x);
    REFUSES(norm, norm.op_params[3] = 1);
    REFUSES(unary, unary.op_params[0] = UNARY_EXP);
    REFUSES(unary, unary.op_params[0] = -1);
    REFUSES(unary, unary.op_params[1] = 1);
    REFUSES(glu, glu.op_params[0] = GLU_REGLU);
    REFUSES(glu, glu.op_params[1] = 1); /* swapped */
    REFUSES(glu, glu.src[1] = NULL);    /* halves of one operand */
    REFUSES(glu, glu.src[1] = &layer->norm);
    return NULL;
}

const char *nodes_with_unknown_parameters_are_left_to_the_host(struct device *device)
{
    struct layer layer;
    open_layer(&layer, device, NULL, 4);
    const char *wrong = check_rotations(&layer);
    wrong = wrong != NULL ? wrong : check_others(&layer);
    close_layer(&layer);
    return wrong;
}

static const char *check_outside(struct layer *layer)
{
    struct tensor x = at_slot(layer, 0);
    struct tensor y = node(layer, OP_MUL_MAT, &layer->w[0], &x, 1);
    struct tensor sum = node(layer, OP_ADD, &y, &x, 2);
    struct tensor *nodes[] = {&y, &sum};
    EXPECT(compute(layer, nodes, 2) == 0);
    x.data = NULL;
    EXPECT(compute(layer, nodes + 1, 1) == -1);
    x = at_slot(layer, SLOTS - 1);
    x.data = (char *)x.data + SLOT * sizeof(float) - 4;
    EXPECT(compute(layer, nodes + 1, 1) == -1);
    x = at_slot(layer, 0);
    sum.buffer = NULL;
    EXPECT(compute(layer, nodes + 1, 1) == -1);
    sum = node(layer, OP_ARGSORT, &y, &x, 2);
    EXPECT(compute(layer, nodes, 2) == -1);
    return NULL;
}

const char *nodes_outside_of_buffers_fail(struct device *device, struct backend *backend)
{
    struct layer layer;
    open_layer(&layer, device, backend, 4);
    const char *wrong = check_outside(&layer);
    close_layer(&layer);
    return wrong;
}
