/* SPDX-License-Identifier: MIT
 * Extents of dimensions by name. */
#include "tools/dim_option.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/tnd_status.h"

static char *copy(const char *text, size_t bytes)
{
    char *name = tnd_alloc(bytes + 1);
    if (name != NULL) {
        memcpy(name, text, bytes);
        name[bytes] = '\0';
    }
    return name;
}

enum tandem_status tnd_dim_option_read(const struct args_strings *words,
                                       struct tandem_onnx_dim dims[ARGS_LIST_MAX],
                                       struct tandem_error *error)
{
    for (int i = 0; i < words->n; i++) {
        const char *word = words->values[i];
        const char *value = strrchr(word, '=');
        int64_t number = -1;
        if (value != NULL && !tnd_text_to_i64(value + 1, strlen(value + 1), &number)) {
            number = -1;
        }
        if (value == word || number < 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, word, 0, 0,
                                 "--dim '%s': expected NAME=N with a whole number from 0", word);
        }
        dims[i] =
            (struct tandem_onnx_dim){.extent = number, .name = copy(word, (size_t)(value - word))};
        if (dims[i].name == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, word, 0, 0, "--dim '%s': no memory", word);
        }
    }
    return TANDEM_OK;
}

void tnd_dim_option_free(const struct args_strings *words,
                         struct tandem_onnx_dim dims[ARGS_LIST_MAX])
{
    for (int i = 0; i < words->n; i++) {
        tnd_free((char *)dims[i].name);
        dims[i].name = NULL;
    }
}
