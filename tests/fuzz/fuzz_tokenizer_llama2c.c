/* SPDX-License-Identifier: MIT
 * Fuzzes llama2.c tokenizers: the file, and a text that is encoded with it. The last 16 bytes of
 * the input are the text. */
#include "formats/tnd_tokenizer.h"

#define TEXT_BYTES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t n_text = size < TEXT_BYTES ? 0 : TEXT_BYTES;
    const char *text = (const char *)data + size - n_text;
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error;
    if (tnd_tokenizer_llama2c_read(data, size - n_text, "fuzz", 0, &tokenizer, &error) !=
        TANDEM_OK) {
        return 0;
    }
    int32_t ids[TEXT_BYTES + 2];
    size_t n = 0;
    if (tandem_tokenizer_encode(tokenizer, text, n_text, true, ids, TEXT_BYTES + 2, &n, &error) !=
        TANDEM_OK) {
        __builtin_trap(); /* one id a byte, the beginning and the prefix always suffice */
    }
    for (size_t i = 0; i < n; i++) {
        char out[32];
        (void)tandem_tokenizer_decode(tokenizer, i > 0 ? ids[i - 1] : -1, ids[i], out, sizeof(out));
    }
    tandem_tokenizer_close(tokenizer);
    return 0;
}
