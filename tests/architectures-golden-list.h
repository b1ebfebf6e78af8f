/* SPDX-License-Identifier: MIT
 * Small models of all architectures and logits behind their last token, by
 * tools/judges/golden_models.py with transformers 5.24.0.
 * X(model_type, config.json, tensors, values, the likeliest token) */
#ifndef TND_TESTS_ARCHITECTURES_GOLDEN_LIST_H
#define TND_TESTS_ARCHITECTURES_GOLDEN_LIST_H

/* clang-format off */
#define TND_GOLDEN_ARCHITECTURES(X) \
    X("arcee", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1" \
      ",\"eos_token_id\":2,\"head_dim\":8,\"hidden_act\":\"gelu_new\",\"hidden_s" \
      "ize\":24,\"intermediate_size\":33,\"max_position_embeddings\":64,\"mlp" \
      "_bias\":false,\"model_type\":\"arcee\",\"num_attention_heads\":3,\"num_h" \
      "idden_layers\":2,\"num_key_value_heads\":3,\"pad_token_id\":0,\"rms_no" \
      "rm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":777.0,\"rope_type\":" \
      "\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":40}", \
      "lm_head.weight 40 24;model.embed_tokens.weight 40 24;model.layer" \
      "s.0.input_layernorm.weight 24;model.layers.0.mlp.down_proj.weigh" \
      "t 24 33;model.layers.0.mlp.up_proj.weight 33 24;model.layers.0.p" \
      "ost_attention_layernorm.weight 24;model.layers.0.self_attn.k_pro" \
      "j.weight 24 24;model.layers.0.self_attn.o_proj.weight 24 24;mode" \
      "l.layers.0.self_attn.q_proj.weight 24 24;model.layers.0.self_att" \
      "n.v_proj.weight 24 24;model.layers.1.input_layernorm.weight 24;m" \
      "odel.layers.1.mlp.down_proj.weight 24 33;model.layers.1.mlp.up_p" \
      "roj.weight 33 24;model.layers.1.post_attention_layernorm.weight " \
      "24;model.layers.1.self_attn.k_proj.weight 24 24;model.layers.1.s" \
      "elf_attn.o_proj.weight 24 24;model.layers.1.self_attn.q_proj.wei" \
      "ght 24 24;model.layers.1.self_attn.v_proj.weight 24 24;model.nor" \
      "m.weight 24", \
      -2.311036, -1.550534, 1.50561, -1.266674, 34) \
    X("cohere", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":2" \
      ",\"hidden_act\":\"silu\",\"hidden_size\":32,\"intermediate_size\":24,\"layer_norm_eps\":1e" \
      "-06,\"logit_scale\":1.0,\"max_position_embeddings\":64,\"model_type\":\"cohere\",\"num_at" \
      "tention_heads\":4,\"num_hidden_layers\":2,\"num_key_value_heads\":2,\"pad_token_id\":0," \
      "\"rope_parameters\":{\"factor\":2.0,\"original_max_position_embeddings\":32,\"rope_thet" \
      "a\":10000.0,\"rope_type\":\"yarn\",\"truncate\":false},\"tie_word_embeddings\":true,\"use_" \
      "qk_norm\":false,\"vocab_size\":40}", \
      "model.embed_tokens.weight 40 32;model.layers.0.input_layernorm.weight 32;model.l" \
      "ayers.0.mlp.down_proj.weight 32 24;model.layers.0.mlp.gate_proj.weight 24 32;mod" \
      "el.layers.0.mlp.up_proj.weight 24 32;model.layers.0.self_attn.k_proj.bias 16;mod" \
      "el.layers.0.self_attn.k_proj.weight 16 32;model.layers.0.self_attn.o_proj.bias 3" \
      "2;model.layers.0.self_attn.o_proj.weight 32 32;model.layers.0.self_attn.q_proj.b" \
      "ias 32;model.layers.0.self_attn.q_proj.weight 32 32;model.layers.0.self_attn.v_p" \
      "roj.bias 16;model.layers.0.self_attn.v_proj.weight 16 32;model.layers.1.input_la" \
      "yernorm.weight 32;model.layers.1.mlp.down_proj.weight 32 24;model.layers.1.mlp.g" \
      "ate_proj.weight 24 32;model.layers.1.mlp.up_proj.weight 24 32;model.layers.1.sel" \
      "f_attn.k_proj.bias 16;model.layers.1.self_attn.k_proj.weight 16 32;model.layers." \
      "1.self_attn.o_proj.bias 32;model.layers.1.self_attn.o_proj.weight 32 32;model.la" \
      "yers.1.self_attn.q_proj.bias 32;model.layers.1.self_attn.q_proj.weight 32 32;mod" \
      "el.layers.1.self_attn.v_proj.bias 16;model.layers.1.self_attn.v_proj.weight 16 3" \
      "2;model.norm.weight 32", \
      2.968919, 1.428211, -1.043098, -1.603976, 39) \
    X("cohere2", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":2" \
      ",\"head_dim\":8,\"hidden_act\":\"silu\",\"hidden_size\":16,\"" \
      "intermediate_size\":33,\"layer" \
      "_norm_eps\":1e-06,\"layer_types\":[\"sliding_attention\",\"sliding_attention\"],\"logit_" \
      "scale\":1.0,\"max_position_embeddings\":2048,\"model_type\":\"cohere2\",\"num_attention_" \
      "heads\":2,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_token_id\":0,\"rope_pa" \
      "rameters\":{\"rope_theta\":777.0,\"rope_type\":\"default\"},\"sliding_window\":64,\"tie_wo" \
      "rd_embeddings\":true,\"vocab_size\":40}", \
      "model.embed_tokens.weight 40 16;model.layers.0.input_layernorm.weight 16;model.l" \
      "ayers.0.mlp.down_proj.weight 16 33;model.layers.0.mlp.gate_proj.weight 33 16;mod" \
      "el.layers.0.mlp.up_proj.weight 33 16;model.layers.0.self_attn.k_proj.bias 8;mode" \
      "l.layers.0.self_attn.k_proj.weight 8 16;model.layers.0.self_attn.o_proj.bias 16;" \
      "model.layers.0.self_attn.o_proj.weight 16 16;model.layers.0.self_attn.q_proj.bia" \
      "s 16;model.layers.0.self_attn.q_proj.weight 16 16;model.layers.0.self_attn.v_pro" \
      "j.bias 8;model.layers.0.self_attn.v_proj.weight 8 16;model.layers.1.input_layern" \
      "orm.weight 16;model.layers.1.mlp.down_proj.weight 16 33;model.layers.1.mlp.gate_" \
      "proj.weight 33 16;model.layers.1.mlp.up_proj.weight 33 16;model.layers.1.self_at" \
      "tn.k_proj.bias 8;model.layers.1.self_attn.k_proj.weight 8 16;model.layers.1.self" \
      "_attn.o_proj.bias 16;model.layers.1.self_attn.o_proj.weight 16 16;model.layers.1" \
      ".self_attn.q_proj.bias 16;model.layers.1.self_attn.q_proj.weight 16 16;model.lay" \
      "ers.1.self_attn.v_proj.bias 8;model.layers.1.self_attn.v_proj.weight 8 16;model." \
      "norm.weight 16", \
      -1.188887, 2.54096, 1.015517, 1.828687, 1) \
    X("deepseek_v2", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1" \
      ",\"eos_token_id\":2,\"first_k_dense_replace\":1,\"head_dim\":4,\"hidden" \
      "_act\":\"silu\",\"hidden_size\":16,\"intermediate_size\":24,\"kv_lora_ra" \
      "nk\":16,\"max_position_embeddings\":64,\"mlp_bias\":false,\"model_type" \
      "\":\"deepseek_v2\",\"moe_intermediate_size\":8,\"n_group\":4,\"n_routed_" \
      "experts\":8,\"n_shared_experts\":2,\"norm_topk_prob\":false,\"num_atte" \
      "ntion_heads\":1,\"num_experts_per_tok\":8,\"num_hidden_layers\":2,\"nu" \
      "m_key_value_heads\":1,\"output_router_logits\":false,\"pad_token_id\"" \
      ":0,\"pretraining_tp\":1,\"q_lora_rank\":24,\"qk_head_dim\":10,\"qk_nope" \
      "_head_dim\":6,\"qk_rope_head_dim\":4,\"rms_norm_eps\":0.001,\"rope_par" \
      "ameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"routed_sc" \
      "aling_factor\":2.5,\"tie_word_embeddings\":false,\"topk_group\":4,\"to" \
      "pk_method\":\"group_limited_greedy\",\"v_head_dim\":4,\"vocab_size\":40" \
      "}", \
      "lm_head.weight 40 16;model.embed_tokens.weight 40 16;model.layer" \
      "s.0.input_layernorm.weight 16;model.layers.0.mlp.down_proj.weigh" \
      "t 16 24;model.layers.0.mlp.gate_proj.weight 24 16;model.layers.0" \
      ".mlp.up_proj.weight 24 16;model.layers.0.post_attention_layernor" \
      "m.weight 16;model.layers.0.self_attn.kv_a_layernorm.weight 16;mo" \
      "del.layers.0.self_attn.kv_a_proj_with_mqa.weight 20 16;model.lay" \
      "ers.0.self_attn.kv_b_proj.weight 10 16;model.layers.0.self_attn." \
      "o_proj.weight 16 4;model.layers.0.self_attn.q_a_layernorm.weight" \
      " 24;model.layers.0.self_attn.q_a_proj.weight 24 16;model.layers." \
      "0.self_attn.q_b_proj.weight 10 24;model.layers.1.input_layernorm" \
      ".weight 16;model.layers.1.mlp.experts.0.down_proj.weight 16 8;mo" \
      "del.layers.1.mlp.experts.0.gate_proj.weight 8 16;model.layers.1." \
      "mlp.experts.0.up_proj.weight 8 16;model.layers.1.mlp.experts.1.d" \
      "own_proj.weight 16 8;model.layers.1.mlp.experts.1.gate_proj.weig" \
      "ht 8 16;model.layers.1.mlp.experts.1.up_proj.weight 8 16;model.l" \
      "ayers.1.mlp.experts.2.down_proj.weight 16 8;model.layers.1.mlp.e" \
      "xperts.2.gate_proj.weight 8 16;model.layers.1.mlp.experts.2.up_p" \
      "roj.weight 8 16;model.layers.1.mlp.experts.3.down_proj.weight 16" \
      " 8;model.layers.1.mlp.experts.3.gate_proj.weight 8 16;model.laye" \
      "rs.1.mlp.experts.3.up_proj.weight 8 16;model.layers.1.mlp.expert" \
      "s.4.down_proj.weight 16 8;model.layers.1.mlp.experts.4.gate_proj" \
      ".weight 8 16;model.layers.1.mlp.experts.4.up_proj.weight 8 16;mo" \
      "del.layers.1.mlp.experts.5.down_proj.weight 16 8;model.layers.1." \
      "mlp.experts.5.gate_proj.weight 8 16;model.layers.1.mlp.experts.5" \
      ".up_proj.weight 8 16;model.layers.1.mlp.experts.6.down_proj.weig" \
      "ht 16 8;model.layers.1.mlp.experts.6.gate_proj.weight 8 16;model" \
      ".layers.1.mlp.experts.6.up_proj.weight 8 16;model.layers.1.mlp.e" \
      "xperts.7.down_proj.weight 16 8;model.layers.1.mlp.experts.7.gate" \
      "_proj.weight 8 16;model.layers.1.mlp.experts.7.up_proj.weight 8 " \
      "16;model.layers.1.mlp.gate.weight 8 16;model.layers.1.mlp.shared" \
      "_experts.down_proj.weight 16 16;model.layers.1.mlp.shared_expert" \
      "s.gate_proj.weight 16 16;model.layers.1.mlp.shared_experts.up_pr" \
      "oj.weight 16 16;model.layers.1.post_attention_layernorm.weight 1" \
      "6;model.layers.1.self_attn.kv_a_layernorm.weight 16;model.layers" \
      ".1.self_attn.kv_a_proj_with_mqa.weight 20 16;model.layers.1.self" \
      "_attn.kv_b_proj.weight 10 16;model.layers.1.self_attn.o_proj.wei" \
      "ght 16 4;model.layers.1.self_attn.q_a_layernorm.weight 24;model." \
      "layers.1.self_attn.q_a_proj.weight 24 16;model.layers.1.self_att" \
      "n.q_b_proj.weight 10 24;model.norm.weight 16", \
      0.3998363, 0.5828526, -0.7155007, 0.2895787, 11) \
    X("deepseek_v3", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1" \
      ",\"eos_token_id\":2,\"first_k_dense_replace\":1,\"head_dim\":8,\"hidden" \
      "_act\":\"silu\",\"hidden_size\":32,\"intermediate_size\":24,\"kv_lora_ra" \
      "nk\":20,\"max_position_embeddings\":64,\"model_type\":\"deepseek_v3\",\"" \
      "moe_intermediate_size\":24,\"n_group\":4,\"n_routed_experts\":12,\"n_s" \
      "hared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads\":2,\"" \
      "num_experts_per_tok\":7,\"num_hidden_layers\":2,\"num_key_value_head" \
      "s\":2,\"num_nextn_predict_layers\":1,\"output_router_logits\":false,\"" \
      "pad_token_id\":0,\"pretraining_tp\":1,\"q_lora_rank\":24,\"qk_head_dim" \
      "\":14,\"qk_nope_head_dim\":6,\"qk_rope_head_dim\":8,\"rms_norm_eps\":0." \
      "001,\"rope_interleave\":false,\"rope_parameters\":{\"rope_theta\":1000" \
      "0.0,\"rope_type\":\"default\"},\"routed_scaling_factor\":2.5,\"tie_word" \
      "_embeddings\":false,\"topk_group\":3,\"v_head_dim\":4,\"vocab_size\":40" \
      "}", \
      "lm_head.weight 40 32;model.embed_tokens.weight 40 32;model.layer" \
      "s.0.input_layernorm.weight 32;model.layers.0.mlp.down_proj.weigh" \
      "t 32 24;model.layers.0.mlp.gate_proj.weight 24 32;model.layers.0" \
      ".mlp.up_proj.weight 24 32;model.layers.0.post_attention_layernor" \
      "m.weight 32;model.layers.0.self_attn.kv_a_layernorm.weight 20;mo" \
      "del.layers.0.self_attn.kv_a_proj_with_mqa.weight 28 32;model.lay" \
      "ers.0.self_attn.kv_b_proj.weight 20 20;model.layers.0.self_attn." \
      "o_proj.weight 32 8;model.layers.0.self_attn.q_a_layernorm.weight" \
      " 24;model.layers.0.self_attn.q_a_proj.weight 24 32;model.layers." \
      "0.self_attn.q_b_proj.weight 28 24;model.layers.1.input_layernorm" \
      ".weight 32;model.layers.1.mlp.experts.0.down_proj.weight 32 24;m" \
      "odel.layers.1.mlp.experts.0.gate_proj.weight 24 32;model.layers." \
      "1.mlp.experts.0.up_proj.weight 24 32;model.layers.1.mlp.experts." \
      "1.down_proj.weight 32 24;model.layers.1.mlp.experts.1.gate_proj." \
      "weight 24 32;model.layers.1.mlp.experts.1.up_proj.weight 24 32;m" \
      "odel.layers.1.mlp.experts.10.down_proj.weight 32 24;model.layers" \
      ".1.mlp.experts.10.gate_proj.weight 24 32;model.layers.1.mlp.expe" \
      "rts.10.up_proj.weight 24 32;model.layers.1.mlp.experts.11.down_p" \
      "roj.weight 32 24;model.layers.1.mlp.experts.11.gate_proj.weight " \
      "24 32;model.layers.1.mlp.experts.11.up_proj.weight 24 32;model.l" \
      "ayers.1.mlp.experts.2.down_proj.weight 32 24;model.layers.1.mlp." \
      "experts.2.gate_proj.weight 24 32;model.layers.1.mlp.experts.2.up" \
      "_proj.weight 24 32;model.layers.1.mlp.experts.3.down_proj.weight" \
      " 32 24;model.layers.1.mlp.experts.3.gate_proj.weight 24 32;model" \
      ".layers.1.mlp.experts.3.up_proj.weight 24 32;model.layers.1.mlp." \
      "experts.4.down_proj.weight 32 24;model.layers.1.mlp.experts.4.ga" \
      "te_proj.weight 24 32;model.layers.1.mlp.experts.4.up_proj.weight" \
      " 24 32;model.layers.1.mlp.experts.5.down_proj.weight 32 24;model" \
      ".layers.1.mlp.experts.5.gate_proj.weight 24 32;model.layers.1.ml" \
      "p.experts.5.up_proj.weight 24 32;model.layers.1.mlp.experts.6.do" \
      "wn_proj.weight 32 24;model.layers.1.mlp.experts.6.gate_proj.weig" \
      "ht 24 32;model.layers.1.mlp.experts.6.up_proj.weight 24 32;model" \
      ".layers.1.mlp.experts.7.down_proj.weight 32 24;model.layers.1.ml" \
      "p.experts.7.gate_proj.weight 24 32;model.layers.1.mlp.experts.7." \
      "up_proj.weight 24 32;model.layers.1.mlp.experts.8.down_proj.weig" \
      "ht 32 24;model.layers.1.mlp.experts.8.gate_proj.weight 24 32;mod" \
      "el.layers.1.mlp.experts.8.up_proj.weight 24 32;model.layers.1.ml" \
      "p.experts.9.down_proj.weight 32 24;model.layers.1.mlp.experts.9." \
      "gate_proj.weight 24 32;model.layers.1.mlp.experts.9.up_proj.weig" \
      "ht 24 32;model.layers.1.mlp.gate.e_score_correction_bias 12;mode" \
      "l.layers.1.mlp.gate.weight 12 32;model.layers.1.mlp.shared_exper" \
      "ts.down_proj.weight 32 24;model.layers.1.mlp.shared_experts.gate" \
      "_proj.weight 24 32;model.layers.1.mlp.shared_experts.up_proj.wei" \
      "ght 24 32;model.layers.1.post_attention_layernorm.weight 32;mode" \
      "l.layers.1.self_attn.kv_a_layernorm.weight 20;model.layers.1.sel" \
      "f_attn.kv_a_proj_with_mqa.weight 28 32;model.layers.1.self_attn." \
      "kv_b_proj.weight 20 20;model.layers.1.self_attn.o_proj.weight 32" \
      " 8;model.layers.1.self_attn.q_a_layernorm.weight 24;model.layers" \
      ".1.self_attn.q_a_proj.weight 24 32;model.layers.1.self_attn.q_b_" \
      "proj.weight 28 24;model.norm.weight 32", \
      -1.978481, 0.5900638, -1.453502, -1.550385, 32) \
    X("ernie4_5", \
      "{\"bos_token_id\":1,\"eos_token_id\":2,\"head_dim\":8,\"hidd" \
      "en_act\":\"silu\",\"hidden_size" \
      "\":16,\"intermediate_size\":64,\"max_position_embeddings\":64,\"model_type\":\"ernie4_5\"" \
      ",\"num_attention_heads\":2,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_toke" \
      "n_id\":0,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":777.0,\"rope_type\":\"" \
      "default\"},\"tie_word_embeddings\":true,\"use_bias\":false,\"vocab_size\":40}", \
      "model.embed_tokens.weight 40 16;model.layers.0.input_layernorm.weight 16;model.l" \
      "ayers.0.mlp.down_proj.weight 16 64;model.layers.0.mlp.gate_proj.weight 64 16;mod" \
      "el.layers.0.mlp.up_proj.weight 64 16;model.layers.0.post_attention_layernorm.wei" \
      "ght 16;model.layers.0.self_attn.k_proj.weight 8 16;model.layers.0.self_attn.o_pr" \
      "oj.weight 16 16;model.layers.0.self_attn.q_proj.weight 16 16;model.layers.0.self" \
      "_attn.v_proj.weight 8 16;model.layers.1.input_layernorm.weight 16;model.layers.1" \
      ".mlp.down_proj.weight 16 64;model.layers.1.mlp.gate_proj.weight 64 16;model.laye" \
      "rs.1.mlp.up_proj.weight 64 16;model.layers.1.post_attention_layernorm.weight 16;" \
      "model.layers.1.self_attn.k_proj.weight 8 16;model.layers.1.self_attn.o_proj.weig" \
      "ht 16 16;model.layers.1.self_attn.q_proj.weight 16 16;model.layers.1.self_attn.v" \
      "_proj.weight 8 16;model.norm.weight 16", \
      -0.995339, 0.7926233, -1.197325, 0.1480565, 6) \
    X("falcon", \
      "{\"activation\":\"gelu\",\"alibi\":false,\"attention_dropout" \
      "\":0.0,\"bias\":true,\"bos_toke" \
      "n_id\":1,\"eos_token_id\":2,\"ffn_hidden_size\":100,\"hidden_dropout\":0.0,\"hidden_size" \
      "\":32,\"layer_norm_epsilon\":1e-06,\"max_position_embeddings\":32,\"model_type\":\"falco" \
      "n\",\"multi_query\":true,\"new_decoder_architecture\":false,\"num_attention_heads\":1,\"" \
      "num_hidden_layers\":2,\"num_kv_heads\":1,\"num_ln_in_parallel_attn\":null,\"pad_token_" \
      "id\":0,\"parallel_attn\":true,\"rope_parameters\":{\"factor\":4.0,\"rope_theta\":10000.0," \
      "\"rope_type\":\"linear\"},\"tie_word_embeddings\":true,\"vocab_size\":40}", \
      "transformer.h.0.input_layernorm.bias 32;transformer.h.0.input_layernorm.weight 3" \
      "2;transformer.h.0.mlp.dense_4h_to_h.bias 32;transformer.h.0.mlp.dense_4h_to_h.we" \
      "ight 32 100;transformer.h.0.mlp.dense_h_to_4h.bias 100;transformer.h.0.mlp.dense" \
      "_h_to_4h.weight 100 32;transformer.h.0.self_attention.dense.bias 32;transformer." \
      "h.0.self_attention.dense.weight 32 32;transformer.h.0.self_attention.query_key_v" \
      "alue.bias 96;transformer.h.0.self_attention.query_key_value.weight 96 32;transfo" \
      "rmer.h.1.input_layernorm.bias 32;transformer.h.1.input_layernorm.weight 32;trans" \
      "former.h.1.mlp.dense_4h_to_h.bias 32;transformer.h.1.mlp.dense_4h_to_h.weight 32" \
      " 100;transformer.h.1.mlp.dense_h_to_4h.bias 100;transformer.h.1.mlp.dense_h_to_4" \
      "h.weight 100 32;transformer.h.1.self_attention.dense.bias 32;transformer.h.1.sel" \
      "f_attention.dense.weight 32 32;transformer.h.1.self_attention.query_key_value.bi" \
      "as 96;transformer.h.1.self_attention.query_key_value.weight 96 32;transformer.ln" \
      "_f.bias 32;transformer.ln_f.weight 32;transformer.word_embeddings.weight 40 32", \
      6.150744, 3.995539, 2.235691, 1.791939, 0) \
    X("gemma", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":[" \
      "2,7],\"head_dim\":8,\"hidden_act\":\"gelu_pytorch_tanh\",\"hidden_size\":8,\"intermediate" \
      "_size\":33,\"max_position_embeddings\":32,\"model_type\":\"gemma\",\"num_attention_heads" \
      "\":1,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_token_id\":0,\"rms_norm_eps" \
      "\":0.001,\"rope_parameters\":{\"factor\":4.0,\"original_max_position_embeddings\":32,\"r" \
      "ope_theta\":777.0,\"rope_type\":\"yarn\",\"truncate\":false},\"tie_word_embeddings\":true" \
      ",\"use_bidirectional_attention\":null,\"vocab_size\":40}", \
      "model.embed_tokens.weight 40 8;model.layers.0.input_layernorm.weight 8;model.lay" \
      "ers.0.mlp.down_proj.weight 8 33;model.layers.0.mlp.gate_proj.weight 33 8;model.l" \
      "ayers.0.mlp.up_proj.weight 33 8;model.layers.0.post_attention_layernorm.weight 8" \
      ";model.layers.0.self_attn.k_proj.bias 8;model.layers.0.self_attn.k_proj.weight 8" \
      " 8;model.layers.0.self_attn.o_proj.bias 8;model.layers.0.self_attn.o_proj.weight" \
      " 8 8;model.layers.0.self_attn.q_proj.bias 8;model.layers.0.self_attn.q_proj.weig" \
      "ht 8 8;model.layers.0.self_attn.v_proj.bias 8;model.layers.0.self_attn.v_proj.we" \
      "ight 8 8;model.layers.1.input_layernorm.weight 8;model.layers.1.mlp.down_proj.we" \
      "ight 8 33;model.layers.1.mlp.gate_proj.weight 33 8;model.layers.1.mlp.up_proj.we" \
      "ight 33 8;model.layers.1.post_attention_layernorm.weight 8;model.layers.1.self_a" \
      "ttn.k_proj.bias 8;model.layers.1.self_attn.k_proj.weight 8 8;model.layers.1.self" \
      "_attn.o_proj.bias 8;model.layers.1.self_attn.o_proj.weight 8 8;model.layers.1.se" \
      "lf_attn.q_proj.bias 8;model.layers.1.self_attn.q_proj.weight 8 8;model.layers.1." \
      "self_attn.v_proj.bias 8;model.layers.1.self_attn.v_proj.weight 8 8;model.norm.we" \
      "ight 8", \
      -2.23702, 0.1515753, -1.797204, 1.197244, 30) \
    X("gemma2", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"attn_logit_softcapping\":null,\"bo" \
      "s_token_id\":1,\"eos_token_id\":2,\"final_logit_softcapping\":3.0,\"head_dim\":8,\"hidde" \
      "n_activation\":\"silu\",\"hidden_size\":8,\"intermediate_size\":100,\"layer_types\":[\"sli" \
      "ding_attention\",\"full_attention\"],\"max_position_embeddings\":32,\"model_type\":\"gem" \
      "ma2\",\"num_attention_heads\":1,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_" \
      "token_id\":0,\"query_pre_attn_scalar\":8,\"rms_norm_eps\":0.001,\"rope_parameters\":{\"r" \
      "ope_theta\":500000.0,\"rope_type\":\"default\"},\"sliding_window\":64,\"tie_word_embeddi" \
      "ngs\":true,\"use_bidirectional_attention\":null,\"vocab_size\":40}", \
      "model.embed_tokens.weight 40 8;model.layers.0.input_layernorm.weight 8;model.lay" \
      "ers.0.mlp.down_proj.weight 8 100;model.layers.0.mlp.gate_proj.weight 100 8;model" \
      ".layers.0.mlp.up_proj.weight 100 8;model.layers.0.post_attention_layernorm.weigh" \
      "t 8;model.layers.0.post_feedforward_layernorm.weight 8;model.layers.0.pre_feedfo" \
      "rward_layernorm.weight 8;model.layers.0.self_attn.k_proj.bias 8;model.layers.0.s" \
      "elf_attn.k_proj.weight 8 8;model.layers.0.self_attn.o_proj.bias 8;model.layers.0" \
      ".self_attn.o_proj.weight 8 8;model.layers.0.self_attn.q_proj.bias 8;model.layers" \
      ".0.self_attn.q_proj.weight 8 8;model.layers.0.self_attn.v_proj.bias 8;model.laye" \
      "rs.0.self_attn.v_proj.weight 8 8;model.layers.1.input_layernorm.weight 8;model.l" \
      "ayers.1.mlp.down_proj.weight 8 100;model.layers.1.mlp.gate_proj.weight 100 8;mod" \
      "el.layers.1.mlp.up_proj.weight 100 8;model.layers.1.post_attention_layernorm.wei" \
      "ght 8;model.layers.1.post_feedforward_layernorm.weight 8;model.layers.1.pre_feed" \
      "forward_layernorm.weight 8;model.layers.1.self_attn.k_proj.bias 8;model.layers.1" \
      ".self_attn.k_proj.weight 8 8;model.layers.1.self_attn.o_proj.bias 8;model.layers" \
      ".1.self_attn.o_proj.weight 8 8;model.layers.1.self_attn.q_proj.bias 8;model.laye" \
      "rs.1.self_attn.q_proj.weight 8 8;model.layers.1.self_attn.v_proj.bias 8;model.la" \
      "yers.1.self_attn.v_proj.weight 8 8;model.norm.weight 8", \
      -1.743065, -0.8733231, -0.1145408, 2.002539, 7) \
    X("gemma3_text", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"attn_logit_softcapping\":null,\"bo" \
      "s_token_id\":1,\"eos_token_id\":2,\"final_logit_softcapping\":null,\"head_dim\":8,\"hidd" \
      "en_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":32,\"intermediate_size\":64,\"laye" \
      "r_types\":[\"sliding_attention\",\"sliding_attention\"],\"max_position_embeddings\":204" \
      "8,\"model_type\":\"gemma3_text\",\"num_attention_heads\":4,\"num_hidden_layers\":2,\"num_" \
      "key_value_heads\":2,\"pad_token_id\":0,\"query_pre_attn_scalar\":256,\"rms_norm_eps\":1" \
      "e-05,\"rope_parameters\":{\"full_attention\":{\"rope_theta\":500000.0,\"rope_type\":\"def" \
      "ault\"},\"sliding_attention\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}},\"slidin" \
      "g_window\":5,\"tie_word_embeddings\":true,\"use_bidirectional_attention\":false,\"voca" \
      "b_size\":40}", \
      "model.embed_tokens.weight 40 32;model.layers.0.input_layernorm.weight 32;model.l" \
      "ayers.0.mlp.down_proj.weight 32 64;model.layers.0.mlp.gate_proj.weight 64 32;mod" \
      "el.layers.0.mlp.up_proj.weight 64 32;model.layers.0.post_attention_layernorm.wei" \
      "ght 32;model.layers.0.post_feedforward_layernorm.weight 32;model.layers.0.pre_fe" \
      "edforward_layernorm.weight 32;model.layers.0.self_attn.k_norm.weight 8;model.lay" \
      "ers.0.self_attn.k_proj.bias 16;model.layers.0.self_attn.k_proj.weight 16 32;mode" \
      "l.layers.0.self_attn.o_proj.bias 32;model.layers.0.self_attn.o_proj.weight 32 32" \
      ";model.layers.0.self_attn.q_norm.weight 8;model.layers.0.self_attn.q_proj.bias 3" \
      "2;model.layers.0.self_attn.q_proj.weight 32 32;model.layers.0.self_attn.v_proj.b" \
      "ias 16;model.layers.0.self_attn.v_proj.weight 16 32;model.layers.1.input_layerno" \
      "rm.weight 32;model.layers.1.mlp.down_proj.weight 32 64;model.layers.1.mlp.gate_p" \
      "roj.weight 64 32;model.layers.1.mlp.up_proj.weight 64 32;model.layers.1.post_att" \
      "ention_layernorm.weight 32;model.layers.1.post_feedforward_layernorm.weight 32;m" \
      "odel.layers.1.pre_feedforward_layernorm.weight 32;model.layers.1.self_attn.k_nor" \
      "m.weight 8;model.layers.1.self_attn.k_proj.bias 16;model.layers.1.self_attn.k_pr" \
      "oj.weight 16 32;model.layers.1.self_attn.o_proj.bias 32;model.layers.1.self_attn" \
      ".o_proj.weight 32 32;model.layers.1.self_attn.q_norm.weight 8;model.layers.1.sel" \
      "f_attn.q_proj.bias 32;model.layers.1.self_attn.q_proj.weight 32 32;model.layers." \
      "1.self_attn.v_proj.bias 16;model.layers.1.self_attn.v_proj.weight 16 32;model.no" \
      "rm.weight 32", \
      0.4369438, 2.716455, 2.261284, -0.4033744, 37) \
    X("glm4", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":2" \
      ",\"head_dim\":8,\"hidden_act\":\"silu\",\"hidden_size\":16,\"" \
      "intermediate_size\":24,\"max_p" \
      "osition_embeddings\":2048,\"model_type\":\"glm4\",\"num_attention_heads\":2,\"num_hidden" \
      "_layers\":2,\"num_key_value_heads\":2,\"pad_token_id\":0,\"rms_norm_eps\":0.001,\"rope_p" \
      "arameters\":{\"factor\":2.0,\"original_max_position_embeddings\":32,\"partial_rotary_f" \
      "actor\":0.5,\"rope_theta\":10000.0,\"rope_type\":\"yarn\",\"truncate\":false},\"tie_word_e" \
      "mbeddings\":false,\"vocab_size\":40}", \
      "lm_head.weight 40 16;model.embed_tokens.weight 40 16;model.layers.0.input_layern" \
      "orm.weight 16;model.layers.0.mlp.down_proj.weight 16 24;model.layers.0.mlp.gate_" \
      "up_proj.weight 48 16;model.layers.0.post_attention_layernorm.weight 16;model.lay" \
      "ers.0.post_mlp_layernorm.weight 16;model.layers.0.post_self_attn_layernorm.weigh" \
      "t 16;model.layers.0.self_attn.k_proj.bias 16;model.layers.0.self_attn.k_proj.wei" \
      "ght 16 16;model.layers.0.self_attn.o_proj.weight 16 16;model.layers.0.self_attn." \
      "q_proj.bias 16;model.layers.0.self_attn.q_proj.weight 16 16;model.layers.0.self_" \
      "attn.v_proj.bias 16;model.layers.0.self_attn.v_proj.weight 16 16;model.layers.1." \
      "input_layernorm.weight 16;model.layers.1.mlp.down_proj.weight 16 24;model.layers" \
      ".1.mlp.gate_up_proj.weight 48 16;model.layers.1.post_attention_layernorm.weight " \
      "16;model.layers.1.post_mlp_layernorm.weight 16;model.layers.1.post_self_attn_lay" \
      "ernorm.weight 16;model.layers.1.self_attn.k_proj.bias 16;model.layers.1.self_att" \
      "n.k_proj.weight 16 16;model.layers.1.self_attn.o_proj.weight 16 16;model.layers." \
      "1.self_attn.q_proj.bias 16;model.layers.1.self_attn.q_proj.weight 16 16;model.la" \
      "yers.1.self_attn.v_proj.bias 16;model.layers.1.self_attn.v_proj.weight 16 16;mod" \
      "el.norm.weight 16", \
      0.2477289, 0.04833873, 0.9728467, 0.9176189, 11) \
    X("glm4_moe", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":[" \
      "2,7],\"first_k_dense_replace\":1,\"hidden_act\":\"silu\",\"hidden_size\":16,\"intermediat" \
      "e_size\":24,\"max_position_embeddings\":64,\"model_type\":\"glm4_moe\",\"moe_intermediat" \
      "e_size\":24,\"n_group\":1,\"n_routed_experts\":2,\"n_shared_experts\":1,\"norm_topk_prob" \
      "\":true,\"num_attention_heads\":1,\"num_experts_per_tok\":1,\"num_hidden_layers\":2,\"nu" \
      "m_key_value_heads\":1,\"num_nextn_predict_layers\":1,\"output_router_logits\":false,\"" \
      "pad_token_id\":0,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"partial_rotary_factor\":" \
      "0.25,\"rope_theta\":500000.0,\"rope_type\":\"default\"},\"routed_scaling_factor\":2.5,\"t" \
      "ie_word_embeddings\":false,\"topk_group\":1,\"use_qk_norm\":false,\"vocab_size\":40}", \
      "lm_head.weight 40 16;model.embed_tokens.weight 40 16;model.layers.0.input_layern" \
      "orm.weight 16;model.layers.0.mlp.down_proj.weight 16 24;model.layers.0.mlp.gate_" \
      "proj.weight 24 16;model.layers.0.mlp.up_proj.weight 24 16;model.layers.0.post_at" \
      "tention_layernorm.weight 16;model.layers.0.self_attn.k_proj.bias 16;model.layers" \
      ".0.self_attn.k_proj.weight 16 16;model.layers.0.self_attn.o_proj.weight 16 16;mo" \
      "del.layers.0.self_attn.q_proj.bias 16;model.layers.0.self_attn.q_proj.weight 16 " \
      "16;model.layers.0.self_attn.v_proj.bias 16;model.layers.0.self_attn.v_proj.weigh" \
      "t 16 16;model.layers.1.input_layernorm.weight 16;model.layers.1.mlp.experts.0.do" \
      "wn_proj.weight 16 24;model.layers.1.mlp.experts.0.gate_proj.weight 24 16;model.l" \
      "ayers.1.mlp.experts.0.up_proj.weight 24 16;model.layers.1.mlp.experts.1.down_pro" \
      "j.weight 16 24;model.layers.1.mlp.experts.1.gate_proj.weight 24 16;model.layers." \
      "1.mlp.experts.1.up_proj.weight 24 16;model.layers.1.mlp.gate.e_score_correction_" \
      "bias 2;model.layers.1.mlp.gate.weight 2 16;model.layers.1.mlp.shared_experts.dow" \
      "n_proj.weight 16 24;model.layers.1.mlp.shared_experts.gate_proj.weight 24 16;mod" \
      "el.layers.1.mlp.shared_experts.up_proj.weight 24 16;model.layers.1.post_attentio" \
      "n_layernorm.weight 16;model.layers.1.self_attn.k_proj.bias 16;model.layers.1.sel" \
      "f_attn.k_proj.weight 16 16;model.layers.1.self_attn.o_proj.weight 16 16;model.la" \
      "yers.1.self_attn.q_proj.bias 16;model.layers.1.self_attn.q_proj.weight 16 16;mod" \
      "el.layers.1.self_attn.v_proj.bias 16;model.layers.1.self_attn.v_proj.weight 16 1" \
      "6;model.norm.weight 16", \
      0.3521741, 0.1885758, 1.089073, -0.9924726, 12) \
    X("gpt2", \
      "{\"activation_function\":\"relu\",\"add_cross_attention\":false,\"attn_pdrop\":0.1,\"bos_" \
      "token_id\":1,\"embd_pdrop\":0.1,\"eos_token_id\":2,\"layer_norm_epsilon\":0.001,\"model_" \
      "type\":\"gpt2\",\"n_embd\":32,\"n_head\":4,\"n_inner\":33,\"" \
      "n_layer\":2,\"n_positions\":64,\"p" \
      "ad_token_id\":null,\"reorder_and_upcast_attn\":false,\"resid_pdrop\":0.1,\"scale_attn_" \
      "by_inverse_layer_idx\":false,\"scale_attn_weights\":true,\"summary_activation\":null," \
      "\"summary_first_dropout\":0.1,\"summary_proj_to_labels\":true,\"summary_type\":\"cls_in" \
      "dex\",\"summary_use_proj\":true,\"tie_word_embeddings\":true,\"vocab_size\":40}", \
      "transformer.h.0.attn.c_attn.bias 96;transformer.h.0.attn.c_attn.weight 32 96;tra" \
      "nsformer.h.0.attn.c_proj.bias 32;transformer.h.0.attn.c_proj.weight 32 32;transf" \
      "ormer.h.0.ln_1.bias 32;transformer.h.0.ln_1.weight 32;transformer.h.0.ln_2.bias " \
      "32;transformer.h.0.ln_2.weight 32;transformer.h.0.mlp.c_fc.bias 33;transformer.h" \
      ".0.mlp.c_fc.weight 32 33;transformer.h.0.mlp.c_proj.bias 32;transformer.h.0.mlp." \
      "c_proj.weight 33 32;transformer.h.1.attn.c_attn.bias 96;transformer.h.1.attn.c_a" \
      "ttn.weight 32 96;transformer.h.1.attn.c_proj.bias 32;transformer.h.1.attn.c_proj" \
      ".weight 32 32;transformer.h.1.ln_1.bias 32;transformer.h.1.ln_1.weight 32;transf" \
      "ormer.h.1.ln_2.bias 32;transformer.h.1.ln_2.weight 32;transformer.h.1.mlp.c_fc.b" \
      "ias 33;transformer.h.1.mlp.c_fc.weight 32 33;transformer.h.1.mlp.c_proj.bias 32;" \
      "transformer.h.1.mlp.c_proj.weight 33 32;transformer.ln_f.bias 32;transformer.ln_" \
      "f.weight 32;transformer.wpe.weight 64 32;transformer.wte.weight 40 32", \
      1.572694, -3.334291, -8.583671, -7.591486, 24) \
    X("gpt_neox", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1,\"classifier_dro" \
      "pout\":0.1,\"eos_token_id\":2,\"hidden_act\":\"gelu\",\"hidden_dropout\":0.0,\"hidden_size" \
      "\":24,\"intermediate_size\":33,\"is_decoder\":false,\"layer_norm_eps\":1e-05,\"max_posit" \
      "ion_embeddings\":2048,\"model_type\":\"gpt_neox\",\"num_attention_heads\":3,\"num_hidden" \
      "_layers\":2,\"pad_token_id\":0,\"rope_parameters\":{\"partial_rotary_factor\":0.5,\"rope" \
      "_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"use_parallel" \
      "_residual\":false,\"vocab_size\":40}", \
      "embed_out.weight 40 24;gpt_neox.embed_in.weight 40 24;gpt_neox.final_layer_norm." \
      "bias 24;gpt_neox.final_layer_norm.weight 24;gpt_neox.layers.0.attention.dense.we" \
      "ight 24 24;gpt_neox.layers.0.attention.query_key_value.weight 72 24;gpt_neox.lay" \
      "ers.0.input_layernorm.bias 24;gpt_neox.layers.0.input_layernorm.weight 24;gpt_ne" \
      "ox.layers.0.mlp.dense_4h_to_h.bias 24;gpt_neox.layers.0.mlp.dense_4h_to_h.weight" \
      " 24 33;gpt_neox.layers.0.mlp.dense_h_to_4h.bias 33;gpt_neox.layers.0.mlp.dense_h" \
      "_to_4h.weight 33 24;gpt_neox.layers.0.post_attention_layernorm.bias 24;gpt_neox." \
      "layers.0.post_attention_layernorm.weight 24;gpt_neox.layers.1.attention.dense.we" \
      "ight 24 24;gpt_neox.layers.1.attention.query_key_value.weight 72 24;gpt_neox.lay" \
      "ers.1.input_layernorm.bias 24;gpt_neox.layers.1.input_layernorm.weight 24;gpt_ne" \
      "ox.layers.1.mlp.dense_4h_to_h.bias 24;gpt_neox.layers.1.mlp.dense_4h_to_h.weight" \
      " 24 33;gpt_neox.layers.1.mlp.dense_h_to_4h.bias 33;gpt_neox.layers.1.mlp.dense_h" \
      "_to_4h.weight 33 24;gpt_neox.layers.1.post_attention_layernorm.bias 24;gpt_neox." \
      "layers.1.post_attention_layernorm.weight 24", \
      -0.5215306, -3.475388, 0.5485542, 1.785037, 9) \
    X("gpt_oss", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":" \
      "2,\"head_dim\":8,\"hidden_act\":\"silu\",\"hidden_size\":24," \
      "\"intermediate_size\":100,\"lay" \
      "er_types\":[\"sliding_attention\",\"full_attention\"],\"max_position_embeddings\":2048," \
      "\"model_type\":\"gpt_oss\",\"num_attention_heads\":3,\"num_experts_per_tok\":1,\"num_hidd" \
      "en_layers\":2,\"num_key_value_heads\":3,\"num_local_experts\":2,\"output_router_logits" \
      "\":false,\"pad_token_id\":0,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"factor\":4.0,\"o" \
      "riginal_max_position_embeddings\":32,\"rope_theta\":777.0,\"rope_type\":\"yarn\",\"trunc" \
      "ate\":false},\"router_aux_loss_coef\":0.001,\"sliding_window\":2,\"swiglu_alpha\":1.702" \
      ",\"swiglu_limit\":7.0,\"tie_word_embeddings\":false,\"vocab_size\":40}", \
      "lm_head.weight 40 24;model.embed_tokens.weight 40 24;model.layers.0.input_layern" \
      "orm.weight 24;model.layers.0.mlp.experts.down_proj 2 100 24;model.layers.0.mlp.e" \
      "xperts.down_proj_bias 2 24;model.layers.0.mlp.experts.gate_up_proj 2 24 200;mode" \
      "l.layers.0.mlp.experts.gate_up_proj_bias 2 200;model.layers.0.mlp.router.bias 2;" \
      "model.layers.0.mlp.router.weight 2 24;model.layers.0.post_attention_layernorm.we" \
      "ight 24;model.layers.0.self_attn.k_proj.weight 24 24;model.layers.0.self_attn.o_" \
      "proj.weight 24 24;model.layers.0.self_attn.q_proj.weight 24 24;model.layers.0.se" \
      "lf_attn.sinks 3;model.layers.0.self_attn.v_proj.weight 24 24;model.layers.1.inpu" \
      "t_layernorm.weight 24;model.layers.1.mlp.experts.down_proj 2 100 24;model.layers" \
      ".1.mlp.experts.down_proj_bias 2 24;model.layers.1.mlp.experts.gate_up_proj 2 24 " \
      "200;model.layers.1.mlp.experts.gate_up_proj_bias 2 200;model.layers.1.mlp.router" \
      ".bias 2;model.layers.1.mlp.router.weight 2 24;model.layers.1.post_attention_laye" \
      "rnorm.weight 24;model.layers.1.self_attn.k_proj.weight 24 24;model.layers.1.self" \
      "_attn.o_proj.weight 24 24;model.layers.1.self_attn.q_proj.weight 24 24;model.lay" \
      "ers.1.self_attn.sinks 3;model.layers.1.self_attn.v_proj.weight 24 24;model.norm." \
      "weight 24", \
      -1.927467, 1.598676, -0.7084519, 1.380395, 6) \
    X("granite", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"attention_multiplier\":0.0625,\"bo" \
      "s_token_id\":1,\"embedding_multiplier\":12.0,\"eos_token_id\":2,\"hidden_act\":\"silu\",\"" \
      "hidden_size\":32,\"intermediate_size\":100,\"logits_scaling\":1.0,\"max_position_embed" \
      "dings\":32,\"mlp_bias\":true,\"model_type\":\"granite\",\"num_attention_heads\":2,\"num_hi" \
      "dden_layers\":2,\"num_key_value_heads\":2,\"pad_token_id\":0,\"residual_multiplier\":0." \
      "22,\"rms_norm_eps\":0.001,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"def" \
      "ault\"},\"tie_word_embeddings\":true,\"vocab_size\":40}", \
      "model.embed_tokens.weight 40 32;model.layers.0.input_layernorm.weight 32;model.l" \
      "ayers.0.mlp.down_proj.bias 32;model.layers.0.mlp.down_proj.weight 32 100;model.l" \
      "ayers.0.mlp.gate_proj.bias 100;model.layers.0.mlp.gate_proj.weight 100 32;model." \
      "layers.0.mlp.up_proj.bias 100;model.layers.0.mlp.up_proj.weight 100 32;model.lay" \
      "ers.0.post_attention_layernorm.weight 32;model.layers.0.self_attn.k_proj.bias 32" \
      ";model.layers.0.self_attn.k_proj.weight 32 32;model.layers.0.self_attn.o_proj.bi" \
      "as 32;model.layers.0.self_attn.o_proj.weight 32 32;model.layers.0.self_attn.q_pr" \
      "oj.bias 32;model.layers.0.self_attn.q_proj.weight 32 32;model.layers.0.self_attn" \
      ".v_proj.bias 32;model.layers.0.self_attn.v_proj.weight 32 32;model.layers.1.inpu" \
      "t_layernorm.weight 32;model.layers.1.mlp.down_proj.bias 32;model.layers.1.mlp.do" \
      "wn_proj.weight 32 100;model.layers.1.mlp.gate_proj.bias 100;model.layers.1.mlp.g" \
      "ate_proj.weight 100 32;model.layers.1.mlp.up_proj.bias 100;model.layers.1.mlp.up" \
      "_proj.weight 100 32;model.layers.1.post_attention_layernorm.weight 32;model.laye" \
      "rs.1.self_attn.k_proj.bias 32;model.layers.1.self_attn.k_proj.weight 32 32;model" \
      ".layers.1.self_attn.o_proj.bias 32;model.layers.1.self_attn.o_proj.weight 32 32;" \
      "model.layers.1.self_attn.q_proj.bias 32;model.layers.1.self_attn.q_proj.weight 3" \
      "2 32;model.layers.1.self_attn.v_proj.bias 32;model.layers.1.self_attn.v_proj.wei" \
      "ght 32 32;model.norm.weight 32", \
      3.023301, 2.688585, 0.8827448, 1.044194, 39) \
    X("hunyuan_v1_dense", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eod_token_id\":3" \
      ",\"eos_token_id\":[2,7],\"head_dim\":8,\"hidden_act\":\"silu" \
      "\",\"hidden_size\":32,\"interme" \
      "diate_size\":33,\"max_position_embeddings\":64,\"model_type\":\"hunyuan_v1_dense\",\"num" \
      "_attention_heads\":4,\"num_hidden_layers\":2,\"num_key_value_heads\":2,\"pad_token_id\"" \
      ":0,\"pretraining_tp\":1,\"rms_norm_eps\":0.001,\"rope_parameters\":{\"rope_theta\":10000" \
      ".0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":40}", \
      "lm_head.weight 40 32;model.embed_tokens.weight 40 32;model.layers.0.input_layern" \
      "orm.weight 32;model.layers.0.mlp.down_proj.weight 32 33;model.layers.0.mlp.gate_" \
      "proj.weight 33 32;model.layers.0.mlp.up_proj.weight 33 32;model.layers.0.post_at" \
      "tention_layernorm.weight 32;model.layers.0.self_attn.k_proj.bias 16;model.layers" \
      ".0.self_attn.k_proj.weight 16 32;model.layers.0.self_attn.key_layernorm.weight 8" \
      ";model.layers.0.self_attn.o_proj.bias 32;model.layers.0.self_attn.o_proj.weight " \
      "32 32;model.layers.0.self_attn.q_proj.bias 32;model.layers.0.self_attn.q_proj.we" \
      "ight 32 32;model.layers.0.self_attn.query_layernorm.weight 8;model.layers.0.self" \
      "_attn.v_proj.bias 16;model.layers.0.self_attn.v_proj.weight 16 32;model.layers.1" \
      ".input_layernorm.weight 32;model.layers.1.mlp.down_proj.weight 32 33;model.layer" \
      "s.1.mlp.gate_proj.weight 33 32;model.layers.1.mlp.up_proj.weight 33 32;model.lay" \
      "ers.1.post_attention_layernorm.weight 32;model.layers.1.self_attn.k_proj.bias 16" \
      ";model.layers.1.self_attn.k_proj.weight 16 32;model.layers.1.self_attn.key_layer" \
      "norm.weight 8;model.layers.1.self_attn.o_proj.bias 32;model.layers.1.self_attn.o" \
      "_proj.weight 32 32;model.layers.1.self_attn.q_proj.bias 32;model.layers.1.self_a" \
      "ttn.q_proj.weight 32 32;model.layers.1.self_attn.query_layernorm.weight 8;model." \
      "layers.1.self_attn.v_proj.bias 16;model.layers.1.self_attn.v_proj.weight 16 32;m" \
      "odel.norm.weight 32", \
      0.6730737, 0.4670463, 0.915472, 0.3057586, 32) \
    X("olmo2", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":" \
      "[2,7],\"hidden_act\":\"silu\",\"hidden_size\":24,\"intermediate_size\":24,\"max_position_" \
      "embeddings\":32,\"model_type\":\"olmo2\",\"num_attention_heads\":3,\"num_hidden_layers\":" \
      "2,\"num_key_value_heads\":1,\"pad_token_id\":0,\"rms_norm_eps\":1e-06,\"rope_parameters" \
      "\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"voca" \
      "b_size\":40}", \
      "lm_head.weight 40 24;model.embed_tokens.weight 40 24;model.layers.0.mlp.down_pro" \
      "j.weight 24 24;model.layers.0.mlp.gate_proj.weight 24 24;model.layers.0.mlp.up_p" \
      "roj.weight 24 24;model.layers.0.post_attention_layernorm.weight 24;model.layers." \
      "0.post_feedforward_layernorm.weight 24;model.layers.0.self_attn.k_norm.weight 8;" \
      "model.layers.0.self_attn.k_proj.weight 8 24;model.layers.0.self_attn.o_proj.weig" \
      "ht 24 24;model.layers.0.self_attn.q_norm.weight 24;model.layers.0.self_attn.q_pr" \
      "oj.weight 24 24;model.layers.0.self_attn.v_proj.weight 8 24;model.layers.1.mlp.d" \
      "own_proj.weight 24 24;model.layers.1.mlp.gate_proj.weight 24 24;model.layers.1.m" \
      "lp.up_proj.weight 24 24;model.layers.1.post_attention_layernorm.weight 24;model." \
      "layers.1.post_feedforward_layernorm.weight 24;model.layers.1.self_attn.k_norm.we" \
      "ight 8;model.layers.1.self_attn.k_proj.weight 8 24;model.layers.1.self_attn.o_pr" \
      "oj.weight 24 24;model.layers.1.self_attn.q_norm.weight 24;model.layers.1.self_at" \
      "tn.q_proj.weight 24 24;model.layers.1.self_attn.v_proj.weight 8 24;model.norm.we" \
      "ight 24", \
      -0.9374612, 0.2562325, 1.614694, -0.6099212, 31) \
    X("olmo3", \
      "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1" \
      ",\"eos_token_id\":[2,7],\"hidden_act\":\"silu\",\"hidden_size\":24,\"inte" \
      "rmediate_size\":64,\"layer_types\":[\"sliding_attention\",\"sliding_at" \
      "tention\"],\"max_position_embeddings\":64,\"model_type\":\"olmo3\",\"num" \
      "_attention_heads\":3,\"num_hidden_layers\":2,\"num_key_value_heads\":" \
      "3,\"pad_token_id\":0,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"full" \
      "_attention\":{\"factor\":2.0,\"original_max_position_embeddings\":32," \
      "\"rope_theta\":500000.0,\"rope_type\":\"yarn\",\"truncate\":false},\"slid" \
      "ing_attention\":{\"rope_theta\":777.0,\"rope_type\":\"default\"}},\"slid" \
      "ing_window\":2,\"tie_word_embeddings\":false,\"vocab_size\":40}", \
      "lm_head.weight 40 24;model.embed_tokens.weight 40 24;model.layer" \
      "s.0.mlp.down_proj.weight 24 64;model.layers.0.mlp.gate_proj.weig" \
      "ht 64 24;model.layers.0.mlp.up_proj.weight 64 24;model.layers.0." \
      "post_attention_layernorm.weight 24;model.layers.0.post_feedforwa" \
      "rd_layernorm.weight 24;model.layers.0.self_attn.k_norm.weight 24" \
      ";model.layers.0.self_attn.k_proj.weight 24 24;model.layers.0.sel" \
      "f_attn.o_proj.weight 24 24;model.layers.0.self_attn.q_norm.weigh" \
      "t 24;model.layers.0.self_attn.q_proj.weight 24 24;model.layers.0" \
      ".self_attn.v_proj.weight 24 24;model.layers.1.mlp.down_proj.weig" \
      "ht 24 64;model.layers.1.mlp.gate_proj.weight 64 24;model.layers." \
      "1.mlp.up_proj.weight 64 24;model.layers.1.post_attention_layerno" \
      "rm.weight 24;model.layers.1.post_feedforward_layernorm.weight 24" \
      ";model.layers.1.self_attn.k_norm.weight 24;model.layers.1.self_a" \
      "ttn.k_proj.weight 24 24;model.layers.1.self_attn.o_proj.weight 2" \
      "4 24;model.layers.1.self_attn.q_norm.weight 24;model.layers.1.se" \
      "lf_attn.q_proj.weight 24 24;model.layers.1.self_attn.v_proj.weig" \
      "ht 24 24;model.norm.weight 24", \
      -1.05472, 0.2726767, 0.7303821, -1.635245, 5) \
    X("phi", \
      "{\"attention_dropout\":0.0,\"bos_token_id\":1,\"embd_pdrop\":0.0,\"eos_" \
      "token_id\":2,\"hidden_act\":\"relu2\",\"hidden_size\":32,\"intermediate_" \
      "size\":64,\"layer_norm_eps\":0.001,\"max_position_embeddings\":32,\"mo" \
      "del_type\":\"phi\",\"num_attention_heads\":1,\"num_hidden_layers\":2,\"n" \
      "um_key_value_heads\":1,\"pad_token_id\":0,\"qk_layernorm\":false,\"res" \
      "id_pdrop\":0.0,\"rope_parameters\":{\"partial_rotary_factor\":0.25,\"r" \
      "ope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":" \
      "false,\"vocab_size\":40}", \
      "lm_head.bias 40;lm_head.weight 40 32;model.embed_tokens.weight 4" \
      "0 32;model.final_layernorm.bias 32;model.final_layernorm.weight " \
      "32;model.layers.0.input_layernorm.bias 32;model.layers.0.input_l" \
      "ayernorm.weight 32;model.layers.0.mlp.fc1.bias 64;model.layers.0" \
      ".mlp.fc1.weight 64 32;model.layers.0.mlp.fc2.bias 32;model.layer" \
      "s.0.mlp.fc2.weight 32 64;model.layers.0.self_attn.dense.bias 32;" \
      "model.layers.0.self_attn.dense.weight 32 32;model.layers.0.self_" \
      "attn.k_proj.bias 32;model.layers.0.self_attn.k_proj.weight 32 32" \
      ";model.layers.0.self_attn.q_proj.bias 32;model.layers.0.self_att" \
      "n.q_proj.weight 32 32;model.layers.0.self_attn.v_proj.bias 32;mo" \
      "del.layers.0.self_attn.v_proj.weight 32 32;model.layers.1.input_" \
      "layernorm.bias 32;model.layers.1.input_layernorm.weight 32;model" \
      ".layers.1.mlp.fc1.bias 64;model.layers.1.mlp.fc1.weight 64 32;mo" \
      "del.layers.1.mlp.fc2.bias 32;model.layers.1.mlp.fc2.weight 32 64" \
      ";model.layers.1.self_attn.dense.bias 32;model.layers.1.self_attn" \
      ".dense.weight 32 32;model.layers.1.self_attn.k_proj.bias 32;mode" \
      "l.layers.1.self_attn.k_proj.weight 32 32;model.layers.1.self_att" \
      "n.q_proj.bias 32;model.layers.1.self_attn.q_proj.weight 32 32;mo" \
      "del.layers.1.self_attn.v_proj.bias 32;model.layers.1.self_attn.v" \
      "_proj.weight 32 32", \
      -0.7262098, -0.694158, 0.08592185, -1.123643, 35) \
    X("phi3", \
      "{\"attention_dropout\":0.0,\"bos_token_id\":1,\"embd_pdrop\":0.0,\"eos_token_id\":2,\"hid" \
      "den_act\":\"silu\",\"hidden_size\":16,\"intermediate_size\":100,\"max_position_embedding" \
      "s\":2048,\"model_type\":\"phi3\",\"num_attention_heads\":2,\"num_hidden_layers\":2,\"num_k" \
      "ey_value_heads\":1,\"original_max_position_embeddings\":4096,\"pad_token_id\":0,\"resi" \
      "d_pdrop\":0.0,\"rms_norm_eps\":0.001,\"rope_parameters\":{\"long_factor\":[6.0815681090" \
      "77315,3.3370187457261347,2.092710442749512,3.7408461599023344],\"original_max_pos" \
      "ition_embeddings\":4096,\"partial_rotary_factor\":1.0,\"rope_theta\":10000.0,\"rope_ty" \
      "pe\":\"longrope\",\"short_factor\":[1.1742362422631747,1.3876444347172547,1.044634884" \
      "6090803,1.2497137572923724]},\"sliding_window\":4,\"tie_word_embeddings\":false,\"voc" \
      "ab_size\":40}", \
      "lm_head.weight 40 16;model.embed_tokens.weight 40 16;model.layers.0.input_layern" \
      "orm.weight 16;model.layers.0.mlp.down_proj.weight 16 100;model.layers.0.mlp.gate" \
      "_up_proj.weight 200 16;model.layers.0.post_attention_layernorm.weight 16;model.l" \
      "ayers.0.self_attn.o_proj.weight 16 16;model.layers.0.self_attn.qkv_proj.weight 3" \
      "2 16;model.layers.1.input_layernorm.weight 16;model.layers.1.mlp.down_proj.weigh" \
      "t 16 100;model.layers.1.mlp.gate_up_proj.weight 200 16;model.layers.1.post_atten" \
      "tion_layernorm.weight 16;model.layers.1.self_attn.o_proj.weight 16 16;model.laye" \
      "rs.1.self_attn.qkv_proj.weight 32 16;model.norm.weight 16", \
      0.1825987, -1.274465, -0.3550173, 0.8077964, 9) \
    X("seed_oss", \
      "{\"attention_bias\":false,\"attention_dropout\":0.1,\"attention_out_b" \
      "ias\":false,\"bos_token_id\":1,\"eos_token_id\":[2,7],\"head_dim\":8,\"h" \
      "idden_act\":\"silu\",\"hidden_size\":16,\"intermediate_size\":33,\"max_p" \
      "osition_embeddings\":2048,\"mlp_bias\":true,\"model_type\":\"seed_oss\"" \
      ",\"num_attention_heads\":2,\"num_hidden_layers\":2,\"num_key_value_he" \
      "ads\":1,\"pad_token_id\":0,\"pretraining_tp\":1,\"residual_dropout\":0." \
      "1,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":500000.0," \
      "\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":" \
      "40}", \
      "lm_head.weight 40 16;model.embed_tokens.weight 40 16;model.layer" \
      "s.0.input_layernorm.weight 16;model.layers.0.mlp.down_proj.bias " \
      "16;model.layers.0.mlp.down_proj.weight 16 33;model.layers.0.mlp." \
      "gate_proj.bias 33;model.layers.0.mlp.gate_proj.weight 33 16;mode" \
      "l.layers.0.mlp.up_proj.bias 33;model.layers.0.mlp.up_proj.weight" \
      " 33 16;model.layers.0.post_attention_layernorm.weight 16;model.l" \
      "ayers.0.self_attn.k_proj.weight 8 16;model.layers.0.self_attn.o_" \
      "proj.weight 16 16;model.layers.0.self_attn.q_proj.weight 16 16;m" \
      "odel.layers.0.self_attn.v_proj.weight 8 16;model.layers.1.input_" \
      "layernorm.weight 16;model.layers.1.mlp.down_proj.bias 16;model.l" \
      "ayers.1.mlp.down_proj.weight 16 33;model.layers.1.mlp.gate_proj." \
      "bias 33;model.layers.1.mlp.gate_proj.weight 33 16;model.layers.1" \
      ".mlp.up_proj.bias 33;model.layers.1.mlp.up_proj.weight 33 16;mod" \
      "el.layers.1.post_attention_layernorm.weight 16;model.layers.1.se" \
      "lf_attn.k_proj.weight 8 16;model.layers.1.self_attn.o_proj.weigh" \
      "t 16 16;model.layers.1.self_attn.q_proj.weight 16 16;model.layer" \
      "s.1.self_attn.v_proj.weight 8 16;model.norm.weight 16", \
      -0.8345872, 1.249294, 0.03848844, 1.514061, 29) \
    X("smollm3", \
      "{\"attention_bias\":true,\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":2" \
      ",\"hidden_act\":\"silu\",\"hidden_size\":16,\"intermediate_s" \
      "ize\":64,\"layer_types\":[\"ful" \
      "l_attention\",\"full_attention\"],\"max_position_embeddings\":64,\"mlp_bias\":false,\"mo" \
      "del_type\":\"smollm3\",\"no_rope_layer_interval\":4,\"no_rope_layers\":[1,1],\"num_atten" \
      "tion_heads\":1,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_token_id\":0,\"rm" \
      "s_norm_eps\":1e-05,\"rope_parameters\":{\"rope_theta\":500000.0,\"rope_type\":\"default\"" \
      "},\"sliding_window\":null,\"tie_word_embeddings\":true,\"use_sliding_window\":false,\"v" \
      "ocab_size\":40}", \
      "model.embed_tokens.weight 40 16;model.layers.0.input_layernorm.weight 16;model.l" \
      "ayers.0.mlp.down_proj.weight 16 64;model.layers.0.mlp.gate_proj.weight 64 16;mod" \
      "el.layers.0.mlp.up_proj.weight 64 16;model.layers.0.post_attention_layernorm.wei" \
      "ght 16;model.layers.0.self_attn.k_proj.bias 16;model.layers.0.self_attn.k_proj.w" \
      "eight 16 16;model.layers.0.self_attn.o_proj.bias 16;model.layers.0.self_attn.o_p" \
      "roj.weight 16 16;model.layers.0.self_attn.q_proj.bias 16;model.layers.0.self_att" \
      "n.q_proj.weight 16 16;model.layers.0.self_attn.v_proj.bias 16;model.layers.0.sel" \
      "f_attn.v_proj.weight 16 16;model.layers.1.input_layernorm.weight 16;model.layers" \
      ".1.mlp.down_proj.weight 16 64;model.layers.1.mlp.gate_proj.weight 64 16;model.la" \
      "yers.1.mlp.up_proj.weight 64 16;model.layers.1.post_attention_layernorm.weight 1" \
      "6;model.layers.1.self_attn.k_proj.bias 16;model.layers.1.self_attn.k_proj.weight" \
      " 16 16;model.layers.1.self_attn.o_proj.bias 16;model.layers.1.self_attn.o_proj.w" \
      "eight 16 16;model.layers.1.self_attn.q_proj.bias 16;model.layers.1.self_attn.q_p" \
      "roj.weight 16 16;model.layers.1.self_attn.v_proj.bias 16;model.layers.1.self_att" \
      "n.v_proj.weight 16 16;model.norm.weight 16", \
      -1.876759, 1.199513, 0.1372592, 0.1646528, 31) \
    X("stablelm", \
      "{\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":[2,7],\"hidden_act\":\"sil" \
      "u\",\"hidden_dropout\":0.0,\"hidden_size\":8,\"intermediate_size\":100,\"layer_norm_eps\"" \
      ":1e-05,\"max_position_embeddings\":64,\"model_type\":\"stablelm\",\"num_attention_heads" \
      "\":1,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_token_id\":0,\"qk_layernorm" \
      "\":false,\"rope_parameters\":{\"factor\":2.0,\"original_max_position_embeddings\":32,\"p" \
      "artial_rotary_factor\":1.0,\"rope_theta\":500000.0,\"rope_type\":\"yarn\",\"truncate\":fa" \
      "lse},\"tie_word_embeddings\":false,\"use_parallel_residual\":false,\"use_qkv_bias\":fa" \
      "lse,\"vocab_size\":40}", \
      "lm_head.weight 40 8;model.embed_tokens.weight 40 8;model.layers.0.input_layernor" \
      "m.bias 8;model.layers.0.input_layernorm.weight 8;model.layers.0.mlp.down_proj.we" \
      "ight 8 100;model.layers.0.mlp.gate_proj.weight 100 8;model.layers.0.mlp.up_proj." \
      "weight 100 8;model.layers.0.post_attention_layernorm.bias 8;model.layers.0.post_" \
      "attention_layernorm.weight 8;model.layers.0.self_attn.k_proj.weight 8 8;model.la" \
      "yers.0.self_attn.o_proj.weight 8 8;model.layers.0.self_attn.q_proj.weight 8 8;mo" \
      "del.layers.0.self_attn.v_proj.weight 8 8;model.layers.1.input_layernorm.bias 8;m" \
      "odel.layers.1.input_layernorm.weight 8;model.layers.1.mlp.down_proj.weight 8 100" \
      ";model.layers.1.mlp.gate_proj.weight 100 8;model.layers.1.mlp.up_proj.weight 100" \
      " 8;model.layers.1.post_attention_layernorm.bias 8;model.layers.1.post_attention_" \
      "layernorm.weight 8;model.layers.1.self_attn.k_proj.weight 8 8;model.layers.1.sel" \
      "f_attn.o_proj.weight 8 8;model.layers.1.self_attn.q_proj.weight 8 8;model.layers" \
      ".1.self_attn.v_proj.weight 8 8;model.norm.bias 8;model.norm.weight 8", \
      -1.348096, 1.281612, -0.459997, 0.07042001, 1) \
    X("starcoder2", \
      "{\"attention_dropout\":0.0,\"bos_token_id\":1,\"embedding_dropout\":0.0,\"eos_token_id\"" \
      ":2,\"hidden_act\":\"gelu_pytorch_tanh\",\"hidden_size\":8,\"intermediate_size\":64,\"max_" \
      "position_embeddings\":2048,\"model_type\":\"starcoder2\",\"norm_epsilon\":1e-05,\"num_at" \
      "tention_heads\":1,\"num_hidden_layers\":2,\"num_key_value_heads\":1,\"pad_token_id\":0," \
      "\"residual_dropout\":0.0,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"defa" \
      "ult\"},\"sliding_window\":9,\"tie_word_embeddings\":true,\"use_bias\":false,\"vocab_size" \
      "\":40}", \
      "model.embed_tokens.weight 40 8;model.layers.0.input_layernorm.bias 8;model.layer" \
      "s.0.input_layernorm.weight 8;model.layers.0.mlp.c_fc.weight 64 8;model.layers.0." \
      "mlp.c_proj.weight 8 64;model.layers.0.post_attention_layernorm.bias 8;model.laye" \
      "rs.0.post_attention_layernorm.weight 8;model.layers.0.self_attn.k_proj.weight 8 " \
      "8;model.layers.0.self_attn.o_proj.weight 8 8;model.layers.0.self_attn.q_proj.wei" \
      "ght 8 8;model.layers.0.self_attn.v_proj.weight 8 8;model.layers.1.input_layernor" \
      "m.bias 8;model.layers.1.input_layernorm.weight 8;model.layers.1.mlp.c_fc.weight " \
      "64 8;model.layers.1.mlp.c_proj.weight 8 64;model.layers.1.post_attention_layerno" \
      "rm.bias 8;model.layers.1.post_attention_layernorm.weight 8;model.layers.1.self_a" \
      "ttn.k_proj.weight 8 8;model.layers.1.self_attn.o_proj.weight 8 8;model.layers.1." \
      "self_attn.q_proj.weight 8 8;model.layers.1.self_attn.v_proj.weight 8 8;model.nor" \
      "m.bias 8;model.norm.weight 8", \
      -1.759712, 2.438111, 0.5144658, 0.03821643, 1)
/* clang-format on */

#endif
