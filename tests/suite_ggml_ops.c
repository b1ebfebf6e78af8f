/* SPDX-License-Identifier: MIT
 * Builders refuse what does not fit, with a reason, and the reference computes what the formulas of
 * tandem/ops.h say, on values worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite_ggml.h"

static tandem_tensor *typed(tandem_context *context, enum tandem_type type, int64_t ne0,
                            int64_t ne1)
{
    const int64_t ne[2] = {ne0, ne1};
    return tandem_tensor_new(context, type, 2, ne);
}

static tandem_tensor *floats(tandem_context *context, int64_t ne0, int64_t ne1, const float *values)
{
    tandem_tensor *tensor = typed(context, TANDEM_TYPE_F32, ne0, ne1);
    memcpy(tandem_tensor_data(tensor), values, (size_t)(ne0 * ne1) * sizeof(float));
    return tensor;
}

/* Computes `result` and compares it with values that are exact or nearly so. */
static void check_values(tandem_context *context, tandem_tensor *result, int64_t n,
                         const float *want)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(result);
    if (!ggml_compute_one(context, result)) {
        return;
    }
    check_int(tandem_tensor_elements(result), n);
    const float *got = tandem_tensor_data(result);
    for (int64_t i = 0; i < n; i++) {
        const bool is_equal =
            got[i] == want[i] || fabsf(got[i] - want[i]) <= 1e-6f * fmaxf(1.0f, fabsf(want[i]));
        if (!is_equal) {
            char text[120];
            snprintf(text, sizeof(text), "%s[%d] = %.9g", tandem_tensor_op_name(result), (int)i,
                     (double)got[i]);
            check_string(text, "as worked out by hand");
        }
    }
}

#define VALUES(...)                                                                                \
    (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[])                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- refusals ---- */

struct operands {
    tandem_context *c;
    tandem_tensor *a;      /* {8, 4} f32 */
    tandem_tensor *b;      /* {3, 4} f32 */
    tandem_tensor *w;      /* {32, 5} q4_0 */
    tandem_tensor *ids;    /* {3} i32 */
    tandem_tensor *turned; /* {4, 8}, rows not dense */
};

static void operands_make(struct operands *o)
{
    tandem_context_reset(o->c);
    o->a = ggml_ramp(o->c, 1.0f, 8, 4, 0, 0);
    o->b = ggml_ramp(o->c, 1.0f, 3, 4, 0, 0);
    o->w = typed(o->c, TANDEM_TYPE_Q4_0, 32, 5);
    o->ids = ggml_ints(o->c, 3, (int32_t[]){0, 1, 2});
    o->turned = tandem_transpose(o->c, o->a);
}

#define REFUSED(expression, status, part)                                                          \
    operands_make(&o);                                                                             \
    CU_ASSERT_PTR_NULL(expression);                                                                \
    check_context(o.c, status, part)

static void linear_builders_refuse_what_does_not_fit(void)
{
    struct operands o = {.c = ggml_context()};
    REFUSED(tandem_mul_mat(o.c, o.a, o.b), TANDEM_E_SHAPE,
            "mul_mat: K of w {8, 4} is 8, K of x {3, 4} is 3");
    REFUSED(tandem_mul_mat(o.c, o.ids, o.a), TANDEM_E_TYPE, "mul_mat: w is i32");
    REFUSED(tandem_mul_mat(o.c, o.w, o.w), TANDEM_E_TYPE, "mul_mat: x is q4_0, expected f32");
    REFUSED(tandem_mul_mat(o.c, o.turned, o.turned), TANDEM_E_SHAPE,
            "rows of w {4, 8} are not dense");
    REFUSED(tandem_mul_mat(o.c, o.a, NULL), TANDEM_E_ARGUMENT, "mul_mat: operand x is NULL");
    REFUSED(tandem_mul_mat(o.c, NULL, o.a), TANDEM_E_ARGUMENT, "mul_mat: operand w is NULL");
    REFUSED(tandem_mul_mat(o.c, ggml_ramp(o.c, 1.0f, 8, 2, 2, 0), ggml_ramp(o.c, 1.0f, 8, 2, 3, 0)),
            TANDEM_E_SHAPE, "ne[2] of x {8, 2, 3} is 3, not a multiple of ne[2] of w {8, 2, 2}");
    REFUSED(tandem_mul_mat(o.c, tandem_view(o.c, o.a, 3, (int64_t[]){8, 1, 0}, NULL, 0), o.a),
            TANDEM_E_SHAPE, "ne[2] of x");
    REFUSED(tandem_get_rows(o.c, o.w, o.a), TANDEM_E_TYPE, "get_rows: ids is f32, expected i32");
    REFUSED(tandem_get_rows(o.c,
                            tandem_transpose(
                                o.c, tandem_reshape(o.c, ggml_ints(o.c, 4, (int32_t[]){1, 2, 3, 4}),
                                                    2, (int64_t[]){2, 2})),
                            o.ids),
            TANDEM_E_SHAPE, "get_rows: rows of w are not dense");
    REFUSED(tandem_get_rows(o.c, ggml_ramp(o.c, 1.0f, 2, 2, 2, 0), o.ids), TANDEM_E_SHAPE,
            "w {2, 2, 2} is no matrix");
    CU_ASSERT_PTR_NULL(tandem_mul_mat(NULL, o.a, o.a));
    tandem_context_free(o.c);
}

