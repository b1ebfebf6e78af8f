/* SPDX-License-Identifier: MIT
 * Small encoders and their scores (1), or the first values of their means (0), of two
 * texts, the second from token 5 on, by
 * tools/judges/golden_models.py with transformers 5.24.0.
 * X(model_type, config.json, tensors, values, is a classifier) */
#ifndef TND_TESTS_ENCODERS_GOLDEN_LIST_H
#define TND_TESTS_ENCODERS_GOLDEN_LIST_H

/* clang-format off */
#define TND_GOLDEN_ENCODERS(X) \
    X("bert", \
      "{\"add_cross_attention\":false,\"architectures\":[\"BertForSequenceCl" \
      "assification\"],\"attention_probs_dropout_prob\":0.1,\"bos_token_id\"" \
      ":null,\"classifier_dropout\":null,\"eos_token_id\":null,\"hidden_act\"" \
      ":\"gelu\",\"hidden_dropout_prob\":0.1,\"hidden_size\":16,\"intermediate" \
      "_size\":24,\"is_decoder\":false,\"layer_norm_eps\":1e-12,\"max_positio" \
      "n_embeddings\":32,\"model_type\":\"bert\",\"num_attention_heads\":2,\"nu" \
      "m_hidden_layers\":2,\"pad_token_id\":0,\"tie_word_embeddings\":true,\"" \
      "type_vocab_size\":2,\"vocab_size\":40}", \
      "bert.embeddings.LayerNorm.bias 16;bert.embeddings.LayerNorm.weig" \
      "ht 16;bert.embeddings.position_embeddings.weight 32 16;bert.embe" \
      "ddings.token_type_embeddings.weight 2 16;bert.embeddings.word_em" \
      "beddings.weight 40 16;bert.encoder.layer.0.attention.output.Laye" \
      "rNorm.bias 16;bert.encoder.layer.0.attention.output.LayerNorm.we" \
      "ight 16;bert.encoder.layer.0.attention.output.dense.bias 16;bert" \
      ".encoder.layer.0.attention.output.dense.weight 16 16;bert.encode" \
      "r.layer.0.attention.self.key.bias 16;bert.encoder.layer.0.attent" \
      "ion.self.key.weight 16 16;bert.encoder.layer.0.attention.self.qu" \
      "ery.bias 16;bert.encoder.layer.0.attention.self.query.weight 16 " \
      "16;bert.encoder.layer.0.attention.self.value.bias 16;bert.encode" \
      "r.layer.0.attention.self.value.weight 16 16;bert.encoder.layer.0" \
      ".intermediate.dense.bias 24;bert.encoder.layer.0.intermediate.de" \
      "nse.weight 24 16;bert.encoder.layer.0.output.LayerNorm.bias 16;b" \
      "ert.encoder.layer.0.output.LayerNorm.weight 16;bert.encoder.laye" \
      "r.0.output.dense.bias 16;bert.encoder.layer.0.output.dense.weigh" \
      "t 16 24;bert.encoder.layer.1.attention.output.LayerNorm.bias 16;" \
      "bert.encoder.layer.1.attention.output.LayerNorm.weight 16;bert.e" \
      "ncoder.layer.1.attention.output.dense.bias 16;bert.encoder.layer" \
      ".1.attention.output.dense.weight 16 16;bert.encoder.layer.1.atte" \
      "ntion.self.key.bias 16;bert.encoder.layer.1.attention.self.key.w" \
      "eight 16 16;bert.encoder.layer.1.attention.self.query.bias 16;be" \
      "rt.encoder.layer.1.attention.self.query.weight 16 16;bert.encode" \
      "r.layer.1.attention.self.value.bias 16;bert.encoder.layer.1.atte" \
      "ntion.self.value.weight 16 16;bert.encoder.layer.1.intermediate." \
      "dense.bias 24;bert.encoder.layer.1.intermediate.dense.weight 24 " \
      "16;bert.encoder.layer.1.output.LayerNorm.bias 16;bert.encoder.la" \
      "yer.1.output.LayerNorm.weight 16;bert.encoder.layer.1.output.den" \
      "se.bias 16;bert.encoder.layer.1.output.dense.weight 16 24;bert.p" \
      "ooler.dense.bias 16;bert.pooler.dense.weight 16 16;classifier.bi" \
      "as 4;classifier.weight 4 16", \
      0.861321, -0.3041916, -0.6938288, -0.2879757, 1) \
    X("bert", \
      "{\"add_cross_attention\":false,\"architectures\":[\"BertModel\"],\"atte" \
      "ntion_probs_dropout_prob\":0.1,\"bos_token_id\":null,\"classifier_dr" \
      "opout\":null,\"eos_token_id\":null,\"hidden_act\":\"gelu\",\"hidden_drop" \
      "out_prob\":0.1,\"hidden_size\":16,\"intermediate_size\":24,\"is_decode" \
      "r\":false,\"layer_norm_eps\":1e-12,\"max_position_embeddings\":32,\"mo" \
      "del_type\":\"bert\",\"num_attention_heads\":2,\"num_hidden_layers\":2,\"" \
      "pad_token_id\":0,\"tie_word_embeddings\":true,\"type_vocab_size\":2,\"" \
      "vocab_size\":40}", \
      "embeddings.LayerNorm.bias 16;embeddings.LayerNorm.weight 16;embe" \
      "ddings.position_embeddings.weight 32 16;embeddings.token_type_em" \
      "beddings.weight 2 16;embeddings.word_embeddings.weight 40 16;enc" \
      "oder.layer.0.attention.output.LayerNorm.bias 16;encoder.layer.0." \
      "attention.output.LayerNorm.weight 16;encoder.layer.0.attention.o" \
      "utput.dense.bias 16;encoder.layer.0.attention.output.dense.weigh" \
      "t 16 16;encoder.layer.0.attention.self.key.bias 16;encoder.layer" \
      ".0.attention.self.key.weight 16 16;encoder.layer.0.attention.sel" \
      "f.query.bias 16;encoder.layer.0.attention.self.query.weight 16 1" \
      "6;encoder.layer.0.attention.self.value.bias 16;encoder.layer.0.a" \
      "ttention.self.value.weight 16 16;encoder.layer.0.intermediate.de" \
      "nse.bias 24;encoder.layer.0.intermediate.dense.weight 24 16;enco" \
      "der.layer.0.output.LayerNorm.bias 16;encoder.layer.0.output.Laye" \
      "rNorm.weight 16;encoder.layer.0.output.dense.bias 16;encoder.lay" \
      "er.0.output.dense.weight 16 24;encoder.layer.1.attention.output." \
      "LayerNorm.bias 16;encoder.layer.1.attention.output.LayerNorm.wei" \
      "ght 16;encoder.layer.1.attention.output.dense.bias 16;encoder.la" \
      "yer.1.attention.output.dense.weight 16 16;encoder.layer.1.attent" \
      "ion.self.key.bias 16;encoder.layer.1.attention.self.key.weight 1" \
      "6 16;encoder.layer.1.attention.self.query.bias 16;encoder.layer." \
      "1.attention.self.query.weight 16 16;encoder.layer.1.attention.se" \
      "lf.value.bias 16;encoder.layer.1.attention.self.value.weight 16 " \
      "16;encoder.layer.1.intermediate.dense.bias 24;encoder.layer.1.in" \
      "termediate.dense.weight 24 16;encoder.layer.1.output.LayerNorm.b" \
      "ias 16;encoder.layer.1.output.LayerNorm.weight 16;encoder.layer." \
      "1.output.dense.bias 16;encoder.layer.1.output.dense.weight 16 24", \
      0.7315752, 2.515696, 0.2551681, 1.550886, 0) \
    X("modernbert", \
      "{\"architectures\":[\"ModernBertForSequenceClassification\"],\"attent" \
      "ion_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":1,\"classi" \
      "fier_activation\":\"gelu\",\"classifier_bias\":false,\"classifier_drop" \
      "out\":0.0,\"classifier_pooling\":\"mean\",\"cls_token_id\":50281,\"decod" \
      "er_bias\":true,\"deterministic_flash_attn\":false,\"embedding_dropou" \
      "t\":0.0,\"eos_token_id\":2,\"hidden_activation\":\"gelu\",\"hidden_size\"" \
      ":16,\"initializer_cutoff_factor\":2.0,\"intermediate_size\":24,\"laye" \
      "r_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attentio" \
      "n\",\"full_attention\"],\"local_attention\":4,\"max_position_embedding" \
      "s\":32,\"mlp_bias\":false,\"mlp_dropout\":0.0,\"model_type\":\"modernber" \
      "t\",\"norm_bias\":false,\"norm_eps\":1e-05,\"num_attention_heads\":2,\"n" \
      "um_hidden_layers\":4,\"pad_token_id\":0,\"rope_parameters\":{\"full_at" \
      "tention\":{\"rope_theta\":160000.0,\"rope_type\":\"default\"},\"sliding_" \
      "attention\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}},\"sep_to" \
      "ken_id\":50282,\"sparse_pred_ignore_index\":-100,\"sparse_prediction" \
      "\":false,\"tie_word_embeddings\":true,\"vocab_size\":40}", \
      "classifier.bias 4;classifier.weight 4 16;head.dense.weight 16 16" \
      ";head.norm.weight 16;model.embeddings.norm.weight 16;model.embed" \
      "dings.tok_embeddings.weight 40 16;model.final_norm.weight 16;mod" \
      "el.layers.0.attn.Wo.weight 16 16;model.layers.0.attn.Wqkv.weight" \
      " 48 16;model.layers.0.mlp.Wi.weight 48 16;model.layers.0.mlp.Wo." \
      "weight 16 24;model.layers.0.mlp_norm.weight 16;model.layers.1.at" \
      "tn.Wo.weight 16 16;model.layers.1.attn.Wqkv.weight 48 16;model.l" \
      "ayers.1.attn_norm.weight 16;model.layers.1.mlp.Wi.weight 48 16;m" \
      "odel.layers.1.mlp.Wo.weight 16 24;model.layers.1.mlp_norm.weight" \
      " 16;model.layers.2.attn.Wo.weight 16 16;model.layers.2.attn.Wqkv" \
      ".weight 48 16;model.layers.2.attn_norm.weight 16;model.layers.2." \
      "mlp.Wi.weight 48 16;model.layers.2.mlp.Wo.weight 16 24;model.lay" \
      "ers.2.mlp_norm.weight 16;model.layers.3.attn.Wo.weight 16 16;mod" \
      "el.layers.3.attn.Wqkv.weight 48 16;model.layers.3.attn_norm.weig" \
      "ht 16;model.layers.3.mlp.Wi.weight 48 16;model.layers.3.mlp.Wo.w" \
      "eight 16 24;model.layers.3.mlp_norm.weight 16", \
      -1.224039, 0.7965817, -1.155681, -0.8384037, 1) \
    X("modernbert", \
      "{\"architectures\":[\"ModernBertModel\"],\"attention_bias\":false,\"att" \
      "ention_dropout\":0.0,\"bos_token_id\":1,\"classifier_activation\":\"ge" \
      "lu\",\"classifier_bias\":false,\"classifier_dropout\":0.0,\"classifier" \
      "_pooling\":\"mean\",\"cls_token_id\":50281,\"decoder_bias\":true,\"deter" \
      "ministic_flash_attn\":false,\"embedding_dropout\":0.0,\"eos_token_id" \
      "\":2,\"hidden_activation\":\"gelu\",\"hidden_size\":16,\"initializer_cut" \
      "off_factor\":2.0,\"intermediate_size\":24,\"layer_types\":[\"full_atte" \
      "ntion\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]" \
      ",\"local_attention\":4,\"max_position_embeddings\":32,\"mlp_bias\":fal" \
      "se,\"mlp_dropout\":0.0,\"model_type\":\"modernbert\",\"norm_bias\":false" \
      ",\"norm_eps\":1e-05,\"num_attention_heads\":2,\"num_hidden_layers\":4," \
      "\"pad_token_id\":0,\"rope_parameters\":{\"full_attention\":{\"rope_thet" \
      "a\":160000.0,\"rope_type\":\"default\"},\"sliding_attention\":{\"rope_th" \
      "eta\":10000.0,\"rope_type\":\"default\"}},\"sep_token_id\":50282,\"spars" \
      "e_pred_ignore_index\":-100,\"sparse_prediction\":false,\"tie_word_em" \
      "beddings\":true,\"vocab_size\":40}", \
      "embeddings.norm.weight 16;embeddings.tok_embeddings.weight 40 16" \
      ";final_norm.weight 16;layers.0.attn.Wo.weight 16 16;layers.0.att" \
      "n.Wqkv.weight 48 16;layers.0.mlp.Wi.weight 48 16;layers.0.mlp.Wo" \
      ".weight 16 24;layers.0.mlp_norm.weight 16;layers.1.attn.Wo.weigh" \
      "t 16 16;layers.1.attn.Wqkv.weight 48 16;layers.1.attn_norm.weigh" \
      "t 16;layers.1.mlp.Wi.weight 48 16;layers.1.mlp.Wo.weight 16 24;l" \
      "ayers.1.mlp_norm.weight 16;layers.2.attn.Wo.weight 16 16;layers." \
      "2.attn.Wqkv.weight 48 16;layers.2.attn_norm.weight 16;layers.2.m" \
      "lp.Wi.weight 48 16;layers.2.mlp.Wo.weight 16 24;layers.2.mlp_nor" \
      "m.weight 16;layers.3.attn.Wo.weight 16 16;layers.3.attn.Wqkv.wei" \
      "ght 48 16;layers.3.attn_norm.weight 16;layers.3.mlp.Wi.weight 48" \
      " 16;layers.3.mlp.Wo.weight 16 24;layers.3.mlp_norm.weight 16", \
      0.07034758, -0.4837933, -0.3994023, 1.00946, 0) \
    X("roberta", \
      "{\"add_cross_attention\":false,\"architectures\":[\"RobertaForSequenc" \
      "eClassification\"],\"attention_probs_dropout_prob\":0.1,\"bos_token_" \
      "id\":0,\"classifier_dropout\":null,\"eos_token_id\":2,\"hidden_act\":\"g" \
      "elu\",\"hidden_dropout_prob\":0.1,\"hidden_size\":16,\"intermediate_si" \
      "ze\":24,\"is_decoder\":false,\"layer_norm_eps\":1e-12,\"max_position_e" \
      "mbeddings\":32,\"model_type\":\"roberta\",\"num_attention_heads\":2,\"nu" \
      "m_hidden_layers\":2,\"pad_token_id\":6,\"tie_word_embeddings\":true,\"" \
      "type_vocab_size\":2,\"vocab_size\":40}", \
      "classifier.dense.bias 16;classifier.dense.weight 16 16;classifie" \
      "r.out_proj.bias 4;classifier.out_proj.weight 4 16;roberta.embedd" \
      "ings.LayerNorm.bias 16;roberta.embeddings.LayerNorm.weight 16;ro" \
      "berta.embeddings.position_embeddings.weight 32 16;roberta.embedd" \
      "ings.token_type_embeddings.weight 2 16;roberta.embeddings.word_e" \
      "mbeddings.weight 40 16;roberta.encoder.layer.0.attention.output." \
      "LayerNorm.bias 16;roberta.encoder.layer.0.attention.output.Layer" \
      "Norm.weight 16;roberta.encoder.layer.0.attention.output.dense.bi" \
      "as 16;roberta.encoder.layer.0.attention.output.dense.weight 16 1" \
      "6;roberta.encoder.layer.0.attention.self.key.bias 16;roberta.enc" \
      "oder.layer.0.attention.self.key.weight 16 16;roberta.encoder.lay" \
      "er.0.attention.self.query.bias 16;roberta.encoder.layer.0.attent" \
      "ion.self.query.weight 16 16;roberta.encoder.layer.0.attention.se" \
      "lf.value.bias 16;roberta.encoder.layer.0.attention.self.value.we" \
      "ight 16 16;roberta.encoder.layer.0.intermediate.dense.bias 24;ro" \
      "berta.encoder.layer.0.intermediate.dense.weight 24 16;roberta.en" \
      "coder.layer.0.output.LayerNorm.bias 16;roberta.encoder.layer.0.o" \
      "utput.LayerNorm.weight 16;roberta.encoder.layer.0.output.dense.b" \
      "ias 16;roberta.encoder.layer.0.output.dense.weight 16 24;roberta" \
      ".encoder.layer.1.attention.output.LayerNorm.bias 16;roberta.enco" \
      "der.layer.1.attention.output.LayerNorm.weight 16;roberta.encoder" \
      ".layer.1.attention.output.dense.bias 16;roberta.encoder.layer.1." \
      "attention.output.dense.weight 16 16;roberta.encoder.layer.1.atte" \
      "ntion.self.key.bias 16;roberta.encoder.layer.1.attention.self.ke" \
      "y.weight 16 16;roberta.encoder.layer.1.attention.self.query.bias" \
      " 16;roberta.encoder.layer.1.attention.self.query.weight 16 16;ro" \
      "berta.encoder.layer.1.attention.self.value.bias 16;roberta.encod" \
      "er.layer.1.attention.self.value.weight 16 16;roberta.encoder.lay" \
      "er.1.intermediate.dense.bias 24;roberta.encoder.layer.1.intermed" \
      "iate.dense.weight 24 16;roberta.encoder.layer.1.output.LayerNorm" \
      ".bias 16;roberta.encoder.layer.1.output.LayerNorm.weight 16;robe" \
      "rta.encoder.layer.1.output.dense.bias 16;roberta.encoder.layer.1" \
      ".output.dense.weight 16 24", \
      0.300908, -0.4212762, -0.8007466, 0.5647729, 1) \
    X("roberta", \
      "{\"add_cross_attention\":false,\"architectures\":[\"RobertaModel\"],\"a" \
      "ttention_probs_dropout_prob\":0.1,\"bos_token_id\":0,\"classifier_dr" \
      "opout\":null,\"eos_token_id\":2,\"hidden_act\":\"gelu\",\"hidden_dropout" \
      "_prob\":0.1,\"hidden_size\":16,\"intermediate_size\":24,\"is_decoder\":" \
      "false,\"layer_norm_eps\":1e-12,\"max_position_embeddings\":32,\"model" \
      "_type\":\"roberta\",\"num_attention_heads\":2,\"num_hidden_layers\":2,\"" \
      "pad_token_id\":6,\"tie_word_embeddings\":true,\"type_vocab_size\":2,\"" \
      "vocab_size\":40}", \
      "embeddings.LayerNorm.bias 16;embeddings.LayerNorm.weight 16;embe" \
      "ddings.position_embeddings.weight 32 16;embeddings.token_type_em" \
      "beddings.weight 2 16;embeddings.word_embeddings.weight 40 16;enc" \
      "oder.layer.0.attention.output.LayerNorm.bias 16;encoder.layer.0." \
      "attention.output.LayerNorm.weight 16;encoder.layer.0.attention.o" \
      "utput.dense.bias 16;encoder.layer.0.attention.output.dense.weigh" \
      "t 16 16;encoder.layer.0.attention.self.key.bias 16;encoder.layer" \
      ".0.attention.self.key.weight 16 16;encoder.layer.0.attention.sel" \
      "f.query.bias 16;encoder.layer.0.attention.self.query.weight 16 1" \
      "6;encoder.layer.0.attention.self.value.bias 16;encoder.layer.0.a" \
      "ttention.self.value.weight 16 16;encoder.layer.0.intermediate.de" \
      "nse.bias 24;encoder.layer.0.intermediate.dense.weight 24 16;enco" \
      "der.layer.0.output.LayerNorm.bias 16;encoder.layer.0.output.Laye" \
      "rNorm.weight 16;encoder.layer.0.output.dense.bias 16;encoder.lay" \
      "er.0.output.dense.weight 16 24;encoder.layer.1.attention.output." \
      "LayerNorm.bias 16;encoder.layer.1.attention.output.LayerNorm.wei" \
      "ght 16;encoder.layer.1.attention.output.dense.bias 16;encoder.la" \
      "yer.1.attention.output.dense.weight 16 16;encoder.layer.1.attent" \
      "ion.self.key.bias 16;encoder.layer.1.attention.self.key.weight 1" \
      "6 16;encoder.layer.1.attention.self.query.bias 16;encoder.layer." \
      "1.attention.self.query.weight 16 16;encoder.layer.1.attention.se" \
      "lf.value.bias 16;encoder.layer.1.attention.self.value.weight 16 " \
      "16;encoder.layer.1.intermediate.dense.bias 24;encoder.layer.1.in" \
      "termediate.dense.weight 24 16;encoder.layer.1.output.LayerNorm.b" \
      "ias 16;encoder.layer.1.output.LayerNorm.weight 16;encoder.layer." \
      "1.output.dense.bias 16;encoder.layer.1.output.dense.weight 16 24", \
      0.6407123, 2.507816, 0.5915517, 1.409242, 0) \
    X("xlm-roberta", \
      "{\"add_cross_attention\":false,\"architectures\":[\"XLMRobertaForSequ" \
      "enceClassification\"],\"attention_probs_dropout_prob\":0.1,\"bos_tok" \
      "en_id\":0,\"classifier_dropout\":null,\"eos_token_id\":2,\"hidden_act\"" \
      ":\"gelu\",\"hidden_dropout_prob\":0.1,\"hidden_size\":16,\"intermediate" \
      "_size\":24,\"is_decoder\":false,\"layer_norm_eps\":1e-12,\"max_positio" \
      "n_embeddings\":32,\"model_type\":\"xlm-roberta\",\"num_attention_heads" \
      "\":2,\"num_hidden_layers\":2,\"pad_token_id\":6,\"tie_word_embeddings\"" \
      ":true,\"type_vocab_size\":2,\"vocab_size\":40}", \
      "classifier.dense.bias 16;classifier.dense.weight 16 16;classifie" \
      "r.out_proj.bias 4;classifier.out_proj.weight 4 16;roberta.embedd" \
      "ings.LayerNorm.bias 16;roberta.embeddings.LayerNorm.weight 16;ro" \
      "berta.embeddings.position_embeddings.weight 32 16;roberta.embedd" \
      "ings.token_type_embeddings.weight 2 16;roberta.embeddings.word_e" \
      "mbeddings.weight 40 16;roberta.encoder.layer.0.attention.output." \
      "LayerNorm.bias 16;roberta.encoder.layer.0.attention.output.Layer" \
      "Norm.weight 16;roberta.encoder.layer.0.attention.output.dense.bi" \
      "as 16;roberta.encoder.layer.0.attention.output.dense.weight 16 1" \
      "6;roberta.encoder.layer.0.attention.self.key.bias 16;roberta.enc" \
      "oder.layer.0.attention.self.key.weight 16 16;roberta.encoder.lay" \
      "er.0.attention.self.query.bias 16;roberta.encoder.layer.0.attent" \
      "ion.self.query.weight 16 16;roberta.encoder.layer.0.attention.se" \
      "lf.value.bias 16;roberta.encoder.layer.0.attention.self.value.we" \
      "ight 16 16;roberta.encoder.layer.0.intermediate.dense.bias 24;ro" \
      "berta.encoder.layer.0.intermediate.dense.weight 24 16;roberta.en" \
      "coder.layer.0.output.LayerNorm.bias 16;roberta.encoder.layer.0.o" \
      "utput.LayerNorm.weight 16;roberta.encoder.layer.0.output.dense.b" \
      "ias 16;roberta.encoder.layer.0.output.dense.weight 16 24;roberta" \
      ".encoder.layer.1.attention.output.LayerNorm.bias 16;roberta.enco" \
      "der.layer.1.attention.output.LayerNorm.weight 16;roberta.encoder" \
      ".layer.1.attention.output.dense.bias 16;roberta.encoder.layer.1." \
      "attention.output.dense.weight 16 16;roberta.encoder.layer.1.atte" \
      "ntion.self.key.bias 16;roberta.encoder.layer.1.attention.self.ke" \
      "y.weight 16 16;roberta.encoder.layer.1.attention.self.query.bias" \
      " 16;roberta.encoder.layer.1.attention.self.query.weight 16 16;ro" \
      "berta.encoder.layer.1.attention.self.value.bias 16;roberta.encod" \
      "er.layer.1.attention.self.value.weight 16 16;roberta.encoder.lay" \
      "er.1.intermediate.dense.bias 24;roberta.encoder.layer.1.intermed" \
      "iate.dense.weight 24 16;roberta.encoder.layer.1.output.LayerNorm" \
      ".bias 16;roberta.encoder.layer.1.output.LayerNorm.weight 16;robe" \
      "rta.encoder.layer.1.output.dense.bias 16;roberta.encoder.layer.1" \
      ".output.dense.weight 16 24", \
      0.300908, -0.4212762, -0.8007466, 0.5647729, 1) \
    X("xlm-roberta", \
      "{\"add_cross_attention\":false,\"architectures\":[\"XLMRobertaModel\"]" \
      ",\"attention_probs_dropout_prob\":0.1,\"bos_token_id\":0,\"classifier" \
      "_dropout\":null,\"eos_token_id\":2,\"hidden_act\":\"gelu\",\"hidden_drop" \
      "out_prob\":0.1,\"hidden_size\":16,\"intermediate_size\":24,\"is_decode" \
      "r\":false,\"layer_norm_eps\":1e-12,\"max_position_embeddings\":32,\"mo" \
      "del_type\":\"xlm-roberta\",\"num_attention_heads\":2,\"num_hidden_laye" \
      "rs\":2,\"pad_token_id\":6,\"tie_word_embeddings\":true,\"type_vocab_si" \
      "ze\":2,\"vocab_size\":40}", \
      "embeddings.LayerNorm.bias 16;embeddings.LayerNorm.weight 16;embe" \
      "ddings.position_embeddings.weight 32 16;embeddings.token_type_em" \
      "beddings.weight 2 16;embeddings.word_embeddings.weight 40 16;enc" \
      "oder.layer.0.attention.output.LayerNorm.bias 16;encoder.layer.0." \
      "attention.output.LayerNorm.weight 16;encoder.layer.0.attention.o" \
      "utput.dense.bias 16;encoder.layer.0.attention.output.dense.weigh" \
      "t 16 16;encoder.layer.0.attention.self.key.bias 16;encoder.layer" \
      ".0.attention.self.key.weight 16 16;encoder.layer.0.attention.sel" \
      "f.query.bias 16;encoder.layer.0.attention.self.query.weight 16 1" \
      "6;encoder.layer.0.attention.self.value.bias 16;encoder.layer.0.a" \
      "ttention.self.value.weight 16 16;encoder.layer.0.intermediate.de" \
      "nse.bias 24;encoder.layer.0.intermediate.dense.weight 24 16;enco" \
      "der.layer.0.output.LayerNorm.bias 16;encoder.layer.0.output.Laye" \
      "rNorm.weight 16;encoder.layer.0.output.dense.bias 16;encoder.lay" \
      "er.0.output.dense.weight 16 24;encoder.layer.1.attention.output." \
      "LayerNorm.bias 16;encoder.layer.1.attention.output.LayerNorm.wei" \
      "ght 16;encoder.layer.1.attention.output.dense.bias 16;encoder.la" \
      "yer.1.attention.output.dense.weight 16 16;encoder.layer.1.attent" \
      "ion.self.key.bias 16;encoder.layer.1.attention.self.key.weight 1" \
      "6 16;encoder.layer.1.attention.self.query.bias 16;encoder.layer." \
      "1.attention.self.query.weight 16 16;encoder.layer.1.attention.se" \
      "lf.value.bias 16;encoder.layer.1.attention.self.value.weight 16 " \
      "16;encoder.layer.1.intermediate.dense.bias 24;encoder.layer.1.in" \
      "termediate.dense.weight 24 16;encoder.layer.1.output.LayerNorm.b" \
      "ias 16;encoder.layer.1.output.LayerNorm.weight 16;encoder.layer." \
      "1.output.dense.bias 16;encoder.layer.1.output.dense.weight 16 24", \
      0.6407123, 2.507816, 0.5915517, 1.409242, 0)
/* clang-format on */

#endif
