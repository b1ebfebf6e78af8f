/* SPDX-License-Identifier: MIT
 * Operations of the CPU backend other than matrix products, against the double-precision reference:
 * every operation, odd shapes, strided views, all instruction sets of this machine, 1 to 8
 * workers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_cpu_cases.h"
#include "tests/suite_backends_stage.h"

/* ---- workers that take turns on the main thread ---- */

struct turn {
    struct tandem_worker base;
    int64_t *taken;
};

/* Each worker leaves work for those that come later, so that all of them get some. */
static bool turn_next(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                      int64_t *out_begin, int64_t *out_end)
{
    struct turn *turn = (struct turn *)worker;
    int64_t share = n_items / worker->count * (worker->index + 1);
    bool is_last = worker->index + 1 == worker->count;
    if (*turn->taken >= (is_last ? n_items : share)) {
        return false;
    }
    *out_begin = *turn->taken;
    *out_end = *out_begin + chunk < n_items ? *out_begin + chunk : n_items;
    *turn->taken = *out_end;
    return true;
}

static void turn_barrier(struct tandem_worker *worker)
{
    (void)worker;
}

/* Runs the node by `count` workers in turn; the first error wins. */
static enum tandem_status run_node(const struct tnd_cpu_kernels *kernels, const tandem_tensor *node,
                                   int count, struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    int64_t taken = 0;
    const size_t bytes = tnd_cpu_node_scratch(node);
    for (int i = 0; i < count && status == TANDEM_OK; i++) {
        struct turn turn = {.base = {.index = i,
                                     .count = count,
                                     .own_threads = 1,
                                     .scratch = tnd_guarded_alloc(bytes, 4),
                                     .scratch_bytes = bytes,
                                     .error = error,
                                     .next = turn_next,
                                     .barrier = turn_barrier},
                            .taken = &taken};
        status = tnd_cpu_node_run(kernels, node, &turn.base);
        tnd_guarded_free(turn.base.scratch);
    }
    return status;
}

enum tandem_status tnd_cpu_run_in_turn(const struct tnd_cpu_kernels *kernels,
                                       const tandem_tensor *node, int count,
                                       struct tandem_error *error)
{
    return run_node(kernels, node, count, error);
}

/* ---- instruction sets ---- */

enum { MAX_ISAS = 4 };
static struct tnd_cpu_kernels isas[MAX_ISAS]; /* the first is the plain one */
static int n_isas;

static void find_isas(void)
{
    static const char *const levels[MAX_ISAS] = {"scalar", "avx2", "avx512", "neon"};
    n_isas = 0;
    for (int i = 0; i < MAX_ISAS; i++) {
        tnd_cpu_kernels_for(tnd_cpu_mask(tnd_cpu_features_all(), levels[i]), &isas[n_isas]);
        if (strcmp(isas[n_isas].vec.isa, levels[i]) == 0) {
            n_isas++;
        }
    }
}

/* ---- all cases against the reference ---- */

/* Whether the results are equal: bits where the operation is exact, else within the case's
 * error. */
static void compare(const struct tnd_cpu_case *one, const tandem_tensor *node, const void *want,
                    const struct tnd_cpu_kernels *kernels, int workers)
{
    const bool has_words = kernels->attention.words.attend != NULL;
    char what[128];
    snprintf(what, sizeof(what), "%s, %s, %d workers", one->name, kernels->vec.isa, workers);
    if (one->limit == 0) {
        check_bits(node->data, want, tandem_tensor_bytes(node), what);
    } else {
        const bool is_rounded = one->words_limit > 0 && has_words;
        check_nmse(node->data, want, tandem_tensor_elements(node),
                   is_rounded ? one->words_limit : one->limit, what);
    }
}

