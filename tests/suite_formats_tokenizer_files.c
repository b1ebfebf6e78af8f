/* SPDX-License-Identifier: MIT
 * tokenizer.model and GGUF files made here: ids, and what damaged files give; names of
 * pre-tokenizers. */
#include <stdlib.h>
#include <string.h>

#include "formats/gguf.h"
#include "formats/tnd_tokenizer.h"
#include "tests/suite_formats_tokenizer.h"
#include "tests/support.h"

/* ---- tokenizer.model ---- */

struct made_model {
    unsigned char bytes[2048];
    size_t n;
};

static void put(struct made_model *model, const void *bytes, size_t n)
{
    memcpy(model->bytes + model->n, bytes, n);
    model->n += n;
}

static void put_field(struct made_model *model, unsigned number, const void *bytes, size_t n)
{
    const unsigned char head[] = {(unsigned char)(number << 3 | 2), (unsigned char)(n & 0x7f),
                                  (unsigned char)(n >> 7)};
    const bool is_long = n >= 0x80;
    const unsigned char first = (unsigned char)(head[1] | 0x80);
    put(model, head, 1);
    put(model, is_long ? &first : head + 1, 1);
    put(model, head + 2, is_long);
    put(model, bytes, n);
}

static void put_piece(struct made_model *model, const char *text, float score, unsigned char type)
{
    struct made_model piece = {.n = 0};
    const unsigned char score_key = 2 << 3 | 5;
    const unsigned char type_field[] = {3 << 3, type};
    put_field(&piece, 1, text, strlen(text));
    put(&piece, &score_key, 1);
    put(&piece, &score, 4);
    put(&piece, type_field, 2);
    put_field(model, 1, piece.bytes, piece.n);
}

/* A charsmap with the one rule A -> b. */
static void put_charsmap(struct made_model *spec)
{
    uint32_t units[0x42] = {0};
    struct made_model charsmap = {.n = 0};
    const uint32_t n_bytes = sizeof(units);
    units['A'] = 'A' | 0x100u | 1u << 10; /* its value is at 'A' ^ 1 */
    units['A' ^ 1] = 0x80000000u;
    put(&charsmap, &n_bytes, 4);
    put(&charsmap, units, sizeof(units));
    put(&charsmap, "b", 2);
    put_field(spec, 2, charsmap.bytes, charsmap.n);
}

enum { UNK, BOS, EOS, MARK, A, B, C, AB, MARK_A, ABC, XY };

static void make_model(unsigned char type, struct made_model *model)
{
    struct made_model spec = {.n = 0};
    const unsigned char trainer[] = {3 << 3, type};
    model->n = 0;
    put_piece(model, "<unk>", 0, 2);
    put_piece(model, "<s>", 0, 3);
    put_piece(model, "</s>", 0, 3);
    put_piece(model, TND_BLANK_MARK, -1, 1);
    put_piece(model, "a", -2, 1);
    put_piece(model, "b", -2, 1);
    put_piece(model, "c", -2, 1);
    put_piece(model, "ab", -3, 1);
    put_piece(model, TND_BLANK_MARK "a", -2.5f, 1);
    put_piece(model, "abc", -3.5f, 1);
    put_piece(model, "XY", 0, 4);
    put_piece(model, TND_BLANK_MARK "X", -1.4f, 1);
    put_piece(model, "Y", -1.4f, 1);
    put_field(model, 2, trainer, sizeof(trainer));
    put_charsmap(&spec);
    put_field(model, 3, spec.bytes, spec.n);
}

static tandem_tokenizer *open_model(unsigned char type)
{
    static struct made_model model;
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    make_model(type, &model);
    check_status(tnd_tokenizer_sentencepiece_read(model.bytes, model.n, "made", &tokenizer, &error),
                 TANDEM_OK, NULL, &error);
    return tokenizer;
}

