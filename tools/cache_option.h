/* SPDX-License-Identifier: MIT
 * The option --cache of all tools that run a model. */
#ifndef TND_CACHE_OPTION_H
#define TND_CACHE_OPTION_H

#include "tandem/llama.h"

#define TND_CACHE_OPTION_TYPES "f32, f16, q8_0, q4_0, or auto: by memory and the timing table"

/** Sets the type of keys and values from `text`; NULL: keeps that of `options`. "auto" lets the
 * session choose, within the memory that is free beside the weights of `model` (NULL: no bound).
 * Errors: ARGUMENT. */
enum tandem_status tnd_cache_option_read(const char *text, const tandem_model *model,
                                         struct tandem_session_options *options,
                                         struct tandem_error *error);
/** Prints to stderr what the automatic choice compared; nothing when the type was given. */
void tnd_cache_option_print(const tandem_session *session);

#endif
