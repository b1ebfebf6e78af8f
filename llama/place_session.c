/* SPDX-License-Identifier: MIT
 * Lists the weights of a session's model for tandem_runtime_place, which decides what devices keep,
 * and applies its decision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/ranks.h"
#include "llama/session.h"
#include "llama/shard.h"

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
    if (session->hot.layers == NULL || session->part != NULL) {
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

/* ---- lists of weights ---- */

/* {n_all}, of which n are filled. */
struct list {
    struct tandem_place_weight *weights;
    int n, n_all;
};

static void list_source(const tandem_source *source, struct list *list)
{
    struct tandem_source_tensor tensor;
    for (int i = 0; i < list->n_all && tandem_source_tensor_at(source, i, &tensor); i++) {
        list->weights[list->n++] =
            (struct tandem_place_weight){.name = tensor.name,
                                         .data = tensor.data,
                                         .bytes = tensor.bytes,
                                         .type = tensor.type,
                                         .k = tensor.ne[0],
                                         .n = tensor.n_dims > 1 ? tensor.ne[1] : 1,
                                         .n_experts = tensor.n_dims > 2 ? tensor.ne[2] : 1};
    }
}

/* A weight counts once: rows of a part may begin where all of them do. */
static void list_tensor(const tandem_tensor *tensor, struct list *list)
{
    bool is_new = tensor != NULL && list->n < list->n_all;
    for (int i = 0; is_new && i < list->n; i++) {
        is_new = list->weights[i].data != tandem_tensor_data(tensor);
    }
    if (is_new) {
        const int64_t *ne = tandem_tensor_ne(tensor);
        list->weights[list->n++] =
            (struct tandem_place_weight){.name = tandem_tensor_name(tensor),
                                         .data = tandem_tensor_data(tensor),
                                         .bytes = tandem_tensor_bytes(tensor),
                                         .type = tandem_tensor_type(tensor),
                                         .k = ne[0],
                                         .n = ne[1],
                                         .n_experts = ne[2]};
    }
}

/* What a rank computes: of layers that others have, nothing. */
static void list_part(const tandem_model *part, struct list *list)
{
    const struct tnd_llama_range own = tnd_llama_own_layers(part);
    const bool has_output = !tnd_llama_by_layers(part) || part->shard->rank == part->shard->head;
    for (int64_t i = own.begin * LAYER_TENSORS; i < own.end * LAYER_TENSORS; i++) {
        list_tensor(tensor_at(part, i), list);
    }
    if (has_output) {
        list_tensor(part->output, list);
    }
}

static void list_weights(const tandem_session *session, struct list *list)
{
    if (session->part == NULL) {
        list_source(session->model->source, list);
        return;
    }
    list_part(session->part, list);
    if (session->prompt_part != NULL) {
        list_part(session->prompt_part, list);
    }
}

/* Experts by their use, for sessions that count it; biases of experts are rows by number: those
 * that another side computes have none. */
static void count_experts(tandem_session *session, struct tandem_place_options *io_options)
{
    const tandem_model *model = session->model;
    const bool may_part = session->part == NULL && session->hot.layers != NULL &&
                          model->layers[0].b1_exps == NULL && model->layers[0].b2_exps == NULL &&
                          model->layers[0].b3_exps == NULL;
    if (may_part && io_options->gather == NULL) {
        io_options->expert_use = tnd_llama_hot_use(session);
        io_options->use_experts = model->hparams.experts;
        io_options->use_layers = model->hparams.layers;
        io_options->hot_now = session->hot.now;
        io_options->gather = tnd_llama_hot_gather;
        io_options->gather_user = session;
    }
}

/* Of a mixed session a device holds rows and layers, or none of them: which of both it should hold
 * is no question that prices of one list answer. */
static enum tandem_status place_mixed(tandem_session *session, const struct list *list,
                                      struct tandem_place_options *options, const char **before,
                                      struct tandem_error *error)
{
    static const int64_t nothing[] = {1, 1, 1, 1, 1, 1, 1};
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    options->only_if_needed = true;
    LLAMA_TRY(place(session, list->weights, list->n, options, before, error));
    LLAMA_TRY(tandem_runtime_placement(session->runtime, &info));
    if (info.n_weights == 0) {
        return TANDEM_OK;
    }
    options->only_if_needed = false;
    options->device_memory = nothing;
    options->n_device_memory = (int)(sizeof(nothing) / sizeof(nothing[0]));
    return place(session, list->weights, list->n, options, before, error);
}

enum tandem_status tnd_llama_place(tandem_session *session,
                                   const struct tandem_place_options *wanted,
                                   struct tandem_error *error)
{
    const tandem_model *model = session->model;
    struct tandem_place_options options = *wanted;
    const size_t n_tensors = (size_t)model->hparams.layers * LAYER_TENSORS + 1;
    struct list list = {.n_all = session->part == NULL ? tandem_source_tensor_count(model->source)
                                                       : (int)(2 * n_tensors)};
    list.weights = calloc((size_t)list.n_all + 1, sizeof(list.weights[0]));
    const char **before = calloc(n_tensors, sizeof(before[0]));
    if (list.weights == NULL || before == NULL) {
        free(list.weights);
        free(before);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", list.n_all, 0,
                              "llama: no memory for a list of %d weights", list.n_all);
    }
    list_weights(session, &list);
    options.context = session->cache.n_cells;
    options.cache_type = session->cache.type;
    options.n_used = used_experts(model);
    options.returns_to_host = tnd_llama_by_rows(model);
    count_experts(session, &options);
    const enum tandem_status status =
        session->prompt_part != NULL
            ? place_mixed(session, &list, &options, before, error)
            : place(session, list.weights, list.n, &options, before, error);
    free(list.weights);
    free(before);
    return status;
}

/* Rank 0 and all others, each its part. */
static enum tandem_status place_among_ranks(tandem_session *session,
                                            const struct tandem_place_options *options,
                                            struct tandem_error *error)
{
    struct tandem_error own = {.text = ""};
    LLAMA_TRY(tnd_llama_tell_place(session, options, error));
    const enum tandem_status status = tnd_llama_place(session, options, &own);
    return tnd_llama_agree(session->leads, status, &own, error);
}

enum tandem_status tandem_session_place(tandem_session *session,
                                        const struct tandem_place_options *given,
                                        struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    struct tnd_llama_hot *hot = &session->hot;
    const int most = (int)(sizeof(hot->device_memory) / sizeof(hot->device_memory[0]));
    LLAMA_TRY(tnd_llama_options_read(given, "place options", &options, sizeof(options), error));
    if (session->leads != NULL) {
        return place_among_ranks(session, &options, error);
    }
    LLAMA_TRY(tnd_llama_place(session, &options, error));
    hot->options = options; /* kept for later placements */
    hot->options.n_device_memory = options.n_device_memory < most ? options.n_device_memory : most;
    for (int i = 0; i < hot->options.n_device_memory; i++) {
        hot->device_memory[i] = options.device_memory[i];
    }
    return TANDEM_OK;
}