static void unigram_takes_the_most_probable_tokens(void)
{
    tandem_tokenizer *tokenizer = open_model(1);
    tnd_test_check_ids(tokenizer, "abc", false, "3 9"); /* -4.5, against blank-a b c -6.5 */
    tnd_test_check_ids(tokenizer, "ab", false, "3 7");  /* -4, against -4.5 */
    tnd_test_check_ids(tokenizer, " A  a ", false,
                       "3 5 8"); /* A is b, blanks are one, none at the ends */
    tnd_test_check_ids(tokenizer, "aXYzzb", false,
                       "8 10 0 5"); /* neighbours without token are one */
    tnd_test_check_ids(tokenizer, "XY", false,
                       "3 10"); /* a user-defined token costs next to nothing */
    tnd_test_check_ids(tokenizer, "  ", false, "");
    tnd_test_check_ids(tokenizer, "<s>a", true, "1 8");
    check_int(tandem_tokenizer_bos(tokenizer), BOS);
    check_int(tandem_tokenizer_eos(tokenizer), EOS);
    tandem_tokenizer_close(tokenizer);
}

static void bpe_of_sentencepiece_merges_the_best_score_first(void)
{
    tandem_tokenizer *tokenizer = open_model(2);
    tnd_test_check_ids(tokenizer, "abc", false, "8 5 6");
    tnd_test_check_ids(tokenizer, "cabc", false, "3 6 9");
    tnd_test_check_ids(tokenizer, "XYa", false, "3 10 4");
    tandem_tokenizer_close(tokenizer);
}

static void damaged_models_give_an_error_or_a_tokenizer_that_works(void)
{
    static struct made_model model;
    for (unsigned char type = 1; type <= 2; type++) {
        make_model(type, &model);
        tnd_test_cut_everywhere(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
        tnd_test_change_everywhere(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
    }
}

static void each_failing_allocation_leaks_nothing(void)
{
    static struct made_model model;
    for (unsigned char type = 1; type <= 2; type++) {
        make_model(type, &model);
        tnd_test_fail_each_allocation(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
    }
}

/* ---- GGUF ---- */

static void put_u64(struct made_model *list, uint64_t value)
{
    put(list, &value, 8);
}

/* Texts in GGUF's encoding; NULL ends them. */
static void set_texts(tandem_source *source, const char *key, const char *const *texts)
{
    struct made_model list = {.n = 0};
    int64_t n = 0;
    for (; texts[n] != NULL; n++) {
        put_u64(&list, strlen(texts[n]));
        put(&list, texts[n], strlen(texts[n]));
    }
    check_ok(tnd_source_set_array(source, key, TND_GGUF_TEXT, n, list.bytes, list.n, true, NULL));
}

static tandem_source *make_source(const char *model, const char *pre)
{
    static const char *const tokens[] = {"<unk>",
                                         "<s>",
                                         "</s>",
                                         "<0x41>",
                                         "a",
                                         "b",
                                         "ab",
                                         TND_BLANK_MARK,
                                         "<|end|>",
                                         "\xc4\xa0",
                                         "\xc4\xa0"
                                         "a",
                                         NULL};
    static const char *const merges[] = {"a b", "\xc4\xa0 a", NULL};
    static const int32_t types[] = {2, 3, 3, 6, 1, 1, 1, 1, 4, 1, 1};
    static const float scores[] = {0, 0, 0, 0, -1, -2, -3, -4, 0, -5, -6};
    tandem_source *source = NULL;
    check_ok(tnd_source_new("made", &source, NULL));
    check_ok(tnd_source_set_text(source, "tokenizer.ggml.model", model, NULL));
    check_ok(tnd_source_set_text(source, "tokenizer.ggml.pre", pre, NULL));
    set_texts(source, "tokenizer.ggml.tokens", tokens);
    set_texts(source, "tokenizer.ggml.merges", merges);
    check_ok(tnd_source_set_array(source, "tokenizer.ggml.token_type", TND_GGUF_I32, 11,
                                  (const uint8_t *)types, sizeof(types), true, NULL));
    check_ok(tnd_source_set_array(source, "tokenizer.ggml.scores", TND_GGUF_F32, 11,
                                  (const uint8_t *)scores, sizeof(scores), true, NULL));
    check_ok(tnd_source_set_integer(source, "tokenizer.ggml.bos_token_id", 1, NULL));
    return source;
}

static char *make_gguf(const char *model, size_t *out_n)
{
    const char *path = tnd_test_temp("tokens.gguf");
    tandem_source *source = make_source(model, "gpt-2");
    check_ok(tandem_source_save_gguf(source, path, NULL, NULL));
    tandem_source_close(source);
    return tnd_test_read_file(path, out_n);
}

static enum tandem_status read_gguf(const void *bytes, size_t n, const char *name,
                                    tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    tandem_source *source = NULL;
    enum tandem_status status = tnd_gguf_read(bytes, n, name, &source, error);
    if (status == TANDEM_OK) {
        status = tandem_tokenizer_from_source(source, out_tokenizer, error);
    }
    tandem_source_close(source);
    return status;
}

static void tokenizers_of_gguf_files_have_the_tokens_of_the_file(void)
{
    static const char *const models[] = {"llama", "gpt2"};
    static const char *const ids[] = {"7 6 8 7 3", "6 8"};
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        char *bytes = make_gguf(models[i], &n);
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        const enum tandem_status status = read_gguf(bytes, n, "made", &tokenizer, &error);
        if (status == TANDEM_E_UNSUPPORTED_BUILD) {
            tnd_skip("optional part not built: %s", error.text);
        } else if (check_status(status, TANDEM_OK, NULL, &error)) {
            tnd_test_check_ids(tokenizer, i == 0 ? "ab<|end|>A" : "ab<|end|>", false, ids[i]);
            check_int(tandem_tokenizer_bos(tokenizer), 1);
        }
        tandem_tokenizer_close(tokenizer);
        free(bytes);
    }
}

static void damaged_gguf_files_give_an_error_or_a_tokenizer_that_works(void)
{
    static const char *const models[] = {"llama", "gpt2"};
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        char *bytes = make_gguf(models[i], &n);
        tnd_test_cut_everywhere(read_gguf, bytes, n);
        tnd_test_change_everywhere(read_gguf, bytes, n);
        free(bytes);
    }
}

static void each_failing_allocation_of_a_gguf_file_leaks_nothing(void)
{
    static const char *const models[] = {"llama", "gpt2"};
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        char *bytes = make_gguf(models[i], &n);
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        if (read_gguf(bytes, n, "made", &tokenizer, &error) == TANDEM_OK) {
            tandem_tokenizer_close(tokenizer);
            tnd_test_fail_each_allocation(read_gguf, bytes, n);
        } else {
            tnd_skip("optional part not built: %s", error.text);
        }
        free(bytes);
    }
}

