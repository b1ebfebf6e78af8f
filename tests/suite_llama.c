/* SPDX-License-Identifier: MIT
 * Main of the llama suites, and what they share. */
#include "tests/suite_llama.h"

#include <string.h>

extern CU_SuiteInfo suites_llama_architectures[];
extern CU_SuiteInfo suites_llama_encoders[];
extern CU_SuiteInfo suites_llama_golden[];
extern CU_SuiteInfo suites_llama_session[];
extern CU_SuiteInfo suites_llama_copy[];
extern CU_SuiteInfo suites_llama_draft[];
extern CU_SuiteInfo suites_llama_cache[];
extern CU_SuiteInfo suites_llama_nextn[];
extern CU_SuiteInfo suites_llama_sampler[];
extern CU_SuiteInfo suites_llama_grammar[];
extern CU_SuiteInfo suites_llama_models[];
extern CU_SuiteInfo suites_llama_chat[];
extern CU_SuiteInfo suites_llama_state[];
extern CU_SuiteInfo suites_llama_devices[];
extern CU_SuiteInfo suites_llama_experts[];
extern CU_SuiteInfo suites_llama_micro[];
extern CU_SuiteInfo suites_llama_null[];
extern CU_SuiteInfo suites_llama_stack[];

int main(int argc, char **argv)
{
    return tnd_suites_run(
        argc, argv, suites_llama_sampler, suites_llama_grammar, suites_llama_session,
        suites_llama_models, suites_llama_state, suites_llama_chat, suites_llama_golden,
        suites_llama_architectures, suites_llama_encoders, suites_llama_devices,
        suites_llama_experts, suites_llama_micro, suites_llama_null, suites_llama_stack,
        suites_llama_copy, suites_llama_draft, suites_llama_cache, suites_llama_nextn, NULL);
}

bool tnd_trained_open(struct tnd_trained *trained, int version)
{
    memset(trained, 0, sizeof(*trained));
    const char *checkpoint =
        tnd_test_data(version == 0 ? "llama/stories260K.bin" : "llama/stories260K.v1.bin");
    const char *tokenizer = tnd_test_data("llama/tok512.bin");
    if (checkpoint == NULL || tokenizer == NULL) {
        return false;
    }
    struct tandem_error error = {0};
    return check_status(tandem_source_open(checkpoint, &trained->source, &error), TANDEM_OK, NULL,
                        &error) &&
           check_status(tandem_model_new(trained->source, &trained->model, &error), TANDEM_OK, NULL,
                        &error) &&
           check_status(tandem_tokenizer_open(tokenizer, 512, &trained->tokenizer, &error),
                        TANDEM_OK, NULL, &error);
}

void tnd_trained_close(struct tnd_trained *trained)
{
    tandem_tokenizer_close(trained->tokenizer);
    tandem_model_free(trained->model);
    tandem_source_close(trained->source);
    memset(trained, 0, sizeof(*trained));
}

tandem_runtime *tnd_test_runtime(int n_threads, const char *profile)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.n_threads = n_threads;
    options.profile = profile;
    options.table_path = "";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

tandem_session *tnd_test_session(const tandem_model *model, tandem_runtime *runtime,
                                 int64_t context)
{
    const struct tandem_session_options options = {.size = sizeof(options), .context = context};
    struct tandem_error error = {0};
    tandem_session *session = NULL;
    check_status(tandem_session_new(model, runtime, &options, &session, &error), TANDEM_OK, NULL,
                 &error);
    return session;
}

tandem_sampler *tnd_test_sampler(int64_t vocabulary, float temperature, float top_p, uint64_t seed)
{
    const struct tandem_sampler_options options = {.size = sizeof(options),
                                                   .vocabulary = vocabulary,
                                                   .temperature = temperature,
                                                   .top_p = top_p,
                                                   .seed = seed};
    tandem_sampler *sampler = NULL;
    check_ok(tandem_sampler_new(&options, &sampler, NULL));
    return sampler;
}

static enum tandem_status collect(const struct tandem_generator_options *options, char *out,
                                  struct tandem_error *error)
{
    size_t at = 0;
    bool more = true;
    tandem_generator *generator = NULL;
    enum tandem_status status = tandem_generator_new(options, &generator, error);
    while (status == TANDEM_OK && more && at < TND_TEXT_BYTES - 2) {
        size_t n = 0;
        status =
            tandem_generator_next(generator, out + at, TND_TEXT_BYTES - 2 - at, &n, &more, error);
        at += n;
    }
    tandem_generator_free(generator);
    out[at++] = '\n';
    out[at] = '\0';
    return status;
}

enum tandem_status tnd_greedy_text(const struct tnd_trained *trained, tandem_runtime *runtime,
                                   const char *prompt, int64_t steps, int64_t batch, char *out,
                                   struct tandem_error *error)
{
    const struct tandem_session_options options = {.size = sizeof(options)};
    return tnd_greedy_text_with(trained, runtime, &options, prompt, steps, batch, out, error);
}

enum tandem_status tnd_greedy_text_with(const struct tnd_trained *trained, tandem_runtime *runtime,
                                        const struct tandem_session_options *given,
                                        const char *prompt, int64_t steps, int64_t batch, char *out,
                                        struct tandem_error *error)
{
    int32_t ids[256];
    size_t n = 0;
    tandem_session *session = NULL;
    struct tandem_session_options options = *given;
    options.context = steps;
    enum tandem_status status = tandem_tokenizer_encode(trained->tokenizer, prompt, strlen(prompt),
                                                        true, ids, 256, &n, error);
    if (status == TANDEM_OK) {
        status = tandem_session_new(trained->model, runtime, &options, &session, error);
    }
    if (status == TANDEM_OK) {
        const struct tandem_generator_options wanted = {
            .size = sizeof(wanted),
            .session = session,
            .sampler =
                tnd_test_sampler(tandem_model_hparams(trained->model)->vocabulary, 0.0f, 1.0f, 1),
            .tokenizer = trained->tokenizer,
            .prompt = ids,
            .n_prompt = (int64_t)n,
            .steps = steps,
            .batch = batch};
        status = collect(&wanted, out, error);
        tandem_sampler_free(wanted.sampler);
    }
    tandem_session_free(session);
    return status;
}

tandem_source *tnd_small_llama(enum tandem_type type, int64_t context)
{
    struct tandem_llama_shape shape = {.size = sizeof(shape),
                                       .dim = 256,
                                       .hidden = 512,
                                       .layers = 3,
                                       .heads = 8,
                                       .kv_heads = 2,
                                       .vocabulary = 300,
                                       .context = context};
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    check_status(tandem_source_synthesize(&shape, type, 3, &source, &error), TANDEM_OK, NULL,
                 &error);
    return source;
}
