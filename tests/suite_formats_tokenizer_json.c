/* SPDX-License-Identifier: MIT
 * tokenizer.json made here: merges, added tokens, streams, parts that are refused, damage. */
#include <string.h>

#include "formats/tnd_tokenizer.h"
#include "base/text.h"
#include "tests/suite_formats_tokenizer.h"
#include "tests/support.h"

/* U+0120 stands for a blank, U+00C3 U+00A9 for the two bytes of e acute. */
static const char json[] =
    "{\"added_tokens\":[{\"id\":12,\"content\":\"<|end|>\",\"special\":true},"
    "{\"id\":13,\"content\":\"  \",\"special\":false,\"normalized\":true}],"
    "\"normalizer\":null,"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Digits\",\"individual_digits\":true},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]},"
    "\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"unk_token\":null,\"vocab\":{\"a\":0,\"b\":1,\"c\":2,"
    "\"\\u0120\":3,\"1\":4,\"\xc3\x83\":5,\"\xc2\xa9\":6,\"ab\":7,\"bc\":8,\"\\u0120a\":9,"
    "\"\\u0120ab\":10,\"abc\":11},"
    "\"merges\":[\"b c\",\"a b\",\"\\u0120 a\",[\"ab\",\"c\"],\"\\u0120 ab\"]}}";

static tandem_tokenizer *open_json(const char *text)
{
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    const enum tandem_status status =
        tnd_tokenizer_json_read(text, strlen(text), "made.json", &tokenizer, &error);
    if (status == TANDEM_E_UNSUPPORTED_BUILD) {
        tnd_skip("optional part not built: %s", error.text);
        return NULL;
    }
    check_status(status, TANDEM_OK, NULL, &error);
    return tokenizer;
}

static void merges_go_in_the_order_of_their_list(void)
{
    tandem_tokenizer *tokenizer = open_json(json);
    if (tokenizer != NULL) {
        tnd_test_check_ids(tokenizer, "abc", false, "0 8"); /* b c before a b */
        tnd_test_check_ids(tokenizer, "ab", false, "7");
        tnd_test_check_ids(tokenizer, " ab", false, "10");       /* a b, then blank ab */
        tnd_test_check_ids(tokenizer, "a 11", false, "0 3 4 4"); /* digits alone */
        tnd_test_check_ids(tokenizer, "\xc3\xa9", false, "5 6");
        tnd_test_check_ids(tokenizer, "", false, "");
        tnd_test_check_ids(tokenizer, "axb", false,
                           "7"); /* x gives nothing, so its neighbours meet */
    }
    tandem_tokenizer_close(tokenizer);
}

static void special_tokens_are_found_when_asked_for_and_others_always(void)
{
    tandem_tokenizer *tokenizer = open_json(json);
    if (tokenizer != NULL) {
        tnd_test_check_ids(tokenizer, "a<|end|>b", true, "0 12 1");
        tnd_test_check_ids(tokenizer, "a<|end|>b", false, "0 1"); /* the rest has no tokens here */
        tnd_test_check_ids(tokenizer, "a  b", false, "0 13 1");
        check_int(tandem_tokenizer_find(tokenizer, "<|end|>"), 12);
        check_int(tandem_tokenizer_find(tokenizer, "none"), -1);
    }
    tandem_tokenizer_close(tokenizer);
}

static void normalized_tokens_are_found_in_normalized_text(void)
{
    static const char text[] =
        "{\"added_tokens\":[{\"id\":3,\"content\":\"zz\",\"special\":false,\"normalized\":true},"
        "{\"id\":4,\"content\":\"<e>\",\"special\":true,\"lstrip\":true,\"rstrip\":true}],"
        "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"z\"},"
        "\"content\":\"a\"},\"model\":{\"type\":\"BPE\",\"unk_token\":null,"
        "\"vocab\":{\"a\":0,\"b\":1,\" \":2},\"merges\":[]}}";
    tandem_tokenizer *tokenizer = open_json(text);
    if (tokenizer != NULL) {
        tnd_test_check_ids(tokenizer, "azb b", false, "3 1 2 1");
        tnd_test_check_ids(tokenizer, "a <e>  b", true, "0 4 1"); /* takes the blanks around it */
    }
    tandem_tokenizer_close(tokenizer);
}

