/* SPDX-License-Identifier: MIT
 * Choosing values of rows on a device: each choice, its weight and the sum are those of the CPU,
 * bit for bit, for random rows and hard ones; draws follow the distribution; guards around
 * results. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_ops.h"
#include "ggml-like/tnd_sample.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/sample.h"
#include "tests/suite_opencl.h"

enum { MOST = 256 * 1024, MOST_ROWS = 3, GUARD = 0x5C, ALL_STEPS = 7 };

static struct tnd_gpu_device *device;
static struct tnd_gpu_block *blocks[4]; /* logits, settings, mask, result with guards */
static tandem_context *context;
static struct tnd_test_rng rng;
static float *logits;    /* {MOST, MOST_ROWS} */
static uint32_t *mask;   /* {MOST / 32} */
static bool *mask_bytes; /* {MOST} */
static void *memory;     /* of the CPU */

static bool begin(void)
{
    static const size_t bytes[] = {
        sizeof(float) * MOST * MOST_ROWS, sizeof(struct tandem_sample_settings) * MOST_ROWS,
        sizeof(uint32_t) * MOST / 32, sizeof(struct tandem_sample_choice) * (MOST_ROWS + 2)};
    device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
    if (device == NULL) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        (void)check_ok(tnd_gpu_map(device, bytes[i], &blocks[i], NULL));
    }
    rng = tnd_test_rng_new(tnd_test_seed());
    logits = malloc(bytes[0]);
    mask = calloc(1, bytes[2]);
    mask_bytes = calloc(MOST, 1);
    memory = malloc(tandem_sample_memory(MOST));
    return check_ok(tandem_context_new(NULL, &context, NULL));
}

static void end(void)
{
    tandem_context_free(context);
    free(logits);
    free(mask);
    free(mask_bytes);
    free(memory);
    for (int i = 0; i < 4; i++) {
        tnd_gpu_give_back(device, blocks[i]);
    }
    tnd_gpu_device_close(device);
}

/* Chooses from n_rows rows of n logits; `out` {n_rows}. */
static bool choose(int64_t n, int64_t n_rows, const struct tandem_sample_settings *settings,
                   bool has_mask, int steps, struct tandem_sample_choice *out)
{
    struct tandem_sample_choice result[MOST_ROWS + 2];
    const int64_t ne[] = {n, n_rows}, settings_ne[] = {8, n_rows}, words = (n + 31) / 32;
    tandem_context_reset(context);
    tandem_tensor *node = tandem_sample(
        context,
        tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, ne, logits,
                             sizeof(float) * (size_t)(n * n_rows)),
        tandem_tensor_new(context, TANDEM_TYPE_I32, 2, settings_ne),
        has_mask ? tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &words) : NULL, steps);
    const struct tandem_places places = {
        .result = {blocks[3], sizeof(result[0])},
        .src = {{blocks[0], 0}, {blocks[1], 0}, {blocks[2], 0}},
    };
    const struct tandem_work work = {
        .node = node, .task = TANDEM_TASK_NODE, .row_end = n_rows, .places = &places};
    struct tandem_error error = {0};
    uint64_t ticket = 0;
    memset(result, GUARD, sizeof(result));
    if (node == NULL || !check_ok(tnd_gpu_ops_supports(device, node, &error)) ||
        !check_ok(tnd_gpu_upload(device, (struct tandem_place){blocks[3], 0}, result,
                                 sizeof(result), NULL)) ||
        !check_ok(tnd_gpu_upload(device, places.src[0], logits,
                                 sizeof(float) * (size_t)(n * n_rows), NULL)) ||
        !check_ok(tnd_gpu_upload(device, places.src[1], settings,
                                 sizeof(*settings) * (size_t)n_rows, NULL)) ||
        (has_mask &&
         !check_ok(tnd_gpu_upload(device, places.src[2], mask, (size_t)words * 4, NULL))) ||
        !check_status(tnd_gpu_ops_submit(device, &work, &error), TANDEM_OK, NULL, &error) ||
        !check_ok(tnd_gpu_download(device, (struct tandem_place){blocks[3], 0}, result,
                                   sizeof(result), &ticket, NULL)) ||
        !check_ok(tnd_gpu_sync(device, ticket, NULL))) {
        return false;
    }
    const unsigned char *bytes = (const unsigned char *)result;
    const size_t after = sizeof(result[0]) * (size_t)(n_rows + 1);
    memcpy(out, result + 1, sizeof(result[0]) * (size_t)n_rows);
    return bytes[sizeof(result[0]) - 1] == GUARD && bytes[after] == GUARD;
}

