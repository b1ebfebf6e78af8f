/* SPDX-License-Identifier: MIT
 * The trained model writes the text that it should, whatever computes it and whatever file it comes
 * from: every profile of this machine, one to eight threads, the prompt as one batch, in pieces and
 * token by token; llama2.c, GGUF, safetensors, PyTorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_llama.h"
#include "tests/support_models.h"

static const struct {
    const char *prompt;
    int64_t steps;
    const char *file;
} goldens[] = {
    {"", 200, "llama/golden-t0-n200.txt"},
    {"Zoo", 60, "llama/golden-zoo-t0-n60.txt"},
};

/* Compares both texts, the prompt in batches of every given size. */
static void check_texts(const struct tnd_trained *trained, tandem_runtime *runtime,
                        const int64_t *batches, int n_batches, const char *what)
{
    for (size_t g = 0; g < sizeof(goldens) / sizeof(goldens[0]); g++) {
        const char *path = tnd_test_data(goldens[g].file);
        char *want = path == NULL ? NULL : tnd_test_read_file(path, NULL);
        for (int b = 0; want != NULL && b < n_batches; b++) {
            char got[TND_TEXT_BYTES] = "";
            struct tandem_error error = {0};
            check_status(tnd_greedy_text(trained, runtime, goldens[g].prompt, goldens[g].steps,
                                         batches[b], got, &error),
                         TANDEM_OK, NULL, &error);
            if (!check_string(got, want)) {
                printf("  prompt '%s', batch %lld, %s\n", goldens[g].prompt, (long long)batches[b],
                       what);
            }
        }
        free(want);
    }
}

static void both_file_versions_give_the_golden_texts(void)
{
    const int64_t batches[] = {0, 1, 3};
    for (int version = 0; version <= 1; version++) {
        struct tnd_trained trained;
        if (tnd_trained_open(&trained, version)) {
            tandem_runtime *runtime = tnd_test_runtime(2, NULL);
            check_texts(&trained, runtime, batches, 3, version == 0 ? "version 0" : "version 1");
            tandem_runtime_close(runtime);
        }
        tnd_trained_close(&trained);
    }
}

/* The texts from a model file of any format, with the trained model's tokenizer. */
static void check_file(const struct tnd_trained *trained, const char *path, const char *what)
{
    const int64_t batches[] = {0, 1};
    struct tnd_trained again = {.tokenizer = trained->tokenizer};
    struct tandem_error error = {0};
    tandem_runtime *runtime = tnd_test_runtime(2, NULL);
    if (check_status(tandem_source_open(path, &again.source, &error), TANDEM_OK, NULL, &error) &&
        check_status(tandem_model_new(again.source, &again.model, &error), TANDEM_OK, NULL,
                     &error)) {
        check_texts(&again, runtime, batches, 2, what);
    }
    tandem_runtime_close(runtime);
    tandem_model_free(again.model);
    tandem_source_close(again.source);
}

/* Opens `from` and saves it as GGUF, matrices as F32. */
static void save_gguf(const char *from, const char *to)
{
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    tandem_source *source = NULL;
    options.converts = true;
    options.type = TANDEM_TYPE_F32;
    check_ok(tandem_source_open(from, &source, NULL));
    check_ok(tandem_source_save_gguf(source, to, &options, NULL));
    tandem_source_close(source);
}

static void check_files(const struct tnd_trained *trained, const char *const names[2])
{
    for (int i = 0; i < 2; i++) {
        check_file(trained, tnd_test_temp(names[i]), names[i]);
        save_gguf(tnd_test_temp(names[i]), tnd_test_temp("again.gguf"));
        check_file(trained, tnd_test_temp("again.gguf"), "GGUF of it");
    }
}

