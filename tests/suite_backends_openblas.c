/* SPDX-License-Identifier: MIT
 * The OpenBLAS backend. Skipped where the library is not installed. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/openblas/openblas_library.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_stage.h"

static struct tnd_registry *registry;
static tandem_backend *openblas;
static tandem_context *context;

/* Opens what a test needs; false, after a skip, without OpenBLAS. */
static bool begin(void)
{
    struct tnd_registry_options options = {"openblas", NULL, 8, {0}};
    struct tandem_error error = {0};
    const char *reason = NULL;
    registry = NULL;
    context = NULL;
    if (!check_status(tnd_registry_open(&options, &registry, &error), TANDEM_OK, NULL, &error)) {
        return false;
    }
    int slot = tnd_registry_find(registry, "openblas", &reason);
    if (slot < 0) {
        tnd_skip("no OpenBLAS: %s", reason);
        tnd_registry_close(registry);
        return false;
    }
    openblas = tnd_registry_backend(registry, slot);
    return check_ok(tandem_context_new(NULL, &context, &error));
}

static void end(void)
{
    tandem_context_free(context);
    tnd_registry_close(registry);
}

/* Result of the reference, to be freed; the node keeps a spoiled result. */
static float *reference(tandem_tensor *node)
{
    struct tandem_error error = {0};
    (void)check_status(tnd_eval_ref_node(node, &error), TANDEM_OK, NULL, &error);
    size_t bytes = tandem_tensor_bytes(node);
    float *copy = malloc(bytes + 1);
    memcpy(copy, node->data, bytes);
    tnd_test_spoil(node);
    return copy;
}

static void check_result(const tandem_tensor *node, const float *want, const char *how)
{
    char what[96];
    snprintf(what, sizeof(what), "mul_mat:f32:n%lld:k%lld:m%lld %s", (long long)node->ne[0],
             (long long)node->src[0]->ne[0], (long long)node->ne[1], how);
    (void)check_nmse(node->data, want, tandem_tensor_elements(node), 1e-10, what);
}

static const int64_t shapes[][3] = {/* n, k, m */
                                    {1, 1, 1},   {3, 7, 2},     {64, 64, 64},  {65, 33, 17},
                                    {129, 1, 5}, {257, 128, 1}, {300, 77, 33}, {1000, 96, 300}};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void products_match_the_reference_on_odd_shapes_however_threads_are_used(void)
{
    static const struct {
        const char *how;
        int n_workers, own_threads;
    } ways[] = {{"one thread", 1, 1}, {"2 workers", 2, 1}, {"5 workers", 5, 1}, {"3 own", 1, 3}};
    if (!begin()) {
        return;
    }
    for (int i = 0; i < N_SHAPES; i++) {
        tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, shapes[i][0], shapes[i][1],
                                               shapes[i][2], tnd_test_seed() + (uint64_t)i);
        float *want = reference(node);
        for (size_t j = 0; j < sizeof(ways) / sizeof(ways[0]); j++) {
            struct tnd_test_stage stage = {.backend = openblas,
                                           .node = node,
                                           .task = TANDEM_TASK_MUL_MAT_F32,
                                           .n_workers = ways[j].n_workers,
                                           .own_threads = ways[j].own_threads};
            struct tandem_error error = {0};
            tnd_test_spoil(node);
            (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
            check_result(node, want, ways[j].how);
        }
        free(want);
    }
    end();
}

static void the_result_does_not_depend_on_the_number_of_our_threads(void)
{
    if (!begin()) {
        return;
    }
    for (int i = 0; i < N_SHAPES; i++) {
        tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, shapes[i][0], shapes[i][1],
                                               shapes[i][2], tnd_test_seed());
        struct tnd_test_stage stage = {
            .backend = openblas, .node = node, .task = TANDEM_TASK_MUL_MAT_F32, .n_workers = 1};
        struct tandem_error error = {0};
        (void)check_ok(tnd_test_run_stage(&stage, &error));
        size_t bytes = tandem_tensor_bytes(node);
        void *first = malloc(bytes);
        memcpy(first, node->data, bytes);
        for (stage.n_workers = 2; stage.n_workers <= 8; stage.n_workers++) {
            tnd_test_spoil(node);
            (void)check_ok(tnd_test_run_stage(&stage, &error));
            (void)check_bits(node->data, first, bytes, "same bits for 1 and more workers");
        }
        free(first);
    }
    end();
}

