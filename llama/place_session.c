/* SPDX-License-Identifier: MIT
 * Lists the weights of a session's model for tandem_runtime_place, which decides what devices keep,
 * and applies its decision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/ranks.h"
#include "llama/session.h"

/* The key's name is that of the ggml project's converters. */
static int64_t used_experts(const tandem_model *model)
{
    char key[96];
    int64_t used = 0;
    snprintf(key, sizeof(key), "%.48s.expert_used_count", model->hparams.architecture);
    (void)tandem_source_integer(model->source, key, &used);
    return used > 0 ? used : 0;
}

/* Weights of the model that may be placed on a device. */
enum { LAYER_TENSORS = sizeof(struct tnd_llama_layer) / sizeof(tandem_tensor *) };

static tandem_tensor *tensor_at(const tandem_model *model, int64_t i)
{
    tandem_tensor *const *all = (tandem_tensor *const *)(const void *)model->layers;
    const int64_t n = model->hparams.layers * LAYER_TENSORS;
    return i < n ? all[i] : i == n ? model->output : NULL;
}

static const char *place_of(const tandem_session *session, const tandem_tensor *tensor)
{
    return tensor != NULL ? tandem_runtime_placed_on(session->runtime, tandem_tensor_data(tensor))
                          : NULL;
}

/* Makes devices free weights that were placed there and are no longer. */
static void forget_moved(const tandem_session *session, const char *const *before, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const char *now = place_of(session, tensor_at(session->model, i));
        if (before[i] != NULL && strcmp(before[i], "cpu") != 0 && now != before[i]) {
            tandem_runtime_forget(session->runtime, tensor_at(session->model, i));
        }
    }
}

static enum tandem_status place(tandem_session *session, const struct tandem_place_weight *weights,
                                int n, const struct tandem_place_options *options,
                                const char **before, struct tandem_error *error)
{
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    const tandem_model *model = session->model;
    const int64_t n_tensors = model->hparams.layers * LAYER_TENSORS + 1;
    for (int64_t i = 0; i < n_tensors; i++) {
        before[i] = place_of(session, tensor_at(model, i));
    }
    const enum tandem_status status =
        tandem_runtime_place(session->runtime, weights, n, options, error);
    if (session->hot.layers == NULL) {
        return status;
    }
    const bool is_new = status == TANDEM_OK &&
                        tandem_runtime_placement(session->runtime, &info) == TANDEM_OK &&
                        !info.is_kept;
    if (!is_new) {
        tnd_llama_hot_drop_next(session);
        return status;
    }
    tnd_llama_hot_take_next(session);
    forget_moved(session, before, n_tensors);
    session->hot.is_placed = info.n_weights > 0;
    for (int64_t l = 0; l < model->hparams.layers; l++) {
        const char *where = place_of(session, model->layers[l].gate_exps);
        session->hot.whole[l] = where != NULL && strcmp(where, "cpu") != 0;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_llama_place(tandem_session *session,
                                   const struct tandem_place_options *wanted,
                                   struct tandem_error *error)
{
    const tandem_model *model = session->model;
    struct tandem_place_options options = *wanted;
    const int n = tandem_source_tensor_count(model->source);
    struct tandem_place_weight *weights = calloc((size_t)n + 1, sizeof(weights[0]));
    const char **before =
        calloc((size_t)model->hparams.layers * LAYER_TENSORS + 1, sizeof(before[0]));
    if (weights == NULL || before == NULL) {
        free(weights);
        free(before);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", n, 0,
                              "llama: no memory for a list of %d weights", n);
    }
    int n_weights = 0;
    struct tandem_source_tensor tensor;
    for (int i = 0; i < n && tandem_source_tensor_at(model->source, i, &tensor); i++) {
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
    options.n_used = used_experts(model);
    /* (expert biases are indexed by number, which the other side's experts do not have) */
    const bool may_part = session->hot.layers != NULL && model->layers[0].b1_exps == NULL &&
                          model->layers[0].b2_exps == NULL && model->layers[0].b3_exps == NULL;
    if (may_part && options.gather == NULL) {
        options.expert_use = tnd_llama_hot_use(session);
        options.use_experts = model->hparams.experts;
        options.use_layers = model->hparams.layers;
        options.hot_now = session->hot.now;
        options.gather = tnd_llama_hot_gather;
        options.gather_user = session;
    }
    const enum tandem_status status = place(session, weights, n_weights, &options, before, error);
    free(weights);
    free(before);
    return status;
}

enum tandem_status tandem_session_place(tandem_session *session,
                                        const struct tandem_place_options *given,
                                        struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    struct tnd_llama_hot *hot = &session->hot;
    const int most = (int)(sizeof(hot->device_memory) / sizeof(hot->device_memory[0]));
    LLAMA_TRY(tnd_llama_refuse_ranks(session, "placing weights on devices", error));
    LLAMA_TRY(tnd_llama_options_read(given, "place options", &options, sizeof(options), error));
    LLAMA_TRY(tnd_llama_place(session, &options, error));
    hot->options = options; /* kept for later placements */
    hot->options.n_device_memory = options.n_device_memory < most ? options.n_device_memory : most;
    for (int i = 0; i < hot->options.n_device_memory; i++) {
        hot->device_memory[i] = options.device_memory[i];
    }
    return TANDEM_OK;
}
