/* SPDX-License-Identifier: MIT
 * Products by the tiles of AMX, on emulated tiles, and on those of the CPU where it has them:
 * against the double-precision reference, within the bound that kernels/amx.h
 * derives, with the same bits whatever reads the weights, however the work is shared out. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/packing/packed_weights.h"
#include "base/cpu.h"
#include "ggml-like/quant.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_mul.h"
#include "tests/suite_backends_stage.h"

static const enum tandem_type types[] = {
#define TYPE_ROW(NAME, form, offset, bits, is_super) TANDEM_TYPE_##NAME,
    TND_QUANT_KERNELS(TYPE_ROW)
#undef TYPE_ROW
        TANDEM_TYPE_F32,
    TANDEM_TYPE_F16,
    TANDEM_TYPE_BF16,
};
enum { N_TYPES = sizeof(types) / sizeof(types[0]), N_QUANTIZED = N_TYPES - 3, LEVELS_MAX = 12 };

/* Levels of this machine: what reads the weights differs, and what does tile instructions. */
static struct {
    const char *name;
    struct tnd_cpu_kernels kernels;
} levels[LEVELS_MAX];
static int n_levels;

static const struct tnd_cpu_kernels *find_levels(void)
{
#define LEVEL(isa, needs, files)                                                                   \
    if (n_levels < LEVELS_MAX && (tnd_cpu_features_all() & (needs)) == (needs)) {                  \
        levels[n_levels].name = #isa;                                                              \
        tnd_cpu_kernels_for(needs, &levels[n_levels].kernels);                                     \
        if (levels[n_levels].kernels.amx.name == NULL) {                                           \
            tnd_fill_tiles_emulated(&levels[n_levels].kernels);                                    \
        }                                                                                          \
        n_levels++;                                                                                \
    }
    if (n_levels == 0) {
        TND_ISA_LIST(LEVEL, NONE)
    }
#undef LEVEL
    return &levels[0].kernels;
}

static void compute(const struct tnd_cpu_kernels *kernels, struct tnd_test_mul *p, int workers,
                    int splits)
{
    tnd_test_mul_compute(kernels, p, TANDEM_TASK_TILE_X, TANDEM_TASK_MUL_MAT_TILES, workers,
                         splits);
}

/* ---- the bound of kernels/amx.h ---- */

/* Values of up to 256 of a lane, in blocks of 32. */
static double top_of(const float *values, int64_t n)
{
    double top = 0;
    for (int64_t i = 0; i < n; i++) {
        top = fmax(top, fabs((double)values[i]));
    }
    return top;
}

