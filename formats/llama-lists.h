/* SPDX-License-Identifier: MIT
 * Members of config.json (llama, mistral, qwen2, qwen3 and their kinds with experts) and keys of
 * GGUF files: those that are used, those that are known to be harmless, each with the reason, and
 * those that must be off. Anything that is in no list may change results, and is refused by name.
 * Facts: the configurations and models of Hugging Face's transformers, versions 4 and 5;
 * gguf-py/gguf/constants.py of ggml-org/llama.cpp. */
#ifndef TND_LLAMA_LISTS_H
#define TND_LLAMA_LISTS_H

/* X(member, where, key after the architecture or NULL): integers, and numbers. Where: TOP: top
 * level of config.json; ROPE: in rope_scaling or rope_parameters; BOTH: ROPE overrides TOP; OWN:
 * top level, only for families that list it in `own` (hf_families.c). */
#define TND_CONFIG_INTEGERS(X)                                                                     \
    X(hidden_size, TOP, "embedding_length")                                                        \
    X(intermediate_size, TOP, "feed_forward_length")                                               \
    X(num_hidden_layers, TOP, "block_count")                                                       \
    X(num_attention_heads, TOP, "attention.head_count")                                            \
    X(num_key_value_heads, TOP, "attention.head_count_kv")                                         \
    X(max_position_embeddings, TOP, "context_length")                                              \
    X(vocab_size, TOP, "vocab_size")                                                               \
    X(head_dim, TOP, "attention.key_length")                                                       \
    X(sliding_window, TOP, "attention.sliding_window")                                             \
    X(max_window_layers, TOP, NULL)                                                                \
    X(num_local_experts, TOP, "expert_count")                                                      \
    X(num_experts, TOP, NULL)                                                                      \
    X(num_experts_per_tok, TOP, "expert_used_count")                                               \
    X(moe_intermediate_size, TOP, "expert_feed_forward_length")                                    \
    X(shared_expert_intermediate_size, TOP, "expert_shared_feed_forward_length")                   \
    X(sliding_window_pattern, OWN, NULL)                                                           \
    X(no_rope_layer_interval, OWN, NULL)                                                           \
    X(n_shared_experts, OWN, "expert_shared_count")                                                \
    X(first_k_dense_replace, OWN, "leading_dense_block_count")                                     \
    X(num_ln_in_parallel_attn, OWN, NULL)                                                          \
    X(num_kv_heads, OWN, NULL)                                                                     \
    X(q_lora_rank, OWN, "attention.q_lora_rank")                                                   \
    X(kv_lora_rank, OWN, "attention.kv_lora_rank")                                                 \
    X(qk_nope_head_dim, OWN, NULL)                                                                 \
    X(qk_rope_head_dim, OWN, NULL)                                                                 \
    X(v_head_dim, OWN, "attention.value_length_mla")                                               \
    X(n_group, OWN, "expert_group_count")                                                          \
    X(topk_group, OWN, "expert_group_used_count")                                                  \
    X(type_vocab_size, OWN, NULL)                                                                  \
    X(pad_token_id, OWN, NULL)
