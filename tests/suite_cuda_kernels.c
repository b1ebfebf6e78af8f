/* SPDX-License-Identifier: MIT
 * Our kernels against the CPU's code. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tandem/tensor.h"
#include "tests/suite_cuda.h"

#define MMA_OPTIONS "-DTILE_M=16 -DTILE_N=32 -DTILE_K=32 -DITEM_M=4 -DITEM_N=4 -DUSE_MMA=1"
enum { K = TND_CU_K, N = TND_CU_N, M = TND_CU_M, GROUP = 128 };

static const enum tandem_type types[] = {
    TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q4_1,
    TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K, TANDEM_TYPE_Q3_K,
    TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_BCML1};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static void *must(void *pointer)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(pointer);
    return pointer;
}

void tnd_cu_product_make(struct tnd_cu_product *p, enum tandem_type type)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)type);
    *p = (struct tnd_cu_product){.type = type, .bytes = tandem_type_row_bytes(type, K) * N};
    p->weights = must(malloc(p->bytes));
    p->values = must(malloc(sizeof(float) * K * N));
    p->x = must(malloc(sizeof(float) * K * M));
    p->y = must(malloc(sizeof(float) * N * M));
    p->want = must(calloc(N * M, sizeof(double)));
    tnd_test_fill(&rng, p->values, (int64_t)K * N);
    tnd_test_fill(&rng, p->x, (int64_t)K * M);
    check_ok(tandem_quantize(type, p->values, p->weights, (int64_t)K * N));
    check_ok(tandem_dequantize(type, p->weights, p->values, (int64_t)K * N));
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            for (int k = 0; k < K; k++) {
                p->want[m * N + n] += (double)p->values[n * K + k] * (double)p->x[m * K + k];
            }
        }
    }
    p->at_weights = tnd_test_cu_upload(p->weights, p->bytes);
    p->at_x = tnd_test_cu_upload(p->x, sizeof(float) * K * M);
    p->at_y = tnd_test_cu_upload(NULL, sizeof(float) * N * M);
}

void tnd_cu_product_free(struct tnd_cu_product *p)
{
    tnd_cu.MemFree(p->at_weights);
    tnd_cu.MemFree(p->at_x);
    tnd_cu.MemFree(p->at_y);
    free(p->weights);
    free(p->values);
    free(p->x);
    free(p->y);
    free(p->want);
}

static const char *with_type(enum tandem_type type, const char *more)
{
    static char text[200];
    snprintf(text, sizeof(text), "-DTYPE_%s=1 %s", tandem_type_name(type), more);
    return text;
}

int tnd_cu_product_run(struct tnd_cu_product *p, void *module, const char *kernel,
                       const unsigned grid[2], unsigned block)
{
    uint64_t zero = 0;
    uint32_t k = K, n = N, m = M, begin = 0, end = N;
    return tnd_test_cu_run(module, kernel, grid, block, 0,
                           TND_ARGUMENTS(&p->at_weights, &zero, &p->at_x, &zero, &p->at_y, &zero,
                                         &k, &n, &m, &begin, &end));
}

int tnd_cu_dequantize_run(struct tnd_cu_product *p, void *module, uint64_t to)
{
    uint64_t zero = 0;
    uint32_t k = K, begin = 0, end = N;
    const unsigned grid[] = {(K / 16 + 63) / 64, N};
    return tnd_test_cu_run(module, "dequantize", grid, 64, 0,
                           TND_ARGUMENTS(&p->at_weights, &zero, &to, &zero, &k, &begin, &end));
}

static void run_product(struct tnd_cu_product *p, const char *source, const char *kernel,
                        const char *options, unsigned grid_x, unsigned grid_y, unsigned block)
{
    void *module = tnd_test_cu_compile(source, with_type(p->type, options));
    const unsigned grid[] = {grid_x, grid_y};
    CU_ASSERT_EQUAL(tnd_cu_product_run(p, module, kernel, grid, block), 0);
    tnd_test_cu_download(p->y, p->at_y, sizeof(float) * N * M);
    check_nmse_double(p->y, p->want, N * M, 1e-11, with_type(p->type, kernel));
    tnd_cu.ModuleUnload(module);
}

static void products_are_those_of_the_reference(void)
{
    if (!tnd_test_cu_is_there()) {
        return;
    }
    for (int i = 0; i < N_TYPES; i++) {
        struct tnd_cu_product p;
        tnd_cu_product_make(&p, types[i]);
        run_product(&p, "matvec.cl", "matvec",
                    "-DLANES=64 -DROWS=2 -DCOLUMNS=4 -DALIGNED=1 -DHAVE_SUBGROUPS=1 "
                    "-DUSE_SUBGROUPS=1",
                    (N + 1) / 2, (M + 3) / 4, 64);
        run_product(&p, "tiled.cl", "tiled",
                    "-DTILE_M=16 -DTILE_N=32 -DTILE_K=32 -DITEM_M=4 -DITEM_N=4", (N + 31) / 32, 1,
                    32);
        if (types[i] != TANDEM_TYPE_F32) {
            run_product(&p, "tiled.cl", "tiled", MMA_OPTIONS, (N + 31) / 32, 1, 32);
        }
        if (i == 3) { /* one type is enough for other shapes of groups */
            run_product(&p, "matvec.cl", "matvec", "-DLANES=16 -DROWS=1 -DCOLUMNS=1", N, M, 16);
            run_product(&p, "matvec.cl", "matvec", "-DLANES=1 -DROWS=2 -DCOLUMNS=8", (N + 1) / 2, 1,
                        1);
        }
        tnd_cu_product_free(&p);
    }
}