static double length_of(const float *values)
{
    double sum = 0;
    for (int i = 0; i < 32; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sqrt(sum);
}

/* What one result may be wrong by: for each 32 values an operand by E of its length, or by what
 * three planes leave of each value, whichever is more. */
static double bound_of_bytes(const float *w, const float *x, int64_t k)
{
    const double e = sqrt((double)TND_AMX_HARMLESS);
    double sum = 0;
    double magnitudes = 0;
    for (int64_t k0 = 0; k0 < k; k0 += TND_AMX_VALUES) {
        int64_t n = tnd_min(TND_AMX_VALUES, k - k0);
        double w_low = top_of(w + k0, n) / 127 * sqrt(32.0) / 0x1p15;
        double x_low = top_of(x + k0, n) / 127 * sqrt(32.0) / 0x1p15;
        for (int64_t i = k0; i < k0 + n; i += 32) {
            double w_length = length_of(w + i);
            double x_length = length_of(x + i);
            double w_error = fmax(e * w_length, w_low);
            double x_error = fmax(e * x_length, x_low);
            sum += w_error * x_length + x_error * w_length + w_error * x_error;
            magnitudes += w_length * x_length;
        }
    }
    return sum + 1e-5 * magnitudes; /* rounding of floats */
}

/* What parts leave, and rounding: chains of 16 products in the unit, 8 tiles of 6 pairs of parts a
 * block, and blocks. What is subnormal counts as zero. */
static double bound_of_parts(enum tandem_type type, const float *w, const float *x, int64_t k)
{
    const double left = type == TANDEM_TYPE_F32 ? 0x1p-23 : 0x1p-17;
    const double rounding = (16 + 48 + (double)k / 256) * 0x1p-24;
    double magnitudes = 0;
    double flushed = 0;
    for (int64_t i = 0; i < k; i++) {
        magnitudes += fabs((double)w[i] * (double)x[i]);
        flushed += (fabs((double)w[i]) + fabs((double)x[i]) + 6) * 0x1p-126;
    }
    return (left + rounding) * magnitudes + flushed;
}

static double bound(enum tandem_type type, const float *w, const float *x, int64_t k)
{
    return tandem_type_is_quantized(type) ? bound_of_bytes(w, x, k) : bound_of_parts(type, w, x, k);
}

static void check_bound(const struct tnd_test_mul *p, const double *want, const char *what)
{
    const float *y = p->y;
    for (int64_t t = 0; t < p->m; t++) {
        for (int64_t r = 0; r < p->n; r++) {
            double most =
                bound(p->type, p->w_values + r * p->k, (const float *)p->x + t * p->k, p->k);
            double error = fabs((double)y[t * p->n + r] - want[t * p->n + r]);
            if (!(error <= most)) {
                printf("%s: row %d token %d is wrong by %g, more than %g\n", what, (int)r, (int)t,
                       error, most);
                CU_FAIL("outside the bound");
                return;
            }
        }
    }
}

/* Against the reference with the bounds that the other kernels have too, and each level against
 * the first one bit for bit. Levels differ in how they read weights: of many tokens, whose tiles
 * are what takes time, the first and the last level tell all. */
static void check_product(enum tandem_type type, int64_t n, int64_t m, int64_t k,
                          enum tnd_test_pattern pattern)
{
    struct tnd_test_mul p;
    tnd_test_mul_open(&p, type, n, m, k, pattern);
    double *want = tnd_test_mul_reference(&p);
    size_t bytes = (size_t)(m * n) * sizeof(float);
    float *first = malloc(bytes + 1);
    (void)find_levels();
    for (int i = 0; i < n_levels; i++) {
        char what[192];
        if (m > 5 && i > 0 && i < n_levels - 1) {
            continue;
        }
        snprintf(what, sizeof(what), "%s %s %s", p.name, levels[i].name,
                 levels[i].kernels.amx.name);
        compute(&levels[i].kernels, &p, 1 + i % 3, 1);
        if (m * n >= 100) { /* of few, one that happens to be nearly 0 decides */
            check_nmse_double(p.y, want, m * n, tandem_type_is_quantized(type) ? 5e-4 : 1e-10,
                              what);
        }
        check_bound(&p, want, what);
        if (i == 0) {
            memcpy(first, p.y, bytes);
        }
        check_bits(p.y, first, bytes, what);
    }
    free(first);
    free(want);
    tnd_test_mul_close(&p);
}

static void products_match_the_double_reference(void)
{
    /* n, m, k in blocks of 32 (or 256) */
    static const int64_t shapes[][3] = {{1, 1, 1},   {3, 2, 2},   {16, 1, 3},  {33, 5, 4},
                                        {64, 16, 8}, {31, 17, 9}, {65, 33, 2}, {100, 31, 7},
                                        {128, 4, 9}, {47, 65, 5}};
    for (int t = 0; t < N_TYPES; t++) {
        int64_t block = tandem_type_block_values(types[t]);
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            int64_t k = block > 1 ? shapes[s][2] * block : shapes[s][2] * 67 - 66;
            check_product(types[t], shapes[s][0], shapes[s][1], k, TND_TEST_RANDOM);
        }
        check_product(types[t], 35, 3, block > 1 ? 9472 : 2943, TND_TEST_RANDOM);
        check_product(types[t], 35, 3, 0, TND_TEST_RANDOM);
    }
}

