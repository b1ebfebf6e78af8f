/* SPDX-License-Identifier: MIT
 * Any GGUF file as a model: an error with a message, or two tokens run through it. */
#include <stdlib.h>

#include "formats/gguf.h"
#include "llama/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tandem_runtime *runtime_of_all(void)
{
    static tandem_runtime *runtime;
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    if (runtime == NULL && tandem_runtime_open(&options, &runtime, NULL) != TANDEM_OK) {
        abort();
    }
    return runtime;
}

static void run(const tandem_model *model)
{
    tandem_session *session = NULL;
    struct tandem_error error = {0};
    const struct tandem_session_options options = {.size = sizeof(options), .context = 4};
    const int32_t tokens[2] = {0, (int32_t)(model->hparams.vocabulary - 1)};
    enum tandem_status status =
        tandem_session_new(model, runtime_of_all(), &options, &session, &error);
    if (status == TANDEM_OK) {
        status = tandem_session_decode(session, tokens, 2, 0, &error);
    }
    if (status != TANDEM_OK && error.text[0] == '\0') {
        __builtin_trap(); /* a failure without a reason */
    }
    tandem_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_source *source = NULL;
    tandem_model *model = NULL;
    struct tandem_error error = {0};
    if (tnd_gguf_read(data, size, "fuzz", &source, &error) != TANDEM_OK) {
        return 0;
    }
    error.text[0] = '\0';
    if (tandem_model_new(source, &model, &error) == TANDEM_OK) {
        run(model);
    } else if (error.text[0] == '\0') {
        __builtin_trap();
    }
    tandem_model_free(model);
    tandem_source_close(source);
    return 0;
}
