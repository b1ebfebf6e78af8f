/* SPDX-License-Identifier: MIT
 * What the fuzz targets of tokenizer files share: the last 32 bytes of an input are a text, which
 * is encoded with the tokenizer that the rest describes, and decoded again. */
#ifndef TND_FUZZ_USE_TOKENIZER_H
#define TND_FUZZ_USE_TOKENIZER_H

#include "formats/tnd_tokenizer.h"

#define TEXT_BYTES 32
#define MAX_IDS    4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum tandem_status (*read_fn)(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer **out_tokenizer, struct tandem_error *error);

static inline void use_tokenizer(read_fn read, const uint8_t *data, size_t size)
{
    static int32_t ids[MAX_IDS];
    const size_t n_text = size < TEXT_BYTES ? 0 : TEXT_BYTES;
    const char *text = (const char *)data + size - n_text;
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error;
    size_t n = 0;
    if (read(data, size - n_text, "fuzz", &tokenizer, &error) != TANDEM_OK) {
        return;
    }
    options.special_tokens = true;
    options.add_bos = true;
    options.add_eos = true;
    if (tandem_tokenizer_encode_with(tokenizer, text, n_text, &options, ids, MAX_IDS, &n, &error) ==
        TANDEM_OK) {
        struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
        for (size_t i = 0; i < n; i++) {
            char out[64];
            if (ids[i] < 0 || ids[i] >= tandem_tokenizer_vocabulary(tokenizer)) {
                __builtin_trap();
            }
            (void)tandem_token_stream_next(&stream, ids[i], out, sizeof(out));
        }
    }
    tandem_tokenizer_close(tokenizer);
}

#endif
