/* SPDX-License-Identifier: MIT
 * What every backend must do, asked of each one that this machine has: right results for what it
 * says it supports, over operations, types and odd shapes; reasons for what it does not; rows and
 * nothing else; errors handed on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/kinds.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_cases.h"
#include "tests/suite_backends_stage.h"

static struct tnd_registry *registry;
static tandem_context *context;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN
#endif

/* Whether devices of a kind can be asked here; the drivers of OpenCL are not compiled with
 * ThreadSanitizer, and what their threads do looks like races. */
static bool is_fit_kind(const char *name)
{
#ifdef UNDER_TSAN
    return strcmp(name, "opencl") != 0;
#else
    (void)name;
    return true;
#endif
}

/* Every kind of the build by name: a CPU that speaks OpenCL is opened only when it is named. */
static void begin(void)
{
    char names[128] = "";
    char settings[256];
    for (int i = 0; tnd_kind_at(i) != NULL; i++) {
        if (is_fit_kind(tnd_kind_at(i)->name)) {
            size_t n = strlen(names);
            snprintf(names + n, sizeof(names) - n, "%s%s", n > 0 ? "," : "", tnd_kind_at(i)->name);
        }
    }
    /* Programs are built once; those of CLBlast, which has tests of its own, take seconds each. */
    snprintf(settings, sizeof(settings), "opencl:device=0,clblast=off,cache=%s",
             tnd_test_temp("programs"));
    struct tnd_registry_options options = {names, settings, 8, {0}};
    struct tandem_error error = {0};
    registry = NULL;
    context = NULL;
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_OK, NULL, &error);
#ifndef UNDER_TSAN /* which ends a program that loads a library after OpenBLAS */
    (void)check_ok(
        tnd_registry_add_plugins(registry, tnd_test_beside("example-backend.so"), &error));
#endif
    (void)check_ok(tandem_context_new(NULL, &context, &error));
}

static void end(void)
{
    tandem_context_free(context);
    tnd_registry_close(registry);
}

/* Result as floats, to be freed. */
static float *values_of(const tandem_tensor *node)
{
    int64_t n = tandem_tensor_elements(node);
    float *values = malloc((size_t)(n > 0 ? n : 1) * sizeof(float));
    if (node->type == TANDEM_TYPE_I32) {
        for (int64_t i = 0; i < n; i++) {
            values[i] = (float)((const int32_t *)node->data)[i];
        }
    } else if (n > 0) {
        (void)check_ok(tandem_dequantize(node->type, node->data, values, n));
    }
    return values;
}

/* The reference's result, to be freed; the node's own result is spoiled. */
static float *reference(tandem_tensor *node)
{
    struct tandem_error error = {0};
    (void)check_status(tnd_eval_ref_node(node, &error), TANDEM_OK, NULL, &error);
    float *values = values_of(node);
    tnd_test_spoil(node);
    return values;
}

static void check_values(const tandem_tensor *node, const float *want, double limit,
                         const char *what)
{
    int64_t n = tandem_tensor_elements(node);
    float *got = values_of(node);
    float *finite = malloc((size_t)(n > 0 ? n : 1) * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        bool same_infinity = isinf(want[i]) && got[i] == want[i];
        got[i] = same_infinity ? 0 : got[i];
        finite[i] = same_infinity ? 0 : want[i];
    }
    if (n > 0) {
        (void)check_nmse(got, finite, n, limit, what);
    }
    free(finite);
    free(got);
}

/* Error that a product of these weights may have: 8-bit activations cost most. */
static double limit_of(enum tandem_type type)
{
    return type == TANDEM_TYPE_F32    ? 1e-10
           : type == TANDEM_TYPE_F16  ? 1e-6
           : type == TANDEM_TYPE_BF16 ? 2e-5
                                      : 5e-4;
}

/* ---- whole nodes ---- */