static void every_format_gives_the_golden_texts(void)
{
    struct tnd_trained trained;
    if (!tnd_trained_open(&trained, 0)) {
        tnd_trained_close(&trained);
        return;
    }
    const tandem_source *model = trained.source;
    CU_ASSERT_TRUE(tnd_model_write_config(model, tnd_test_temp("config.json"), ""));
    CU_ASSERT_TRUE(tnd_model_write_safetensors(model, tnd_test_temp("model.safetensors"), 0, 1));
    CU_ASSERT_TRUE(tnd_model_write_torch_hf(model, tnd_test_temp("pytorch_model.bin")));
    const char *const theirs[] = {"model.safetensors", "pytorch_model.bin"};
    const char *const ours[] = {"model.pth", "model.pt"};
    save_gguf(tnd_test_data("llama/stories260K.bin"), tnd_test_temp("of-llama2c.gguf"));
    check_file(&trained, tnd_test_temp("of-llama2c.gguf"), "GGUF of llama2.c");
    check_files(&trained, theirs);
    const char *const authors[] = {"consolidated.00.pth", "ckpt.pt"};
    remove(tnd_test_temp("config.json")); /* else their names would be looked for */
    CU_ASSERT_TRUE(tnd_model_write_torch_llama(model, tnd_test_temp("ckpt.pt"), true));
    CU_ASSERT_TRUE(tnd_model_write_torch_llama(model, tnd_test_temp("consolidated.00.pth"), false));
    CU_ASSERT_TRUE(tnd_model_write_params(model, tnd_test_temp("params.json")));
    check_files(&trained, authors);
    CU_ASSERT_TRUE(tnd_model_write_torch(model, tnd_test_temp("model.pth"), false));
    CU_ASSERT_TRUE(tnd_model_write_torch(model, tnd_test_temp("model.pt"), true));
    check_files(&trained, ours);
    tnd_trained_close(&trained);
}

/* With a tokenizer of its own (-t), whose end token is another one. */
static void a_model_says_which_tokens_end_a_text(void)
{
    static const struct {
        const char *config, *generation;
        int n; /* tokens of which "," is the last */
    } cases[] = {{"%d", NULL, 1}, {"[3,%d]", NULL, 1}, {"2", "[7,%d]", 1}, {"2", "{}", 0}};
    struct tnd_trained trained;
    if (!tnd_trained_open(&trained, 0)) {
        tnd_trained_close(&trained);
        return;
    }
    const int32_t comma = tandem_tokenizer_find(trained.tokenizer, ",");
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    CU_ASSERT_TRUE(
        tnd_model_write_safetensors(trained.source, tnd_test_temp("model.safetensors"), 0, 1));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_trained again = {.tokenizer = trained.tokenizer};
        char ends[64], text[128], got[TND_TEXT_BYTES] = "";
        const char *gguf = tnd_test_temp("ends.gguf");
        const char *generation = tnd_test_temp("generation_config.json");
        snprintf(ends, sizeof(ends), "\"eos_token_id\":");
        snprintf(ends + strlen(ends), 32, cases[i].config, (int)comma);
        CU_ASSERT_TRUE(tnd_model_write_config(trained.source, tnd_test_temp("config.json"), ends));
        remove(generation);
        if (cases[i].generation != NULL) {
            const bool is_list = cases[i].generation[0] == '[';
            int n = snprintf(text, sizeof(text), is_list ? "{\"eos_token_id\":" : "");
            n += snprintf(text + n, sizeof(text) - (size_t)n, cases[i].generation, (int)comma);
            n += snprintf(text + n, sizeof(text) - (size_t)n, is_list ? "}" : "");
            CU_ASSERT_TRUE(tnd_test_write_file(generation, text, (size_t)n));
        }
        save_gguf(tnd_test_temp("model.safetensors"), gguf);
        for (int is_gguf = 0; is_gguf < 2; is_gguf++) {
            const char *path = is_gguf ? gguf : tnd_test_temp("model.safetensors");
            check_ok(tandem_model_load(path, &again.model, NULL));
            check_ok(tnd_greedy_text(&again, runtime, "", 20, 0, got, NULL));
            CU_ASSERT_EQUAL(strcmp(got, "Once upon a time\n") == 0, cases[i].n == 1);
            tandem_model_free(again.model);
        }
        remove(generation);
    }
    remove(tnd_test_temp("config.json"));
    tandem_runtime_close(runtime);
    tnd_trained_close(&trained);
}

static void check_profile(const struct tnd_trained *trained, const char *profile, int n_threads)
{
    const int64_t batches[] = {0, 1};
    char what[96];
    tandem_runtime *runtime = tnd_test_runtime(n_threads, profile);
    snprintf(what, sizeof(what), "profile %.31s, %d threads", profile, n_threads);
    check_texts(trained, runtime, batches, 2, what);
    tandem_runtime_close(runtime);
}

