/* SPDX-License-Identifier: MIT
 * Fuzzes tekken.json of Mistral, and the question whether a file is one. */
#include "tests/fuzz/use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)tnd_tokenizer_tekken_is(data, size);
    use_tokenizer(tnd_tokenizer_tekken_read, data, size);
    return 0;
}
