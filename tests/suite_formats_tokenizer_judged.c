/* SPDX-License-Identifier: MIT
 * Tokenizers against the reference libraries, as far as that goes without them: small tokenizers
 * with the ids and texts that the judge has written down; files beside each other; refusals. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/tnd_tokenizer.h"
#include "tests/suite_formats_tokenizer.h"
#include "tests/support.h"

struct judged_text {
    const char *text;
    const char *ids;
    const char *hidden; /* what the ids are decoded to */
    const char *shown;  /* with special tokens; NULL: the reference has no such notion */
};

static const struct judged {
    const char *name;
    tnd_test_read_fn read;
    const char *bytes;
    size_t n;
    struct judged_text texts[10];
} judged[] = {
#include "tests/judged-tokenizers-list.h"
};

static void check_decoded(const tandem_tokenizer *tokenizer, const char *ids, bool shows_special,
                          const char *want)
{
    char got[256] = "";
    size_t n = 0;
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
    stream.shows_special = shows_special;
    for (const char *at = ids; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        n += tandem_token_stream_next(&stream, atoi(at), got + n, sizeof(got) - n - 1);
    }
    n += tandem_token_stream_end(&stream, got + n, sizeof(got) - n - 1);
    got[n] = '\0';
    check_string(got, want);
}

static void small_tokenizers_are_those_of_the_reference_libraries(void)
{
    for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
        const struct judged *row = &judged[i];
        const bool has_special = row->read != tnd_tokenizer_sentencepiece_read;
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        const enum tandem_status status =
            row->read(row->bytes, row->n, row->name, &tokenizer, &error);
        if (status == TANDEM_E_UNSUPPORTED_BUILD) {
            tnd_skip("optional part not built: %s", error.text);
            return;
        }
        check_status(status, TANDEM_OK, NULL, &error);
        for (int k = 0; tokenizer != NULL && k < 10 && row->texts[k].text != NULL; k++) {
            const struct judged_text *text = &row->texts[k];
            tnd_test_check_ids(tokenizer, text->text, has_special, text->ids);
            check_decoded(tokenizer, text->ids, false, text->hidden);
            if (text->shown != NULL) {
                check_decoded(tokenizer, text->ids, true, text->shown);
            }
        }
        tandem_tokenizer_close(tokenizer);
    }
}

static void what_would_be_decoded_or_found_otherwise_is_refused(void)
{
#define MODEL "\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}"
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"{\"added_tokens\":[{\"id\":1,\"content\":\"x\",\"single_word\":true}]," MODEL,
         "single_word"},
        {"{\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}," MODEL,
         "Strip"},
        {"{\"decoder\":{\"type\":\"WordPiece\"}," MODEL, "WordPiece"},
        {"{\"decoder\":{\"type\":\"ByteLevel\"}," MODEL, "ByteLevel without"},
        {"{\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}," MODEL, "Metaspace"},
        {"{\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},\"content\":\" "
         "\"}," MODEL,
         "Replace"},
        {"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":"
         "\"Metaspace\"}]}," MODEL,
         "behind Fuse"},
        {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
         "{\"type\":\"Metaspace\"}]}," MODEL,
         "behind ByteLevel"},
        {"{\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Sideways\"}," MODEL,
         "Sideways"},
        {"{\"model\":{\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}}", "dropout"},
        {"{\"model\":{\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0},\"merges\":[]}}",
         "suffix"},
    };
#undef MODEL
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        const enum tandem_status status = tnd_tokenizer_json_read(
            cases[i].text, strlen(cases[i].text), "made.json", &tokenizer, &error);
        if (strstr(error.text, "cJSON") != NULL || strstr(error.text, "PCRE2") != NULL) {
            tnd_skip("optional part not built: %s", error.text);
            return;
        }
        check_status(status, TANDEM_E_UNSUPPORTED_BUILD, cases[i].part, &error);
    }
}

