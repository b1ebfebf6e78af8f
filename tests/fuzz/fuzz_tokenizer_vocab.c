/* SPDX-License-Identifier: MIT
 * Fuzzes vocab.json, merges.txt and tokenizer_config.json, separated by form feeds. */
#include <string.h>

#include "formats/tokenizer_json.h"
#include "tests/fuzz/use_tokenizer.h"

#ifdef TND_HAVE_CJSON

/* Where the part that begins at `at` ends. */
static size_t part_end(const char *text, size_t at, size_t n)
{
    const char *end = at < n ? memchr(text + at, '\f', n - at) : NULL;
    return end == NULL ? n : (size_t)(end - text);
}

static enum tandem_status read_parts(const void *bytes, size_t n, const char *name,
                                     tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    const char *text = bytes;
    const size_t first = part_end(text, 0, n);
    const size_t second = part_end(text, first + 1, n);
    struct tnd_hf_files files = {.merges = "", .config = ""};
    if (first < n) {
        files.merges = text + first + 1;
        files.n_merges = second - first - 1;
    }
    if (second < n) {
        files.config = text + second + 1;
        files.n_config = n - second - 1;
    }
    tandem_tokenizer *tokenizer = NULL;
    enum tandem_status status =
        tnd_tokenizer_vocab_read(bytes, first, &files, name, &tokenizer, error);
    if (status == TANDEM_OK && files.n_config > 0) {
        status = tnd_hf_read_config(files.config, files.n_config, name, tokenizer, error);
    }
    if (status != TANDEM_OK) {
        tandem_tokenizer_close(tokenizer);
        return status;
    }
    *out_tokenizer = tokenizer;
    return TANDEM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_tokenizer(read_parts, data, size);
    return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
    return 0;
}

#endif
