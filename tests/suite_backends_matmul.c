/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend against a double-precision reference: every weight type, every
 * instruction set of this machine, odd shapes, hard values, workers that take turns, row ranges. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu_profiles.h"
#include "backends/cpu/matmul/matmul_parts.h"
#include "base/cpu.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"
#include "tests/suite_backends.h"
#include "tests/support.h"

/* ---- instruction sets ---- */

struct isa {
    const char *name;
    struct tnd_cpu_kernels kernels;
};
enum { ISAS_MAX = 8 };
static struct isa isas[ISAS_MAX];
static int n_isas;

static void find_isas(void)
{
    if (n_isas > 0) {
        return;
    }
#define ISA_ROW(isa, needs, files)                                                                 \
    if ((tnd_cpu_features_all() & (needs)) == (needs)) {                                           \
        isas[n_isas].name = #isa;                                                                  \
        tnd_cpu_kernels_for(needs, &isas[n_isas++].kernels);                                       \
    }
    TND_ISA_LIST(ISA_ROW, NONE)
#undef ISA_ROW
}

/* ---- workers that run one after the other ---- */

struct stage {
    struct tandem_worker base;
    int64_t *taken; /* shared by the workers of the stage */
};

/* Leaves work for the workers that come later, so that each of them gets some. */
static bool stage_next(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                       int64_t *out_begin, int64_t *out_end)
{
    struct stage *stage = (struct stage *)worker;
    int64_t share = n_items * (worker->index + 1) / worker->count;
    if (*stage->taken >= share && worker->index + 1 < worker->count) {
        return false;
    }
    if (*stage->taken >= n_items) {
        return false;
    }
    *out_begin = *stage->taken;
    *out_end = tnd_min(n_items, *out_begin + chunk);
    *stage->taken = *out_end;
    return true;
}

static void stage_barrier(struct tandem_worker *worker)
{
    (void)worker;
}

/* Runs one task over a row range by `workers` workers in turn. */
static void run_task(const struct tnd_cpu_kernels *kernels, struct tandem_tensor *node,
                     uint32_t task, int64_t row_begin, int64_t row_end, void *workspace,
                     size_t workspace_bytes, int workers)
{
    int64_t taken = 0;
    size_t scratch_bytes = tnd_cpu_mul_mat_scratch(node, task);
    void *scratch = tnd_guarded_alloc(scratch_bytes, 64);
    struct tandem_work work = {.node = node,
                               .task = task,
                               .row_begin = row_begin,
                               .row_end = row_end,
                               .workspace = workspace,
                               .workspace_bytes = workspace_bytes};
    for (int i = 0; i < workers; i++) {
        struct tandem_error error;
        struct stage stage = {
            .base = {i, workers, 1, scratch, scratch_bytes, &error, stage_next, stage_barrier, 0},
            .taken = &taken};
        check_status(tnd_cpu_mul_mat_run(kernels, &work, &stage.base), TANDEM_OK, NULL, &error);
    }
    tnd_guarded_free(scratch);
}

/* ---- one product ---- */

enum pattern { RANDOM, OUTLIERS, CONSTANT_ROWS, ZEROS, LARGE, ALTERNATING, N_PATTERNS };
static const char *const pattern_names[] = {"random", "outliers", "constant rows",
                                            "zeros",  "large",    "alternating"};

struct product {
    enum tandem_type type;
    int64_t n, m, k;
    tandem_context *context;
    struct tandem_tensor *node;
    float *w_values; /* as the blocks say */
    void *w, *x, *y;
    char name[128];
};

static void fill_operands(float *w, float *x, const struct product *p, enum pattern pattern,
                          struct tnd_test_rng *rng)
{
    tnd_test_fill(rng, w, p->n * p->k);
    tnd_test_fill(rng, x, p->m * p->k);
    for (int64_t i = 0; i < p->m * p->k; i++) {
        switch (pattern) {
        case OUTLIERS:
            x[i] *= i % 37 == 5 ? 50.0f : 1.0f;
            break;
        case ZEROS:
            x[i] = 0;
            break;
        case LARGE:
            x[i] *= 1e15f;
            break;
        case ALTERNATING:
            x[i] = i % 2 != 0 ? fabsf(x[i]) : -fabsf(x[i]);
            break;
        default:
            break;
        }
    }
    for (int64_t i = 0; i < p->n * p->k && pattern == CONSTANT_ROWS; i++) {
        w[i] = 0.5f + (float)(i / p->k % 7);
    }
    for (int64_t i = 0; i < p->m * p->k && pattern == CONSTANT_ROWS; i++) {
        x[i] = 0.1f + (float)(i / p->k % 3);
    }
}

