/* SPDX-License-Identifier: MIT
 * A llama's weights: found by their GGUF names, checked, and borrowed as tensors. */
#include "llama/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "llama/llama_error.h"

/* Finds a weight with the extents {k, n}; n is 1 for a vector. */
static enum tandem_status find(const tandem_model *model, const tandem_source *source,
                               const char *name, int64_t k, int64_t n, tandem_tensor **out_tensor,
                               struct tandem_error *error)
{
    struct tandem_source_tensor found;
    if (!tandem_source_find(source, name, &found)) {
        return tnd_llama_fail(error, TANDEM_E_NOT_FOUND, name, 0, 0,
                              "llama: the model has no tensor %s", name);
    }
    if (found.ne[0] != k || found.ne[1] != n || found.ne[2] != 1 || found.ne[3] != 1) {
        return tnd_llama_fail(error, TANDEM_E_SHAPE, name, found.ne[0], k,
                              "llama: %s is %lld x %lld, expected %lld x %lld", name,
                              (long long)found.ne[0], (long long)found.ne[1], (long long)k,
                              (long long)n);
    }
    tandem_tensor *tensor = tandem_tensor_borrow_const(model->context, found.type, found.n_dims,
                                                       found.ne, found.data, found.bytes);
    if (tensor == NULL) {
        return tandem_context_status(model->context, error);
    }
    *out_tensor = tandem_tensor_set_name(tensor, name);
    return TANDEM_OK;
}

static enum tandem_status find_in_layer(const tandem_model *model, const tandem_source *source,
                                        int64_t layer, const char *name, int64_t k, int64_t n,
                                        tandem_tensor **out_tensor, struct tandem_error *error)
{
    char full_name[TANDEM_MAX_NAME];
    snprintf(full_name, sizeof(full_name), "blk.%lld.%s.weight", (long long)layer, name);
    return find(model, source, full_name, k, n, out_tensor, error);
}

/* A bias {n} of q, k or v, F32; absent unless the architecture promises it. */
static enum tandem_status find_bias(const tandem_model *model, const tandem_source *source,
                                    int64_t layer, const char *name, int64_t n,
                                    tandem_tensor **out_tensor, struct tandem_error *error)
{
    char full_name[TANDEM_MAX_NAME];
    struct tandem_source_tensor found;
    snprintf(full_name, sizeof(full_name), "blk.%lld.%s.bias", (long long)layer, name);
    if (!model->hparams.has_biases && !tandem_source_find(source, full_name, &found)) {
        return TANDEM_OK;
    }
    return find(model, source, full_name, n, 1, out_tensor, error);
}

static enum tandem_status load_layer(const tandem_model *model, const tandem_source *source,
                                     int64_t l, struct tandem_error *error)
{
    const struct tandem_hparams *h = &model->hparams;
    struct tnd_llama_layer *layer = &model->layers[l];
    const struct {
        const char *name;
        int64_t k, n;
        tandem_tensor **place;
    } weights[] = {
        {"attn_norm", h->dim, 1, &layer->attn_norm},   {"attn_q", h->dim, h->q_dim, &layer->wq},
        {"attn_k", h->dim, h->kv_dim, &layer->wk},     {"attn_v", h->dim, h->kv_dim, &layer->wv},
        {"attn_output", h->q_dim, h->dim, &layer->wo}, {"ffn_norm", h->dim, 1, &layer->ffn_norm},
        {"ffn_gate", h->dim, h->hidden, &layer->w1},   {"ffn_down", h->hidden, h->dim, &layer->w2},
        {"ffn_up", h->dim, h->hidden, &layer->w3},
    };
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        LLAMA_TRY(find_in_layer(model, source, l, weights[i].name, weights[i].k, weights[i].n,
                                weights[i].place, error));
    }
    LLAMA_TRY(find_bias(model, source, l, "attn_q", h->q_dim, &layer->bq, error));
    LLAMA_TRY(find_bias(model, source, l, "attn_k", h->kv_dim, &layer->bk, error));
    return find_bias(model, source, l, "attn_v", h->kv_dim, &layer->bv, error);
}