/* Many values of K and one of N: what holds a row is as long as K. */
static void experts_of_one_long_row_are_their_sum(void)
{
    enum { LONG = 1 << 16 };
    tandem_context *c = ggml_context();
    tandem_tensor *w = ggml_ramp(c, 0.0f, LONG, 1, 2, 0);
    tandem_tensor *x = ggml_ramp(c, 0.0f, LONG, 1, 1, 0);
    tandem_tensor *ids = tandem_tensor_new(c, TANDEM_TYPE_I32, 2, (int64_t[]){1, 1});
    float *weights = tandem_tensor_data(w), *values = tandem_tensor_data(x);
    for (int i = 0; i < LONG; i++) {
        weights[LONG + i] = 2.0f;
        values[i] = 1.0f;
    }
    *(int32_t *)tandem_tensor_data(ids) = 1;
    tandem_tensor *y = tandem_mul_mat_id(c, w, x, ids);
    if (ggml_compute_one(c, y)) {
        CU_ASSERT_EQUAL(*(float *)y->data, 2.0f * LONG);
    }
    tandem_context_free(c);
}

static void experts_builders_refuse_what_does_not_fit(void)
{
    struct operands o = {.c = ggml_context()};
    const int64_t two = 2;
#define MATRICES ggml_ramp(o.c, 1.0f, 8, 2, 3, 0)
#define TOKENS   ggml_ramp(o.c, 1.0f, 8, 2, 5, 0)
#define IDS(n)   tandem_tensor_new(o.c, TANDEM_TYPE_I32, 2, (int64_t[]){n, 5})
    REFUSED(tandem_mul_mat_id(o.c, MATRICES, TOKENS, o.a), TANDEM_E_TYPE,
            "mul_mat_id: ids is f32, expected i32");
    REFUSED(tandem_mul_mat_id(o.c, MATRICES, TOKENS, o.ids), TANDEM_E_SHAPE,
            "mul_mat_id: ids {3} has no dense row for each of 5 tokens");
    REFUSED(
        tandem_mul_mat_id(o.c, MATRICES, TOKENS, IDS(3)), TANDEM_E_SHAPE,
        "mul_mat_id: x {8, 2, 5} has neither one row a token nor one for each of the 3 experts");
    REFUSED(tandem_mul_mat_id(o.c, o.w, TOKENS, IDS(two)), TANDEM_E_SHAPE,
            "mul_mat_id: w {32, 5} is not {K, N, experts}, or its K is not that of x {8, 2, 5}");
    REFUSED(tandem_mul_mat_id(o.c, o.ids, TOKENS, IDS(two)), TANDEM_E_TYPE, "mul_mat_id: w is i32");
    REFUSED(tandem_mul_mat_id(o.c, MATRICES, MATRICES, NULL), TANDEM_E_ARGUMENT,
            "operand ids is NULL");
    REFUSED(tandem_top_k(o.c, o.a, 9), TANDEM_E_ARGUMENT, "top_k: k is 9, expected 1 to 8");
    REFUSED(tandem_top_k(o.c, o.a, 0), TANDEM_E_ARGUMENT, "top_k: k is 0");
    REFUSED(tandem_gather(o.c, o.a, IDS(two)), TANDEM_E_SHAPE,
            "gather: ids {2, 5} has no dense row for each of 4 tokens");
    REFUSED(tandem_gather(o.c, tandem_reshape(o.c, o.a, 3, (int64_t[]){2, 5, 3}), IDS(two)),
            TANDEM_E_SHAPE, "reshape");
    REFUSED(tandem_gather(o.c, ggml_ramp(o.c, 1.0f, 4, 5, 2, 0), IDS(two)), TANDEM_E_SHAPE,
            "gather: a {4, 5, 2} is no matrix");
    REFUSED(tandem_weighted_sum(o.c, TOKENS, o.a), TANDEM_E_SHAPE,
            "weighted_sum: weights {8, 4} has no value for each row of a {8, 2, 5}");
#undef MATRICES
#undef TOKENS
#undef IDS
    tandem_context_free(o.c);
}

static void elementwise_and_row_builders_refuse_what_does_not_fit(void)
{
    struct operands o = {.c = ggml_context()};
    struct tandem_rope_options options = TANDEM_ROPE_OPTIONS_INIT;
    REFUSED(tandem_add(o.c, o.a, o.b), TANDEM_E_SHAPE,
            "add: b {3, 4} cannot be repeated to the shape of a {8, 4} (ne[0])");
    REFUSED(tandem_mul(o.c, o.b, o.a), TANDEM_E_SHAPE, "mul: b {8, 4}");
    REFUSED(tandem_silu(o.c, o.w), TANDEM_E_TYPE, "silu: a is q4_0, expected f32");
    REFUSED(tandem_sqrt(o.c, o.turned), TANDEM_E_SHAPE, "sqrt: rows of a {4, 8} are not dense");
    REFUSED(tandem_rms_norm(o.c, o.a, -1.0f), TANDEM_E_ARGUMENT, "rms_norm: eps is -1");
    REFUSED(tandem_norm(o.c, o.a, NAN), TANDEM_E_ARGUMENT, "norm: eps is");
    REFUSED(tandem_soft_max(o.c, o.a, o.b, 1.0f), TANDEM_E_SHAPE,
            "soft_max: mask {3, 4} does not cover the rows of a {8, 4}");
    REFUSED(tandem_soft_max(o.c, o.a, o.ids, 1.0f), TANDEM_E_TYPE, "soft_max: mask is i32");
    REFUSED(tandem_diag_mask_inf(o.c, o.a, -1), TANDEM_E_ARGUMENT, "n_past is -1");
    REFUSED(tandem_diag_mask_inf(o.c, o.a, INT64_MAX), TANDEM_E_ARGUMENT, "n_past is 9223");
    REFUSED(tandem_rope(o.c, o.a, o.ids, NULL), TANDEM_E_SHAPE,
            "rope: positions {3} is no dense row of ne[2] of a {8, 4}");
    REFUSED(tandem_rope(o.c, o.a, o.a, NULL), TANDEM_E_TYPE, "rope: positions is f32");
    options.n_rot = 10;
    REFUSED(tandem_rope(o.c, o.a, o.ids, &options), TANDEM_E_ARGUMENT, "n_rot is 10");
    options.n_rot = 3;
    REFUSED(tandem_rope(o.c, o.a, o.ids, &options), TANDEM_E_ARGUMENT, "n_rot is 3");
    options.n_rot = 0;
    options.pairs = (enum tandem_rope_pairs)7;
    REFUSED(tandem_rope(o.c, o.a, o.ids, &options), TANDEM_E_ARGUMENT, "pairs is 7");
    options.pairs = TANDEM_ROPE_HALVES;
    options.freq_base = -2.0f;
    REFUSED(tandem_rope(o.c, o.a, o.ids, &options), TANDEM_E_ARGUMENT, "freq_base is -2");
    options.size = 0;
    REFUSED(tandem_rope(o.c, o.a, o.ids, &options), TANDEM_E_ABI, "rope options: size is 0");
    options = (struct tandem_rope_options)TANDEM_ROPE_OPTIONS_INIT;
    REFUSED(tandem_rope_factors(o.c, ggml_ramp(o.c, 1.0f, 8, 4, 3, 0), o.ids, o.b, &options),
            TANDEM_E_SHAPE, "rope: factors {3, 4} is no row of n_rot / 2 = 4 values");
    REFUSED(tandem_rope_factors(o.c, o.a, o.ids, NULL, NULL), TANDEM_E_ARGUMENT, "factors is NULL");
    tandem_context_free(o.c);
}

