/* SPDX-License-Identifier: MIT
 * A small model of each architecture, as Hugging Face writes it, gives the logits of transformers
 * (tests/architectures-golden-list.h): in one batch, in pieces, unfused, with an F16 cache, and as
 * the GGUF file that it becomes; and it is refused with a tensor too many or too few. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/gguf.h"
#include "formats/source.h"
#include "tests/architectures-golden-list.h"
#include "tests/suite_llama.h"
#include "tests/support_golden.h"

enum { N_TOKENS = 12, N_SHOWN = 4, VOCABULARY = 40 };

static const struct golden {
    const char *name, *config, *tensors;
    float logits[N_SHOWN];
    int token;
} goldens[] = {
#define GOLDEN(name, config, tensors, a, b, c, d, token)                                           \
    {name, config, tensors, {a, b, c, d}, token},
    TND_GOLDEN_ARCHITECTURES(GOLDEN)
#undef GOLDEN
};
enum { N_GOLDENS = sizeof(goldens) / sizeof(goldens[0]) };

static const int32_t tokens[N_TOKENS] = {1, 5, 9, 3, 7, 2, 8, 11, 30, 21, 4, 4};

static void check_logits(const struct golden *golden, const float *got, double limit,
                         const char *what)
{
    int largest = 0;
    CU_ASSERT_PTR_NOT_NULL(got);
    for (int i = 0; got != NULL && i < VOCABULARY; i++) {
        largest = got[i] > got[largest] ? i : largest;
        if (i < N_SHOWN && !(fabs((double)got[i] - (double)golden->logits[i]) <= limit)) {
            printf("  %s, %s: logit %d is %g, expected %g\n", golden->name, what, i, (double)got[i],
                   (double)golden->logits[i]);
            CU_FAIL("a logit differs");
        }
    }
    CU_ASSERT_EQUAL(largest, golden->token);
}

/* The same text in several sequences, a token of each at a time: cells lie scattered. */
static void check_sequences(const struct golden *golden, const tandem_model *model,
                            tandem_runtime *runtime)
{
    enum { N = 6 };
    const struct tandem_session_options options = {.size = sizeof(options), .n_sequences = N};
    struct tandem_batch_entry entries[N];
    struct tandem_error error = {0};
    tandem_session *session = NULL;
    check_status(tandem_session_new(model, runtime, &options, &session, &error), TANDEM_OK, NULL,
                 &error);
    for (int i = 0; i < N_TOKENS; i++) {
        for (int s = 0; s < N; s++) {
            entries[s] = (struct tandem_batch_entry){&tokens[i], 1, s, true};
        }
        check_status(tandem_session_decode_batch(session, entries, N, &error), TANDEM_OK, NULL,
                     &error);
    }
    check_logits(golden, tandem_session_logits(session, 0), 2e-4, "the first sequence");
    check_logits(golden, tandem_session_logits(session, N - 1), 2e-4, "the last sequence");
    tandem_session_free(session);
}

static void check_file(const struct golden *golden, const char *path, tandem_runtime *runtime)
{
    const struct {
        const char *what;
        int64_t batch;
        bool is_unfused;
        enum tandem_type type;
        double limit;
    } rows[] = {
        {"one batch", 0, false, TANDEM_TYPE_F32, 2e-4},
        {"batches of 5", 5, false, TANDEM_TYPE_F32, 2e-4},
        {"token by token, unfused", 1, true, TANDEM_TYPE_F32, 2e-4},
        {"an F16 cache", 0, false, TANDEM_TYPE_F16, 5e-2},
    };
    tandem_model *model = NULL;
    struct tandem_error error = {0};
    check_status(tandem_model_load(path, &model, &error), TANDEM_OK, NULL, &error);
    for (size_t i = 0; model != NULL && i < sizeof(rows) / sizeof(rows[0]); i++) {
        tandem_session *session = NULL;
        const struct tandem_session_options options = {
            .size = sizeof(options), .is_unfused = rows[i].is_unfused, .cache_type = rows[i].type};
        check_status(tandem_session_new(model, runtime, &options, &session, &error), TANDEM_OK,
                     NULL, &error);
        check_status(tandem_session_decode(session, tokens, N_TOKENS, rows[i].batch, &error),
                     TANDEM_OK, NULL, &error);
        check_logits(golden, tandem_session_logits(session, 0), rows[i].limit, rows[i].what);
        tandem_session_free(session);
    }
    if (model != NULL) {
        check_sequences(golden, model, runtime);
    }
    tandem_model_free(model);
}