static void a_file_of_ranks_that_is_none_is_refused(void)
{
    static const char *const cases[] = {"IQ== 0\nIQ== 0\n",   "IQ== 0\nIg== 2\n",
                                        "IQ== 0\nI== 1\n",    "IQ== 0\nIg==\n",
                                        "IQ== 0\n\nIg== 1\n", "IQ== 0\n*Q== 1\n"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        CU_ASSERT(tnd_tokenizer_tiktoken_is((const uint8_t *)cases[i], strlen(cases[i])));
        check_status(
            tnd_tokenizer_tiktoken_read(cases[i], strlen(cases[i]), "ranks", &tokenizer, &error),
            TANDEM_E_FORMAT, "line 2", &error);
    }
}

static const struct judged *find_judged(const char *name)
{
    size_t i = 0;
    while (strcmp(judged[i].name, name) != 0) {
        i++;
    }
    return &judged[i];
}

static void damaged_ranks_give_an_error_or_a_tokenizer_that_works(void)
{
    const struct judged *row = find_judged("tokens by rank, of Llama 3");
    tnd_test_cut_everywhere(row->read, row->bytes, 300);
    tnd_test_change_everywhere(row->read, row->bytes, 300);
    tnd_test_fail_each_allocation(row->read, row->bytes, row->n);
}

#define TEKKEN_CONFIG                                                                              \
    "\"config\":{\"pattern\":\"\\\\p{L}+|[^\\\\p{L}]\",\"num_vocab_tokens\":7,"                    \
    "\"default_vocab_size\":9,\"default_num_special_tokens\":4,\"version\":\"v3\"}"
#define TEKKEN_VOCAB                                                                               \
    "\"vocab\":[{\"rank\":0,\"token_bytes\":\"AA==\",\"token_str\":\"\\u0000\"},"                  \
    "{\"rank\":1,\"token_bytes\":\"YQ==\",\"token_str\":\"a\"},{\"rank\":2,\"token_bytes\":\"Yg==" \
    "\"},"                                                                                         \
    "{\"rank\":3,\"token_bytes\":\"IA==\"},{\"rank\":4,\"token_bytes\":\"YWI=\"},"                 \
    "{\"rank\":5,\"token_bytes\":\"YWJi\"},{\"rank\":6,\"token_bytes\":\"YmE=\"}]"
#define TEKKEN_SPECIAL                                                                             \
    "\"special_tokens\":[{\"rank\":1,\"token_str\":\"<s>\",\"is_control\":true},"                  \
    "{\"rank\":0,\"token_str\":\"<unk>\",\"is_control\":true},{\"rank\":2,\"token_str\":\"</"      \
    "s>\"}]"

static enum tandem_status read_tekken(const char *text, tandem_tokenizer **out,
                                      struct tandem_error *error)
{
    CU_ASSERT_TRUE(tnd_tokenizer_tekken_is(text, strlen(text)));
    return tnd_tokenizer_tekken_read(text, strlen(text), "tekken.json", out, error);
}

/* Ids of vocab follow those of the special tokens; what lies behind default_vocab_size is no
 * token, "abb" and "ba" here. */
static void a_tekken_file_gives_its_tokens(void)
{
    static const char *const files[] = {
        "{" TEKKEN_CONFIG "," TEKKEN_VOCAB "," TEKKEN_SPECIAL "}",
        "{" TEKKEN_VOCAB ",\"image\":{\"size\":[1,2]}," TEKKEN_CONFIG ",\"special_tokens\":null}"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        const enum tandem_status status = read_tekken(files[i], &tokenizer, &error);
        if (status == TANDEM_E_UNSUPPORTED_BUILD) {
            tnd_skip("optional part not built: %s", error.text);
            return;
        }
        check_status(status, TANDEM_OK, NULL, &error);
        tnd_test_check_ids(tokenizer, "abba ab", true, "8 6 5 7 8");
        check_int(tandem_tokenizer_find(tokenizer, "<s>"), 1);
        check_int(tandem_tokenizer_find(tokenizer, "</s>"), 2);
        check_int(tandem_tokenizer_find(tokenizer, i == 0 ? "<SPECIAL_3>" : "[INST]"), 3);
        tandem_tokenizer_close(tokenizer);
        tnd_test_cut_everywhere(tnd_tokenizer_tekken_read, files[i], 300);
        tnd_test_change_everywhere(tnd_tokenizer_tekken_read, files[i], 300);
        tnd_test_fail_each_allocation(tnd_tokenizer_tekken_read, files[i], strlen(files[i]));
    }
}

