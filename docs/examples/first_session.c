/* SPDX-License-Identifier: MIT
 * A session: a model with random weights continues a prompt, and goes on from a saved state. A real
 * one comes from tandem_model_load("model.gguf", ...), its tokens from a tokenizer. */
#include <stdio.h>
#include <stdlib.h>

#include "tandem/llama.h"

/* Greedy: the sampler's options are all zero but for the vocabulary. */
static enum tandem_status generate(tandem_session *session, tandem_sampler *sampler, int n,
                                   int32_t *out_tokens, struct tandem_error *error)
{
    for (int i = 0; i < n; i++) {
        out_tokens[i] = tandem_sampler_sample(sampler, tandem_session_logits(session, 0));
        const enum tandem_status status =
            tandem_session_decode(session, &out_tokens[i], 1, 0, error);
        if (status != TANDEM_OK) {
            return status;
        }
    }
    return TANDEM_OK;
}

int main(void)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 64,
                                             .hidden = 128,
                                             .layers = 2,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .vocabulary = 100,
                                             .context = 32};
    struct tandem_sampler_options sampling = TANDEM_SAMPLER_OPTIONS_INIT;
    struct tandem_error error;
    tandem_source *source = NULL;
    tandem_model *model = NULL;
    tandem_runtime *runtime = NULL;
    tandem_session *session = NULL;
    tandem_sampler *sampler = NULL;
    const int32_t prompt[] = {1, 17, 42};
    int32_t tokens[8], again[8];
    void *state = NULL;
    int result = EXIT_FAILURE;
    sampling.vocabulary = shape.vocabulary;

    if (tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error) != TANDEM_OK ||
        tandem_model_new(source, &model, &error) != TANDEM_OK ||
        tandem_runtime_open(NULL, &runtime, &error) != TANDEM_OK ||
        tandem_session_new(model, runtime, NULL, &session, &error) != TANDEM_OK ||
        tandem_sampler_new(&sampling, &sampler, &error) != TANDEM_OK ||
        tandem_session_decode(session, prompt, 3, 0, &error) != TANDEM_OK) {
        goto fail;
    }
    state = malloc(tandem_session_state_bytes(session));
    const size_t n = tandem_session_state_bytes(session);
    if (state == NULL || tandem_session_state_write(session, state, &error) != TANDEM_OK ||
        generate(session, sampler, 8, tokens, &error) != TANDEM_OK ||
        tandem_session_state_read(session, state, n, "prompt", &error) != TANDEM_OK ||
        generate(session, sampler, 8, again, &error) != TANDEM_OK) {
        goto fail;
    }
    result = EXIT_SUCCESS;
    for (int i = 0; i < 8; i++) {
        printf("%d ", (int)tokens[i]);
        result = tokens[i] == again[i] ? result : EXIT_FAILURE;
    }
    printf("%s\n", result == EXIT_SUCCESS ? "twice" : "and then something else");
fail:
    if (result != EXIT_SUCCESS) {
        fprintf(stderr, "%s\n", error.text);
    }
    free(state);
    tandem_sampler_free(sampler);
    tandem_session_free(session);
    tandem_runtime_close(runtime);
    tandem_model_free(model);
    tandem_source_close(source);
    return result;
}
