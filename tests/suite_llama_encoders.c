/* SPDX-License-Identifier: MIT
 * Encoders give the vectors and scores of transformers (tests/encoders-golden-list.h): alone,
 * beside other texts, unfused, and as the GGUF file that they become; and refuse what they cannot
 * do. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/encoders-golden-list.h"
#include "tests/suite_llama.h"
#include "tests/support_golden.h"

enum { N_TOKENS = 12, N_SHOWN = 4, SECOND = 5 };

static const struct golden {
    const char *name, *config, *tensors;
    float values[N_SHOWN];
    int is_ranked;
} goldens[] = {
#define GOLDEN(name, config, tensors, a, b, c, d, is_ranked)                                       \
    {name, config, tensors, {a, b, c, d}, is_ranked},
    TND_GOLDEN_ENCODERS(GOLDEN)
#undef GOLDEN
};
enum { N_GOLDENS = sizeof(goldens) / sizeof(goldens[0]) };

static const int32_t tokens[N_TOKENS] = {1, 5, 9, 3, 7, 2, 8, 11, 30, 21, 4, 4};

static tandem_model *open_model(const struct golden *golden)
{
    struct tandem_error error = {0};
    tandem_model *model = NULL;
    tnd_golden_write(golden->config, golden->tensors, -1, NULL);
    check_status(tandem_model_load(tnd_test_temp("model.safetensors"), &model, &error), TANDEM_OK,
                 NULL, &error);
    return model;
}

static tandem_session *open_session(const struct golden *golden, const tandem_model *model,
                                    tandem_runtime *runtime, int n_sequences, bool is_unfused)
{
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_session *session = NULL;
    options.n_sequences = n_sequences;
    options.is_unfused = is_unfused;
    options.pooling = golden->is_ranked ? TANDEM_POOLING_NONE : TANDEM_POOLING_MEAN;
    check_status(tandem_session_new(model, runtime, &options, &session, &error), TANDEM_OK, NULL,
                 &error);
    return session;
}

static void check_values(const struct golden *golden, const tandem_session *session,
                         int32_t sequence, const char *what)
{
    const float *got = tandem_session_embedding(session, sequence);
    check_int(tandem_session_embedding_size(session), golden->is_ranked ? 4 : 16);
    CU_ASSERT_PTR_NULL(tandem_session_logits(session, sequence));
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    for (int i = 0; i < N_SHOWN; i++) {
        if (!(fabs((double)got[i] - (double)golden->values[i]) <= 2e-4)) {
            printf("  %s, %s: value %d is %g, expected %g\n", golden->name, what, i, (double)got[i],
                   (double)golden->values[i]);
            CU_FAIL("a value differs");
        }
    }
}

/* Alone, twice, and between texts of other lengths. */
static void check_model(const struct golden *golden, const tandem_model *model,
                        tandem_runtime *runtime, bool is_unfused)
{
    tandem_session *session = open_session(golden, model, runtime, 3, is_unfused);
    const struct tandem_batch_entry entries[] = {
        {tokens + 3, 7, 1, true}, {tokens, N_TOKENS, 0, true}, {tokens + 1, 2, 2, true}};
    for (int i = 0; i < 2; i++) {
        tandem_session_set_second(session, 0, SECOND);
        check_ok(tandem_session_decode(session, tokens, N_TOKENS, 5, NULL));
        check_values(golden, session, 0, "alone");
        check_int(tandem_session_rollback(session, 0, 0), 0);
    }
    tandem_session_set_second(session, 0, SECOND);
    check_ok(tandem_session_decode_batch(session, entries, 3, NULL));
    check_values(golden, session, 0, "beside others");
    tandem_session_free(session);
}

