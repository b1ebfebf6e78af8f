/* SPDX-License-Identifier: MIT
 * Vocabularies of real models: ids as llama.cpp, sentencepiece and an independent BPE give them,
 * texts back from their ids, and Unicode normalization by tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "formats/tnd_tokenizer.h"
#include "tests/support.h"

static tandem_tokenizer *open_data(const char *name)
{
    const char *path = tnd_test_data(name);
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    if (path == NULL) {
        return NULL;
    }
    const enum tandem_status status = tandem_tokenizer_open(path, 0, &tokenizer, &error);
    if (status == TANDEM_E_UNSUPPORTED_BUILD) {
        tnd_skip("optional part not built: %s", error.text);
        return NULL;
    }
    check_status(status, TANDEM_OK, NULL, &error);
    return tokenizer;
}

static char *read_data(const char *name, size_t *out_n)
{
    const char *path = tnd_test_data(name);
    return path == NULL ? NULL : tnd_test_read_file(path, out_n);
}

/* The ids as text, separated by blanks. */
static void add_ids(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                    struct tnd_text *out)
{
    int32_t *ids = malloc((n * 4 + 16) * sizeof(ids[0]));
    size_t n_ids = 0;
    check_ok(tandem_tokenizer_encode(tokenizer, text, n, false, ids, n * 4 + 16, &n_ids, NULL));
    for (size_t i = 0; i < n_ids; i++) {
        tnd_text_printf(out, "%s%d", i > 0 ? " " : "", (int)ids[i]);
    }
    free(ids);
}

/* ---- pairs of texts and ids from llama.cpp ---- */

static void check_pairs(const char *name)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char file[96];
    size_t n_texts = 0;
    size_t n_ids = 0;
    tandem_tokenizer *tokenizer = open_data(name);
    if (tokenizer == NULL) {
        return;
    }
    snprintf(file, sizeof(file), "%s.inp", name);
    char *texts = read_data(file, &n_texts);
    snprintf(file, sizeof(file), "%s.out", name);
    char *ids = read_data(file, &n_ids);
    int n_pairs = 0;
    for (char *text = texts, *line = ids; text != NULL && line != NULL; n_pairs++) {
        char *end = strstr(text, separator);
        const size_t n = end == NULL ? strlen(text) : (size_t)(end - text);
        struct tnd_text got = TND_TEXT_INIT;
        char *line_end = strchr(line, '\n');
        if (line_end != NULL) {
            *line_end = '\0';
        }
        add_ids(tokenizer, text, n, &got);
        check_string(tnd_text_string(&got), line[0] == ' ' ? line + 1 : line);
        tnd_text_fini(&got);
        text = end == NULL ? NULL : end + sizeof(separator) - 1;
        line = line_end == NULL ? NULL : line_end + 1;
    }
    CU_ASSERT(n_pairs > 40);
    free(texts);
    free(ids);
    tandem_tokenizer_close(tokenizer);
}

static void ids_of_the_llama_vocabulary_are_those_of_llama_cpp(void)
{
    check_pairs("gguf-vocab/ggml-vocab-llama-spm.gguf");
    check_pairs("gguf-vocab/ggml-vocab-phi-3.gguf");
}

static void ids_of_byte_level_vocabularies_are_those_of_llama_cpp(void)
{
    check_pairs("gguf-vocab/ggml-vocab-gpt-2.gguf");
    check_pairs("gguf-vocab/ggml-vocab-falcon.gguf");
    check_pairs("gguf-vocab/ggml-vocab-starcoder.gguf");
}

/* ---- texts from their ids ---- */

static void check_round_trip(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    int32_t *ids = malloc((n * 4 + 16) * sizeof(ids[0]));
    char *back = malloc(n + 1024);
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
    size_t n_ids = 0;
    size_t at = 0;
    check_ok(tandem_tokenizer_encode(tokenizer, text, n, false, ids, n * 4 + 16, &n_ids, NULL));
    for (size_t i = 0; i < n_ids && at <= n; i++) {
        at += tandem_token_stream_next(&stream, ids[i], back + at, n + 1024 - at);
    }
    at += at <= n ? tandem_token_stream_end(&stream, back + at, n + 1024 - at) : 0;
    if (check_int(at, n)) {
        check_bits(back, text, n, "text from its ids");
    }
    free(ids);
    free(back);
}

