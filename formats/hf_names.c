/* SPDX-License-Identifier: MIT
 * Maps tensor names of Hugging Face's models to the GGUF convention. Sources: the modelling files
 * of transformers (llama, mistral, mixtral, qwen2, qwen3, qwen2_moe, qwen3_moe) and docs/gguf.md of
 * ggml-org/ggml. */
#include <stdio.h>
#include <string.h>

#include "formats/safetensors.h"

static const struct name_row {
    const char *theirs;
    const char *ours;
} whole_names[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"norm.weight", "output_norm.weight"},
    {"norm.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
    {"lm_head.bias", "output.bias"},
    {"wte.weight", "token_embd.weight"},
    {"wpe.weight", "position_embd.weight"},
    {"word_embeddings.weight", "token_embd.weight"},
    {"embed_in.weight", "token_embd.weight"},
    {"embed_out.weight", "output.weight"},
    {"tok_embeddings.weight", "token_embd.weight"},
    {"final_layernorm.weight", "output_norm.weight"},
    {"final_layernorm.bias", "output_norm.bias"},
    {"ln_f.weight", "output_norm.weight"},
    {"ln_f.bias", "output_norm.bias"},
    {"final_layer_norm.weight", "output_norm.weight"},
    {"final_layer_norm.bias", "output_norm.bias"},
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.position_embeddings.weight", "position_embd.weight"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
    {"embeddings.tok_embeddings.weight", "token_embd.weight"},
    {"embeddings.norm.weight", "token_embd_norm.weight"},
    {"final_norm.weight", "output_norm.weight"},
    {"head.dense.weight", "cls.weight"},
    {"head.norm.weight", "cls.norm.weight"},
    {"pooler.dense.weight", "cls.weight"},
    {"pooler.dense.bias", "cls.bias"},
    {"classifier.weight", "cls.output.weight"},
    {"classifier.bias", "cls.output.bias"},
    {"classifier.dense.weight", "cls.weight"},
    {"classifier.dense.bias", "cls.bias"},
    {"classifier.out_proj.weight", "cls.output.weight"},
    {"classifier.out_proj.bias", "cls.output.bias"},
};
/* Names between "layers.N." and the last part (weight, bias). */
static const struct name_row layer_names[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"pre_feedforward_layernorm", "pre_ffw_norm"}, /* gemma2 renames */
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.dense", "attn_output"},
    {"self_attention.query_key_value", "attn_qkv"},
    {"self_attention.dense", "attn_output"},
    {"attention.query_key_value", "attn_qkv"},
    {"attention.dense", "attn_output"},
    {"attention.wqkv", "attn_qkv"},
    {"attention.wo", "attn_output"},
    {"attention_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w3", "ffn_up"},
    {"feed_forward.w2", "ffn_down"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"mlp.fc1", "ffn_up"}, /* phi */
    {"mlp.fc2", "ffn_down"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"ln_attn", "ln_attn"}, /* falcon renames */
    {"ln_mlp", "ln_mlp"},
    {"mlp.router", "ffn_gate_inp"},
    {"self_attn.query_layernorm", "query_norm"},
    {"self_attn.key_layernorm", "key_norm"}, /* hunyuan renames */
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"}, /* split later */
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"attn.Wqkv", "attn_qkv"}, /* modernbert */
    {"attn.Wo", "attn_output"},
    {"attn_norm", "attn_norm"},
    {"mlp_norm", "ffn_norm"},
    {"mlp.Wi", "ffn_up"},
    {"mlp.Wo", "ffn_down"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {"eh_proj", "nextn.eh_proj"}, /* prediction layers (MTP) */
    {"enorm", "nextn.enorm"},
    {"hnorm", "nextn.hnorm"},
    {"embed_tokens", "nextn.embed_tokens"},
    {"shared_head.norm", "nextn.shared_head_norm"},
    {"shared_head.head", "nextn.shared_head_head"},
};
/* Names of a layer's tensors including the last part. */
static const struct name_row layer_wholes[] = {
    {"self_attn.sinks", "attn_sinks.weight"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.experts.gate_up_proj", "gate_up_exps.weight"}, /* gpt-oss; split later */
    {"mlp.experts.gate_up_proj_bias", "gate_up_exps.bias"},
    {"mlp.experts.down_proj", "down_exps_t.weight"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
};
/* Masks and tables in older checkpoints, which we compute. */
static const char *const not_needed[] = {"attn.bias", "attn.masked_bias", "attention.bias",
                                         "attention.masked_bias"};
/* Names between an expert's number and the last part (weight, or that of quantised weights). */
static const struct name_row expert_names[] = {
    {".gate_proj.", "ffn_gate"}, {".up_proj.", "ffn_up"}, {".down_proj.", "ffn_down"},
    {".w1.", "ffn_gate"},        {".w3.", "ffn_up"},      {".w2.", "ffn_down"},
};

/* Maps an expert's matrix to blk.N.ffn_gate.E.weight; hf_experts.c joins those of a layer. False:
 * another tensor. */
static bool map_expert(int digits, const char *number, const char *rest, char *out, size_t capacity)
{
    static const char *const prefixes[] = {"mlp.experts.", "block_sparse_moe.experts."};
    for (size_t p = 0; p < 2; p++) {
        const size_t n = strlen(prefixes[p]);
        const size_t expert_digits =
            strncmp(rest, prefixes[p], n) == 0 ? strspn(rest + n, "0123456789") : 0;
        for (size_t i = 0; expert_digits > 0 && expert_digits < 7 &&
                           i < sizeof(expert_names) / sizeof(expert_names[0]);
             i++) {
            const char *behind = rest + n + expert_digits;
            const size_t length = strlen(expert_names[i].theirs);
            if (strncmp(behind, expert_names[i].theirs, length) == 0 &&
                strchr(behind + length, '.') == NULL) {
                snprintf(out, capacity, "blk.%.*s.%s.%.*s.%s", digits, number, expert_names[i].ours,
                         (int)expert_digits, rest + n, behind + length);
                return true;
            }
        }
    }
    return false;
}

/* Renames LayerNorm.gamma and LayerNorm.beta of checkpoints converted from TensorFlow. */
static const char *newer_name(const char *name, char *out, size_t capacity)
{
    const char *last = strrchr(name, '.');
    const bool is_old = last != NULL && last - name >= 9 && strncmp(last - 9, "LayerNorm", 9) == 0;
    const char *ending = !is_old                       ? NULL
                         : strcmp(last, ".gamma") == 0 ? ".weight"
                         : strcmp(last, ".beta") == 0  ? ".bias"
                                                       : NULL;
    if (ending == NULL || strlen(name) + 2 > capacity) {
        return name;
    }
    snprintf(out, capacity, "%.*s%s", (int)(last - name), name, ending);
    return out;
}

bool tnd_safetensors_map_name(const char *name, char *out, size_t capacity)
{
    char newer[TANDEM_MAX_NAME];
    /* absent if the model was saved without its head */
    static const char *const models[] = {"model.", "transformer.", "gpt_neox.", "bert.",
                                         "roberta."};
    static const char *const prefixes[] = {"layers.", "h.", "encoder.layer."};
    name = newer_name(name, newer, sizeof(newer));
    const char *whole = name;
    if (strstr(name, "embeddings.position_ids") != NULL) { /* 0, 1, 2, ... */
        return false;
    }
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]) && name == whole; i++) {
        name += strncmp(name, models[i], strlen(models[i])) == 0 ? strlen(models[i]) : 0;
    }
    for (size_t i = 0; i < sizeof(whole_names) / sizeof(whole_names[0]); i++) {
        if (strcmp(name, whole_names[i].theirs) == 0) {
            snprintf(out, capacity, "%s", whole_names[i].ours);
            return true;
        }
    }
    snprintf(out, capacity, "%s", whole);
    const char *number = NULL;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && number == NULL; i++) {
        const size_t n = strlen(prefixes[i]);
        number = strncmp(name, prefixes[i], n) == 0 ? name + n : NULL;
    }
    if (number == NULL) {
        return true;
    }
    const size_t digits = strspn(number, "0123456789");
    const char *rest = number + digits + 1;
    const char *last = strrchr(name, '.');
    if (digits == 0 || digits > 9 || number[digits] != '.' || last < rest) {
        return true;
    }
    if (map_expert((int)digits, number, rest, out, capacity)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(layer_wholes) / sizeof(layer_wholes[0]); i++) {
        if (strcmp(rest, layer_wholes[i].theirs) == 0) {
            snprintf(out, capacity, "blk.%.*s.%s", (int)digits, number, layer_wholes[i].ours);
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(not_needed) / sizeof(not_needed[0]); i++) {
        if (strcmp(rest, not_needed[i]) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(layer_names) / sizeof(layer_names[0]); i++) {
        if (strlen(layer_names[i].theirs) == (size_t)(last - rest) &&
            strncmp(rest, layer_names[i].theirs, (size_t)(last - rest)) == 0) {
            snprintf(out, capacity, "blk.%.*s.%s%s", (int)digits, number, layer_names[i].ours,
                     last);
            return true;
        }
    }
    return strstr(rest, "rotary_emb.inv_freq") == NULL; /* a table that we compute */
}
