/* SPDX-License-Identifier: MIT
 * Products of experts on the CPU: each row has the bits of a plain product of its token with its
 * expert, on every instruction set, with any number of workers; only experts in use are read. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/cpu.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_stage.h"

extern const struct tandem_backend_api tnd_backend_cpu;

static const enum tandem_type types[] = {
    TANDEM_TYPE_Q4_0,  TANDEM_TYPE_Q4_1, TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0,
    TANDEM_TYPE_Q2_K,  TANDEM_TYPE_Q3_K, TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K,
    TANDEM_TYPE_BCML1, TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16,
};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

struct shape {
    int64_t n, experts, used, m;
    bool is_shared; /* experts of a token read one row of X */
    int nobody;     /* one index in so many is -1; 0: none */
};

/* A node with weights of experts, and the same operands for plain products. */
struct pair {
    tandem_context *context;
    tandem_tensor *node;     /* {N, used, M} */
    tandem_tensor **of_each; /* {experts}: all rows of X times one expert */
    int64_t experts;
};

static int32_t *ids_of(const struct pair *p)
{
    return tandem_tensor_data(p->node->src[2]);
}

static struct pair pair_new(enum tandem_type type, int64_t k, const struct shape *s)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)s->n);
    struct pair p = {.experts = s->experts};
    check_ok(tandem_context_new(NULL, &p.context, NULL));
    tandem_tensor *w = tnd_test_leaf(p.context, type, (int64_t[]){k, s->n, s->experts, 1}, &rng);
    tandem_tensor *x = tnd_test_leaf(p.context, TANDEM_TYPE_F32,
                                     (int64_t[]){k, s->is_shared ? 1 : s->used, s->m, 1}, &rng);
    tandem_tensor *ids =
        tandem_tensor_new(p.context, TANDEM_TYPE_I32, 2, (int64_t[]){s->used, s->m});
    for (int64_t i = 0; i < s->used * s->m; i++) { /* some experts get many tokens, some none */
        const int64_t id = tnd_test_rng_int(&rng, 0, s->experts * s->experts - 1);
        const bool is_nobody = s->nobody > 0 && tnd_test_rng_int(&rng, 1, s->nobody) == 1;
        ((int32_t *)tandem_tensor_data(ids))[i] =
            is_nobody ? -1 : (int32_t)(id % s->experts * id % s->experts);
    }
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    p.node = tnd_test_node(p.context, tandem_mul_mat_id(p.context, w, x, ids));
    p.of_each = calloc((size_t)s->experts, sizeof(p.of_each[0]));
    for (int64_t e = 0; e < s->experts; e++) {
        tandem_tensor *one = tandem_tensor_new(p.context, type, 2, (int64_t[]){k, s->n});
        memcpy(tandem_tensor_data(one), (char *)tandem_tensor_data(w) + (size_t)e * w->nb[2],
               w->nb[2]);
        tandem_tensor *rows =
            tandem_tensor_new(p.context, TANDEM_TYPE_F32, 2, (int64_t[]){k, x->ne[1] * s->m});
        memcpy(tandem_tensor_data(rows), tandem_tensor_data(x), tandem_tensor_bytes(x));
        p.of_each[e] = tnd_test_node(p.context, tandem_mul_mat(p.context, one, rows));
    }
    return p;
}

static void pair_free(struct pair *p)
{
    free(p->of_each);
    tandem_context_free(p->context);
}

/* Each row against the plain product of the same token and expert, nobody's against zeros. */
static void check_rows(const struct pair *p, const char *what)
{
    static const float zeros[256];
    const struct tandem_tensor *node = p->node;
    CU_ASSERT_FATAL(node->ne[0] <= 256);
    const int64_t x_rows = node->src[1]->ne[1];
    for (int64_t i = 0; i < node->ne[1] * node->ne[2]; i++) {
        const int64_t u = i % node->ne[1];
        const int64_t m = i / node->ne[1];
        const int32_t id = ids_of(p)[i];
        const struct tandem_tensor *one = id < 0 ? NULL : p->of_each[id];
        const char *want = one == NULL
                               ? (const char *)zeros
                               : (const char *)one->data +
                                     (size_t)(m * x_rows + (x_rows == 1 ? 0 : u)) * one->nb[1];
        const char *got =
            (const char *)node->data + (size_t)m * node->nb[2] + (size_t)u * node->nb[1];
        if (memcmp(got, want, (size_t)node->ne[0] * sizeof(float)) != 0) {
            check_bits(got, want, (size_t)node->ne[0] * sizeof(float), what);
            return;
        }
    }
}

/* ---- one worker, kernels of any instruction set ---- */

