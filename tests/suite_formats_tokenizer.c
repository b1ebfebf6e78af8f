/* SPDX-License-Identifier: MIT
 * The llama2.c tokenizer: ids as its plain quadratic algorithm gives them, and what damaged files
 * give. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/tnd_tokenizer.h"
#include "tests/support.h"

/* ---- a file made here ---- */

struct made_file {
    unsigned char bytes[1 << 14];
    size_t n;
};

static void put_token(struct made_file *file, const char *text, size_t length, float score)
{
    const int32_t stored = (int32_t)length;
    memcpy(file->bytes + file->n, &score, 4);
    memcpy(file->bytes + file->n + 4, &stored, 4);
    memcpy(file->bytes + file->n + 8, text, length);
    file->n += 8 + length;
}

/* <unk>, <s>, </s>, 256 bytes, blank, a, b, c, and some pairs of them. */
static void make_file(struct made_file *file)
{
    const int32_t longest = 6;
    memcpy(file->bytes, &longest, 4);
    file->n = 4;
    put_token(file, "<unk>", 5, 0.0f);
    put_token(file, "\n<s>\n", 5, 0.0f);
    put_token(file, "\n</s>\n", 6, 0.0f);
    for (int i = 0; i < 256; i++) {
        char name[8];
        put_token(file, name, (size_t)snprintf(name, sizeof(name), "<0x%02X>", (unsigned)i), 0.0f);
    }
    const char *const texts[] = {" ", "a", "b", "c", "ab", "bc", "aa", "abc", " a", "\xc3\xa9"};
    const float scores[] = {-1, -1, -1, -1, -2, -2, -3, -4, -5, -1};
    for (int i = 0; i < 10; i++) {
        put_token(file, texts[i], strlen(texts[i]), scores[i]);
    }
}
enum { BLANK = 259, A, B, C, AB, BC, AA, ABC, BLANK_A, E_ACUTE, MADE_VOCABULARY };

static tandem_tokenizer *open_made(void)
{
    static struct made_file file; /* borrowed by the tokenizer */
    tandem_tokenizer *tokenizer = NULL;
    make_file(&file);
    check_ok(tnd_tokenizer_llama2c_read(file.bytes, file.n, "made", 0, &tokenizer, NULL));
    return tokenizer;
}

static void check_ids(const tandem_tokenizer *tokenizer, const char *text, size_t n_bytes,
                      const int32_t *want, size_t n_want)
{
    int32_t ids[64];
    size_t n = 0;
    check_ok(tandem_tokenizer_encode(tokenizer, text, n_bytes, true, ids, 64, &n, NULL));
    if (check_int(n, n_want)) {
        check_bits(ids, want, n * sizeof(ids[0]), text);
    }
}

/* ---- the plain algorithm: every round looks at all pairs ---- */

static size_t merge_plainly(const tandem_tokenizer *tokenizer, int32_t *ids, size_t n)
{
    for (;;) {
        float best_score = -1e10f;
        int32_t best_id = -1;
        size_t best = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            char pair[256];
            const struct tnd_token *a = &tokenizer->tokens[ids[i]];
            const struct tnd_token *b = &tokenizer->tokens[ids[i + 1]];
            memcpy(pair, a->text, a->length);
            memcpy(pair + a->length, b->text, b->length);
            const int32_t id = tnd_tokenizer_find(tokenizer, pair, a->length + b->length);
            if (id >= 0 && tokenizer->tokens[id].score > best_score) {
                best_score = tokenizer->tokens[id].score;
                best_id = id;
                best = i;
            }
        }
        if (best_id < 0) {
            return n;
        }
        ids[best] = best_id;
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof(ids[0]));
        n--;
    }
}

/* Ids of the characters of a text, all of which are tokens, with the blank that goes before it. */
static size_t plain_ids(const tandem_tokenizer *tokenizer, const char *text, size_t n, int32_t *ids)
{
    size_t n_ids = 0;
    ids[n_ids++] = tnd_tokenizer_find(tokenizer, " ", 1);
    for (size_t at = 0; at < n;) {
        const size_t length = tnd_utf8_loose_length(text + at, n - at);
        ids[n_ids++] = tnd_tokenizer_find(tokenizer, text + at, length);
        at += length;
    }
    return merge_plainly(tokenizer, ids, n_ids);
}