/* With more threads than cores everything waits for the scheduler: a few counts are enough then. */
static bool is_wanted(int n_threads)
{
    return tnd_effort() >= 2 || n_threads <= 2 || n_threads == 8;
}

static void every_profile_gives_the_golden_texts_with_one_to_eight_threads(void)
{
    struct tnd_trained trained;
    struct tandem_profile_info profiles[32];
    if (!tnd_trained_open(&trained, 0)) {
        return;
    }
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    const int n_profiles = tandem_runtime_profiles(runtime, profiles, 32);
    tandem_runtime_close(runtime);
    int n_checked = 0;
    for (int i = 0; i < n_profiles && i < 32; i++) {
        if (!profiles[i].available) {
            tnd_skip("profile %s: %s", profiles[i].name, profiles[i].reason);
            continue;
        }
        for (int n_threads = 1; n_threads <= 8; n_threads++) {
            if (is_wanted(n_threads)) {
                check_profile(&trained, profiles[i].name, n_threads);
            }
        }
        n_checked++;
    }
    CU_ASSERT(n_checked > 0);
    tnd_trained_close(&trained);
}

static void both_ways_of_attention_and_caches_give_the_golden_texts(void)
{
    const struct tandem_session_options ways[] = {
        {.size = sizeof(ways[0]), .is_unfused = true},
        {.size = sizeof(ways[0]), .cache_type = TANDEM_TYPE_F16},
        {.size = sizeof(ways[0]), .cache_type = TANDEM_TYPE_F16, .is_unfused = true},
        {.size = sizeof(ways[0]), .n_sequences = 3},
    };
    struct tnd_trained trained;
    if (!tnd_trained_open(&trained, 0)) {
        return;
    }
    tandem_runtime *runtime = tnd_test_runtime(2, NULL);
    const char *path = tnd_test_data(goldens[0].file);
    char *want = path == NULL ? NULL : tnd_test_read_file(path, NULL);
    for (size_t i = 0; want != NULL && i < sizeof(ways) / sizeof(ways[0]); i++) {
        char got[TND_TEXT_BYTES] = "";
        check_ok(tnd_greedy_text_with(&trained, runtime, &ways[i], goldens[0].prompt,
                                      goldens[0].steps, 0, got, NULL));
        if (!check_string(got, want)) {
            printf("  way %zu\n", i);
        }
    }
    free(want);
    tandem_runtime_close(runtime);
    tnd_trained_close(&trained);
}

static void weights_of_every_type_write_words(void)
{
    /* exact text is asked of F32 alone; what others write must still be made of the vocabulary */
    const enum tandem_type types[] = {TANDEM_TYPE_F16, TANDEM_TYPE_BF16, TANDEM_TYPE_Q8_0,
                                      TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q4_0};
    struct tnd_trained trained;
    if (!tnd_trained_open(&trained, 0)) {
        return;
    }
    tandem_runtime *runtime = tnd_test_runtime(2, NULL);
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        struct tnd_trained converted = {.tokenizer = trained.tokenizer};
        char got[TND_TEXT_BYTES] = "";
        check_ok(tandem_source_convert(trained.source, types[t], &converted.source, NULL));
        check_ok(tandem_model_new(converted.source, &converted.model, NULL));
        check_ok(tnd_greedy_text(&converted, runtime, "", 100, 0, got, NULL));
        check_contains(got, "Once upon a time, there was a ");
        tandem_model_free(converted.model);
        tandem_source_close(converted.source);
    }
    tandem_runtime_close(runtime);
    tnd_trained_close(&trained);
}

static CU_TestInfo golden_tests[] = {
    {"both_file_versions_give_the_golden_texts", both_file_versions_give_the_golden_texts},
    {"every_format_gives_the_golden_texts", every_format_gives_the_golden_texts},
    {"a_model_says_which_tokens_end_a_text", a_model_says_which_tokens_end_a_text},
    {"every_profile_gives_the_golden_texts_with_one_to_eight_threads",
     every_profile_gives_the_golden_texts_with_one_to_eight_threads},
    {"both_ways_of_attention_and_caches_give_the_golden_texts",
     both_ways_of_attention_and_caches_give_the_golden_texts},
    {"weights_of_every_type_write_words", weights_of_every_type_write_words},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_golden[] = {
    {"golden", NULL, NULL, NULL, NULL, golden_tests},
    CU_SUITE_INFO_NULL,
};
