/* SPDX-License-Identifier: MIT
 * Names of tensors of Hugging Face's models in the GGUF convention, after the modelling files of
 * transformers (llama, mistral, mixtral, qwen2, qwen3, qwen2_moe, qwen3_moe) and docs/gguf.md of
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
    {"lm_head.weight", "output.weight"},
};
/* Behind layers.N. up to the last part (weight, bias). */
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
};
/* Behind the number of an expert. */
static const struct name_row expert_names[] = {
    {".gate_proj.weight", "ffn_gate"}, {".up_proj.weight", "ffn_up"},
    {".down_proj.weight", "ffn_down"}, {".w1.weight", "ffn_gate"},
    {".w3.weight", "ffn_up"},          {".w2.weight", "ffn_down"},
};

/* An expert's own matrix, blk.N.ffn_gate.E.weight: those of a layer are put together when all are
 * there (hf_experts.c). False: it is none. */
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
            if (strcmp(rest + n + expert_digits, expert_names[i].theirs) == 0) {
                snprintf(out, capacity, "blk.%.*s.%s.%.*s.weight", digits, number,
                         expert_names[i].ours, (int)expert_digits, rest + n);
                return true;
            }
        }
    }
    return false;
}

bool tnd_safetensors_map_name(const char *name, char *out, size_t capacity)
{
    static const char model[] = "model."; /* left out where the model was saved without its head */
    static const char prefix[] = "layers.";
    const char *whole = name;
    name += strncmp(name, model, sizeof(model) - 1) == 0 ? sizeof(model) - 1 : 0;
    for (size_t i = 0; i < sizeof(whole_names) / sizeof(whole_names[0]); i++) {
        if (strcmp(name, whole_names[i].theirs) == 0) {
            snprintf(out, capacity, "%s", whole_names[i].ours);
            return true;
        }
    }
    snprintf(out, capacity, "%s", whole);
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
        return true;
    }
    const char *number = name + sizeof(prefix) - 1;
    const size_t digits = strspn(number, "0123456789");
    const char *rest = number + digits + 1;
    const char *last = strrchr(name, '.');
    if (digits == 0 || digits > 9 || number[digits] != '.' || last < rest) {
        return true;
    }
    if (map_expert((int)digits, number, rest, out, capacity)) {
        return true;
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
