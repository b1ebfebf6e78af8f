/* SPDX-License-Identifier: MIT
 * Any bytes as a .npy file: an error with a message, or an array as large as its shape says. */
#include <stdlib.h>

#include "formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tandem_error error = {.text = ""};
    struct tnd_array *array = NULL;
    if (tnd_npy_read(data, size, "fuzz", &array, &error) != TANDEM_OK) {
        return error.text[0] != '\0' && array == NULL ? 0 : (abort(), 0);
    }
    if (array->n != tnd_dims_values(&array->shape) ||
        (size_t)array->n * tandem_dtype_bytes(array->type) > size) {
        abort();
    }
    tnd_array_free(array);
    return 0;
}