static void a_source_without_vocabulary_or_of_another_kind_is_refused(void)
{
    tandem_source *source = NULL;
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    static const uint8_t tokens[] = {1, 0, 0, 0, 0, 0, 0, 0, 'a'};
    check_ok(tnd_source_new("made", &source, NULL));
    check_status(tandem_tokenizer_from_source(source, &tokenizer, &error), TANDEM_E_FORMAT,
                 "tokenizer.ggml.tokens", &error);
    check_ok(tnd_source_set_array(source, "tokenizer.ggml.tokens", TND_GGUF_TEXT, 1, tokens,
                                  sizeof(tokens), true, NULL));
    check_ok(tnd_source_set_text(source, "tokenizer.ggml.model", "rwkv", NULL));
    check_status(tandem_tokenizer_from_source(source, &tokenizer, &error),
                 TANDEM_E_UNSUPPORTED_BUILD, "rwkv", &error);
    check_status(tandem_tokenizer_from_source(NULL, &tokenizer, &error), TANDEM_E_ARGUMENT, NULL,
                 &error);
    CU_ASSERT_PTR_NULL(tokenizer);
    tandem_source_close(source);
}

/* How the names of tokenizer.ggml.pre cut a text, between bars, and what else they mean, as
 * llama.cpp has it (src/llama-vocab.cpp of ggml-org/llama.cpp). */
