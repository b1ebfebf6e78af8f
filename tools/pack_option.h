/* SPDX-License-Identifier: MIT
 * The option --pack-cache, and packing weights before the first token, for all tools that run
 * models. */
#ifndef TND_PACK_OPTION_H
#define TND_PACK_OPTION_H

#include "tandem/llama.h"

#define TND_PACK_OPTION_HELP "keep packed weights of model files in DIR for the next start"

struct tnd_pack_option {
    char settings[1024];
};

/** Adds the folder (NULL: none) to the settings of backends. `memory` must live until the runtime
 * is open. Errors: ARGUMENT (a path that settings cannot hold). */
enum tandem_status tnd_pack_option_apply(const char *folder, struct tnd_pack_option *memory,
                                         struct tandem_runtime_options *options,
                                         struct tandem_error *error);
/** Like tnd_pack_option_prepare, with experts if `experts` is set; returns errors instead of
 * printing them. */
enum tandem_status tnd_pack_option_pack(bool experts, tandem_session *session,
                                        tandem_runtime *runtime, struct tandem_error *error);
/** Prepares the weights that a generated token reads: packs them, or maps them from the cache.
 * Shows a progress bar on a terminal. A failure is only noted on stderr; the first token then takes
 * longer. */
void tnd_pack_option_prepare(const char *folder, tandem_session *session, tandem_runtime *runtime);
/** For tools that should print soon: packs weights while tokens are generated, or at once if the
 * folder or the settings of backends ask for a cache file. */
void tnd_pack_option_begin(const char *folder, const char *settings, tandem_session *session,
                           tandem_runtime *runtime);

#endif