static void a_book_comes_back_from_its_ids(void)
{
    static const char *const names[] = {
        "tokenizer/20B_tokenizer.json", "gguf-vocab/ggml-vocab-gpt-2.gguf",
        "gguf-vocab/ggml-vocab-falcon.gguf", "gguf-vocab/ggml-vocab-llama-spm.gguf"};
    size_t n = 0;
    char *book = read_data("tokenizer/sentencepiece/botchan.txt", &n);
    for (size_t i = 0; book != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        tandem_tokenizer *tokenizer = open_data(names[i]);
        if (tokenizer != NULL) {
            check_round_trip(tokenizer, book, n);
        }
        tandem_tokenizer_close(tokenizer);
    }
    free(book);
}

static void any_bytes_come_back_from_their_ids(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_tokenizer *tokenizers[] = {open_data("gguf-vocab/ggml-vocab-gpt-2.gguf"),
                                      open_data("gguf-vocab/ggml-vocab-llama-spm.gguf")};
    for (int round = 0; round < 200; round++) {
        char text[100];
        for (size_t i = 0; i < sizeof(text); i++) {
            text[i] = (char)tnd_test_rng_int(&rng, round % 2 == 0 ? 0 : 0xa0, 255);
        }
        for (int i = 0; i < 2; i++) {
            if (tokenizers[i] != NULL) {
                check_round_trip(tokenizers[i], text, sizeof(text));
            }
        }
    }
    tandem_tokenizer_close(tokenizers[0]);
    tandem_tokenizer_close(tokenizers[1]);
}

/* Time that grows with the square of the length would take minutes here. */
static void a_long_text_of_one_character_is_encoded(void)
{
    static const char *const names[] = {
        "tokenizer/20B_tokenizer.json", "gguf-vocab/ggml-vocab-gpt-2.gguf",
        "gguf-vocab/ggml-vocab-falcon.gguf", "gguf-vocab/ggml-vocab-llama-spm.gguf",
        "tokenizer/sentencepiece/test_model.model"};
    const size_t n = (size_t)1 << (tnd_effort() > 1 ? 20 : 17);
    char *text = malloc(n);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tandem_tokenizer *tokenizer = open_data(names[i]);
        for (const char *c = "a \n"; tokenizer != NULL && *c != '\0'; c++) {
            int32_t *ids = malloc((n + 2) * sizeof(ids[0]));
            size_t n_ids = 0;
            memset(text, *c, n);
            check_ok(tandem_tokenizer_encode(tokenizer, text, n, false, ids, n + 2, &n_ids, NULL));
            CU_ASSERT(n_ids <= n + 1);
            free(ids);
        }
        tandem_tokenizer_close(tokenizer);
    }
    free(text);
}

/* An independent, quadratic BPE in Python gave this number and hash; those of the stand-in are from
 * the library tokenizers (tools/dev/stand_ins/vocabularies.py, as all of the stand-ins here). */
static void ids_of_a_tokenizer_json_are_those_of_another_implementation(void)
{
    size_t n = 0;
    char *book = read_data("tokenizer/sentencepiece/botchan.txt", &n);
    tandem_tokenizer *tokenizer = book == NULL ? NULL : open_data("tokenizer/20B_tokenizer.json");
    if (tokenizer != NULL) {
        struct tnd_text ids = TND_TEXT_INIT;
        add_ids(tokenizer, book, n, &ids);
        const bool stands_in = tnd_test_stands_in("tokenizer");
        check_int(tandem_tokenizer_vocabulary(tokenizer), stands_in ? 908 : 50277);
        check_int((int64_t)tnd_hash_bytes(ids.bytes, ids.n, 0),
                  stands_in ? (int64_t)0xd858bf6f4ebb2caau : (int64_t)0x61ae17c97ee81aa4u);
        tnd_text_fini(&ids);
    }
    tandem_tokenizer_close(tokenizer);
    free(book);
}

/* ---- sentencepiece ---- */

/* `hash`: of what sentencepiece 0.2.3 makes of the book, a line of ids for each line. */
static void check_sentencepiece(const char *name, uint64_t hash)
{
    size_t n = 0;
    tandem_tokenizer *tokenizer = open_data(name);
    char *book = tokenizer == NULL ? NULL : read_data("tokenizer/sentencepiece/botchan.txt", &n);
    struct tnd_text ids = TND_TEXT_INIT;
    for (char *line = book; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        add_ids(tokenizer, line, length, &ids);
        tnd_text_add_char(&ids, '\n');
        line += length + 1;
    }
    if (book != NULL) {
        check_int((int64_t)tnd_hash_bytes(ids.bytes, ids.n, 0), (int64_t)hash);
    }
    tnd_text_fini(&ids);
    free(book);
    tandem_tokenizer_close(tokenizer);
}

