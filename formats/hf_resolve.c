/* SPDX-License-Identifier: MIT
 * Resolves a parsed config.json: defaults of its family, members that follow from others, and the
 * refusal of members that the family does not have. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/hf_config.h"
#include "formats/json_pull.h"
#include "formats/llama_tensors.h"

static const struct member {
    size_t offset;
    bool is_integer;
} members[] = {
#define INTEGER_ROW(name, where, key) {offsetof(struct tnd_hf_config, name), true},
    TND_CONFIG_INTEGERS(INTEGER_ROW)
#undef INTEGER_ROW
#define NUMBER_ROW(name, where, key) {offsetof(struct tnd_hf_config, name), false},
        TND_CONFIG_NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
};

enum tandem_status tnd_hf_refuse(const struct tnd_json *json, enum tandem_status status,
                                 const char *member, const char *why, struct tandem_error *error)
{
    return tnd_error_set(error, status, member, 0, 0, "%s: member \"%.60s\" %.120s",
                         tnd_short_name(json->name), member, why);
}

bool tnd_hf_alias(const char *aliases, const char *name, char *out, size_t capacity)
{
    const size_t n = strlen(name);
    for (const char *at = aliases; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, " ");
        if (length > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(out, capacity, "%.*s", (int)(length - n - 1), at + n + 1);
            return true;
        }
        at += length + strspn(at + length, " ");
    }
    return false;
}

static bool is_windowed_by(const struct tnd_hf_family *family, int64_t period, int64_t layer)
{
    return (layer + (family->has_wide_first ? 0 : 1)) % period != 0;
}

/* Resolves which layers have the window. If none has, sliding_window is reset to "not stated". */
static enum tandem_status resolve_windows(const struct tnd_config_reader *reader,
                                          struct tandem_error *error)
{
    struct tnd_hf_config *c = reader->config;
    const enum tnd_hf_windows kind = reader->family->windows;
    const bool by_layer = kind == TND_HF_QWEN || kind == TND_HF_TYPES;
    const int64_t period = c->sliding_window_pattern != TND_NOT_SAID
                               ? c->sliding_window_pattern
                               : reader->family->window_period;
    const int64_t usual = reader->family->window_period > 0 ? reader->family->window_period : 1;
    int64_t n_windowed = 0;
    bool is_usual = kind == TND_HF_TYPES; /* the architecture's default pattern */
    if (c->n_layer_types > 0 && c->n_layer_types != c->num_hidden_layers) {
        return tnd_hf_refuse(reader->json, TANDEM_E_FORMAT, "layer_types",
                             "has another number of layers than num_hidden_layers", error);
    }
    if (kind == TND_HF_TYPES && period < 1) {
        return tnd_hf_refuse(reader->json, TANDEM_E_FORMAT, "sliding_window_pattern",
                             "is less than 1", error);
    }
    c->sliding_window =
        kind == TND_HF_QWEN && !c->use_sliding_window ? TND_NOT_SAID : c->sliding_window;
    for (int64_t i = 0; i < c->num_hidden_layers && i < TND_HF_MAX_LAYERS; i++) {
        if (c->n_layer_types == 0) {
            c->windowed[i] = kind == TND_HF_TYPES ? is_windowed_by(reader->family, period, i)
                                                  : c->sliding_window != TND_NOT_SAID &&
                                                        (!by_layer || i >= c->max_window_layers);
        }
        n_windowed += c->windowed[i];
        is_usual = is_usual && (c->windowed[i] != 0) == is_windowed_by(reader->family, usual, i);
    }
    if ((c->n_layer_types > 0 || kind == TND_HF_TYPES) && n_windowed > 0 &&
        (!by_layer || c->sliding_window == TND_NOT_SAID)) {
        return tnd_hf_refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, "layer_types",
                             "has sliding_attention, and no window is said to be used", error);
    }
    if (by_layer && n_windowed == 0) {
        c->sliding_window = TND_NOT_SAID;
    }
    if (c->sliding_window != TND_NOT_SAID && c->sliding_window < 1) {
        return tnd_hf_refuse(reader->json, TANDEM_E_FORMAT, "sliding_window", "is less than 1",
                             error);
    }
    const bool is_told = kind == TND_HF_TYPES ? !is_usual : n_windowed < c->num_hidden_layers;
    c->n_layer_types =
        by_layer && n_windowed > 0 && is_told ? c->num_hidden_layers : 0; /* now: 0 if usual */
    return c->n_layer_types <= TND_HF_MAX_LAYERS
               ? TANDEM_OK
               : tnd_hf_refuse(reader->json, TANDEM_E_LIMIT, "num_hidden_layers",
                               "is more than 4096", error);
}

