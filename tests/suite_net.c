/* SPDX-License-Identifier: MIT
 * Nets as programs use them: built by hand, lowered, computed by a runtime, through the public
 * headers alone. suite_net_onnx.c goes through models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/tandem.h"
#include "tests/suite_net.h"

extern CU_SuiteInfo suites_net_onnx[];

static tandem_net *new_net(void)
{
    tandem_net *net = NULL;
    check_ok(tandem_net_new(&net, NULL));
    return net;
}

static tandem_lowered *lower(tandem_net *net, const char *passes)
{
    struct tandem_lower_options options = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_lowered *lowered = NULL;
    options.passes = passes;
    check_status(tandem_net_lower(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    tandem_net_free(net);
    return lowered;
}

static void compute(tandem_lowered *lowered)
{
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = net_test_runtime();
    check_status(tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error),
                 TANDEM_OK, NULL, &error);
    tandem_runtime_close(runtime);
}

static void check_floats(const tandem_lowered *lowered, int output, const float *want, size_t n)
{
    struct tandem_net_array got = {.name = NULL};
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(lowered, output, &got));
    check_int(got.bytes, n * sizeof(float));
    for (size_t i = 0; i < n && got.bytes == n * sizeof(float); i++) {
        const float x = ((const float *)got.data)[i];
        if (!(fabsf(x - want[i]) <= 1e-5F * (1.0F + fabsf(want[i])))) {
            printf("value %zu is %g, expected %g\n", i, (double)x, (double)want[i]);
            CU_FAIL("a wrong value");
        }
    }
}

/* Lowers a net of one output without inputs, computes it and frees it. */
static void check_values(tandem_net *net, int value, const float *want, size_t n)
{
    (void)tandem_net_output(net, tandem_net_cast(net, value, TANDEM_DTYPE_F32), "y");
    tandem_lowered *lowered = lower(net, NULL);
    compute(lowered);
    check_floats(lowered, 0, want, n);
    tandem_lowered_free(lowered);
}

static const float six[] = {3, -1, 2, 0, 5, -4};
static const int64_t two_by_three[] = {2, 3};

/* 3 -1 2 / 0 5 -4; an input's values are not known, so that nothing is computed ahead. */
static int matrix(tandem_net *net)
{
    return tandem_net_constant(net, TANDEM_DTYPE_F32, 2, two_by_three, six);
}

/* ---- builders ---- */

static void views_move_nothing(void)
{
    static const int swap[] = {1, 0};
    static const int64_t three_by_two[] = {3, 2};
    static const int64_t wide[] = {2, 2, 3};
    tandem_net *net = new_net();
    check_values(net, tandem_net_permute(net, matrix(net), swap), (float[]){3, 0, -1, 5, 2, -4}, 6);
    net = new_net();
    check_values(net, tandem_net_reshape(net, matrix(net), 2, three_by_two), six, 6);
    net = new_net();
    check_values(net, tandem_net_expand(net, matrix(net), 3, wide),
                 (float[]){3, -1, 2, 0, 5, -4, 3, -1, 2, 0, 5, -4}, 12);
    net = new_net();
    check_values(net, tandem_net_slice(net, matrix(net), -1, 2, 2, -2), (float[]){2, 3, -4, 0}, 4);
}

static void turn(void *user, const int64_t *index, int64_t *from)
{
    const int64_t *last = user;
    from[0] = *last - index[1];
    from[1] = index[0];
}

static void by_squares(void *user, const int64_t *index, int64_t *from)
{
    (void)user;
    from[0] = index[0] * index[0] / 4;
    from[1] = (index[0] * index[0] + 1) % 3;
}

