/* SPDX-License-Identifier: MIT
 * Fuzzes tokenizer.model of tiktoken's kind. */
#include "tests/fuzz/use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_tokenizer(tnd_tokenizer_tiktoken_read, data, size);
    return 0;
}
