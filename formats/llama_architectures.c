/* SPDX-License-Identifier: MIT
 * Architectures as data: what differs between them, one row each, as their files of the GGUF
 * convention have it. The forward pass (llama/forward.c) knows no names. Facts: docs/gguf.md of
 * ggml-org/ggml; gguf-py/gguf/constants.py, tensor_mapping.py and convert_hf_to_gguf.py of
 * ggml-org/llama.cpp for keys, tensors and the order of rows; the modelling files of
 * huggingface/transformers for the formulas. docs/architectures.md has them as a table. */
#include <string.h>

#include "formats/llama_tensors.h"

#define HALVES           TANDEM_ROPE_HALVES
#define ADJACENT         TANDEM_ROPE_ADJACENT
#define BIASES           (TND_HAS(QKV_BIAS) | TND_HAS(OUTPUT_BIAS) | TND_HAS(FFN_BIAS))
#define FUSABLE          (TND_HAS(FUSED_QKV) | TND_HAS(FUSED_QKV_BIAS)) /* with QKV among `lacks` */
#define NO_W1            (TND_HAS(FFN_W1) | TND_HAS(FFN_W1_BIAS))
#define BEFORE           (TND_HAS(ATTN_NORM) | TND_HAS(FFN_NORM)) /* norms before the blocks */
#define NO_CLASSIFIER    (TND_HAS(OUTPUT) | TND_HAS(FINAL_NORM))
#define NORMED_EMBEDDING (TND_HAS(EMBEDDING_NORM) | TND_HAS(EMBEDDING_NORM_BIAS))