/* Refuses missing members that every family needs, and members that this family lacks, which
 * transformers ignores silently. */
static enum tandem_status check_family(const struct tnd_config_reader *reader,
                                       struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const struct tnd_hf_family *family = reader->family;
    const struct {
        const char *name;
        bool is_foreign;
    } rows[] = {
        {"attention_bias",
         c->attention_bias && !family->may_have_attention_bias && !family->has_attention_bias},
        {"mlp_bias", c->mlp_bias && !family->may_have_mlp_bias && !family->has_mlp_bias},
        {"is_decoder", family->is_encoder && c->is_decoder},
        {"parallel_attn", !c->parallel_attn},
        {"scale_attn_weights", !c->scale_attn_weights},
        {"swiglu_alpha", !isnan(c->swiglu_alpha) && c->swiglu_alpha != 1.702},
        {"swiglu_limit", !isnan(c->swiglu_limit) && c->swiglu_limit != 7.0},
        {"partial_rotary_factor", family->is_partial && c->n_rot < 2},
        {"alpha", !isnan(c->alpha) && (!family->has_alpha || !(c->alpha >= 0.0) ||
                                       !(c->alpha <= 1e6) || tnd_hf_head_size(c) <= 2)},
        {"attention_multiplier", c->attention_multiplier == 0.0},
        {"attn_logit_softcapping", c->attn_logit_softcapping == 0.0},
        {"final_logit_softcapping", c->final_logit_softcapping == 0.0},
        {"query_pre_attn_scalar",
         !isnan(c->query_pre_attn_scalar) && !(c->query_pre_attn_scalar > 0.0)},
        {"no_rope_layers", c->n_rotated > 0 && c->n_rotated != c->num_hidden_layers},
        {"no_rope_layer_interval",
         c->no_rope_layer_interval != TND_NOT_SAID && c->no_rope_layer_interval < 1},
        {"sliding_window",
         family->windows == TND_HF_NO_WINDOW && c->sliding_window != TND_NOT_SAID},
        {"use_sliding_window",
         c->use_sliding_window && (family->windows != TND_HF_QWEN || family->experts > 0)},
        {"num_local_experts", family->experts == 0 && c->num_local_experts > 0},
        {"num_experts", family->experts == 0 && c->num_experts > 0},
        {"num_experts_per_tok", family->used == 0 && c->num_experts_per_tok > 0},
        {"moe_intermediate_size", family->expert_hidden == 0 && c->moe_intermediate_size > 0},
        {"shared_expert_intermediate_size",
         family->shared_hidden == 0 && c->shared_expert_intermediate_size > 0},
        {"norm_topk_prob", family->expert_hidden == 0 && c->norm_topk_prob},
        {"qkv_bias", family->shared_hidden == 0 && c->qkv_bias},
    };
    const struct {
        const char *name;
        int64_t value;
    } needed[] = {
        {"hidden_size", c->hidden_size},
        {"intermediate_size", c->intermediate_size},
        {"num_hidden_layers", c->num_hidden_layers},
        {"num_attention_heads", c->num_attention_heads},
        {"vocab_size", c->vocab_size},
        {"max_position_embeddings", c->max_position_embeddings},
    };
    const bool has_layer_norm = tnd_llama_lists(family->own, "layer_norm_eps");
    if (isnan(has_layer_norm ? c->layer_norm_eps : c->rms_norm_eps)) {
        return tnd_hf_refuse(reader->json, TANDEM_E_NOT_FOUND,
                             has_layer_norm ? "layer_norm_eps" : "rms_norm_eps", "is missing",
                             error);
    }
    if (family->needs_scaling && c->n_ropes == 0) {
        return tnd_hf_refuse(reader->json, TANDEM_E_NOT_FOUND, "rope_scaling", "is missing", error);
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (needed[i].value == TND_NOT_SAID) {
            return tnd_hf_refuse(reader->json, TANDEM_E_NOT_FOUND, needed[i].name, "is missing",
                                 error);
        }
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_foreign) {
            return tnd_hf_refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, rows[i].name,
                                 "is on, and models of this model_type do not have it", error);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_hf_add_promises(tandem_source *source,
                                       const struct tnd_config_reader *reader,
                                       struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const struct tnd_hf_family *family = reader->family;
    const bool has_ffn_bias = c->mlp_bias || (family->bias_of_all && c->attention_bias);
    const bool has_output_bias =
        (c->attention_bias && !family->bias_of_qkv) || c->attention_out_bias;
    const bool has_second = c->num_ln_in_parallel_attn != TND_NOT_SAID
                                ? c->num_ln_in_parallel_attn == 2
                                : c->new_decoder_architecture;
    const bool has_qkv_bias =
        c->attention_bias || c->qkv_bias || strcmp(reader->family->architecture, "qwen2") == 0;
    TND_TRY(tnd_source_set_integer(source, "tandem.has.attention_bias", has_qkv_bias, error));
    TND_TRY(
        tnd_source_set_integer(source, "tandem.has.attention_output_bias", has_output_bias, error));
    TND_TRY(tnd_source_set_integer(source, "tandem.has.feed_forward_bias", has_ffn_bias, error));
    if (tnd_llama_lists(family->own, "use_qk_norm")) {
        TND_TRY(tnd_source_set_integer(source, "tandem.has.head_norm", c->use_qk_norm, error));
    }
    if (strcmp(family->architecture, "stablelm") == 0) {
        TND_TRY(tnd_source_set_integer(source, "tandem.has.feed_forward_norm",
                                       !c->use_parallel_residual, error));
        /* norms of heads have other names in these files, and qk_layernorm is refused */
        TND_TRY(tnd_source_set_integer(source, "tandem.has.head_norm", 0, error));
    }
    if (family->has_multi_query) {
        TND_TRY(tnd_source_set_integer(source, "tandem.has.second_norm", has_second, error));
    }
    return c->tie_word_embeddings || family->is_encoder
               ? TANDEM_OK /* the file may have one all the same */
               : tnd_source_set_integer(source, "tandem.has.output", 1, error);
}

static double number_or_none(double number)
{
    return number != 0.0 ? number : NAN;
}

static void set_expert_defaults(const struct tnd_hf_family *family, struct tnd_hf_config *out)
{
    const bool has_width = family->expert_hidden > 0;
    const bool has_shared = family->shared_hidden > 0;
    out->num_experts_per_tok = family->used > 0 ? family->used : TND_NOT_SAID;
    out->moe_intermediate_size = has_width ? family->expert_hidden : TND_NOT_SAID;
    out->shared_expert_intermediate_size = has_shared ? family->shared_hidden : TND_NOT_SAID;
    out->qkv_bias = has_shared;
    out->n_shared_experts = family->shared_experts > 0 ? family->shared_experts : TND_NOT_SAID;
    out->first_k_dense_replace = family->dense_layers > 0 ? family->dense_layers : TND_NOT_SAID;
}

/* The number of experts has two names; later versions of transformers write num_local_experts for
 * every family. Resets members without meaning for the model, such as the experts of a family
 * without any (which has checked that they are 0). */
static enum tandem_status resolve_experts(const struct tnd_config_reader *reader,
                                          struct tandem_error *error)
{
    const struct tnd_hf_family *family = reader->family;
    struct tnd_hf_config *c = reader->config;
    const int64_t other = c->num_experts;
    c->num_experts = TND_NOT_SAID;
    if (family->experts == 0) {
        c->num_local_experts = c->num_experts_per_tok = c->moe_intermediate_size = TND_NOT_SAID;
        c->shared_expert_intermediate_size = TND_NOT_SAID;
        return TANDEM_OK;
    }
    if (other != TND_NOT_SAID && c->num_local_experts != TND_NOT_SAID &&
        other != c->num_local_experts) {
        return tnd_hf_refuse(reader->json, TANDEM_E_FORMAT, "num_experts",
                             "is another number than num_local_experts", error);
    }
    c->num_local_experts = other != TND_NOT_SAID                  ? other
                           : c->num_local_experts != TND_NOT_SAID ? c->num_local_experts
                                                                  : family->experts;
    return TANDEM_OK;
}

void tnd_hf_set_defaults(const struct tnd_hf_family *family, struct tnd_hf_config *out)
{
    *out = (struct tnd_hf_config){.rope_theta_inside = NAN,
                                  .original_inside = NAN,
                                  .partial_inside = NAN,
                                  .attn_factor = NAN,
                                  .bos = family->bos};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const int64_t integer = TND_NOT_SAID;
        const double number = NAN;
        memcpy((char *)out + members[i].offset,
               members[i].is_integer ? (const void *)&integer : (const void *)&number, 8);
    }
    out->num_key_value_heads = family->kv_heads;
    out->head_dim = family->head_dim;
    out->max_position_embeddings = family->context;
    out->sliding_window = family->window;
    out->max_window_layers = 28;
    out->rms_norm_eps = family->eps > 0.0 ? family->eps : 1e-6;
    if (tnd_llama_lists(family->own, "layer_norm_eps")) {
        out->layer_norm_eps = out->rms_norm_eps;
        out->rms_norm_eps = NAN;
    }
    out->query_pre_attn_scalar = number_or_none(family->query_scalar);
    out->attention_multiplier = number_or_none(family->attention_scale);
    out->attn_logit_softcapping = number_or_none(family->attention_cap);
    out->final_logit_softcapping = number_or_none(family->logit_cap);
    out->logit_scale = number_or_none(family->logit_scale);
    out->rope_local_base_freq = number_or_none(family->window_theta);
    out->activation = family->activation;
    out->tie_word_embeddings = family->is_tied;
    out->attention_bias = family->has_attention_bias;
    out->mlp_bias = family->has_mlp_bias;
    out->use_parallel_residual = family->is_parallel;
    out->norm_topk_prob = family->norms_experts;
    out->multi_query = out->parallel_attn = out->scale_attn_weights = true;
    out->is_partial = family->is_partial;
    out->rope_interleave = true;
    out->ignores_groups = family->is_latent && !family->has_sigmoid; /* topk_method overrides */
    if (family->is_latent) {
        out->kv_lora_rank = 512;
        out->q_lora_rank = 1536;
        out->qk_nope_head_dim = out->v_head_dim = 128;
        out->qk_rope_head_dim = 64;
        out->routed_scaling_factor = family->has_sigmoid ? 2.5 : NAN;
        out->n_group = family->has_sigmoid ? 8 : TND_NOT_SAID;
        out->topk_group = family->has_sigmoid ? 4 : TND_NOT_SAID;
    }
    set_expert_defaults(family, out);
    if (family->eos != TND_NOT_SAID) {
        out->ends = (struct tnd_end_tokens){{(int32_t)family->eos}, 1};
    }
}

