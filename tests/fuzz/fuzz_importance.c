/* SPDX-License-Identifier: MIT
 * Any bytes as an importance matrix of the older form: an error with a message, or numbers that a
 * matrix of each name can be quantised with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/importance.h"
#include "ggml-like/tnd_type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The tensor whose importance is tensor i. */
static void quantise(const tandem_source *importance, int i)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_Q4_K, TANDEM_TYPE_IQ4_XS,
                                             TANDEM_TYPE_IQ2_XXS};
    struct tandem_source_tensor sums;
    struct tandem_error error = {.text = ""};
    float *columns = NULL;
    float values[256];
    unsigned char block[256];
    char name[128] = "";
    if (!tandem_source_tensor_at(importance, i, &sums) || strlen(sums.name) >= sizeof(name)) {
        abort(); /* names are bounded */
    }
    memcpy(name, sums.name, strlen(sums.name) - strlen(".in_sum2"));
    const struct tandem_source_tensor tensor = {.name = name, .n_dims = 2, .ne = {256, 1, 1, 1}};
    if (tnd_importance_of(importance, &tensor, &columns, &error) != TANDEM_OK || columns == NULL) {
        return;
    }
    for (int k = 0; k < 256; k++) {
        values[k] = sinf((float)k);
    }
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        tnd_type_quantize_weighted(types[t])(values, columns, block, 256);
    }
    tnd_free(columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tandem_error error = {.text = ""};
    tandem_source *source = NULL;
    if (tnd_importance_read(data, size, "fuzz", &source, &error) != TANDEM_OK) {
        return error.text[0] != '\0' && source == NULL ? 0 : (abort(), 0);
    }
    for (int i = 0; i < tandem_source_tensor_count(source); i++) {
        quantise(source, i);
    }
    tandem_source_close(source);
    return 0;
}