/* Tokens of hard values: as far from F32 sums of exact products as sums of 16 with cut bits may be,
 * and what is not finite stays in its token. */
static void tensor_cores_take_hard_values(void)
{
    static const enum tandem_type hard_types[] = {TANDEM_TYPE_F16,  TANDEM_TYPE_BF16,
                                                  TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q8_0,
                                                  TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q2_K};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    for (size_t i = 0; i < sizeof(hard_types) / sizeof(hard_types[0]); i++) {
        struct tnd_cu_product p;
        int wrong = 0;
        tnd_cu_product_make(&p, hard_types[i]);
        for (int k = 0; k < K; k++) {
            p.x[k] = ldexpf(p.x[k], k * 7 % 121 - 60); /* of all sizes */
            p.x[K + k] *= 6e4f;                        /* products are no halves */
            p.x[2 * K + k] *= 1e-40f;                  /* subnormal */
        }
        p.x[3 * K + 77] = NAN;
        p.x[4 * K + 5] = -INFINITY;
        CU_ASSERT_EQUAL(tnd_cu.MemcpyHtoD(p.at_x, p.x, sizeof(float) * K * M), 0);
        void *module = tnd_test_cu_compile("tiled.cl", with_type(p.type, MMA_OPTIONS));
        const unsigned grid[] = {(N + 31) / 32, 1};
        CU_ASSERT_EQUAL(tnd_cu_product_run(&p, module, "tiled", grid, 32), 0);
        tnd_test_cu_download(p.y, p.at_y, sizeof(float) * N * M);
        for (int at = 0; at < N * M; at++) {
            const float *x = p.x + at / N * K;
            const float *w = p.values + at % N * K;
            double want = 0, sizes = 0;
            for (int k = 0; k < K; k++) {
                want += (double)w[k] * (double)x[k];
                sizes += fabs((double)w[k] * (double)x[k]);
            }
            wrong += at / N < 3 ? fabs((double)p.y[at] - want) > 4e-7 * sizes + 1e-38
                                : isfinite(p.y[at]);
        }
        check_int(wrong, 0);
        tnd_cu.ModuleUnload(module);
        tnd_cu_product_free(&p);
    }
}

static void weights_decode_to_the_same_bits(void)
{
    if (!tnd_test_cu_is_there()) {
        return;
    }
    for (int i = 0; i < N_TYPES; i++) {
        struct tnd_cu_product p;
        tnd_cu_product_make(&p, types[i]);
        float *got = must(malloc(sizeof(float) * K * N));
        uint64_t at = tnd_test_cu_upload(NULL, sizeof(float) * K * N);
        void *module = tnd_test_cu_compile("dequantize.cl", with_type(types[i], "-DALIGNED=1"));
        CU_ASSERT_EQUAL(tnd_cu_dequantize_run(&p, module, at), 0);
        tnd_test_cu_download(got, at, sizeof(float) * K * N);
        check_bits(got, p.values, sizeof(float) * K * N, with_type(types[i], "dequantize"));
        tnd_cu.ModuleUnload(module);
        tnd_cu.MemFree(at);
        free(got);
        tnd_cu_product_free(&p);
    }
}

