# SPDX-License-Identifier: MIT
# Random configurations of the architectures other than llama and its close relatives, for models.py:
# their names in transformers, and their differences. Each row must agree with one of
# formats/hf_families.c.
import transformers

VOCABULARY = 40
CLASSES = {
    "gemma": "GemmaConfig", "gemma2": "Gemma2Config", "gemma3_text": "Gemma3TextConfig",
    "phi3": "Phi3Config", "gpt2": "GPT2Config", "gpt_oss": "GptOssConfig",
    "smollm3": "SmolLM3Config", "olmo2": "Olmo2Config", "granite": "GraniteConfig",
    "glm4": "Glm4Config", "glm4_moe": "Glm4MoeConfig", "stablelm": "StableLmConfig",
    "falcon": "FalconConfig", "gpt_neox": "GPTNeoXConfig", "starcoder2": "Starcoder2Config",
    "cohere": "CohereConfig", "cohere2": "Cohere2Config", "ernie4_5": "Ernie4_5Config",
    "hunyuan_v1_dense": "HunYuanDenseV1Config", "deepseek_v2": "DeepseekV2Config",
    "deepseek_v3": "DeepseekV3Config", "arcee": "ArceeConfig", "seed_oss": "SeedOssConfig",
    "phi": "PhiConfig", "olmo3": "Olmo3Config",
}
FAMILIES = {name: getattr(transformers, c) for name, c in CLASSES.items() if hasattr(transformers, c)}
WITH_HEAD_DIM = ("hunyuan_v1_dense", "gemma", "gemma2", "gemma3_text", "gpt_oss", "glm4", "ernie4_5",
                 "seed_oss")
PARTIAL = ("phi3", "glm4", "glm4_moe", "stablelm", "gpt_neox", "phi")
LAYER_NORM = ("gpt2", "stablelm", "falcon", "gpt_neox", "starcoder2", "cohere", "cohere2",
              "phi")


def scale(rng, kind):
    rope = {"rope_type": kind, "rope_theta": rng.choice([10000.0, 500000.0, 777.0])}
    if kind in ("linear", "dynamic", "yarn"):
        rope["factor"] = rng.choice([2.0, 4.0])
    if kind == "yarn":
        rope.update(original_max_position_embeddings=32, truncate=rng.random() < 0.5)
    return rope