/* Rows whose choice, weight or sum is not the CPU's. */
static int64_t count_wrong(int64_t n, int64_t n_rows, const struct tandem_sample_settings *settings,
                           bool has_mask, int steps)
{
    struct tandem_sample_choice got[MOST_ROWS], want;
    int64_t n_wrong = 0;
    if (!choose(n, n_rows, settings, has_mask, steps, got)) {
        return n_rows;
    }
    for (int64_t m = 0; m < n_rows; m++) {
        const float *row = logits + m * n;
        struct tandem_sample_settings one = settings[m];
        one.scale = (steps & TANDEM_SAMPLE_DRAWS) != 0 ? one.scale : 0;
        one.k = (steps & TANDEM_SAMPLE_K) != 0 ? one.k : 0;
        one.share = (steps & TANDEM_SAMPLE_SHARE) != 0 ? one.share : 0;
        int64_t kept =
            tandem_sample_row(&one, row, n, has_mask ? mask_bytes : NULL, memory, NULL, &want);
        if (kept == 0 && has_mask) {
            kept = tandem_sample_row(&one, row, n, NULL, memory, NULL, &want);
        }
        if (got[m].index != want.index || got[m].weight != want.weight ||
            got[m].total != want.total) {
            printf("  n %lld row %lld of %lld: index %d weight %u of %llu, expected %d %u of %llu "
                   "(%lld kept; scale %u exponent %d k %u least %u share %llx draw %llx steps %d "
                   "mask %d)\n",
                   (long long)n, (long long)m, (long long)n_rows, got[m].index, got[m].weight,
                   (unsigned long long)got[m].total, want.index, want.weight,
                   (unsigned long long)want.total, (long long)kept, one.scale, one.exponent, one.k,
                   one.least, (unsigned long long)one.share, (unsigned long long)one.draw, steps,
                   has_mask);
            n_wrong++;
        }
    }
    return n_wrong;
}

/* ---- random rows ---- */

static float normal(void)
{
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) {
        sum += tnd_test_rng_float(&rng);
    }
    return sum * 0.86602540f;
}

enum kind {
    NARROW,
    WIDE,
    PEAKED,
    TIES,
    EQUAL,
    SUBNORMAL,
    INFINITE,
    NOTHING,
    ANY_BITS,
    HUGE_VALUES,
    KINDS
};

static float value_of(enum kind kind, int64_t i, int64_t peak)
{
    static const float hard[] = {NAN,    INFINITY, -INFINITY, -0.0f,    0.0f,
                                 1e-40f, -1e-40f,  FLT_MAX,   -FLT_MAX, 1.0f};
    const uint32_t bits = (uint32_t)tnd_test_rng_next(&rng);
    float any;
    memcpy(&any, &bits, sizeof(any));
    switch (kind) {
    case NARROW:
        return normal();
    case WIDE:
        return 4.0f * normal() - 3.0f;
    case PEAKED:
        return i == peak ? 30.0f : normal();
    case TIES:
        return (float)(int)(2.0f * normal());
    case EQUAL:
        return 1.5f;
    case SUBNORMAL:
        return i % 3 == 0 ? -0.0f : (float)((double)normal() * 0x1p-127);
    case INFINITE:
        return bits % 64 == 0 ? hard[bits / 64 % 10] : normal();
    case NOTHING:
        return i % 2 == 0 ? NAN : -INFINITY;
    case ANY_BITS:
        return any;
    default:
        return normal() * 1e38f;
    }
}