/* Divisors of rope's angles: those of the file (converters write llama 3's so), or computed. */
static enum tandem_status load_rope_factors(tandem_model *model, const tandem_source *source,
                                            struct tandem_error *error)
{
    const int64_t n = model->rope.options.n_rot / 2;
    struct tandem_source_tensor found;
    if (tandem_source_find(source, "rope_freqs.weight", &found) && found.type == TANDEM_TYPE_F32) {
        LLAMA_TRY(find(model, source, "rope_freqs.weight", n, 1, &model->rope_factors, error));
        for (int64_t i = 0; i < n; i++) {
            const float factor = ((const float *)found.data)[i];
            if (!(factor > 0.0f) || isinf(factor)) {
                return tnd_llama_fail(error, TANDEM_E_FORMAT, "rope_freqs.weight", i, n,
                                      "llama: value %lld of rope_freqs.weight is %g, expected a "
                                      "finite number above 0",
                                      (long long)i, (double)factor);
            }
        }
        return TANDEM_OK;
    }
    if (model->rope.scaling == TND_ROPE_LLAMA3) {
        model->rope_factors = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 1, &n);
        LLAMA_TRY(tandem_context_status(model->context, error));
        tnd_llama_rope_factors(&model->rope, tandem_tensor_data(model->rope_factors));
        tandem_tensor_set_role(model->rope_factors, TANDEM_ROLE_CONSTANT);
    }
    return TANDEM_OK;
}

static enum tandem_status load(tandem_model *model, const tandem_source *source,
                               struct tandem_error *error)
{
    const struct tandem_hparams *h = &model->hparams;
    struct tandem_source_tensor ignored;
    LLAMA_TRY(tnd_llama_hparams_read(source, &model->hparams, &model->rope, error));
    LLAMA_TRY(tandem_context_new(NULL, &model->context, error));
    LLAMA_TRY(find(model, source, "token_embd.weight", h->dim, h->vocabulary,
                   &model->token_embedding, error));
    LLAMA_TRY(load_rope_factors(model, source, error));
    LLAMA_TRY(find(model, source, "output_norm.weight", h->dim, 1, &model->output_norm, error));
    model->output = model->token_embedding; /* shared unless the model brings its own */
    if (tandem_source_find(source, "output.weight", &ignored)) {
        LLAMA_TRY(
            find(model, source, "output.weight", h->dim, h->vocabulary, &model->output, error));
    }
    if (h->layers > tandem_source_tensor_count(source)) { /* a bound on what is allocated next */
        return tnd_llama_fail(error, TANDEM_E_NOT_FOUND, "llama.block_count", h->layers, 0,
                              "llama: the model promises %lld layers and has %d tensors",
                              (long long)h->layers, tandem_source_tensor_count(source));
    }
    model->layers = calloc((size_t)h->layers, sizeof(model->layers[0]));
    if (model->layers == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", h->layers, 0,
                              "llama: no memory for %lld layers", (long long)h->layers);
    }
    for (int64_t l = 0; l < h->layers; l++) {
        LLAMA_TRY(load_layer(model, source, l, error));
    }
    return TANDEM_OK;
}

/* Takes `own_source` over, which may be NULL, also when it fails. */
static enum tandem_status model_new(const tandem_source *source, tandem_source *own_source,
                                    tandem_model **out_model, struct tandem_error *error)
{
    tandem_model *model = calloc(1, sizeof(*model));
    enum tandem_status status;
    LLAMA_ASSERT(own_source == NULL || own_source == source);
    if (model == NULL) {
        tandem_source_close(own_source);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", sizeof(*model), 0,
                              "llama: no memory for a model");
    }
    model->source = source;
    model->own_source = own_source;
    status = load(model, source, error);
    if (status != TANDEM_OK) {
        tandem_model_free(model);
        return status;
    }
    model->hparams.weight_type = tandem_tensor_type(model->layers[0].wq);
    *out_model = model;
    return TANDEM_OK;
}

enum tandem_status tandem_model_new(const tandem_source *source, tandem_model **out_model,
                                    struct tandem_error *error)
{
    return model_new(source, NULL, out_model, error);
}

enum tandem_status tandem_model_load(const char *path, tandem_model **out_model,
                                     struct tandem_error *error)
{
    tandem_source *source;
    LLAMA_TRY(tandem_source_open(path, &source, error));
    return model_new(source, source, out_model, error);
}

void tandem_model_free(tandem_model *model)
{
    if (model != NULL) {
        tandem_context_free(model->context);
        tandem_source_close(model->own_source);
        free(model->layers);
        free(model);
    }
}

const struct tandem_hparams *tandem_model_hparams(const tandem_model *model)
{
    return &model->hparams;
}

const tandem_source *tandem_model_source(const tandem_model *model)
{
    return model->source;
}
