/* SPDX-License-Identifier: MIT
 * Files made so that as much as possible is allocated for each of their bytes: no allocation is
 * above the file's size and 16 MiB, nor are for a source all that live at once. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/llama2c.h"
#include "formats/safetensors.h"
#include "formats/tnd_tokenizer.h"
#include "tests/support.h"
#include "tests/support_blob.h"

typedef enum tandem_status (*read_fn)(const void *bytes, size_t n, const char *name,
                                      tandem_source **out_source, struct tandem_error *error);
typedef enum tandem_status (*read_tokenizer_fn)(const void *bytes, size_t n, const char *name,
                                                tandem_tokenizer **out_tokenizer,
                                                struct tandem_error *error);

/* Since tnd_alloc_peak_begin nothing was above the bound. Tokenizers have tables over their tokens,
 * whose number is limited. */
static void check_bound(size_t live, size_t n, bool is_source, const char *what)
{
    const size_t bound = n + TND_SOURCE_SPARE_BYTES;
    const size_t peak = tnd_alloc_peak_bytes() - live;
    if (tnd_alloc_largest() > bound || peak > (is_source ? bound : 3 * bound)) {
        printf("%s: file of %zu bytes, %zu at once, %zu altogether\n", what, n, tnd_alloc_largest(),
               peak);
        CU_FAIL("too much memory");
    }
    CU_PASS("bound");
}

static void check_source(read_fn read, struct tnd_blob blob, const char *what)
{
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    const size_t live = tnd_alloc_live_bytes();
    tnd_alloc_peak_begin();
    const enum tandem_status status = read(blob.bytes, blob.n, what, &source, &error);
    check_bound(live, blob.n, true, what);
    if (status != TANDEM_OK && status != TANDEM_E_LIMIT) {
        printf("%s: %s\n", what, error.text);
        CU_FAIL("expected a source, or a limit");
    }
    tandem_source_close(source);
    tnd_blob_free(&blob);
}

static void check_tokenizer(read_tokenizer_fn read, struct tnd_blob blob, const char *what)
{
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {.text = ""};
    const size_t live = tnd_alloc_live_bytes();
    tnd_alloc_peak_begin();
    const enum tandem_status status = read(blob.bytes, blob.n, what, &tokenizer, &error);
    check_bound(live, blob.n, false, what);
    if (status != TANDEM_OK && status != TANDEM_E_LIMIT && status != TANDEM_E_FORMAT &&
        status != TANDEM_E_UNSUPPORTED_BUILD) {
        printf("%s: %s\n", what, error.text);
        CU_FAIL("expected a tokenizer, or a limit");
    }
    tandem_tokenizer_close(tokenizer);
    tnd_blob_free(&blob);
}

/* ---- GGUF ---- */

static struct tnd_blob gguf_of(uint64_t tensors, uint64_t values)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, "GGUF");
    tnd_blob_number(&blob, 3, 4);
    tnd_blob_number(&blob, tensors, 8);
    tnd_blob_number(&blob, values, 8);
    return blob;
}

static void put_text(struct tnd_blob *blob, const char *format, int i)
{
    char text[32];
    snprintf(text, sizeof(text), format, i);
    tnd_blob_number(blob, strlen(text), 8);
    tnd_blob_string(blob, text);
}

static void gguf_files_of_nothing_but_heads_are_bounded(void)
{
    enum { TENSORS = 131072, VALUES = 65536, TEXTS = 4000000 };
    struct tnd_blob blob = gguf_of(TENSORS, 0);
    for (int i = 0; i < TENSORS; i++) {
        put_text(&blob, "%x", i);
        tnd_blob_number(&blob, 0, 8); /* no dimension, F32 */
        tnd_blob_number(&blob, (uint64_t)i * 32, 8);
    }
    for (int i = 0; i < TENSORS; i++) {
        tnd_blob_pad(&blob, 32);
        tnd_blob_number(&blob, 0, 4);
    }
    check_source(tnd_gguf_read, blob, "tensors");
    blob = gguf_of(0, VALUES);
    for (int i = 0; i < VALUES; i++) {
        put_text(&blob, "%x", i);
        tnd_blob_number(&blob, i % 2 == 0 ? TND_GGUF_TEXT : TND_GGUF_U8, 4);
        tnd_blob_number(&blob, 0, i % 2 == 0 ? 8 : 1);
    }
    check_source(tnd_gguf_read, blob, "values");
    blob = gguf_of(0, VALUES);
    for (int i = 0; i < VALUES; i++) {
        put_text(&blob, "%x", i);
        tnd_blob_number(&blob, TND_GGUF_ARRAY, 4);
        tnd_blob_number(&blob, TND_GGUF_TEXT, 4);
        tnd_blob_number(&blob, 0, 8);
    }
    check_source(tnd_gguf_read, blob, "empty lists");
    blob = gguf_of(0, 1);
    put_text(&blob, "list", 0);
    tnd_blob_number(&blob, TND_GGUF_ARRAY, 4);
    tnd_blob_number(&blob, TND_GGUF_TEXT, 4);
    tnd_blob_number(&blob, TEXTS, 8);
    for (int i = 0; i < TEXTS; i++) {
        tnd_blob_number(&blob, 0, 8);
    }
    check_source(tnd_gguf_read, blob, "empty texts");
}