static void arguments_in_local_memory_are_offsets(void)
{
    enum { LENGTH = 300 };
    float x[LENGTH], y[LENGTH];
    uint64_t zero = 0, staged = 0;
    float factor = 1.5f;
    int32_t offset = -2;
    uint32_t n = LENGTH;
    const unsigned grid[] = {(LENGTH + 63) / 64, 1};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, x, LENGTH);
    uint64_t at_x = tnd_test_cu_upload(x, sizeof(x));
    uint64_t at_y = tnd_test_cu_upload(NULL, sizeof(y));
    void *module = tnd_test_cu_compile("smoke.cl", "");
    CU_ASSERT_EQUAL(
        tnd_test_cu_run(module, "smoke", grid, 64, 64 * sizeof(float),
                        TND_ARGUMENTS(&at_x, &zero, &at_y, &zero, &staged, &factor, &offset, &n)),
        0);
    tnd_test_cu_download(y, at_y, sizeof(y));
    for (int i = 0; i < LENGTH; i++) {
        x[i] = x[i] * factor + (float)offset;
    }
    check_bits(y, x, sizeof(y), "smoke");
    tnd_cu.ModuleUnload(module);
    tnd_cu.MemFree(at_x);
    tnd_cu.MemFree(at_y);
}

/* Rows of a soft_max and a norm: sums over a group, through barriers. */
static void sums_over_groups_are_those_of_the_reference(void)
{
    enum { LENGTH = 200, ROWS = 3 };
    float x[LENGTH * ROWS], y[LENGTH * ROWS];
    double want[LENGTH * ROWS];
    uint64_t zero = 0, nb1 = LENGTH * sizeof(float), nb2 = nb1 * ROWS;
    uint32_t ne0 = LENGTH, ne1 = ROWS, ne2 = 1, none = 0;
    float scale = 0.7f, eps = 1e-5f;
    const unsigned grid[] = {ROWS, 1};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, x, LENGTH * ROWS);
    uint64_t at_x = tnd_test_cu_upload(x, sizeof(x));
    uint64_t at_y = tnd_test_cu_upload(NULL, sizeof(y));
    void *module = tnd_test_cu_compile("ops_rows.cl", "-DHAVE_FP64=1");
    CU_ASSERT_EQUAL(tnd_test_cu_run(module, "norm_rows", grid, GROUP, 0,
                                    TND_ARGUMENTS(&at_y, &zero, &at_x, &zero, &none, &eps, &ne0,
                                                  &ne1, &ne2, &nb1, &nb2, &nb2)),
                    0);
    tnd_test_cu_download(y, at_y, sizeof(y));
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < LENGTH; i++) {
            sum += (double)x[r * LENGTH + i] * (double)x[r * LENGTH + i];
        }
        for (int i = 0; i < LENGTH; i++) {
            want[r * LENGTH + i] = (double)x[r * LENGTH + i] / sqrt(sum / LENGTH + (double)eps);
        }
    }
    check_nmse_double(y, want, LENGTH * ROWS, 1e-12, "norm_rows");
    CU_ASSERT_EQUAL(
        tnd_test_cu_run(module, "soft_max_rows", grid, GROUP, 0,
                        TND_ARGUMENTS(&at_y, &zero, &at_x, &zero, &at_x, &zero, &none, &scale, &ne0,
                                      &ne1, &ne2, &nb1, &nb2, &nb2, &zero)),
        0);
    tnd_test_cu_download(y, at_y, sizeof(y));
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < LENGTH; i++) {
            want[r * LENGTH + i] = exp((double)x[r * LENGTH + i] * (double)scale);
            sum += want[r * LENGTH + i];
        }
        for (int i = 0; i < LENGTH; i++) {
            want[r * LENGTH + i] /= sum;
        }
    }
    check_nmse_double(y, want, LENGTH * ROWS, 1e-12, "soft_max_rows");
    tnd_cu.ModuleUnload(module);
    tnd_cu.MemFree(at_x);
    tnd_cu.MemFree(at_y);
}