#define TND_CONFIG_NUMBERS(X)                                                                      \
    X(rms_norm_eps, TOP, "attention.layer_norm_rms_epsilon")                                       \
    X(rope_theta, BOTH, "rope.freq_base")                                                          \
    X(original_max_position_embeddings, BOTH, NULL)                                                \
    X(partial_rotary_factor, BOTH, NULL)                                                           \
    X(factor, ROPE, "rope.scaling.factor")                                                         \
    X(alpha, ROPE, NULL)                                                                           \
    X(attention_factor, ROPE, NULL)                                                                \
    X(mscale, ROPE, NULL)                                                                          \
    X(mscale_all_dim, ROPE, NULL)                                                                  \
    X(beta_fast, ROPE, "rope.scaling.yarn_beta_fast")                                              \
    X(beta_slow, ROPE, "rope.scaling.yarn_beta_slow")                                              \
    X(low_freq_factor, ROPE, "rope.scaling.low_freq_factor")                                       \
    X(high_freq_factor, ROPE, "rope.scaling.high_freq_factor")                                     \
    X(layer_norm_eps, OWN, "attention.layer_norm_epsilon")                                         \
    X(query_pre_attn_scalar, OWN, NULL)                                                            \
    X(attention_multiplier, OWN, "attention.scale")                                                \
    X(attn_logit_softcapping, OWN, "attn_logit_softcapping")                                       \
    X(final_logit_softcapping, OWN, "final_logit_softcapping")                                     \
    X(embedding_multiplier, OWN, "embedding_scale")                                                \
    X(residual_multiplier, OWN, "residual_scale")                                                  \
    X(logit_scale, OWN, "logit_scale")                                                             \
    X(routed_scaling_factor, OWN, "expert_weights_scale")                                          \
    X(rope_local_base_freq, OWN, "rope.freq_base_swa")                                             \
    X(swiglu_alpha, OWN, NULL)                                                                     \
    X(swiglu_limit, OWN, NULL)
#define TND_CONFIG_FLAGS(X)                                                                        \
    X(use_sliding_window)                                                                          \
    X(attention_bias)                                                                              \
    X(attention_out_bias)                                                                          \
    X(mlp_bias)                                                                                    \
    X(tie_word_embeddings)                                                                         \
    X(norm_topk_prob)                                                                              \
    X(qkv_bias)                                                                                    \
    X(use_qk_norm)                                                                                 \
    X(use_parallel_residual)                                                                       \
    X(new_decoder_architecture)                                                                    \
    X(multi_query)                                                                                 \
    X(parallel_attn)                                                                               \
    X(scale_attn_weights)                                                                          \
    X(is_decoder)                                                                                  \
    X(rope_interleave)
/* Flags that only families listing them in `own` have. */
#define TND_CONFIG_OWN_FLAGS                                                                       \
    "attention_out_bias use_qk_norm use_parallel_residual new_decoder_architecture multi_query "   \
    "parallel_attn scale_attn_weights is_decoder rope_interleave"

