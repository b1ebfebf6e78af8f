/* SPDX-License-Identifier: MIT
 * Fuzzes tokenizer.model of sentencepiece. */
#include "tests/fuzz/mutate_protobuf.h"
#include "tests/fuzz/use_tokenizer.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_protobuf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_tokenizer(tnd_tokenizer_sentencepiece_read, data, size);
    return 0;
}