static void values_move_by_a_function(void)
{
    static const int64_t three_by_two[] = {3, 2};
    static const int64_t four[] = {4};
    static const int64_t none[] = {0};
    int64_t last = 1;
    tandem_net *net = new_net();
    check_values(net, tandem_net_reindex(net, matrix(net), 2, three_by_two, turn, &last, "turn"),
                 (float[]){0, 3, 5, -1, -4, 2}, 6);
    net = new_net(); /* of a view */
    static const int swap[] = {1, 0};
    last = 2;
    check_values(net,
                 tandem_net_reindex(net, tandem_net_permute(net, matrix(net), swap), 2,
                                    two_by_three, turn, &last, NULL),
                 (float[]){2, -1, 3, -4, 5, 0}, 6);
    net = new_net();
    struct tandem_error error = {.text = ""};
    CU_ASSERT_EQUAL(tandem_net_reindex(net, matrix(net), 1, four, by_squares, NULL, "squares"),
                    TANDEM_NET_NONE);
    check_status(tandem_net_status(net, &error), TANDEM_E_ARGUMENT,
                 "value 3 is from index 2 of dimension 0, expected one of 2", &error);
    tandem_net_free(net);
    static const int64_t three[] = {3};
    net = new_net();
    const int x = tandem_net_input(net, TANDEM_DTYPE_F32, 2, two_by_three, "x");
    (void)tandem_net_output(net, tandem_net_reindex(net, x, 1, three, by_squares, NULL, "squares"),
                            "y");
    tandem_lowered *lowered = lower(net, NULL);
    const tandem_graph *graph = tandem_lowered_graph(lowered);
    CU_ASSERT_STRING_EQUAL(tandem_tensor_name(tandem_graph_node(graph, 0)), "reindex squares");
    tandem_lowered_free(lowered);
    net = new_net();
    check_values(net, tandem_net_reindex(net, matrix(net), 1, three, by_squares, NULL, "squares"),
                 (float[]){-1, 2, -4}, 3);
    net = new_net();
    CU_ASSERT_TRUE(tandem_net_reindex(net, matrix(net), 1, none, by_squares, NULL, "") >= 0);
    CU_ASSERT_EQUAL(tandem_net_reindex(net, matrix(net), 1, three, NULL, NULL, ""),
                    TANDEM_NET_NONE);
    tandem_net_free(net);
}

static void values_are_computed_one_by_one(void)
{
    tandem_net *net = new_net();
    check_values(net, tandem_net_unary(net, TANDEM_UNARY_ABS, matrix(net)),
                 (float[]){3, 1, 2, 0, 5, 4}, 6);
    net = new_net();
    check_values(net,
                 tandem_net_binary(net, TANDEM_BINARY_SUB, matrix(net),
                                   tandem_net_scalar(net, TANDEM_DTYPE_F32, 1.0)),
                 (float[]){2, -2, 1, -1, 4, -5}, 6);
    net = new_net();
    const int zero = tandem_net_scalar(net, TANDEM_DTYPE_F32, 0.0);
    const int is_less = tandem_net_binary(net, TANDEM_BINARY_LESS, matrix(net), zero);
    check_values(net, tandem_net_select(net, is_less, zero, matrix(net)),
                 (float[]){3, 0, 2, 0, 5, 0}, 6);
}

static void axes_are_reduced_sorted_and_normed(void)
{
    static const int last[] = {-1};
    tandem_net *net = new_net();
    check_values(net, tandem_net_reduce(net, TANDEM_REDUCE_SUM, matrix(net), NULL, 0, false),
                 (float[]){5}, 1);
    net = new_net();
    check_values(net, tandem_net_reduce(net, TANDEM_REDUCE_MAX, matrix(net), last, 1, true),
                 (float[]){3, 5}, 2);
    net = new_net();
    check_values(net, tandem_net_arg_reduce(net, true, matrix(net), 1), (float[]){0, 1}, 2);
    net = new_net();
    check_values(net, tandem_net_scan(net, matrix(net), 1), (float[]){3, 2, 4, 0, 5, 1}, 6);
    net = new_net();
    check_values(net, tandem_net_arg_sort(net, matrix(net), 1, false), (float[]){1, 2, 0, 2, 0, 1},
                 6);
    net = new_net();
    check_values(net,
                 tandem_net_reduce(net, TANDEM_REDUCE_SUM, tandem_net_softmax(net, matrix(net), 1),
                                   last, 1, false),
                 (float[]){1, 1}, 2);
    net = new_net();
    check_values(net, tandem_net_norm(net, TANDEM_NORM_RMS, matrix(net), last, 1, 0.0),
                 (float[]){1.388730F, -0.462910F, 0.925820F, 0, 1.352504F, -1.082003F}, 6);
}

