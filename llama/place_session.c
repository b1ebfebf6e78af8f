/* SPDX-License-Identifier: MIT
 * Which weights of a session's model devices keep: lists them for tandem_runtime_place. */
#include <stdio.h>
#include <stdlib.h>

#include "llama/llama_error.h"
#include "llama/session.h"

/* As the converters of the ggml project write it. */
static int64_t used_experts(const tandem_model *model)
{
    char key[96];
    int64_t used = 0;
    snprintf(key, sizeof(key), "%.48s.expert_used_count", model->hparams.architecture);
    (void)tandem_source_integer(model->source, key, &used);
    return used > 0 ? used : 0;
}

enum tandem_status tandem_session_place(tandem_session *session,
                                        const struct tandem_place_options *given,
                                        struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "place options", &options, sizeof(options), error));
    const tandem_source *source = session->model->source;
    const int n = tandem_source_tensor_count(source);
    struct tandem_place_weight *weights = calloc((size_t)n + 1, sizeof(weights[0]));
    if (weights == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", n, 0,
                              "llama: no memory for a list of %d weights", n);
    }
    int n_weights = 0;
    struct tandem_source_tensor tensor;
    for (int i = 0; i < n && tandem_source_tensor_at(source, i, &tensor); i++) {
        weights[n_weights++] =
            (struct tandem_place_weight){.name = tensor.name,
                                         .data = tensor.data,
                                         .bytes = tensor.bytes,
                                         .type = tensor.type,
                                         .k = tensor.ne[0],
                                         .n = tensor.n_dims > 1 ? tensor.ne[1] : 1,
                                         .n_experts = tensor.n_dims > 2 ? tensor.ne[2] : 1};
    }
    options.context = session->cache.n_cells;
    options.cache_type = session->cache.type;
    options.n_used = used_experts(session->model);
    const enum tandem_status status =
        tandem_runtime_place(session->runtime, weights, n_weights, &options, error);
    free(weights);
    return status;
}
