/* SPDX-License-Identifier: MIT
 * A llama's weights: found by their GGUF names and borrowed as tensors. */
#include "llama/model.h"

#include <stdio.h>
#include <stdlib.h>

#include "llama/llama_error.h"
#include "llama/shard.h"

/* Borrows a weight; NULL if the model does not have it. */
static enum tandem_status find(const tandem_model *model, const char *name,
                               tandem_tensor **out_tensor, struct tandem_error *error)
{
    struct tandem_source_tensor found;
    if (!tandem_source_find(model->source, name, &found)) {
        return TANDEM_OK;
    }
    tandem_tensor *tensor = tandem_tensor_borrow_const(model->context, found.type, found.n_dims,
                                                       found.ne, found.data, found.bytes);
    if (tensor == NULL) {
        return tandem_context_status(model->context, error);
    }
    *out_tensor = tandem_tensor_set_name(tensor, name);
    return TANDEM_OK;
}

static enum tandem_status load_layer(const tandem_model *model, int64_t l,
                                     struct tnd_llama_layer *layer, struct tandem_error *error)
{
    const struct {
        const char *name;
        tandem_tensor **place;
    } weights[] = {
        {"attn_norm.weight", &layer->attn_norm},
        {"attn_norm.bias", &layer->attn_norm_b},
        {"attn_norm_2.weight", &layer->attn_norm_2},
        {"attn_norm_2.bias", &layer->attn_norm_2_b},
        {"attn_qkv.weight", &layer->wqkv},
        {"attn_qkv.bias", &layer->bqkv},
        {"attn_q_a.weight", &layer->q_a},
        {"attn_q_a_norm.weight", &layer->q_a_norm},
        {"attn_q_b.weight", &layer->q_b},
        {"attn_kv_a_mqa.weight", &layer->kv_a},
        {"attn_kv_a_norm.weight", &layer->kv_a_norm},
        {"attn_k_b.weight", &layer->k_b},
        {"attn_v_b.weight", &layer->v_b},
        {"attn_sinks.weight", &layer->sinks},
        {"post_attention_norm.weight", &layer->attn_post_norm},
        {"attn_output_norm.weight", &layer->attn_sum_norm},
        {"attn_output_norm.bias", &layer->attn_sum_norm_b},
        {"layer_output_norm.weight", &layer->layer_sum_norm},
        {"layer_output_norm.bias", &layer->layer_sum_norm_b},
        {"ffn_norm.bias", &layer->ffn_norm_b},
        {"post_ffw_norm.weight", &layer->ffn_post_norm},
        {"ffn_gate_inp.bias", &layer->router_b},
        {"exp_probs_b.bias", &layer->choice_b},
        {"ffn_gate_exps.bias", &layer->b1_exps},
        {"ffn_down_exps.bias", &layer->b2_exps},
        {"ffn_up_exps.bias", &layer->b3_exps},
        {"attn_q.weight", &layer->wq},
        {"attn_k.weight", &layer->wk},
        {"attn_v.weight", &layer->wv},
        {"attn_output.weight", &layer->wo},
        {"ffn_norm.weight", &layer->ffn_norm},
        {"ffn_gate.weight", &layer->w1},
        {"ffn_down.weight", &layer->w2},
        {"ffn_up.weight", &layer->w3},
        {"attn_q.bias", &layer->bq},
        {"attn_k.bias", &layer->bk},
        {"attn_v.bias", &layer->bv},
        {"attn_output.bias", &layer->bo},
        {"ffn_gate.bias", &layer->b1},
        {"ffn_down.bias", &layer->b2},
        {"ffn_up.bias", &layer->b3},
        {"attn_q_norm.weight", &layer->attn_q_norm},
        {"attn_k_norm.weight", &layer->attn_k_norm},
        {"ffn_gate_inp.weight", &layer->router},
        {"ffn_gate_exps.weight", &layer->gate_exps},
        {"ffn_down_exps.weight", &layer->down_exps},
        {"ffn_up_exps.weight", &layer->up_exps},
        {"ffn_gate_inp_shexp.weight", &layer->shared_gate},
        {"ffn_gate_shexp.weight", &layer->gate_shexp},
        {"ffn_down_shexp.weight", &layer->down_shexp},
        {"ffn_up_shexp.weight", &layer->up_shexp},
    };
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        char name[TANDEM_MAX_NAME];
        snprintf(name, sizeof(name), "blk.%lld.%s", (long long)l, weights[i].name);
        LLAMA_TRY(find(model, name, weights[i].place, error));
    }
    return TANDEM_OK;
}