/* X(member, why) */
#define TND_CONFIG_HARMLESS(X)                                                                     \
    X(architectures, "model_type says it")                                                         \
    X(auto_map, "names code for Python, which is not run")                                         \
    X(_name_or_path, "origin")                                                                     \
    X(_commit_hash, "origin")                                                                      \
    X(transformers_version, "origin")                                                              \
    X(unsloth_version, "origin")                                                                   \
    X(unsloth_fixed, "origin")                                                                     \
    X(finetuning_task, "origin")                                                                   \
    X(task_specific_params, "options of generation")                                               \
    X(dtype, "each tensor says its type")                                                          \
    X(torch_dtype, "each tensor says its type")                                                    \
    X(use_bfloat16, "each tensor says its type")                                                   \
    X(use_cache, "speed")                                                                          \
    X(pretraining_tp, "how products were cut in training; the sums are the same")                  \
    X(attn_implementation, "speed")                                                                \
    X(_attn_implementation, "speed")                                                               \
    X(_attn_implementation_autoset, "speed")                                                       \
    X(_attn_implementation_internal, "speed")                                                      \
    X(_flash_attn_2_enabled, "speed")                                                              \
    X(use_flash_attn, "speed")                                                                     \
    X(chunk_size_feed_forward, "speed")                                                            \
    X(torchscript, "speed")                                                                        \
    X(gradient_checkpointing, "training")                                                          \
    X(initializer_range, "training")                                                               \
    X(attention_dropout, "training")                                                               \
    X(hidden_dropout, "training")                                                                  \
    X(hidden_dropout_prob, "training")                                                             \
    X(attention_probs_dropout_prob, "training")                                                    \
    X(classifier_dropout, "training")                                                              \
    X(sentence_transformers, "options of sentence-transformers")                                   \
    X(directionality, "of the code that BERT came with")                                           \
    X(pooler_fc_size, "of the code that BERT came with")                                           \
    X(pooler_num_attention_heads, "of the code that BERT came with")                               \
    X(pooler_num_fc_layers, "of the code that BERT came with")                                     \
    X(pooler_size_per_head, "of the code that BERT came with")                                     \
    X(pooler_type, "of the code that BERT came with")                                              \
    X(resid_pdrop, "training")                                                                     \
    X(embd_pdrop, "training")                                                                      \
    X(tf_legacy_loss, "training")                                                                  \
    X(router_aux_loss_coef, "training")                                                            \
    X(router_jitter_noise, "training")                                                             \
    X(output_router_logits, "what else is returned")                                               \
    X(problem_type, "classification")                                                              \
    X(id2label, "classification")                                                                  \
    X(label2id, "classification")                                                                  \
    X(num_labels, "classification")                                                                \
    X(output_attentions, "what else is returned")                                                  \
    X(output_hidden_states, "what else is returned")                                               \
    X(output_scores, "what else is returned")                                                      \
    X(output_past, "what else is returned")                                                        \
    X(return_dict, "how it is returned")                                                           \
    X(return_dict_in_generate, "how it is returned")                                               \
    X(is_decoder, "these models are decoders, or say so themselves")                               \
    X(tokenizer_class, "of the tokenizer, which has files of its own")                             \
    X(pad_token_id, "nothing is padded")                                                           \
    X(unk_token_id, "of the tokenizer, which has files of its own")                                \
    X(sep_token_id, "of encoders")                                                                 \
    X(cls_token_id, "of encoders")                                                                 \
    X(decoder_start_token_id, "of encoders")                                                       \
    X(model_max_length, "max_position_embeddings says it")                                         \
    X(max_sequence_length, "max_position_embeddings says it")                                      \
    X(seq_length, "max_position_embeddings says it")                                               \
    X(prefix, "options of generation")                                                             \
    X(max_length, "options of generation")                                                         \
    X(max_new_tokens, "options of generation")                                                     \
    X(min_length, "options of generation")                                                         \
    X(do_sample, "options of generation")                                                          \
    X(early_stopping, "options of generation")                                                     \
    X(num_beams, "options of generation")                                                          \
    X(num_beam_groups, "options of generation")                                                    \
    X(diversity_penalty, "options of generation")                                                  \
    X(temperature, "options of generation")                                                        \
    X(top_k, "options of generation")                                                              \
    X(top_p, "options of generation")                                                              \
    X(typical_p, "options of generation")                                                          \
    X(repetition_penalty, "options of generation")                                                 \
    X(length_penalty, "options of generation")                                                     \
    X(no_repeat_ngram_size, "options of generation")                                               \
    X(encoder_no_repeat_ngram_size, "options of generation")                                       \
    X(bad_words_ids, "options of generation")                                                      \
    X(num_return_sequences, "options of generation")                                               \
    X(remove_invalid_values, "options of generation")                                              \
    X(suppress_tokens, "options of generation")                                                    \
    X(begin_suppress_tokens, "options of generation")                                              \
    X(forced_bos_token_id, "options of generation")                                                \
    X(forced_eos_token_id, "options of generation")                                                \
    X(exponential_decay_length_penalty, "options of generation")                                   \
    X(is_llama_config, "a mark of SmolLM's training code")                                         \
    X(transformers.js_config, "options of transformers.js")                                        \
    X(neuron, "how AWS Neuron compiles it")                                                        \
    X(summary_type, "classification")                                                              \
    X(summary_use_proj, "classification")                                                          \
    X(summary_activation, "classification")                                                        \
    X(summary_proj_to_labels, "classification")                                                    \
    X(summary_first_dropout, "classification")                                                     \
    X(classifier_dropout, "classification")                                                        \
    X(reorder_and_upcast_attn, "how exactly it is computed")                                       \
    X(attn_pdrop, "training")                                                                      \
    X(residual_dropout, "training")                                                                \
    X(embedding_dropout, "training")                                                               \
    X(initial_context_length, "origin")                                                            \
    X(experts_per_token, "num_experts_per_tok says it")                                            \
    X(num_nextn_predict_layers, "heads that predict more than one token")                          \
    X(num_mtp_layers, "heads that predict more than one token")                                    \
    X(eod_token_id, "a token of training")                                                         \
    X(eom_token_id, "a token of training")                                                         \
    X(mask_token_id, "a token of training")                                                        \
    X(reference_compile, "speed")                                                                  \
    X(repad_logits_with_grad, "training")                                                          \
    X(deterministic_flash_attn, "speed")                                                           \
    X(initializer_cutoff_factor, "training")                                                       \
    X(mlp_dropout, "training")                                                                     \
    X(sparse_prediction, "training")                                                               \
    X(sparse_pred_ignore_index, "training")                                                        \
    X(decoder_bias, "of the head that guesses masked tokens")                                      \
    X(cache_implementation, "memory")