static bool next_alone(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                       int64_t *out_begin, int64_t *out_end)
{
    (void)chunk;
    worker->own_threads = 3 - worker->own_threads;
    *out_begin = 0;
    *out_end = n_items;
    return worker->own_threads == 2;
}

static enum tandem_status run_alone(const struct tnd_cpu_kernels *kernels, tandem_tensor *node,
                                    uint32_t task, void *workspace, void *packed,
                                    struct tandem_error *error)
{
    const size_t bytes = tnd_cpu_mul_mat_scratch(node, task);
    struct tandem_worker worker = {
        0, 1, 1, tnd_guarded_alloc(bytes, 64), bytes, error, next_alone, NULL, 0, NULL};
    const struct tandem_work work = {.node = node,
                                     .task = task,
                                     .row_end = node->ne[0],
                                     .workspace = workspace,
                                     .workspace_bytes = tnd_cpu_mul_mat_workspace(node, task),
                                     .prepared = packed};
    const enum tandem_status status = tnd_cpu_mul_mat_run(kernels, &work, &worker);
    tnd_guarded_free(worker.scratch);
    return status;
}

static void run_both_tasks(const struct tnd_cpu_kernels *kernels, tandem_tensor *node)
{
    struct tandem_error error = {0};
    const bool quantized = tnd_quant_code(node->src[0]->type) != NULL;
    const uint32_t task = quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE;
    void *workspace = tnd_guarded_alloc(tnd_cpu_mul_mat_workspace(node, task), 64);
    if (quantized) {
        check_status(run_alone(kernels, node, TANDEM_TASK_QUANTIZE_X, workspace, NULL, &error),
                     TANDEM_OK, NULL, &error);
    }
    check_status(run_alone(kernels, node, task, workspace, NULL, &error), TANDEM_OK, NULL, &error);
    tnd_guarded_free(workspace);
}

static void run_tiles(const struct tnd_cpu_kernels *kernels, tandem_tensor *node, void *packed)
{
    struct tandem_error error = {0};
    void *workspace =
        tnd_guarded_alloc(tnd_cpu_mul_mat_workspace(node, TANDEM_TASK_MUL_MAT_TILES), 64);
    tnd_test_spoil(node);
    check_status(run_alone(kernels, node, TANDEM_TASK_TILE_X, workspace, NULL, &error), TANDEM_OK,
                 NULL, &error);
    check_status(run_alone(kernels, node, TANDEM_TASK_MUL_MAT_TILES, workspace, packed, &error),
                 TANDEM_OK, NULL, &error);
    tnd_guarded_free(workspace);
}

static void every_instruction_set_has_the_bits_of_plain_products(void)
{
#define NAME(isa, needs, files) #isa,
    static const char *const names[] = {TND_ISA_LIST(NAME, NONE)};
#undef NAME
    static const struct shape shapes[] = {{67, 5, 2, 1, true, 0},
                                          {40, 7, 3, 9, true, 2},
                                          {203, 3, 2, 70, false, 3},
                                          {64, 1, 1, 5, false, 0}};
    uint32_t last = UINT32_MAX;
    for (size_t l = 0; l < sizeof(names) / sizeof(names[0]); l++) {
        const uint32_t features = tnd_cpu_mask(tnd_cpu_features_all(), names[l]);
        static struct tnd_cpu_kernels kernels;
        if (features == last) {
            continue;
        }
        last = features;
        tnd_cpu_kernels_for(features, &kernels);
        for (size_t i = 0; i < (size_t)N_TYPES * 4; i++) {
            const enum tandem_type type = types[i / 4];
            const int64_t block = tandem_type_block_values(type);
            char what[96];
            struct pair p = pair_new(type, block > 1 ? 3 * block : 333, &shapes[i % 4]);
            snprintf(what, sizeof(what), "%s %s shape %d", names[l], tandem_type_name(type),
                     (int)(i % 4));
            tnd_test_spoil(p.node);
            run_both_tasks(&kernels, p.node);
            for (int64_t e = 0; e < p.experts; e++) {
                run_both_tasks(&kernels, p.of_each[e]);
            }
            check_rows(&p, what);
            pair_free(&p);
        }
    }
}

/* ---- the backend ---- */

static tandem_backend *open_cpu(void)
{
    struct tandem_backend_options options = {.size = sizeof(options), .n_threads_max = 8};
    tandem_backend *backend = NULL;
    check_ok(tnd_backend_cpu.open(&options, &backend, NULL));
    return backend;
}

