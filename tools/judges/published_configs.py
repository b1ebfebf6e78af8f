# SPDX-License-Identifier: MIT
# Members of config.json as published checkpoints have them, beyond what transformers writes today:
# older names, leftovers of training, members of code that came with the model. models.py saves small
# random models under them. Sizes are those of the checkpoints; small() makes them small.
import copy

LLAMA3 = {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
          "original_max_position_embeddings": 8192, "rope_type": "llama3"}
BASE = {"attention_dropout": 0.0, "initializer_range": 0.02, "torch_dtype": "bfloat16",
        "transformers_version": "4.48.0", "use_cache": True, "hidden_act": "silu"}


def sizes(hidden, wide, layers, heads, kv_heads, vocabulary, positions, **more):
    return {**BASE, "hidden_size": hidden, "intermediate_size": wide, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "vocab_size": vocabulary,
            "max_position_embeddings": positions, "bos_token_id": 1, "eos_token_id": 2, **more}


YARN_V2 = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
           "original_max_position_embeddings": 4096, "type": "yarn"}
DEEPSEEK = dict(aux_loss_alpha=0.001, seq_aux=True, ep_size=1, moe_layer_freq=1, kv_lora_rank=512,
                pretraining_tp=1, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
                rms_norm_eps=1e-6, rope_theta=10000, attention_bias=False, tie_word_embeddings=False)
PHI3 = dict(auto_map={"AutoConfig": "configuration_phi3.Phi3Config"}, embd_pdrop=0.0, resid_pdrop=0.0,
            rms_norm_eps=1e-5, attention_bias=False, bos_token_id=1, eos_token_id=32000,
            pad_token_id=32000, rope_theta=10000.0)
BERT = dict(attention_probs_dropout_prob=0.1, hidden_act="gelu", hidden_dropout_prob=0.1,
            hidden_size=384, initializer_range=0.02, intermediate_size=1536, layer_norm_eps=1e-12,
            num_attention_heads=12, num_hidden_layers=6, position_embedding_type="absolute",
            use_cache=True, transformers_version="4.8.2", gradient_checkpointing=False)