/* X(member, neutral number): values that do not change results are accepted: the number, false,
 * null, empty ones. */
#define TND_CONFIG_OFF(X)                                                                          \
    X(decoder_sparse_step, 1)                                                                      \
    X(mlp_only_layers, 0)                                                                          \
    X(rope_interleaved, 0)                                                                         \
    X(rope_traditional, 0)                                                                         \
    X(logit_scale, 1)                                                                              \
    X(logits_scaling, 1)                                                                           \
    X(embedding_multiplier, 1)                                                                     \
    X(residual_multiplier, 1)                                                                      \
    X(attn_logit_softcapping, 0)                                                                   \
    X(final_logit_softcapping, 0)                                                                  \
    X(use_qk_norm, 0)                                                                              \
    X(qk_layernorm, 0)                                                                             \
    X(use_mrope, 0)                                                                                \
    X(pruned_heads, 0)                                                                             \
    X(is_encoder_decoder, 0)                                                                       \
    X(add_cross_attention, 0)                                                                      \
    X(cross_attention_hidden_size, 0)                                                              \
    X(tie_encoder_decoder, 0)                                                                      \
    X(use_bidirectional_attention, 0)                                                              \
    X(alibi, 0)                                                                                    \
    X(scale_attn_by_inverse_layer_idx, 0)                                                          \
    X(n_group, 1)                                                                                  \
    X(topk_group, 1)                                                                               \
    X(apply_residual_connection_post_layernorm, 0)                                                 \
    X(full_attn_mod, 1)                                                                            \
    X(interpolate_factor, 1)                                                                       \
    X(lm_head_bias, 0)                                                                             \
    X(use_cla, 0)                                                                                  \
    X(position_embedding_xdrope, 0)                                                                \
    X(norm_bias, 0)                                                                                \
    X(classifier_bias, 0)

