/* SPDX-License-Identifier: MIT
 * Fuzzes encoding: any bytes must come back from their ids, through a tokenizer that merges by
 * scores and through one that merges by ranks, both with a token for each byte. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "formats/tnd_tokenizer.h"

#define MAX_TEXT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_token(struct tnd_text *file, const char *text, float score)
{
    const int32_t n = (int32_t)strlen(text);
    tnd_text_add_bytes(file, (const char *)&score, 4);
    tnd_text_add_bytes(file, (const char *)&n, 4);
    tnd_text_add_bytes(file, text, (size_t)n);
}

/* A tokenizer of llama2.c, which borrows the file. */
static tandem_tokenizer *new_scores(void)
{
    static const char *const pieces[] = {" ",    "a",   "b",  "ab",      "aa",
                                         "aaaa", "aab", " a", "\xc3\xa9"};
    static struct tnd_text file;
    tandem_tokenizer *tokenizer = NULL;
    tnd_text_add_bytes(&file, "\6\0\0", 4);
    add_token(&file, "<unk>", 0);
    add_token(&file, "<s>", 0);
    add_token(&file, "</s>", 0);
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof(name), "<0x%02X>", byte);
        add_token(&file, name, 0);
    }
    for (int i = 0; i < 9; i++) {
        add_token(&file, pieces[i], (float)-i);
    }
    if (tnd_tokenizer_llama2c_read(file.bytes, file.n, "scores", 0, &tokenizer, NULL) !=
        TANDEM_OK) {
        __builtin_trap();
    }
    return tokenizer;
}

/* Byte-level BPE; NULL in a build that cannot have it. */
static tandem_tokenizer *new_ranks(void)
{
    struct tnd_text json = TND_TEXT_INIT;
    tandem_tokenizer *tokenizer = NULL;
    tnd_text_add(&json, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                        "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    unsigned others = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool is_itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        tnd_text_printf(&json, "\"\\u%04x\":%u,", is_itself ? byte : others, byte);
        others += !is_itself;
    }
    tnd_text_add(&json, "\"ab\":256,\"aa\":257,\"\\u0120a\":258,\"aab\":259,\"aaaa\":260},"
                        "\"merges\":[\"a b\",\"\\u0120 a\",\"a a\",\"aa b\",\"aa aa\"]}}");
    (void)tnd_tokenizer_json_read(json.bytes, json.n, "ranks", &tokenizer, NULL);
    tnd_text_fini(&json);
    return tokenizer;
}

static void check(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    static int32_t ids[MAX_TEXT + 1];
    static char back[MAX_TEXT + 8];
    size_t n_ids = 0;
    size_t at = 0;
    if (tandem_tokenizer_encode(tokenizer, text, n, false, ids, MAX_TEXT + 1, &n_ids, NULL) !=
        TANDEM_OK) {
        __builtin_trap();
    }
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
    for (size_t i = 0; i < n_ids && at <= n; i++) {
        at += tandem_token_stream_next(&stream, ids[i], back + at, sizeof(back) - at);
    }
    at += at <= n ? tandem_token_stream_end(&stream, back + at, sizeof(back) - at) : 0;
    if (at != n || memcmp(back, text, n) != 0) {
        __builtin_trap();
    }
}

/* Words merged one by one give the ids of the text merged as a whole. */
static void check_runs(tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    static int32_t ids[2][MAX_TEXT + 1];
    size_t n_ids[2] = {0, 0};
    const bool cuts = tokenizer->cuts_at_blank[0];
    for (int i = 0; i < 2; i++) {
        tokenizer->cuts_at_blank[0] = i == 0 && cuts;
        (void)tandem_tokenizer_encode(tokenizer, text, n, false, ids[i], MAX_TEXT + 1, &n_ids[i],
                                      NULL);
    }
    tokenizer->cuts_at_blank[0] = cuts;
    if (!cuts || n_ids[0] != n_ids[1] ||
        memcmp(ids[0], ids[1], n_ids[0] * sizeof(ids[0][0])) != 0) {
        __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tandem_tokenizer *scores;
    static tandem_tokenizer *ranks;
    if (scores == NULL) {
        scores = new_scores();
        ranks = new_ranks();
    }
    const size_t n = size < MAX_TEXT ? size : MAX_TEXT;
    check(scores, (const char *)data, n);
    check_runs(scores, (const char *)data, n);
    if (ranks != NULL) {
        check(ranks, (const char *)data, n);
    }
    return 0;
}
