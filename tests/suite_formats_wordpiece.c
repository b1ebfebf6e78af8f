/* SPDX-License-Identifier: MIT
 * WordPiece: the same tokens from vocab.txt, tokenizer.json and the values of GGUF; ids by
 * huggingface/tokenizers. */
#include <stdlib.h>
#include <string.h>

#include "formats/gguf.h"
#include "formats/source.h"
#include "formats/tnd_tokenizer.h"
#include "tests/support.h"

static const char vocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\naffable\nu\n"
    "##n\n\xe4\xb8\xad\n!\ncafe\n##s\n[\n]\nsep\n";

static const struct {
    const char *text;
    int n;
    int32_t ids[8]; /* between [CLS] and [SEP] */
} cases[] = {
    {"unaffable", 3, {5, 6, 7}},
    {"  UN\taffable!", 3, {5, 8, 12}},
    {"Caf\xc3\xa9s", 2, {13, 14}},                 /* accents go */
    {"a\xe4\xb8\xad\xe4\xb8\xad", 3, {1, 11, 11}}, /* Chinese characters stand alone */
    {"unx un", 2, {1, 5}},                         /* a word is known as a whole, or not */
    {"u\xe2\x80\x8bn \x01un", 2, {5, 5}},          /* control characters go */
    {"[SEP]", 3, {15, 17, 16}},                    /* a text, not the token */
    {"", 0, {0}},
};

static void check_cases(const tandem_tokenizer *tokenizer)
{
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    options.add_bos = tandem_tokenizer_adds_bos(tokenizer);
    options.add_eos = tandem_tokenizer_adds_eos(tokenizer);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int32_t ids[16];
        size_t n = 0;
        check_ok(tandem_tokenizer_encode_with(tokenizer, cases[i].text, strlen(cases[i].text),
                                              &options, ids, 16, &n, NULL));
        check_int((int64_t)n, cases[i].n + 2);
        check_int(ids[0], 2);
        check_int(ids[n - 1], 3);
        check_bits(ids + 1, cases[i].ids, (size_t)cases[i].n * sizeof(ids[0]), cases[i].text);
    }
}

static void check_decoding(const tandem_tokenizer *tokenizer)
{
    static const int32_t ids[] = {2, 5, 6, 7, 13, 14, 12, 3};
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
    char text[64];
    size_t n = 0;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        n += tandem_token_stream_next(&stream, ids[i], text + n, sizeof(text) - n);
    }
    text[n] = '\0';
    check_string(text, "unaffable cafes !");
}

static bool is_built(enum tandem_status status, const struct tandem_error *error)
{
    const bool is_missing =
        status == TANDEM_E_UNSUPPORTED_BUILD &&
        (strstr(error->text, "utf8proc") != NULL || strstr(error->text, "PCRE2") != NULL ||
         strstr(error->text, "cJSON") != NULL);
    if (is_missing) {
        tnd_skip("optional part not built: %s", error->text);
    }
    return !is_missing;
}

static void vocab_txt_has_a_token_a_line(void)
{
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    const char *path = tnd_test_temp("vocab.txt");
    CU_ASSERT_TRUE(tnd_test_write_file(path, vocabulary, strlen(vocabulary)));
    const enum tandem_status status = tandem_tokenizer_open(path, 0, &tokenizer, &error);
    if (!is_built(status, &error)) {
        return;
    }
    check_status(status, TANDEM_OK, NULL, &error);
    check_cases(tokenizer);
    check_decoding(tokenizer);
    tandem_tokenizer_close(tokenizer);
    tokenizer = NULL;
    check_status(tnd_tokenizer_wordpiece_read("a\nb\n", 4, "vocab.txt", &tokenizer, &error),
                 TANDEM_E_FORMAT, "[CLS]", &error);
    CU_ASSERT_PTR_NULL(tokenizer);
}

