/* SPDX-License-Identifier: MIT
 * Continuing a text. A token that was chosen is fed only when the one behind it is asked for, so
 * that no step is computed in vain. */
#include "llama/generate.h"

#include "llama/llama_error.h"

enum tandem_status tnd_llama_generate_begin(struct tnd_llama_generator *generator, int64_t batch,
                                            struct tandem_error *error)
{
    const int64_t room = tnd_llama_session_context(generator->session);
    if (generator->n_prompt < 1) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", generator->n_prompt, 1,
                              "llama: a prompt needs at least one token");
    }
    if (generator->steps <= 0 || generator->steps > room) {
        generator->steps = room;
    }
    generator->n_emitted = 0;
    generator->n_silent = generator->prompt[0] == tandem_tokenizer_bos(generator->tokenizer);
    generator->previous = generator->prompt[0];
    generator->stream = tandem_token_stream_begin(generator->tokenizer, true);
    const int64_t n =
        generator->n_prompt < generator->steps ? generator->n_prompt : generator->steps;
    return tnd_llama_session_feed(generator->session, generator->prompt, n, batch, error);
}

/* The token at the next position: of the prompt, or chosen. */
static enum tandem_status next_token(struct tnd_llama_generator *generator, int32_t *out_token,
                                     struct tandem_error *error)
{
    const int64_t position = generator->n_emitted + generator->n_silent;
    if (position < generator->n_prompt) {
        *out_token = generator->prompt[position];
        tnd_llama_sampler_accept(generator->sampler, *out_token, false);
        return TANDEM_OK;
    }
    if (tnd_llama_session_position(generator->session) < position) {
        LLAMA_TRY(tnd_llama_session_feed(generator->session, &generator->previous, 1, 1, error));
    }
    *out_token =
        tnd_llama_sampler_choose(generator->sampler, tnd_llama_session_logits(generator->session));
    tnd_llama_sampler_accept(generator->sampler, *out_token, true);
    return TANDEM_OK;
}

/* Whether the text ends in front of a token: the model says so, or begins another text. */
static bool is_end(const struct tnd_llama_generator *generator, int32_t token)
{
    return token < 0 || token == tandem_tokenizer_bos(generator->tokenizer) ||
           (token == tandem_tokenizer_eos(generator->tokenizer) &&
            generator->n_emitted + generator->n_silent >= generator->n_prompt);
}

enum tandem_status tnd_llama_generate_next(struct tnd_llama_generator *generator, char *out,
                                           size_t capacity, size_t *out_n, bool *out_more,
                                           struct tandem_error *error)
{
    int32_t token = -1;
    if (generator->n_emitted < generator->steps) {
        LLAMA_TRY(next_token(generator, &token, error));
    }
    const bool ends = is_end(generator, token);
    const size_t n = ends ? tandem_token_stream_end(&generator->stream, out, capacity)
                          : tandem_token_stream_next(&generator->stream, token, out, capacity);
    if (n > capacity) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, "llama", (int64_t)n, (int64_t)capacity,
                              "llama: a piece of text has %zu bytes, there is room for %zu", n,
                              capacity);
    }
    if (ends) {
        generator->steps = generator->n_emitted; /* what follows would begin another text */
    } else {
        generator->previous = token;
        generator->n_emitted++;
    }
    *out_n = n;
    *out_more = !ends;
    return TANDEM_OK;
}