def random_rope(rng, family, head_dim):
    if family == "gemma3_text":
        return {"full_attention": scale(rng, rng.choice(["default", "linear"])),
                "sliding_attention": scale(rng, "default")}
    if family == "olmo3":
        return {"full_attention": scale(rng, rng.choice(["default", "linear", "yarn"])),
                "sliding_attention": scale(rng, "default")}
    if family == "gpt_oss":
        return scale(rng, "yarn")
    if family == "phi3":
        partial = rng.choice([1.0, 0.5])
        n = int(head_dim * partial) // 2
        if rng.random() < 0.5:
            return {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": partial}
        return {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": partial,
                "short_factor": [rng.uniform(1, 1.5) for _ in range(n)],
                "long_factor": [rng.uniform(1, 9) for _ in range(n)]}
    rope = scale(rng, rng.choice(["default"] * 3 + ["linear", "yarn"]))
    if family in PARTIAL:
        rope["partial_rotary_factor"] = rng.choice([0.25, 0.5, 1.0])
    return rope


def random_latent(rng, family):
    """DeepSeek's: latent attention, experts in groups, shared ones."""
    heads, layers, rot = rng.choice([1, 2, 4]), rng.choice([1, 2, 3]), rng.choice([4, 8, 16])
    groups = rng.choice([1, 2, 4])
    experts = groups * rng.choice([2, 3])
    used_groups = rng.randrange(1, groups + 1)
    rope = {"rope_type": "default", "rope_theta": rng.choice([10000.0, 777.0])}
    if rng.random() < 0.4:
        rope.update(rope_type="yarn", factor=rng.choice([2.0, 4.0]),
                    original_max_position_embeddings=32)
        if rng.random() < 0.7:
            rope.update(mscale=rng.choice([0.707, 1.0]), mscale_all_dim=rng.choice([0.707, 1.0]))
    o = dict(num_attention_heads=heads, num_key_value_heads=heads, num_hidden_layers=layers,
             hidden_size=heads * rng.choice([8, 16]), intermediate_size=rng.choice([24, 33]),
             vocab_size=VOCABULARY, max_position_embeddings=64, bos_token_id=1, eos_token_id=2,
             pad_token_id=0, rms_norm_eps=rng.choice([1e-6, 1e-3]), rope_parameters=rope,
             q_lora_rank=rng.choice([None, 12, 24]), kv_lora_rank=rng.choice([8, 16, 20]),
             qk_nope_head_dim=rng.choice([4, 6, 16]), qk_rope_head_dim=rot,
             v_head_dim=rng.choice([4, 8, 10]), n_routed_experts=experts, n_group=groups,
             topk_group=used_groups, n_shared_experts=rng.choice([1, 2]),
             num_experts_per_tok=rng.randrange(1, experts // groups * used_groups + 1),
             moe_intermediate_size=rng.choice([8, 24]), routed_scaling_factor=rng.choice([1.0, 2.5]),
             first_k_dense_replace=rng.randrange(0, layers + 1),
             tie_word_embeddings=rng.random() < 0.3)
    if family == "deepseek_v2":
        o["topk_method"] = rng.choice(["greedy", "group_limited_greedy"])
    else:
        o.update(norm_topk_prob=rng.random() < 0.7, rope_interleave=rng.random() < 0.7)
    return o


def random_options(rng, family):
    """Options of transformers' configuration of a family."""
    if family.startswith("deepseek"):
        return random_latent(rng, family)
    kv_heads = rng.choice([1, 2, 3])
    heads = kv_heads * rng.choice([1, 2, 3])
    head_dim = rng.choice([8, 16, 32])
    layers = rng.choice([1, 2, 3, 4, 5])
    o = dict(num_attention_heads=heads, num_key_value_heads=kv_heads, num_hidden_layers=layers,
             hidden_size=heads * head_dim, intermediate_size=rng.choice([24, 33, 64, 100]),
             vocab_size=VOCABULARY, max_position_embeddings=rng.choice([32, 64, 2048]),
             bos_token_id=1, eos_token_id=rng.choice([2, [2, 7]]), pad_token_id=0)
    if family == "gpt2":
        return dict(n_head=heads, n_layer=layers, n_embd=heads * head_dim, vocab_size=VOCABULARY,
                    n_positions=rng.choice([32, 64]), n_inner=rng.choice([None, 24, 33]),
                    activation_function=rng.choice(["gelu_new", "relu", "gelu"]),
                    layer_norm_epsilon=rng.choice([1e-5, 1e-3]), bos_token_id=1, eos_token_id=2)
    o["rope_parameters"] = random_rope(rng, family, head_dim)
    eps = {"falcon": "layer_norm_epsilon", "starcoder2": "norm_epsilon"}.get(
        family, "layer_norm_eps" if family in LAYER_NORM else "rms_norm_eps")
    o[eps] = rng.choice([1e-6, 1e-5, 1e-3])
    if family in WITH_HEAD_DIM:
        o["head_dim"] = head_dim
    if family in ("gemma2", "gemma3_text", "gpt_oss", "cohere2", "olmo3"):
        o["sliding_window"] = rng.choice([2, 5, 9, 64])
        if rng.random() < 0.4:
            o["layer_types"] = [rng.choice(["full_attention", "sliding_attention"])
                                for _ in range(layers)]
    if family in ("phi3", "starcoder2"):
        o["sliding_window"] = rng.choice([None, 4, 9])
    if family in ("gemma2", "gemma3_text"):
        o.update(query_pre_attn_scalar=rng.choice([8, 20, 256]),
                 hidden_activation=rng.choice(["gelu_pytorch_tanh", "gelu", "silu"]),
                 final_logit_softcapping=rng.choice([None, 3.0, 30.0]))
    if family == "gemma2":  # gemma3's cap is read by nobody: refused
        o["attn_logit_softcapping"] = rng.choice([None, 2.0, 50.0])
    if family in ("gemma", "gemma2", "gemma3_text", "smollm3", "olmo2", "granite", "glm4", "cohere",
                  "cohere2", "hunyuan_v1_dense", "glm4_moe", "gpt_neox", "gpt_oss", "arcee",
                  "seed_oss", "olmo3"):
        o["attention_bias"] = rng.random() < 0.5
    if family in ("smollm3", "granite", "arcee", "seed_oss"):
        o["mlp_bias"] = rng.random() < 0.5
    if family == "seed_oss":
        o["attention_out_bias"] = rng.random() < 0.5
    if family in ("arcee", "phi"):
        o["hidden_act"] = rng.choice(["relu2", "gelu_new", "silu"])
    if family == "smollm3" and rng.random() < 0.6:
        o["no_rope_layers"] = [rng.randrange(2) for _ in range(layers)]
    elif family == "smollm3":
        o["no_rope_layer_interval"] = rng.choice([1, 2, 4])
    if family == "granite":
        o.update(embedding_multiplier=rng.choice([1.0, 12.0]), logits_scaling=rng.choice([1.0, 8.0]),
                 residual_multiplier=rng.choice([1.0, 0.22]),
                 attention_multiplier=rng.choice([1.0, 0.0625]))
    if family in ("cohere", "cohere2"):
        o["logit_scale"] = rng.choice([0.0625, 1.0])
    if family == "cohere":
        o["use_qk_norm"] = rng.random() < 0.5
    if family == "stablelm":
        o.update(use_qkv_bias=rng.random() < 0.5, use_parallel_residual=rng.random() < 0.5)
    if family == "gpt_neox":
        o.update(use_parallel_residual=rng.random() < 0.5)
        del o["num_key_value_heads"]
    if family in ("starcoder2", "ernie4_5"):
        o["use_bias"] = rng.random() < 0.5
    if family == "falcon":
        new = rng.random() < 0.5
        o.update(new_decoder_architecture=new, multi_query=rng.random() < 0.7,
                 bias=rng.random() < 0.5, ffn_hidden_size=o.pop("intermediate_size"))
        del o["num_key_value_heads"]
        if new:
            o.update(num_kv_heads=kv_heads, num_ln_in_parallel_attn=rng.choice([None, 1, 2]))
    if family in ("gpt_oss", "glm4_moe"):
        experts = rng.choice([2, 4, 8])
        o["num_experts_per_tok"] = rng.randrange(1, experts + 1)
        o["num_local_experts" if family == "gpt_oss" else "n_routed_experts"] = experts
    if family == "glm4_moe":
        o.update(moe_intermediate_size=rng.choice([8, 24]), n_shared_experts=rng.choice([1, 2]),
                 routed_scaling_factor=rng.choice([1.0, 2.5]), norm_topk_prob=rng.random() < 0.7,
                 first_k_dense_replace=rng.randrange(0, layers + 1), use_qk_norm=rng.random() < 0.5)
    if family in ("gemma", "gemma2", "gemma3_text", "granite", "phi3", "starcoder2", "arcee",
                  "seed_oss", "phi"):
        o["tie_word_embeddings"] = rng.random() < 0.5
    return o