static struct tandem_sample_settings random_settings(int64_t n)
{
    static const float temperatures[] = {0.0f, 0.1f, 0.7f, 1.0f, 1.0f, 1.3f, 20.0f, 1e-38f, 3e38f};
    static const float shares[] = {0.0f, 0.5f, 0.9f, 0.95f, 0.999999f, 1.0f, 1e-30f};
    const int64_t ks[] = {0, 0, 1, 40, n - 1, n, n + 1, tnd_test_rng_int(&rng, 1, n)};
    struct tandem_sample_settings settings;
    tandem_sample_settings_fill(
        &settings, temperatures[tnd_test_rng_int(&rng, 0, 8)], ks[tnd_test_rng_int(&rng, 0, 7)],
        shares[tnd_test_rng_int(&rng, 0, 6)],
        (float[]){0.0f, 0.0f, 0.05f, 1.0f}[tnd_test_rng_int(&rng, 0, 3)], tnd_test_rng_next(&rng));
    if (tnd_test_rng_int(&rng, 0, 15) == 0) { /* whatever a program may have written there */
        settings.scale = (uint32_t)tnd_test_rng_next(&rng) >> tnd_test_rng_int(&rng, 0, 31);
        settings.exponent = (int32_t)tnd_test_rng_next(&rng) >> tnd_test_rng_int(&rng, 0, 31);
        settings.k = (uint32_t)tnd_test_rng_next(&rng) >> tnd_test_rng_int(&rng, 0, 31);
        settings.least = (uint32_t)tnd_test_rng_next(&rng) >> tnd_test_rng_int(&rng, 0, 31);
        settings.share = tnd_test_rng_next(&rng) >> tnd_test_rng_int(&rng, 0, 63);
    }
    return settings;
}

static int64_t random_length(void)
{
    static const int64_t most[] = {1, 40, 1500, 5000, 33000, 33000, 131072, MOST};
    return tnd_test_rng_int(&rng, 1, most[tnd_test_rng_int(&rng, 0, 7)]);
}

static void make_mask(int64_t n)
{
    const int64_t share = tnd_test_rng_int(&rng, 0, 16); /* 0: nothing may be chosen */
    memset(mask, 0, (size_t)(n + 31) / 32 * 4);
    for (int64_t i = 0; i < n; i++) {
        mask_bytes[i] = tnd_test_rng_int(&rng, 0, 15) < share;
        mask[i / 32] |= (uint32_t)mask_bytes[i] << i % 32;
    }
}

/* 10,000 rows at the highest effort. */
static void choices_are_those_of_the_cpu(void)
{
    const int n_wanted = tnd_effort() >= 3 ? 10000 : tnd_effort() == 2 ? 100 : 30;
    int64_t n_wrong = 0, n_done = 0, n_values = 0;
    if (!begin()) {
        return;
    }
    for (int i = 0; n_done < n_wanted; i++) {
        struct tandem_sample_settings settings[MOST_ROWS];
        const int64_t n = random_length();
        const int64_t n_rows = tnd_test_rng_int(&rng, 0, 3) == 0 ? MOST_ROWS : 1;
        const bool has_mask = tnd_test_rng_int(&rng, 0, 3) == 0;
        for (int64_t m = 0; m < n_rows; m++) {
            const enum kind kind = (enum kind)((i + m) % KINDS);
            const int64_t peak = tnd_test_rng_int(&rng, 0, n - 1);
            for (int64_t j = 0; j < n; j++) {
                logits[m * n + j] = value_of(kind, j, peak);
            }
            settings[m] = random_settings(n);
        }
        make_mask(has_mask ? n : 0);
        const int steps = i % 4 == 3 ? (int)tnd_test_rng_int(&rng, 0, ALL_STEPS) : ALL_STEPS;
        n_wrong += count_wrong(n, n_rows, settings, has_mask, steps);
        n_done += n_rows;
        n_values += n * n_rows;
    }
    check_int(n_wrong, 0);
    if (tnd_effort() >= 3) {
        printf("  %lld rows with %lld values\n", (long long)n_done, (long long)n_values);
    }
    end();
}