static void run_case(const struct tnd_cpu_case *one)
{
    struct tandem_error error = {0};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *node = tnd_test_node(context, one->build(context, &rng));
    size_t bytes = node != NULL ? tandem_tensor_bytes(node) : 0;
    char *want = malloc(bytes + 1);
    char *first = malloc(bytes + 1);
    if (node == NULL) {
        CU_FAIL("the case cannot be built");
        printf("\n    case %s\n", one->name);
    } else {
        tnd_test_spoil(node);
        (void)check_status(tnd_eval_ref_node(node, &error), TANDEM_OK, NULL, &error);
        memcpy(want, node->data, bytes);
        for (int i = 0; i < n_isas; i++) {
            for (int workers = 1; workers <= 8; workers++) {
                tnd_test_spoil(node);
                (void)check_status(run_node(&isas[i], node, workers, &error), TANDEM_OK, NULL,
                                   &error);
                if (workers == 1) {
                    compare(one, node, want, &isas[i], workers);
                    memcpy(first, node->data, bytes);
                }
                (void)check_bits(node->data, first, bytes, one->name);
            }
        }
    }
    free(want);
    free(first);
    tandem_context_free(context);
}

static void every_operation_matches_the_reference_and_ignores_the_workers(void)
{
    find_isas();
    for (int i = 0; i < tnd_cpu_case_count; i++) {
        run_case(&tnd_cpu_cases[i]);
    }
}

/* ---- in place ---- */

static void element_operations_may_overwrite_their_first_operand(void)
{
    struct tandem_error error = {0};
    find_isas();
    for (int c = 0; c < tnd_cpu_case_count; c++) {
        tandem_context *context = NULL;
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
        tandem_tensor *node = tnd_test_node(context, tnd_cpu_cases[c].build(context, &rng));
        tandem_tensor *a = node != NULL && node->n_src > 0 ? node->src[0] : NULL;
        if (a != NULL && tnd_op_may_run_in_place(node->op) && tandem_tensor_is_contiguous(a)) {
            size_t bytes = tandem_tensor_bytes(a);
            char *saved = malloc(bytes + 1);
            char *want = malloc(bytes + 1);
            void *apart = node->data;
            memcpy(saved, a->data, bytes);
            for (int i = 0; i < n_isas; i++) {
                (void)check_ok(run_node(&isas[i], node, 3, &error));
                memcpy(want, node->data, bytes);
                node->data = a->data;
                (void)check_ok(run_node(&isas[i], node, 3, &error));
                (void)check_bits(node->data, want, bytes, tnd_cpu_cases[c].name);
                node->data = apart;
                memcpy(a->data, saved, bytes);
            }
            free(saved);
            free(want);
        }
        tandem_context_free(context);
    }
}

/* ---- values that hurt ---- */

static tandem_tensor *row_of(tandem_context *context, const float *values, int64_t n)
{
    tandem_tensor *row = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    memcpy(row->data, values, (size_t)n * sizeof(float));
    return row;
}

static void a_row_that_is_wholly_masked_becomes_zeros(void)
{
    enum { N = 37 };
    float values[N], mask[N];
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    for (int i = 0; i < N; i++) {
        values[i] = (float)i;
        mask[i] = -INFINITY;
    }
    tandem_tensor *a = row_of(context, values, N);
    tandem_tensor *b = row_of(context, mask, N);
    tandem_tensor *node = tnd_test_node(context, tandem_soft_max(context, a, b, 1.0f));
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    const float *y = node->data;
    find_isas();
    for (int i = 0; i < n_isas; i++) {
        int wrong = 0;
        tnd_test_spoil(node);
        (void)check_ok(run_node(&isas[i], node, 1, NULL));
        for (int j = 0; j < N; j++) {
            wrong += y[j] != 0.0f;
        }
        ((float *)b->data)[3] = 0; /* one value is left */
        ((float *)b->data)[36] = NAN;
        (void)check_ok(run_node(&isas[i], node, 1, NULL));
        for (int j = 0; j < N; j++) {
            wrong += !isnan(y[j]); /* a NaN that is not masked spoils its row and is seen */
        }
        ((float *)b->data)[36] = -INFINITY;
        (void)check_ok(run_node(&isas[i], node, 1, NULL));
        for (int j = 0; j < N; j++) {
            wrong += y[j] != (j == 3 ? 1.0f : 0.0f);
        }
        ((float *)b->data)[3] = -INFINITY;
        check_int(wrong, 0);
    }
    tandem_context_free(context);
}

