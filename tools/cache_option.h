/* SPDX-License-Identifier: MIT
 * The option --cache, alike in all tools that run a model. */
#ifndef TND_CACHE_OPTION_H
#define TND_CACHE_OPTION_H

#include "tandem/llama.h"

#define TND_CACHE_OPTION_TYPES "f32, f16, q8_0, q4_0, or auto: by memory and the timing table"

/** Sets the type of keys and values by `text`; NULL: as `options` has it. "auto" leaves it to the
 *  session, within the memory that is free beside the model's weights
 *  (NULL: no bound). Errors: ARGUMENT. */
enum tandem_status tnd_cache_option_read(const char *text, const tandem_model *model,
                                         struct tandem_session_options *options,
                                         struct tandem_error *error);
/** What was compared, to stderr; nothing where the type was given. */
void tnd_cache_option_print(const tandem_session *session);

#endif