/* ---- what follows ---- */

/* Derives members that are not stated from others. */
static void derive(const struct tnd_hf_family *family, struct tnd_hf_config *c)
{
    const bool is_multi = family->has_multi_query && c->multi_query && !c->new_decoder_architecture;
    if (!isnan(c->partial_inside)) {
        c->partial_rotary_factor = c->partial_inside;
    }
    const double share =
        isnan(c->partial_rotary_factor) ? family->partial : c->partial_rotary_factor;
    if (c->intermediate_size == TND_NOT_SAID && family->hidden_of_dim > 0 &&
        c->hidden_size <= INT32_MAX) {
        c->intermediate_size = family->hidden_of_dim * c->hidden_size;
    }
    if (family->has_multi_query) {
        c->num_key_value_heads = is_multi ? 1 : c->num_kv_heads;
    }
    if (family->means_tanh && c->activation != NULL && strcmp(c->activation, "gelu") == 0) {
        c->activation = "gelu_tanh";
    }
    if (family->means_longrope &&
        (strcmp(c->scaling, "su") == 0 || strcmp(c->scaling, "yarn") == 0)) {
        snprintf(c->scaling, sizeof(c->scaling), "longrope");
    }
    c->n_rot = family->is_latent ? c->qk_rope_head_dim : tnd_hf_head_size(c);
    if (family->is_partial && share >= 0.0 && share <= 1.0) {
        c->n_rot = (int64_t)((double)c->n_rot * share);
    }
    const int64_t period =
        c->no_rope_layer_interval != TND_NOT_SAID ? c->no_rope_layer_interval : family->rope_period;
    for (int64_t i = 0; period > 0 && c->n_rotated == 0 &&
                        c->num_hidden_layers <= TND_HF_MAX_LAYERS && i < c->num_hidden_layers;
         i++) {
        c->rotated[i] = (i + 1) % period != 0;
    }
    if (period > 0 && c->num_hidden_layers <= TND_HF_MAX_LAYERS) {
        c->n_rotated = c->num_hidden_layers;
    }
}