static void products_stand_hard_values(void)
{
    for (int t = 0; t < N_TYPES; t++) {
        for (int pattern = 0; pattern < TND_TEST_PATTERNS; pattern++) {
            int64_t k = tandem_type_is_quantized(types[t]) ? 768 : 333;
            check_product(types[t], 39, 18, k, (enum tnd_test_pattern)pattern);
        }
    }
}

/* One value of each 256 is 10^5 times the others, in another place of W than of X: what is left of
 * the rest is in the further planes of both. */
static void outliers_leave_the_rest_within_the_bound(void)
{
    enum { N = 20, M = 19, K = 512 };
    for (int t = 0; t < N_QUANTIZED; t++) {
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, types[t], N, M, K, TND_TEST_RANDOM);
        for (int64_t i = 0; i < N * K; i++) {
            p.w_values[i] *= i % 256 == 70 ? 1e3f : 1.0f;
        }
        for (int64_t i = 0; i < M * K; i++) {
            ((float *)p.x)[i] *= i % 256 == 201 ? 1e5f : i % 256 < 96 ? 1e-2f : 1.0f;
        }
        tandem_quantize(p.type, p.w_values, p.w, N * K);
        tandem_dequantize(p.type, p.w, p.w_values, N * K);
        double *want = tnd_test_mul_reference(&p);
        compute(find_levels(), &p, 2, 1);
        check_nmse_double(p.y, want, N * M, 5e-4, p.name);
        check_bound(&p, want, p.name);
        free(want);
        tnd_test_mul_close(&p);
    }
}

static void bits_depend_on_neither_workers_nor_row_ranges(void)
{
    for (int t = 0; t < N_TYPES; t++) {
        struct tnd_test_mul p;
        bool is_float = t >= N_QUANTIZED;
        tnd_test_mul_open(&p, types[t], 203, 21, is_float ? 99 : 768, TND_TEST_OUTLIERS);
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *first = malloc(bytes);
        compute(find_levels(), &p, 1, 1);
        memcpy(first, p.y, bytes);
        for (int workers = 2; workers <= 5; workers++) {
            compute(find_levels(), &p, workers, workers % 4 + 1);
            check_bits(p.y, first, bytes, p.name);
        }
        free(first);
        tnd_test_mul_close(&p);
    }
}

/* Neighbours decide which planes are looked at, and change nothing. */
static void bits_do_not_depend_on_the_batch(void)
{
    for (int t = 0; t < N_TYPES; t++) {
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, types[t], 70, 37, t < N_QUANTIZED ? 768 : 65, TND_TEST_RANDOM);
        for (int64_t i = 5 * p.k; i < 6 * p.k; i++) {
            ((float *)p.x)[i] *= i % 100 == 0 ? 1e4f : 1.0f;
        }
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *batch = malloc(bytes);
        compute(find_levels(), &p, 2, 1);
        memcpy(batch, p.y, bytes);
        struct tandem_tensor token_x = *p.node->src[1];
        struct tandem_tensor token_y = *p.node;
        struct tnd_test_mul one = p;
        one.m = token_x.ne[1] = token_y.ne[1] = 1;
        one.node = &token_y;
        token_y.src[1] = &token_x;
        for (int64_t m = 0; m < p.m; m++) {
            token_x.data = (float *)p.x + m * p.k;
            compute(find_levels(), &one, 1, 1);
            check_bits(p.y, batch + m * p.n, (size_t)p.n * sizeof(float), p.name);
        }
        free(batch);
        tnd_test_mul_close(&p);
    }
}