static const struct tnd_llama_architecture rows[] = {
    {.name = "llama", .pairs = ADJACENT, .may_have_experts = true, .has_normed_experts = true},
    {.name = "mistral", .pairs = ADJACENT},
    {.name = "qwen2", .pairs = HALVES, .has = TND_HAS(QKV_BIAS)},
    {.name = "qwen3", .pairs = HALVES, .has = TND_HAS(HEAD_NORM)},
    {.name = "qwen2moe",
     .pairs = HALVES,
     .has = TND_HAS(QKV_BIAS) | TND_HAS(SHARED) | TND_HAS(SHARED_SHARE),
     .must_have_experts = true},
    {.name = "qwen3moe",
     .pairs = HALVES,
     .has = TND_HAS(HEAD_NORM),
     .must_have_experts = true,
     .has_normed_experts = true},
    {.name = "gemma",
     .pairs = HALVES,
     .activation = TANDEM_ACTIVATION_GELU_TANH,
     .scales_embedding = true},
    {.name = "gemma2",
     .pairs = HALVES,
     .has = TND_HAS(POST_NORM),
     .activation = TANDEM_ACTIVATION_GELU_TANH,
     .scales_embedding = true,
     .window_period = 2,
     .wide_layers = 46, /* those of 27B */
     .keys = "attn_logit_softcapping final_logit_softcapping attention.scale"},
    {.name = "gemma3",
     .pairs = HALVES,
     .has = TND_HAS(POST_NORM) | TND_HAS(HEAD_NORM),
     .activation = TANDEM_ACTIVATION_GELU_TANH,
     .scales_embedding = true,
     .window_period = 6,
     .window_freq_base = 10000.0f,
     .wide_layers = 62, /* those of 27B */
     .keys = "rope.freq_base_swa final_logit_softcapping attention.scale"},
    {.name = "phi3",
     .pairs = HALVES,
     .has = TND_HAS(FUSED_QKV) | TND_HAS(FUSED_FFN),
     .lacks = TND_HAS(QKV) | TND_HAS(FFN_UP) | NO_W1,
     .may_have_divisors = true},
    {.name = "gpt2",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = FUSABLE | TND_HAS(POSITIONS) | TND_HAS(NORM_BIAS) | TND_HAS(FFN_NORM_BIAS) |
            TND_HAS(OUTPUT_BIAS) | TND_HAS(FFN_BIAS),
     .lacks = TND_HAS(QKV) | NO_W1,
     .activation = TANDEM_ACTIVATION_GELU_TANH,
     .keys = "attention.layer_norm_epsilon"},
    {.name = "gpt-oss",
     .pairs = HALVES,
     .has = TND_HAS(QKV_BIAS) | TND_HAS(OUTPUT_BIAS) | TND_HAS(SINKS) | TND_HAS(EXPERT_BIAS) |
            TND_HAS(LATE_FFN_NORM),
     .lacks = TND_HAS(FFN_NORM),
     .must_have_experts = true,
     .has_normed_experts = true,
     .activation = TANDEM_ACTIVATION_CLAMPED,
     .window_period = 2},
    {.name = "smollm3", .pairs = ADJACENT, .rope_period = 4},
    {.name = "olmo2",
     .pairs = HALVES,
     .has = TND_HAS(POST_NORM) | TND_HAS(WIDE_NORM),
     .lacks = TND_HAS(ATTN_NORM) | TND_HAS(FFN_NORM),
     .window_period = 4, /* OLMo 3; OLMo 2 has no windows */
     .has_plain_windows = true,
     .keys = "rope.freq_base_swa"},
    {.name = "granite",
     .pairs = ADJACENT,
     .divides_logits = true,
     .keys = "embedding_scale residual_scale attention.scale logit_scale"},
    {.name = "glm4",
     .pairs = ADJACENT,
     .has = TND_HAS(POST_NORM) | TND_HAS(FUSED_FFN),
     .lacks = TND_HAS(FFN_UP) | NO_W1},
    {.name = "glm4moe",
     .pairs = HALVES,
     .has = TND_HAS(SHARED) | TND_HAS(CHOICE_BIAS) | TND_HAS(LATE_FFN_NORM),
     .may = TND_HAS(HEAD_NORM) | TND_HAS(QKV_BIAS),
     .lacks = TND_HAS(FFN_NORM),
     .must_have_experts = true,
     .has_normed_experts = true,
     .router = TANDEM_ROUTER_SIGMOID,
     .keys = "leading_dense_block_count expert_gating_func expert_weights_scale "
             "expert_shared_count expert_group_count expert_group_used_count "
             "nextn_predict_layers"},
    {.name = "stablelm",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = TND_HAS(NORM_BIAS),
     .may = TND_HAS(FFN_NORM_BIAS) | TND_HAS(HEAD_NORMS) | TND_HAS(QKV_BIAS),
     .keys = "use_parallel_residual attention.layer_norm_epsilon"},
    {.name = "falcon",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = TND_HAS(FUSED_QKV) | TND_HAS(NORM_BIAS),
     .may =
         TND_HAS(SECOND_NORM) | TND_HAS(FUSED_QKV_BIAS) | TND_HAS(OUTPUT_BIAS) | TND_HAS(FFN_BIAS),
     .lacks = TND_HAS(QKV) | TND_HAS(FFN_NORM) | NO_W1,
     .activation = TANDEM_ACTIVATION_GELU,
     .is_parallel = true,
     .keys = "attention.layer_norm_epsilon"},
    {.name = "gptneox",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = TND_HAS(FUSED_QKV) | TND_HAS(NORM_BIAS) | TND_HAS(FFN_NORM_BIAS) | TND_HAS(FFN_BIAS),
     .may = TND_HAS(FUSED_QKV_BIAS) | TND_HAS(OUTPUT_BIAS),
     .lacks = TND_HAS(QKV) | NO_W1,
     .activation = TANDEM_ACTIVATION_GELU,
     .is_parallel = true,
     .keys = "use_parallel_residual attention.layer_norm_epsilon"},
    {.name = "starcoder2",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = TND_HAS(NORM_BIAS) | TND_HAS(FFN_NORM_BIAS),
     .may = BIASES,
     .lacks = NO_W1,
     .activation = TANDEM_ACTIVATION_GELU_TANH,
     .keys = "attention.layer_norm_epsilon"},
    {.name = "command-r",
     .pairs = ADJACENT,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .may = TND_HAS(HEAD_NORMS) | TND_HAS(QKV_BIAS) | TND_HAS(OUTPUT_BIAS),
     .lacks = TND_HAS(FFN_NORM),
     .is_parallel = true,
     .keys = "logit_scale attention.layer_norm_epsilon"},
    {.name = "cohere2",
     .pairs = ADJACENT,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .may = TND_HAS(QKV_BIAS) | TND_HAS(OUTPUT_BIAS),
     .lacks = TND_HAS(FFN_NORM),
     .is_parallel = true,
     .is_rotated_in_windows = true,
     .window_period = 4,
     .keys = "logit_scale attention.layer_norm_epsilon"},
    {.name = "internlm2", .pairs = ADJACENT},
    {.name = "minicpm",
     .pairs = ADJACENT,
     .divides_logits = true,
     .keys = "embedding_scale residual_scale logit_scale",
     .needs = "embedding_scale residual_scale logit_scale"},
    {.name = "ernie4_5", .pairs = ADJACENT},
    {.name = "bert",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has =
         TND_HAS(TOKEN_TYPES) | TND_HAS(POSITIONS) | NORMED_EMBEDDING | TND_HAS(SUM_NORM) | BIASES,
     .lacks = BEFORE | NO_W1 | NO_CLASSIFIER,
     .activation = TANDEM_ACTIVATION_GELU,
     .is_encoder = true,
     .keys = "attention.layer_norm_epsilon"},
    {.name = "nomic-bert",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = TND_HAS(TOKEN_TYPES) | NORMED_EMBEDDING | TND_HAS(SUM_NORM) | TND_HAS(FUSED_QKV),
     .lacks = BEFORE | TND_HAS(QKV) | NO_CLASSIFIER,
     .is_encoder = true,
     .keys = "attention.layer_norm_epsilon"},
    {.name = "modern-bert",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = TND_HAS(EMBEDDING_NORM) | TND_HAS(FUSED_QKV) | TND_HAS(FUSED_FFN),
     .lacks = TND_HAS(QKV) | TND_HAS(FFN_UP) | NO_W1 | TND_HAS(OUTPUT),
     .activation = TANDEM_ACTIVATION_GELU,
     .is_encoder = true,
     .is_first_bare = true,
     .has_wide_first = true,
     .has_normed_scores = true,
     .window_period = 3,
     .window_freq_base = 10000.0f,
     .keys = "attention.layer_norm_epsilon rope.freq_base_swa"},
    {.name = "deepseek2",
     .pairs = ADJACENT,
     .has = TND_HAS(SHARED) | TND_HAS(LATENT_KV) | TND_HAS(LATENT_HEADS),
     .lacks = TND_HAS(QKV),
     .must_have_experts = true,
     .may_have_sigmoid = true,
     .is_latent = true,
     .keys = "leading_dense_block_count expert_gating_func expert_weights_scale "
             "expert_shared_count expert_group_count expert_group_used_count "
             "attention.kv_lora_rank attention.q_lora_rank attention.key_length_mla "
             "attention.value_length_mla rope.scaling.yarn_log_multiplier nextn_predict_layers"},
    {.name = "arcee", .pairs = ADJACENT, .lacks = NO_W1, .activation = TANDEM_ACTIVATION_RELU2},
    {.name = "seed_oss",
     .pairs = HALVES,
     .has = TND_HAS(LATE_FFN_NORM),
     .lacks = TND_HAS(FFN_NORM)},
    {.name = "phi2",
     .pairs = HALVES,
     .norm = TANDEM_LLAMA_LAYER_NORM,
     .has = BIASES | TND_HAS(NORM_BIAS) | TND_HAS(CLASSIFIER_BIAS),
     .lacks = TND_HAS(FFN_NORM) | NO_W1,
     .activation = TANDEM_ACTIVATION_GELU_TANH,
     .is_parallel = true,
     .keys = "attention.layer_norm_epsilon"},
    {.name = "hunyuan-dense", .pairs = HALVES, .has = TND_HAS(HEAD_NORM), .norms_after_rope = true},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct tnd_llama_architecture *tnd_llama_architecture_at(int i)
{
    return i >= 0 && i < N_ROWS ? &rows[i] : NULL;
}

const struct tnd_llama_architecture *tnd_llama_architecture_of(const char *name)
{
    for (int i = 0; i < N_ROWS; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

bool tnd_llama_lists(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, " ");
        if (length == n && strncmp(at, name, n) == 0) {
            return true;
        }
        at += length + strspn(at + length, " ");
    }
    return false;
}