/* What llama.cpp needs to load our files: bools, and the size of values where that of keys is
 * said. */
static void check_kinds(const char *path)
{
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    int64_t key_size = -1, value_size = -1;
    bool is_latent = false;
    check_status(tandem_source_open(path, &source, &error), TANDEM_OK, NULL, &error);
    for (size_t i = 0; source != NULL && i < source->n_values; i++) {
        const struct tnd_source_value *value = &source->values[i];
        const char *dot = strchr(value->key, '.');
        const char *name = dot != NULL ? dot + 1 : "";
        if (strcmp(name, "expert_weights_norm") == 0 || strcmp(name, "attention.causal") == 0 ||
            strcmp(name, "use_parallel_residual") == 0) {
            CU_ASSERT_EQUAL(value->gguf_type, TND_GGUF_BOOL);
        }
        key_size = strcmp(name, "attention.key_length") == 0 ? value->integer : key_size;
        value_size = strcmp(name, "attention.value_length") == 0 ? value->integer : value_size;
        is_latent = is_latent || strcmp(name, "attention.kv_lora_rank") == 0;
    }
    CU_ASSERT_TRUE(is_latent || key_size == value_size);
    tandem_source_close(source);
}

static void each_architecture_gives_the_logits_of_transformers(void)
{
    tandem_runtime *runtime = tnd_test_runtime(2, NULL);
    for (int i = 0; i < N_GOLDENS; i++) {
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        char gguf[4096];
        tnd_golden_write(goldens[i].config, goldens[i].tensors, -1, NULL);
        check_file(&goldens[i], tnd_test_temp("model.safetensors"), runtime);
        snprintf(gguf, sizeof(gguf), "%s", tnd_test_temp("model.gguf"));
        check_status(tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error),
                     TANDEM_OK, NULL, &error);
        check_status(tandem_source_save_gguf(source, gguf, NULL, &error), TANDEM_OK, NULL, &error);
        tandem_source_close(source);
        check_file(&goldens[i], gguf, runtime);
        check_kinds(gguf);
    }
    tandem_runtime_close(runtime);
}

/* What llama.cpp's converter writes otherwise: divisors of rope without their kind, groups of which
 * there is one, and layers that predict ahead counted where the checkpoint has none. */
static void files_of_llama_cpp_give_the_same_logits(void)
{
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    int n = 0;
    for (int i = 0; i < N_GOLDENS; i++) {
        const bool is_phi = strcmp(goldens[i].name, "phi3") == 0;
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        if (!is_phi && strcmp(goldens[i].name, "glm4_moe") != 0) {
            continue;
        }
        tnd_golden_write(goldens[i].config, goldens[i].tensors, -1, NULL);
        check_status(tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error),
                     TANDEM_OK, NULL, &error);
        for (size_t k = 0; k < source->n_values; k++) {
            struct tnd_source_value *value = &source->values[k];
            if (strcmp(value->key, "phi3.rope.scaling.type") == 0) {
                memcpy(value->key, "none", 4); /* a key that nobody reads */
                n++;
            } else if (strcmp(value->key, "glm4moe.block_count") == 0) {
                value->integer++;
                n++;
            }
        }
        if (!is_phi) {
            check_ok(tnd_source_set_integer(source, "glm4moe.nextn_predict_layers", 1, NULL));
            check_ok(tnd_source_set_integer(source, "glm4moe.expert_group_count", 1, NULL));
            check_ok(tnd_source_set_integer(source, "glm4moe.expert_group_used_count", 1, NULL));
        }
        check_status(tandem_source_save_gguf(source, tnd_test_temp("theirs.gguf"), NULL, &error),
                     TANDEM_OK, NULL, &error);
        tandem_source_close(source);
        check_file(&goldens[i], tnd_test_temp("theirs.gguf"), runtime);
    }
    CU_ASSERT_EQUAL(n, 2);
    tandem_runtime_close(runtime);
}

