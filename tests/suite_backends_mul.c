/* SPDX-License-Identifier: MIT
 * See suite_backends_mul.h. */
#include "tests/suite_backends_mul.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"
#include "tests/support.h"

/* Workers that run one after the other. */
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

void tnd_test_mul_run(const struct tnd_cpu_kernels *kernels, struct tandem_tensor *node,
                      uint32_t task, int64_t row_begin, int64_t row_end, void *workspace,
                      size_t workspace_bytes, void *packed, int workers)
{
    int64_t taken = 0;
    size_t scratch_bytes = tnd_cpu_mul_mat_scratch(node, task);
    void *scratch = tnd_guarded_alloc(scratch_bytes, 64);
    struct tandem_work work = {.node = node,
                               .task = task,
                               .row_begin = row_begin,
                               .row_end = row_end,
                               .workspace = workspace,
                               .workspace_bytes = workspace_bytes,
                               .prepared = packed};
    for (int i = 0; i < workers; i++) {
        struct tandem_error error;
        struct stage stage = {.base = {i, workers, 1, scratch, scratch_bytes, &error, stage_next,
                                       stage_barrier, 0, NULL},
                              .taken = &taken};
        check_status(tnd_cpu_mul_mat_run(kernels, &work, &stage.base), TANDEM_OK, NULL, &error);
    }
    tnd_guarded_free(scratch);
}

const char *const tnd_test_pattern_names[TND_TEST_PATTERNS] = {
    "random", "outliers", "constant rows", "zeros", "large", "alternating"};

static void fill_operands(float *w, float *x, const struct tnd_test_mul *p,
                          enum tnd_test_pattern pattern, struct tnd_test_rng *rng)
{
    tnd_test_fill(rng, w, p->n * p->k);
    tnd_test_fill(rng, x, p->m * p->k);
    for (int64_t i = 0; i < p->m * p->k; i++) {
        switch (pattern) {
        case TND_TEST_OUTLIERS:
            x[i] *= i % 37 == 5 ? 50.0f : 1.0f;
            break;
        case TND_TEST_ZEROS:
            x[i] = 0;
            break;
        case TND_TEST_LARGE:
            x[i] *= 1e15f;
            break;
        case TND_TEST_ALTERNATING:
            x[i] = i % 2 != 0 ? fabsf(x[i]) : -fabsf(x[i]);
            break;
        default:
            break;
        }
    }
    for (int64_t i = 0; i < p->n * p->k && pattern == TND_TEST_CONSTANT_ROWS; i++) {
        w[i] = 0.5f + (float)(i / p->k % 7);
    }
    for (int64_t i = 0; i < p->m * p->k && pattern == TND_TEST_CONSTANT_ROWS; i++) {
        x[i] = 0.1f + (float)(i / p->k % 3);
    }
}

/* Grids are searched slowly: of these types only the first rows are quantised, the others are
 * the same blocks in another order. */
static void quantize_rows(enum tandem_type type, const float *values, void *out, int64_t n,
                          int64_t k)
{
    enum { ROWS = 3 };
    const bool is_slow = type != TANDEM_TYPE_IQ4_XS && tandem_type_block_values(type) == 256 &&
                         type >= TANDEM_TYPE_IQ2_XXS;
    const int64_t made = is_slow && n > ROWS ? ROWS : n;
    const size_t block = tandem_type_block_bytes(type);
    const int64_t blocks = made * k / tandem_type_block_values(type);
    tandem_quantize(type, values, out, made * k);
    for (int64_t b = blocks; b < n * k / tandem_type_block_values(type); b++) {
        const int64_t from = (b + b / blocks) % blocks;
        memcpy((char *)out + (size_t)b * block, (char *)out + (size_t)from * block, block);
    }
}

void tnd_test_mul_open(struct tnd_test_mul *p, enum tandem_type type, int64_t n, int64_t m,
                       int64_t k, enum tnd_test_pattern pattern)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(n * 31 + m * 7 + k));
    p->packed = NULL;
    p->type = type;
    p->n = n;
    p->m = m;
    p->k = k;
    snprintf(p->name, sizeof(p->name), "mul_mat:%s:n%d:k%d:m%d %s", tandem_type_name(type), (int)n,
             (int)k, (int)m, tnd_test_pattern_names[pattern]);
    size_t row_bytes = tandem_type_row_bytes(type, k);
    p->w_values = malloc((size_t)(n * k) * sizeof(float) + 1);
    p->w = tnd_guarded_alloc((size_t)n * row_bytes, 2);
    p->x = tnd_guarded_alloc((size_t)(m * k) * sizeof(float), 4);
    p->y = tnd_guarded_alloc((size_t)(m * n) * sizeof(float), 4);
    fill_operands(p->w_values, p->x, p, pattern, &rng);
    quantize_rows(type, p->w_values, p->w, n, k);
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

void tnd_test_mul_close(struct tnd_test_mul *p)
{
    tandem_context_free(p->context);
    free(p->w_values);
    tnd_guarded_free(p->w);
    tnd_guarded_free(p->x);
    tnd_guarded_free(p->y);
}

double *tnd_test_mul_reference(const struct tnd_test_mul *p)
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

void tnd_test_mul_compute(const struct tnd_cpu_kernels *kernels, struct tnd_test_mul *p,
                          uint32_t init, uint32_t task, int workers, int splits)
{
    size_t bytes = tnd_cpu_mul_mat_workspace(p->node, task);
    void *workspace = tnd_guarded_alloc(bytes, 64);
    memset(p->y, 0xff, (size_t)(p->m * p->n) * sizeof(float));
    if (init == TANDEM_TASK_QUANTIZE_X || init == TANDEM_TASK_TILE_X) {
        tnd_test_mul_run(kernels, p->node, init, 0, p->n, workspace, bytes, p->packed, workers);
    }
    for (int i = 0; i < splits; i++) {
        int64_t begin = p->n * i / splits;
        int64_t end = p->n * (i + 1) / splits;
        if (init == TANDEM_TASK_DEQUANTIZE_W) {
            tnd_test_mul_run(kernels, p->node, init, begin, end, workspace, bytes, p->packed,
                             workers);
        }
        tnd_test_mul_run(kernels, p->node, task, begin, end, workspace, bytes, p->packed, workers);
    }
    tnd_guarded_free(workspace);
}
