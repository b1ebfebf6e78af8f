/* SPDX-License-Identifier: MIT
 * Any bytes as a PyTorch file: an error with a message, or a source whose parts can all be read. */
#include <stdlib.h>

#include "formats/torch_pickle.h"
#include "tests/fuzz/mutate_pickle.h"
#include "tests/fuzz/read_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_pickle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    const enum tandem_status status =
        tnd_torch_zip_is(data, size) ? tnd_torch_zip_read(data, size, "fuzz", &source, &error)
                                     : tnd_torch_legacy_read(data, size, "fuzz", &source, &error);
    if (status != TANDEM_OK) {
        return error.text[0] != '\0' && source == NULL ? 0 : (abort(), 0);
    }
    read_source(source);
    tandem_source_close(source);
    return 0;
}