static void run_whole(int slot, tandem_tensor *node, const float *want, double limit,
                      const char *what)
{
    tandem_backend *backend = tnd_registry_backend(registry, slot);
    size_t bytes = tnd_backend_workspace(backend, node, TANDEM_TASK_NODE);
    int most = tnd_backend_is_async(backend) ? 1 : 3;
    for (int n_workers = 1; n_workers <= most; n_workers += 2) {
        void *workspace = tnd_guarded_alloc(bytes > 0 ? bytes : 1, 64);
        struct tnd_test_stage stage = {.backend = backend,
                                       .node = node,
                                       .task = TANDEM_TASK_NODE,
                                       .n_workers = n_workers,
                                       .workspace = workspace,
                                       .workspace_bytes = bytes};
        struct tandem_error error = {0};
        char text[160];
        snprintf(text, sizeof(text), "%s: %s, %d workers", tnd_registry_name(registry, slot), what,
                 n_workers);
        tnd_test_spoil(node);
        if (check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error)) {
            check_values(node, want, limit, text);
        }
        tnd_guarded_free(workspace);
    }
}

/* A device compiles a program for each of these: F32 in one shape will do; suite_opencl has them
 * all. */
static bool is_left_out(const tandem_backend *backend, const struct tnd_test_case *one, int shape)
{
    return tnd_backend_is_own(backend) && tnd_effort() < 3 &&
           (shape != 2 || one->type != TANDEM_TYPE_F32);
}

static void check_case(const struct tnd_test_case *one, int shape)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)shape);
    tandem_context_reset(context);
    tandem_tensor *node = tnd_test_case_build(one, context, shape, &rng);
    if (node == NULL) {
        return; /* the shape does not fit the operation */
    }
    char what[96];
    snprintf(what, sizeof(what), "%s {%d, %d, %d, %d}", one->name, (int)node->ne[0],
             (int)node->ne[1], (int)node->ne[2], (int)node->ne[3]);
    float *want = reference(node);
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        tandem_backend *backend = tnd_registry_backend(registry, slot);
        struct tandem_error error = {0};
        enum tandem_status status = tnd_backend_supports(backend, node, TANDEM_TASK_NODE, &error);
        if (status == TANDEM_OK && is_left_out(backend, one, shape)) {
            continue;
        }
        if (status == TANDEM_OK) {
            double limit = tnd_op_traits(node->op)->cost == TND_COST_PRODUCT
                               ? limit_of(node->src[0]->type)
                               : one->limit;
            run_whole(slot, node, want, limit, what);
        } else {
            /* Only the CPU has to offer everything. */
            (void)check_status(status, TANDEM_E_UNSUPPORTED_BACKEND, NULL, &error);
            CU_ASSERT_NOT_EQUAL(slot, 1);
        }
    }
    free(want);
}

/* Every kind is open, or the reason is told: nobody is left out in silence. */
static void every_backend_that_this_machine_has_is_asked(void)
{
    begin();
    for (int i = 0; tnd_kind_at(i) != NULL; i++) {
        const char *name = tnd_kind_at(i)->name;
        const char *reason = "drivers are not checked by ThreadSanitizer";
        if (!is_fit_kind(name) || tnd_registry_find(registry, name, &reason) < 0) {
            tnd_skip("%s is not asked: %s", name, reason);
        }
    }
    end();
}

static void every_operation_matches_the_reference_on_odd_shapes(void)
{
    begin();
    for (int i = 0; i < tnd_test_case_count(); i++) {
        for (int shape = 0; shape < TND_TEST_SHAPES; shape++) {
            check_case(tnd_test_case_at(i), shape);
        }
    }
    end();
}

/* ---- products in stages ---- */

static const enum tandem_type weight_types[] = {
    TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0,  TANDEM_TYPE_Q4_1,
    TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K,  TANDEM_TYPE_Q3_K,
    TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_BCML1,
};
enum { N_WEIGHT_TYPES = sizeof(weight_types) / sizeof(weight_types[0]) };

static const int64_t product_shapes[][3] = {/* n, blocks of k, m */
                                            {1, 1, 1},
                                            {5, 1, 3},
                                            {37, 3, 1},
                                            {70, 2, 33}};
enum { N_PRODUCT_SHAPES = sizeof(product_shapes) / sizeof(product_shapes[0]) };

/* A first task that leaves something in the workspace and a second that reads it. */
struct recipe {
    int first_slot, second_slot;
    enum tandem_task first, second;
};

