/* SPDX-License-Identifier: MIT
 * Any bytes as a .npz file: an error with a message, or arrays as large as their shapes say. */
#include <stdlib.h>

#include "formats/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tandem_error error = {.text = ""};
    struct tnd_npz npz = {.n = 0};
    if (tnd_npz_read(data, size, "fuzz", &npz, &error) != TANDEM_OK) {
        return error.text[0] != '\0' && npz.names == NULL ? 0 : (abort(), 0);
    }
    for (int i = 0; i < npz.n; i++) {
        if (npz.names[i][0] == '\0' || npz.arrays[i]->n != tnd_dims_values(&npz.arrays[i]->shape)) {
            abort();
        }
    }
    tnd_npz_free(&npz);
    return 0;
}