static void products_and_windows_are_those_of_the_books(void)
{
    static const int swap[] = {1, 0};
    static const int64_t image[] = {1, 1, 2, 3};
    static const int64_t cube[] = {1, 2, 3};
    struct tandem_window window = TANDEM_WINDOW_INIT;
    tandem_net *net = new_net();
    check_values(net,
                 tandem_net_matmul(net, matrix(net), tandem_net_permute(net, matrix(net), swap)),
                 (float[]){14, -13, -13, 41}, 4);
    net = new_net();
    const int w =
        tandem_net_constant(net, TANDEM_DTYPE_F32, 4, (int64_t[]){1, 1, 1, 2}, (float[]){1, 10});
    check_values(net, tandem_net_conv(net, tandem_net_reshape(net, matrix(net), 4, image), w, NULL),
                 (float[]){-7, 19, 50, -35}, 4);
    net = new_net();
    window.extent[0] = 2;
    window.extent[1] = 1;
    window.stride[1] = 2;
    check_values(net,
                 tandem_net_pool(net, TANDEM_POOL_MAX,
                                 tandem_net_reshape(net, matrix(net), 4, image), &window),
                 (float[]){3, 2}, 2);
    net = new_net();
    const int q = tandem_net_reshape(net, matrix(net), 3, cube);
    check_values(net, tandem_net_attention(net, q, q, q, TANDEM_NET_NONE, 100.0), six, 6);
}

static void values_are_joined_padded_and_picked(void)
{
    static const int64_t before[] = {0, 1};
    static const int64_t after[] = {0, -2};
    static const int64_t two[] = {2};
    static const int64_t column[] = {2, 1};
    static const int64_t indices[] = {1, -3};
    tandem_net *net = new_net();
    const int both[] = {matrix(net), matrix(net)};
    check_values(net, tandem_net_concat(net, both, 2, 0),
                 (float[]){3, -1, 2, 0, 5, -4, 3, -1, 2, 0, 5, -4}, 12);
    net = new_net();
    check_values(net,
                 tandem_net_pad(net, TANDEM_PAD_CONSTANT, matrix(net), before, after,
                                tandem_net_scalar(net, TANDEM_DTYPE_F32, 7.0)),
                 (float[]){7, 3, 7, 0}, 4);
    net = new_net();
    int list = tandem_net_constant(net, TANDEM_DTYPE_I64, 1, two, indices);
    check_values(net, tandem_net_gather(net, matrix(net), list, 1), (float[]){-1, 3, 5, 0}, 4);
    net = new_net();
    list = tandem_net_constant(net, TANDEM_DTYPE_I64, 2, column, indices);
    check_values(net, tandem_net_gather_elements(net, matrix(net), list, 1), (float[]){-1, 0}, 2);
    net = new_net();
    list = tandem_net_constant(net, TANDEM_DTYPE_I64, 2, column, indices);
    const int updates = tandem_net_constant(net, TANDEM_DTYPE_F32, 2, column, (float[]){10, 20});
    check_values(
        net, tandem_net_scatter_elements(net, TANDEM_SCATTER_ADD, matrix(net), list, updates, 1),
        (float[]){3, 9, 2, 20, 5, -4}, 6);
}

