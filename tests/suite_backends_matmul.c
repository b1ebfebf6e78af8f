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
#include "tests/suite_backends_mul.h"
#include "tests/support.h"

/* ---- instruction sets ---- */

struct isa {
    const char *name;
    struct tnd_cpu_kernels kernels;
};
enum { ISAS_MAX = 12 };
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

static double bound(enum tandem_type type, uint32_t init)
{
    if (tandem_type_is_quantized(type) && init == TANDEM_TASK_QUANTIZE_X) {
        return 5e-4;
    }
    /* the reference uses the weights as stored, so float products are exact to F32 */
    return 1e-10;
}

/* A result alone may be near 0 while its terms are not: its error is compared with |w| |x|. */
static bool is_near(const struct tnd_test_mul *p, int64_t row, int64_t token, double want,
                    double limit)
{
    const float *x = (const float *)p->x + token * p->k;
    const float *w = p->w_values + row * p->k;
    double w_norm = 0;
    double x_norm = 0;
    for (int64_t k = 0; k < p->k; k++) {
        w_norm += (double)w[k] * (double)w[k];
        x_norm += (double)x[k] * (double)x[k];
    }
    const float *y = p->y;
    return fabs((double)y[token * p->n + row] - want) <= sqrt(limit * w_norm) * sqrt(x_norm);
}

static void check_product(enum tandem_type type, uint32_t init, uint32_t task, int64_t n, int64_t m,
                          int64_t k, enum tnd_test_pattern pattern)
{
    struct tnd_test_mul p;
    tnd_test_mul_open(&p, type, n, m, k, pattern);
    double *want = tnd_test_mul_reference(&p);
    for (int i = 0; i < n_isas; i++) {
        char what[192];
        snprintf(what, sizeof(what), "%s %s", p.name, isas[i].name);
        tnd_test_mul_compute(&isas[i].kernels, &p, init, task, 1 + i % 3, 1);
        if (m * n == 1) {
            if (!is_near(&p, 0, 0, want[0], bound(type, init))) {
                printf("\n    %s: %g, expected %g", what, (double)*(float *)p.y, want[0]);
                CU_FAIL("a product is wrong");
            }
        } else {
            check_nmse_double(p.y, want, m * n, bound(type, init), what);
        }
    }
    free(want);
    tnd_test_mul_close(&p);
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
                          block_shapes[s][0], block_shapes[s][1], k, TND_TEST_RANDOM);
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
                          tokens[i], 9472, TND_TEST_RANDOM);
        }
        for (int t = 0; t < N_FLOAT; t++) {
            check_product(float_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, 35, tokens[i], 9473,
                          TND_TEST_RANDOM);
        }
    }
}

static void quantized_products_stand_hard_values(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED; t++) {
        for (int pattern = 0; pattern < TND_TEST_PATTERNS; pattern++) {
            check_product(quantized_types[t], TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q, 39, 7,
                          768, (enum tnd_test_pattern)pattern);
        }
    }
}

static void float_products_match_the_double_reference(void)
{
    find_isas();
    for (int t = 0; t < N_FLOAT; t++) {
        for (int s = 0; s < (int)(sizeof(float_shapes) / sizeof(float_shapes[0])); s++) {
            check_product(float_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, float_shapes[s][0],
                          float_shapes[s][1], float_shapes[s][2], TND_TEST_RANDOM);
        }
        for (int pattern = 0; pattern < TND_TEST_PATTERNS; pattern++) {
            check_product(float_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, 37, 14, 1100,
                          (enum tnd_test_pattern)pattern);
        }
    }
}

