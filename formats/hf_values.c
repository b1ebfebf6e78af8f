/* SPDX-License-Identifier: MIT
 * Converts a resolved config.json to values of the GGUF convention (docs/gguf.md of ggml-org/ggml),
 * and to our own keys where the convention has none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/llama_tensors.h"

static const struct member {
    size_t offset;
    const char *key; /* after the architecture; NULL: not stored as it is */
    bool is_integer;
} members[] = {
#define INTEGER_ROW(name, where, key) {offsetof(struct tnd_hf_config, name), key, true},
    TND_CONFIG_INTEGERS(INTEGER_ROW)
#undef INTEGER_ROW
#define NUMBER_ROW(name, where, key) {offsetof(struct tnd_hf_config, name), key, false},
        TND_CONFIG_NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

static enum tandem_status add_tokens(tandem_source *source, const struct tnd_hf_config *c,
                                     struct tandem_error *error)
{
    if (c->bos != TND_NOT_SAID) {
        TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.bos_token_id", c->bos, error));
    }
    if (c->ends.n == 0) {
        return TANDEM_OK;
    }
    uint8_t bytes[4 * TND_MAX_END_TOKENS];
    for (int i = 0; i < c->ends.n; i++) {
        for (int b = 0; b < 4; b++) {
            bytes[4 * i + b] = (uint8_t)((uint32_t)c->ends.ids[i] >> (8 * b));
        }
    }
    TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.eos_token_id", c->ends.ids[0], error));
    return tnd_source_set_array(source, "tandem.end_tokens", TND_GGUF_U32, c->ends.n, bytes,
                                4 * (size_t)c->ends.n, true, error);
}

static enum tandem_status add_encoder(tandem_source *source, const struct tnd_config_reader *reader,
                                      struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const char *architecture = reader->family->architecture;
    char key[128];
    snprintf(key, sizeof(key), "%s.attention.causal", architecture);
    TND_TRY(tnd_source_set_flag(source, key, false, error));
    if (c->pooling != TANDEM_POOLING_NONE) {
        snprintf(key, sizeof(key), "%s.pooling_type", architecture);
        TND_TRY(tnd_source_set_integer(source, key, c->pooling, error));
    }
    if (c->scores_mean && c->pooling == TANDEM_POOLING_RANK) {
        snprintf(key, sizeof(key), "%s.classifier.pooling_type", architecture);
        TND_TRY(tnd_source_set_integer(source, key, TANDEM_POOLING_MEAN, error));
    }
    if (c->type_vocab_size != TND_NOT_SAID) {
        TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.token_type_count",
                                       c->type_vocab_size, error));
    }
    source->hf_unused_positions = reader->family->pads_positions ? c->pad_token_id + 1 : 0;
    return TANDEM_OK;
}

/* Adds the values of latent attention. Scores are scaled by mscale_all_dim, as in DeepSeek's code
 * and transformers. */
static enum tandem_status add_latent(tandem_source *source, const struct tnd_config_reader *reader,
                                     struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const char *architecture = reader->family->architecture;
    char key[128];
    snprintf(key, sizeof(key), "%s.attention.key_length_mla", architecture);
    TND_TRY(tnd_source_set_integer(source, key, c->qk_nope_head_dim + c->qk_rope_head_dim, error));
    snprintf(key, sizeof(key), "%s.attention.value_length", architecture);
    TND_TRY(tnd_source_set_integer(source, key, c->kv_lora_rank, error));
    snprintf(key, sizeof(key), "%s.expert_gating_func", architecture);
    TND_TRY(tnd_source_set_integer(source, key, reader->family->has_sigmoid ? 2 : 1, error));
    if (strcmp(c->scaling, "yarn") == 0 && !isnan(c->mscale_all_dim)) {
        snprintf(key, sizeof(key), "%s.rope.scaling.yarn_log_multiplier", architecture);
        TND_TRY(tnd_source_set_number(source, key, 0.1 * c->mscale_all_dim, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_hf_add_values(tandem_source *source, const struct tnd_config_reader *reader,
                                     struct tandem_error *error)
{
    const struct tnd_hf_config *config = reader->config;
    const char *architecture = reader->family->architecture;
    char key[128];
    TND_TRY(tnd_source_set_text(source, "general.architecture", architecture, error));
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const char *member = (const char *)config + members[i].offset;
        int64_t integer = 0;
        double number = 0.0;
        if (members[i].key == NULL) {
            continue;
        }
        snprintf(key, sizeof(key), "%s.%s", architecture, members[i].key);
        memcpy(members[i].is_integer ? (void *)&integer : (void *)&number, member, 8);
        if (members[i].is_integer && integer != TND_NOT_SAID) {
            TND_TRY(tnd_source_set_integer(source, key, integer, error));
        } else if (!members[i].is_integer && !isnan(number)) {
            TND_TRY(tnd_source_set_number(source, key, number, error));
        }
    }
    if (config->n_rot > 0) {
        snprintf(key, sizeof(key), "%s.rope.dimension_count", architecture);
        TND_TRY(tnd_source_set_integer(source, key, config->n_rot, error));
    }
    if (config->head_dim != TND_NOT_SAID && !reader->family->is_latent) {
        /* llama.cpp needs both lengths */
        snprintf(key, sizeof(key), "%s.attention.value_length", architecture);
        TND_TRY(tnd_source_set_integer(source, key, config->head_dim, error));
    }
    if (!isnan(config->query_pre_attn_scalar)) {
        snprintf(key, sizeof(key), "%s.attention.scale", architecture);
        TND_TRY(
            tnd_source_set_number(source, key, 1.0 / sqrt(config->query_pre_attn_scalar), error));
    }
    if (config->n_rotated > 0) {
        TND_TRY(tnd_source_set_array(source, "tandem.rope.layers", TND_GGUF_BOOL, config->n_rotated,
                                     config->rotated, (size_t)config->n_rotated, true, error));
    }
    if (tnd_llama_lists(reader->family->own, "use_parallel_residual")) {
        snprintf(key, sizeof(key), "%s.use_parallel_residual", architecture);
        TND_TRY(tnd_source_set_flag(source, key, config->use_parallel_residual, error));
    }
    TND_TRY(tnd_hf_add_scaling(source, architecture, config, error));
    if (config->n_layer_types > 0) {
        snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern", architecture);
        TND_TRY(tnd_source_set_array(source, key, TND_GGUF_BOOL, config->n_layer_types,
                                     config->windowed, (size_t)config->n_layer_types, true, error));
    }
    if (reader->family->expert_hidden > 0) {
        snprintf(key, sizeof(key), "%s.expert_weights_norm", architecture);
        TND_TRY(tnd_source_set_flag(source, key, config->norm_topk_prob, error));
    }
    if (reader->family->is_encoder) {
        TND_TRY(add_encoder(source, reader, error));
    }
    if (reader->family->is_latent) {
        TND_TRY(add_latent(source, reader, error));
    }
    const char *usual = reader->family->activation != NULL ? reader->family->activation : "silu";
    const char *activation = config->activation != NULL ? config->activation : "silu";
    if (strcmp(activation, usual) != 0) {
        TND_TRY(tnd_source_set_text(source, "tandem.activation", activation, error));
    }
    TND_TRY(add_tokens(source, config, error));
    TND_TRY(tnd_hf_add_promises(source, reader, error));
    return tnd_source_set_text(
        source, "tandem.rope.pairs",
        reader->family->is_adjacent && config->rope_interleave ? "adjacent" : "halves", error);
}