/* FNV-1a of the results of fixed operands: the same on every machine, by every compiler. */
static uint64_t hash_of_product(enum tandem_type type)
{
    enum { N = 33, M = 17, K = 512 };
    struct tnd_test_mul p;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    tnd_test_mul_open(&p, type, N, M, K, TND_TEST_ZEROS);
    for (int i = 0; i < N * K; i++) {
        p.w_values[i] = (float)(i * 7919 % 1009 - 504) / 512.0f * (i % 300 == 7 ? 40.0f : 1.0f);
    }
    for (int i = 0; i < M * K; i++) {
        ((float *)p.x)[i] = (float)(i * 6101 % 907 - 453) / 300.0f * (i % 401 == 9 ? 90.0f : 1.0f);
    }
    tandem_quantize(type, p.w_values, p.w, N * K);
    compute(find_levels(), &p, 1, 1);
    for (size_t i = 0; i < N * M * sizeof(float); i++) {
        hash = (hash ^ ((const uint8_t *)p.y)[i]) * UINT64_C(0x100000001b3);
    }
    tnd_test_mul_close(&p);
    return hash;
}

static void bits_are_those_of_every_machine(void)
{
    check_int((int64_t)(hash_of_product(TANDEM_TYPE_Q4_K) >> 1), INT64_C(5153499281480546294));
    check_int((int64_t)(hash_of_product(TANDEM_TYPE_Q8_0) >> 1), INT64_C(1604051154851123600));
    check_int((int64_t)(hash_of_product(TANDEM_TYPE_F16) >> 1), INT64_C(8421540464028910549));
    check_int((int64_t)(hash_of_product(TANDEM_TYPE_F32) >> 1), INT64_C(1843275969543030929));
}

/* ---- what is no number ---- */

/* A token or a row that holds one has no other result; its neighbours have their own. */
static void what_is_no_number_stays_in_its_token_and_its_row(void)
{
    enum { N = 19, M = 18, K = 288, TOKEN = 3, ROW = 17 };
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, TANDEM_TYPE_Q8_0, N, M, K, TND_TEST_RANDOM);
        size_t bytes = N * M * sizeof(float);
        float *want = malloc(bytes);
        compute(find_levels(), &p, 1, 1);
        memcpy(want, p.y, bytes);
        ((float *)p.x)[TOKEN * K + 260] = strange[i];
        struct tnd_block_q8_0 *w = p.w;
        w[ROW * K / 32 + 2].d = i == 0 ? 0x7e00 : 0x7c00;
        compute(find_levels(), &p, 1, 1);
        for (int at = 0; at < N * M; at++) {
            float got = ((float *)p.y)[at];
            bool is_strange = at / N == TOKEN || at % N == ROW;
            CU_ASSERT(is_strange ? isnan(got) : memcmp(&got, &want[at], sizeof(got)) == 0);
        }
        free(want);
        tnd_test_mul_close(&p);
    }
}

static void subnormal_activations_are_zeros(void)
{
    struct tnd_test_mul p;
    tnd_test_mul_open(&p, TANDEM_TYPE_Q4_K, 17, 2, 256, TND_TEST_RANDOM);
    for (int i = 0; i < 256; i++) {
        ((float *)p.x)[i] = i % 2 != 0 ? -0x1p-140f : 0x1p-149f;
    }
    compute(find_levels(), &p, 1, 1);
    for (int i = 0; i < 17; i++) {
        CU_ASSERT(((float *)p.y)[i] == 0);
        CU_ASSERT(((float *)p.y)[17 + i] != 0);
    }
    tnd_test_mul_close(&p);
}