static void dequantized_products_match_the_double_reference(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED; t++) {
        check_product(quantized_types[t], TANDEM_TASK_DEQUANTIZE_W, TANDEM_TASK_MUL_MAT_F32, 37, 9,
                      512, TND_TEST_RANDOM);
        check_product(quantized_types[t], TANDEM_TASK_NONE, TANDEM_TASK_NODE, 37, 9, 512,
                      TND_TEST_RANDOM);
    }
    for (int t = 1; t < N_FLOAT; t++) {
        check_product(float_types[t], TANDEM_TASK_DEQUANTIZE_W, TANDEM_TASK_MUL_MAT_F32, 41, 3, 333,
                      TND_TEST_RANDOM);
    }
    check_product(TANDEM_TYPE_F32, TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_F32, 41, 3, 333,
                  TND_TEST_RANDOM);
}

static void dequantized_weights_have_the_bits_of_the_plain_codec(void)
{
    find_isas();
    for (int t = 0; t < N_QUANTIZED + 2; t++) {
        enum tandem_type type =
            t < N_QUANTIZED ? quantized_types[t] : float_types[t - N_QUANTIZED + 1];
        struct tnd_test_mul p;
        int64_t n = 21;
        int64_t k = t < N_QUANTIZED ? 512 : 533;
        tnd_test_mul_open(&p, type, n, 1, k, TND_TEST_OUTLIERS);
        size_t bytes = (size_t)(n * k) * sizeof(float);
        for (int i = 0; i < n_isas; i++) {
            float *w = tnd_guarded_alloc(bytes, 64);
            char what[192];
            snprintf(what, sizeof(what), "%s %s", p.name, isas[i].name);
            tnd_test_mul_run(&isas[i].kernels, p.node, TANDEM_TASK_DEQUANTIZE_W, 5, n, w, bytes,
                             NULL, 3);
            tnd_test_mul_run(&isas[i].kernels, p.node, TANDEM_TASK_DEQUANTIZE_W, 0, 5, w, bytes,
                             NULL, 1);
            check_bits(w, p.w_values, bytes, what);
            tnd_guarded_free(w);
        }
        tnd_test_mul_close(&p);
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
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, type, 203, 5, 768, TND_TEST_RANDOM);
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *first = malloc(bytes);
        for (int i = 0; i < n_isas; i++) {
            tnd_test_mul_compute(&isas[i].kernels, &p, init, task, 1, 1);
            memcpy(first, p.y, bytes);
            for (int workers = 2; workers <= 8; workers++) {
                tnd_test_mul_compute(&isas[i].kernels, &p, init, task, workers, workers % 4 + 1);
                check_bits(p.y, first, bytes, p.name);
            }
        }
        free(first);
        tnd_test_mul_close(&p);
    }
}

/* Gives MXFP4 blocks all exponents there are: the least make subnormal scales. */
static void spread_exponents(struct tnd_test_mul *p)
{
    const size_t block = tandem_type_block_bytes(p->type);
    for (int64_t b = 0; b < p->n * p->k / 32 && p->type == TANDEM_TYPE_MXFP4; b++) {
        ((uint8_t *)p->w)[(size_t)b * block] = (uint8_t)(b * 32 / p->k * 4 + b % 4);
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
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, type, 70, 29, t % 2 != 0 ? 768 : 4864, TND_TEST_RANDOM);
        spread_exponents(&p);
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *batch = malloc(bytes);
        for (int i = 0; i < n_isas; i++) {
            tnd_test_mul_compute(&isas[i].kernels, &p, init, task, 2, 1);
            memcpy(batch, p.y, bytes);
            struct tandem_tensor token_x = *p.node->src[1];
            struct tandem_tensor token_y = *p.node;
            struct tnd_test_mul one = p;
            one.m = 1;
            one.node = &token_y;
            token_x.ne[1] = 1;
            token_y.ne[1] = 1;
            token_y.src[1] = &token_x;
            for (int64_t m = 0; m < p.m; m++) {
                token_x.data = (float *)p.x + m * p.k;
                tnd_test_mul_compute(&isas[i].kernels, &one, init, task, 1, 1);
                check_bits(p.y, batch + m * p.n, (size_t)p.n * sizeof(float), p.name);
            }
        }
        free(batch);
        tnd_test_mul_close(&p);
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
            tnd_test_mul_run(&isas[i].kernels, node, TANDEM_TASK_NODE, 0, 11, NULL, 0, NULL, 2);
            tnd_test_mul_run(&isas[i].kernels, node, TANDEM_TASK_NODE, 11, n, NULL, 0, NULL, 3);
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
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, quantized_types[t], 33, 5, 512, TND_TEST_RANDOM);
        ((float *)p.x)[1 * 512 + 77] = NAN;
        ((float *)p.x)[3 * 512 + 300] = INFINITY;
        for (int i = 0; i < n_isas; i++) {
            const float *y = p.y;
            tnd_test_mul_compute(&isas[i].kernels, &p, TANDEM_TASK_QUANTIZE_X,
                                 TANDEM_TASK_MUL_MAT_Q, 1, 1);
            int wrong = 0;
            for (int64_t token = 0; token < 5; token++) {
                for (int64_t r = 0; r < 33; r++) {
                    wrong += (isfinite(y[token * 33 + r]) == 0) != (token == 1 || token == 3);
                }
            }
            check_int(wrong, 0);
        }
        tnd_test_mul_close(&p);
    }
}

