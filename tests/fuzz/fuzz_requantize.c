/* SPDX-License-Identifier: MIT
 * Any model file with its weights converted to another type in memory: an error with a message, or
 * a source whose parts can all be read, no larger than the input's own bytes justify. */
#include "tests/fuzz/consume.h"
#include "tests/fuzz/read_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return consume_mutate(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct consumed parts = consume_parts(data, size);
    struct tandem_error error = {.text = ""};
    tandem_source *source = parts.n_file == 0 ? NULL : consume_open(data, &parts);
    tandem_source *copy = NULL;
    if (source == NULL) {
        return 0;
    }
    if (tandem_source_convert(source, parts.type, &copy, &error) == TANDEM_OK) {
        must(tandem_source_tensor_count(copy) == tandem_source_tensor_count(source));
        tandem_source_close(source); /* the copy borrows nothing of it */
        source = NULL;
        read_source(copy);
    } else {
        must(error.text[0] != '\0' && copy == NULL);
    }
    must(tnd_alloc_peak_bytes() <= consume_bound(&parts));
    tandem_source_close(copy);
    tandem_source_close(source);
    return 0;
}