static bool offers(int slot, const tandem_tensor *node, enum tandem_task task)
{
    return tnd_backend_supports(tnd_registry_backend(registry, slot), node, task, NULL) ==
           TANDEM_OK;
}

static void run_recipe(const struct recipe *recipe, tandem_tensor *node, const float *want,
                       const char *what)
{
    tandem_backend *first = tnd_registry_backend(registry, recipe->first_slot);
    tandem_backend *second = tnd_registry_backend(registry, recipe->second_slot);
    size_t bytes = tnd_backend_workspace(first, node, recipe->first);
    size_t more = tnd_backend_workspace(second, node, recipe->second);
    bytes = bytes > more ? bytes : more;
    void *workspace = tnd_guarded_alloc(bytes > 0 ? bytes : 1, 64);
    struct tnd_test_stage stage = {.backend = first,
                                   .node = node,
                                   .task = recipe->first,
                                   .n_workers = 3,
                                   .workspace = workspace,
                                   .workspace_bytes = bytes};
    struct tandem_error error = {0};
    char text[200];
    snprintf(text, sizeof(text), "%s by %s %s and %s %s", what,
             tnd_registry_name(registry, recipe->first_slot), tandem_task_name(recipe->first),
             tnd_registry_name(registry, recipe->second_slot), tandem_task_name(recipe->second));
    tnd_test_spoil(node);
    if (recipe->first != TANDEM_TASK_NONE) {
        (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
    }
    stage.backend = second;
    stage.task = recipe->second;
    (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
    check_values(node, want, limit_of(node->src[0]->type), text);
    tnd_guarded_free(workspace);
}

static int run_recipes(tandem_tensor *node, const float *want, const char *what)
{
    int ran = 0;
    int count = tnd_registry_count(registry);
    bool is_f32 = node->src[0]->type == TANDEM_TYPE_F32;
    for (int a = 1; a < count; a++) {
        if (offers(a, node, TANDEM_TASK_QUANTIZE_X) && offers(a, node, TANDEM_TASK_MUL_MAT_Q)) {
            struct recipe recipe = {a, a, TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q};
            run_recipe(&recipe, node, want, what);
            ran++;
        }
        for (int b = 1; b < count; b++) {
            bool can = is_f32 ? a == b : offers(a, node, TANDEM_TASK_DEQUANTIZE_W);
            if (can && offers(b, node, TANDEM_TASK_MUL_MAT_F32)) {
                struct recipe recipe = {a, b, is_f32 ? TANDEM_TASK_NONE : TANDEM_TASK_DEQUANTIZE_W,
                                        TANDEM_TASK_MUL_MAT_F32};
                run_recipe(&recipe, node, want, what);
                ran++;
            }
        }
    }
    return ran;
}

static void staged_products_match_the_reference_across_backends(void)
{
    begin();
    for (int t = 0; t < N_WEIGHT_TYPES; t++) {
        for (int i = 0; i < N_PRODUCT_SHAPES; i++) {
            const int64_t *shape = product_shapes[i];
            int64_t block = tandem_type_block_values(weight_types[t]);
            int64_t k = block == 1 ? 31 * shape[1] : block * shape[1];
            char what[96];
            snprintf(what, sizeof(what), "mul_mat:%s:n%d:k%d:m%d",
                     tandem_type_name(weight_types[t]), (int)shape[0], (int)k, (int)shape[2]);
            tandem_context_reset(context);
            tandem_tensor *node = tnd_test_product(context, weight_types[t], shape[0], k, shape[2],
                                                   tnd_test_seed() + (uint64_t)i);
            float *want = reference(node);
            CU_ASSERT_TRUE(run_recipes(node, want, what) > 0);
            free(want);
        }
    }
    end();
}

/* ---- the contract ---- */

static void a_range_of_rows_of_a_product_writes_its_columns_only(void)
{
    static const int64_t ranges[][2] = {{0, 1}, {7, 7}, {3, 50}, {64, 69}, {68, 69}};
    begin();
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, 69, 40, 5, tnd_test_seed());
    float *want = reference(node);
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        for (int task = 1; task < TANDEM_TASK_COUNT; task++) {
            if ((task != TANDEM_TASK_NODE && task != TANDEM_TASK_MUL_MAT_F32) ||
                !offers(slot, node, (enum tandem_task)task)) {
                continue;
            }
            for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
                struct tnd_test_stage stage = {.backend = tnd_registry_backend(registry, slot),
                                               .node = node,
                                               .task = (enum tandem_task)task,
                                               .row_begin = ranges[i][0],
                                               .row_end = ranges[i][1],
                                               .n_workers = 2};
                tnd_test_spoil(node);
                const float *got = node->data;
                const float untouched = got[0];
                (void)check_ok(tnd_test_run_stage(&stage, NULL));
                bool right = true;
                for (int64_t j = 0; j < tandem_tensor_elements(node); j++) {
                    bool inside = j % 69 >= ranges[i][0] && j % 69 < ranges[i][1];
                    right =
                        right && (inside ? fabsf(got[j] - want[j]) < 1e-4F : got[j] == untouched);
                }
                CU_ASSERT_TRUE(right);
            }
        }
    }
    free(want);
    end();
}