static void large_scores_do_not_overflow_soft_max(void)
{
    static const float values[] = {1e30f, -1e30f, 1e30f, 3e38f, -3e38f, 0, 3e38f, 1, 2};
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *a = row_of(context, values, 9);
    tandem_tensor *node = tnd_test_node(context, tandem_soft_max(context, a, NULL, 1.0f));
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    const float *y = node->data;
    find_isas();
    for (int i = 0; i < n_isas; i++) {
        (void)check_ok(run_node(&isas[i], node, 1, NULL));
        CU_ASSERT_TRUE(y[3] == 0.5f && y[6] == 0.5f && y[0] == 0 && y[4] == 0 && y[8] == 0);
    }
    tandem_context_free(context);
}

/* ---- failures ---- */

static void an_index_outside_the_matrix_fails_with_its_number(void)
{
    struct tandem_error error = {0};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_context *context = NULL;
    int64_t m = 3;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *w = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){4, 5, 1, 1}, &rng);
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &m);
    tandem_tensor *node = tnd_test_node(context, tandem_get_rows(context, w, ids));
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    find_isas();
    ((int32_t *)ids->data)[2] = 5;
    (void)check_status(run_node(&isas[0], node, 2, &error), TANDEM_E_ARGUMENT, "index 2 is 5",
                       &error);
    ((int32_t *)ids->data)[2] = -1;
    (void)check_status(run_node(&isas[0], node, 1, &error), TANDEM_E_ARGUMENT, "is -1", &error);
    ((int32_t *)ids->data)[2] = 4;
    (void)check_status(run_node(&isas[0], node, 1, &error), TANDEM_OK, NULL, &error);
    tandem_context_free(context);
}

static void rows_of_integers_stay_as_they_are(void)
{
    static const int32_t rows[] = {-1, INT32_MIN, 7, 0x7fa00000, 3, 4};
    static const int32_t want[] = {7, 0x7fa00000, 3, 4, -1, INT32_MIN};
    tandem_context *context = NULL;
    int64_t m = 3;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){2, 3});
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &m);
    memcpy(w->data, rows, sizeof(rows));
    memcpy(ids->data, (int32_t[]){1, 2, 0}, 3 * sizeof(int32_t));
    tandem_tensor *node = tnd_test_node(context, tandem_get_rows(context, w, ids));
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    find_isas();
    check_ok(run_node(&isas[0], node, 2, NULL));
    check_bits(node->data, want, sizeof(want), "rows of integers");
    tandem_context_free(context);
}

static enum tandem_status refuse(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    (void)user;
    (void)node;
    return begin <= 7 && 7 < end ? TANDEM_E_LIMIT : TANDEM_OK;
}

static void a_callback_that_fails_ends_the_node_with_its_status(void)
{
    struct tandem_error error = {0};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_context *context = NULL;
    int64_t n = 4;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *a = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){4, 1, 1, 1}, &rng);
    tandem_tensor *node =
        tnd_test_node(context, tandem_custom(context, 1, &n, &a, 1, 10, refuse, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    find_isas();
    (void)check_status(run_node(&isas[0], node, 3, &error), TANDEM_E_LIMIT, "items 7 to 7", &error);
    tandem_context_free(context);
}

/* ---- the vtable ---- */

static void the_backend_describes_itself_and_says_what_it_cannot_do(void)
{
    struct tandem_error error = {0};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct tandem_backend_options options = {.size = sizeof(options), .n_threads_max = 1};
    tandem_backend *backend = NULL;
    tandem_context *context = NULL;
    options.settings = "colour=blue";
    (void)check_status(tnd_backend_cpu.open(&options, &backend, &error), TANDEM_E_ARGUMENT,
                       "colour=blue", &error);
    CU_ASSERT_PTR_NULL(backend);
    options.settings = NULL;
    tnd_alloc_fail_after(1);
    (void)check_status(tnd_backend_cpu.open(&options, &backend, &error), TANDEM_E_MEMORY, "cpu",
                       &error);
    CU_ASSERT_PTR_NULL(backend);
    CU_ASSERT_EQUAL_FATAL(tnd_backend_cpu.open(&options, &backend, &error), TANDEM_OK);
    (void)check_contains(tnd_backend_describe(backend),
                         tnd_cpu_isa_name(tnd_cpu_used(tnd_cpu_features())));
    (void)check_contains(tnd_backend_describe(backend), tnd_cpu_model());
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *a = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){4, 4, 1, 1}, &rng);
    tandem_tensor *sum = tandem_add(context, a, a);
    (void)check_ok(tnd_backend_supports(backend, sum, TANDEM_TASK_NODE, &error));
    (void)check_status(tnd_backend_supports(backend, sum, TANDEM_TASK_QUANTIZE_X, &error),
                       TANDEM_E_UNSUPPORTED_BACKEND, "add has no task quantize_x", &error);
    (void)check_status(tnd_backend_supports(backend, a, TANDEM_TASK_NODE, &error),
                       TANDEM_E_UNSUPPORTED_BACKEND, "none", &error);
    check_int(tnd_backend_scratch(backend, sum, TANDEM_TASK_NODE), 0);
    check_int(tnd_backend_workspace(backend, sum, TANDEM_TASK_NODE), 0);
    tandem_context_free(context);
    tnd_backend_cpu.close(backend);
}