/* config.json of published checkpoints has members that transformers passes over: those that tell
 * of the model at hand are taken, others refused. */
static void members_of_published_checkpoints_are_known(void)
{
    static const struct {
        const char *name, *members;
        const char *part; /* NULL: it loads */
    } cases[] = {
        {"deepseek_v2", "\"scoring_func\":\"softmax\"", NULL},
        {"deepseek_v3", "\"scoring_func\":\"sigmoid\",\"topk_method\":\"noaux_tc\"", NULL},
        {"deepseek_v3", "\"scoring_func\":\"softmax\"", "\"scoring_func\" is not sigmoid"},
        {"deepseek_v3", "\"topk_method\":\"greedy\"", "\"topk_method\" is not noaux_tc"},
        {"falcon", "\"apply_residual_connection_post_layernorm\":false", NULL},
        {"falcon", "\"apply_residual_connection_post_layernorm\":true", "_post_layernorm\""},
        {"phi3", "\"full_attn_mod\":1,\"interpolate_factor\":1,\"lm_head_bias\":false", NULL},
        {"phi3", "\"full_attn_mod\":2", "\"full_attn_mod\""},
        {"starcoder2", "\"mlp_type\":\"default\",\"norm_type\":\"layer_norm\"", NULL},
        {"starcoder2", "\"mlp_type\":\"gated\"", "\"mlp_type\" is not default"},
        {"cohere2", "\"rotary_pct\":1.0,\"layer_switch\":4,\"use_gated_activation\":true", NULL},
        {"hunyuan_v1_dense", "\"use_cla\":false,\"dense_list\":[16,0],\"pool_type\":\"last\"",
         NULL},
        {"hunyuan_v1_dense", "\"use_cla\":true", "\"use_cla\""},
        {"hunyuan_v1_dense", "\"model_type\":\"qwen3\"", "no tensor blk.0.attn_q_norm.weight"},
    };
    int n = 0;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        for (int i = 0; i < N_GOLDENS; i++) {
            char config[4096];
            struct tandem_error error = {0};
            tandem_model *model = NULL;
            if (strcmp(goldens[i].name, cases[k].name) != 0) {
                continue;
            }
            /* (without its last brace) */
            snprintf(config, sizeof(config), "%.*s,%s}", (int)strlen(goldens[i].config) - 1,
                     goldens[i].config, cases[k].members);
            tnd_golden_write(config, goldens[i].tensors, -1, NULL);
            check_status(tandem_model_load(tnd_test_temp("model.safetensors"), &model, &error),
                         cases[k].part == NULL                        ? TANDEM_OK
                         : strstr(cases[k].part, "no tensor") != NULL ? TANDEM_E_NOT_FOUND
                                                                      : TANDEM_E_UNSUPPORTED_BUILD,
                         cases[k].part, &error);
            tandem_model_free(model);
            n++;
        }
    }
    CU_ASSERT_EQUAL(n, (int)(sizeof(cases) / sizeof(cases[0])));
}

/* The base of rope is 10,000 * alpha ^ (8 / 6) of heads of 8 values (NTK scaling, as
 * modeling_hunyuan_v1_dense.py of transformers has it). */