static void types_have_names_and_sizes(void)
{
    static const struct {
        enum tandem_dtype type;
        const char *name;
        size_t bytes;
    } rows[] = {{TANDEM_DTYPE_F32, "float32", 4}, {TANDEM_DTYPE_BF16, "bfloat16", 2},
                {TANDEM_DTYPE_I64, "int64", 8},   {TANDEM_DTYPE_U8, "uint8", 1},
                {TANDEM_DTYPE_BOOL, "bool", 1},   {(enum tandem_dtype)99, "unknown", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_string(tandem_dtype_name(rows[i].type), rows[i].name);
        check_int(tandem_dtype_bytes(rows[i].type), rows[i].bytes);
    }
}

/* A result of bytes passes through a register of the program, the last one, which holds a part of a
 * long row. */
static void long_rows_of_floats_become_truths(void)
{
    enum { WIDTH = 8000, TIMES = 12 };
    static const int64_t dims[] = {WIDTH};
    struct tandem_net_array in, truths;
    struct tandem_error error = {.text = ""};
    tandem_lowered *lowered = NULL;
    tandem_net *net = new_net();
    int x = tandem_net_input(net, TANDEM_DTYPE_F32, 1, dims, "x");
    const int step = tandem_net_scalar(net, TANDEM_DTYPE_F32, 3.0);
    for (int k = 0; k < TIMES; k++) {
        x = tandem_net_binary(net, TANDEM_BINARY_SUB, x, step);
        x = tandem_net_unary(net, TANDEM_UNARY_ABS, x);
    }
    (void)tandem_net_output(net, tandem_net_binary(net, TANDEM_BINARY_LESS, x, step), "truths");
    check_status(tandem_net_lower(net, NULL, &lowered, &error), TANDEM_OK, NULL, &error);
    tandem_net_free(net);
    CU_ASSERT_TRUE_FATAL(tandem_lowered_input(lowered, 0, &in));
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(lowered, 0, &truths));
    for (int i = 0; i < WIDTH; i++) {
        ((float *)in.data)[i] = (float)(i % 90);
    }
    tandem_runtime *runtime = net_test_runtime();
    check_ok(tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error));
    int n_wrong = 0;
    for (int i = 0; i < WIDTH; i++) {
        int value = i % 90;
        for (int k = 0; k < TIMES; k++) {
            value = abs(value - 3);
        }
        n_wrong += ((const uint8_t *)truths.data)[i] != (value < 3);
    }
    check_int(n_wrong, 0);
    tandem_runtime_close(runtime);
    tandem_lowered_free(lowered);
}

/* ---- errors ---- */

/* One wrong call, by number; true when there is one of this number. */
static bool call_wrongly(tandem_net *net, int i, int *out)
{
    static const int twice[] = {0, 0};
    static const int far[] = {5};
    static const int64_t below[] = {-2, -3};
    static const int64_t four[] = {4};
    struct tandem_window window = TANDEM_WINDOW_INIT;
    const int x = matrix(net);
    const int n = tandem_net_scalar(net, TANDEM_DTYPE_I64, 1.0);
    const int wrong[] = {
        tandem_net_input(net, TANDEM_DTYPE_F32, i == 0 ? 9 : 0, NULL, "x"),
        tandem_net_input(net, i == 1 ? (enum tandem_dtype)77 : TANDEM_DTYPE_F32, 0, NULL, NULL),
        i == 2 ? tandem_net_constant(net, TANDEM_DTYPE_F32, 2, below, six) : 0,
        i == 3 ? tandem_net_constant(net, TANDEM_DTYPE_F32, 2, two_by_three, NULL) : 0,
        i == 4 ? tandem_net_permute(net, x, twice) : 0,
        i == 5 ? tandem_net_reshape(net, x, 1, four) : 0,
        i == 6 ? tandem_net_expand(net, x, 1, four) : 0,
        i == 7 ? tandem_net_slice(net, x, 2, 0, 1, 1) : 0,
        i == 8 ? tandem_net_slice(net, x, 1, 1, 3, 1) : 0,
        i == 9 ? tandem_net_slice(net, x, 1, 1, 2, INT64_MIN) : 0,
        i == 10 ? tandem_net_slice(net, x, 1, 0, 1, 0) : 0,
        i == 11 ? tandem_net_unary(net, (enum tandem_unary)1000, x) : 0,
        i == 12 ? tandem_net_binary(net, TANDEM_BINARY_ADD, x, n) : 0,
        i == 13 ? tandem_net_binary(net, TANDEM_BINARY_ADD, x, 4711) : 0,
        i == 14 ? tandem_net_select(net, x, x, x) : 0,
        i == 15 ? tandem_net_reduce(net, TANDEM_REDUCE_SUM, x, far, 1, false) : 0,
        i == 16 ? tandem_net_reduce(net, TANDEM_REDUCE_SUM, x, NULL, 3, false) : 0,
        i == 17 ? tandem_net_softmax(net, x, -3) : 0,
        i == 18 ? tandem_net_matmul(net, x, x) : 0,
        i == 19 ? tandem_net_conv(net, x, x, NULL) : 0,
        i == 20 ? tandem_net_pool(net, TANDEM_POOL_SUM, x, &window) : 0,
        i == 21 ? tandem_net_concat(net, NULL, 2, 0) : 0,
        i == 22 ? tandem_net_concat(net, &x, 0, 0) : 0,
        i == 23 ? tandem_net_pad(net, TANDEM_PAD_EDGE, x, NULL, four, 0) : 0,
        i == 24 ? tandem_net_pad(net, TANDEM_PAD_CONSTANT, x, two_by_three, two_by_three, x) : 0,
        i == 25 ? tandem_net_gather(net, x, x, 0) : 0,
        i == 26 ? tandem_net_gather(net, x, n, 7) : 0,
        i == 27 ? tandem_net_attention(net, x, x, x, TANDEM_NET_NONE, 1.0) : 0,
        i == 28 ? tandem_net_output(net, TANDEM_NET_NONE, "y") : 0,
        i == 29 ? tandem_net_cast(net, x, (enum tandem_dtype) - 1) : 0,
        i == 30 ? tandem_net_norm(net, (enum tandem_norm)9, x, far, 0, 0.0) : 0,
    };
    const int count = (int)(sizeof(wrong) / sizeof(wrong[0]));
    *out = i < count ? wrong[i] : 0;
    return i < count;
}