/* Borders within ties, at the first and the last value, over more than one slice. */
static void hard_borders_are_those_of_the_cpu(void)
{
    static const int64_t lengths[] = {1, 2, 31, 33, 1024, 2049, 5000};
    static const uint64_t draws[] = {0, 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
    static const float shares[] = {0.0f, 1e-30f, 0.25f, 0.5f, 1.0f};
    int64_t n_wrong = 0;
    if (!begin()) {
        return;
    }
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        const int64_t n = lengths[l];
        const int64_t ks[] = {0, 1, n / 2, n};
        for (int64_t i = 0; i < n; i++) {
            logits[i] = 1.0f;
            logits[n + i] = i < n / 2 ? -0.0f : 0.0f;
            logits[2 * n + i] = i == n - 1 ? INFINITY : (float)(i % 3);
        }
        for (int k = 0; k < 4; k++) {
            for (int share = 0; share < 5; share++) {
                struct tandem_sample_settings settings[MOST_ROWS];
                const uint64_t draw = draws[(k + share + (int)l) % 5];
                for (int m = 0; m < MOST_ROWS; m++) {
                    tandem_sample_settings_fill(&settings[m], 1.0f, ks[k], shares[share], 0.0f,
                                                draw);
                }
                n_wrong += count_wrong(n, MOST_ROWS, settings, false, ALL_STEPS);
            }
        }
    }
    check_int(n_wrong, 0);
    end();
}

/* Pearson's chi-square against exp: six standard deviations above the mean. */
static void draws_follow_the_distribution(void)
{
    enum { N = 64, DRAWS = 1500 };
    double want[N], sum = 0.0, chi = 0.0;
    int64_t got[N] = {0};
    if (!begin()) {
        return;
    }
    const int64_t n_draws = tnd_effort() >= 3 ? 64 * DRAWS : DRAWS;
    for (int i = 0; i < N; i++) {
        logits[i] = 1.5f * normal();
        want[i] = exp((double)logits[i] / 0.8);
        sum += want[i];
    }
    for (int m = 1; m < MOST_ROWS; m++) {
        memcpy(logits + (size_t)m * N, logits, N * sizeof(float));
    }
    for (int64_t i = 0; i < n_draws; i += MOST_ROWS) {
        struct tandem_sample_settings settings[MOST_ROWS];
        struct tandem_sample_choice choice[MOST_ROWS];
        for (int m = 0; m < MOST_ROWS; m++) {
            tandem_sample_settings_fill(&settings[m], 0.8f, 0, 0.0f, 0.0f, tnd_test_rng_next(&rng));
        }
        CU_ASSERT_TRUE_FATAL(choose(N, MOST_ROWS, settings, false, TANDEM_SAMPLE_DRAWS, choice));
        for (int m = 0; m < MOST_ROWS; m++) {
            got[choice[m].index]++;
        }
    }
    const double n_got = (double)((n_draws + MOST_ROWS - 1) / MOST_ROWS * MOST_ROWS);
    for (int i = 0; i < N; i++) {
        const double expected = want[i] / sum * n_got;
        chi += ((double)got[i] - expected) * ((double)got[i] - expected) / expected;
    }
    CU_ASSERT(chi < (N - 1) + 6.0 * sqrt(2.0 * (N - 1)));
    if (tnd_effort() >= 3) {
        printf("  chi-square %.1f with %d degrees of freedom, %.0f draws\n", chi, N - 1, n_got);
    }
    end();
}

CU_TestInfo tnd_tests_opencl_sample[] = {
    {"choices_are_those_of_the_cpu", choices_are_those_of_the_cpu},
    {"hard_borders_are_those_of_the_cpu", hard_borders_are_those_of_the_cpu},
    {"draws_follow_the_distribution", draws_follow_the_distribution},
    CU_TEST_INFO_NULL,
};