static void product_open(struct product *p, enum tandem_type type, int64_t n, int64_t m, int64_t k,
                         enum pattern pattern)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(n * 31 + m * 7 + k));
    p->type = type;
    p->n = n;
    p->m = m;
    p->k = k;
    snprintf(p->name, sizeof(p->name), "mul_mat:%s:n%d:k%d:m%d %s", tandem_type_name(type), (int)n,
             (int)k, (int)m, pattern_names[pattern]);
    size_t row_bytes = tandem_type_row_bytes(type, k);
    p->w_values = malloc((size_t)(n * k) * sizeof(float) + 1);
    p->w = tnd_guarded_alloc((size_t)n * row_bytes, 2);
    p->x = tnd_guarded_alloc((size_t)(m * k) * sizeof(float), 4);
    p->y = tnd_guarded_alloc((size_t)(m * n) * sizeof(float), 4);
    fill_operands(p->w_values, p->x, p, pattern, &rng);
    tandem_quantize(type, p->w_values, p->w, n * k);
    tandem_dequantize(type, p->w, p->w_values, n * k);
    check_ok(tandem_context_new(NULL, &p->context, NULL));
    tandem_tensor *w =
        tandem_tensor_borrow(p->context, type, 2, (int64_t[]){k, n}, p->w, (size_t)n * row_bytes);
    tandem_tensor *x = tandem_tensor_borrow(p->context, TANDEM_TYPE_F32, 2, (int64_t[]){k, m}, p->x,
                                            (size_t)(m * k) * sizeof(float));
    p->node = tandem_mul_mat(p->context, w, x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->node);
    p->node->data = p->y;
}

static void product_close(struct product *p)
{
    tandem_context_free(p->context);
    free(p->w_values);
    tnd_guarded_free(p->w);
    tnd_guarded_free(p->x);
    tnd_guarded_free(p->y);
}

static double *reference(const struct product *p)
{
    double *y = malloc((size_t)(p->m * p->n) * sizeof(double) + 1);
    const float *x = p->x;
    for (int64_t t = 0; t < p->m; t++) {
        for (int64_t r = 0; r < p->n; r++) {
            double sum = 0;
            for (int64_t i = 0; i < p->k; i++) {
                sum += (double)p->w_values[r * p->k + i] * (double)x[t * p->k + i];
            }
            y[t * p->n + r] = sum;
        }
    }
    return y;
}

static double bound(enum tandem_type type, uint32_t init)
{
    if (tandem_type_is_quantized(type) && init == TANDEM_TASK_QUANTIZE_X) {
        return 5e-4;
    }
    /* the reference uses the weights as stored, so float products are exact to F32 */
    return 1e-10;
}

/* INIT (none for NODE) and COMPUTE over all rows, in `splits` row ranges. */
static void compute(const struct tnd_cpu_kernels *kernels, struct product *p, uint32_t init,
                    uint32_t task, int workers, int splits)
{
    size_t bytes = tnd_cpu_mul_mat_workspace(p->node, task);
    void *workspace = tnd_guarded_alloc(bytes, 64);
    memset(p->y, 0xff, (size_t)(p->m * p->n) * sizeof(float));
    if (init == TANDEM_TASK_QUANTIZE_X) {
        run_task(kernels, p->node, init, 0, p->n, workspace, bytes, workers);
    }
    for (int i = 0; i < splits; i++) {
        int64_t begin = p->n * i / splits;
        int64_t end = p->n * (i + 1) / splits;
        if (init == TANDEM_TASK_DEQUANTIZE_W) {
            run_task(kernels, p->node, init, begin, end, workspace, bytes, workers);
        }
        run_task(kernels, p->node, task, begin, end, workspace, bytes, workers);
    }
    tnd_guarded_free(workspace);
}

static void check_product(enum tandem_type type, uint32_t init, uint32_t task, int64_t n, int64_t m,
                          int64_t k, enum pattern pattern)
{
    struct product p;
    product_open(&p, type, n, m, k, pattern);
    double *want = reference(&p);
    for (int i = 0; i < n_isas; i++) {
        char what[192];
        snprintf(what, sizeof(what), "%s %s", p.name, isas[i].name);
        compute(&isas[i].kernels, &p, init, task, 1 + i % 3, 1);
        check_nmse_double(p.y, want, m * n, bound(type, init), what);
    }
    free(want);
    product_close(&p);
}