static void real_threads_give_the_same_bits(void)
{
    struct tandem_backend_options options = {.size = sizeof(options), .n_threads_max = 8};
    tandem_backend *backend = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_backend_cpu.open(&options, &backend, NULL), TANDEM_OK);
    for (int c = 0; c < tnd_cpu_case_count; c++) {
        struct tandem_error error = {0};
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
        tandem_context *context = NULL;
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
        struct tnd_test_stage stage = {
            .backend = backend,
            .node = tnd_test_node(context, tnd_cpu_cases[c].build(context, &rng)),
            .task = TANDEM_TASK_NODE};
        size_t bytes = stage.node != NULL ? tandem_tensor_bytes(stage.node) : 0;
        if (bytes > 0) {
            char *first = malloc(bytes);
            tnd_test_spoil(stage.node);
            (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
            memcpy(first, stage.node->data, bytes);
            for (stage.n_workers = 2; stage.n_workers <= 8; stage.n_workers += 3) {
                tnd_test_spoil(stage.node);
                (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
                (void)check_bits(stage.node->data, first, bytes, tnd_cpu_cases[c].name);
            }
            free(first);
        }
        tandem_context_free(context);
    }
    tnd_backend_cpu.close(backend);
}

CU_TestInfo tnd_tests_cpu_ops[] = {
    {"every_operation_matches_the_reference_and_ignores_the_workers",
     every_operation_matches_the_reference_and_ignores_the_workers},
    {"element_operations_may_overwrite_their_first_operand",
     element_operations_may_overwrite_their_first_operand},
    {"a_row_that_is_wholly_masked_becomes_zeros", a_row_that_is_wholly_masked_becomes_zeros},
    {"large_scores_do_not_overflow_soft_max", large_scores_do_not_overflow_soft_max},
    {"rows_of_integers_stay_as_they_are", rows_of_integers_stay_as_they_are},
    {"an_index_outside_the_matrix_fails_with_its_number",
     an_index_outside_the_matrix_fails_with_its_number},
    {"a_callback_that_fails_ends_the_node_with_its_status",
     a_callback_that_fails_ends_the_node_with_its_status},
    {"the_backend_describes_itself_and_says_what_it_cannot_do",
     the_backend_describes_itself_and_says_what_it_cannot_do},
    {"real_threads_give_the_same_bits", real_threads_give_the_same_bits},
    {"exp_is_right_to_two_units", tnd_cpu_exp_is_right_to_two_units},
    {"functions_agree_on_all_lengths_and_hard_values",
     tnd_cpu_functions_agree_on_all_lengths_and_hard_values},
    {"row_kernels_agree_on_all_lengths", tnd_cpu_row_kernels_agree_on_all_lengths},
    {"values_do_not_depend_on_their_place_in_a_row",
     tnd_cpu_values_do_not_depend_on_their_place_in_a_row},
    {"sixteen_bit_floats_convert_like_the_plain_ones",
     tnd_cpu_sixteen_bit_floats_convert_like_the_plain_ones},
    CU_TEST_INFO_NULL,
};
