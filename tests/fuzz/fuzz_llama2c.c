/* SPDX-License-Identifier: MIT
 * Fuzzes llama2.c checkpoints: whatever is read lies inside the file. */
#include "formats/llama2c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_source *source = NULL;
    struct tandem_error error;
    if (tnd_llama2c_read(data, size, "fuzz", &source, &error) != TANDEM_OK) {
        if (error.text[0] == '\0') {
            __builtin_trap(); /* a failure without a reason */
        }
        return 0;
    }
    struct tandem_source_tensor tensor;
    for (int i = 0; tandem_source_tensor_at(source, i, &tensor); i++) {
        const uint8_t *bytes = tensor.data;
        if (bytes < data || tensor.bytes > size || bytes + tensor.bytes > data + size) {
            __builtin_trap();
        }
    }
    tandem_source_close(source);
    return 0;
}