/* ---- the lists ---- */

static const enum tandem_type quantized_types[] = {
#define TYPE_ROW(NAME, form, offset, bits, is_super) TANDEM_TYPE_##NAME,
    TND_QUANT_KERNELS(TYPE_ROW)
#undef TYPE_ROW
};
enum { N_QUANTIZED = sizeof(quantized_types) / sizeof(quantized_types[0]) };
static const enum tandem_type float_types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_BF16};
enum { N_FLOAT = sizeof(float_types) / sizeof(float_types[0]) };

/* {n, m, k in blocks}; small, odd, around tile sizes, more than one part of K */
static const int64_t block_shapes[][3] = {{1, 1, 1},   {3, 2, 2},  {16, 1, 3},  {33, 5, 4},
                                          {64, 6, 1},  {31, 7, 5}, {65, 13, 2}, {100, 33, 3},
                                          {128, 4, 9}, {47, 12, 6}};
enum { N_SHAPES = sizeof(block_shapes) / sizeof(block_shapes[0]) };
static const int64_t float_shapes[][3] = {
    {1, 1, 1},     {3, 2, 5},     {16, 1, 64},   {33, 5, 127}, {64, 12, 256},
    {31, 13, 257}, {65, 25, 511}, {129, 7, 700}, {5, 3, 2049}, {257, 2, 8}};

static void quantized_products_match_the_double_reference(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED; t++) {
        int64_t block = tandem_type_block_values(quantized_types[t]);
        for (int s = 0; s < N_SHAPES; s++) {
            int64_t k = block_shapes[s][2] * (block == 32 ? 32 * (s % 2 != 0 ? 5 : 1) : block);
            check_product(quantized_types[t], TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q,
                          block_shapes[s][0], block_shapes[s][1], k, RANDOM);
        }
    }
}

/* Longer than any part of K that a kernel works on at a time, and not a multiple of one. */
static void long_rows_match_the_double_reference(void)
{
    find_isas();
    static const int64_t tokens[] = {1, 2, 17};
    for (int i = 0; i < (int)(sizeof(tokens) / sizeof(tokens[0])); i++) {
        for (int t = 0; t < N_QUANTIZED; t++) {
            check_product(quantized_types[t], TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q, 35,
                          tokens[i], 9472, RANDOM);
        }
        for (int t = 0; t < N_FLOAT; t++) {
            check_product(float_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, 35, tokens[i], 9473,
                          RANDOM);
        }
    }
}

static void quantized_products_stand_hard_values(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED; t++) {
        for (int pattern = 0; pattern < N_PATTERNS; pattern++) {
            check_product(quantized_types[t], TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q, 39, 7,
                          768, (enum pattern)pattern);
        }
    }
}

static void float_products_match_the_double_reference(void)
{
    find_isas();
    for (int t = 0; t < N_FLOAT; t++) {
        for (int s = 0; s < (int)(sizeof(float_shapes) / sizeof(float_shapes[0])); s++) {
            check_product(float_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, float_shapes[s][0],
                          float_shapes[s][1], float_shapes[s][2], RANDOM);
        }
        for (int pattern = 0; pattern < N_PATTERNS; pattern++) {
            check_product(float_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, 37, 14, 1100,
                          (enum pattern)pattern);
        }
    }
}

static void dequantized_products_match_the_double_reference(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED; t++) {
        check_product(quantized_types[t], TANDEM_TASK_DEQUANTIZE_W, TANDEM_TASK_MUL_MAT_F32, 37, 9,
                      512, RANDOM);
        check_product(quantized_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, 37, 9, 512, RANDOM);
    }
    for (int t = 1; t < N_FLOAT; t++) {
        check_product(float_types[t], TANDEM_TASK_DEQUANTIZE_W, TANDEM_TASK_MUL_MAT_F32, 41, 3, 333,
                      RANDOM);
    }
    check_product(TANDEM_TYPE_F32, TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_F32, 41, 3, 333, RANDOM);
}

