/* SPDX-License-Identifier: MIT
 * Packed weights of the CPU backend: the product has the bits of the unpacked one, whatever the
 * shape, the number of tokens, the workers, the row ranges and the instruction set; copies are
 * counted, limited, told apart and given back. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/packing/packed_weights.h"
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

static const struct tnd_packed_options unlimited = {.limit_bytes = SIZE_MAX};

static bool can_pack(void)
{
    if (tnd_cpu_kernels()->packed[TANDEM_TYPE_Q4_0].multiply != NULL) {
        return true;
    }
    tnd_skip("packed weights need AVX2 or NEON");
    return false;
}

static tandem_backend *open_cpu(const char *settings)
{
    struct tandem_backend_options options = {
        .size = sizeof(options), .n_threads_max = 8, .settings = settings};
    tandem_backend *backend = NULL;
    check_ok(tnd_backend_cpu.open(&options, &backend, NULL));
    return backend;
}

static tandem_tensor *product(tandem_context *context, enum tandem_type type, int64_t n, int64_t k,
                              int64_t m)
{
    tandem_tensor *node = tnd_test_product(context, type, n, k, m, tnd_test_seed());
    tandem_tensor_set_role(node->src[0], TANDEM_ROLE_CONSTANT);
    return node;
}

/* Rows begin..end-1 (both 0: all) of the product by QUANTIZE_X and `task`. */
static void compute(tandem_backend *backend, tandem_tensor *node, enum tandem_task task,
                    void *packed, int n_workers, int64_t begin, int64_t end)
{
    size_t bytes = tnd_backend_cpu.workspace(backend, node, task);
    struct tnd_test_stage stage = {.backend = backend,
                                   .node = node,
                                   .task = TANDEM_TASK_QUANTIZE_X,
                                   .n_workers = n_workers,
                                   .workspace = tnd_guarded_alloc(bytes, 64),
                                   .workspace_bytes = bytes};
    struct tandem_error error;
    if (tandem_type_is_quantized(node->src[0]->type)) {
        check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
    }
    stage.task = task;
    stage.prepared = packed;
    stage.row_begin = begin;
    stage.row_end = end;
    check_status(tnd_test_run_stage(&stage, &error), TANDEM_OK, NULL, &error);
    tnd_guarded_free(stage.workspace);
}

/* Compares packed and unpacked bits of one shape, first while panels are being packed, then when
 * they are there. */
static void check_shape(enum tandem_type type, int64_t n, int64_t k, int64_t m, int n_workers)
{
    tandem_context *context = NULL;
    tandem_backend *backend = open_cpu(NULL);
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *node = product(context, type, n, k, m);
    size_t bytes = (size_t)(n * m) * sizeof(float);
    char what[96];
    snprintf(what, sizeof(what), "%s n=%lld k=%lld m=%lld workers=%d", tandem_type_name(type),
             (long long)n, (long long)k, (long long)m, n_workers);
    bool quantized = tandem_type_is_quantized(type);
    compute(backend, node, quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE, NULL, 1, 0, 0);
    float *want = malloc(bytes);
    memcpy(want, node->data, bytes);
    void *packed = NULL;
    check_ok(tnd_backend_cpu.prepare(backend, node->src[0], &packed, NULL));
    for (int pass = 0; pass < 2; pass++) {
        tnd_test_spoil(node);
        compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, n_workers, 0, 0);
        check_bits(node->data, want, bytes, what);
    }
    if (n > 20) { /* borders inside panels */
        tnd_test_spoil(node);
        compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, n_workers, 7, n - 2);
        compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, 1, 0, 7);
        compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, 1, n - 2, n);
        check_bits(node->data, want, bytes, what);
    }
    free(want);
    tandem_context_free(context);
    tnd_backend_cpu.close(backend);
}

static void products_have_the_bits_of_unpacked_weights(void)
{
    static const int64_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 48, 49, 70};
    if (!can_pack()) {
        return;
    }
    for (int t = 0; t < N_TYPES; t++) {
        int64_t block = tandem_type_block_values(types[t]);
        bool quantized = block > 1;
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
            check_shape(types[t], 67, quantized ? 5 * block : 333, tokens[i], 1 + (int)i % 4);
        }
    }
}