static void attention_refuses_what_does_not_fit(void)
{
    struct operands o = {.c = ggml_context()};
    REFUSED(tandem_attention(o.c, o.a, o.b, o.b, NULL, 1.0f), TANDEM_E_SHAPE,
            "attention: q {8, 4}, k {3, 4} and v {3, 4} do not fit");
    REFUSED(tandem_attention(o.c, o.a, o.a, ggml_ramp(o.c, 1.0f, 8, 5, 0, 0), NULL, 1.0f),
            TANDEM_E_SHAPE, "v {8, 5} do not fit");
    REFUSED(tandem_attention(o.c, ggml_ramp(o.c, 1.0f, 8, 1, 3, 0),
                             ggml_ramp(o.c, 1.0f, 8, 1, 2, 0), ggml_ramp(o.c, 1.0f, 8, 1, 2, 0),
                             NULL, 1.0f),
            TANDEM_E_SHAPE, "do not fit");
    REFUSED(tandem_attention(o.c, o.a, o.ids, o.a, NULL, 1.0f), TANDEM_E_TYPE, "k is i32");
    REFUSED(tandem_attention(o.c, o.a, o.a, o.turned, NULL, 1.0f), TANDEM_E_SHAPE,
            "v {4, 8} has no dense rows");
    REFUSED(tandem_attention(o.c, o.a, o.a, o.a, o.b, 1.0f), TANDEM_E_SHAPE,
            "mask {3, 4} does not fit 4 keys and 4 queries");
    REFUSED(tandem_attention(o.c, o.a, o.a, o.a, o.ids, 1.0f), TANDEM_E_TYPE, "mask is i32");
    REFUSED(tandem_attention(o.c, o.a, o.a, o.a, NULL, NAN), TANDEM_E_ARGUMENT, "scale is");
    REFUSED(tandem_attention_ordered(o.c, o.a, o.a, o.a, o.ids, 0, 1.0f), TANDEM_E_SHAPE,
            "orders {3} does not fit 4 keys and 4 queries");
    REFUSED(tandem_attention_ordered(o.c, o.a, o.a, o.a, o.a, 0, 1.0f), TANDEM_E_TYPE,
            "orders is f32, expected i32");
    REFUSED(
        tandem_attention_ordered(o.c, o.a, o.a, o.a, ggml_ints(o.c, 8, (int32_t[8]){0}), -1, 1.0f),
        TANDEM_E_ARGUMENT, "window is -1");
    struct tandem_attention_options options = TANDEM_ATTENTION_OPTIONS_INIT;
    options.cap = -1.0f;
    REFUSED(tandem_attention_with(o.c, o.a, o.a, o.a, &options), TANDEM_E_ARGUMENT, "cap is -1");
    options.cap = 0.0f;
    options.sinks = o.b;
    REFUSED(tandem_attention_with(o.c, o.a, o.a, o.a, &options), TANDEM_E_SHAPE,
            "sinks {3, 4}, expected 1 dense numbers");
    options.sinks = o.ids;
    REFUSED(tandem_attention_with(o.c, o.a, o.a, o.a, &options), TANDEM_E_TYPE, "sinks is i32");
    options.size = 0;
    REFUSED(tandem_attention_with(o.c, o.a, o.a, o.a, &options), TANDEM_E_ABI,
            "attention options: size is 0");
    tandem_context_free(o.c);
}