/* Activations up to TND_X_HUGE are as good as small ones. Larger ones may overflow within a block,
 * times a weight of 0 too: then the result is no finite number, never a wrong one. */
static void huge_activations_give_the_product_or_no_number(void)
{
    enum { N = 37, M = 3, K = 512 };
    static const float largest[] = {TND_X_HUGE, 1.3e38f, 3e38f};
    find_isas();
    for (int t = 0; t < N_QUANTIZED * 3; t++) {
        const float top = largest[t % 3];
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, quantized_types[t / 3], N, M, K, TND_TEST_RANDOM);
        memset(p.w, 0, tandem_type_row_bytes(p.type, K)); /* a row of zeros */
        tandem_dequantize(p.type, p.w, p.w_values, K);
        for (int i = 0; i < M * K; i++) {
            ((float *)p.x)[i] *= top; /* random values lie within -1 and 1 */
        }
        double *want = tnd_test_mul_reference(&p);
        for (int i = 0; i < n_isas; i++) {
            const float *y = p.y;
            int lost = 0;
            int wrong = 0;
            tnd_test_mul_compute(&isas[i].kernels, &p, TANDEM_TASK_QUANTIZE_X,
                                 TANDEM_TASK_MUL_MAT_Q, 1, 1);
            for (int j = 0; j < N * M; j++) {
                const bool is_finite = isfinite(y[j]) != 0;
                lost += is_finite ? 0 : 1;
                wrong += is_finite &&
                         !is_near(&p, j % N, j / N, want[j], bound(p.type, TANDEM_TASK_QUANTIZE_X));
            }
            check_int(wrong, 0);
            CU_ASSERT(lost == 0 || top > TND_X_HUGE);
        }
        free(want);
        tnd_test_mul_close(&p);
    }
}

static void unsuitable_tasks_are_refused_with_a_reason(void)
{
    struct tnd_test_mul p;
    struct tandem_error error;
    tnd_test_mul_open(&p, TANDEM_TYPE_F32, 3, 2, 5, TND_TEST_RANDOM);
    check_status(tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_QUANTIZE_X, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "integer", &error);
    check_status(
        tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_DEQUANTIZE_W, &error),
        TANDEM_E_UNSUPPORTED_BACKEND, "F32 already", &error);
    check_status(tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_FINALIZE, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "no such task", &error);
    check_ok(tnd_cpu_mul_mat_supports(&isas[0].kernels, p.node, TANDEM_TASK_NODE, &error));
    tnd_test_mul_close(&p);
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
    {"huge_activations_give_the_product_or_no_number",
     huge_activations_give_the_product_or_no_number},
    {"unsuitable_tasks_are_refused_with_a_reason", unsuitable_tasks_are_refused_with_a_reason},
    CU_TEST_INFO_NULL,
};
