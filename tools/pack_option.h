/* SPDX-License-Identifier: MIT
 * The option --pack-cache, and weights that are packed before the first token, alike in all tools
 * that run models. */
#ifndef TND_PACK_OPTION_H
#define TND_PACK_OPTION_H

#include "tandem/llama.h"

#define TND_PACK_OPTION_HELP "keep packed weights of model files in DIR for the next start"

struct tnd_pack_option {
    char settings[1024];
};

/** Adds the folder (NULL: none) to the settings of backends. `memory` lives until the runtime is
 *  open. Errors: ARGUMENT (a name that settings cannot hold). */
enum tandem_status tnd_pack_option_apply(const char *folder, struct tnd_pack_option *memory,
                                         struct tandem_runtime_options *options,
                                         struct tandem_error *error);
/** As tnd_pack_option_prepare, of experts too where `experts` says so, and with the error that
 *  stood in the way. */
enum tandem_status tnd_pack_option_pack(bool experts, tandem_session *session,
                                        tandem_runtime *runtime, struct tandem_error *error);
/** Makes the weights that a generated token reads ready: packs them, or maps them from the cache. A
 *  bar on a terminal shows how far it is. Whatever stands in the way is said in a note, and costs
 *  the first token time. */
void tnd_pack_option_prepare(const char *folder, tandem_session *session, tandem_runtime *runtime);
/** For tools that are to print soon: weights are packed while tokens are made; at once where the
 *  folder or the settings of backends ask for a cache to be written. */
void tnd_pack_option_begin(const char *folder, const char *settings, tandem_session *session,
                           tandem_runtime *runtime);

#endif