static void wrong_arguments_are_recorded_until_the_error_is_cleared(void)
{
    int result = 0;
    tandem_net *net = new_net();
    for (int i = 0; call_wrongly(net, i, &result); i++) {
        struct tandem_error error = {.text = ""};
        tandem_lowered *lowered = NULL;
        const enum tandem_status status = tandem_net_status(net, &error);
        if (result != TANDEM_NET_NONE || status == TANDEM_OK || error.text[0] == '\0') {
            printf("wrong call %d gives %d, %s\n", i, result, error.text);
            CU_FAIL("a wrong call is taken");
        }
        check_int(tandem_net_unary(net, TANDEM_UNARY_NEG, 0), TANDEM_NET_NONE);
        check_int(tandem_net_lower(net, NULL, &lowered, NULL), status);
        CU_ASSERT_PTR_NULL(lowered);
        tandem_net_clear_error(net);
        check_status(tandem_net_status(net, &error), TANDEM_OK, NULL, &error);
        const int negated = tandem_net_unary(net, TANDEM_UNARY_NEG, 0);
        (void)tandem_net_output(net, negated, "negated");
        check_status(tandem_net_lower(net, NULL, &lowered, &error), TANDEM_OK, NULL, &error);
        check_int(tandem_lowered_output_count(lowered), 1);
        check_int(tandem_lowered_find_output(lowered, "negated"), 0);
        tandem_lowered_free(lowered);
        tandem_net_clear_error(net); /* lowered: nothing to forget */
        tandem_net_free(net);
        net = new_net();
    }
    tandem_net_free(net);
}