static void attention_weighs_what_a_query_sees(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *q = ggml_ramp(c, 0.0f, 2, 3, 0, 0); /* all zeros: what is seen weighs the same */
    tandem_tensor *k = ggml_ramp(c, 1.0f, 2, 4, 0, 0);
    tandem_tensor *v = ggml_ramp(c, 1.0f, 1, 4, 0, 0); /* 0 1 2 3 */
    tandem_tensor *orders = ggml_ints(c, 7, (int32_t[]){0, 1, 2, 50, 1, 3, 49});
    check_values(c, tandem_attention(c, q, k, v, NULL, 1.0f), VALUES(1.5f, 1.5f, 1.5f));
    check_values(c, tandem_attention_ordered(c, q, k, v, orders, 0, 1.0f),
                 VALUES(0.5f, 1.0f, 1.0f));
    /* the last query is further from all than the window: it sees nothing */
    check_values(c, tandem_attention_ordered(c, q, k, v, orders, 3, 1.0f),
                 VALUES(0.5f, 1.5f, 0.0f));
    /* a sink of the same score takes a share as a key does, but for who sees nothing */
    struct tandem_attention_options options = TANDEM_ATTENTION_OPTIONS_INIT;
    options.mask = orders;
    options.window = 3;
    options.cap = 2.0f;
    options.sinks = ggml_ramp(c, 0.0f, 1, 0, 0, 0);
    check_values(c, tandem_attention_with(c, q, k, v, &options), VALUES(1.0f / 3.0f, 1.0f, 0.0f));
    tandem_context_free(c);
}

static enum tandem_status idle(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    (void)user;
    (void)node;
    (void)begin;
    (void)end;
    return TANDEM_OK;
}

static void layout_and_custom_builders_refuse_what_does_not_fit(void)
{
    struct operands o = {.c = ggml_context()};
    const int64_t ne = 4;
    REFUSED(tandem_cpy(o.c, o.a, o.b), TANDEM_E_SHAPE,
            "cpy: a {8, 4} has 32 values, b {3, 4} has 12");
    REFUSED(tandem_cpy(o.c, o.ids, o.b), TANDEM_E_TYPE, "cpy: cannot convert i32 to f32");
    REFUSED(tandem_cpy(o.c, o.w, o.a), TANDEM_E_TYPE, "cpy: cannot convert q4_0 to f32");
    REFUSED(tandem_cpy(o.c, o.a, typed(o.c, TANDEM_TYPE_Q4_0, 32, 1)), TANDEM_E_SHAPE,
            "cpy: to q4_0 needs dense rows and equal shapes, a is {8, 4}, b is {32}");
    REFUSED(tandem_cpy(o.c, tandem_view(o.c, o.a, 1, (int64_t[]){8}, NULL, 0),
                       tandem_view(o.c, o.a, 1, (int64_t[]){8}, NULL, 16)),
            TANDEM_E_ARGUMENT, "overlaps");
    REFUSED(tandem_cpy(o.c, ggml_ramp(o.c, 1.0f, 2, 4, 0, 0),
                       tandem_view(o.c, o.a, 2, (int64_t[]){2, 4}, (size_t[]){4}, 0)),
            TANDEM_E_ARGUMENT, "b {2, 4} overlaps itself");
#define ONE typed(o.c, TANDEM_TYPE_I32, 1, 1)
#define TO  ggml_ramp(o.c, 1.0f, 8, 4, 3, 0)
    REFUSED(tandem_scatter(o.c, o.a, TO, o.b), TANDEM_E_TYPE, "ids f32, expected i32");
    REFUSED(tandem_scatter(o.c, o.a, o.ids, ONE), TANDEM_E_TYPE, "b is i32");
    REFUSED(tandem_scatter(o.c, o.b, TO, ONE), TANDEM_E_SHAPE,
            "scatter: matrices of a {3, 4} do not fit into b {8, 4, 3}");
    REFUSED(tandem_scatter(o.c, o.a, TO, typed(o.c, TANDEM_TYPE_I32, 2, 1)), TANDEM_E_SHAPE,
            "scatter: ids {2} has no index for each of 1 matrices");
    REFUSED(tandem_scatter(o.c, o.a, o.a, ONE), TANDEM_E_ARGUMENT,
            "scatter: b {8, 4} overlaps itself or a {8, 4}");
    REFUSED(tandem_cont(o.c, o.w), TANDEM_E_TYPE, "cont: a is q4_0");
    REFUSED(tandem_concat(o.c, o.a, o.b, 1), TANDEM_E_SHAPE,
            "concat: a {8, 4} and b {3, 4} differ in ne[0]");
    REFUSED(tandem_concat(o.c, o.a, o.b, 4), TANDEM_E_ARGUMENT, "dim is 4");
    REFUSED(tandem_custom(o.c, 1, &ne, (tandem_tensor *[]){o.a, NULL}, 2, 1, idle, NULL),
            TANDEM_E_ARGUMENT, "operand src[1] is NULL");
    REFUSED(tandem_custom(o.c, 1, &ne, &o.a, 6, 1, idle, NULL), TANDEM_E_ARGUMENT, "n_src is 6");
    REFUSED(tandem_custom(o.c, 1, &ne, &o.a, 1, -1, idle, NULL), TANDEM_E_ARGUMENT,
            "n_items is -1");
    REFUSED(tandem_custom(o.c, 1, &ne, &o.a, 1, 1, NULL, NULL), TANDEM_E_ARGUMENT,
            "callback is NULL");
    REFUSED(tandem_custom(o.c, 9, &ne, &o.a, 1, 1, idle, NULL), TANDEM_E_ARGUMENT, "n_dims is 9");
    tandem_context_free(o.c);
}

