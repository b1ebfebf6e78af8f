/* SPDX-License-Identifier: MIT
 * Tokenizer files made here: tokenizer.json, tokenizer.model and GGUF values; special tokens,
 * streams, steps, and what damaged files give. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/gguf.h"
#include "formats/tnd_tokenizer.h"
#include "tests/support.h"

/* ---- what all of them are asked ---- */

static void check_ids(const tandem_tokenizer *tokenizer, const char *text, bool special,
                      const char *want)
{
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    int32_t ids[128];
    char got[1024] = "";
    size_t n = 0;
    size_t at = 0;
    options.special_tokens = special;
    check_ok(
        tandem_tokenizer_encode_with(tokenizer, text, strlen(text), &options, ids, 128, &n, NULL));
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%d", i > 0 ? " " : "", (int)ids[i]);
    }
    check_string(got, want);
}

/* Encodes and decodes whatever a damaged tokenizer does. */
static void use(tandem_tokenizer *tokenizer)
{
    static const char text[] = "a ab  12XY<|end|>\xc3\xa9\xff A";
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    int32_t ids[256];
    size_t n = 0;
    options.special_tokens = true;
    if (tandem_tokenizer_encode_with(tokenizer, text, sizeof(text) - 1, &options, ids, 256, &n,
                                     NULL) == TANDEM_OK) {
        struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
        for (size_t i = 0; i < n; i++) {
            char out[64];
            (void)tandem_token_stream_next(&stream, ids[i], out, sizeof(out));
        }
    }
    tandem_tokenizer_close(tokenizer);
}

typedef enum tandem_status (*read_fn)(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer **out_tokenizer, struct tandem_error *error);

static void cut_everywhere(read_fn read, const void *bytes, size_t n)
{
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = tnd_guarded_alloc(cut, 1);
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        memcpy(copy, bytes, cut);
        if (read(copy, cut, "cut", &tokenizer, &error) == TANDEM_OK) {
            use(tokenizer); /* (fields may end anywhere in a message) */
        } else {
            CU_ASSERT(strlen(error.text) > 10);
        }
        tnd_guarded_free(copy);
    }
}

static void change_everywhere(read_fn read, const void *bytes, size_t n)
{
    unsigned char *copy = tnd_guarded_alloc(n, 1);
    memcpy(copy, bytes, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char kept = copy[i];
        const unsigned char others[] = {(unsigned char)(kept ^ 1 << (i % 8)), 0, 0xff,
                                        (unsigned char)(kept + 1), '"'};
        for (size_t k = 0; k < sizeof(others); k++) {
            tandem_tokenizer *tokenizer = NULL;
            struct tandem_error error = {0};
            copy[i] = others[k];
            if (read(copy, n, "changed", &tokenizer, &error) == TANDEM_OK) {
                use(tokenizer);
            } else {
                CU_ASSERT(strlen(error.text) > 10);
            }
        }
        copy[i] = kept;
    }
    tnd_guarded_free(copy);
}

static void fail_each_allocation(read_fn read, const void *bytes, size_t n)
{
    const long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long k = 1; status != TANDEM_OK && k < 200; k++) {
        tandem_tokenizer *tokenizer = NULL;
        int32_t ids[64];
        size_t n_ids = 0;
        tnd_alloc_fail_after(k);
        status = read(bytes, n, "made", &tokenizer, NULL);
        if (status == TANDEM_OK) {
            status = tandem_tokenizer_encode(tokenizer, "abc a", 5, true, ids, 64, &n_ids, NULL);
        }
        tnd_alloc_fail_after(-1);
        tandem_tokenizer_close(tokenizer);
        CU_ASSERT(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        CU_ASSERT_EQUAL(tnd_alloc_live(), live);
    }
    CU_ASSERT_EQUAL(status, TANDEM_OK);
}

/* ---- tokenizer.json ---- */

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
        check_ids(tokenizer, "abc", false, "0 8"); /* b c before a b */
        check_ids(tokenizer, "ab", false, "7");
        check_ids(tokenizer, " ab", false, "10");       /* a b, then blank ab */
        check_ids(tokenizer, "a 11", false, "0 3 4 4"); /* digits alone */
        check_ids(tokenizer, "\xc3\xa9", false, "5 6");
        check_ids(tokenizer, "", false, "");
        check_ids(tokenizer, "axb", false, "7"); /* x gives nothing, so its neighbours meet */
    }
    tandem_tokenizer_close(tokenizer);
}

static void special_tokens_are_found_when_asked_for_and_others_always(void)
{
    tandem_tokenizer *tokenizer = open_json(json);
    if (tokenizer != NULL) {
        check_ids(tokenizer, "a<|end|>b", true, "0 12 1");
        check_ids(tokenizer, "a<|end|>b", false, "0 1"); /* the rest has no tokens here */
        check_ids(tokenizer, "a  b", false, "0 13 1");
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
        check_ids(tokenizer, "azb b", false, "3 1 2 1");
        check_ids(tokenizer, "a <e>  b", true, "0 4 1"); /* takes the blanks around it */
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
        {"{\"model\":{\"type\":\"WordPiece\"}}", TANDEM_E_UNSUPPORTED_BUILD, "WordPiece"},
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
        check_ids(tokenizer, "a a\xc3\xa9xy", false, "5 5 1 2 0");
        check_int(tandem_tokenizer_decode(tokenizer, -1, 5, out, 8), 2);
        check_bits(out, " a", 2, "blank for U+2581");
        check_int(tandem_tokenizer_decode(tokenizer, -1, 1, out, 8), 1);
    }
    tandem_tokenizer_close(tokenizer);
}