/* Creates the tables that sum and mark groups of experts. */
static enum tandem_status make_groups(tandem_model *model, struct tandem_error *error)
{
    const struct tandem_hparams *h = &model->hparams;
    const int64_t n = h->expert_groups_used > 2 ? h->expert_groups_used : 2;
    const int64_t ne[] = {h->expert_groups, h->expert_groups};
    model->group_ones = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 1, &n);
    model->group_rows = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 2, ne);
    LLAMA_TRY(tandem_context_status(model->context, error));
    for (int64_t i = 0; i < n; i++) {
        ((float *)tandem_tensor_data(model->group_ones))[i] = 1.0f;
    }
    for (int64_t i = 0; i < ne[0] * ne[0]; i++) {
        ((float *)tandem_tensor_data(model->group_rows))[i] =
            i / ne[0] == i % ne[0] ? TND_LLAMA_FAR : 0.0f;
    }
    tandem_tensor_set_role(model->group_ones, TANDEM_ROLE_CONSTANT);
    tandem_tensor_set_role(model->group_rows, TANDEM_ROLE_CONSTANT);
    return TANDEM_OK;
}

/* Creates the scalar constants of the forward pass. */
static enum tandem_status make_numbers(tandem_model *model, struct tandem_error *error)
{
    const struct tandem_hparams *h = &model->hparams;
    const int64_t n = TND_LLAMA_NUMBERS;
    if (h->router == TANDEM_ROUTER_SIGMOID && h->has_normed_experts) {
        model->ones = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 1, &h->experts_used);
        LLAMA_TRY(tandem_context_status(model->context, error));
        for (int64_t i = 0; i < h->experts_used; i++) {
            ((float *)tandem_tensor_data(model->ones))[i] = 1.0f;
        }
        tandem_tensor_set_role(model->ones, TANDEM_ROLE_CONSTANT);
    }
    if (h->expert_groups > 0) {
        LLAMA_TRY(make_groups(model, error));
    }
    if (h->activation != TANDEM_ACTIVATION_CLAMPED && h->expert_groups == 0) {
        return TANDEM_OK;
    }
    model->numbers = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 1, &n);
    LLAMA_TRY(tandem_context_status(model->context, error));
    float *numbers = tandem_tensor_data(model->numbers);
    numbers[TND_LLAMA_ONE] = 1.0f;
    numbers[TND_LLAMA_FAR_OFF] = TND_LLAMA_FAR;
    tandem_tensor_set_role(model->numbers, TANDEM_ROLE_CONSTANT);
    return TANDEM_OK;
}

/* The factor on rotated queries and keys enters a score twice. If whole heads are rotated, it is
 * part of attention's scale (forward.c); else it multiplies the rotated values of the query. */
static enum tandem_status make_rope_gain(tandem_model *model, struct tandem_error *error)
{
    const struct tandem_hparams *h = &model->hparams;
    if (h->rope_magnitude == 1.0f || h->n_rot == h->head_size) {
        return TANDEM_OK;
    }
    model->rope_gain = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 1, &h->head_size);
    LLAMA_TRY(tandem_context_status(model->context, error));
    float *gain = tandem_tensor_data(model->rope_gain);
    for (int64_t i = 0; i < h->head_size; i++) {
        gain[i] = i < h->n_rot ? h->rope_magnitude * h->rope_magnitude : 1.0f;
    }
    tandem_tensor_set_role(model->rope_gain, TANDEM_ROLE_CONSTANT);
    return TANDEM_OK;
}