static void a_net_is_lowered_once_and_only_with_outputs_and_known_passes(void)
{
    struct tandem_lower_options options = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    struct tandem_net_array array;
    tandem_lowered *lowered = NULL;
    tandem_net *net = new_net();
    const int x = tandem_net_input(net, TANDEM_DTYPE_F32, 2, two_by_three, "x");
    check_status(tandem_net_lower(net, NULL, &lowered, &error), TANDEM_E_ARGUMENT, "no output",
                 &error);
    (void)tandem_net_output(net, x, "y");
    options.passes = "fold,melt";
    check_status(tandem_net_lower(net, &options, &lowered, &error), TANDEM_E_ARGUMENT, "fold,melt",
                 &error);
    options.passes = "fold,equal";
    check_status(tandem_net_lower(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    check_status(tandem_net_status(net, &error), TANDEM_E_STATE, "lowered", &error);
    check_status(tandem_net_lower(net, NULL, &lowered, &error), TANDEM_E_STATE, "lowered", &error);
    check_int(tandem_net_scalar(net, TANDEM_DTYPE_F32, 1.0), TANDEM_NET_NONE);
    CU_ASSERT_FALSE(tandem_net_value(net, x, &array));
    tandem_lowered_free(lowered);
    tandem_net_free(net);
}

/* ---- computing ---- */

static int append(void *user, const char *bytes, unsigned long n)
{
    char *text = user;
    const size_t used = strlen(text);
    snprintf(text + used, 512 - used, "%.*s", (int)n, bytes);
    return 0;
}

static int refuse(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    (void)bytes;
    return n > 0;
}

static void a_net_tells_its_values_and_its_text(void)
{
    char text[512] = "";
    struct tandem_net_array array = {.name = NULL};
    tandem_net *net = new_net();
    const int x = tandem_net_input(net, TANDEM_DTYPE_I16, 2, two_by_three, "x");
    (void)tandem_net_unary(net, TANDEM_UNARY_NEG, x);
    CU_ASSERT_TRUE(tandem_net_value(net, x, &array));
    check_int(array.type, TANDEM_DTYPE_I16);
    check_int(array.n_dims, 2);
    check_int(array.dims[1], 3);
    check_int(array.bytes, 12);
    CU_ASSERT_PTR_NULL(array.data);
    CU_ASSERT_FALSE(tandem_net_value(net, 99, &array));
    check_ok(tandem_net_print(net, append, text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "int16"));
    check_int(tandem_net_print(net, refuse, NULL), TANDEM_E_FILE);
    tandem_net_free(net);
}

static void inputs_are_filled_and_outputs_read_in_place_again_and_again(void)
{
    static const char *const passes[] = {NULL, "none"};
    for (int i = 0; i < 2; i++) {
        struct tandem_net_array x = {.name = NULL}, y = {.name = NULL};
        struct tandem_error error = {.text = ""};
        tandem_net *net = new_net();
        const int value = tandem_net_input(net, TANDEM_DTYPE_F32, 2, two_by_three, "x");
        (void)tandem_net_output(net, tandem_net_binary(net, TANDEM_BINARY_MUL, value, matrix(net)),
                                "product");
        (void)tandem_net_output(net, value, "same");
        tandem_lowered *lowered = lower(net, passes[i]);
        check_int(tandem_lowered_input_count(lowered), 1);
        check_int(tandem_lowered_output_count(lowered), 2);
        check_int(tandem_lowered_find_input(lowered, "x"), 0);
        check_int(tandem_lowered_find_output(lowered, "same"), 1);
        check_int(tandem_lowered_find_output(lowered, "other"), -1);
        check_ok(tandem_lowered_set_input(lowered, 0, six, sizeof(six), &error));
        compute(lowered);
        check_floats(lowered, 0, (float[]){9, 1, 4, 0, 25, 16}, 6);
        check_floats(lowered, 1, six, 6);
        CU_ASSERT_TRUE(tandem_lowered_input(lowered, 0, &x));
        ((float *)x.data)[5] = 1.0F;
        compute(lowered);
        check_floats(lowered, 0, (float[]){9, 1, 4, 0, 25, -4}, 6);
        CU_ASSERT_TRUE(tandem_lowered_output(lowered, 0, &y));
        check_string(x.name, "x");
        check_string(y.name, "product");
        CU_ASSERT_FALSE(tandem_lowered_output(lowered, 2, &y));
        check_status(tandem_lowered_set_input(lowered, 0, six, 4, &error), TANDEM_E_SHAPE,
                     "4 bytes, expected 24", &error);
        check_status(tandem_lowered_set_input(lowered, 1, six, 4, &error), TANDEM_E_ARGUMENT,
                     "input 1", &error);
        tandem_lowered_free(lowered);
    }
}

/* A convolution of 16 channels, for which the CPU has ways that have no text; every value is 1. */
static tandem_lowered *convolved(bool for_device)
{
    enum { CHANNELS = 16, SIDE = 6 };
    static const int64_t image[] = {1, CHANNELS, SIDE, SIDE};
    static const int64_t weights[] = {CHANNELS, CHANNELS, 3, 3};
    static float ones[CHANNELS * CHANNELS * 9];
    struct tandem_lower_options options = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_lowered *lowered = NULL;
    tandem_net *net = new_net();
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        ones[i] = 1;
    }
    const int x = tandem_net_input(net, TANDEM_DTYPE_F32, 4, image, "x");
    const int w = tandem_net_constant(net, TANDEM_DTYPE_F32, 4, weights, ones);
    const int y = tandem_net_conv(net, tandem_net_unary(net, TANDEM_UNARY_ABS, x), w, NULL);
    (void)tandem_net_output(net, tandem_net_unary(net, TANDEM_UNARY_NEG, y), "y");
    options.for_device = for_device;
    check_status(tandem_net_lower(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    check_ok(
        tandem_lowered_set_input(lowered, 0, ones, CHANNELS * SIDE * SIDE * sizeof(float), &error));
    tandem_net_free(net);
    return lowered;
}

static int count_on_cpu(tandem_runtime *runtime, const tandem_lowered *lowered)
{
    tandem_plan *plan = NULL;
    int n = 0;
    check_ok(tandem_runtime_plan(runtime, tandem_lowered_graph(lowered), &plan, NULL));
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        n += tandem_plan_node(plan, i)->stage[TANDEM_STAGE_COMPUTE].backend == TANDEM_BACKEND_CPU;
    }
    tandem_plan_free(plan);
    return n;
}

static void a_net_lowered_for_a_device_runs_there_and_on_the_cpu(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    float want[16 * 4 * 4];
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        want[i] = -144;
    }
    options.table_path = "";
    options.settings = "opencl:device=0,cache=off";
    options.profile = "opencl";
    (void)tandem_runtime_open(&options, &runtime, NULL);
    const bool has_device = runtime != NULL && tandem_runtime_backend_count(runtime) > 1;
    for (int i = 0; i < 2; i++) {
        tandem_lowered *lowered = convolved(i == 1);
        compute(lowered);
        check_floats(lowered, 0, want, sizeof(want) / sizeof(want[0]));
        if (has_device) {
            CU_ASSERT_EQUAL(count_on_cpu(runtime, lowered) == 0, i == 1);
            check_ok(
                tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, NULL));
            check_floats(lowered, 0, want, sizeof(want) / sizeof(want[0]));
        }
        tandem_lowered_free(lowered);
    }
    tandem_runtime_close(runtime);
    if (!has_device) {
        tnd_skip("opencl: no device");
    }
}

