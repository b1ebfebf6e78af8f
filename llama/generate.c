/* SPDX-License-Identifier: MIT
 * Continuing a text. A chosen token is decoded only when the caller asks for the next one, so that
 * no step is computed in vain. */
#include <stdlib.h>

#include "llama/llama_error.h"
#include "llama/sampler.h"
#include "llama/session.h"

struct tandem_generator {
    struct tandem_generator_options options; /* steps: at most the context */
    int64_t n_emitted;
    int64_t n_silent; /* 1: the beginning token comes first and is not emitted */
    int32_t previous;
    struct tandem_token_stream stream;
};

enum tandem_status tandem_generator_new(const struct tandem_generator_options *given,
                                        tandem_generator **out_generator,
                                        struct tandem_error *error)
{
    LLAMA_REQUIRE(out_generator, error);
    struct tandem_generator_options o = TANDEM_GENERATOR_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "generator options", &o, sizeof(o), error));
    LLAMA_REQUIRE(o.session, error);
    LLAMA_REQUIRE(o.sampler, error);
    LLAMA_REQUIRE(o.tokenizer, error);
    LLAMA_TRY(tnd_llama_check_writer(o.session, error));
    LLAMA_TRY(tnd_sampler_mask(o.sampler, o.tokenizer, error));
    if (o.n_prompt < 1 || o.prompt == NULL) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", o.n_prompt, 1,
                              "llama: a prompt needs at least one token");
    }
    const int64_t context = tandem_session_context(o.session);
    o.steps = o.steps <= 0 || o.steps > context ? context : o.steps;
    const int64_t n = o.n_prompt < o.steps ? o.n_prompt : o.steps;
    const bool is_silent = o.prompt[0] == tandem_tokenizer_bos(o.tokenizer);
    for (int64_t i = is_silent; i < n; i++) { /* before decoding, which may choose the next token */
        tandem_sampler_accept(o.sampler, o.prompt[i], false);
    }
    LLAMA_TRY(tandem_session_sample_with(o.session, 0, o.sampler, error));
    LLAMA_TRY(tandem_session_decode(o.session, o.prompt, n, o.batch, error));
    tandem_generator *generator = malloc(sizeof(*generator));
    if (generator == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", sizeof(*generator), 0,
                              "llama: no memory for a generator");
    }
    *generator = (struct tandem_generator){.options = o,
                                           .n_silent = is_silent,
                                           .previous = o.prompt[0],
                                           .stream = tandem_token_stream_begin(o.tokenizer, true)};
    *out_generator = generator;
    return TANDEM_OK;
}

void tandem_generator_free(tandem_generator *generator)
{
    free(generator);
}

/* The next token: of the prompt, or chosen. */
static enum tandem_status next_token(tandem_generator *generator, int32_t *out_token,
                                     struct tandem_error *error)
{
    const int64_t position = generator->n_emitted + generator->n_silent;
    if (position < generator->options.n_prompt) {
        *out_token = generator->options.prompt[position];
        return TANDEM_OK;
    }
    if (tandem_session_position(generator->options.session, 0) < position) {
        LLAMA_TRY(tandem_session_sample_with(generator->options.session, 0,
                                             generator->options.sampler, error));
        LLAMA_TRY(
            tandem_session_decode(generator->options.session, &generator->previous, 1, 1, error));
    }
    *out_token =
        tandem_session_sample(generator->options.session, 0, generator->options.sampler, NULL);
    LLAMA_TRY(tnd_sampler_check(generator->options.sampler, *out_token, error));
    tandem_sampler_accept(generator->options.sampler, *out_token, true);
    return TANDEM_OK;
}

/* Whether a token ends the text: an end token of the model, or the beginning token of another
 * text. */
static bool is_end(const tandem_generator *generator, int32_t token)
{
    return token < 0 || token == tandem_tokenizer_bos(generator->options.tokenizer) ||
           (tnd_llama_is_end(generator->options.session->model, generator->options.tokenizer,
                             token) &&
            generator->n_emitted + generator->n_silent >= generator->options.n_prompt);
}

enum tandem_status tandem_generator_next(tandem_generator *generator, char *out, size_t capacity,
                                         size_t *out_n, bool *out_more, struct tandem_error *error)
{
    LLAMA_REQUIRE(generator, error);
    LLAMA_REQUIRE(out, error);
    LLAMA_REQUIRE(out_n, error);
    LLAMA_REQUIRE(out_more, error);
    int32_t token = -1;
    if (generator->n_emitted < generator->options.steps) {
        LLAMA_TRY(next_token(generator, &token, error));
    }
    const bool ends = is_end(generator, token);
    const size_t n = ends ? tandem_token_stream_end(&generator->stream, out, capacity)
                          : tandem_token_stream_next(&generator->stream, token, out, capacity);
    if (n > capacity) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, "llama", (int64_t)n, (int64_t)capacity,
                              "llama: a part of the text has %zu bytes, the buffer has %zu", n,
                              capacity);
    }
    if (ends) {
        generator->options.steps = generator->n_emitted; /* another text would begin */
    } else {
        generator->previous = token;
        generator->n_emitted++;
    }
    *out_n = n;
    *out_more = !ends;
    return TANDEM_OK;
}
