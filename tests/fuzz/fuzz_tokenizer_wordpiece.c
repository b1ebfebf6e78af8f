/* SPDX-License-Identifier: MIT
 * Fuzzes vocab.txt of BERT. */
#include "tests/fuzz/use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_tokenizer(tnd_tokenizer_wordpiece_read, data, size);
    return 0;
}