static enum tandem_status compute(tandem_backend *backend, tandem_tensor *node,
                                  enum tandem_task task, void *packed, int n_workers,
                                  struct tandem_error *error)
{
    const size_t bytes = tnd_backend_cpu.workspace(backend, node, task);
    struct tnd_test_stage stage = {.backend = backend,
                                   .node = node,
                                   .task = TANDEM_TASK_QUANTIZE_X,
                                   .n_workers = n_workers,
                                   .workspace = tnd_guarded_alloc(bytes, 64),
                                   .workspace_bytes = bytes};
    if (task != TANDEM_TASK_NODE && tnd_quant_code(node->src[0]->type) != NULL) {
        check_status(tnd_test_run_stage(&stage, error), TANDEM_OK, NULL, error);
    }
    stage.task = task;
    stage.prepared = packed;
    const enum tandem_status status = tnd_test_run_stage(&stage, error);
    tnd_guarded_free(stage.workspace);
    return status;
}

/* By AMX, or its emulation: rows and packed weights, experts of one token and of many. */
static void products_of_tiles_have_the_bits_of_plain_ones(void)
{
    static const struct shape shapes[] = {
        {70, 5, 2, 20, true, 3}, {40, 9, 4, 2, false, 1}, {67, 5, 2, 1, true, 0}};
    static struct tnd_cpu_kernels kernels;
    tandem_backend *backend = open_cpu();
    tnd_cpu_kernels_for(tnd_cpu_features(), &kernels);
    if (kernels.amx.name == NULL) {
        tnd_fill_tiles_emulated(&kernels);
    }
    for (size_t i = 0; i < (size_t)N_TYPES * 3; i++) {
        const enum tandem_type type = types[i / 3];
        const int64_t block = tandem_type_block_values(type);
        struct pair p = pair_new(type, block > 1 ? 3 * block : 333, &shapes[i % 3]);
        void *packed = NULL;
        for (int64_t e = 0; e < p.experts; e++) {
            run_tiles(&kernels, p.of_each[e], NULL);
        }
        run_tiles(&kernels, p.node, NULL);
        check_rows(&p, tandem_type_name(type));
        if (tnd_backend_cpu.supports(backend, p.node, TANDEM_TASK_MUL_MAT_PACKED, NULL) ==
            TANDEM_OK) {
            check_ok(tnd_backend_cpu.prepare(backend, p.node->src[0], &packed, NULL));
            run_tiles(&kernels, p.node, packed);
            check_rows(&p, "packed");
        }
        pair_free(&p);
    }
    tnd_backend_cpu.close(backend);
}

static void workers_and_packed_weights_change_no_bit(void)
{
    static const struct shape shapes[] = {
        {203, 6, 2, 90, true, 3}, {40, 9, 4, 2, false, 0}, {40, 9, 4, 2, false, 1}};
    tandem_backend *backend = open_cpu();
    struct tandem_error error = {0};
    for (size_t i = 0; i < (size_t)N_TYPES * 3; i++) {
        const enum tandem_type type = types[i / 3];
        const int64_t block = tandem_type_block_values(type);
        struct pair p = pair_new(type, block > 1 ? 3 * block : 333, &shapes[i % 3]);
        const bool quantized = tnd_quant_code(type) != NULL;
        void *packed = NULL;
        for (int64_t e = 0; e < p.experts; e++) {
            compute(backend, p.of_each[e], quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE,
                    NULL, 1, &error);
        }
        const bool can_pack = tnd_backend_cpu.supports(backend, p.node, TANDEM_TASK_MUL_MAT_PACKED,
                                                       NULL) == TANDEM_OK;
        if (can_pack) {
            check_ok(tnd_backend_cpu.prepare(backend, p.node->src[0], &packed, NULL));
        }
        for (int n_workers = 1; n_workers <= 4; n_workers++) {
            tnd_test_spoil(p.node);
            compute(backend, p.node, quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE, NULL,
                    n_workers, &error);
            check_rows(&p, tandem_type_name(type));
            tnd_test_spoil(p.node);
            if (can_pack) {
                compute(backend, p.node, TANDEM_TASK_MUL_MAT_PACKED, packed, n_workers, &error);
                check_rows(&p, "packed");
            }
        }
        pair_free(&p);
    }
    tnd_backend_cpu.close(backend);
}