static void shapes_may_be_odd(void)
{
    static const int64_t rows[] = {1, 15, 16, 17, 31, 32, 33, 203};
    if (!can_pack()) {
        return;
    }
    for (int t = 0; t < N_TYPES; t++) {
        int64_t block = tandem_type_block_values(types[t]);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            check_shape(types[t], rows[i], block * (1 + (int64_t)i % 3), 1 + (int64_t)i % 2, 3);
            check_shape(types[t], rows[i], block * (1 + (int64_t)i % 3), 11, 2);
        }
        int64_t k = block == 256 ? 5120 : block == 32 ? 4896 : 777;
        check_shape(types[t], 40, k, 3, 2);
        check_shape(types[t], 40, k, 51, 2);
        check_shape(types[t], 40, k, 101, 1);
    }
}

/* ---- every instruction set of this machine, without the backend ---- */

struct level {
    const char *name;
    uint32_t features;
    struct tnd_cpu_kernels kernels;
};

/* A worker that works alone. */
struct alone {
    struct tandem_worker base;
    int64_t taken;
};

static bool next_alone(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                       int64_t *out_begin, int64_t *out_end)
{
    struct alone *alone = (struct alone *)worker;
    *out_begin = alone->taken;
    *out_end = tnd_min(n_items, alone->taken + chunk);
    alone->taken = *out_end;
    return *out_begin < *out_end;
}

static void barrier_alone(struct tandem_worker *worker)
{
    (void)worker;
}

/* Runs a task of a product: with a copy from it, else from the rows. */
static void run_alone(const struct level *level, tandem_tensor *node,
                      const struct tnd_packed_weight *packed, uint32_t task, void *workspace)
{
    struct tandem_error error;
    enum tandem_type type = node->src[0]->type;
    size_t bytes = tnd_cpu_mul_mat_scratch(node, task);
    struct alone alone = {
        {0, 1, 1, tnd_guarded_alloc(bytes, 64), bytes, &error, next_alone, barrier_alone, 0, NULL},
        0};
    struct tandem_work work = {.node = node,
                               .task = task,
                               .row_begin = 0,
                               .row_end = node->ne[0],
                               .workspace = workspace,
                               .workspace_bytes = tnd_cpu_mul_mat_workspace(node, task)};
    if (packed == NULL) {
        check_status(tnd_cpu_mul_mat_run(&level->kernels, &work, &alone.base), TANDEM_OK, NULL,
                     &error);
    } else if (tandem_type_is_quantized(type)) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(level->kernels.packed[type].multiply);
        tnd_matmul_packed(&level->kernels, packed, &work, &alone.base);
    } else {
        CU_ASSERT_PTR_NOT_NULL_FATAL(level->kernels.packed_f[type]);
        tnd_matmul_packed_f(&level->kernels, packed, &work, &alone.base);
    }
    tnd_guarded_free(alone.base.scratch);
}

/* Codes and activations at the ends of their ranges: where narrow sums would overflow. */
static void fill_extremes(const tandem_tensor *node)
{
    const tandem_tensor *w = node->src[0];
    const tandem_tensor *x = node->src[1];
    int64_t n = w->ne[0] * w->ne[1];
    float *values = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        values[i] = i % 32 == 0 ? 0.0f : i / w->ne[0] % 2 == 0 ? 1.0f : -1.0f;
    }
    if (tandem_type_is_quantized(w->type)) {
        check_ok(tandem_quantize(w->type, values, w->data, n));
    }
    free(values);
    for (int64_t i = 0; i < x->ne[0] * x->ne[1]; i++) {
        ((float *)x->data)[i] = i / x->ne[0] % 3 == 2 ? -1.0f : 1.0f;
    }
}