static void streams_hand_out_whole_characters(void)
{
    tandem_tokenizer *tokenizer = open_json(json);
    if (tokenizer != NULL) {
        struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
        char out[8] = "";
        check_int(tandem_token_stream_next(&stream, 0, out, 8), 1);
        check_int(tandem_token_stream_next(&stream, 5, out, 8), 0);
        check_int(tandem_token_stream_next(&stream, 6, out, 1), 2); /* no room: nothing happens */
        check_int(tandem_token_stream_next(&stream, 6, out, 8), 2);
        check_bits(out, "\xc3\xa9", 2, "e acute");
        check_int(tandem_token_stream_next(&stream, 5, out, 8), 0);
        check_int(tandem_token_stream_next(&stream, 0, out, 8), 2); /* what cannot be completed */
        check_int(tandem_token_stream_next(&stream, 5, out, 8), 0);
        check_int(tandem_token_stream_end(&stream, out, 8), 1);
        check_int(tandem_token_stream_end(&stream, out, 8), 0);
        check_int(tandem_token_stream_next(&stream, 12, out, 8), 0);
        stream.shows_special = true;
        check_int(tandem_token_stream_next(&stream, 12, out, 8), 7);
    }
    tandem_tokenizer_close(tokenizer);
}

static void what_a_json_cannot_have_is_refused(void)
{
    static const struct {
        const char *text;
        enum tandem_status status;
        const char *part;
    } cases[] = {
        {"{}", TANDEM_E_FORMAT, "a vocab and merges"},
        {"{\"model\":{\"type\":\"WordPiece\"}}", TANDEM_E_FORMAT, "WordPiece"},
        {"{\"model\":{\"type\":\"WordLevel\"}}", TANDEM_E_UNSUPPORTED_BUILD, "WordLevel"},
        {"{\"model\":{\"vocab\":{},\"merges\":[]}}", TANDEM_E_FORMAT, "empty"},
        {"{\"model\":{\"vocab\":{\"a\":4000000000},\"merges\":[]}}", TANDEM_E_FORMAT, "id"},
        {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", TANDEM_E_FORMAT, "id"},
        {"{\"model\":{\"vocab\":{\"a\":0.5},\"merges\":[]}}", TANDEM_E_FORMAT, "id"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", TANDEM_E_FORMAT, "merge 0"},
        {"{\"normalizer\":{\"type\":\"Nmt\"},\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}",
         TANDEM_E_UNSUPPORTED_BUILD, "Nmt"},
        {"{\"model\":", TANDEM_E_FORMAT, "no JSON"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", TANDEM_E_LIMIT, "levels"},
    };
    tandem_tokenizer *tokenizer = open_json(json);
    const bool is_built = tokenizer != NULL;
    tandem_tokenizer_close(tokenizer);
    for (size_t i = 0; is_built && i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        check_status(tnd_tokenizer_json_read(cases[i].text, strlen(cases[i].text), "made.json",
                                             &tokenizer, &error),
                     cases[i].status, cases[i].part, &error);
    }
}

/* As in tokenizer.json of Llama 2: characters, U+2581 and bytes. */
static void a_json_without_byte_level_falls_back_to_bytes(void)
{
    static const char text[] =
        "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
        "\"prepend\":\"\\u2581\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
        "\"content\":\"\\u2581\"}]},\"pre_tokenizer\":null,\"decoder\":{\"type\":\"Sequence\","
        "\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},\"content\":\" "
        "\"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
        "\",\"start\":1,\"stop\":0}]},\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\","
        "\"fuse_unk\":true,\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<0xC3>\":1,"
        "\"<0xA9>\":2,\"\\u2581\":3,\"a\":4,\"\\u2581a\":5},\"merges\":[\"\\u2581 a\"]}}";
    tandem_tokenizer *tokenizer = open_json(text);
    if (tokenizer != NULL) {
        char out[8];
        tnd_test_check_ids(tokenizer, "a a\xc3\xa9xy", false, "5 5 1 2 0");
        check_int(tandem_tokenizer_decode(tokenizer, -1, 5, out, 8), 2);
        check_bits(out, " a", 2, "blank for U+2581");
        check_int(tandem_tokenizer_decode(tokenizer, -1, 1, out, 8), 1);
    }
    tandem_tokenizer_close(tokenizer);
}

static void damaged_json_gives_an_error_or_a_tokenizer_that_works(void)
{
    tnd_test_cut_everywhere(tnd_tokenizer_json_read, json, sizeof(json) - 1);
    tnd_test_change_everywhere(tnd_tokenizer_json_read, json, sizeof(json) - 1);
}

static void each_failing_allocation_of_a_json_leaks_nothing(void)
{
    tandem_tokenizer *tokenizer = open_json(json);
    if (tokenizer != NULL) {
        tnd_test_fail_each_allocation(tnd_tokenizer_json_read, json, sizeof(json) - 1);
    }
    tandem_tokenizer_close(tokenizer);
}

/* One rule, "A" becomes "a", as a double array of 67 units, and the texts behind it. */
static size_t one_rule(uint8_t out[4 + 4 * 67 + 2])
{
    static const uint32_t units[][2] = {{0, 1u << 10},                  /* 'A' ^ 1 is 0x40 */
                                        {0x40, 2u << 10 | 0x100 | 'A'}, /* ^ 2 is 0x42 */
                                        {0x42, 0x80000000u}};           /* the first text */
    const uint32_t bytes = 4 * 67;
    memset(out, 0, 4 + 4 * 67 + 2);
    memcpy(out, &bytes, 4);
    for (size_t i = 0; i < 3; i++) {
        memcpy(out + 4 + 4 * units[i][0], &units[i][1], 4);
    }
    out[4 + bytes] = 'a';
    return 4 + bytes + 2;
}

static void add_base64(struct tnd_text *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t bits = (uint32_t)bytes[i] << 16 |
                              (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                              (i + 2 < n ? bytes[i + 2] : 0);
        for (size_t k = 0; k < 4; k++) {
            tnd_text_add_char(out, i + k > n ? '=' : digits[bits >> (18 - 6 * k) & 63]);
        }
    }
}

/* A rule for the begin of a grapheme stands for all of it. */
static void precompiled_rules_are_for_graphemes(void)
{
    static const struct {
        const char *text;
        int32_t ids[3];
        int n;
    } cases[] = {{"A", {1}, 1}, {"A\xcc\x81", {1}, 1}, {"aA", {1, 1}, 2}, {"b\xcc\x81", {2, 3}, 2}};
    uint8_t rules[4 + 4 * 67 + 2];
    struct tnd_text text = TND_TEXT_INIT;
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = NULL;
    tnd_text_add(&text, "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    add_base64(&text, rules, one_rule(rules));
    tnd_text_add(&text, "\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],"
                        "[\"a\",-1],[\"b\",-1],[\"\xcc\x81\",-1]]}}");
    const enum tandem_status status =
        tnd_tokenizer_json_read(tnd_text_string(&text), text.n, "made.json", &tokenizer, &error);
    if (status == TANDEM_E_UNSUPPORTED_BUILD) {
        tnd_skip("optional part not built: %s", error.text);
    } else {
        check_status(status, TANDEM_OK, NULL, &error);
    }
    for (size_t i = 0; tokenizer != NULL && i < sizeof(cases) / sizeof(cases[0]); i++) {
        int32_t ids[8];
        size_t n = 0;
        check_ok(tandem_tokenizer_encode(tokenizer, cases[i].text, strlen(cases[i].text), false,
                                         ids, 8, &n, NULL));
        check_int((int64_t)n, cases[i].n);
        check_bits(ids, cases[i].ids, (size_t)cases[i].n * sizeof(ids[0]), cases[i].text);
    }
    tandem_tokenizer_close(tokenizer);
    tnd_text_fini(&text);
}

static CU_TestInfo json_tests[] = {
    {"merges_go_in_the_order_of_their_list", merges_go_in_the_order_of_their_list},
    {"special_tokens_are_found_when_asked_for_and_others_always",
     special_tokens_are_found_when_asked_for_and_others_always},
    {"normalized_tokens_are_found_in_normalized_text",
     normalized_tokens_are_found_in_normalized_text},
    {"streams_hand_out_whole_characters", streams_hand_out_whole_characters},
    {"what_a_json_cannot_have_is_refused", what_a_json_cannot_have_is_refused},
    {"a_json_without_byte_level_falls_back_to_bytes",
     a_json_without_byte_level_falls_back_to_bytes},
    {"damaged_json_gives_an_error_or_a_tokenizer_that_works",
     damaged_json_gives_an_error_or_a_tokenizer_that_works},
    {"each_failing_allocation_of_a_json_leaks_nothing",
     each_failing_allocation_of_a_json_leaks_nothing},
    {"precompiled_rules_are_for_graphemes", precompiled_rules_are_for_graphemes},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_tokenizer_json[] = {
    {"tokenizer_json", NULL, NULL, NULL, NULL, json_tests},
    CU_SUITE_INFO_NULL,
};