static void what_is_supported_is_the_same_each_time_and_has_a_reason_otherwise(void)
{
    begin();
    for (int i = 0; i < tnd_test_case_count(); i++) {
        struct tnd_test_rng rng = tnd_test_rng_new(1);
        tandem_context_reset(context);
        tandem_tensor *node = tnd_test_case_build(tnd_test_case_at(i), context, 1, &rng);
        if (node == NULL) {
            continue;
        }
        tandem_tensor before = *node;
        for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
            tandem_backend *backend = tnd_registry_backend(registry, slot);
            for (int task = 1; task < TANDEM_TASK_COUNT; task++) {
                struct tandem_error error = {0};
                enum tandem_status status =
                    tnd_backend_supports(backend, node, (enum tandem_task)task, &error);
                CU_ASSERT_EQUAL(tnd_backend_supports(backend, node, (enum tandem_task)task, NULL),
                                status);
                CU_ASSERT_TRUE(status == TANDEM_OK ||
                               (status == TANDEM_E_UNSUPPORTED_BACKEND && strlen(error.text) > 10));
            }
        }
        CU_ASSERT_EQUAL(memcmp(&before, node, sizeof(before)), 0);
    }
    end();
}

static enum tandem_status failing_callback(void *user, const tandem_tensor *node, int64_t from,
                                           int64_t to)
{
    (void)user;
    (void)node;
    (void)from;
    (void)to;
    return TANDEM_E_LIMIT;
}

static void errors_inside_a_node_are_handed_on(void)
{
    begin();
    struct tnd_test_rng rng = tnd_test_rng_new(1);
    tandem_tensor *w = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){4, 3, 1, 1}, &rng);
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, (int64_t[]){2});
    ((int32_t *)ids->data)[1] = 3;
    tandem_tensor *rows = tnd_test_node(context, tandem_get_rows(context, w, ids));
    tandem_tensor *custom = tnd_test_node(
        context, tandem_custom(context, 1, (int64_t[]){5}, &w, 1, 7, failing_callback, NULL));
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        struct tnd_test_stage stage = {.backend = tnd_registry_backend(registry, slot),
                                       .node = rows,
                                       .task = TANDEM_TASK_NODE,
                                       .n_workers = 2};
        struct tandem_error error = {0};
        if (offers(slot, rows, TANDEM_TASK_NODE)) {
            (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_E_ARGUMENT, "3", &error);
        }
        stage.node = custom;
        if (offers(slot, custom, TANDEM_TASK_NODE)) {
            (void)check_status(tnd_test_run_stage(&stage, &error), TANDEM_E_LIMIT, NULL, &error);
        }
    }
    end();
}

