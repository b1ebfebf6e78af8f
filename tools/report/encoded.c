/* SPDX-License-Identifier: MIT
 * Asks the tokenizer for the number of tokens first, then allocates. */
#include "tools/report/encoded.h"

#include <stdlib.h>

#include "base/tnd_status.h"

static enum tandem_status encode(const tandem_tokenizer *tokenizer,
                                 const struct tnd_encoded_text *text, int32_t *ids, size_t capacity,
                                 size_t *out_n, size_t *out_second, struct tandem_error *error)
{
    if (text->rendered != NULL) {
        return tandem_rendered_encode(tokenizer, text->rendered, ids, capacity, out_n, error);
    }
    return text->second != NULL
               ? tandem_tokenizer_encode_pair(tokenizer, text->text, text->n, text->second,
                                              text->n_second, ids, capacity, out_n, out_second,
                                              error)
               : tandem_tokenizer_encode_with(tokenizer, text->text, text->n, text->options, ids,
                                              capacity, out_n, error);
}

enum tandem_status tnd_encoded(const tandem_tokenizer *tokenizer,
                               const struct tnd_encoded_text *text, int32_t **out_ids,
                               size_t *out_n, size_t *out_second, struct tandem_error *error)
{
    size_t capacity = (text->rendered != NULL ? text->rendered->n : text->n + text->n_second) + 16;
    size_t second = 0;
    size_t n = 0;
    for (;;) {
        int32_t *ids = malloc(capacity * sizeof(ids[0]));
        if (ids == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "tokens", (int64_t)capacity, 0,
                                 "no memory for a text of %zu tokens", capacity);
        }
        const enum tandem_status status =
            encode(tokenizer, text, ids, capacity, &n, &second, error);
        if (status == TANDEM_OK) {
            *out_ids = ids;
            *out_n = n;
            if (out_second != NULL) {
                *out_second = second;
            }
            return TANDEM_OK;
        }
        free(ids);
        if (status != TANDEM_E_LIMIT || n <= capacity) {
            return status;
        }
        capacity = n;
    }
}