static CU_TestInfo tests_builders[] = {
    {"views move nothing", views_move_nothing},
    {"values move by a function", values_move_by_a_function},
    {"values are computed one by one", values_are_computed_one_by_one},
    {"axes are reduced, sorted and normed", axes_are_reduced_sorted_and_normed},
    {"products and windows are those of the books", products_and_windows_are_those_of_the_books},
    {"values are joined, padded and picked", values_are_joined_padded_and_picked},
    {"types have names and sizes", types_have_names_and_sizes},
    {"long rows of floats become truths", long_rows_of_floats_become_truths},
    {"wrong arguments are recorded until the error is cleared",
     wrong_arguments_are_recorded_until_the_error_is_cleared},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo tests_computing[] = {
    {"a net is lowered once, and only with outputs and known passes",
     a_net_is_lowered_once_and_only_with_outputs_and_known_passes},
    {"a net lowered for a device runs there and on the CPU",
     a_net_lowered_for_a_device_runs_there_and_on_the_cpu},
    {"a net tells its values and its text", a_net_tells_its_values_and_its_text},
    {"inputs are filled and outputs read in place, again and again",
     inputs_are_filled_and_outputs_read_in_place_again_and_again},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {"builders of nets", NULL, NULL, NULL, NULL, tests_builders},
    {"lowered nets", NULL, NULL, NULL, NULL, tests_computing},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, suites_net_onnx, NULL);
}