static void closing_with_work_in_flight_is_safe(void)
{
    begin();
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, 8, 8, 8, 1);
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        tandem_backend *backend = tnd_registry_backend(registry, slot);
        if (!tnd_backend_is_async(backend)) {
            continue;
        }
        struct tandem_work piece = {
            .node = node, .task = TANDEM_TASK_NODE, .row_begin = 0, .row_end = 8};
        struct tnd_test_stage stage = {.backend = backend, .node = node};
        struct tnd_test_loans loans;
        uint64_t ticket = 0;
        if (tnd_backend_is_own(backend)) {
            (void)check_ok(tnd_test_lend(&stage, &loans, NULL)); /* closing takes it back */
            piece.places = &loans.places;
        }
        (void)check_ok(tnd_backend_submit(backend, &piece, &ticket, NULL));
        (void)check_ok(tnd_backend_submit(backend, &piece, &ticket, NULL));
    }
    end();
}

static bool is_told_place(const struct tandem_profile_stage *stage)
{
    return stage->task < TANDEM_TASK_COUNT && stage->place <= TANDEM_ON_LIBRARY &&
           (stage->task != TANDEM_TASK_NONE || stage->place == TANDEM_ON_SELF) &&
           !(stage->parallel && stage->own_threads);
}

/* Count and names of profiles do not depend on the type; facts and settings have unique keys. */
static void what_a_backend_says_of_itself_is_well_formed(void)
{
    begin();
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        tandem_backend *backend = tnd_registry_backend(registry, slot);
        const struct tandem_backend_api *api = backend->api;
        struct tandem_backend_profile q4, other;
        for (int i = 0; api->profile != NULL && api->profile(i, TANDEM_TYPE_Q4_0, &q4); i++) {
            CU_ASSERT_TRUE(strlen(q4.name) < TND_PROFILE_NAME && q4.what != NULL);
            CU_ASSERT_TRUE(is_told_place(&q4.init) && is_told_place(&q4.compute) &&
                           is_told_place(&q4.finalize));
            CU_ASSERT_TRUE(q4.compute.task != TANDEM_TASK_NONE ||
                           (api->profile(i, TANDEM_TYPE_BF16, &other) &&
                            other.compute.task != TANDEM_TASK_NONE));
            CU_ASSERT_TRUE(api->profile(i, TANDEM_TYPE_I32, &other));
            check_string(other.name, q4.name);
            check_int(other.compute.task, TANDEM_TASK_NONE);
        }
        struct tandem_backend_fact fact, fact2;
        for (int i = 0; tnd_backend_identity(backend, i, &fact); i++) {
            CU_ASSERT_TRUE(strlen(fact.key) < 24 && strlen(fact.value) < 128);
            CU_ASSERT_TRUE(fact.key[strspn(fact.key, "abcdefghijklmnopqrstuvwxyz0123456789_")] ==
                           '\0');
            for (int j = 0; j < i && tnd_backend_identity(backend, j, &fact2); j++) {
                CU_ASSERT_TRUE(strcmp(fact.key, fact2.key) != 0);
            }
        }
        struct tandem_backend_setting setting;
        for (int i = 0; api->setting != NULL && api->setting(i, &setting); i++) {
            CU_ASSERT_TRUE(setting.key[0] != '\0' && setting.value != NULL);
            CU_ASSERT_TRUE(setting.what != NULL && strpbrk(setting.key, ",;:=") == NULL);
        }
    }
#ifndef UNDER_TSAN
    CU_ASSERT_TRUE(tnd_registry_find(registry, "example", NULL) > 0);
#endif
    end();
}

CU_TestInfo tnd_tests_conformance[] = {
    {"every backend that this machine has is asked", every_backend_that_this_machine_has_is_asked},
    {"what a backend says of itself is well formed", what_a_backend_says_of_itself_is_well_formed},
    {"every operation matches the reference on odd shapes",
     every_operation_matches_the_reference_on_odd_shapes},
    {"staged products match the reference across backends",
     staged_products_match_the_reference_across_backends},
    {"a range of rows of a product writes its columns only",
     a_range_of_rows_of_a_product_writes_its_columns_only},
    {"what is supported is the same each time and has a reason otherwise",
     what_is_supported_is_the_same_each_time_and_has_a_reason_otherwise},
    {"errors inside a node are handed on", errors_inside_a_node_are_handed_on},
    {"closing with work in flight is safe", closing_with_work_in_flight_is_safe},
    CU_TEST_INFO_NULL,
};