/* Divisors of rope's angles: from the file (converters write llama 3's there), or computed. */
static enum tandem_status load_rope_factors(tandem_model *model, struct tandem_error *error)
{
    const int64_t n = model->hparams.n_rot / 2;
    const enum tandem_rope_scaling scaling = model->hparams.rope_scaling;
    LLAMA_TRY(make_rope_gain(model, error));
    if (scaling == TANDEM_ROPE_LONGROPE) {
        LLAMA_TRY(find(model, "rope_factors_short.weight", &model->rope_factors, error));
        return find(model, "rope_factors_long.weight", &model->rope_long, error);
    }
    LLAMA_TRY(find(model, "rope_freqs.weight", &model->rope_factors, error));
    if (model->rope_factors == NULL && scaling != TANDEM_ROPE_EVEN) {
        model->rope_factors = tandem_tensor_new(model->context, TANDEM_TYPE_F32, 1, &n);
        LLAMA_TRY(tandem_context_status(model->context, error));
        tandem_hparams_divisors(&model->hparams, tandem_tensor_data(model->rope_factors));
        tandem_tensor_set_role(model->rope_factors, TANDEM_ROLE_CONSTANT);
    }
    return TANDEM_OK;
}

/* Loads the tokens that end a text: from config.json and generation_config.json, or from a GGUF
 * file the ends of texts, turns and messages. */
static void load_ends(tandem_model *model)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    struct tandem_array list = {.count = 0};
    int64_t token;
    (void)tandem_source_array(model->source, "tandem.end_tokens", &list);
    for (int64_t i = 0; i < list.count + 3 && model->n_ends < TND_LLAMA_MAX_ENDS; i++) {
        const bool is_said =
            i < list.count ? tandem_array_integer(&list, i, &token)
                           : tandem_source_integer(model->source, keys[i - list.count], &token);
        if (is_said && token >= 0 && token < model->hparams.vocabulary) {
            model->ends[model->n_ends++] = (int32_t)token;
        }
    }
}

bool tnd_llama_is_end(const tandem_model *model, const tandem_tokenizer *tokenizer, int32_t token)
{
    for (int i = 0; i < model->n_ends; i++) {
        if (model->ends[i] == token) {
            return true;
        }
    }
    return model->n_ends == 0 && token == tandem_tokenizer_eos(tokenizer);
}

/* Loads the first of the layers that predict ahead, as a model of one layer. */
static enum tandem_status load_nextn(tandem_model *model, struct tandem_error *error)
{
    const long long l = model->hparams.layers;
    tandem_model *nextn = calloc(1, sizeof(*nextn));
    struct tnd_llama_layer *layer = calloc(1, sizeof(*layer));
    if (nextn == NULL || layer == NULL) {
        free(nextn);
        free(layer);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", 1, 0,
                              "llama: no memory for a layer that predicts ahead");
    }
    *nextn = *model;
    nextn->layers = layer;
    nextn->hparams.layers = 1;
    nextn->hparams.dense_layers = 0;
    nextn->hparams.nextn_layers = 0;
    model->nextn = nextn;
    const struct {
        const char *name;
        tandem_tensor **place;
    } weights[] = {
        {"eh_proj", &nextn->eh_proj},
        {"enorm", &nextn->embedding_head_norm},
        {"hnorm", &nextn->hidden_head_norm},
        {"shared_head_norm", &nextn->output_norm},
        {"embed_tokens", &nextn->token_embedding},
        {"shared_head_head", &nextn->output},
    };
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        char name[TANDEM_MAX_NAME];
        snprintf(name, sizeof(name), "blk.%lld.nextn.%s.weight", l, weights[i].name);
        LLAMA_TRY(find(model, name, weights[i].place, error));
    }
    return load_layer(model, l, layer, error);
}

