/* SPDX-License-Identifier: MIT
 * Main of the llama suites, and what they share. */
#include "tests/suite_llama.h"

#include <string.h>

extern CU_SuiteInfo suites_llama_golden[];
extern CU_SuiteInfo suites_llama_session[];
extern CU_SuiteInfo suites_llama_sampler[];
extern CU_SuiteInfo suites_llama_models[];
extern CU_SuiteInfo suites_llama_chat[];
extern CU_SuiteInfo suites_llama_state[];
extern CU_SuiteInfo suites_llama_devices[];

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_llama_sampler, suites_llama_session,
                          suites_llama_models, suites_llama_state, suites_llama_chat,
                          suites_llama_golden, suites_llama_devices, NULL);
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
           check_status(tnd_llama_model_new(trained->source, &trained->model, &error), TANDEM_OK,
                        NULL, &error) &&
           check_status(tandem_tokenizer_open(tokenizer, 512, &trained->tokenizer, &error),
                        TANDEM_OK, NULL, &error);
}

void tnd_trained_close(struct tnd_trained *trained)
{
    tandem_tokenizer_close(trained->tokenizer);
    tnd_llama_model_free(trained->model);
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

static enum tandem_status collect(struct tnd_llama_generator *generator, int64_t batch, char *out,
                                  struct tandem_error *error)
{
    size_t at = 0;
    bool more = true;
    enum tandem_status status = tnd_llama_generate_begin(generator, batch, error);
    while (status == TANDEM_OK && more && at < TND_TEXT_BYTES - 2) {
        size_t n = 0;
        status =
            tnd_llama_generate_next(generator, out + at, TND_TEXT_BYTES - 2 - at, &n, &more, error);
        at += n;
    }
    out[at++] = '\n';
    out[at] = '\0';
    return status;
}

enum tandem_status tnd_greedy_text(const struct tnd_trained *trained, tandem_runtime *runtime,
                                   const char *prompt, int64_t steps, int64_t batch, char *out,
                                   struct tandem_error *error)
{
    const struct tnd_llama_session_options options = {0};
    return tnd_greedy_text_with(trained, runtime, &options, prompt, steps, batch, out, error);
}

enum tandem_status tnd_greedy_text_with(const struct tnd_trained *trained, tandem_runtime *runtime,
                                        const struct tnd_llama_session_options *given,
                                        const char *prompt, int64_t steps, int64_t batch, char *out,
                                        struct tandem_error *error)
{
    int32_t ids[256];
    size_t n = 0;
    struct tnd_llama_session *session = NULL;
    struct tnd_llama_sampler *sampler = NULL;
    struct tnd_llama_session_options options = *given;
    options.context = steps;
    enum tandem_status status = tandem_tokenizer_encode(trained->tokenizer, prompt, strlen(prompt),
                                                        true, ids, 256, &n, error);
    if (status == TANDEM_OK) {
        status = tnd_llama_session_open(trained->model, runtime, &options, &session, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_llama_sampler_new(trained->model->hparams.vocabulary, 0.0f, 1.0f, 1, &sampler,
                                       error);
    }
    if (status == TANDEM_OK) {
        struct tnd_llama_generator generator = {.session = session,
                                                .sampler = sampler,
                                                .tokenizer = trained->tokenizer,
                                                .prompt = ids,
                                                .n_prompt = (int64_t)n,
                                                .steps = steps};
        status = collect(&generator, batch, out, error);
    }
    tnd_llama_sampler_free(sampler);
    tnd_llama_session_free(session);
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