/* Infinite numbers may end as none, not as finite ones. */
static void what_is_no_number_stays_in_its_place_of_floats(void)
{
    enum { N = 19, M = 18, K = 70, TOKEN = 3, ROW = 17 };
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 9; i++) {
        struct tnd_test_mul p;
        tnd_test_mul_open(&p, types[N_QUANTIZED + i / 3], N, M, K, TND_TEST_RANDOM);
        size_t bytes = N * M * sizeof(float);
        float *want = malloc(bytes);
        compute(find_levels(), &p, 1, 1);
        memcpy(want, p.y, bytes);
        ((float *)p.x)[TOKEN * K + 69] = strange[i % 3];
        if (i % 3 == 0) { /* a bf16 number has none of the bits that make it no number */
            memcpy((float *)p.x + TOKEN * K + 69, &(uint32_t){0x7f800001}, sizeof(float));
        }
        p.w_values[ROW * K + 40] = strange[i % 3];
        tandem_quantize(p.type, p.w_values, p.w, N * K);
        compute(find_levels(), &p, 1, 1);
        for (int at = 0; at < N * M; at++) {
            float got = ((float *)p.y)[at];
            bool is_strange = at / N == TOKEN || at % N == ROW;
            CU_ASSERT(is_strange ? !isfinite(got) : memcmp(&got, &want[at], sizeof(got)) == 0);
            CU_ASSERT(!is_strange || i % 3 > 0 || isnan(got));
        }
        free(want);
        tnd_test_mul_close(&p);
    }
}

/* The largest floats, whose nearest bf16 number would be infinite, subnormal ones, those of F16,
 * which two parts hold. */
static void floats_at_the_ends_of_their_range_keep_the_bound(void)
{
    enum { N = 18, M = 5, K = 300 };
    static const float weights[] = {0x1p-149f, 0x1p127f, 0x1p-120f, 0x1p-24f};
    static const float activations[] = {1, 0x1p-8f, 0x1p-4f, 1};
    for (int i = 0; i < 12; i++) {
        struct tnd_test_mul p;
        enum tandem_type type = types[N_QUANTIZED + i / 4];
        tnd_test_mul_open(&p, type, N, M, K, TND_TEST_RANDOM);
        float factor = type == TANDEM_TYPE_F16 ? 0x1.8p-16f : weights[i % 4];
        for (int64_t at = 0; at < N * K; at++) {
            p.w_values[at] *= factor;
        }
        for (int64_t at = 0; at < M * K; at++) {
            ((float *)p.x)[at] *= activations[i % 4];
        }
        if (i % 4 == 1 && type != TANDEM_TYPE_F16) {
            p.w_values[7] = type == TANDEM_TYPE_F32 ? 0x1.fffffep127f : 0x1.fep127f;
        }
        tandem_quantize(type, p.w_values, p.w, N * K);
        tandem_dequantize(type, p.w, p.w_values, N * K);
        double *want = tnd_test_mul_reference(&p);
        compute(find_levels(), &p, 1, 1);
        check_bound(&p, want, p.name);
        free(want);
        tnd_test_mul_close(&p);
    }
}

/* ---- planes ---- */

static void fill_strip(float *values, float outlier)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, values, TND_AMX_VALUES * TND_AMX_LANES);
    values[40 * TND_AMX_LANES + 5] = outlier;
}

/* Ordinary values need one plane; more of them are for the lane with an outlier alone. */
static void further_planes_are_for_lanes_that_need_them(void)
{
    enum { COUNT = TND_AMX_VALUES * TND_AMX_LANES };
    static const float outliers[] = {0.5f, 100, 20000};
    float *values = malloc(COUNT * sizeof(float));
    struct tnd_amx_block *block = tnd_guarded_alloc(sizeof(*block), 64);
    for (int i = 0; i < 6; i++) {
        const bool is_w = i % 2 != 0;
        fill_strip(values, outliers[i / 2]);
        find_levels()->amx.quantize(values, TND_AMX_VALUES, is_w, block);
        check_int(block->n_planes, i / 2 + 1);
        for (int plane = 1; plane < block->n_planes; plane++) {
            int used[TND_AMX_LANES] = {0};
            for (int at = 0; at < COUNT; at++) {
                used[is_w ? at / 4 % 16 : at / 64 % 16] += block->plane[plane][at] != 0;
            }
            for (int l = 0; l < TND_AMX_LANES; l++) {
                CU_ASSERT((used[l] > 0) == (l == 5));
            }
            check_int(block->plane[0][is_w ? 10 * 64 + 5 * 4 : 5 * 64 + 40], 127);
        }
    }
    tnd_guarded_free(block);
    free(values);
}