/* tandem_source_hparams has checked that all tensors exist and have the right shapes. */
static enum tandem_status load(tandem_model *model, struct tandem_error *error)
{
    const struct tandem_hparams *h = &model->hparams;
    LLAMA_TRY(tandem_source_hparams(model->source, &model->hparams, error));
    load_ends(model);
    LLAMA_TRY(tandem_context_new(NULL, &model->context, error));
    LLAMA_TRY(find(model, "token_embd.weight", &model->token_embedding, error));
    LLAMA_TRY(load_rope_factors(model, error));
    LLAMA_TRY(make_numbers(model, error));
    LLAMA_TRY(find(model, "position_embd.weight", &model->positions, error));
    LLAMA_TRY(find(model, "token_types.weight", &model->token_types, error));
    LLAMA_TRY(find(model, "token_embd_norm.weight", &model->embedding_norm, error));
    LLAMA_TRY(find(model, "token_embd_norm.bias", &model->embedding_norm_b, error));
    LLAMA_TRY(find(model, "cls.weight", &model->rank, error));
    LLAMA_TRY(find(model, "cls.bias", &model->rank_b, error));
    LLAMA_TRY(find(model, "cls.norm.weight", &model->rank_norm, error));
    LLAMA_TRY(find(model, "cls.output.weight", &model->rank_output, error));
    LLAMA_TRY(find(model, "cls.output.bias", &model->rank_output_b, error));
    LLAMA_TRY(find(model, "output_norm.weight", &model->output_norm, error));
    LLAMA_TRY(find(model, "output_norm.bias", &model->output_norm_b, error));
    LLAMA_TRY(find(model, "output.bias", &model->output_b, error));
    model->output = model->token_embedding; /* shared unless the model has its own */
    LLAMA_TRY(find(model, "output.weight", &model->output, error));
    model->layers = calloc((size_t)h->layers, sizeof(model->layers[0]));
    if (model->layers == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", h->layers, 0,
                              "llama: no memory for %lld layers", (long long)h->layers);
    }
    for (int64_t l = 0; l < h->layers; l++) {
        LLAMA_TRY(load_layer(model, l, &model->layers[l], error));
    }
    return h->nextn_layers > 0 ? load_nextn(model, error) : TANDEM_OK;
}

/* Takes ownership of `own_source`, which may be NULL, even if it fails. */
static enum tandem_status model_new(const tandem_source *source, tandem_source *own_source,
                                    tandem_model **out_model, struct tandem_error *error)
{
    tandem_model *model = calloc(1, sizeof(*model));
    atomic_uint_least64_t *identity = calloc(1, sizeof(*identity));
    enum tandem_status status;
    LLAMA_ASSERT(own_source == NULL || own_source == source);
    if (model == NULL || identity == NULL) {
        free(identity);
        free(model);
        tandem_source_close(own_source);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", sizeof(*model), 0,
                              "llama: no memory for a model");
    }
    model->identity = identity;
    model->source = source;
    model->own_source = own_source;
    status = load(model, error);
    if (status != TANDEM_OK) {
        tandem_model_free(model);
        return status;
    }
    *out_model = model;
    return TANDEM_OK;
}

enum tandem_status tandem_model_new(const tandem_source *source, tandem_model **out_model,
                                    struct tandem_error *error)
{
    LLAMA_REQUIRE(source, error);
    LLAMA_REQUIRE(out_model, error);
    return model_new(source, NULL, out_model, error);
}

enum tandem_status tandem_model_load(const char *path, tandem_model **out_model,
                                     struct tandem_error *error)
{
    LLAMA_REQUIRE(path, error);
    LLAMA_REQUIRE(out_model, error);
    tandem_source *source;
    LLAMA_TRY(tandem_source_open(path, &source, error));
    return model_new(source, source, out_model, error);
}

void tandem_model_free(tandem_model *model)
{
    if (model != NULL) {
        tandem_context_free(model->context);
        tandem_source_close(model->own_source);
        tnd_llama_shard_free(model->shard);
        if (model->nextn != NULL) { /* the rest belongs to the outer model */
            free(model->nextn->layers);
            free(model->nextn);
        }
        free(model->layers);
        free(model->shard == NULL ? model->identity : NULL); /* a part borrows it */
        free(model);
    }
}

enum tandem_status tnd_llama_identity(const tandem_model *model, uint64_t *out_identity,
                                      struct tandem_error *error)
{
    uint64_t identity = atomic_load(model->identity);
    if (identity == 0) { /* two threads may compute it at once, with the same result */
        LLAMA_TRY(tandem_source_identity(model->source, &identity, error));
        atomic_store(model->identity, identity);
    }
    *out_identity = identity;
    return TANDEM_OK;
}

const struct tandem_hparams *tandem_model_hparams(const tandem_model *model)
{
    return model != NULL ? &model->hparams : NULL;
}

const tandem_source *tandem_model_source(const tandem_model *model)
{
    return model != NULL ? model->source : NULL;
}