struct pre_case {
    const char *names; /* separated by blanks */
    const char *want;  /* of PRE_TEXT */
    bool adds_bos;
    bool whole_words;
};
#define PRE_TEXT "It'S 12345 Words, \xe4\xb8\x80!\r\n  x"
static const struct pre_case pre_cases[] = {
    {"default", "It|'|S| |123|45| Words|,| \xe4\xb8\x80|!|\r\n | x", false, false},
    {"gpt-2 phi-2 jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code gigachat "
     "roberta-bpe mpt olmo jais trillion granite-docling a.x-4.0 mellum modern-bert exaone4",
     "It|'|S| 12345| Words|,| \xe4\xb8\x80|!|\r\n | x", false, false},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     "It|'S| |123|45| Words|,| \xe4\xb8\x80|!\r\n| | x", true, true},
    {"dbrx smaug-bpe chatglm-bpe glm4", "It|'S| |123|45| Words|,| \xe4\xb8\x80|!\r\n| | x", false,
     false},
    {"qwen2 stablelm2 deepseek-r1-qwen megrez hunyuan kormo f2llmv2 grok-2 solar-open qwen35",
     "It|'S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!\r\n| | x", false, false},
    {"bailingmoe bailingmoe2 llada-moe", "It|'S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!\r\n| | x",
     false, false},
    {"seed-coder", "It|'S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!|\r\n| | x", false, false},
    {"exaone-moe", "It|'S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!\r|\n| | x", false, false},
    {"falcon", "It|'|S| |123|45| Words|,| \xe4\xb8\x80|!|\r\n | x", false, false},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b",
     "It|'|S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!|\r\n | x", false, false},
    {"deepseek-coder", "It|'|S| |1|2|3|4|5| Words|,| |\xe4\xb8\x80|!|\r|\n| | x", false, false},
    {"deepseek-v3 hunyuan-dense joyai-llm", "It|'S| |123|45| Words|,| |\xe4\xb8\x80|!\r\n| | x",
     false, false},
    {"youtu", "It'S| |1|2|3|4|5| Words|,| |\xe4\xb8\x80|!\r\n| | x", false, true},
    {"bloom poro-chat gpt3-finnish", "It'S| 12345| Words|,| \xe4\xb8\x80|!\r\n | x", false, false},
    {"viking", "It'S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!\r\n | x", false, false},
    {"superbpe", "It'S |12|345| Words, \xe4\xb8\x80!\r\n  x", false, false},
    {"chameleon", "It|'|S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!|\r|\n|  |x", true, false},
    {"tekken", "It|'S| |1|2|3|4|5| Words|,| \xe4\xb8\x80|!\r\n| | x", true, true},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", "It'S| |123|45| Words|,| \xe4\xb8\x80|!\r\n| | x",
     false, false},
};

/* The pieces of PRE_TEXT between bars. */
static void check_pieces(const tandem_tokenizer *tokenizer, const char *name, const char *want)
{
    struct tnd_pieces pieces = {.is_first = true};
    struct tnd_text got = TND_TEXT_INIT;
    tnd_pieces_set(&pieces, PRE_TEXT, sizeof(PRE_TEXT) - 1);
    check_ok(tnd_steps_run(tokenizer->steps, tokenizer->n_steps, &pieces, NULL));
    for (size_t i = 0; i < pieces.n; i++) {
        tnd_text_printf(&got, "%s%.*s", i > 0 ? "|" : "",
                        (int)(pieces.items[i].end - pieces.items[i].start),
                        pieces.text.bytes + pieces.items[i].start);
    }
    if (!check_string(tnd_text_string(&got), want)) {
        fprintf(stderr, "pre-tokenizer %s\n", name);
    }
    tnd_text_fini(&got);
    tnd_pieces_fini(&pieces);
}

