/* SPDX-License-Identifier: MIT
 * Shapes of weight matrices worth measuring: those of known model sizes, or a list "NxK,NxK". */
#ifndef TND_MODELS_H
#define TND_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"

enum { TND_MAX_SHAPES = 64 };

struct tnd_shape {
    int64_t n, k;
};

struct tnd_shapes {
    char model[32]; /* "7B", or "custom" for a list */
    int count;
    struct tnd_shape shape[TND_MAX_SHAPES];
};

/** `text` is a model name (any case) or a list. Errors: NOT_FOUND with the names that exist,
 *  FORMAT, LIMIT. */
enum tandem_status tnd_shapes_parse(const char *text, struct tnd_shapes *out,
                                    struct tandem_error *error);
/** "3B, 7B, ..." for help texts. Static. */
const char *tnd_model_names(void);

#endif