static void alpha_of_hunyuan_raises_the_base_of_rope(void)
{
    static const struct {
        double alpha, base; /* 0: it is refused */
    } cases[] = {{1000, 1e8}, {1, 1e4}, {0, 1e4}, {-1, 0}, {1e7, 0}};
    const char *rope = "\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}";
    int i = 0;
    while (strcmp(goldens[i].name, "hunyuan_v1_dense") != 0) {
        i++;
    }
    const char *at = strstr(goldens[i].config, rope);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char config[4096];
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        double base = 0;
        snprintf(config, sizeof(config),
                 "%.*s\"rope_theta\":10000,\"rope_scaling\":{\"type\":\"dynamic\","
                 "\"factor\":1,\"alpha\":%g}%s",
                 (int)(at - goldens[i].config), goldens[i].config, cases[k].alpha,
                 at + strlen(rope));
        tnd_golden_write(config, goldens[i].tensors, -1, NULL);
        check_status(tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error),
                     cases[k].base > 0 ? TANDEM_OK : TANDEM_E_UNSUPPORTED_BUILD,
                     cases[k].base > 0 ? NULL : "\"alpha\"", &error);
        if (source != NULL) {
            CU_ASSERT_TRUE(tandem_source_number(source, "hunyuan-dense.rope.freq_base", &base));
            CU_ASSERT_DOUBLE_EQUAL(base, cases[k].base, 1e-6 * cases[k].base);
        }
        tandem_source_close(source);
    }
}

/* Every tensor left out once. Those that go with biases or tied weights may be missing in a GGUF
 * file; beside a config.json all are promised. */
static void tensors_too_few_or_too_many_are_refused_by_name(void)
{
    for (int i = 0; i < N_GOLDENS; i++) {
        const int n = tnd_golden_write(goldens[i].config, goldens[i].tensors, -1, NULL);
        for (int left_out = -1; left_out < n; left_out++) {
            tandem_model *model = NULL;
            struct tandem_error error = {0};
            tnd_golden_write(goldens[i].config, goldens[i].tensors, left_out,
                             left_out < 0 ? "model.layers.0.more.weight 8" : NULL);
            CU_ASSERT_NOT_EQUAL(
                tandem_model_load(tnd_test_temp("model.safetensors"), &model, &error), TANDEM_OK);
            if (model != NULL) {
                printf("  %s without tensor %d is accepted\n", goldens[i].name, left_out);
            }
            check_contains(error.text, left_out < 0 ? "layers.0.more" : "tensor");
            tandem_model_free(model);
        }
    }
}

/* Positions that were learned, and norms behind rope, cannot be moved. */
static void keys_that_cannot_be_moved_are_said(void)
{
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    for (int i = 0; i < N_GOLDENS; i++) {
        const bool is_fixed = strcmp(goldens[i].name, "gpt2") == 0 ||
                              strcmp(goldens[i].name, "hunyuan_v1_dense") == 0;
        struct tandem_error error = {0};
        tandem_model *model = NULL;
        tandem_session *session = NULL;
        tnd_golden_write(goldens[i].config, goldens[i].tensors, -1, NULL);
        check_status(tandem_model_load(tnd_test_temp("model.safetensors"), &model, &error),
                     TANDEM_OK, NULL, &error);
        check_status(tandem_session_new(model, runtime, NULL, &session, &error), TANDEM_OK, NULL,
                     &error);
        check_status(tandem_session_decode(session, tokens, N_TOKENS, 0, &error), TANDEM_OK, NULL,
                     &error);
        check_status(tandem_session_shift(session, 0, 2, 3, &error),
                     is_fixed ? TANDEM_E_UNSUPPORTED_BUILD : TANDEM_OK,
                     is_fixed ? "cannot be moved" : NULL, &error);
        tandem_session_free(session);
        tandem_model_free(model);
    }
    tandem_runtime_close(runtime);
}

static CU_TestInfo architectures_tests[] = {
    {"each_architecture_gives_the_logits_of_transformers",
     each_architecture_gives_the_logits_of_transformers},
    {"files_of_llama_cpp_give_the_same_logits", files_of_llama_cpp_give_the_same_logits},
    {"members_of_published_checkpoints_are_known", members_of_published_checkpoints_are_known},
    {"alpha_of_hunyuan_raises_the_base_of_rope", alpha_of_hunyuan_raises_the_base_of_rope},
    {"tensors_too_few_or_too_many_are_refused_by_name",
     tensors_too_few_or_too_many_are_refused_by_name},
    {"keys_that_cannot_be_moved_are_said", keys_that_cannot_be_moved_are_said},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_architectures[] = {
    {"architectures", NULL, NULL, NULL, NULL, architectures_tests},
    CU_SUITE_INFO_NULL,
};
