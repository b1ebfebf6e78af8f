/* SPDX-License-Identifier: MIT
 * The option --pooling of all tools that compute embeddings of texts. */
#ifndef TND_POOLING_OPTION_H
#define TND_POOLING_OPTION_H

#include "tandem/llama.h"

#define TND_POOLING_OPTION_HELP "mean, cls or last; default: as the model's file says"

/** `out` is unchanged when `text` is NULL. Errors: ARGUMENT. */
enum tandem_status tnd_pooling_option_read(const char *text, enum tandem_pooling *out,
                                           struct tandem_error *error);

#endif
