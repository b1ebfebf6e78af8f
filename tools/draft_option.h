/* SPDX-License-Identifier: MIT
 * The option --draft of all tools that generate text. */
#ifndef TND_DRAFT_OPTION_H
#define TND_DRAFT_OPTION_H

#include "tandem/llama.h"

#define TND_DRAFT_OPTION_HELP                                                                      \
    "draft tokens where that is faster: lookup (from the text so far), mtp (by the model's layer " \
    "that predicts ahead), or a smaller model's file"

/** The draft model; all NULL for lookup drafts, or without drafts. */
struct tnd_draft_option {
    tandem_source *source;
    tandem_model *model;
    tandem_session *session;
};

/** Makes the session draft as `text` says (NULL: no drafts): "lookup", "mtp" or the path of a
 * model, which runs on the same runtime with the same number of sequences and cells (0: as needed).
 * Close `out` in any case, after the session. Errors: those of opening the model and of
 * tandem_session_set_draft. */
enum tandem_status tnd_draft_option_open(const char *text, tandem_session *session,
                                         tandem_runtime *runtime, int n_sequences, int64_t n_cells,
                                         struct tnd_draft_option *out, struct tandem_error *error);
/** A zeroed struct is allowed. */
void tnd_draft_option_close(struct tnd_draft_option *draft);
/** Prints to stderr how many drafted tokens were accepted; nothing without drafts. */
void tnd_draft_option_print(const tandem_session *session);

#endif