static void results_too_large_for_integers_are_refused(void)
{
    tandem_context *c = ggml_context();
    char byte = 0;
    const int64_t ne[2] = {0, INT64_MAX / 16};
    tandem_tensor *a = tandem_tensor_borrow(c, TANDEM_TYPE_F32, 2, ne, &byte, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_PTR_NULL(tandem_mul_mat(c, a, a));
    check_context(c, TANDEM_E_OVERFLOW, "mul_mat: the bytes of the result");
    tandem_context_free(c);
}

/* ---- values ---- */

static void products_and_rows_follow_their_formulas(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *w = floats(c, 2, 3, (float[]){1, 2, 3, 4, 5, 6}); /* {K 2, N 3} */
    tandem_tensor *x = floats(c, 2, 2, (float[]){1, 10, -1, 0.5f});  /* {K 2, M 2} */
    check_values(c, tandem_mul_mat(c, w, x), VALUES(21, 43, 65, 0, -1, -2));
    check_values(c, tandem_get_rows(c, w, ggml_ints(c, 2, (int32_t[]){2, 0})), VALUES(5, 6, 1, 2));

    /* two matrices of W serve four of X: 0 0 1 1 */
    tandem_tensor *w2 = ggml_ramp(c, 1.0f, 1, 1, 2, 0); /* 0, 1 */
    tandem_tensor *x4 = ggml_ramp(c, 1.0f, 1, 1, 4, 0); /* 0..3 */
    check_values(c, tandem_mul_mat(c, w2, x4), VALUES(0, 0, 2, 3));

    const int64_t table_ne[] = {1, 3};
    tandem_tensor *table =
        tandem_reshape(c, ggml_ints(c, 3, (int32_t[]){-1, INT32_MAX, 5}), 2, table_ne);
    tandem_tensor *numbers = tandem_get_rows(c, table, ggml_ints(c, 2, (int32_t[]){2, 0}));
    tandem_graph *numbered = tandem_graph_new(c);
    tandem_graph_add(numbered, numbers);
    check_ok(tandem_graph_finish(numbered, NULL));
    check_ok(ggml_compute(numbered, NULL));
    check_int(numbers->type, TANDEM_TYPE_I32); /* integers stay integers */
    CU_ASSERT_EQUAL(memcmp(tandem_tensor_data(numbers), (int32_t[]){5, -1}, 8), 0);

    tandem_tensor *out = tandem_get_rows(c, w, ggml_ints(c, 1, (int32_t[]){3}));
    tandem_graph *graph = tandem_graph_new(c);
    struct tandem_error error = {0};
    tandem_graph_add(graph, out);
    check_ok(tandem_graph_finish(graph, &error));
    check_status(ggml_compute(graph, &error), TANDEM_E_ARGUMENT, "index 0 is 3, expected 0 to 2",
                 &error);
    tandem_context_free(c);
}

static void experts_follow_their_formulas(void)
{
    tandem_context *c = ggml_context();
    const int64_t ne[] = {2, 2, 3};
    tandem_tensor *w =
        ggml_ramp(c, 1.0f, 2, 2, 3, 0); /* experts {0 1; 2 3} {4 5; 6 7} {8 9; 10 11} */
    tandem_tensor *x =
        tandem_reshape(c, floats(c, 2, 2, (float[]){1, 10, -1, 1}), 3, (int64_t[]){2, 1, 2});
    tandem_tensor *each = floats(c, 2, 4, (float[]){1, 0, 0, 1, 1, 1, 2, 0});
    tandem_tensor *ids = tandem_tensor_new(c, TANDEM_TYPE_I32, 2, (int64_t[]){2, 2});
    memcpy(tandem_tensor_data(ids), (int32_t[]){2, 0, 1, 1}, 16);
    check_values(c, tandem_mul_mat_id(c, w, x, ids), VALUES(98, 120, 10, 32, 1, 1, 1, 1));
    each = tandem_reshape(c, each, 3, (int64_t[]){2, 2, 2});
    check_values(c, tandem_mul_mat_id(c, w, each, ids), VALUES(8, 10, 1, 3, 9, 13, 8, 12));
    tandem_tensor *weights = floats(c, 2, 2, (float[]){2, -1, 0.5f, 0});
    check_values(c, tandem_weighted_sum(c, each, weights), VALUES(2, -1, 0.5f, 0.5f));
    tandem_tensor *a = floats(c, 4, 3, (float[]){1, 3, 2, 3, -1, NAN, -INFINITY, -2, 0, 0, 0, 0});
    tandem_tensor *top = tandem_top_k(c, a, 3);
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, top);
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(ggml_compute(graph, NULL));
    static const int32_t order[] = {1, 3, 2, 0, 3, 2, 0, 1, 2};
    check_bits(tandem_tensor_data(top), order, sizeof(order), "top_k");
    check_values(c, tandem_gather(c, floats(c, 3, 2, (float[]){1, 2, 3, 4, 5, 6}), ids),
                 VALUES(3, 1, 5, 5));
    ((int32_t *)tandem_tensor_data(ids))[1] = -1; /* nobody */
    check_values(c, tandem_mul_mat_id(c, w, x, ids), VALUES(98, 120, 0, 0, 1, 1, 1, 1));
    ((int32_t *)tandem_tensor_data(ids))[3] = 3;
    struct tandem_error error = {0};
    graph = tandem_graph_new(c);
    tandem_graph_add(graph, tandem_mul_mat_id(c, tandem_reshape(c, w, 3, ne), x, ids));
    check_ok(tandem_graph_finish(graph, &error));
    check_status(ggml_compute(graph, &error), TANDEM_E_ARGUMENT,
                 "mul_mat_id: index 1 of token 1 is 3, expected -1 to 2", &error);
    tandem_context_free(c);
}