/* ---- math.clh ---- */

static bool is_near(double got, double want, double limit)
{
    return isnan(want) ? isnan(got) : got == want || fabs(got - want) <= limit * fabs(want);
}

/* What clang has no functions for, under other names. Powers of two are libm's here, in place of
 * the GPU's instruction. */
static void mathematics_of_prebuilt_kernels_is_libms(void)
{
    enum { VALUES = 2048, EACH = 7, FUNCTIONS = 5 };
    static const float special[] = {0.0f,    -0.0f,  0.6f,       -0.6f,     88.7f,    88.8f, -87.5f,
                                    -104.0f, 1e-30f, 3.1415927f, -INFINITY, INFINITY, NAN};
    static const char head[] =
        "#define exp own_exp\n#define exp2 own_exp2\n#define tanh own_tanh\n#define erfc own_erfc\n"
        "#define sincos own_sincos\n#define exp2_fast exp2f\n";
    static const char tail[] =
        "kernel void all(global const float *x, global float *y)\n{\n"
        "    const uint i = get_global_id(0);\n"
        "    y += 7 * i;\n"
        "    const double power = exp2((double)x[i]);\n"
        "    y[0] = exp(x[i]);\n    y[1] = tanh(x[i]);\n    y[2] = erfc(x[i]);\n"
        "    y[3] = sincos(x[i], &y[4]);\n"
        "    y[5] = (float)power;\n    y[6] = (float)(power - (double)y[5]);\n}\n";
    static float x[VALUES], y[VALUES * EACH];
    int wrong[FUNCTIONS] = {0};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, x, VALUES);
    for (int i = 0; i < VALUES; i++) {
        x[i] = (size_t)i < sizeof(special) / sizeof(special[0]) ? special[i]
                                                                : x[i] * (i % 2 == 0   ? 1.0f
                                                                          : i % 3 == 0 ? 30.0f
                                                                                       : 4.0f);
    }
    struct tnd_text text = TND_TEXT_INIT;
    char *math = tnd_test_cu_text("math.clh");
    tnd_text_printf(&text, "%s%s%s", head, math, tail);
    void *module = tnd_test_cu_compile(tnd_text_string(&text), "");
    uint64_t at_x = tnd_test_cu_upload(x, sizeof(x));
    uint64_t at_y = tnd_test_cu_upload(NULL, sizeof(y));
    CU_ASSERT_EQUAL(tnd_test_cu_run(module, "all", (unsigned[]){VALUES / 64, 1}, 64, 0,
                                    TND_ARGUMENTS(&at_x, &at_y)),
                    0);
    tnd_test_cu_download(y, at_y, sizeof(y));
    for (int i = 0; i < VALUES; i++) {
        const double value = (double)x[i];
        const float *got = &y[EACH * i];
        wrong[0] += exp(value) > 1e-37 && !is_near((double)got[0], (double)(float)exp(value), 3e-7);
        wrong[1] += !is_near((double)got[1], tanh(value), 3e-7);
        wrong[2] += value < 8 && !is_near((double)got[2], erfc(value), 4e-6);
        wrong[3] += fabs(value) < 200 && (fabs((double)got[3] - sin(value)) > 1.5e-7 ||
                                          fabs((double)got[4] - cos(value)) > 1.5e-7);
        wrong[4] +=
            fabs(value) < 100 && !is_near((double)got[5] + (double)got[6], exp2(value), 1e-13);
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        check_int(wrong[i], 0);
    }
    tnd_cu.MemFree(at_x);
    tnd_cu.MemFree(at_y);
    tnd_cu.ModuleUnload(module);
    tnd_text_fini(&text);
    tnd_free(math);
}

CU_TestInfo tnd_tests_cuda_kernels[] = {
    {"products are those of the reference", products_are_those_of_the_reference},
    {"tensor cores take hard values", tensor_cores_take_hard_values},
    {"weights decode to the same bits", weights_decode_to_the_same_bits},
    {"arguments in local memory are offsets", arguments_in_local_memory_are_offsets},
    {"sums over groups are those of the reference", sums_over_groups_are_those_of_the_reference},
    {"mathematics of prebuilt kernels is that of libm", mathematics_of_prebuilt_kernels_is_libms},
    CU_TEST_INFO_NULL,
};
