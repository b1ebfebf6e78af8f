/* SPDX-License-Identifier: MIT
 * Fuzzes tokenizer.model of sentencepiece. */
#include "tests/fuzz/use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_tokenizer(tnd_tokenizer_sentencepiece_read, data, size);
    return 0;
}
