# SPDX-License-Identifier: MIT
# Random encoders for models.py: transformers' models without a language model's head, whose vectors
# are pooled as 1_Pooling/config.json says (sentence-transformers), and classifiers of texts.
import json
import math
import os

import torch
import transformers

VOCABULARY = 40
CLASSES = {"bert": "BertConfig", "roberta": "RobertaConfig", "xlm-roberta": "XLMRobertaConfig",
           "modernbert": "ModernBertConfig"}
FAMILIES = {name: getattr(transformers, c) for name, c in CLASSES.items() if hasattr(transformers, c)}
POOLINGS = ("pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_lasttoken")


def random_modernbert(rng):
    heads, layers = rng.choice([1, 2, 3]), rng.choice([1, 2, 3, 4, 7])
    every = rng.choice([1, 2, 3, 3])
    options = dict(
        num_attention_heads=heads, num_hidden_layers=layers, hidden_size=heads * rng.choice([4, 8, 16, 32]),
        intermediate_size=rng.choice([6, 24, 33, 64]), vocab_size=VOCABULARY, bos_token_id=1,
        eos_token_id=2, cls_token_id=1, sep_token_id=2, pad_token_id=0,
        max_position_embeddings=rng.choice([32, 64]), norm_eps=rng.choice([1e-5, 1e-3]),
        hidden_activation=rng.choice(["gelu", "gelu", "gelu_new", "relu"]),
        local_attention=rng.choice([1, 2, 5, 8, 128]), classifier_pooling=rng.choice(["cls", "mean"]),
        num_labels=rng.choice([1, 2, 3]))
    if rng.random() < 0.5:
        options["layer_types"] = ["sliding_attention" if i % every else "full_attention"
                                  for i in range(layers)]
    if rng.random() < 0.5:
        options["rope_parameters"] = {
            "full_attention": {"rope_type": "default", "rope_theta": rng.choice([160000.0, 777.0])},
            "sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([10000.0, 33.0])}}
    return FAMILIES["modernbert"](**options)


def random_config(rng, family):
    if family == "modernbert":
        config = random_modernbert(rng)
        config.judged_as = rng.choice(["rank", *POOLINGS])
        return config
    heads = rng.choice([1, 2, 3])
    options = dict(
        num_attention_heads=heads, num_hidden_layers=rng.choice([1, 2, 3]),
        hidden_size=heads * rng.choice([4, 8, 16, 32]), intermediate_size=rng.choice([6, 24, 33, 64]),
        vocab_size=VOCABULARY, max_position_embeddings=rng.choice([32, 64]),
        type_vocab_size=rng.choice([1, 2]), hidden_act=rng.choice(["gelu", "gelu", "gelu_new", "relu"]),
        layer_norm_eps=rng.choice([1e-12, 1e-5, 1e-3]), hidden_dropout_prob=0.1,
        num_labels=rng.choice([1, 2, 3]))
    if family != "bert":
        options.update(max_position_embeddings=112, pad_token_id=rng.choice([40, 41]), bos_token_id=1,
                       eos_token_id=2, vocab_size=VOCABULARY + 2)
    config = FAMILIES[family](**options)
    config.judged_as = rng.choice(["rank", *POOLINGS])  # taken out again by save
    return config


def save(config, folder, seed):
    kind = config.judged_as
    del config.judged_as
    torch.manual_seed(seed)
    auto = transformers.AutoModelForSequenceClassification if kind == "rank" else \
        transformers.AutoModel
    with torch.no_grad():
        model = auto.from_config(config, dtype=torch.float32)
        for name, p in model.named_parameters():
            if name.endswith("bias"):
                p.copy_(0.5 * torch.randn_like(p))
            elif "LayerNorm" in name or "norm" in name:
                p.copy_(1.0 + 0.3 * torch.randn_like(p))
            elif "embed" in name:
                p.copy_(torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * 1.2 / math.sqrt(p.shape[-1]))
    model.save_pretrained(folder, safe_serialization=True)
    if kind == "rank":
        return
    os.makedirs(os.path.join(folder, "1_Pooling"), exist_ok=True)
    with open(os.path.join(folder, "modules.json"), "w") as file:
        json.dump([{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + t}
                   for i, (path, t) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"),
                                                  ("2_Normalize", "Normalize")])], file)
    with open(os.path.join(folder, "1_Pooling", "config.json"), "w") as file:
        json.dump({"word_embedding_dimension": config.hidden_size, **{k: k == kind for k in POOLINGS},
                   "pooling_mode_max_tokens": False, "include_prompt": True}, file)


def is_one(config):
    return config.get("model_type") in FAMILIES


def compute(config, folder, tokens):
    """A row of numbers, and the names of weights that transformers had to make up."""
    if "roberta" in config["model_type"] and config.get("pad_token_id", 1) in tokens:
        raise ValueError("padding within a text, where positions stand still, is nobody's text")
    names = config.get("architectures") or [""]
    is_ranked = str(names[0]).endswith("ForSequenceClassification")
    auto = transformers.AutoModelForSequenceClassification if is_ranked else transformers.AutoModel
    model, info = auto.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                       output_loading_info=True)
    missing = [k for k in info["missing_keys"] if is_ranked or "pooler" not in k]
    missing += [str(k) for k in info["mismatched_keys"] if is_ranked or "pooler" not in str(k)]
    with torch.no_grad():
        out = model.eval()(torch.tensor([tokens]))
    if is_ranked:
        return out.logits.numpy(), missing
    x = out.last_hidden_state
    with open(os.path.join(folder, "1_Pooling", "config.json")) as file:
        modes = [k for k, v in json.load(file).items() if v is True and k in POOLINGS]
    return {"pooling_mode_mean_tokens": x.mean(1), "pooling_mode_cls_token": x[:, 0],
            "pooling_mode_lasttoken": x[:, -1]}[modes[0]].numpy(), missing