static void merging_equals_the_plain_algorithm(const tandem_tokenizer *tokenizer, int32_t low,
                                               int32_t high)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 300; round++) {
        char text[2048];
        int32_t got[2048];
        int32_t want[2048];
        size_t n_bytes = 0;
        size_t n = 0;
        for (int64_t i = tnd_test_rng_int(&rng, 1, 120); i > 0; i--) {
            const struct tnd_token *token = &tokenizer->tokens[tnd_test_rng_int(&rng, low, high)];
            memcpy(text + n_bytes, token->text, token->length);
            n_bytes += token->length;
        }
        const size_t n_want = plain_ids(tokenizer, text, n_bytes, want);
        check_ok(tandem_tokenizer_encode(tokenizer, text, n_bytes, false, got, 2048, &n, NULL));
        if (check_int(n, n_want)) {
            check_bits(got, want, n * sizeof(got[0]), "merged ids");
        }
    }
}

static void merging_equals_the_plain_algorithm_on_equal_scores(void)
{
    tandem_tokenizer *tokenizer = open_made();
    merging_equals_the_plain_algorithm(tokenizer, BLANK, E_ACUTE);
    tandem_tokenizer_close(tokenizer);
}

static void merging_equals_the_plain_algorithm_on_a_trained_vocabulary(void)
{
    const char *path = tnd_test_data("llama/tok512.bin");
    if (path == NULL) {
        return;
    }
    tandem_tokenizer *tokenizer = NULL;
    check_ok(tandem_tokenizer_open(path, 512, &tokenizer, NULL));
    merging_equals_the_plain_algorithm(tokenizer, 259, 511);
    tandem_tokenizer_close(tokenizer);
}

/* ---- encoding ---- */

static void the_best_score_goes_first_and_the_leftmost_among_equals(void)
{
    tandem_tokenizer *tokenizer = open_made();
    check_ids(tokenizer, "abc", 3, (const int32_t[]){1, BLANK, ABC}, 3);
    check_ids(tokenizer, "bca", 3, (const int32_t[]){1, BLANK, BC, A}, 4);
    check_ids(tokenizer, "aab", 3, (const int32_t[]){1, BLANK_A, AB}, 3);
    check_ids(tokenizer, "aaa", 3, (const int32_t[]){1, BLANK, AA, A}, 4);
    tandem_tokenizer_close(tokenizer);
}

static void an_empty_text_is_the_beginning_alone(void)
{
    tandem_tokenizer *tokenizer = open_made();
    check_ids(tokenizer, "", 0, (const int32_t[]){1}, 1);
    int32_t id = 0;
    size_t n = 9;
    check_ok(tandem_tokenizer_encode(tokenizer, NULL, 0, false, &id, 1, &n, NULL));
    check_int(n, 0);
    tandem_tokenizer_close(tokenizer);
}

static void unknown_characters_become_bytes(void)
{
    tandem_tokenizer *tokenizer = open_made();
    check_ids(tokenizer, "\xc3\xa9", 2, (const int32_t[]){1, BLANK, E_ACUTE}, 3);
    check_ids(tokenizer, "\xe2\x82\xac", 3,
              (const int32_t[]){1, BLANK, 3 + 0xe2, 3 + 0x82, 3 + 0xac}, 5);
    check_ids(tokenizer, "\xa9\xa9", 2, (const int32_t[]){1, BLANK, 3 + 0xa9, 3 + 0xa9}, 4);
    check_ids(tokenizer, "z\0", 2, (const int32_t[]){1, BLANK, 3 + 'z', 3}, 4);
    tandem_tokenizer_close(tokenizer);
}

static void too_little_room_is_told_with_the_number_needed(void)
{
    tandem_tokenizer *tokenizer = open_made();
    struct tandem_error error = {0};
    int32_t ids[3] = {-7, -7, -7};
    size_t n = 0;
    check_status(tandem_tokenizer_encode(tokenizer, "bca", 3, true, ids, 2, &n, &error),
                 TANDEM_E_LIMIT, "has 4 tokens, there is room for 2", &error);
    check_int(n, 4);
    check_int(ids[0], 1);
    check_int(ids[2], -7);
    tandem_tokenizer_close(tokenizer);
}

static void a_long_text_of_one_letter_is_encoded_and_decoded_again(void)
{
    const size_t n_bytes = 200000; /* the quadratic algorithm would take minutes */
    tandem_tokenizer *tokenizer = open_made();
    char *text = malloc(n_bytes);
    int32_t *ids = malloc((n_bytes + 2) * sizeof(ids[0]));
    size_t n = 0;
    size_t n_decoded = 0;
    memset(text, 'a', n_bytes);
    check_ok(tandem_tokenizer_encode(tokenizer, text, n_bytes, true, ids, n_bytes + 2, &n, NULL));
    check_int(n, 2 + n_bytes / 2);
    for (size_t i = 1; i < n; i++) {
        char out[8];
        n_decoded += tandem_tokenizer_decode(tokenizer, ids[i - 1], ids[i], out, sizeof(out));
    }
    check_int(n_decoded, n_bytes);
    free(text);
    free(ids);
    tandem_tokenizer_close(tokenizer);
}