/* The convention describes latent attention as one KV head: the latent vector and the rotated
 * values. */
static enum tandem_status resolve_latent(const struct tnd_config_reader *reader,
                                         struct tandem_error *error)
{
    struct tnd_hf_config *c = reader->config;
    const struct {
        const char *name;
        int64_t value;
    } needed[] = {{"kv_lora_rank", c->kv_lora_rank},
                  {"qk_nope_head_dim", c->qk_nope_head_dim},
                  {"qk_rope_head_dim", c->qk_rope_head_dim},
                  {"v_head_dim", c->v_head_dim}};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (needed[i].value < 1 || needed[i].value > 65536) {
            return tnd_hf_refuse(reader->json, TANDEM_E_FORMAT, needed[i].name,
                                 "is missing, or not 1 to 65536", error);
        }
    }
    if (c->norm_topk_prob && !reader->family->has_sigmoid) {
        return tnd_hf_refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, "norm_topk_prob",
                             "is on, which DeepSeek V2 and transformers compute differently",
                             error);
    }
    if (c->scaling[0] != '\0' && strcmp(c->scaling, "yarn") != 0 && !isnan(c->mscale_all_dim)) {
        return tnd_hf_refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, "mscale_all_dim",
                             "is there, and rope is not scaled by yarn", error);
    }
    if (c->head_dim != TND_NOT_SAID && c->head_dim != c->qk_rope_head_dim) {
        return tnd_hf_refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, "head_dim",
                             "is another number than qk_rope_head_dim", error);
    }
    if (c->ignores_groups) {
        c->n_group = c->topk_group = TND_NOT_SAID;
    }
    c->num_key_value_heads = 1;
    c->head_dim = c->kv_lora_rank + c->qk_rope_head_dim;
    return TANDEM_OK;
}