static void weights_of_other_types_come_from_the_workspace(void)
{
    if (!begin()) {
        return;
    }
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_Q4_0, 70, 96, 9, tnd_test_seed());
    const tandem_tensor *w = node->src[0];
    float *want = reference(node);
    size_t bytes = tnd_backend_workspace(openblas, node, TANDEM_TASK_MUL_MAT_F32);
    check_int(bytes, 70 * 96 * 4);
    float *workspace = tnd_guarded_alloc(bytes, 64);
    (void)check_ok(tandem_dequantize(w->type, w->data, workspace, 70 * 96));
    struct tnd_test_stage stage = {.backend = openblas,
                                   .node = node,
                                   .task = TANDEM_TASK_MUL_MAT_F32,
                                   .n_workers = 2,
                                   .workspace = workspace,
                                   .workspace_bytes = bytes};
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    check_result(node, want, "q4_0 through the workspace");
    tnd_guarded_free(workspace);
    free(want);
    end();
}

static void a_range_of_rows_writes_its_columns_and_no_others(void)
{
    static const int64_t ranges[][2] = {{0, 1}, {5, 5}, {63, 65}, {1, 200}, {130, 201}, {200, 201}};
    if (!begin()) {
        return;
    }
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, 201, 40, 6, tnd_test_seed());
    float *want = reference(node);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct tnd_test_stage stage = {.backend = openblas,
                                       .node = node,
                                       .task = TANDEM_TASK_MUL_MAT_F32,
                                       .row_begin = ranges[i][0],
                                       .row_end = ranges[i][1],
                                       .n_workers = 3};
        tnd_test_spoil(node);
        float untouched = *(float *)node->data;
        (void)check_ok(tnd_test_run_stage(&stage, NULL));
        bool right = true;
        for (int64_t j = 0; j < 201 * 6; j++) {
            float got = ((float *)node->data)[j];
            bool inside = j % 201 >= ranges[i][0] && j % 201 < ranges[i][1];
            right = right && (inside ? fabsf(got - want[j]) < 1e-4F : got == untouched);
        }
        CU_ASSERT_TRUE(right);
    }
    free(want);
    end();
}

static void empty_matrices_are_no_trouble(void)
{
    if (!begin()) {
        return;
    }
    static const int64_t empty[][3] = {{0, 4, 4}, {4, 4, 0}, {5, 0, 3}};
    for (int i = 0; i < 3; i++) {
        tandem_tensor *node =
            tnd_test_product(context, TANDEM_TYPE_F32, empty[i][0], empty[i][1], empty[i][2], 1);
        if (node == NULL || node->data == NULL) {
            continue;
        }
        tnd_test_spoil(node);
        struct tnd_test_stage stage = {
            .backend = openblas, .node = node, .task = TANDEM_TASK_MUL_MAT_F32, .n_workers = 2};
        (void)check_ok(tnd_test_run_stage(&stage, NULL));
        for (int64_t j = 0; j < tandem_tensor_elements(node); j++) {
            CU_ASSERT_EQUAL(((float *)node->data)[j], 0);
        }
    }
    end();
}

static void what_it_cannot_do_has_a_reason(void)
{
    if (!begin()) {
        return;
    }
    struct tandem_error error = {0};
    struct tnd_test_rng rng = tnd_test_rng_new(1);
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_Q8_0, 8, 32, 4, 1);
    (void)check_ok(tnd_backend_supports(openblas, node, TANDEM_TASK_MUL_MAT_F32, &error));
    (void)check_status(tnd_backend_supports(openblas, node, TANDEM_TASK_NODE, &error),
                       TANDEM_E_UNSUPPORTED_BACKEND, "mul_mat_f32 only", &error);
    tandem_tensor *w = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){4, 3, 2, 1}, &rng);
    tandem_tensor *x = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){4, 5, 2, 1}, &rng);
    tandem_tensor *batch = tnd_test_node(context, tandem_mul_mat(context, w, x));
    (void)check_status(tnd_backend_supports(openblas, batch, TANDEM_TASK_MUL_MAT_F32, &error),
                       TANDEM_E_UNSUPPORTED_BACKEND, "dense", &error);
    check_int(tnd_backend_workspace(openblas, batch, TANDEM_TASK_MUL_MAT_F32), 0);
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){5, 2});
    tandem_tensor *experts = tnd_test_node(context, tandem_mul_mat_id(context, w, x, ids));
    (void)check_status(tnd_backend_supports(openblas, experts, TANDEM_TASK_MUL_MAT_F32, &error),
                       TANDEM_E_UNSUPPORTED_BACKEND, "dense", &error);
    end();
}