static void check_level(const struct level *level, enum tandem_type type, int64_t n, int64_t k,
                        int64_t m, bool extreme)
{
    tandem_context *context = NULL;
    struct tnd_packed_weights *weights = NULL;
    bool quantized = tandem_type_is_quantized(type);
    uint32_t task = quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE;
    char what[96];
    snprintf(what, sizeof(what), "%s %s n=%lld k=%lld m=%lld%s", level->name,
             tandem_type_name(type), (long long)n, (long long)k, (long long)m,
             extreme ? " extreme" : "");
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tnd_packed_weights_new(&unlimited, &weights, NULL));
    tandem_tensor *node = product(context, type, n, k, m);
    if (extreme) {
        fill_extremes(node);
    }
    struct tnd_packed_weight *packed = NULL;
    check_ok(tnd_packed_weights_add(weights, node->src[0], &packed, NULL));
    void *workspace = tnd_guarded_alloc(tnd_cpu_mul_mat_workspace(node, task), 64);
    if (quantized) {
        run_alone(level, node, NULL, TANDEM_TASK_QUANTIZE_X, workspace);
    }
    run_alone(level, node, NULL, task, workspace);
    size_t bytes = (size_t)(n * m) * sizeof(float);
    float *want = malloc(bytes);
    memcpy(want, node->data, bytes);
    tnd_test_spoil(node);
    run_alone(level, node, packed, TANDEM_TASK_MUL_MAT_PACKED, workspace);
    check_bits(node->data, want, bytes, what);
    free(want);
    tnd_guarded_free(workspace);
    tnd_packed_weights_free(weights);
    tandem_context_free(context);
}

static void every_instruction_set_has_the_bits_of_its_rows(void)
{
#define NAME(isa, needs, files) #isa,
    static const char *const names[] = {TND_ISA_LIST(NAME, NONE)};
#undef NAME
    static const int64_t tokens[] = {1, 2, 3, 5, 8, 11, 12, 23, 70};
    uint32_t last = 0;
    for (size_t l = 0; l < sizeof(names) / sizeof(names[0]); l++) {
        struct level level = {.name = names[l]};
        level.features = tnd_cpu_mask(tnd_cpu_features_all(), names[l]);
        tnd_cpu_kernels_for(level.features, &level.kernels);
        if (level.features == last || level.kernels.packed[TANDEM_TYPE_Q4_0].multiply == NULL) {
            continue;
        }
        last = level.features;
        for (int t = 0; t < N_TYPES; t++) {
            int64_t block = tandem_type_block_values(types[t]);
            for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
                check_level(&level, types[t], 43, block > 1 ? 3 * block : 333, tokens[i], false);
            }
            for (int64_t k = 1; block == 1 && k < 20; k += 6) {
                check_level(&level, types[t], 43, k, 7 + k, false);
            }
            check_level(&level, types[t], 35, block > 1 ? 3 * block : 40, 4, true);
            check_level(&level, types[t], 16, block == 256 ? 2304 : 2080, 9, true);
        }
    }
    if (last == 0) {
        tnd_skip("packed weights need AVX2 or NEON");
    }
}

/* What is fetched ahead and taken at once belongs to the CPU: numbers that no CPU has serve too. */
static void tuning_changes_no_bits(void)
{
    static const struct tnd_tuning tunings[] = {
        {.unpack_part = 256},
        {.packed_ahead_1 = 1 << 20,
         .packed_ahead = 64,
         .packed_into_l1 = 1 << 20,
         .packed_skinny = 1000,
         .unpack_part = TND_UNPACK_PART_MOST,
         .float_ahead = 64,
         .float_ahead_many = 1 << 20},
        {.unpack_part = 768},
    };
    static const int64_t tokens[] = {1, 2, 19, 66, 101};
    struct level level = {.name = "tuned", .features = tnd_cpu_features()};
    if (!can_pack()) {
        return;
    }
    CU_ASSERT(tnd_tuning_of("AuthenticAMD 25 17").packed_skinny == 128);
    CU_ASSERT(tnd_tuning_of("AuthenticAMD 26 2").packed_into_l1 == 16384);
    CU_ASSERT(tnd_tuning_of("AuthenticAMD").packed_skinny == 48 &&
              tnd_tuning_of("").packed_skinny == 48);
    for (size_t i = 0; i < sizeof(tunings) / sizeof(tunings[0]); i++) {
        tnd_cpu_kernels_for(level.features, &level.kernels);
        level.kernels.tuning = tunings[i];
        for (int t = 0; t < N_TYPES; t++) {
            for (size_t m = 0; m < sizeof(tokens) / sizeof(tokens[0]); m++) {
                check_level(&level, types[t], 50, 5 * 256, tokens[m], false);
            }
        }
    }
}