static void damaged_json_gives_an_error_or_a_tokenizer_that_works(void)
{
    cut_everywhere(tnd_tokenizer_json_read, json, sizeof(json) - 1);
    change_everywhere(tnd_tokenizer_json_read, json, sizeof(json) - 1);
}

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
    check_ids(tokenizer, "abc", false, "3 9");      /* -4.5, against blank-a b c -6.5 */
    check_ids(tokenizer, "ab", false, "3 7");       /* -4, against -4.5 */
    check_ids(tokenizer, " A  a ", false, "3 5 8"); /* A is b, blanks are one, none at the ends */
    check_ids(tokenizer, "aXYzzb", false, "8 10 0 5"); /* neighbours without token are one */
    check_ids(tokenizer, "XY", false, "3 10"); /* a user-defined token costs next to nothing */
    check_ids(tokenizer, "  ", false, "");
    check_ids(tokenizer, "<s>a", true, "1 8");
    check_int(tandem_tokenizer_bos(tokenizer), BOS);
    check_int(tandem_tokenizer_eos(tokenizer), EOS);
    tandem_tokenizer_close(tokenizer);
}

static void bpe_of_sentencepiece_merges_the_best_score_first(void)
{
    tandem_tokenizer *tokenizer = open_model(2);
    check_ids(tokenizer, "abc", false, "8 5 6");
    check_ids(tokenizer, "cabc", false, "3 6 9");
    check_ids(tokenizer, "XYa", false, "3 10 4");
    tandem_tokenizer_close(tokenizer);
}

static void damaged_models_give_an_error_or_a_tokenizer_that_works(void)
{
    static struct made_model model;
    for (unsigned char type = 1; type <= 2; type++) {
        make_model(type, &model);
        cut_everywhere(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
        change_everywhere(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
    }
}

static void each_failing_allocation_leaks_nothing(void)
{
    static struct made_model model;
    make_model(1, &model);
    fail_each_allocation(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
    make_model(2, &model);
    fail_each_allocation(tnd_tokenizer_sentencepiece_read, model.bytes, model.n);
    tandem_tokenizer *tokenizer = open_json(json);
    if (tokenizer != NULL) {
        fail_each_allocation(tnd_tokenizer_json_read, json, sizeof(json) - 1);
    }
    tandem_tokenizer_close(tokenizer);
}

/* ---- GGUF ---- */

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
    check_ok(tnd_source_set_text(source, "tokenizer.ggml.model", "bert", NULL));
    check_status(tandem_tokenizer_from_source(source, &tokenizer, &error),
                 TANDEM_E_UNSUPPORTED_BUILD, "bert", &error);
    check_status(tandem_tokenizer_from_source(NULL, &tokenizer, &error), TANDEM_E_ARGUMENT, NULL,
                 &error);
    CU_ASSERT_PTR_NULL(tokenizer);
    tandem_source_close(source);
}

static void all_names_of_pretokenizers_have_patterns_that_work(void)
{
    static const char *const names[] = {"default", "gpt-2",          "llama-bpe", "dbrx",
                                        "qwen2",   "falcon",         "starcoder", "bloom",
                                        "viking",  "deepseek-coder", "tekken",    "gpt-4o"};
    struct tandem_error error = {0};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        static const char text[] = "I'm 1234 Words, \xe4\xb8\x80\xe4\xb8\x81  \r\n x";
        tandem_tokenizer *tokenizer = NULL;
        struct tnd_pieces pieces = {.is_first = true};
        check_ok(tnd_tokenizer_new("made", &tokenizer, NULL));
        const enum tandem_status status =
            tnd_tokenizer_add_pretokenizer(tokenizer, names[i], &error);
        if (status == TANDEM_E_UNSUPPORTED_BUILD) {
            tnd_skip("optional part not built: %s", error.text);
            tandem_tokenizer_close(tokenizer);
            return;
        }
        CU_ASSERT_EQUAL(status, TANDEM_OK);
        tnd_pieces_set(&pieces, text, sizeof(text) - 1);
        check_ok(tnd_steps_run(tokenizer->steps, tokenizer->n_steps, &pieces, NULL));
        CU_ASSERT(pieces.n >= 5);
        check_int(pieces.items[0].start, 0);
        for (size_t k = 0; k < pieces.n; k++) { /* nothing is lost */
            check_int(pieces.items[k].end,
                      k + 1 < pieces.n ? pieces.items[k + 1].start : sizeof(text) - 1);
        }
        tnd_pieces_fini(&pieces);
        tandem_tokenizer_close(tokenizer);
    }
    check_status(tnd_tokenizer_add_pretokenizer(NULL, "unheard-of", &error),
                 TANDEM_E_UNSUPPORTED_BUILD, "unheard-of", &error);
}

static CU_TestInfo file_tests[] = {
    {"all_names_of_pretokenizers_have_patterns_that_work",
     all_names_of_pretokenizers_have_patterns_that_work},
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
    {"unigram_takes_the_most_probable_tokens", unigram_takes_the_most_probable_tokens},
    {"bpe_of_sentencepiece_merges_the_best_score_first",
     bpe_of_sentencepiece_merges_the_best_score_first},
    {"damaged_models_give_an_error_or_a_tokenizer_that_works",
     damaged_models_give_an_error_or_a_tokenizer_that_works},
    {"each_failing_allocation_leaks_nothing", each_failing_allocation_leaks_nothing},
    {"a_source_without_vocabulary_or_of_another_kind_is_refused",
     a_source_without_vocabulary_or_of_another_kind_is_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_tokenizer_files[] = {
    {"tokenizer_files", NULL, NULL, NULL, NULL, file_tests},
    CU_SUITE_INFO_NULL,
};