static void ids_of_sentencepiece_models_are_those_of_spm_encode(void)
{
    const bool stands_in = tnd_test_stands_in("tokenizer");
    check_sentencepiece("tokenizer/sentencepiece/test_model.model",
                        stands_in ? 0x460a6f034ccf9f70u : 0x4d8405062f265734u);
    check_sentencepiece("tokenizer/sentencepiece/test_ja_model.model",
                        stands_in ? 0xab844f4bbd43ddf5u : 0xf9cc48a3e05ce152u);
}

/* ---- normalization ---- */

static size_t put_character(unsigned long point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; point >>= 6) {
        out[i] = (char)(0x80 | (point & 0x3f));
    }
    out[0] = (char)((0xf00u >> n & 0xffu) | point);
    return n;
}

/* Hexadecimal numbers, separated by blanks, up to a tab. */
static size_t put_characters(const char **at, char *out)
{
    size_t n = 0;
    while (**at != '\t' && **at != '\0') {
        char *end = NULL;
        const unsigned long point = strtoul(*at, &end, 16);
        if (end == *at) {
            break;
        }
        n += put_character(point, out + n);
        *at = end;
    }
    *at += **at == '\t';
    return n;
}

/* Lines "before <tab> after <tab> # comment". */
static void check_table(const char *name, enum tnd_unicode_form form, int at_least)
{
    struct tandem_error error = {0};
    if (tnd_unicode_check(&error) != TANDEM_OK) {
        tnd_skip("optional part not built: %s", error.text);
        return;
    }
    const char *path = tnd_test_data(name);
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    int n_lines = 0;
    int n_wrong = 0;
    while (file != NULL && getline(&line, &capacity, file) > 0) {
        char before[128];
        char after[128];
        const char *at = line;
        const size_t n_before = put_characters(&at, before);
        const size_t n_after = put_characters(&at, after);
        struct tnd_text got = TND_TEXT_INIT;
        check_ok(tnd_unicode_normalize(form, before, n_before, &got, NULL));
        if (got.n != n_after || memcmp(got.bytes, after, n_after) != 0) {
            n_wrong++;
            printf("%s: %s", name, line);
        }
        n_lines++;
        tnd_text_fini(&got);
    }
    check_int(n_wrong, 0);
    CU_ASSERT(file == NULL || n_lines > at_least);
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

static void normal_forms_are_those_of_the_tables(void)
{
    /* the stand-ins have each composition once, and what NFKD alone changes */
    const bool stands_in = tnd_test_stands_in("tokenizer");
    check_table("tokenizer/sentencepiece/nfc.tsv", TND_FORM_NFC, stands_in ? 12000 : 13000);
    check_table("tokenizer/sentencepiece/nfd.tsv", TND_FORM_NFD, 13000);
    check_table("tokenizer/sentencepiece/nfkd.tsv", TND_FORM_NFKD, stands_in ? 14000 : 17000);
}

static CU_TestInfo vocab_tests[] = {
    {"ids_of_the_llama_vocabulary_are_those_of_llama_cpp",
     ids_of_the_llama_vocabulary_are_those_of_llama_cpp},
    {"ids_of_byte_level_vocabularies_are_those_of_llama_cpp",
     ids_of_byte_level_vocabularies_are_those_of_llama_cpp},
    {"a_book_comes_back_from_its_ids", a_book_comes_back_from_its_ids},
    {"a_long_text_of_one_character_is_encoded", a_long_text_of_one_character_is_encoded},
    {"any_bytes_come_back_from_their_ids", any_bytes_come_back_from_their_ids},
    {"ids_of_a_tokenizer_json_are_those_of_another_implementation",
     ids_of_a_tokenizer_json_are_those_of_another_implementation},
    {"ids_of_sentencepiece_models_are_those_of_spm_encode",
     ids_of_sentencepiece_models_are_those_of_spm_encode},
    {"normal_forms_are_those_of_the_tables", normal_forms_are_those_of_the_tables},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_vocab[] = {
    {"vocab", NULL, NULL, NULL, NULL, vocab_tests},
    CU_SUITE_INFO_NULL,
};
