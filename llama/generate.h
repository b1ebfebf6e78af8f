/* SPDX-License-Identifier: MIT
 * Continuing a text token by token. Steps are counted as llama2.c counts them: one a position, the
 * beginning token at position 0, and the text ends where the model ends it or begins another. */
#ifndef TND_LLAMA_GENERATE_H
#define TND_LLAMA_GENERATE_H

#include "llama/sampler.h"
#include "llama/session.h"
#include "tandem/tokenizer.h"

/** Borrows everything; fill the members above the line and zero the rest. */
struct tnd_llama_generator {
    struct tnd_llama_session *session; /* an empty one */
    struct tnd_llama_sampler *sampler;
    const tandem_tokenizer *tokenizer;
    const int32_t *prompt; /* ids, the beginning token first if there is one */
    int64_t n_prompt;      /* at least 1 */
    int64_t steps;         /* 0, or more than the session has room for: as many as that */
    /* ---- */
    int64_t n_emitted;
    int64_t n_silent; /* 1: the beginning token stands in front and is not emitted */
    int32_t previous;
    struct tandem_token_stream stream;
};

/** Feeds the prompt, `batch` tokens at a time (0: all at once), as far as the steps go. Errors:
 *  ARGUMENT, those of tnd_llama_session_feed. */
enum tandem_status tnd_llama_generate_begin(struct tnd_llama_generator *generator, int64_t batch,
                                            struct tandem_error *error);

/** The next piece of text, whole characters, those of the prompt first: writes at most `capacity`
 *  bytes to `out` and their number to `out_n`. `out_more` is false when the text has ended with
 *  this piece, which may be empty. Errors: LIMIT (256 bytes suffice), those of
 *  tnd_llama_session_feed. */
enum tandem_status tnd_llama_generate_next(struct tnd_llama_generator *generator, char *out,
                                           size_t capacity, size_t *out_n, bool *out_more,
                                           struct tandem_error *error);

#endif