/* ---- packed copies, and the backend ---- */

/* The weights from the rows and from packed panels: the same bits. */
static void packed_weights_have_the_bits_of_rows(void)
{
    static const struct tnd_packed_options unlimited = {.limit_bytes = SIZE_MAX};
    (void)find_levels();
    for (int i = 0; i < n_levels; i++) {
        for (int t = 0; t < N_TYPES; t++) {
            if (levels[i].kernels.packed[types[t]].unpack == NULL &&
                levels[i].kernels.packed_f[types[t]] == NULL) {
                continue;
            }
            struct tnd_test_mul p;
            struct tnd_packed_weights *weights = NULL;
            struct tnd_packed_weight *packed = NULL;
            int64_t block = tandem_type_block_values(types[t]);
            int64_t k = block == 256 ? 1024 : block == 32 ? 800 : 290;
            tnd_test_mul_open(&p, types[t], 53, 34, k, TND_TEST_RANDOM);
            size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
            float *want = malloc(bytes);
            compute(&levels[i].kernels, &p, 1, 1);
            memcpy(want, p.y, bytes);
            check_ok(tnd_packed_weights_new(&unlimited, &weights, NULL));
            check_ok(tnd_packed_weights_add(weights, p.node->src[0], &packed, NULL));
            p.packed = packed;
            for (int workers = 1; workers < 4; workers++) {
                compute(&levels[i].kernels, &p, workers, workers);
                check_bits(p.y, want, bytes, p.name);
            }
            free(want);
            tnd_packed_weights_free(weights);
            tnd_test_mul_close(&p);
        }
    }
}

static void products_are_refused_without_tiles(void)
{
    struct tnd_cpu_kernels kernels;
    struct tandem_error error;
    struct tnd_test_mul p;
    tnd_cpu_kernels_for(0, &kernels);
    tnd_test_mul_open(&p, TANDEM_TYPE_Q4_0, 4, 1, 64, TND_TEST_RANDOM);
    check_status(tnd_cpu_mul_mat_supports(&kernels, p.node, TANDEM_TASK_MUL_MAT_TILES, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "no AMX", &error);
    check_status(tnd_cpu_mul_mat_supports(find_levels(), p.node, TANDEM_TASK_TILE_X, &error),
                 TANDEM_OK, NULL, &error);
    tnd_test_mul_close(&p);
}

CU_TestInfo tnd_tests_amx[] = {
    {"products_match_the_double_reference", products_match_the_double_reference},
    {"products_stand_hard_values", products_stand_hard_values},
    {"outliers_leave_the_rest_within_the_bound", outliers_leave_the_rest_within_the_bound},
    {"bits_depend_on_neither_workers_nor_row_ranges",
     bits_depend_on_neither_workers_nor_row_ranges},
    {"bits_do_not_depend_on_the_batch", bits_do_not_depend_on_the_batch},
    {"bits_are_those_of_every_machine", bits_are_those_of_every_machine},
    {"what_is_no_number_stays_in_its_token_and_its_row",
     what_is_no_number_stays_in_its_token_and_its_row},
    {"what_is_no_number_stays_in_its_place_of_floats",
     what_is_no_number_stays_in_its_place_of_floats},
    {"floats_at_the_ends_of_their_range_keep_the_bound",
     floats_at_the_ends_of_their_range_keep_the_bound},
    {"subnormal_activations_are_zeros", subnormal_activations_are_zeros},
    {"further_planes_are_for_lanes_that_need_them", further_planes_are_for_lanes_that_need_them},
    {"packed_weights_have_the_bits_of_rows", packed_weights_have_the_bits_of_rows},
    {"products_are_refused_without_tiles", products_are_refused_without_tiles},
    CU_TEST_INFO_NULL,
};