/* Lines of the vocabulary as texts of a list, in GGUF's way. */
static size_t gguf_tokens(uint8_t *out)
{
    size_t n = 0;
    for (const char *at = vocabulary; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        const bool is_name = at[0] == '[' && length > 2;
        const bool goes_on = strncmp(at, "##", 2) == 0;
        const char *before = is_name || goes_on ? "" : TND_BLANK_MARK;
        const size_t skipped = goes_on ? 2 : 0;
        const uint64_t bytes = strlen(before) + length - skipped;
        memcpy(out + n, &bytes, 8);
        memcpy(out + n + 8, before, strlen(before));
        memcpy(out + n + 8 + strlen(before), at + skipped, length - skipped);
        n += 8 + (size_t)bytes;
        at += length + 1;
    }
    return n;
}

static void gguf_marks_what_begins_a_word(void)
{
    uint8_t tokens[512];
    tandem_source *source = NULL;
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    check_ok(tnd_source_new("made", &source, NULL));
    check_ok(tnd_source_set_array(source, "tokenizer.ggml.tokens", TND_GGUF_TEXT, 18, tokens,
                                  gguf_tokens(tokens), true, NULL));
    check_ok(tnd_source_set_text(source, "tokenizer.ggml.model", "bert", NULL));
    const enum tandem_status status = tandem_tokenizer_from_source(source, &tokenizer, &error);
    tandem_source_close(source);
    if (is_built(status, &error)) {
        check_status(status, TANDEM_OK, NULL, &error);
        check_cases(tokenizer);
        check_decoding(tokenizer);
    }
    tandem_tokenizer_close(tokenizer);
}

static void tokenizer_json_says_all(void)
{
    char json[2048] = "{\"normalizer\":{\"type\":\"BertNormalizer\"},"
                      "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                      "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],"
                      "\"cls\":[\"[CLS]\",2]},\"decoder\":{\"type\":\"WordPiece\"},"
                      "\"added_tokens\":[{\"id\":2,\"content\":\"[CLS]\",\"special\":true},"
                      "{\"id\":3,\"content\":\"[SEP]\",\"special\":true}],"
                      "\"model\":{\"type\":\"WordPiece\",\"vocab\":{";
    int id = 0;
    for (const char *at = vocabulary; *at != '\0'; id++) {
        const int length = (int)strcspn(at, "\n");
        const size_t n = strlen(json);
        snprintf(json + n, sizeof(json) - n, "%s\"%.*s\":%d", id > 0 ? "," : "", length, at, id);
        at += length + 1;
    }
    strcat(json, "}}}");
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    const enum tandem_status status =
        tnd_tokenizer_json_read(json, strlen(json), "made.json", &tokenizer, &error);
    if (is_built(status, &error)) {
        check_status(status, TANDEM_OK, NULL, &error);
        check_cases(tokenizer);
        check_decoding(tokenizer);
    }
    tandem_tokenizer_close(tokenizer);
}

/* A vocabulary with capital letters tells words by them. */
static void case_counts_where_tokens_have_it(void)
{
    static const char cased[] = "[UNK]\n[CLS]\n[SEP]\nUn\nun\ncaf\xc3\xa9\n";
    static const int32_t want[] = {3, 4, 5};
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    int32_t ids[8];
    size_t n = 0;
    const enum tandem_status status =
        tnd_tokenizer_wordpiece_read(cased, strlen(cased), "vocab.txt", &tokenizer, &error);
    if (is_built(status, &error)) {
        check_ok(
            tandem_tokenizer_encode(tokenizer, "Un un caf\xc3\xa9", 11, false, ids, 8, &n, NULL));
        check_int((int64_t)n, 3);
        check_bits(ids, want, sizeof(want), "cased");
    }
    tandem_tokenizer_close(tokenizer);
}

static CU_TestInfo wordpiece_tests[] = {
    {"vocab_txt_has_a_token_a_line", vocab_txt_has_a_token_a_line},
    {"gguf_marks_what_begins_a_word", gguf_marks_what_begins_a_word},
    {"tokenizer_json_says_all", tokenizer_json_says_all},
    {"case_counts_where_tokens_have_it", case_counts_where_tokens_have_it},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_wordpiece[] = {
    {"wordpiece", NULL, NULL, NULL, NULL, wordpiece_tests},
    CU_SUITE_INFO_NULL,
};