static void dequantized_weights_have_the_bits_of_the_plain_codec(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED + 2; t++) {
        enum tandem_type type =
            t < N_QUANTIZED ? quantized_types[t] : float_types[t - N_QUANTIZED + 1];
        struct product p;
        int64_t n = 21;
        int64_t k = t < N_QUANTIZED ? 512 : 533;
        product_open(&p, type, n, 1, k, OUTLIERS);
        size_t bytes = (size_t)(n * k) * sizeof(float);
        for (int i = 0; i < n_isas; i++) {
            float *w = tnd_guarded_alloc(bytes, 64);
            char what[192];
            snprintf(what, sizeof(what), "%s %s", p.name, isas[i].name);
            run_task(&isas[i].kernels, p.node, TANDEM_TASK_DEQUANTIZE_W, 5, n, w, bytes, 3);
            run_task(&isas[i].kernels, p.node, TANDEM_TASK_DEQUANTIZE_W, 0, 5, w, bytes, 1);
            check_bits(w, p.w_values, bytes, what);
            tnd_guarded_free(w);
        }
        product_close(&p);
    }
}

/* The same product by 1 to 8 workers, in one or several row ranges: the same bits. */
static void bits_depend_on_neither_workers_nor_row_ranges(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED + N_FLOAT; t++) {
        bool quantized = t < N_QUANTIZED;
        enum tandem_type type = quantized ? quantized_types[t] : float_types[t - N_QUANTIZED];
        uint32_t init = quantized ? TANDEM_TASK_QUANTIZE_X : TANDEM_TASK_NONE;
        uint32_t task = quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE;
        struct product p;
        product_open(&p, type, 203, 5, 768, RANDOM);
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *first = malloc(bytes);
        for (int i = 0; i < n_isas; i++) {
            compute(&isas[i].kernels, &p, init, task, 1, 1);
            memcpy(first, p.y, bytes);
            for (int workers = 2; workers <= 8; workers++) {
                compute(&isas[i].kernels, &p, init, task, workers, workers % 4 + 1);
                check_bits(p.y, first, bytes, p.name);
            }
        }
        free(first);
        product_close(&p);
    }
}

/* Tokens one by one give the bits of the batch: a prompt and its replay agree. */
static void bits_do_not_depend_on_the_batch(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED + N_FLOAT; t++) {
        bool quantized = t < N_QUANTIZED;
        enum tandem_type type = quantized ? quantized_types[t] : float_types[t - N_QUANTIZED];
        uint32_t init = quantized ? TANDEM_TASK_QUANTIZE_X : TANDEM_TASK_NONE;
        uint32_t task = quantized ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_NODE;
        struct product p;
        product_open(&p, type, 70, 29, t % 2 != 0 ? 768 : 4864, RANDOM);
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *batch = malloc(bytes);
        for (int i = 0; i < n_isas; i++) {
            compute(&isas[i].kernels, &p, init, task, 2, 1);
            memcpy(batch, p.y, bytes);
            struct tandem_tensor token_x = *p.node->src[1];
            struct tandem_tensor token_y = *p.node;
            struct product one = p;
            one.m = 1;
            one.node = &token_y;
            token_x.ne[1] = 1;
            token_y.ne[1] = 1;
            token_y.src[1] = &token_x;
            for (int64_t m = 0; m < p.m; m++) {
                token_x.data = (float *)p.x + m * p.k;
                compute(&isas[i].kernels, &one, init, task, 1, 1);
                check_bits(p.y, batch + m * p.n, (size_t)p.n * sizeof(float), p.name);
            }
        }
        free(batch);
        product_close(&p);
    }
}

/* Attention products: strided views, more heads in X than in W. */
static void batched_and_strided_products_broadcast_their_weights(void)
{
    const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_BF16,
                                      TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_K};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    find_isas();
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        int64_t block = tandem_type_block_values(types[t]);
        int64_t k = block > 1 ? block : 45;
        int64_t n = 37;
        int64_t m = 6;
        tandem_context *context = NULL;
        check_ok(tandem_context_new(NULL, &context, NULL));
        /* rows of the heads lie side by side, as in a KV cache */
        tandem_tensor *cache = tandem_tensor_new(context, types[t], 4, (int64_t[]){k, 3, n, 2});
        tandem_tensor *queries =
            tandem_tensor_new(context, TANDEM_TYPE_F32, 4, (int64_t[]){k, 6, m, 2});
        float *values = malloc((size_t)(k * 3 * n * 2) * sizeof(float));
        tnd_test_fill(&rng, values, k * 3 * n * 2);
        tandem_quantize(types[t], values, cache->data, k * 3 * n * 2);
        tnd_test_fill(&rng, queries->data, k * 6 * m * 2);
        tandem_tensor *node = tandem_mul_mat(context, tandem_permute(context, cache, 0, 2, 1, 3),
                                             tandem_permute(context, queries, 0, 2, 1, 3));
        tandem_graph *graph = tandem_graph_new(context);
        tandem_graph_add(graph, node);
        check_ok(tandem_graph_finish(graph, NULL));
        tnd_graph_bind(graph, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(node->data);
        int64_t elements = n * m * 6 * 2;
        float *want = malloc((size_t)elements * sizeof(float));
        check_ok(tnd_eval_ref_node(node, NULL));
        memcpy(want, node->data, (size_t)elements * sizeof(float));
        for (int i = 0; i < n_isas; i++) {
            memset(node->data, 0xff, (size_t)elements * sizeof(float));
            run_task(&isas[i].kernels, node, TANDEM_TASK_NODE, 0, 11, NULL, 0, 2);
            run_task(&isas[i].kernels, node, TANDEM_TASK_NODE, 11, n, NULL, 0, 3);
            check_nmse(node->data, want, elements, 1e-10, isas[i].name);
        }
        free(want);
        free(values);
        tandem_context_free(context);
    }
}