static void weights_of_every_type_are_decoded(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_context *c = ggml_context();
    for (int number = 0; number < TANDEM_TYPE_NUMBERS; number++) {
        const enum tandem_type type = (enum tandem_type)number;
        if (!tandem_type_is_valid(type) || type == TANDEM_TYPE_I32) {
            continue;
        }
        float values[256 * 3];
        float decoded[256 * 3];
        float x[256];
        tandem_tensor *w = typed(c, type, 256, 3);
        tnd_test_fill(&rng, values, 256 * 3);
        tnd_test_fill(&rng, x, 256);
        check_ok(tandem_quantize(type, values, tandem_tensor_data(w), 256 * 3));
        check_ok(tandem_dequantize(type, tandem_tensor_data(w), decoded, 256 * 3));
        double want[3] = {0};
        for (int i = 0; i < 256 * 3; i++) {
            want[i / 256] += (double)decoded[i] * (double)x[i % 256];
        }
        check_values(c, tandem_mul_mat(c, w, floats(c, 256, 1, x)),
                     VALUES((float)want[0], (float)want[1], (float)want[2]));
        check_values(c, tandem_get_rows(c, w, ggml_ints(c, 1, (int32_t[]){1})), 256, decoded + 256);
        if (tandem_type_is_quantized(type)) {
            tandem_tensor *copy = tandem_cpy(c, floats(c, 256, 3, values), typed(c, type, 256, 3));
            CU_ASSERT(ggml_compute_one(c, copy));
            check_bits(tandem_tensor_data(copy), tandem_tensor_data(w), tandem_tensor_bytes(w),
                       tandem_type_name(type));
        }
    }
    tandem_context_free(c);
}

static void elements_follow_their_formulas(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *a = floats(c, 2, 2, (float[]){1, -2, 3, 4});
    tandem_tensor *b = floats(c, 2, 1, (float[]){10, 100});
    check_values(c, tandem_add(c, a, b), VALUES(11, 98, 13, 104));
    check_values(c, tandem_sub(c, a, b), VALUES(-9, -102, -7, -96));
    check_values(c, tandem_mul(c, a, b), VALUES(10, -200, 30, 400));
    check_values(c, tandem_div(c, a, b), VALUES(0.1f, -0.02f, 0.3f, 0.04f));
    check_values(c, tandem_add(c, a, floats(c, 1, 1, (float[]){1})), VALUES(2, -1, 4, 5));
    check_values(c, tandem_scale(c, a, -0.5f), VALUES(-0.5f, 1, -1.5f, -2));
    check_values(c, tandem_sqr(c, a), VALUES(1, 4, 9, 16));
    check_values(c, tandem_sqrt(c, tandem_sqr(c, a)), VALUES(1, 2, 3, 4));
    check_values(c, tandem_relu(c, a), VALUES(1, 0, 3, 4));
    check_values(c, tandem_clamp(c, a, -1.5f, 3.5f), VALUES(1, -1.5, 3, 3.5));
    check_values(c, tandem_clamp(c, a, -INFINITY, 1), VALUES(1, -2, 1, 1));
    check_values(c, tandem_silu(c, a),
                 VALUES(0.731058579f, -0.238405844f, 2.85772238f, 3.92805516f));
    check_values(c, tandem_gelu(c, a),
                 VALUES(0.841191991f, -0.045402306f, 2.99636261f, 3.9999297f));
    check_values(c, tandem_tanh(c, a),
                 VALUES(0.761594156f, -0.96402758f, 0.995054754f, 0.999329300f));
    check_values(c, tandem_gelu_erf(c, a),
                 VALUES(0.841344746f, -0.0455002639f, 2.99595031f, 3.99987331f));
    /* a view with gaps between its rows */
    tandem_tensor *column = tandem_view(c, a, 2, (int64_t[]){1, 2}, (size_t[]){8}, 4);
    check_values(c, tandem_scale(c, column, 2.0f), VALUES(-4, 8));
    tandem_context_free(c);
}

static void rows_follow_their_formulas(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *a = floats(c, 2, 2, (float[]){3, 4, 0, 0});
    check_values(c, tandem_rms_norm(c, a, 1.0f), VALUES(0.816496581f, 1.08866211f, 0, 0));
    check_values(c, tandem_norm(c, a, 0.75f), VALUES(-0.5f, 0.5f, 0, 0));
    tandem_tensor *scores = floats(c, 2, 2, (float[]){0, 1.09861229f, 1000, 1000});
    check_values(c, tandem_soft_max(c, scores, NULL, 1.0f), VALUES(0.25f, 0.75f, 0.5f, 0.5f));
    tandem_tensor *mask = floats(c, 2, 3, (float[]){0, -INFINITY, 1.09861229f, 0, 9, 9});
    check_values(c, tandem_soft_max(c, scores, mask, 0.5f), VALUES(1, 0, 0.75f, 0.25f));
    tandem_tensor *square = ggml_ramp(c, 1.0f, 3, 2, 0, 0);
    check_values(c, tandem_diag_mask_inf(c, square, 0),
                 VALUES(0, -INFINITY, -INFINITY, 3, 4, -INFINITY));
    check_values(c, tandem_diag_mask_inf(c, square, 1), VALUES(0, 1, -INFINITY, 3, 4, 5));
    tandem_context_free(c);
}

