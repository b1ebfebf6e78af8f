/* SPDX-License-Identifier: MIT
 * Names of tensors of Hugging Face's models in the GGUF convention, after the modelling files of
 * transformers (llama, mistral, qwen2, qwen3) and docs/gguf.md of ggml-org/ggml. */
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
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},       {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
};

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