/* A text is merged word by word: its ids are those of merging it as a whole, in less memory. */
static void words_are_merged_one_by_one(void)
{
    enum { N = 1 << 18 };
    tandem_tokenizer *tokenizer = open_made();
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    char *text = malloc(N);
    int32_t *ids = malloc(2 * N * sizeof(ids[0]));
    size_t n = 0, n_whole = 0;
    for (size_t i = 0; i < N; i++) {
        text[i] = "abc  \xc3\xa9"[tnd_test_rng_int(&rng, 0, 6)];
    }
    CU_ASSERT_TRUE(tokenizer->cuts_at_blank[0]);
    const size_t live = tnd_alloc_live_bytes();
    tnd_alloc_peak_begin();
    check_ok(tandem_tokenizer_encode(tokenizer, text, N, true, ids, N, &n, NULL));
    CU_ASSERT_TRUE(tnd_alloc_peak_bytes() - live < (size_t)16 * N); /* as a whole: 56 a byte */
    tokenizer->cuts_at_blank[0] = false;
    check_ok(tandem_tokenizer_encode(tokenizer, text, N, true, ids + N, N, &n_whole, NULL));
    check_int((int64_t)n, (int64_t)n_whole);
    CU_ASSERT_EQUAL(memcmp(ids, ids + N, n * sizeof(ids[0])), 0);
    free(text);
    free(ids);
    tandem_tokenizer_close(tokenizer);
}

static void texts_of_the_trained_vocabulary_come_back_from_their_ids(void)
{
    const char *path = tnd_test_data("llama/tok512.bin");
    const char *golden = tnd_test_data("llama/golden-t0-n200.txt");
    if (path == NULL || golden == NULL) {
        return;
    }
    tandem_tokenizer *tokenizer = NULL;
    size_t n_bytes = 0;
    char *text = tnd_test_read_file(golden, &n_bytes);
    int32_t *ids = malloc((n_bytes + 2) * sizeof(ids[0]));
    char *back = malloc(n_bytes + 64);
    size_t n = 0;
    size_t at = 0;
    check_ok(tandem_tokenizer_open(path, 512, &tokenizer, NULL));
    check_int(tandem_tokenizer_vocabulary(tokenizer), 512);
    check_ok(tandem_tokenizer_encode(tokenizer, text, n_bytes, true, ids, n_bytes + 2, &n, NULL));
    CU_ASSERT(n < n_bytes / 2);
    for (size_t i = 1; i < n && at < n_bytes; i++) {
        at += tandem_tokenizer_decode(tokenizer, ids[i - 1], ids[i], back + at, 64);
    }
    if (check_int(at, n_bytes)) {
        check_bits(back, text, n_bytes, "decoded text");
    }
    free(text);
    free(ids);
    free(back);
    tandem_tokenizer_close(tokenizer);
}

/* ---- decoding ---- */

static void decoding_strips_one_blank_behind_the_beginning_and_makes_bytes(void)
{
    tandem_tokenizer *tokenizer = open_made();
    char out[8] = {0};
    check_int(tandem_tokenizer_decode(tokenizer, 1, BLANK_A, out, sizeof(out)), 1);
    check_int(out[0], 'a');
    check_int(tandem_tokenizer_decode(tokenizer, A, BLANK_A, out, sizeof(out)), 2);
    check_int(tandem_tokenizer_decode(tokenizer, -1, BLANK_A, out, sizeof(out)), 2);
    check_int(tandem_tokenizer_decode(tokenizer, A, 3 + 0xe2, out, sizeof(out)), 1);
    check_int((unsigned char)out[0], 0xe2);
    check_int(tandem_tokenizer_decode(tokenizer, A, ABC, out, 1), 3);
    check_int(tandem_tokenizer_decode(tokenizer, A, MADE_VOCABULARY, out, sizeof(out)), 0);
    check_int(tandem_tokenizer_decode(tokenizer, A, -1, out, sizeof(out)), 0);
    tandem_tokenizer_close(tokenizer);
}

/* ---- damaged files ---- */

static void every_truncation_is_an_error(void)
{
    static struct made_file file;
    make_file(&file);
    for (size_t n = 0; n < file.n; n++) {
        unsigned char *cut = tnd_guarded_alloc(n, 1);
        tandem_tokenizer *tokenizer = NULL;
        struct tandem_error error = {0};
        memcpy(cut, file.bytes, n);
        CU_ASSERT_EQUAL(
            tnd_tokenizer_llama2c_read(cut, n, "cut.bin", MADE_VOCABULARY, &tokenizer, &error),
            TANDEM_E_TRUNCATED);
        CU_ASSERT_PTR_NULL(tokenizer);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "cut.bin"));
        tnd_guarded_free(cut);
    }
}