/* X("key after the architecture", kind, why harmless or NULL) */
#define TND_LLAMA_KEYS(X)                                                                          \
    X("embedding_length", INTEGER, NULL)                                                           \
    X("feed_forward_length", INTEGER, NULL)                                                        \
    X("block_count", INTEGER, NULL)                                                                \
    X("context_length", INTEGER, NULL)                                                             \
    X("vocab_size", INTEGER, NULL)                                                                 \
    X("attention.head_count", INTEGER, NULL)                                                       \
    X("attention.head_count_kv", INTEGER, NULL)                                                    \
    X("attention.key_length", INTEGER, NULL)                                                       \
    X("attention.value_length", INTEGER, NULL)                                                     \
    X("attention.sliding_window", INTEGER, NULL)                                                   \
    X("attention.sliding_window_pattern", LAYERS, NULL)                                            \
    X("attention.layer_norm_rms_epsilon", NUMBER, NULL)                                            \
    X("expert_count", INTEGER, NULL)                                                               \
    X("expert_used_count", INTEGER, NULL)                                                          \
    X("expert_feed_forward_length", INTEGER, NULL)                                                 \
    X("expert_shared_feed_forward_length", INTEGER, NULL)                                          \
    X("expert_weights_norm", INTEGER, NULL)                                                        \
    X("rope.dimension_count", INTEGER, NULL)                                                       \
    X("rope.freq_base", NUMBER, NULL)                                                              \
    X("rope.scale_linear", NUMBER, NULL)                                                           \
    X("rope.scaling.type", TEXT, NULL)                                                             \
    X("rope.scaling.factor", NUMBER, NULL)                                                         \
    X("rope.scaling.low_freq_factor", NUMBER, NULL)                                                \
    X("rope.scaling.high_freq_factor", NUMBER, NULL)                                               \
    X("rope.scaling.original_context_length", NUMBER, NULL)                                        \
    X("rope.scaling.attn_factor", NUMBER, NULL)                                                    \
    X("rope.scaling.yarn_attn_factor", NUMBER, NULL)                                               \
    X("rope.scaling.yarn_ext_factor", NUMBER, NULL)                                                \
    X("rope.scaling.yarn_beta_fast", NUMBER, NULL)                                                 \
    X("rope.scaling.yarn_beta_slow", NUMBER, NULL)                                                 \
    X("rope.scaling.finetuned", INTEGER, "how the model was trained")                              \
    X("attention.causal", INTEGER, NULL)                                                           \
    X("tensor_data_layout", TEXT, "origin")                                                        \
    X("attention.layer_norm_epsilon", NUMBER, "of LayerNorm, which these models lack")             \
    X("pooling_type", INTEGER, NULL)                                                               \
    X("classifier.pooling_type", INTEGER, NULL)                                                    \
    X("hidden_activation", TEXT, NULL)                                                             \
    X("classifier.output_labels", ARRAY, "names of scores")

/* X("key after the architecture", number that does not change results) */
#define TND_LLAMA_OFF_KEYS(X)                                                                      \
    X("leading_dense_block_count", 0)                                                              \
    X("expert_gating_func", 1)                                                                     \
    X("expert_weights_scale", 1)                                                                   \
    X("expert_shared_count", 0)                                                                    \
    X("nextn_predict_layers", 0)                                                                   \
    X("use_parallel_residual", 0)                                                                  \
    X("attention.scale", 0)                                                                        \
    X("attention.clamp_kqv", 0)                                                                    \
    X("attention.max_alibi_bias", 0)                                                               \
    X("rope.scaling.yarn_log_multiplier", 0)                                                       \
    X("logit_scale", 1)                                                                            \
    X("residual_scale", 1)                                                                         \
    X("embedding_scale", 1)                                                                        \
    X("attn_logit_softcapping", 0)                                                                 \
    X("final_logit_softcapping", 0)

/* X("whole key", kind): our own keys, written from config.json. (tandem.scores_of_mean 1 is the
 * older form of classifier.pooling_type 1, and is no longer written.) */
#define TND_OWN_KEYS(X)                                                                            \
    X("tandem.rope.pairs", TEXT)                                                                   \
    X("tandem.rope.truncate", INTEGER)                                                             \
    X("tandem.activation", TEXT)                                                                   \
    X("tandem.end_tokens", ARRAY)                                                                  \
    X("tandem.has.output", INTEGER)                                                                \
    X("tandem.has.attention_bias", INTEGER)                                                        \
    X("tandem.has.attention_output_bias", INTEGER)                                                 \
    X("tandem.has.feed_forward_bias", INTEGER)                                                     \
    X("tandem.has.head_norm", INTEGER)                                                             \
    X("tandem.has.feed_forward_norm", INTEGER)                                                     \
    X("tandem.scores_of_mean", INTEGER)                                                            \
    X("tandem.has.second_norm", INTEGER)                                                           \
    X("tandem.rope.layers", ARRAY)

#endif