static void rope_turns_adjacent_or_halved_pairs(void)
{
    struct tandem_rope_options options = TANDEM_ROPE_OPTIONS_INIT;
    tandem_context *c = ggml_context();
    const int64_t ne[3] = {4, 1, 2}; /* {head size, heads, M} */
    tandem_tensor *a = tandem_reshape(c, floats(c, 4, 2, (float[]){1, 0, 1, 0, 1, 2, 3, 4}), 3, ne);
    tandem_tensor *positions = ggml_ints(c, 2, (int32_t[]){2, 0});
    /* angles 2 and 2 / 100; position 0 turns nothing */
    const float s0 = 0.909297427f, c0 = -0.416146837f, s1 = 0.0199986667f, c1 = 0.99980000667f;
    check_values(c, tandem_rope(c, a, positions, NULL), VALUES(c0, s0, c1, s1, 1, 2, 3, 4));
    options.pairs = TANDEM_ROPE_HALVES;
    check_values(c, tandem_rope(c, a, positions, &options),
                 VALUES(c0 - s0, 0, c0 + s0, 0, 1, 2, 3, 4));
    options.n_rot = 2;
    options.freq_scale = 0.5f; /* angle 1; the last two values stay */
    check_values(c, tandem_rope(c, a, positions, &options),
                 VALUES(0.540302306f, 0.841470985f, 1, 0, 1, 2, 3, 4));
    /* an older program knows only the first members */
    struct tandem_rope_options older = {offsetof(struct tandem_rope_options, freq_base),
                                        TANDEM_ROPE_HALVES, 2, 123.0f, 456.0f};
    tandem_tensor *node = tandem_rope(c, a, positions, &older);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    CU_ASSERT_EQUAL(node->params.rope.freq_base, 10000.0f);
    CU_ASSERT_EQUAL(node->params.rope.freq_scale, 1.0f);
    tandem_context_free(c);
}

/* Of equal indices the last one counts; one that is wrong leaves all as it was. */
static void scattered_matrices_go_where_indices_say(void)
{
    static const int32_t wrong[] = {3, -1, INT32_MAX, INT32_MIN};
    struct tandem_error error;
    tandem_context *c = ggml_context();
    tandem_tensor *a =
        tandem_reshape(c, floats(c, 6, 1, (float[]){1, 2, 3, 4, 5, 6}), 3, (int64_t[]){2, 1, 3});
    tandem_tensor *b = ggml_ramp(c, 0.0f, 2, 1, 3, 0);
    tandem_tensor *ids = typed(c, TANDEM_TYPE_I32, 3, 1);
    memcpy(tandem_tensor_data(ids), (int32_t[]){2, 0, 2}, 12);
    check_values(c, tandem_scatter(c, a, b, ids), VALUES(3, 4, 0, 0, 5, 6));
    for (int i = 0; i < 4; i++) {
        ((int32_t *)tandem_tensor_data(ids))[2] = wrong[i];
        tandem_graph *graph = tandem_graph_new(c);
        tandem_graph_add(graph, tandem_scatter(c, tandem_scale(c, a, 2.0f), b, ids));
        check_ok(tandem_graph_finish(graph, NULL));
        (void)check_status(ggml_compute(graph, &error), TANDEM_E_ARGUMENT, "scatter: index 2 is ",
                           &error);
        const float want[6] = {3, 4, 0, 0, 5, 6};
        check_bits(tandem_tensor_data(b), want, sizeof(want), "scatter");
    }
    tandem_context_free(c);
}

static void copies_keep_the_order_of_values(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *a = floats(c, 3, 2, (float[]){1, 2, 3, 4, 5, 6});
    tandem_tensor *turned = tandem_transpose(c, a);
    check_values(c, tandem_cont(c, turned), VALUES(1, 4, 2, 5, 3, 6));
    /* strides on both sides: the values of the turned tensor, in order, into the columns of
     *  another */
    tandem_tensor *target = ggml_ramp(c, 0.0f, 2, 3, 0, 0);
    tandem_tensor *copy = tandem_cpy(c, turned, tandem_transpose(c, target));
    CU_ASSERT(ggml_compute_one(c, copy));
    const float want[6] = {1, 5, 4, 3, 2, 6};
    check_bits(tandem_tensor_data(target), want, sizeof(want), "cpy");
    check_values(c, tandem_concat(c, a, floats(c, 1, 2, (float[]){8, 9}), 0),
                 VALUES(1, 2, 3, 8, 4, 5, 6, 9));
    check_values(c, tandem_concat(c, a, floats(c, 3, 1, (float[]){7, 8, 9}), 1),
                 VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9));
    /* F32 to F16 and BF16 and back */
    for (int i = 0; i < 2; i++) {
        const enum tandem_type type = i == 0 ? TANDEM_TYPE_F16 : TANDEM_TYPE_BF16;
        tandem_tensor *half = tandem_cpy(c, turned, typed(c, type, 2, 3));
        check_values(c, tandem_cpy(c, half, typed(c, TANDEM_TYPE_F32, 6, 1)),
                     VALUES(1, 4, 2, 5, 3, 6));
    }
    tandem_tensor *ints = tandem_cont(c, ggml_ints(c, 2, (int32_t[]){INT32_MAX, INT32_MIN}));
    CU_ASSERT(ggml_compute_one(c, ints));
    CU_ASSERT_EQUAL(((int32_t *)tandem_tensor_data(ints))[0], INT32_MAX);
    tandem_context_free(c);
}

static enum tandem_status add_all(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    const float *a = tandem_tensor_data(tandem_tensor_src(node, 0));
    const float *d = tandem_tensor_data(tandem_tensor_src(node, 3));
    float *y = tandem_tensor_data(node);
    for (int64_t i = begin; i < end; i++) {
        y[i] = a[i] + d[i] + *(float *)user;
    }
    return end == 3 ? TANDEM_OK : TANDEM_E_LIMIT;
}