static void a_tekken_file_that_breaks_a_rule_is_refused(void)
{
#define SIZES(all, special)                                                                        \
    "\"config\":{\"pattern\":\".\",\"default_vocab_size\":" all                                    \
    ",\"default_num_special_tokens\":" special "}"
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{" SIZES("9", "9") "," TEKKEN_VOCAB "}", "9 tokens of which 9 are special"},
        {"{" SIZES("999999999", "4") "," TEKKEN_VOCAB "}", "999999999 tokens"},
        {"{" SIZES("9", "4") "}", "there is no vocab"},
        {"{" SIZES("12", "4") "," TEKKEN_VOCAB "}", "7 tokens of vocab have ranks below 8"},
        {"{" SIZES("6", "4") ",\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"},"
                             "{\"rank\":0,\"token_bytes\":\"Yg==\"}]}",
         "entry 1 of vocab"},
        {"{" SIZES("5", "4") ",\"vocab\":[{\"rank\":0,\"token_bytes\":\"Y*==\"}]}",
         "entry 0 of vocab"},
        {"{" TEKKEN_CONFIG "," TEKKEN_VOCAB
         ",\"special_tokens\":[{\"rank\":4,\"token_str\":\"x\"}]}",
         "entry 0 of special_tokens"},
        {"{" TEKKEN_CONFIG "," TEKKEN_VOCAB ",\"special_tokens\":[{\"rank\":1}]}",
         "entry 0 of special_tokens"},
    };
#undef SIZES
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        const enum tandem_status status = read_tekken(cases[i].text, &tokenizer, &error);
        check_status(status, TANDEM_E_FORMAT, cases[i].message, &error);
        tandem_tokenizer_close(tokenizer);
    }
    CU_ASSERT_FALSE(tnd_tokenizer_tekken_is("{\"model\":{}}", 12));
    CU_ASSERT_FALSE(tnd_tokenizer_tekken_is("{\"config\":{\"pattern\":1", 22));
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    check_ok(tnd_file_write_atomic(path, text, strlen(text), NULL));
}

static void remove_files(const char *folder)
{
    static const char *const names[] = {"vocab.json", "merges.txt", "tokenizer_config.json",
                                        "tokenizer.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
}

static void check_open(const char *folder, const char *text, const char *want)
{
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    check_status(tandem_tokenizer_open(folder, 0, &tokenizer, &error), TANDEM_OK, NULL, &error);
    if (tokenizer != NULL) {
        tnd_test_check_ids(tokenizer, text, true, want);
    }
    tandem_tokenizer_close(tokenizer);
}

/* The ids of a row's texts by the tokenizer that is among the values of a source. */
static void check_taken_along(const struct judged *row, const char *path)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 8,
                                             .hidden = 8,
                                             .layers = 1,
                                             .heads = 1,
                                             .kv_heads = 1,
                                             .vocabulary = 1024,
                                             .context = 8};
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    tandem_tokenizer *tokenizer = NULL;
    bool is_common = false;
    check_ok(tnd_file_write_atomic(path, row->bytes, row->n, NULL));
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL));
    check_status(tandem_source_add_tokenizer(source, path, &is_common, &error), TANDEM_OK, NULL,
                 &error);
    check_status(tandem_tokenizer_from_source(source, &tokenizer, &error), TANDEM_OK, NULL, &error);
    tandem_source_close(source);
    for (int k = 0; tokenizer != NULL && k < 10 && row->texts[k].text != NULL; k++) {
        tnd_test_check_ids(tokenizer, row->texts[k].text,
                           row->read != tnd_tokenizer_sentencepiece_read, row->texts[k].ids);
    }
    tandem_tokenizer_close(tokenizer);
}