/* Nobody has made a copy, or there may be none: rows serve, with the same bits. */
static void without_a_copy_the_rows_serve(void)
{
    if (!can_pack()) {
        return;
    }
    tandem_context *context = NULL;
    tandem_backend *backend = open_cpu("packed=1");
    struct tandem_error error;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *node = product(context, TANDEM_TYPE_Q8_0, 1024, 1280, 2); /* above 1 MiB */
    void *packed = NULL;
    check_status(tnd_backend_cpu.prepare(backend, node->src[0], &packed, &error),
                 TANDEM_E_DEVICE_MEMORY, "1392640 bytes", &error);
    CU_ASSERT_PTR_NULL(packed);
    compute(backend, node, TANDEM_TASK_MUL_MAT_Q, NULL, 2, 0, 0);
    size_t bytes = 1024 * 2 * sizeof(float);
    float *want = malloc(bytes);
    memcpy(want, node->data, bytes);
    tnd_test_spoil(node);
    compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, 2, 0, 0);
    check_bits(node->data, want, bytes, "no copy");
    free(want);
    tandem_context_free(context);
    tnd_backend_cpu.close(backend);
}

/* Rows that were given back to the system are read from their file again: nothing is lost. */
static void released_rows_are_still_there(void)
{
    if (!can_pack()) {
        return;
    }
    enum { N = 256, K = 256, BYTES = N * K * 4 };
    int file = open(tnd_test_temp("rows"), O_RDWR | O_CREAT, 0600);
    CU_ASSERT_FATAL(file >= 0);
    float *rows = malloc(BYTES);
    for (int i = 0; i < N * K; i++) {
        rows[i] = (float)(i % 251) / 16 - 7;
    }
    CU_ASSERT_FATAL(write(file, rows, BYTES) == BYTES);
    void *mapped = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, file, 0);
    CU_ASSERT_FATAL(mapped != MAP_FAILED);
    tandem_context *context = NULL;
    tandem_backend *backend = open_cpu("rows=release");
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *node = product(context, TANDEM_TYPE_F32, N, K, 3);
    node->src[0] =
        tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, (int64_t[]){K, N}, mapped, BYTES);
    tandem_tensor_set_role(node->src[0], TANDEM_ROLE_CONSTANT);
    size_t bytes = (size_t)N * 3 * sizeof(float);
    compute(backend, node, TANDEM_TASK_NODE, NULL, 1, 0, 0);
    float *want = malloc(bytes);
    memcpy(want, node->data, bytes);
    void *packed = NULL;
    check_ok(tnd_backend_cpu.prepare(backend, node->src[0], &packed, NULL));
    for (int pass = 0; pass < 2; pass++) {
        tnd_test_spoil(node);
        compute(backend, node, TANDEM_TASK_MUL_MAT_PACKED, packed, 2, 0, 0);
        check_bits(node->data, want, bytes, "released rows");
        check_bits(mapped, rows, BYTES, "the rows themselves");
    }
    free(want);
    free(rows);
    tandem_context_free(context);
    tnd_backend_cpu.close(backend);
    munmap(mapped, BYTES);
    close(file);
}

static void unknown_settings_are_refused(void)
{
    struct tandem_backend_options options = {
        .size = sizeof(options), .n_threads_max = 8, .settings = "rows=gone"};
    tandem_backend *backend = NULL;
    struct tandem_error error;
    check_status(tnd_backend_cpu.open(&options, &backend, &error), TANDEM_E_ARGUMENT,
                 "rows=release", &error);
    CU_ASSERT_PTR_NULL(backend);
}