static void every_changed_byte_gives_an_error_or_a_tokenizer_that_works(void)
{
    static struct made_file file;
    make_file(&file);
    for (size_t i = 0; i < file.n; i++) {
        const unsigned char kept = file.bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            tandem_tokenizer *tokenizer = NULL;
            file.bytes[i] = (unsigned char)(kept ^ 1 << bit);
            if (tnd_tokenizer_llama2c_read(file.bytes, file.n, "changed", 0, &tokenizer, NULL) ==
                TANDEM_OK) {
                int32_t ids[16];
                size_t n;
                CU_ASSERT_EQUAL(
                    tandem_tokenizer_encode(tokenizer, "abcaabc", 7, true, ids, 16, &n, NULL),
                    TANDEM_OK);
            }
            tandem_tokenizer_close(tokenizer);
        }
        file.bytes[i] = kept;
    }
}

static void the_tokenizer_of_another_vocabulary_is_refused(void)
{
    static struct made_file file;
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = NULL;
    make_file(&file);
    check_status(tnd_tokenizer_llama2c_read(file.bytes, file.n, "made", MADE_VOCABULARY - 1,
                                            &tokenizer, &error),
                 TANDEM_E_FORMAT, "another model", &error);
    check_status(
        tnd_tokenizer_llama2c_read(file.bytes, file.n, "made", INT64_MAX, &tokenizer, &error),
        TANDEM_E_TRUNCATED, "made", &error);
    CU_ASSERT_PTR_NULL(tokenizer);
}

static void each_failing_allocation_leaks_nothing(void)
{
    static struct made_file file;
    make_file(&file);
    const long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long n = 1; status != TANDEM_OK && n < 100; n++) {
        tandem_tokenizer *tokenizer = NULL;
        int32_t ids[16];
        size_t n_ids = 0;
        tnd_alloc_fail_after(n);
        status = tnd_tokenizer_llama2c_read(file.bytes, file.n, "made", 0, &tokenizer, NULL);
        if (status == TANDEM_OK) {
            status = tandem_tokenizer_encode(tokenizer, "abc", 3, true, ids, 16, &n_ids, NULL);
        }
        tnd_alloc_fail_after(-1);
        tandem_tokenizer_close(tokenizer);
        CU_ASSERT(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        CU_ASSERT_EQUAL(tnd_alloc_live(), live);
    }
    CU_ASSERT_EQUAL(status, TANDEM_OK);
}

static CU_TestInfo tokenizer_tests[] = {
    {"merging_equals_the_plain_algorithm_on_equal_scores",
     merging_equals_the_plain_algorithm_on_equal_scores},
    {"merging_equals_the_plain_algorithm_on_a_trained_vocabulary",
     merging_equals_the_plain_algorithm_on_a_trained_vocabulary},
    {"the_best_score_goes_first_and_the_leftmost_among_equals",
     the_best_score_goes_first_and_the_leftmost_among_equals},
    {"an_empty_text_is_the_beginning_alone", an_empty_text_is_the_beginning_alone},
    {"unknown_characters_become_bytes", unknown_characters_become_bytes},
    {"too_little_room_is_told_with_the_number_needed",
     too_little_room_is_told_with_the_number_needed},
    {"a_long_text_of_one_letter_is_encoded_and_decoded_again",
     a_long_text_of_one_letter_is_encoded_and_decoded_again},
    {"words_are_merged_one_by_one", words_are_merged_one_by_one},
    {"texts_of_the_trained_vocabulary_come_back_from_their_ids",
     texts_of_the_trained_vocabulary_come_back_from_their_ids},
    {"decoding_strips_one_blank_behind_the_beginning_and_makes_bytes",
     decoding_strips_one_blank_behind_the_beginning_and_makes_bytes},
    {"every_truncation_is_an_error", every_truncation_is_an_error},
    {"every_changed_byte_gives_an_error_or_a_tokenizer_that_works",
     every_changed_byte_gives_an_error_or_a_tokenizer_that_works},
    {"the_tokenizer_of_another_vocabulary_is_refused",
     the_tokenizer_of_another_vocabulary_is_refused},
    {"each_failing_allocation_leaks_nothing", each_failing_allocation_leaks_nothing},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_tokenizer[] = {
    {"tokenizer", NULL, NULL, NULL, NULL, tokenizer_tests},
    CU_SUITE_INFO_NULL,
};