static void its_idle_threads_do_not_poll(void)
{
    if (!begin()) {
        return;
    }
    /* 16 ticks, set while the library was loaded; the CPU time after a call was measured by
     * hand. */
    const struct tnd_openblas *library = NULL;
    struct tnd_openblas_load load = {NULL, false};
    (void)check_ok(tnd_openblas_acquire(&load, &library, NULL));
    if (library->flavour == TND_OPENBLAS_PTHREADS && getenv("OPENBLAS_THREAD_TIMEOUT") == NULL &&
        library->functions.thread_timeout != NULL) {
        CU_ASSERT_FALSE(library->may_spin);
        check_int(library->functions.thread_timeout(), 4);
    }
    tnd_openblas_release();
    check_contains(tnd_backend_describe(openblas), "OpenBLAS");
    end();
}

static void the_number_of_threads_is_given_back(void)
{
    if (!begin()) {
        return;
    }
    const struct tnd_openblas *library = NULL;
    struct tnd_openblas_load load = {NULL, false};
    (void)check_ok(tnd_openblas_acquire(&load, &library, NULL));
    if (library->flavour != TND_OPENBLAS_PTHREADS) {
        tnd_openblas_release();
        end();
        return;
    }
    int found = library->functions.get_num_threads();
    tnd_openblas_enter(library, 5);
    check_int(library->functions.get_num_threads(), 5);
    tnd_openblas_leave(library, 5);
    tnd_openblas_release();
    end();
    check_int(library->functions.get_num_threads(), found);
}

/* ---- several callers ---- */

struct caller {
    struct tnd_test_stage stage;
    const float *want;
    int rounds;
    bool right;
    pthread_t thread;
};

static void *call_often(void *user)
{
    struct caller *caller = user;
    int64_t n = tandem_tensor_elements(caller->stage.node);
    caller->right = true;
    for (int i = 0; i < caller->rounds; i++) {
        memset(caller->stage.node->data, 0, (size_t)n * sizeof(float));
        caller->right = caller->right && tnd_test_run_stage(&caller->stage, NULL) == TANDEM_OK;
        const float *got = caller->stage.node->data;
        for (int64_t j = 0; j < n; j++) {
            caller->right = caller->right && fabsf(got[j] - caller->want[j]) < 1e-3F;
        }
    }
    return NULL;
}

static void callers_with_one_and_with_many_threads_do_not_disturb_each_other(void)
{
    enum { CALLERS = 6 };
    if (!begin()) {
        return;
    }
    struct caller callers[CALLERS];
    float *wants[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, 150 + i, 80, 40,
                                               tnd_test_seed() + (uint64_t)i);
        wants[i] = reference(node);
        callers[i] = (struct caller){.stage = {.backend = openblas,
                                               .node = node,
                                               .task = TANDEM_TASK_MUL_MAT_F32,
                                               .n_workers = 1,
                                               .own_threads = i % 3 + 1},
                                     .want = wants[i],
                                     .rounds = 20 * tnd_effort()};
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_create(&callers[i].thread, NULL, call_often, &callers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        CU_ASSERT_TRUE(callers[i].right);
        free(wants[i]);
    }
    end();
}

CU_TestInfo tnd_tests_openblas[] = {
    {"products match the reference on odd shapes however threads are used",
     products_match_the_reference_on_odd_shapes_however_threads_are_used},
    {"the result does not depend on the number of our threads",
     the_result_does_not_depend_on_the_number_of_our_threads},
    {"weights of other types come from the workspace",
     weights_of_other_types_come_from_the_workspace},
    {"a range of rows writes its columns and no others",
     a_range_of_rows_writes_its_columns_and_no_others},
    {"empty matrices are no trouble", empty_matrices_are_no_trouble},
    {"what it cannot do has a reason", what_it_cannot_do_has_a_reason},
    {"its idle threads do not poll", its_idle_threads_do_not_poll},
    {"the number of threads is given back", the_number_of_threads_is_given_back},
    {"callers with one and with many threads do not disturb each other",
     callers_with_one_and_with_many_threads_do_not_disturb_each_other},
    CU_TEST_INFO_NULL,
};
