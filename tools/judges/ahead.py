# SPDX-License-Identifier: MIT
# Layers after the last one that predict ahead (multi-token prediction), for models.py and
# converted.py. transformers ignores them, so the reference is assembled from its parts: a model of
# one layer that gets eh_proj of embeddings and states (DeepSeek V3, arXiv:2412.19437, 2.2). The text
# consists of its most likely tokens, so every draft of ours has to be accepted.
import json
import os
import random
import shutil

import safetensors.torch
import torch
import transformers

FAMILIES = ("deepseek_v3", "glm4_moe")
NORMS = ("enorm", "hnorm", "shared_head.norm")


def add(folder, has_own=True):
    """Puts such a layer behind the last one of a model and tells of it; its tensors."""
    path = os.path.join(folder, "model.safetensors")
    weights = safetensors.torch.load_file(path)
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    last, dim = config["num_hidden_layers"] - 1, config["hidden_size"]
    here, ahead = f"layers.{last}.", f"layers.{last + 1}."
    more = {k.replace(here, ahead): torch.randn_like(v) / max(v.shape[-1], 4)**0.5
            if v.dim() > 1 else v.flip(0) for k, v in weights.items() if here in k}
    start = "model." + ahead
    more[start + "eh_proj.weight"] = torch.randn(dim, 2 * dim) / dim**0.5
    for name in NORMS:
        more[f"{start}{name}.weight"] = torch.rand(dim) + 0.5
    if has_own:
        more[start + "embed_tokens.weight"] = torch.randn_like(weights["model.embed_tokens.weight"])
        more[start + "shared_head.head.weight"] = \
            torch.randn_like(weights["model.embed_tokens.weight"]) / dim**0.5
    safetensors.torch.save_file({**weights, **more}, path, {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({**config, "num_nextn_predict_layers": 1}, file)
    return more


def is_told(gguf):
    """Whether a file has such a layer."""
    with open(gguf, "rb") as file:
        return b".nextn.eh_proj" in file.read()


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager").eval()


def rms(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Reference:
    def __init__(self, folder):
        with open(os.path.join(folder, "config.json")) as file:
            config = json.load(file)
        weights = safetensors.torch.load_file(os.path.join(folder, "model.safetensors"))
        start = f"model.layers.{config['num_hidden_layers']}."
        own = {k[len(start):]: v for k, v in weights.items() if k.startswith(start)}
        self.nextn = {k: own.pop(k + ".weight") for k in ("eh_proj", *NORMS)}
        self.embedding = own.pop("embed_tokens.weight", weights["model.embed_tokens.weight"])
        head = own.pop("shared_head.head.weight",
                       weights.get("lm_head.weight", weights["model.embed_tokens.weight"]))
        self.model, self.eps = load(folder), config["rms_norm_eps"]
        alone = folder + "-alone"
        os.makedirs(alone, exist_ok=True)
        with open(os.path.join(alone, "config.json"), "w") as file:
            json.dump({**config, "num_hidden_layers": 1, "first_k_dense_replace": 0,
                       "tie_word_embeddings": False}, file)
        safetensors.torch.save_file(
            {**{f"model.layers.0.{k}": v for k, v in own.items()}, "lm_head.weight": head.clone(),
             "model.embed_tokens.weight": self.embedding.clone(),
             "model.norm.weight": self.nextn["shared_head.norm"]},
            os.path.join(alone, "model.safetensors"), {"format": "pt"})
        self.layer = load(alone)
        self.layer.model.norm.register_forward_pre_hook(self.keep)
        shutil.rmtree(alone)

    def keep(self, _, given):
        self.own = given[0][0, -1:]  # the state to continue from, without the norm

    def drafts(self, text, k):
        """The k tokens that follow `text`, and the least lead of one over the next best."""
        states = self.model.model(torch.tensor([text[:-1]]), use_cache=False).last_hidden_state[0]
        tokens, out, lead = text[1:], [], float("inf")
        while len(out) < k:
            x = torch.cat([rms(self.embedding[torch.tensor(tokens)], self.nextn["enorm"], self.eps),
                           rms(states, self.nextn["hnorm"], self.eps)], -1) @ self.nextn["eh_proj"].T
            best = torch.topk(self.layer(inputs_embeds=x[None], use_cache=False).logits[0, -1], 2)
            lead = min(lead, float(best.values[0] - best.values[1]))
            out.append(int(best.indices[0]))
            tokens, states = tokens + out[-1:], torch.cat([states, self.own])
        return out, lead

    def text(self, rng, n_prompt, n_rounds, k, vocabulary):
        """A prompt, then rounds of a drawn token and the k that the layer expects behind it."""
        text = [rng.randrange(vocabulary) for _ in range(n_prompt)]
        least = 1.0
        with torch.no_grad():
            while n_rounds > 0:
                text.append(rng.randrange(vocabulary))
                drafts, lead = self.drafts(text, k)
                if lead < 4e-4:  # as good as a tie: another token
                    text.pop()
                    continue
                least, text, n_rounds = min(least, lead), text + drafts, n_rounds - 1
        return text, least


def judge_drafts(client, folder, path, seed):
    """A word what is wrong with the drafts of the model at `path` that `folder` holds, or ""."""
    reference, rng = Reference(folder), random.Random(seed)
    for n_prompt, n_rounds, k in ((1, 6, 1), (5, 5, 2), (17, 3, 4)):
        text, lead = reference.text(rng, n_prompt, n_rounds, k, reference.embedding.shape[0])
        answer = client.ask(path=path, tokens=text, n_prompt=n_prompt, most=k)
        if answer.get("drafts") != [n_rounds * k, n_rounds * k]:
            return f"{answer}, expected {n_rounds * k}; prompt {n_prompt}, k {k}, lead {lead:.2g}"
    asked = dict(path=path, tokens=text, vocabulary=reference.embedding.shape[0], n=24)
    plain, drafted = client.ask(**asked), client.ask(**asked, most=3)
    return "" if plain == drafted and "text" in plain else f"without drafts {plain}, with {drafted}"


def judge(judge, family, base_models, folder, tokens):
    """Drafts, and what becomes of the layer's tensors: each removed and reshaped once."""
    if family not in FAMILIES:
        return
    for what, here in base_models(family, folder):
        changed, gguf = os.path.join(folder, "changed"), os.path.join(folder, "ahead.gguf")
        for has_own in (False, True):
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(here, changed)
            more = add(changed, has_own)
            answer = judge.client.ask(path=changed, to=gguf)
            for path in (changed, gguf) if "done" in answer else (changed,):
                wrong = judge_drafts(judge.client, changed, path, what)
                judge.count("drafts", "DIFFERS" if wrong else "equal", what, wrong)
        weights = safetensors.torch.load_file(os.path.join(here, "model.safetensors"))
        for config in (changed, here):  # that tells of the layer, and that does not
            shutil.copy(os.path.join(config, "config.json"), os.path.join(folder, "config.json"))
            for name in [""] + sorted(more):
                for part in ("removed", "reshaped"):
                    tensors = {**weights, **{k: v for k, v in more.items() if k != name}}
                    if part == "reshaped" and name != "":
                        tensors[name] = more[name][:-1].contiguous()
                    safetensors.torch.save_file(tensors, os.path.join(changed, "model.safetensors"),
                                                {"format": "pt"})
                    shutil.copy(os.path.join(folder, "config.json"), changed)
                    judge.judge("layers ahead", f"{what}: {name} {part}", changed, tokens)
