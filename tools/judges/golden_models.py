# SPDX-License-Identifier: MIT
# Makes tests/architectures-golden-list.h: of each architecture a small model whose weights follow
# from the names of its tensors (golden_value below, and value_of in
# tests/suite_llama_architectures.c), and the logits that transformers computes with it in F32.
#
# With "encoders" those of encoders: scores of classifiers, and the first values of means.
#
# usage: golden_models.py OUTPUT [encoders]      (needs torch, transformers, safetensors)
import json
import os
import random
import sys
import tempfile

here = sys.path.pop(0)
import safetensors.torch
import torch
import transformers

sys.path.append(here)
import encoders
import model_families

TOKENS = [1, 5, 9, 3, 7, 2, 8, 11, 30, 21, 4, 4]
SHOWN = 4
DROPPED = ("architectures", "transformers_version", "dtype", "initializer_range", "use_cache",
           "id2label", "label2id", "_sliding_window_pattern")


def golden_values(name, shape):
    """The same numbers as value_of in C: exact in F32."""
    n = 1
    for extent in shape:
        n *= extent
    start = sum(ord(c) * (i + 1) for i, c in enumerate(name))
    numbers = (start + torch.arange(n, dtype=torch.int64) * 97) % 1009
    values = numbers.to(torch.float32) / 1024.0 - 0.5
    is_norm = "norm" in name or ".ln_" in name or "LayerNorm" in name
    return (values + 1.0 if is_norm else values).reshape(shape)


def encoder_rows():
    """Of each encoder a classifier with four scores, and a model whose vectors are averaged."""
    for family in sorted(encoders.FAMILIES):
        for is_ranked in (True, False):
            options = dict(num_attention_heads=2, num_hidden_layers=2, hidden_size=16,
                           intermediate_size=24, vocab_size=40, max_position_embeddings=32,
                           type_vocab_size=2, num_labels=SHOWN)
            if family == "modernbert":  # windows, a bare first layer, and scores of a mean
                options.update(num_hidden_layers=4, local_attention=4, classifier_pooling="mean",
                               pad_token_id=0, bos_token_id=1, eos_token_id=2)
                del options["type_vocab_size"]
            elif family != "bert":
                options.update(pad_token_id=6, bos_token_id=0, eos_token_id=2)
            config = encoders.FAMILIES[family](**options)
            auto = transformers.AutoModelForSequenceClassification if is_ranked else \
                transformers.AutoModel
            has_types = "type_vocab_size" in options
            more = {"add_pooling_layer": False} if has_types and not is_ranked else {}
            model = auto.from_config(config, dtype=torch.float32, **more)
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                path = os.path.join(folder, "model.safetensors")
                weights = {k: golden_values(k, v.shape)
                           for k, v in sorted(safetensors.torch.load_file(path).items())}
                safetensors.torch.save_file(weights, path, {"format": "pt"})
                model = auto.from_pretrained(folder, dtype=torch.float32,
                                             attn_implementation="eager", **more).eval()
                types = torch.tensor([[0] * 5 + [1] * (len(TOKENS) - 5)])
                with torch.no_grad():
                    out = model(torch.tensor([TOKENS]),
                                **({"token_type_ids": types} if has_types else {}))
                values = out.logits[0] if is_ranked else out.last_hidden_state[0].mean(0)
                with open(os.path.join(folder, "config.json")) as file:
                    members = {k: v for k, v in json.load(file).items()
                               if k not in DROPPED or k == "architectures"}
            names = ";".join(f"{k} " + " ".join(map(str, v.shape)) for k, v in weights.items())
            yield (family, json.dumps(members, separators=(",", ":")), names,
                   [float(x) for x in values[:SHOWN]], int(is_ranked))


def decoder_rows():
    for family in sorted(model_families.FAMILIES):
        for attempt in range(50):
            rng = random.Random(f"{family} {attempt}")
            options = model_families.random_options(rng, family)
            n = "n_layer" if family == "gpt2" else "num_hidden_layers"
            options[n] = 2
            for member in ("layer_types", "no_rope_layers"):
                options.pop(member, None)
            if family == "glm4_moe" or family.startswith("deepseek"):
                options["first_k_dense_replace"] = 1
            try:
                config = model_families.FAMILIES[family](**options)
                if config.hidden_size > 32:
                    continue
                model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
                break
            except Exception:
                continue
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            path = os.path.join(folder, "model.safetensors")
            weights = {k: golden_values(k, v.shape)
                       for k, v in sorted(safetensors.torch.load_file(path).items())}
            safetensors.torch.save_file(weights, path, {"format": "pt"})
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager").eval()
            with torch.no_grad():
                logits = model(torch.tensor([TOKENS])).logits[0, -1]
            with open(os.path.join(folder, "config.json")) as file:
                members = {k: v for k, v in json.load(file).items() if k not in DROPPED}
        names = ";".join(f"{k} " + " ".join(map(str, v.shape)) for k, v in weights.items())
        yield (family, json.dumps(members, separators=(",", ":")), names,
               [float(x) for x in logits[:SHOWN]], int(logits.argmax()))


def main():
    kind = "ENCODERS" if sys.argv[2:] == ["encoders"] else "ARCHITECTURES"
    rows = list(encoder_rows() if kind == "ENCODERS" else decoder_rows())
    what = ("Small encoders and their scores (1), or the first values of their means (0), of two\n"
            " * texts, the second from token 5 on, by" if kind == "ENCODERS" else
            "Small models of all architectures and logits behind their last token, by")
    last = "is a classifier" if kind == "ENCODERS" else "the likeliest token"
    with open(sys.argv[1], "w") as out:
        out.write("/* SPDX-License-Identifier: MIT\n"
                  f" * {what}\n"
                  f" * tools/judges/golden_models.py with transformers {transformers.__version__}.\n"
                  f" * X(model_type, config.json, tensors, values, {last}) */\n"
                  f"#ifndef TND_TESTS_{kind}_GOLDEN_LIST_H\n"
                  f"#define TND_TESTS_{kind}_GOLDEN_LIST_H\n\n"
                  f"/* clang-format off */\n#define TND_GOLDEN_{kind}(X)")
        for family, config, names, logits, token in rows:
            out.write(f' \\\n    X("{family}"')
            for text in (config, names):
                pieces = [text[i:i + 64] for i in range(0, len(text), 64)]
                quoted = [json.dumps(piece) for piece in pieces]
                out.write(", \\\n      " + " \\\n      ".join(quoted))
            out.write(", \\\n      " + ", ".join(f"{x:.7g}" for x in logits) + f", {token})")
        out.write("\n/* clang-format on */\n\n#endif\n")


main()