/* False when patterns are not built. `key`: add_bos_token, or -1. */
static bool check_pre(const struct pre_case *row, const char *name, int key)
{
    tandem_source *source = make_source("gpt2", name);
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    if (key >= 0) {
        check_ok(tnd_source_set_integer(source, "tokenizer.ggml.add_bos_token", key, NULL));
        check_ok(tnd_source_set_integer(source, "tokenizer.ggml.add_eos_token", key, NULL));
    }
    const enum tandem_status status = tandem_tokenizer_from_source(source, &tokenizer, &error);
    tandem_source_close(source);
    if (status == TANDEM_E_UNSUPPORTED_BUILD && strstr(error.text, name) == NULL) {
        tnd_skip("optional part not built: %s", error.text);
        return false;
    }
    if (check_status(status, TANDEM_OK, NULL, &error)) {
        check_int(tandem_tokenizer_adds_bos(tokenizer), key >= 0 ? key == 1 : row->adds_bos);
        check_int(tandem_tokenizer_adds_eos(tokenizer), key == 1);
        check_int(tokenizer->whole_words, row->whole_words);
        check_pieces(tokenizer, name, row->want);
    }
    tandem_tokenizer_close(tokenizer);
    return true;
}

static void each_name_of_a_pretokenizer_means_what_it_means_elsewhere(void)
{
    struct tandem_error error = {0};
    for (size_t i = 0; i < sizeof(pre_cases) / sizeof(pre_cases[0]); i++) {
        char names[256];
        snprintf(names, sizeof(names), "%s", pre_cases[i].names);
        for (char *rest = names, *name = NULL; (name = strtok_r(rest, " ", &rest)) != NULL;) {
            for (int key = -1; key < 2; key++) {
                if (!check_pre(&pre_cases[i], name, key)) {
                    return;
                }
            }
        }
    }
    check_status(tnd_tokenizer_add_pretokenizer(NULL, "unheard-of", &error),
                 TANDEM_E_UNSUPPORTED_BUILD, "unheard-of", &error);
}

static void scores_begin_with_the_beginning_token_unless_the_file_says_otherwise(void)
{
    for (int key = -1; key < 2; key++) {
        tandem_source *source = make_source("llama", "default");
        tandem_tokenizer *tokenizer = NULL;
        if (key >= 0) {
            check_ok(tnd_source_set_integer(source, "tokenizer.ggml.add_bos_token", key, NULL));
        }
        check_ok(tandem_tokenizer_from_source(source, &tokenizer, NULL));
        check_int(tandem_tokenizer_adds_bos(tokenizer), key != 0);
        check_int(tandem_tokenizer_adds_eos(tokenizer), 0);
        tandem_tokenizer_close(tokenizer);
        tandem_source_close(source);
    }
}

static CU_TestInfo file_tests[] = {
    {"each_name_of_a_pretokenizer_means_what_it_means_elsewhere",
     each_name_of_a_pretokenizer_means_what_it_means_elsewhere},
    {"scores_begin_with_the_beginning_token_unless_the_file_says_otherwise",
     scores_begin_with_the_beginning_token_unless_the_file_says_otherwise},
    {"unigram_takes_the_most_probable_tokens", unigram_takes_the_most_probable_tokens},
    {"bpe_of_sentencepiece_merges_the_best_score_first",
     bpe_of_sentencepiece_merges_the_best_score_first},
    {"damaged_models_give_an_error_or_a_tokenizer_that_works",
     damaged_models_give_an_error_or_a_tokenizer_that_works},
    {"each_failing_allocation_leaks_nothing", each_failing_allocation_leaks_nothing},
    {"tokenizers_of_gguf_files_have_the_tokens_of_the_file",
     tokenizers_of_gguf_files_have_the_tokens_of_the_file},
    {"each_failing_allocation_of_a_gguf_file_leaks_nothing",
     each_failing_allocation_of_a_gguf_file_leaks_nothing},
    {"damaged_gguf_files_give_an_error_or_a_tokenizer_that_works",
     damaged_gguf_files_give_an_error_or_a_tokenizer_that_works},
    {"a_source_without_vocabulary_or_of_another_kind_is_refused",
     a_source_without_vocabulary_or_of_another_kind_is_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_tokenizer_files[] = {
    {"tokenizer_files", NULL, NULL, NULL, NULL, file_tests},
    CU_SUITE_INFO_NULL,
};