static void every_tokenizer_goes_along_with_a_source(void)
{
    char folder[] = "/tmp/tandem-tokenizer-XXXXXX";
    char path[64];
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    const enum tandem_status status =
        judged[0].read(judged[0].bytes, judged[0].n, "judged", &tokenizer, &error);
    tandem_tokenizer_close(tokenizer);
    if (status == TANDEM_E_UNSUPPORTED_BUILD || mkdtemp(folder) == NULL) {
        tnd_skip("optional part not built: %s", error.text);
        return;
    }
    snprintf(path, sizeof(path), "%s/tokenizer.json", folder);
    for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
        check_taken_along(&judged[i], path);
    }
    remove_files(folder);
    check_int(rmdir(folder), 0);
}

static void a_folder_is_opened_by_the_tokenizer_in_it(void)
{
    static const char vocabulary[] =
        "{\"a\":0,\"b\":1,\"\\u0120\":2,\"ab\":3,\"\\u0120a\":4,\"<|endoftext|>\":5,\"1\":6}";
    char folder[] = "/tmp/tandem-tokenizer-XXXXXX";
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = NULL;
    if (mkdtemp(folder) == NULL) {
        tnd_skip("no temporary folder");
        return;
    }
    check_status(tandem_tokenizer_open(folder, 0, &tokenizer, &error), TANDEM_E_NOT_FOUND,
                 "tokenizer.json", &error);
    write_file(folder, "vocab.json", vocabulary);
    const enum tandem_status status = tandem_tokenizer_open(folder, 0, &tokenizer, &error);
    if (status != TANDEM_E_UNSUPPORTED_BUILD) {
        check_status(status, TANDEM_E_NOT_FOUND, "merges.txt", &error);
        write_file(folder, "merges.txt", "#version: 0.2\na b\n\xc4\xa0 a\n");
        check_open(folder, "ab a<|endoftext|>1", "3 4 5 6");
        write_file(folder, "tokenizer_config.json",
                   "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_prefix_space\":true}");
        check_open(folder, "a1", "4 6");
        write_file(folder, "tokenizer_config.json", "{\"tokenizer_class\":\"BertTokenizer\"}");
        check_status(tandem_tokenizer_open(folder, 0, &tokenizer, &error),
                     TANDEM_E_UNSUPPORTED_BUILD, "BertTokenizer", &error);
        write_file(folder, "tokenizer.json", "{\"model\":{\"vocab\":{\"b\":7},\"merges\":[]}}");
        check_open(folder, "b", "7"); /* the best one of the folder */
    }
    remove_files(folder);
    check_int(rmdir(folder), 0);
}