/* ---- safetensors ---- */

static void safetensors_headers_are_bounded(void)
{
    enum { TENSORS = 131072, TEXTS = 65536 };
    struct tnd_blob blob = {NULL, 0};
    char line[96];
    tnd_blob_number(&blob, 0, 8);
    tnd_blob_string(&blob, "{");
    for (int i = 0; i < TENSORS; i++) {
        snprintf(line, sizeof(line),
                 "%s\"%x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                 i > 0 ? "," : "", i);
        tnd_blob_string(&blob, line);
    }
    tnd_blob_string(&blob, "}");
    const uint64_t n = blob.n - 8;
    memcpy(blob.bytes, &n, 8);
    check_source(tnd_safetensors_read, blob, "empty tensors");
    blob = (struct tnd_blob){NULL, 0};
    tnd_blob_number(&blob, 0, 8);
    tnd_blob_string(&blob, "{\"__metadata__\":{");
    for (int i = 0; i < TEXTS; i++) {
        snprintf(line, sizeof(line), "%s\"%x\":\"\"", i > 0 ? "," : "", i);
        tnd_blob_string(&blob, line);
    }
    tnd_blob_string(&blob, "}}");
    const uint64_t m = blob.n - 8;
    memcpy(blob.bytes, &m, 8);
    check_source(tnd_safetensors_read, blob, "metadata");
}

/* ---- tokenizers ---- */

static enum tandem_status read_llama2c(const void *bytes, size_t n, const char *name,
                                       tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    return tnd_tokenizer_llama2c_read(bytes, n, name, 0, out_tokenizer, error);
}

static enum tandem_status read_gguf(const void *bytes, size_t n, const char *name,
                                    tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    tandem_source *source = NULL;
    TND_TRY(tnd_gguf_read(bytes, n, name, &source, error));
    const enum tandem_status status = tandem_tokenizer_from_source(source, out_tokenizer, error);
    tandem_source_close(source);
    return status;
}

static void check_empty_tokens(int64_t n)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_number(&blob, 1, 4);
    for (int64_t i = 0; i < n; i++) {
        tnd_blob_number(&blob, 0, 8);
    }
    check_tokenizer(read_llama2c, blob, "tokenizer.bin");
    blob = (struct tnd_blob){NULL, 0};
    for (int64_t i = 0; i < n; i++) { /* field 1: a message of one byte's text */
        tnd_blob_string(&blob, "\n\3\n\1x");
    }
    check_tokenizer(tnd_tokenizer_sentencepiece_read, blob, "tokenizer.model");
    blob = gguf_of(0, 2);
    put_text(&blob, "tokenizer.ggml.model", 0);
    tnd_blob_number(&blob, TND_GGUF_TEXT, 4);
    put_text(&blob, "llama", 0);
    put_text(&blob, "tokenizer.ggml.tokens", 0);
    tnd_blob_number(&blob, TND_GGUF_ARRAY, 4);
    tnd_blob_number(&blob, TND_GGUF_TEXT, 4);
    tnd_blob_number(&blob, (uint64_t)n, 8);
    for (int64_t i = 0; i < n; i++) {
        tnd_blob_number(&blob, 0, 8);
    }
    check_tokenizer(read_gguf, blob, "tokenizer of GGUF");
}

static void tokenizers_of_empty_tokens_are_bounded(void)
{
    enum { TOKENS = 600000 };
    for (int more = 0; more < 2; more++) { /* as many as are allowed, and more */
        check_empty_tokens(more == 0 ? TND_MAX_TOKENS : TOKENS);
    }
}

static void tokenizers_of_json_are_bounded(void)
{
    enum { TOKENS = 300000 };
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (int i = 0; i < TOKENS; i++) {
        char line[48];
        snprintf(line, sizeof(line), "%s\"%x\":%d", i > 0 ? "," : "", i, i);
        tnd_blob_string(&blob, line);
    }
    tnd_blob_string(&blob, "}}}");
    check_tokenizer(tnd_tokenizer_json_read, blob, "tokenizer.json");
}

static CU_TestInfo tests_bounds[] = {
    {"gguf_files_of_nothing_but_heads_are_bounded", gguf_files_of_nothing_but_heads_are_bounded},
    {"safetensors_headers_are_bounded", safetensors_headers_are_bounded},
    {"tokenizers_of_empty_tokens_are_bounded", tokenizers_of_empty_tokens_are_bounded},
    {"tokenizers_of_json_are_bounded", tokenizers_of_json_are_bounded},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_bounds[] = {
    {"bounds", NULL, NULL, NULL, NULL, tests_bounds},
    CU_SUITE_INFO_NULL,
};
