/* SPDX-License-Identifier: MIT
 * What the suites of tokenizer files ask of each format. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/suite_formats_tokenizer.h"
#include "tests/support.h"

void tnd_test_check_ids(const tandem_tokenizer *tokenizer, const char *text, bool special,
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

/* Reads and uses; no allocation may be above the file and 16 MiB. */
static void try_file(tnd_test_read_fn read, const void *bytes, size_t n, const char *name)
{
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {0};
    const size_t live = tnd_alloc_live_bytes();
    tnd_alloc_peak_begin();
    if (read(bytes, n, name, &tokenizer, &error) == TANDEM_OK) {
        use(tokenizer); /* (fields may end anywhere in a message) */
    } else {
        CU_ASSERT(strlen(error.text) > 10);
    }
    CU_ASSERT(tnd_alloc_peak_bytes() - live <= n + ((size_t)16 << 20));
}

void tnd_test_cut_everywhere(tnd_test_read_fn read, const void *bytes, size_t n)
{
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = tnd_guarded_alloc(cut, 1);
        memcpy(copy, bytes, cut);
        try_file(read, copy, cut, "cut");
        tnd_guarded_free(copy);
    }
}

void tnd_test_change_everywhere(tnd_test_read_fn read, const void *bytes, size_t n)
{
    unsigned char *copy = tnd_guarded_alloc(n, 1);
    memcpy(copy, bytes, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char kept = copy[i];
        const unsigned char others[] = {(unsigned char)(kept ^ 1 << (i % 8)), 0, 0xff,
                                        (unsigned char)(kept + 1), '"'};
        for (size_t k = 0; k < sizeof(others); k++) {
            copy[i] = others[k];
            try_file(read, copy, n, "changed");
        }
        copy[i] = kept;
    }
    tnd_guarded_free(copy);
}

void tnd_test_fail_each_allocation(tnd_test_read_fn read, const void *bytes, size_t n)
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