static void each_encoder_gives_the_numbers_of_transformers(void)
{
    tandem_runtime *runtime = tnd_test_runtime(2, NULL);
    for (int i = 0; i < N_GOLDENS; i++) {
        char gguf[4096];
        tandem_model *model = open_model(&goldens[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(model);
        check_model(&goldens[i], model, runtime, false);
        check_model(&goldens[i], model, runtime, true);
        snprintf(gguf, sizeof(gguf), "%s", tnd_test_temp("model.gguf"));
        check_ok(tandem_source_save_gguf(tandem_model_source(model), gguf, NULL, NULL));
        tandem_model_free(model);
        check_ok(tandem_model_load(gguf, &model, NULL));
        check_model(&goldens[i], model, runtime, false);
        tandem_model_free(model);
    }
    tandem_runtime_close(runtime);
}

static void encoders_lack_no_tensor_and_have_none_more(void)
{
    for (int i = 0; i < N_GOLDENS; i++) {
        const int n = tnd_golden_write(goldens[i].config, goldens[i].tensors, -1, NULL);
        for (int left_out = -1; left_out < n; left_out++) {
            tandem_model *model = NULL;
            struct tandem_error error = {0};
            tnd_golden_write(goldens[i].config, goldens[i].tensors, left_out,
                             left_out < 0 ? "encoder.layer.0.more.weight 8" : NULL);
            CU_ASSERT_NOT_EQUAL(
                tandem_model_load(tnd_test_temp("model.safetensors"), &model, &error), TANDEM_OK);
            check_contains(error.text, left_out < 0 ? "layer.0.more" : "tensor");
            tandem_model_free(model);
        }
    }
}

static void an_encoder_refuses_what_it_cannot_do(void)
{
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    const struct golden *golden = &goldens[1]; /* whose file does not say how it pools */
    struct tandem_error error = {0};
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    const struct tandem_draft_options drafts = TANDEM_DRAFT_OPTIONS_INIT;
    tandem_model *model = open_model(golden);
    tandem_session *session = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(model);
    check_int(golden->is_ranked, 0);
    check_status(tandem_session_new(model, runtime, NULL, &session, &error), TANDEM_E_ARGUMENT,
                 "choose mean, cls or last", &error);
    options.pooling = TANDEM_POOLING_RANK;
    check_status(tandem_session_new(model, runtime, &options, &session, &error), TANDEM_E_ARGUMENT,
                 "pooling 4", &error);
    session = open_session(golden, model, runtime, 1, false);
    check_ok(tandem_session_decode(session, tokens, 3, 0, NULL));
    check_status(tandem_session_decode(session, tokens, 3, 0, &error), TANDEM_E_ARGUMENT,
                 "decoded at once", &error);
    check_status(tandem_session_set_draft(session, &drafts, &error), TANDEM_E_UNSUPPORTED_BUILD,
                 "writes no text", &error);
    tandem_session_free(session);
    tandem_model_free(model);
    tandem_runtime_close(runtime);
}

/* What sentence-transformers writes beside a model. */
static void a_folder_says_how_it_pools(void)
{
#define POOLING "[{\"path\":\"pool\",\"type\":\"sentence_transformers.models.Pooling\"}]"
    static const struct {
        const char *modules, *pooling;
        enum tandem_status status;
        const char *said; /* in the error */
        enum tandem_pooling want;
    } cases[] = {
        {"[]", "{}", TANDEM_OK, NULL, TANDEM_POOLING_NONE},
        {POOLING, "{\"pooling_mode_cls_token\":false,\"pooling_mode_lasttoken\":true,\"a\":[1]}",
         TANDEM_OK, NULL, TANDEM_POOLING_LAST},
        {POOLING, "{\"pooling_mode\":\"mean\"}", TANDEM_OK, NULL, TANDEM_POOLING_MEAN},
        {POOLING, "{\"pooling_mode\":\"most\"}", TANDEM_E_UNSUPPORTED_BUILD, "pooling_mode", 0},
        {POOLING, "{\"pooling_mode_max_tokens\":true}", TANDEM_E_UNSUPPORTED_BUILD, "max_tokens",
         0},
        {POOLING, "{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":true}",
         TANDEM_E_UNSUPPORTED_BUILD, "another way", 0},
        {"[{\"type\":\"sentence_transformers.models.Dense\"}]", "{}", TANDEM_E_UNSUPPORTED_BUILD,
         "Dense", 0},
        {"[{\"type\":\"x.Pooling\",\"path\":\"../p\"}]", "{}", TANDEM_E_FORMAT, "path", 0},
        {"[{\"type\":\"x.Pooling\",\"path\":\"none\"}]", "{}", TANDEM_E_NOT_FOUND, "modules.json",
         0},
        {"[", "{}", TANDEM_E_FORMAT, "modules.json", 0},
    };
#undef POOLING
    char modules[4096], pooling[4096];
    (void)mkdir(tnd_test_temp("pool"), 0700);
    snprintf(modules, sizeof(modules), "%s", tnd_test_temp("modules.json"));
    snprintf(pooling, sizeof(pooling), "%s", tnd_test_temp("pool/config.json"));
    tnd_golden_write(goldens[1].config, goldens[1].tensors, -1, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        struct tandem_hparams h = {0};
        CU_ASSERT_TRUE(tnd_test_write_file(modules, cases[i].modules, strlen(cases[i].modules)));
        CU_ASSERT_TRUE(tnd_test_write_file(pooling, cases[i].pooling, strlen(cases[i].pooling)));
        check_status(tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error),
                     cases[i].status, cases[i].said, &error);
        if (source != NULL) {
            check_ok(tandem_source_hparams(source, &h, NULL));
            check_int(h.pooling, cases[i].want);
        }
        tandem_source_close(source);
    }
    remove(modules);
}

static CU_TestInfo encoders_tests[] = {
    {"each_encoder_gives_the_numbers_of_transformers",
     each_encoder_gives_the_numbers_of_transformers},
    {"encoders_lack_no_tensor_and_have_none_more", encoders_lack_no_tensor_and_have_none_more},
    {"an_encoder_refuses_what_it_cannot_do", an_encoder_refuses_what_it_cannot_do},
    {"a_folder_says_how_it_pools", a_folder_says_how_it_pools},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_encoders[] = {
    {"encoders", NULL, NULL, NULL, NULL, encoders_tests},
    CU_SUITE_INFO_NULL,
};