/* Not-a-number and infinity reach the result of their token and no other. */
static void values_that_are_no_numbers_stay_in_their_token(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED; t++) {
        struct product p;
        product_open(&p, quantized_types[t], 33, 5, 512, RANDOM);
        ((float *)p.x)[1 * 512 + 77] = NAN;
        ((float *)p.x)[3 * 512 + 300] = INFINITY;
        for (int i = 0; i < n_isas; i++) {
            const float *y = p.y;
            compute(&isas[i].kernels, &p, TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q, 1, 1);
            int wrong = 0;
            for (int64_t token = 0; token < 5; token++) {
                for (int64_t r = 0; r < 33; r++) {
                    wrong += (isfinite(y[token * 33 + r]) == 0) != (token == 1 || token == 3);
                }
            }
            check_int(wrong, 0);
        }
        product_close(&p);
    }
}

static void unsuitable_tasks_are_refused_with_a_reason(void)
{
    struct product p;
    struct tandem_error error;
    product_open(&p, TANDEM_TYPE_F32, 3, 2, 5, RANDOM);
    check_status(tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_QUANTIZE_X, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "integer", &error);
    check_status(
        tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_DEQUANTIZE_W, &error),
        TANDEM_E_UNSUPPORTED_BACKEND, "F32 already", &error);
    check_status(tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_FINALIZE, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "no such task", &error);
    check_ok(tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_NODE, &error));
    product_close(&p);
}

/* What tune/ knows of the stairs in their times. */
static void float_kernels_of_vectors_take_sixteen_tokens_at_once(void)
{
    find_isas();
    for (int i = 0; i < n_isas; i++) {
        const struct tnd_kernels_f *f = &isas[i].kernels.f;
        int step = f->gemm_panel != NULL ? f->lanes : f->lanes * f->panels;
        bool is_scalar = strcmp(isas[i].kernels.isa_f, "scalar") == 0;
        CU_ASSERT_TRUE(is_scalar || step == TND_CPU_TOKEN_STEP);
    }
}

CU_TestInfo tnd_tests_matmul[] = {
    {"float_kernels_of_vectors_take_sixteen_tokens_at_once",
     float_kernels_of_vectors_take_sixteen_tokens_at_once},
    {"quantized_products_match_the_double_reference",
     quantized_products_match_the_double_reference},
    {"long_rows_match_the_double_reference", long_rows_match_the_double_reference},
    {"quantized_products_stand_hard_values", quantized_products_stand_hard_values},
    {"float_products_match_the_double_reference", float_products_match_the_double_reference},
    {"dequantized_products_match_the_double_reference",
     dequantized_products_match_the_double_reference},
    {"dequantized_weights_have_the_bits_of_the_plain_codec",
     dequantized_weights_have_the_bits_of_the_plain_codec},
    {"bits_depend_on_neither_workers_nor_row_ranges",
     bits_depend_on_neither_workers_nor_row_ranges},
    {"bits_do_not_depend_on_the_batch", bits_do_not_depend_on_the_batch},
    {"batched_and_strided_products_broadcast_their_weights",
     batched_and_strided_products_broadcast_their_weights},
    {"values_that_are_no_numbers_stay_in_their_token",
     values_that_are_no_numbers_stay_in_their_token},
    {"unsuitable_tasks_are_refused_with_a_reason", unsuitable_tasks_are_refused_with_a_reason},
    CU_TEST_INFO_NULL,
};