/* What tokenizer.json says of the tokens around a text, and tokenizer_config.json against it. */
static void a_folder_says_which_tokens_stand_around_a_text(void)
{
#define ADDED(id, text)                                                                            \
    "{\"id\":" #id ",\"content\":\"" text "\",\"special\":true,\"normalized\":false}"
#define WITH(processor)                                                                            \
    "{\"added_tokens\":[" ADDED(1, "<s>") "," ADDED(2, "</s>") "," ADDED(                          \
        3, "<b>") "],"                                                                             \
                  "\"post_processor\":" processor                                                  \
                  ",\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}"
#define SPECIAL(text) "{\"SpecialToken\":{\"id\":\"" text "\",\"type_id\":0}}"
#define TEXT_A        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define LIST(items)                                                                                \
    "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"                             \
    "{\"type\":\"TemplateProcessing\",\"single\":[" items "]}]}"
    static const struct {
        const char *json, *config;
        int32_t bos, eos;
        bool adds_bos, adds_eos;
    } rows[] = {
        {WITH("null"), "", 1, 2, false, false},
        {WITH(LIST(TEXT_A)), "{}", 1, 2, false, false},
        {WITH(LIST(SPECIAL("<b>") "," TEXT_A)), "{\"bos_token\":null}", 3, 2, true, false},
        {WITH(LIST(SPECIAL("<s>") "," TEXT_A "," SPECIAL("</s>"))), "", 1, 2, true, true},
        {WITH(LIST(TEXT_A "," SPECIAL("<b>"))), "", 1, 3, false, true},
        {WITH("{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",1]}"), "", 1,
         2, true, true},
        {WITH(LIST(SPECIAL("<s>") "," TEXT_A)), "{\"add_bos_token\":false,\"eos_token\":\"<b>\"}",
         1, 3, false, false},
        {WITH("null"),
         "{\"add_bos_token\":true,\"add_eos_token\":true,\"bos_token\":{\"content\":\"<b>\"}}", 3,
         2, true, true},
    };
    char folder[] = "/tmp/tandem-tokenizer-XXXXXX";
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = NULL;
    if (mkdtemp(folder) == NULL) {
        tnd_skip("no temporary folder");
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        remove_files(folder);
        write_file(folder, "tokenizer.json", rows[i].json);
        if (rows[i].config[0] != '\0') {
            write_file(folder, "tokenizer_config.json", rows[i].config);
        }
        const enum tandem_status status = tandem_tokenizer_open(folder, 0, &tokenizer, &error);
        if (status == TANDEM_E_UNSUPPORTED_BUILD) {
            tnd_skip("optional part not built: %s", error.text);
            break;
        }
        check_status(status, TANDEM_OK, NULL, &error);
        check_int(tandem_tokenizer_bos(tokenizer), rows[i].bos);
        check_int(tandem_tokenizer_eos(tokenizer), rows[i].eos);
        check_int(tandem_tokenizer_adds_bos(tokenizer), rows[i].adds_bos);
        check_int(tandem_tokenizer_adds_eos(tokenizer), rows[i].adds_eos);
        tandem_tokenizer_close(tokenizer);
        write_file(folder, "tokenizer_config.json", "{\"add_bos_token\":");
        check_status(tandem_tokenizer_open(folder, 0, &tokenizer, &error), TANDEM_E_FORMAT,
                     "tokenizer_config.json", &error);
    }
    remove_files(folder);
    check_int(rmdir(folder), 0);
}

static CU_TestInfo tests[] = {
    {"a_folder_says_which_tokens_stand_around_a_text",
     a_folder_says_which_tokens_stand_around_a_text},
    {"small_tokenizers_are_those_of_the_reference_libraries",
     small_tokenizers_are_those_of_the_reference_libraries},
    {"what_would_be_decoded_or_found_otherwise_is_refused",
     what_would_be_decoded_or_found_otherwise_is_refused},
    {"a_tekken_file_gives_its_tokens", a_tekken_file_gives_its_tokens},
    {"a_tekken_file_that_breaks_a_rule_is_refused", a_tekken_file_that_breaks_a_rule_is_refused},
    {"a_file_of_ranks_that_is_none_is_refused", a_file_of_ranks_that_is_none_is_refused},
    {"damaged_ranks_give_an_error_or_a_tokenizer_that_works",
     damaged_ranks_give_an_error_or_a_tokenizer_that_works},
    {"every_tokenizer_goes_along_with_a_source", every_tokenizer_goes_along_with_a_source},
    {"a_folder_is_opened_by_the_tokenizer_in_it", a_folder_is_opened_by_the_tokenizer_in_it},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_tokenizer_judged[] = {
    {"tokenizer_judged", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