MODELS = {
    "llama": {
        "Llama 2": sizes(4096, 11008, 32, 32, 32, 32000, 4096, rms_norm_eps=1e-5, rope_scaling=None,
                         pretraining_tp=1, tie_word_embeddings=False, pad_token_id=0),
        "Llama 3.2": sizes(2048, 8192, 16, 32, 8, 128256, 131072, rms_norm_eps=1e-5, head_dim=64,
                           rope_scaling=LLAMA3, rope_theta=500000.0, tie_word_embeddings=True,
                           mlp_bias=False, attention_bias=False, eos_token_id=[128001, 128008]),
        "TinyLlama": sizes(2048, 5632, 22, 32, 4, 32000, 2048, rms_norm_eps=1e-5, rope_scaling=None,
                           max_sequence_length=2048, head_dim=None),
        "no num_key_value_heads": sizes(4096, 11008, 32, 32, None, 32000, 4096, rms_norm_eps=1e-6),
        "SmolLM2": sizes(576, 1536, 30, 9, 3, 49152, 8192, rms_norm_eps=1e-5, rope_interleaved=False,
                         is_llama_config=True, rope_theta=100000, tie_word_embeddings=True,
                         **{"transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}}),
    },
    "mistral": {
        "Mistral 7B": sizes(4096, 14336, 32, 32, 8, 32000, 32768, rms_norm_eps=1e-5,
                            rope_theta=10000.0, sliding_window=4096, tie_word_embeddings=False),
        "Mistral NeMo": sizes(5120, 14336, 40, 32, 8, 131072, 131072, rms_norm_eps=1e-5, head_dim=128,
                              rope_theta=1000000.0, sliding_window=None, tie_word_embeddings=False)},
    "mixtral": {
        "Mixtral 8x7B": sizes(4096, 14336, 32, 32, 8, 32000, 32768, rms_norm_eps=1e-5,
                              num_experts_per_tok=2, num_local_experts=8, output_router_logits=False,
                              rope_theta=1000000.0, router_aux_loss_coef=0.02, sliding_window=None)},
    "qwen2": {
        "Qwen2.5": sizes(896, 4864, 24, 14, 2, 151936, 32768, max_window_layers=21, rms_norm_eps=1e-6,
                         rope_theta=1000000.0, sliding_window=32768, use_sliding_window=False,
                         use_mrope=False, tie_word_embeddings=True),
        "Qwen2.5 1M": sizes(896, 4864, 24, 14, 2, 151936, 32768, max_window_layers=21,
                            rms_norm_eps=1e-6, rope_theta=1e7, sliding_window=32768,
                            use_sliding_window=False,
                            rope_scaling={"type": "yarn", "factor": 4.0,
                                          "original_max_position_embeddings": 32768}),
        "DeepSeek R1 Distill": sizes(1536, 8960, 28, 12, 2, 151936, 131072, max_window_layers=21,
                                     rms_norm_eps=1e-6, rope_theta=10000, sliding_window=4096,
                                     use_sliding_window=False, use_mrope=False)},
    "qwen3": {
        "Qwen3": sizes(1024, 3072, 28, 16, 8, 151936, 40960, attention_bias=False, head_dim=128,
                       max_window_layers=28, rms_norm_eps=1e-6, rope_scaling=None,
                       rope_theta=1000000, sliding_window=None, use_sliding_window=False,
                       tie_word_embeddings=True)},
    "qwen2_moe": {
        "Qwen1.5 MoE": sizes(2048, 5632, 24, 16, 16, 151936, 8192, decoder_sparse_step=1,
                             max_window_layers=21, moe_intermediate_size=1408, norm_topk_prob=False,
                             num_experts=60, num_experts_per_tok=4, output_router_logits=False,
                             rms_norm_eps=1e-6, rope_theta=1000000.0, router_aux_loss_coef=0.001,
                             shared_expert_intermediate_size=5632, sliding_window=32768,
                             use_sliding_window=False)},
    "qwen3_moe": {
        "Qwen3 30B A3B": sizes(2048, 6144, 48, 32, 4, 151936, 40960, attention_bias=False, head_dim=128,
                               decoder_sparse_step=1, max_window_layers=48, mlp_only_layers=[],
                               moe_intermediate_size=768, norm_topk_prob=True, num_experts=128,
                               num_experts_per_tok=8, output_router_logits=False, rms_norm_eps=1e-6,
                               rope_scaling=None, rope_theta=1000000.0, sliding_window=None,
                               router_aux_loss_coef=0.001, use_sliding_window=False)},
    "gemma": {"Gemma 2B": sizes(2048, 16384, 18, 8, 1, 256000, 8192, attention_bias=False, head_dim=256,
                                hidden_act="gelu", hidden_activation=None, rms_norm_eps=1e-6,
                                rope_scaling=None, rope_theta=10000.0, pad_token_id=0)},
    "gemma2": {"Gemma 2": sizes(2304, 9216, 26, 8, 4, 256000, 8192, attention_bias=False, head_dim=256,
                                attn_logit_softcapping=50.0, final_logit_softcapping=30.0,
                                cache_implementation="hybrid", query_pre_attn_scalar=256,
                                hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
                                rms_norm_eps=1e-6, rope_theta=10000.0, sliding_window=4096)},
    "gemma3_text": {
        "Gemma 3 1B": sizes(1152, 6912, 26, 4, 1, 262144, 32768, attention_bias=False, head_dim=256,
                            attn_logit_softcapping=None, final_logit_softcapping=None,
                            cache_implementation="hybrid", query_pre_attn_scalar=256,
                            hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6,
                            rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000,
                            sliding_window=512, sliding_window_pattern=6)},
    "phi": {
        "Phi-1.5": sizes(2048, 8192, 24, 32, None, 51200, 2048, hidden_act="gelu_new",
                         embd_pdrop=0.0, resid_pdrop=0.0, layer_norm_eps=1e-5, rope_scaling=None,
                         partial_rotary_factor=0.5, qk_layernorm=False, rope_theta=10000.0,
                         bos_token_id=None, eos_token_id=None, tie_word_embeddings=False)},
    "seed_oss": {
        "Seed-OSS": sizes(5120, 27648, 64, 80, 8, 155136, 524288, rms_norm_eps=1e-6, head_dim=128,
                          attention_bias=True, attention_out_bias=False, mlp_bias=False,
                          residual_dropout=0.1, rope_scaling={"rope_type": "default"},
                          rope_theta=1e7, bos_token_id=0, eos_token_id=2, pad_token_id=1,
                          pretraining_tp=1, tie_word_embeddings=False)},
    "phi3": {
        "Phi-3 mini": sizes(3072, 8192, 32, 32, 32, 32064, 4096, **PHI3, rope_scaling=None,
                            original_max_position_embeddings=4096, sliding_window=2047),
        "Phi-3 mini 128k": sizes(3072, 8192, 32, 32, 32, 32064, 131072, **PHI3, sliding_window=262144,
                                 original_max_position_embeddings=4096,
                                 rope_scaling={"type": "longrope", "long_factor": [1.5] * 48,
                                               "short_factor": [1.05] * 48}),
        "Phi-4": sizes(5120, 17920, 40, 40, 10, 100352, 16384, embd_pdrop=0.0, resid_pdrop=0.0,
                       attention_bias=False, original_max_position_embeddings=16384,
                       rms_norm_eps=1e-5, rope_scaling=None, rope_theta=250000, sliding_window=None),
        "Phi-4 mini": sizes(3072, 8192, 32, 24, 8, 200064, 131072, **{
            **PHI3, "full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False,
            "mlp_bias": False, "original_max_position_embeddings": 4096,
            "partial_rotary_factor": 0.75, "sliding_window": 262144, "tie_word_embeddings": True,
            "rope_scaling": {"type": "longrope", "long_factor": [1.5] * 48,
                             "short_factor": [1.0] * 48}})},
    "gpt2": {
        "GPT-2": dict(activation_function="gelu_new", attn_pdrop=0.1, bos_token_id=50256,
                      embd_pdrop=0.1, eos_token_id=50256, initializer_range=0.02, n_embd=768,
                      layer_norm_epsilon=1e-5, n_ctx=1024, n_head=12, n_layer=12, n_positions=1024,
                      resid_pdrop=0.1, summary_activation=None, summary_first_dropout=0.1,
                      summary_proj_to_labels=True, summary_type="cls_index", summary_use_proj=True,
                      task_specific_params={"text-generation": {"do_sample": True, "max_length": 50}},
                      vocab_size=50257)},
    "gpt_oss": {
        "gpt-oss": sizes(2880, 2880, 24, 64, 8, 201088, 131072, attention_bias=True, head_dim=64,
                         experts_per_token=4, initial_context_length=4096, num_experts_per_tok=4,
                         layer_types=["sliding_attention", "full_attention"] * 12,
                         num_local_experts=32, output_router_logits=False, rms_norm_eps=1e-5,
                         rope_scaling={"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                                       "original_max_position_embeddings": 4096,
                                       "rope_type": "yarn", "truncate": False},
                         rope_theta=150000, router_aux_loss_coef=0.9, sliding_window=128,
                         swiglu_limit=7.0, pad_token_id=199999, tie_word_embeddings=False)},
    "smollm3": {
        "SmolLM3": sizes(2048, 11008, 36, 16, 4, 128256, 65536, attention_bias=False, mlp_bias=False,
                         layer_types=["full_attention"] * 36, max_window_layers=28,
                         no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0] * 9, pretraining_tp=2,
                         rms_norm_eps=1e-6, rope_scaling=None, rope_theta=5000000.0,
                         sliding_window=None, use_sliding_window=False, pad_token_id=128004)},
    "olmo2": {"OLMo 2": sizes(4096, 11008, 32, 32, 32, 100352, 4096, attention_bias=False,
                              rms_norm_eps=1e-6, rope_scaling=None, rope_theta=500000,
                              tie_word_embeddings=False, pad_token_id=100277)},
    "olmo3": {"OLMo 3": sizes(4096, 11008, 32, 32, 32, 100278, 65536, attention_bias=False,
                              layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 8,
                              rms_norm_eps=1e-6, rope_theta=500000, sliding_window=4096,
                              rope_scaling={"attention_factor": 1.2079441541679836,
                                            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
                                            "original_max_position_embeddings": 8192,
                                            "rope_type": "yarn"},
                              tie_word_embeddings=False, pad_token_id=100277)},
    "granite": {"Granite 3.3": sizes(2048, 8192, 40, 32, 8, 49159, 131072, attention_bias=False,
                                     attention_multiplier=0.015625, embedding_multiplier=12.0,
                                     logits_scaling=8.0, residual_multiplier=0.22, mlp_bias=False,
                                     rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000000.0,
                                     tie_word_embeddings=True, attention_dropout=0.0)},
    "glm4": {"GLM-4 0414": sizes(4096, 13696, 40, 32, 2, 151552, 32768, attention_bias=False,
                                 head_dim=128, partial_rotary_factor=0.5, rms_norm_eps=1e-5,
                                 rope_theta=10000.0, pad_token_id=151329,
                                 eos_token_id=[151329, 151336], tie_word_embeddings=False)},
    "glm4_moe": {"GLM-4.5 Air": sizes(4096, 10944, 46, 96, 8, 151552, 131072, attention_bias=True,
                                      head_dim=128, first_k_dense_replace=1, partial_rotary_factor=0.5,
                                      moe_intermediate_size=1408, n_group=1, n_routed_experts=128,
                                      n_shared_experts=1, norm_topk_prob=True, topk_group=1,
                                      num_experts_per_tok=8, num_nextn_predict_layers=1,
                                      rms_norm_eps=1e-5, rope_scaling=None, rope_theta=1000000,
                                      routed_scaling_factor=1.0, use_qk_norm=False,
                                      tie_word_embeddings=False, pad_token_id=151329)},
    "stablelm": {"StableLM 2": sizes(2048, 5632, 24, 32, 32, 100352, 4096, hidden_dropout=0.0,
                                     layer_norm_eps=1e-5, partial_rotary_factor=0.25, qk_layernorm=False,
                                     rope_scaling=None, rope_theta=10000, use_parallel_residual=False,
                                     use_qkv_bias=True, tie_word_embeddings=False)},
    "falcon": {"Falcon 7B": dict(alibi=False, apply_residual_connection_post_layernorm=False,
                                 attention_dropout=0.0, bias=False, bos_token_id=11, eos_token_id=11,
                                 hidden_dropout=0.0, hidden_size=4544, initializer_range=0.02,
                                 layer_norm_epsilon=1e-5, multi_query=True, num_attention_heads=71,
                                 new_decoder_architecture=False, num_hidden_layers=32,
                                 parallel_attn=True, torch_dtype="bfloat16", vocab_size=65024),
               "Falcon 40B": dict(alibi=False, apply_residual_connection_post_layernorm=False,
                                  bias=False, hidden_size=8192, layer_norm_epsilon=1e-5,
                                  multi_query=True, num_attention_heads=128, num_kv_heads=8,
                                  new_decoder_architecture=True, num_hidden_layers=60,
                                  parallel_attn=True, vocab_size=65024)},
    "gpt_neox": {"Pythia": dict(bos_token_id=0, eos_token_id=0, hidden_act="gelu", hidden_size=768,
                                initializer_range=0.02, intermediate_size=3072, layer_norm_eps=1e-5,
                                max_position_embeddings=2048, num_attention_heads=12,
                                num_hidden_layers=12, rotary_emb_base=10000, rotary_pct=0.25,
                                tie_word_embeddings=False, torch_dtype="float16",
                                use_parallel_residual=True, vocab_size=50304)},
    "starcoder2": {"StarCoder2 3B": sizes(3072, 12288, 30, 24, 2, 49152, 16384, embedding_dropout=0.1,
                                          hidden_act="gelu_pytorch_tanh", mlp_type="default",
                                          norm_epsilon=1e-5, norm_type="layer_norm",
                                          residual_dropout=0.1, rope_theta=999999.4420358813,
                                          sliding_window=4096, use_bias=True)},
    "cohere": {"Command-R": sizes(8192, 22528, 40, 64, 64, 256000, 8192, attention_bias=False,
                                  layer_norm_eps=1e-5, logit_scale=0.0625, model_max_length=131072,
                                  pad_token_id=0, rope_theta=8000000.0, use_qk_norm=False)},
    "cohere2": {"Command R7B": sizes(4096, 14336, 32, 32, 8, 256000, 8192, attention_bias=False,
                                     cache_implementation="hybrid", head_dim=128, layer_norm_eps=1e-5,
                                     layer_switch=4, logit_scale=0.25, rotary_pct=1.0,
                                     order_of_interleaved_layers="local_attn_first", pad_token_id=0,
                                     position_embedding_type="rope_gptj", rope_scaling=None,
                                     rope_theta=50000, sliding_window=4096, sliding_window_pattern=4,
                                     use_embedding_sharing=True, use_gated_activation=True,
                                     use_parallel_block=True, use_parallel_embedding=False,
                                     use_qk_norm=False)},
    "ernie4_5": {"ERNIE 4.5 0.3B": sizes(1024, 3072, 18, 16, 2, 103424, 131072, head_dim=128,
                                         pad_token_id=0, rms_norm_eps=1e-5, rope_theta=500000,
                                         tie_word_embeddings=True, use_bias=False, use_cache=False)},
    "hunyuan_v1_dense": {
        "Hunyuan 0.5B": sizes(1024, 3584, 24, 16, 8, 120818, 262144, attention_bias=False, head_dim=128,
                              mlp_bias=False, pretraining_tp=1, rms_norm_eps=1e-5, rope_theta=10000.0,
                              tie_word_embeddings=True, use_qk_norm=True, eod_token_id=120020,
                              use_cla=False, use_rotary_pos_emb=True, pad_token_id=120002,
                              sep_token_id=0, im_end_id=6, im_newline_id=12, im_start_id=5,
                              mask_init_id=13, org_vocab_size=120818, pool_type="last", text_end_id=7,
                              text_start_id=6, norm_type="rms", class_num=0, dense_list=[1024, 0],
                              cla_share_factor=2, add_classification_head=False,
                              attention_head_dim=128, enable_lm_head_fp32=True,
                              position_embedding_xdrope=False,
                              rope_scaling={"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1,
                                            "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                            "type": "dynamic"})},
    "deepseek_v2": {"DeepSeek V2 Lite": sizes(2048, 10944, 27, 16, 16, 102400, 163840, **DEEPSEEK,
                                              first_k_dense_replace=1, moe_intermediate_size=1408,
                                              n_group=1, n_routed_experts=64, n_shared_experts=2,
                                              norm_topk_prob=False, num_experts_per_tok=6,
                                              q_lora_rank=None, rope_scaling=YARN_V2,
                                              routed_scaling_factor=1.0, scoring_func="softmax",
                                              topk_group=1, topk_method="greedy")},
    "deepseek_v3": {"DeepSeek V3": sizes(7168, 18432, 61, 128, 128, 129280, 163840, **DEEPSEEK,
                                         first_k_dense_replace=3, moe_intermediate_size=2048,
                                         n_group=8, n_routed_experts=256, n_shared_experts=1,
                                         norm_topk_prob=True, num_experts_per_tok=8, topk_group=4,
                                         num_nextn_predict_layers=1, q_lora_rank=1536,
                                         rope_scaling={**YARN_V2, "mscale": 1.0, "mscale_all_dim": 1.0},
                                         routed_scaling_factor=2.5, scoring_func="sigmoid",
                                         topk_method="noaux_tc")},
    "bert": {"MiniLM": {**BERT, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30522,
                        "max_position_embeddings": 512},
             "bge": {**BERT, "classifier_dropout": None, "pad_token_id": 0, "type_vocab_size": 2,
                     "vocab_size": 30522, "max_position_embeddings": 512,
                     "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
    "xlm-roberta": {"E5": {**BERT, "bos_token_id": 0, "eos_token_id": 2, "output_past": True,
                           "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 250002,
                           "layer_norm_eps": 1e-5, "max_position_embeddings": 514}},
}
SMALL = {"intermediate_size": 48, "max_position_embeddings": 64, "original_max_position_embeddings": 32,
         "n_positions": 64, "n_ctx": 64, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
         "num_experts_per_tok": 2, "experts_per_token": 2, "moe_intermediate_size": 16,
         "shared_expert_intermediate_size": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
         "qk_rope_head_dim": 8, "v_head_dim": 8, "initial_context_length": 32, "vocab_size": 40,
         "attention_head_dim": 8}


def small(members):
    """The same with small sizes, and tokens that 40 words have."""
    out = copy.deepcopy(members)
    heads, kv_heads = (members.get(k) for k in ("num_attention_heads", "num_key_value_heads"))
    own_width = members.get("head_dim") and members["head_dim"] * heads != members["hidden_size"]
    out.update({k: v for k, v in SMALL.items() if isinstance(members.get(k), int)})
    out["n_layer" if "n_layer" in out else "num_hidden_layers"] = 4
    if "n_embd" in out:
        out.update(n_embd=32, n_head=4)
        return {**out, "bos_token_id": 39, "eos_token_id": 39}
    out.update(num_attention_heads=4, hidden_size=40 if own_width else 64 if "num_kv_heads" in out else 32)
    if isinstance(kv_heads, int):
        out["num_key_value_heads"] = 4 if kv_heads == heads else 1 if kv_heads == 1 else 2
    if isinstance(members.get("num_kv_heads"), int):
        out["num_kv_heads"] = 2
    if members.get("head_dim"):
        out["head_dim"] = 8
    if members.get("q_lora_rank"):
        out["q_lora_rank"] = 16
    if (members.get("n_group") or 1) > 1:
        out.update(n_routed_experts=8, n_group=4, topk_group=2)
    for name in ("layer_types", "no_rope_layers"):
        if name in out:
            out[name] = out[name][:4]
    for name in ("sliding_window", "max_window_layers", "first_k_dense_replace"):
        if isinstance(out.get(name), int):
            out[name] = {"sliding_window": 9, "max_window_layers": 4, "first_k_dense_replace": 1}[name]
    rope = out.get("rope_scaling") or {}
    n_rot = int(out.get("head_dim") or out["hidden_size"] // 4)
    n_rot = int(n_rot * members.get("partial_rotary_factor", 1.0))
    for name in ("long_factor", "short_factor"):
        if name in rope:
            rope[name] = [x + i / 7 for i, x in enumerate(rope[name][:n_rot // 2])]
    if "original_max_position_embeddings" in rope:
        # we go by the session's length where transformers goes by the text's: long for both
        rope["original_max_position_embeddings"] = 32
    if "long_factor" in rope:
        out["original_max_position_embeddings"] = 10
    for name, token in (("bos_token_id", 1), ("eos_token_id", 2), ("pad_token_id", 0)):
        if isinstance(out.get(name), int):
            out[name] = min(out[name], token)
        elif name == "pad_token_id":  # (of the family: not among 40 words)
            out[name] = 0
        elif isinstance(out.get(name), list):
            out[name] = [2, 7]
    return out
