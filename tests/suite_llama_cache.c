/* SPDX-License-Identifier: MIT
 * Of which type keys and values are: what is said of each, and which one a session takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama/session.h"
#include "tests/suite_llama_naive.h"
#include "tests/support_models.h"

/* ---- what is said ---- */

/* Of normal values (Box and Muller 1958). */
static void errors_of_caches_are_what_is_said(void)
{
    enum { N = 32 * 2048 };
    static const enum tandem_type types[] = {TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_0};
    static const double said[] = {5e-8, 4e-5, 8e-3};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    float *x = malloc(N * sizeof(x[0]));
    float *y = malloc(N * sizeof(y[0]));
    void *blocks = malloc(N * sizeof(float));
    CU_ASSERT_FATAL(x != NULL && y != NULL && blocks != NULL);
    for (int i = 0; i < N; i++) {
        const double u = 0.5 + 0.499999 * (double)tnd_test_rng_float(&rng);
        x[i] = (float)(sqrt(-2.0 * log(u)) * cos(3.14159265 * (double)tnd_test_rng_float(&rng)));
    }
    for (int t = 0; t < 3; t++) {
        double error = 0.0;
        double sum = 0.0;
        check_ok(tandem_quantize(types[t], x, blocks, N));
        check_ok(tandem_dequantize(types[t], blocks, y, N));
        for (int i = 0; i < N; i++) {
            error += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
            sum += (double)x[i] * (double)x[i];
        }
        CU_ASSERT_TRUE(error <= said[t] * sum && error >= said[t] * sum / 2);
        if (error > said[t] * sum || error < said[t] * sum / 2) {
            printf("\n    %s: %.2e of the squares\n", tandem_type_name(types[t]), error / sum);
        }
    }
    free(x);
    free(y);
    free(blocks);
}

/* ---- which one is taken ---- */

#define WAY(TYPE, FITS, BYTES, ERROR, US)                                                          \
    {                                                                                              \
        TANDEM_TYPE_##TYPE, true, false, FITS, BYTES, ERROR, US                                    \
    }

static void a_less_exact_cache_must_be_needed_or_clearly_faster(void)
{
    const struct {
        struct tandem_cache_info list[3];
        int n, want;
    } cases[] = {
        /* nothing is known of the time */
        {{WAY(F16, true, 64, 5e-8, 0), WAY(Q8_0, true, 34, 4e-5, 0), WAY(Q4_0, true, 18, 8e-3, 0)},
         3,
         0},
        /* faster, but not by a tenth */
        {{WAY(F16, true, 64, 5e-8, 100), WAY(Q8_0, true, 34, 4e-5, 95),
          WAY(Q4_0, true, 18, 8e-3, 94)},
         3,
         0},
        {{WAY(F16, true, 64, 5e-8, 100), WAY(Q8_0, true, 34, 4e-5, 60),
          WAY(Q4_0, true, 18, 8e-3, 40)},
         3,
         1},
        {{WAY(F16, false, 64, 5e-8, 100), WAY(Q8_0, true, 34, 4e-5, 150),
          WAY(Q4_0, true, 18, 8e-3, 40)},
         3,
         1},
        {{WAY(F16, false, 64, 5e-8, 0), WAY(Q8_0, false, 34, 4e-5, 0),
          WAY(Q4_0, true, 18, 8e-3, 0)},
         3,
         2},
        /* nothing fits: the smallest */
        {{WAY(F16, false, 64, 5e-8, 0), WAY(Q8_0, false, 34, 4e-5, 0),
          WAY(Q4_0, false, 18, 8e-3, 0)},
         3,
         2},
        {{WAY(F16, false, 64, 5e-8, 7)}, 1, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_int(tnd_llama_pick_cache(cases[i].list, cases[i].n), cases[i].want);
    }
}

struct one {
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
};

static struct one one_new(int64_t head_size, bool is_unfused, int64_t memory)
{
    struct one one = {0};
    const struct naive_spec spec = {.head_size = head_size};
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = 64,
                                                   .is_unfused = is_unfused,
                                                   .is_cache_planned = true,
                                                   .cache_memory = memory};
    one.source = naive_source(&spec);
    one.runtime = tnd_test_runtime(1, NULL);
    check_ok(tandem_model_new(one.source, &one.model, NULL));
    check_ok(tandem_session_new(one.model, one.runtime, &options, &one.session, NULL));
    return one;
}

static void one_free(struct one *one)
{
    tandem_session_free(one->session);
    tandem_model_free(one->model);
    tandem_runtime_close(one->runtime);
    tandem_source_close(one->source);
}

static enum tandem_type taken(int64_t head_size, bool is_unfused, int64_t memory, int *out_n)
{
    struct one one = one_new(head_size, is_unfused, memory);
    struct tandem_cache_info info = {0};
    enum tandem_type type = TANDEM_TYPE_I32;
    const struct tnd_llama_kv_cache *cache = &one.session->cache;
    for (*out_n = 0; tandem_session_cache(one.session, *out_n, &info); ++*out_n) {
        CU_ASSERT_TRUE(info.is_planned);
        if (info.is_chosen) {
            type = info.type;
            check_int(info.bytes, 2 * cache->layers * (int64_t)tandem_tensor_bytes(cache->keys[0]));
        }
    }
    CU_ASSERT_EQUAL(type, cache->type);
    CU_ASSERT_FALSE(tandem_session_cache(one.session, -1, &info));
    const int32_t tokens[] = {1, 2, 3};
    check_ok(tandem_session_decode(one.session, tokens, 3, 3, NULL));
    one_free(&one);
    return type;
}

static void a_session_takes_what_fits(void)
{
    int n = 0;
    struct one one = one_new(0, false, 0);
    struct tandem_cache_info info = {0};
    CU_ASSERT_TRUE(tandem_session_cache(one.session, 1, &info));
    const int64_t of_q8_0 = info.bytes;
    one_free(&one);
    CU_ASSERT_EQUAL(taken(0, false, 0, &n), TANDEM_TYPE_F16);
    check_int(n, 3);
    CU_ASSERT_EQUAL(taken(0, false, of_q8_0, &n), TANDEM_TYPE_Q8_0);
    CU_ASSERT_EQUAL(taken(0, false, of_q8_0 - 1, &n), TANDEM_TYPE_Q4_0);
    CU_ASSERT_EQUAL(taken(0, false, 1, &n), TANDEM_TYPE_Q4_0);
    CU_ASSERT_EQUAL(taken(48, false, 1, &n), TANDEM_TYPE_F16); /* no whole blocks */
    check_int(n, 1);
    CU_ASSERT_EQUAL(taken(0, true, 1, &n), TANDEM_TYPE_F16);
    check_int(n, 1);
}

static CU_TestInfo tests[] = {
    {"errors_of_caches_are_what_is_said", errors_of_caches_are_what_is_said},
    {"a_less_exact_cache_must_be_needed_or_clearly_faster",
     a_less_exact_cache_must_be_needed_or_clearly_faster},
    {"a_session_takes_what_fits", a_session_takes_what_fits},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_cache[] = {
    {"cache", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