static void only_constant_weights_are_packed(void)
{
    if (!can_pack()) {
        return;
    }
    tandem_context *context = NULL;
    tandem_backend *backend = open_cpu(NULL);
    tandem_backend *without = open_cpu("packed=off");
    struct tandem_error error;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_Q4_0, 32, 64, 1, 1);
    check_status(tnd_backend_cpu.supports(backend, node, TANDEM_TASK_MUL_MAT_PACKED, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "TANDEM_ROLE_CONSTANT", &error);
    tandem_tensor_set_role(node->src[0], TANDEM_ROLE_CONSTANT);
    check_ok(tnd_backend_cpu.supports(backend, node, TANDEM_TASK_MUL_MAT_PACKED, NULL));
    check_status(tnd_backend_cpu.supports(without, node, TANDEM_TASK_MUL_MAT_PACKED, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "switched off", &error);
    tandem_context_free(context);
    tnd_backend_cpu.close(without);
    tnd_backend_cpu.close(backend);
}

/* Each copy counts against the limit until it is given up. */
static void copies_count_until_they_are_removed(void)
{
    static _Alignas(64) unsigned char memory[32 * 18 * 4];
    const struct tnd_packed_options two = {.limit_bytes = 2 * 2 * 2 * 576};
    struct tnd_packed_weights *weights = NULL;
    struct tnd_packed_weight *packed[3] = {NULL, NULL, NULL};
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tnd_packed_weights_new(&two, &weights, NULL));
    tandem_tensor *weight = tandem_tensor_borrow(context, TANDEM_TYPE_Q4_0, 2, (int64_t[]){128, 32},
                                                 memory, sizeof(memory));
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_packed_weights_add(weights, weight, &packed[i], NULL));
        check_int((int64_t)tnd_packed_weights_bytes(weights), (i + 1) * 2 * 2 * 576);
    }
    CU_ASSERT_PTR_NOT_EQUAL(packed[0], packed[1]);
    check_status(tnd_packed_weights_add(weights, weight, &packed[2], NULL), TANDEM_E_DEVICE_MEMORY,
                 NULL, NULL);
    CU_ASSERT_PTR_NULL(packed[2]);
    tnd_packed_weights_remove(weights, packed[0]);
    check_int((int64_t)tnd_packed_weights_bytes(weights), 2 * 2 * 576);
    check_ok(tnd_packed_weights_add(weights, weight, &packed[2], NULL));
    tnd_packed_weights_free(weights);
    tandem_context_free(context);
}

static double available_bytes;

static double tell_available(void)
{
    return available_bytes;
}

/* Room for one copy of 2304 bytes is there, and a quarter of the memory stays free. Pages of a copy
 * that nobody has written count as taken. */
static void copies_leave_a_quarter_of_the_available_memory_free(void)
{
    static _Alignas(64) unsigned char memory[32 * 18 * 4];
    const struct tnd_packed_options options = {.limit_bytes = SIZE_MAX,
                                               .available = tell_available};
    const double one = 2 * 2 * 576;
    struct tnd_packed_weights *weights = NULL;
    struct tnd_packed_weight *packed[2] = {NULL, NULL};
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tnd_packed_weights_new(&options, &weights, NULL));
    tandem_tensor *weight = tandem_tensor_borrow(context, TANDEM_TYPE_Q4_0, 2, (int64_t[]){128, 32},
                                                 memory, sizeof(memory));
    available_bytes = 2 * one;
    check_ok(tnd_packed_weights_add(weights, weight, &packed[0], NULL));
    check_status(tnd_packed_weights_add(weights, weight, &packed[1], NULL), TANDEM_E_DEVICE_MEMORY,
                 NULL, NULL);
    available_bytes = 100 * one; /* not asked again: the answer would differ from graph to graph */
    check_status(tnd_packed_weights_add(weights, weight, &packed[1], NULL), TANDEM_E_DEVICE_MEMORY,
                 NULL, NULL);
    tnd_packed_weights_remove(weights, packed[0]);
    check_ok(tnd_packed_weights_add(weights, weight, &packed[0], NULL));
    check_ok(tnd_packed_weights_add(weights, weight, &packed[1], NULL));
    tnd_packed_weights_free(weights);
    check_ok(tnd_packed_weights_new(&options, &weights, NULL));
    available_bytes = 0; /* unknown */
    check_ok(tnd_packed_weights_add(weights, weight, &packed[0], NULL));
    tnd_packed_weights_free(weights);
    tandem_context_free(context);
}

CU_TestInfo tnd_tests_packed[] = {
    {"products have the bits of unpacked weights", products_have_the_bits_of_unpacked_weights},
    {"shapes may be odd", shapes_may_be_odd},
    {"every instruction set has the bits of its rows",
     every_instruction_set_has_the_bits_of_its_rows},
    {"tuning changes no bits", tuning_changes_no_bits},
    {"without a copy the rows serve", without_a_copy_the_rows_serve},
    {"only constant weights are packed", only_constant_weights_are_packed},
    {"copies count until they are removed", copies_count_until_they_are_removed},
    {"copies leave a quarter of the available memory free",
     copies_leave_a_quarter_of_the_available_memory_free},
    {"released rows are still there", released_rows_are_still_there},
    {"unknown settings are refused", unknown_settings_are_refused},
    CU_TEST_INFO_NULL,
};