/* The pages of all other experts cannot be read: a read ends the test. */
static void only_experts_in_use_are_read(void)
{
    enum { EXPERTS = 16, K = 1024, N = 64, USED = 2, M = 3 };
    static const int32_t used[USED * M] = {3, 11, 11, -1, 7, 3};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int64_t ne[3] = {K, N, EXPERTS};
    const size_t expert_bytes = (size_t)(K * N) * sizeof(float);
    const size_t bytes = EXPERTS * expert_bytes;
    CU_ASSERT_EQUAL_FATAL(expert_bytes % page, 0);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(memory, MAP_FAILED);
    struct tandem_error error = {0};
    tandem_backend *backend = open_cpu();
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        ((float *)(void *)memory)[i] = (float)(i % 13) - 6;
    }
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_tensor *w = tandem_tensor_borrow_const(context, TANDEM_TYPE_F32, 3, ne, memory, bytes);
    tandem_tensor *x = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){K, 1, M, 1}, &rng);
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){USED, M});
    memcpy(tandem_tensor_data(ids), used, sizeof(used));
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_tensor *node = tnd_test_node(context, tandem_mul_mat_id(context, w, x, ids));
    size_t readable = 0;
    for (int e = 0; e < EXPERTS; e++) {
        const bool is_used = e == 3 || e == 7 || e == 11;
        readable += is_used ? expert_bytes : 0;
        check_int(
            is_used ? 0 : mprotect(memory + (size_t)e * expert_bytes, expert_bytes, PROT_NONE), 0);
    }
    check_int((int64_t)readable, (int64_t)(3 * expert_bytes));
    void *packed = NULL;
    if (tnd_backend_cpu.supports(backend, node, TANDEM_TASK_MUL_MAT_PACKED, NULL) == TANDEM_OK) {
        check_ok(tnd_backend_cpu.prepare(backend, w, &packed, NULL));
        check_status(compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, 2, &error),
                     TANDEM_OK, NULL, &error);
    }
    check_status(compute(backend, node, TANDEM_TASK_NODE, NULL, 2, &error), TANDEM_OK, NULL,
                 &error);
    tandem_context_free(context);
    tnd_backend_cpu.close(backend);
    munmap(memory, bytes);
}

static void an_index_that_is_no_expert_fails_with_its_number(void)
{
    const struct shape shape = {8, 4, 2, 3, true, 0};
    tandem_backend *backend = open_cpu();
    for (int i = 0; i < 3; i++) {
        static const int32_t bad[] = {4, -2, INT32_MIN};
        static const char *const what[] = {"index 1 of token 2 is 4, expected -1 to 3",
                                           "index 1 of token 2 is -2", "is -2147483648"};
        struct tandem_error error = {0};
        struct pair p = pair_new(TANDEM_TYPE_Q8_0, 32, &shape);
        ids_of(&p)[5] = bad[i];
        check_status(compute(backend, p.node, TANDEM_TASK_MUL_MAT_Q, NULL, 1 + i, &error),
                     TANDEM_E_ARGUMENT, what[i], &error);
        check_status(compute(backend, p.node, TANDEM_TASK_NODE, NULL, 1 + i, &error),
                     TANDEM_E_ARGUMENT, what[i], &error);
        check_status(tnd_eval_ref_node(p.node, &error), TANDEM_E_ARGUMENT, what[i], &error);
        pair_free(&p);
    }
    tnd_backend_cpu.close(backend);
}

static void a_gathered_index_outside_the_row_fails_with_its_number(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_backend *backend = open_cpu();
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *a = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){5, 2, 1, 1}, &rng);
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){3, 2});
    tandem_tensor *node = tnd_test_node(context, tandem_gather(context, a, ids));
    ((int32_t *)tandem_tensor_data(ids))[4] = 5;
    check_status(compute(backend, node, TANDEM_TASK_NODE, NULL, 2, &error), TANDEM_E_ARGUMENT,
                 "gather: index 1 of token 1 is 5, expected 0 to 4", &error);
    ((int32_t *)tandem_tensor_data(ids))[4] = -1;
    check_status(compute(backend, node, TANDEM_TASK_NODE, NULL, 1, &error), TANDEM_E_ARGUMENT,
                 "is -1", &error);
    check_status(tnd_eval_ref_node(node, &error), TANDEM_E_ARGUMENT, "is -1", &error);
    tandem_context_free(context);
    tnd_backend_cpu.close(backend);
}

CU_TestInfo tnd_tests_experts[] = {
    {"every_instruction_set_has_the_bits_of_plain_products",
     every_instruction_set_has_the_bits_of_plain_products},
    {"products_of_tiles_have_the_bits_of_plain_ones",
     products_of_tiles_have_the_bits_of_plain_ones},
    {"workers_and_packed_weights_change_no_bit", workers_and_packed_weights_change_no_bit},
    {"only_experts_in_use_are_read", only_experts_in_use_are_read},
    {"an_index_that_is_no_expert_fails_with_its_number",
     an_index_that_is_no_expert_fails_with_its_number},
    {"a_gathered_index_outside_the_row_fails_with_its_number",
     a_gathered_index_outside_the_row_fails_with_its_number},
    CU_TEST_INFO_NULL,
};