/* RoBERTa's positions start after the padding token's. */
static enum tandem_status resolve_positions(const struct tnd_config_reader *reader,
                                            struct tandem_error *error)
{
    struct tnd_hf_config *c = reader->config;
    const int64_t pad = c->pad_token_id == TND_NOT_SAID ? 1 : c->pad_token_id;
    if (pad < 0 || pad >= c->max_position_embeddings - 1) {
        return tnd_hf_refuse(reader->json, TANDEM_E_FORMAT, "pad_token_id",
                             "leaves no positions of max_position_embeddings", error);
    }
    c->pad_token_id = pad;
    c->max_position_embeddings -= pad + 1;
    return TANDEM_OK;
}

enum tandem_status tnd_hf_resolve(const struct tnd_config_reader *reader,
                                  struct tandem_error *error)
{
    struct tnd_hf_config *c = reader->config;
    const struct tnd_hf_family *family = reader->family;
    tnd_hf_resolve_rope(c, family->theta > 0.0 ? family->theta : 10000.0);
    derive(family, c);
    TND_TRY(check_family(reader, error));
    TND_TRY(resolve_experts(reader, error));
    if (family->pads_positions) {
        TND_TRY(resolve_positions(reader, error));
    }
    if (family->is_latent) {
        TND_TRY(resolve_latent(reader, error));
    }
    if (family->experts_are_hidden) {
        c->moe_intermediate_size = c->intermediate_size;
    }
    return resolve_windows(reader, error);
}