static void custom_nodes_call_back_with_their_operands(void)
{
    float user = 0.5f;
    tandem_context *c = ggml_context();
    tandem_tensor *a = floats(c, 3, 1, (float[]){1, 2, 3});
    tandem_tensor *src[4] = {a, a, a, tandem_scale(c, a, 10.0f)};
    const int64_t ne = 3;
    check_values(c, tandem_custom(c, 1, &ne, src, 4, 3, add_all, &user),
                 VALUES(11.5f, 22.5f, 33.5f));
    tandem_tensor *idling = tandem_custom(c, 1, &ne, src, 1, 2, idle, &user);
    CU_ASSERT(ggml_compute_one(c, idling));
    tandem_tensor *limited =
        tandem_custom(c, 1, &ne, (tandem_tensor *[]){a, a, a, a}, 4, 2, add_all, &user);
    struct tandem_error error = {0};
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, limited);
    check_ok(tandem_graph_finish(graph, &error));
    check_status(ggml_compute(graph, &error), TANDEM_E_LIMIT, "callback returned LIMIT", &error);
    tandem_context_free(c);
}

static void empty_tensors_pass_through_every_operation(void)
{
    tandem_context *c = ggml_context();
    const int64_t ne[2] = {0, 3};
    const int64_t no_rows[2] = {4, 0};
    tandem_tensor *a = tandem_tensor_new(c, TANDEM_TYPE_F32, 2, ne);
    tandem_tensor *b = tandem_tensor_new(c, TANDEM_TYPE_F32, 2, no_rows);
    tandem_tensor *m = ggml_ramp(c, 1.0f, 4, 2, 0, 0);
    CU_ASSERT(ggml_compute_one(c, tandem_add(c, a, a)));
    CU_ASSERT(ggml_compute_one(c, tandem_rms_norm(c, a, 1.0f)));
    CU_ASSERT(ggml_compute_one(c, tandem_soft_max(c, b, NULL, 1.0f)));
    CU_ASSERT(ggml_compute_one(c, tandem_mul_mat(c, m, b)));
    CU_ASSERT(ggml_compute_one(c, tandem_mul_mat(c, b, m)));
    check_values(c, tandem_mul_mat(c, a, a), VALUES(0, 0, 0, 0, 0, 0, 0, 0, 0));
    CU_ASSERT(ggml_compute_one(c, tandem_cont(c, tandem_transpose(c, a))));
    check_values(c, tandem_concat(c, b, m, 1), VALUES(0, 1, 2, 3, 4, 5, 6, 7));
    CU_ASSERT(ggml_compute_one(c, tandem_sqr(c, tandem_scale(c, a, 2.0f))));
    CU_ASSERT(ggml_compute_one(c, tandem_cpy(c, a, b)));
    tandem_context_free(c);
}

static void plain_products_are_told_from_others(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *w = ggml_ramp(c, 1.0f, 4, 3, 0, 0);
    tandem_tensor *x = ggml_ramp(c, 1.0f, 4, 5, 0, 0);
    tandem_tensor *heads = ggml_ramp(c, 1.0f, 4, 3, 2, 0);
    tandem_tensor *gaps = tandem_view(c, w, 2, (int64_t[]){2, 3}, (size_t[]){16}, 0);
    CU_ASSERT(tnd_mul_mat_is_plain(tandem_mul_mat(c, w, x)));
    CU_ASSERT(tnd_mul_mat_is_plain(tandem_mul_mat(c, w, tandem_sqr(c, x))));
    CU_ASSERT_FALSE(tnd_mul_mat_is_plain(tandem_mul_mat(c, tandem_sqr(c, w), x)));
    CU_ASSERT_FALSE(tnd_mul_mat_is_plain(tandem_mul_mat(c, heads, heads)));
    CU_ASSERT_FALSE(tnd_mul_mat_is_plain(tandem_mul_mat(c, gaps, gaps)));
    CU_ASSERT_FALSE(tnd_mul_mat_is_plain(tandem_sqr(c, x)));
    CU_ASSERT_FALSE(tnd_mul_mat_is_plain(NULL));
    tandem_context_free(c);
}

static CU_TestInfo op_tests[] = {
    {"linear_builders_refuse_what_does_not_fit", linear_builders_refuse_what_does_not_fit},
    {"elementwise_and_row_builders_refuse_what_does_not_fit",
     elementwise_and_row_builders_refuse_what_does_not_fit},
    {"layout_and_custom_builders_refuse_what_does_not_fit",
     layout_and_custom_builders_refuse_what_does_not_fit},
    {"results_too_large_for_integers_are_refused", results_too_large_for_integers_are_refused},
    {"products_and_rows_follow_their_formulas", products_and_rows_follow_their_formulas},
    {"experts_of_one_long_row_are_their_sum", experts_of_one_long_row_are_their_sum},
    {"experts_builders_refuse_what_does_not_fit", experts_builders_refuse_what_does_not_fit},
    {"experts_follow_their_formulas", experts_follow_their_formulas},
    {"weights_of_every_type_are_decoded", weights_of_every_type_are_decoded},
    {"elements_follow_their_formulas", elements_follow_their_formulas},
    {"rows_follow_their_formulas", rows_follow_their_formulas},
    {"rope_turns_adjacent_or_halved_pairs", rope_turns_adjacent_or_halved_pairs},
    {"attention_refuses_what_does_not_fit", attention_refuses_what_does_not_fit},
    {"attention_weighs_what_a_query_sees", attention_weighs_what_a_query_sees},
    {"copies_keep_the_order_of_values", copies_keep_the_order_of_values},
    {"scattered_matrices_go_where_indices_say", scattered_matrices_go_where_indices_say},
    {"custom_nodes_call_back_with_their_operands", custom_nodes_call_back_with_their_operands},
    {"empty_tensors_pass_through_every_operation", empty_tensors_pass_through_every_operation},
    {"plain_products_are_told_from_others", plain_products_are_told_from_others},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_ops[] = {
    {"ops", NULL, NULL, NULL, NULL, op_tests},
    CU_SUITE_INFO_NULL,
};
