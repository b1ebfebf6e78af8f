# SPDX-License-Identifier: MIT
# Judges models independently: transformers builds small random models of every architecture, from
# Llama to DeepSeek and BERT, and computes their logits in F32; ours must be the same within 2e-4,
# and so must the text of the most likely tokens. Then every tensor is removed, added and reshaped
# once, and every member of config.json is changed once: the same logits as transformers after the
# same change, or a refusal by name. Prints a line for each architecture, and the sum. Needs:
# torch, transformers, safetensors, numpy (tools/judges/run.sh fetches them).
#
# usage: models.py BUILD [--configs N] [--seed N] [--show N] [--families NAME] [--jobs N] [--list FILE]
#        [--only configs|published|quantised|ahead|tensors|members]
import argparse
import concurrent.futures
import copy
import ctypes
import json
import logging
import math
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

LIMIT = 2e-4
N_TOKENS = 20
N_WRITTEN = 8  # of a text that goes on
VOCABULARY = 40

# ---- ours, in a process of its own: a crash is a finding, not the end ----


class Error(ctypes.Structure):  # struct tandem_error, whose layout is fixed
    _fields_ = [("status", ctypes.c_int), ("got", ctypes.c_int64), ("limit", ctypes.c_int64),
                ("where", ctypes.c_char * 96), ("text", ctypes.c_char * 256)]


class DraftOptions(ctypes.Structure):  # struct tandem_draft_options
    _fields_ = [("size", ctypes.c_size_t), ("model", ctypes.c_void_p), ("most", ctypes.c_int),
                ("is_fixed", ctypes.c_bool), ("by_heads", ctypes.c_bool)]


class DraftInfo(ctypes.Structure):  # struct tandem_draft_info
    _fields_ = [("tokens", ctypes.c_int64), ("batches", ctypes.c_int64), ("drafted", ctypes.c_int64),
                ("accepted", ctypes.c_int64), ("last", ctypes.c_int), ("has_failed", ctypes.c_bool)]


class Ours:
    def __init__(self, build):
        ctypes.CDLL(os.path.join(build, "libtandem.so"), ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(os.path.join(build, "libtandem-llama.so"))
        self.base = ctypes.CDLL(os.path.join(build, "libtandem.so"))
        self.lib.tandem_session_logits.restype = ctypes.POINTER(ctypes.c_float)
        self.lib.tandem_session_embedding.restype = ctypes.POINTER(ctypes.c_float)
        self.lib.tandem_session_embedding_size.restype = ctypes.c_int64
        os.environ["TANDEM_THREADS"] = "1"
        os.environ["TANDEM_LOG"] = "none"
        self.runtime = ctypes.c_void_p()
        self.check(self.base.tandem_runtime_open(None, ctypes.byref(self.runtime), self.error()))
        # (BF16 weights are multiplied by F32 activations, as in transformers with fp32: docs/planning.md.)
        self.base.tandem_runtime_set_error_bound.argtypes = [ctypes.c_void_p, ctypes.c_double]
        self.check(self.base.tandem_runtime_set_error_bound(self.runtime, 1e-9))

    def error(self):
        self.last = Error()
        return ctypes.byref(self.last)

    def check(self, status):
        if status != 0:
            raise ValueError(self.last.text.decode(errors="replace"))

    def logits(self, path, tokens, vocabulary, at_once):
        model, session = ctypes.c_void_p(), ctypes.c_void_p()
        out = []
        try:
            self.check(self.lib.tandem_model_load(path.encode(), ctypes.byref(model), self.error()))
            self.check(self.lib.tandem_session_new(model, self.runtime, None, ctypes.byref(session),
                                                   self.error()))
            ids = (ctypes.c_int32 * len(tokens))(*tokens)
            if at_once or self.lib.tandem_session_embedding_size(session) > 0:
                self.check(self.lib.tandem_session_decode(session, ids, ctypes.c_int64(len(tokens)),
                                                          ctypes.c_int64(0), self.error()))
                n = self.lib.tandem_session_embedding_size(session)  # of an encoder
                return [self.lib.tandem_session_embedding(session, 0)[:n] if n > 0 else
                        self.lib.tandem_session_logits(session, 0)[:vocabulary]]
            for token in tokens:
                one = (ctypes.c_int32 * 1)(token)
                self.check(self.lib.tandem_session_decode(session, one, ctypes.c_int64(1),
                                                          ctypes.c_int64(0), self.error()))
                out.append(self.lib.tandem_session_logits(session, 0)[:vocabulary])
            return out
        finally:
            self.lib.tandem_session_free(session)
            self.lib.tandem_model_free(model)

    def text(self, path, tokens, vocabulary, n, most):
        """The n tokens behind `tokens`, each the likeliest one; `most`: of drafts by a layer ahead."""
        model, session, out = ctypes.c_void_p(), ctypes.c_void_p(), []
        try:
            self.check(self.lib.tandem_model_load(path.encode(), ctypes.byref(model), self.error()))
            self.check(self.lib.tandem_session_new(model, self.runtime, None, ctypes.byref(session),
                                                   self.error()))
            self.draft(session, most)
            while len(out) < n:
                given = out[-1:] or tokens
                ids = (ctypes.c_int32 * len(given))(*given)
                self.check(self.lib.tandem_session_decode(session, ids, ctypes.c_int64(len(given)),
                                                          ctypes.c_int64(0), self.error()))
                row = self.lib.tandem_session_logits(session, 0)[:vocabulary]
                out.append(max(range(vocabulary), key=row.__getitem__))
            return out
        finally:
            self.lib.tandem_session_free(session)
            self.lib.tandem_model_free(model)

    def draft(self, session, most):
        options = DraftOptions(ctypes.sizeof(DraftOptions), None, most, True, True)
        self.check(self.lib.tandem_session_set_draft(
            session, ctypes.byref(options) if most > 0 else None, self.error()))

    def drafts(self, path, tokens, n_prompt, most):
        """Tokens that the layer ahead drafted, and those of them that `tokens` goes on with."""
        model, session, info = ctypes.c_void_p(), ctypes.c_void_p(), DraftInfo()
        try:
            self.check(self.lib.tandem_model_load(path.encode(), ctypes.byref(model), self.error()))
            self.check(self.lib.tandem_session_new(model, self.runtime, None, ctypes.byref(session),
                                                   self.error()))
            self.draft(session, most)
            for part in [tokens[:n_prompt]] + [[token] for token in tokens[n_prompt:]]:
                ids = (ctypes.c_int32 * len(part))(*part)
                self.check(self.lib.tandem_session_decode(session, ids, ctypes.c_int64(len(part)),
                                                          ctypes.c_int64(0), self.error()))
            self.lib.tandem_session_draft_info(session, ctypes.byref(info))
            return [info.drafted, info.accepted]
        finally:
            self.lib.tandem_session_free(session)
            self.lib.tandem_model_free(model)

    def convert(self, path, to):
        source = ctypes.c_void_p()
        self.check(self.base.tandem_source_open(path.encode(), ctypes.byref(source), self.error()))
        try:
            self.check(self.base.tandem_source_save_gguf(source, to.encode(), None, self.error()))
        finally:
            self.base.tandem_source_close(source)


def serve(build):
    ours = Ours(build)
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            if "to" in ask:
                answer = {"done": ours.convert(ask["path"], ask["to"])}
            elif "n_prompt" in ask:
                answer = {"drafts": ours.drafts(**ask)}
            elif "n" in ask:
                answer = {"text": ours.text(ask["path"], ask["tokens"], ask["vocabulary"], ask["n"],
                                            ask.get("most", 0))}
            else:
                answer = {"logits": ours.logits(ask["path"], ask["tokens"], ask["vocabulary"],
                                                ask["at_once"])}
        except ValueError as error:
            answer = {"refusal": str(error)}
        print(json.dumps(answer), flush=True)


class Client:
    def __init__(self, build):
        self.build, self.process = build, None

    def ask(self, **what):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, __file__, self.build, "--serve"],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line == "":
            code = self.process.wait()
            self.process = None
            return {"crash": f"ended with {code}"}
        return json.loads(line)

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


if __name__ == "__main__" and "--serve" in sys.argv:
    serve(sys.argv[1])
    sys.exit(0)

# ---- theirs ----

warnings.filterwarnings("ignore")
here = sys.path.pop(0)  # a file beside this one has the name of a library
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TQDM_DISABLE"] = "1"
import numpy
import safetensors.torch
import torch
import transformers

sys.path.append(here)
import ahead
import encoders
import model_families
import parts
import published_configs
import quantised

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
logging.disable(logging.WARNING)
torch.set_num_threads(1)


def is_absurd(config):
    """transformers would try to make room for it: 26 GB for a default Llama of a GPT-2's members."""
    if "n_embd" in config and config.get("model_type") != "gpt2" or parts.is_absurd(config):
        return True
    if "text_config" in config:
        config = {**config["text_config"], "vocab_size": 0}
    return any(isinstance(config.get(k), int) and config[k] > 4096 for k in
               ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
                "vocab_size", "head_dim", "num_experts", "num_local_experts",
                "moe_intermediate_size", "shared_expert_intermediate_size", "n_layer", "n_embd",
                "n_head", "n_inner", "n_positions"))


def theirs(folder, tokens):
    """Logits {tokens, vocabulary}; a text where transformers refuses, or makes weights up."""
    if is_absurd(read_config(folder)):
        return "not tried"
    try:
        if encoders.is_one(read_config(folder)):
            row, made_up = encoders.compute(read_config(folder), folder, tokens)
            return "weights made up: " + ", ".join(made_up[:3]) if made_up else row
        model, info = parts.auto(read_config(folder)).from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager",
            experts_implementation="eager", output_loading_info=True)
        made_up = sorted(info["missing_keys"]) + sorted(str(k) for k in info["mismatched_keys"])
        made_up = [name for name in made_up if not parts.is_of_images(name)]
        with torch.no_grad():
            logits = model.eval()(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
        return "weights made up: " + ", ".join(made_up[:3]) if made_up else logits
    except Exception as error:  # whatever it is, there is nothing to compare with
        return f"{type(error).__name__}: {str(error)[:100]}"


def their_text(folder, tokens):
    """The tokens behind `tokens`, each the likeliest one, up to one that nearly ties."""
    model = parts.auto(read_config(folder)).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager").eval()
    out = []
    with torch.no_grad():
        while len(out) < N_WRITTEN:
            logits = model(torch.tensor([tokens + out]), use_cache=False).logits[0, -1]
            best = torch.topk(logits, 2)
            if best.values[0] - best.values[1] <= 2 * LIMIT:
                break
            out.append(int(best.indices[0]))
    return out


# ---- random models ----

FAMILIES = {"llama": transformers.LlamaConfig, "mistral": transformers.MistralConfig,
            "qwen2": transformers.Qwen2Config, "qwen3": transformers.Qwen3Config,
            "mixtral": transformers.MixtralConfig, "qwen2_moe": transformers.Qwen2MoeConfig,
            "qwen3_moe": transformers.Qwen3MoeConfig, **model_families.FAMILIES, **encoders.FAMILIES,
            **parts.FAMILIES}
ACTIVATIONS = ["silu"] * 6 + ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2", "swish",
                              "quick_gelu", "gelu_fast", "linear"]


def random_rope(rng, head_dim, positions):
    kind = rng.choice(["default"] * 4 + ["linear", "dynamic", "llama3", "yarn", "yarn", "longrope"])
    rope = {"rope_type": kind, "rope_theta": rng.choice([10000.0, 500000.0, 1e6, 777.0])}
    if kind != "default":
        rope["factor"] = rng.choice([2.0, 4.0, 8.0])
    if kind == "llama3":
        rope.update(low_freq_factor=1.0, high_freq_factor=rng.choice([2.0, 4.0]),
                    original_max_position_embeddings=rng.choice([8, 16, 64]))
    if kind == "yarn":
        more = {"original_max_position_embeddings": rng.choice([32, 600, 4096]),
                "attention_factor": rng.choice([0.7, 1.0, 1.6]), "beta_fast": rng.choice([8, 32.0]),
                "beta_slow": rng.choice([1, 2.5]), "mscale": 1.0, "mscale_all_dim": 0.707,
                "truncate": rng.random() < 0.5}
        rope.update({k: v for k, v in more.items() if rng.random() < 0.4})
        rope.setdefault("original_max_position_embeddings", positions)
    if kind == "longrope":  # a text that is as long or short for both: we go by the session's size
        rope.update(original_max_position_embeddings=rng.choice([N_TOKENS // 2, positions]),
                    short_factor=[rng.uniform(1, 1.5) for _ in range(head_dim // 2)],
                    long_factor=[rng.uniform(1, 9) for _ in range(head_dim // 2)])
        if rng.random() < 0.5:
            del rope["factor"]
        if rng.random() < 0.3:
            rope["attention_factor"] = 1.3
    return rope


def random_experts(rng, family):
    if family not in ("mixtral", "qwen2_moe", "qwen3_moe"):
        return {}
    experts = rng.choice([1, 2, 4, 7, 16])
    options = {"num_local_experts" if family == "mixtral" else "num_experts": experts,
               "num_experts_per_tok": rng.randrange(1, min(experts, 8) + 1)}
    if family != "mixtral":
        options.update(moe_intermediate_size=rng.choice([6, 24, 33]),
                       norm_topk_prob=rng.random() < 0.5)
    if family == "qwen2_moe":
        options.update(shared_expert_intermediate_size=rng.choice([6, 24, 33]),
                       qkv_bias=rng.random() < 0.7)
    return options


def random_config(rng, family):
    if family in encoders.FAMILIES:
        return encoders.random_config(rng, family)
    if family in parts.FAMILIES:
        return parts.random_config(rng, family, random_config)
    if family in model_families.FAMILIES:
        return FAMILIES[family](**model_families.random_options(rng, family))
    kv_heads = rng.choice([1, 2, 3, 4])
    heads = kv_heads * rng.choice([1, 2, 3])
    head_dim = rng.choice([2, 4, 8, 10, 16, 32])
    layers = rng.choice([1, 2, 3])
    hidden = heads * head_dim
    positions = rng.choice([32, 64, 2048])
    options = dict(
        num_attention_heads=heads, num_key_value_heads=kv_heads, num_hidden_layers=layers,
        intermediate_size=rng.choice([6, 24, 33, 64, 100]), vocab_size=VOCABULARY,
        max_position_embeddings=positions, hidden_act=rng.choice(ACTIVATIONS),
        rms_norm_eps=rng.choice([1e-6, 1e-5, 1e-3]), tie_word_embeddings=rng.random() < 0.3,
        rope_parameters=random_rope(rng, head_dim, positions), bos_token_id=1,
        eos_token_id=rng.choice([2, [2, 7], None]))
    if family == "qwen3" or rng.random() < 0.4:
        options["head_dim"] = head_dim
        hidden = rng.choice([hidden, 16, 24, 40, 64])
    options["hidden_size"] = hidden
    options.update(random_experts(rng, family))
    if family == "llama":
        options.update(attention_bias=rng.random() < 0.4, mlp_bias=rng.random() < 0.4)
    if family in ("mistral", "mixtral"):
        options["sliding_window"] = rng.choice([None, 1, 3, 7, 64])
    if family in ("qwen3", "qwen3_moe"):
        options["attention_bias"] = rng.random() < 0.4
    if family in ("qwen2", "qwen3") and rng.random() < 0.6:
        options.update(use_sliding_window=True, sliding_window=rng.choice([2, 5, 9]),
                       max_window_layers=rng.randrange(layers + 1))
        if rng.random() < 0.4:
            del options["max_window_layers"]
            options["layer_types"] = [rng.choice(["full_attention", "sliding_attention"])
                                      for _ in range(layers)]
    return FAMILIES[family](**options)


def save_random(config, folder, seed):
    if hasattr(config, "judged_as"):
        return encoders.save(config, folder, seed)
    torch.manual_seed(seed)
    with torch.no_grad():
        model = parts.auto({"model_type": config.model_type}).from_config(config, dtype=torch.float32)
        for name, p in model.named_parameters():
            if name.endswith("bias"):
                p.copy_(0.5 * torch.randn_like(p))
            elif "norm" in name or ".ln_" in name:
                p.copy_(1.0 + 0.3 * torch.randn_like(p))
            elif "embed" in name or "wte" in name or "wpe" in name or "sinks" in name:
                p.copy_(torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * 1.2 / math.sqrt(p.shape[-1]))
        for name, b in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                b.copy_(0.3 * torch.randn_like(b))
    model.save_pretrained(folder, safe_serialization=True)


# ---- comparing ----

NAMES = re.compile(r'member|key |pooling_type|tensor|blk\.|token_embd|output|weight|head|layers|window|positions|'
                   r'scaling of rope|architecture|model has no|\.[a-z_]+ is |missing')


SILENT = ("DIFFERS", "CRASH", "NAMELESS", "NOT EQUAL")  # what must not be


class Judge:
    def __init__(self, client, show):
        self.client, self.show = client, show
        self.counts, self.worst = {}, 0.0

    def count(self, part, outcome, what, detail=""):
        row = self.counts.setdefault(part, {})
        row[outcome] = row.get(outcome, 0) + 1
        if (outcome.isupper() or self.show > 99) and row[outcome] <= self.show:
            print(f"  {part}: {outcome}: {what}: {detail}", flush=True)
        return outcome

    def judge(self, part, what, folder, tokens, like=None):
        """One model: what both say of it (transformers of `like`), and whether that agrees."""
        return self.compare(part, what, folder, tokens, theirs(like or folder, tokens))

    def compare(self, part, what, folder, tokens, reference):
        vocabulary = VOCABULARY if isinstance(reference, str) else reference.shape[1]
        ours = self.client.ask(path=folder, tokens=tokens, vocabulary=vocabulary, at_once=False)
        if "crash" in ours:
            return self.count(part, "CRASH", what, ours["crash"])
        if "refusal" in ours:
            if not NAMES.search(ours["refusal"]):
                return self.count(part, "NAMELESS", what, ours["refusal"])
            both = isinstance(reference, str)
            return self.count(part, "refused by both" if both else "refused by name", what,
                              ours["refusal"])
        if isinstance(reference, str):
            made_up = reference.startswith("weights made up")
            return self.count(part, "DIFFERS" if made_up else "refused by transformers alone", what,
                              reference)
        once = self.client.ask(path=folder, tokens=tokens, vocabulary=vocabulary, at_once=True)
        error = float(numpy.abs(numpy.array(ours["logits"]) - reference).max())
        error = max(error, float(numpy.abs(numpy.array(once["logits"][0]) - reference[-1]).max()))
        self.worst = max(self.worst, error) if error <= LIMIT else self.worst
        return self.count(part, "equal" if error <= LIMIT else "DIFFERS", what, f"{error:.3g}")


def read_config(folder):
    with open(os.path.join(folder, "config.json")) as file:
        return json.load(file)


def write_config(folder, config):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)


# ---- the three parts ----

def judge_configs(judge, o, family, folder, tokens):
    for i in range(o.configs):
        rng = random.Random(f"{o.seed} {family} {i}")
        here = os.path.join(folder, f"config{i}")
        while True:
            try:
                config = random_config(rng, family)
                save_random(config, here, i)
                break
            except Exception:
                pass  # transformers does not want this one
        what = f"{i} {family} {json.dumps(config.to_diff_dict())}"
        reference = theirs(here, tokens)
        outcome = judge.compare("configurations", what, here, tokens, reference)
        if outcome == "equal" and not encoders.is_one(read_config(here)):
            want = their_text(here, tokens)
            answer = judge.client.ask(path=here, tokens=tokens, vocabulary=VOCABULARY, n=len(want))
            is_same = answer.get("text") == want
            judge.count("texts", "equal" if is_same else "DIFFERS", what, f"{answer} {want}")
        gguf = os.path.join(folder, "again.gguf")
        answer = judge.client.ask(path=here, to=gguf)
        if "done" in answer:
            judge.compare("as GGUF", what, gguf, tokens, reference)
        elif outcome == "equal":
            judge.count("as GGUF", "NAMELESS", what, str(answer))
        shutil.rmtree(here)


def judge_published(judge, family, folder, tokens):
    """config.json as published checkpoints have it: equal, not refused."""
    for name, members in {**published_configs.MODELS, **parts.PUBLISHED}.get(family, {}).items():
        here = os.path.join(folder, "published")
        config = {"model_type": family, **(members if family in parts.FAMILIES else
                                           published_configs.small(members))}
        try:
            made = FAMILIES[family].from_dict(copy.deepcopy(config))
            if family in encoders.FAMILIES:
                made.judged_as = encoders.POOLINGS[0]
            save_random(made, here, 7)
        except Exception as error:
            judge.count("published", "refused by transformers alone", name, str(error)[:300])
            continue
        saved = read_config(here)
        write_config(here, {"architectures": saved["architectures"], **config})
        outcome = judge.judge("published", name, here, tokens)
        if outcome != "equal":
            judge.count("published", "NOT EQUAL", name, outcome)
        shutil.rmtree(here)


def base_models(family, folder):
    """A plain model, and one with everything that it may have."""
    rng = random.Random(family)
    for kind in ("plain", "full"):
        here = os.path.join(folder, f"{family}-{kind}")
        if family in encoders.FAMILIES:
            config = encoders.random_config(random.Random(f"{family} {kind}"), family)
            config.judged_as = "rank" if kind == "full" else encoders.POOLINGS[0]
            save_random(config, here, 99)
            yield f"{family} {kind}", here
            continue
        if family in parts.FAMILIES:
            rng = random.Random(f"{family} {kind}")
            save_random(parts.random_config(rng, family, random_config), here, 99)
            if kind == "full":
                parts.rename(here)
            yield f"{family} {kind}", here
            continue
        if family in model_families.FAMILIES:
            options = model_families.random_options(random.Random(f"{family} {kind}"), family)
            options["n_layer" if family == "gpt2" else "num_hidden_layers"] = 2
            if family == "glm4_moe" or family.startswith("deepseek"):
                options["first_k_dense_replace"] = 1
            for by_layer in ("layer_types", "no_rope_layers"):
                options.pop(by_layer, None)
            save_random(FAMILIES[family](**options), here, 99)
            yield f"{family} {kind}", here
            continue
        options = dict(num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2,
                       hidden_size=32, intermediate_size=24, vocab_size=VOCABULARY,
                       max_position_embeddings=64, rms_norm_eps=1e-5)
        if family in ("qwen3", "qwen3_moe"):
            options["head_dim"] = 8
        options.update(random_experts(rng, family))
        if family == "mistral":
            options["sliding_window"] = None
        if kind == "full":
            options.update(head_dim=12, hidden_act="gelu", tie_word_embeddings=family == "qwen2",
                           rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=4.0,
                                                low_freq_factor=1.0, high_freq_factor=4.0,
                                                original_max_position_embeddings=16))
            if family in ("llama", "qwen3", "qwen3_moe"):
                options["attention_bias"] = True
            if family == "llama":
                options["mlp_bias"] = True
            if family in ("mistral", "mixtral"):
                options["sliding_window"] = 5
            if family in ("qwen2", "qwen3"):
                options.update(use_sliding_window=True, sliding_window=5, max_window_layers=1)
        save_random(FAMILIES[family](**options), here, 99)
        yield f"{family} {kind}", here


def judge_tensors(judge, what, here, folder, tokens):
    weights = safetensors.torch.load_file(os.path.join(here, "model.safetensors"))
    changed = os.path.join(folder, "changed")

    def one(part, detail, tensors):
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(here, changed)
        safetensors.torch.save_file({k: v.clone().contiguous() for k, v in tensors.items()},
                                    os.path.join(changed, "model.safetensors"), {"format": "pt"})
        judge.judge(part, f"{what}: {detail}", changed, tokens)

    for name, tensor in weights.items():
        one("tensors removed", name, {k: v for k, v in weights.items() if k != name})
        if parts.is_of_images(name):
            continue
        shapes = [tensor.t() if tensor.dim() == 2 else tensor[None, :], tensor[:-1],
                  torch.cat([tensor, tensor[:2]]), tensor.reshape(-1)]
        for shape in shapes:
            if shape.shape != tensor.shape:
                one("tensors reshaped", f"{name} {list(shape.shape)}", {**weights, name: shape})
        one("tensors reshaped", f"{name} int32", {**weights, name: tensor.to(torch.int32)})
        if name.endswith("weight"):
            for other in ("bias", "weight_scale", "scales", "SCB"):
                more = name[:-6] + other
                if more not in weights:
                    one("tensors added", more,
                        {**weights, more: torch.randn(tensor.shape[0])})
        renamed = re.sub(r"layers\.1\.", "layers.2.", name)
        if renamed != name:
            one("tensors added", renamed, {**weights, renamed: tensor})
    for more, shape in (("model.layers.0.self_attn.q_norm.weight", 8), ("lm_head.weight", None),
                        ("model.layers.0.self_attn.rotary_emb.inv_freq", 4),
                        ("model.layers.0.mlp.router.weight", 8), ("extra", 3), ("lm_head.bias", 40),
                        ("model.norm.bias", 32), ("model.embed_tokens.bias", 32)):
        if more not in weights:
            tensor = torch.randn(VOCABULARY, 32) if shape is None else torch.rand(shape) + 0.5
            one("tensors added", more, {**weights, more: tensor})


def judge_quantised(judge, family, folder, tokens):
    """Weights that others quantised, against the same values in F32."""
    if family not in ("llama", "qwen3", "qwen3_moe", "deepseek_v3", "glm4_moe", "gemma2"):
        return
    for what, here in base_models(family, folder):
        if not what.endswith("plain"):
            continue
        tensors = safetensors.torch.load_file(os.path.join(here, "model.safetensors"))
        saved = read_config(here)
        for i, kind in enumerate(quantised.KINDS):
            try:
                packed, plain, config = quantised.quantise(tensors, kind, i)
            except (IndexError, RuntimeError):
                continue  # extents that are no multiples of 8
            for name, weights, members in (("plain", plain, saved),
                                           ("packed", packed, {**saved, "quantization_config": config})):
                path = os.path.join(folder, name)
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(here, path)
                safetensors.torch.save_file(weights, os.path.join(path, "model.safetensors"),
                                            {"format": "pt"})
                write_config(path, members)
            judge.judge("quantised", f"{what}: {kind}", os.path.join(folder, "packed"), tokens,
                        os.path.join(folder, "plain"))


def variants(name, value):
    """Other values for a member."""
    if isinstance(value, bool):
        return [not value, None, 1, "yes"]
    if isinstance(value, int):
        large = [] if name.startswith("num_hidden") else [2**31, 2**63]  # transformers would build them
        return [value + 1, value - 1, value * 2, max(value // 2, 0), 0, -1, None, 1.5, str(value)] + large
    if isinstance(value, float):
        return [value * 1.5, value / 2, 0.0, -value, 1e300, None, "many"]
    if isinstance(value, str):
        return {"hidden_act": ["silu", "gelu", "gelu_new", "relu", "relu2", "relu6", "tanh", "mish",
                               "sigmoid", "quick_gelu", "gelu_10", "linear", "nothing", None],
                "model_type": ["llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe", "gemma", "granite", "unknown"],
                }.get(name, ["other", None, 3])
    if isinstance(value, list):
        return [value[:-1], value + value[:1], value[::-1], [], None, "full_attention",
                ["sliding_attention"] * len(value), ["chunked_attention"] * len(value)]
    if value is None:
        return [0, 1, 7, True, "text", [2, 3]]
    return [{}, None]


ROPES = [{"rope_type": "default", "rope_theta": 20000.0},
         {"type": "linear", "factor": 3.0}, {"rope_type": "linear"}, {"rope_type": "linear", "factor": 0.5},
         {"rope_type": "dynamic", "factor": 2.0}, {"rope_type": "yarn", "factor": 2.0},
         {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [1.0] * 4},
         {"rope_type": "llama3", "factor": 4.0}, {"rope_type": "proportional", "factor": 2.0},
         {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
         {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0,
          "original_max_position_embeddings": 16},
         {"rope_type": "default", "partial_rotary_factor": 0.5},
         {"full_attention": {"rope_type": "default", "rope_theta": 3.0}},
         {"rope_type": "linear", "factor": 2.0, "attention_factor": 2.0},
         {"rope_type": "mrope", "mrope_section": [1, 1, 2]}, {"rope_type": "ntk", "factor": 2.0}]
FOREIGN = {"attention_bias": [True], "mlp_bias": [True], "sliding_window": [4], "use_sliding_window": [True],
           "max_window_layers": [1], "layer_types": [["sliding_attention", "full_attention"]],
           "head_dim": [4, 16], "partial_rotary_factor": [0.5, 1.0], "rope_theta": [500.0],
           "rope_scaling": ROPES, "rope_parameters": ROPES, "logit_scale": [2.0],
           "original_max_position_embeddings": [8, 32], "is_causal": [False, True],
           "quantization_config": [{"quant_method": "gptq", "bits": 4}, {"quant_method": "fp8"}],
           "attn_logit_softcapping": [30.0], "num_experts": [4], "no_such_member": [1, None, False],
           "tie_word_embeddings": [True, False], "attention_multiplier": [0.5], "dtype": ["float16"],
           "is_decoder": [True], "output_attentions": [True], "chunk_size_feed_forward": [4],
           "pretraining_tp": [2], "add_cross_attention": [True], "is_encoder_decoder": [True],
           "num_labels": [3], "query_pre_attn_scalar": [256], "qk_layernorm": [True]}


def judge_members(judge, what, here, folder, tokens):
    saved = read_config(here)
    changed = os.path.join(folder, "changed")
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(here, changed)

    def one(part, detail, config):
        write_config(changed, config)
        judge.judge(part, f"{what}: {detail}"[:160], changed, tokens)

    text = saved.get("text_config", {})
    for name, value in text.items():
        one("members removed", "text " + name,
            {**saved, "text_config": {k: v for k, v in text.items() if k != name}})
        for other in variants(name, value):
            one("members changed", f"text {name} = {json.dumps(other)}",
                {**saved, "text_config": {**text, name: other}})
    for name, value in saved.items():
        one("members removed", name, {k: v for k, v in saved.items() if k != name})
        for other in variants(name, value):
            one("members changed", f"{name} = {json.dumps(other)}", {**saved, name: other})
    for name, value in saved.get("rope_parameters", {}).items():
        rope = saved["rope_parameters"]
        one("members removed", "rope " + name,
            {**saved, "rope_parameters": {k: v for k, v in rope.items() if k != name}})
        for other in variants(name, value):
            one("members changed", f"rope {name} = {json.dumps(other)}",
                {**saved, "rope_parameters": {**rope, name: other}})
    is_longrope = (saved.get("rope_parameters") or {}).get("rope_type") == "longrope"
    for name, values in FOREIGN.items():
        if is_longrope and name == "original_max_position_embeddings":
            continue  # transformers goes by the text's length, we by the session's
        for other in values:
            config = copy.deepcopy(saved)
            if name == "rope_scaling":  # as version 4 of transformers wrote it
                config["rope_theta"] = config.pop("rope_parameters", {}).get("rope_theta", 10000.0)
            one("members added", f"{name} = {json.dumps(other)}", {**config, name: other})


def judge_family(o, family):
    """Counts of each part, the largest difference of equal logits, and seconds."""
    begin, judge = time.monotonic(), Judge(Client(o.build), o.show)
    rng = random.Random(o.seed)
    tokens = [rng.randrange(VOCABULARY) for _ in range(N_TOKENS)]
    with tempfile.TemporaryDirectory() as folder:
        if o.only in ("", "configs"):
            judge_configs(judge, o, family, folder, tokens)
        if o.only in ("", "published"):
            judge_published(judge, family, folder, tokens)
        if o.only in ("", "quantised"):
            judge_quantised(judge, family, folder, tokens)
        if o.only in ("", "ahead"):
            ahead.judge(judge, family, base_models, folder, tokens)
        if o.only in ("", "tensors", "members"):
            for what, here in base_models(family, folder):
                if o.only in ("", "tensors"):
                    judge_tensors(judge, what, here, folder, tokens)
                if o.only in ("", "members"):
                    judge_members(judge, what, here, folder, tokens)
    judge.client.end()
    return family, judge.counts, judge.worst, time.monotonic() - begin


def add_counts(counts, beginning="", outcomes=None):
    """Cases of the parts whose names begin so, of these outcomes or of all."""
    return sum(n for part, row in counts.items() if part.startswith(beginning)
               for outcome, n in row.items() if outcomes is None or outcome in outcomes)


def columns(counts):
    """What the page of architectures says of a family."""
    return [add_counts(counts, "configurations", ("equal",)), add_counts(counts, "configurations"),
            add_counts(counts, "tensors", ("equal",)), add_counts(counts, "tensors"),
            add_counts(counts, "members", ("equal",)), add_counts(counts, "members"),
            add_counts(counts, outcomes=SILENT)]


def write_list(path, rows):
    """tests/architectures-judged-list.h, which docs/architectures.md is made from; families that were
    not judged keep their rows."""
    found = {}
    if os.path.exists(path):
        with open(path) as file:
            found = dict(re.findall(r'X\("([^"]+)", ([0-9, ]+)\)', file.read()))
    found.update((family, ", ".join(map(str, columns(counts)))) for family, counts, _, _ in rows)
    with open(path, "w") as out:
        out.write("/* SPDX-License-Identifier: MIT\n"
                  " * What tools/judges/models.py --list found. X(model_type, configurations equal, all;\n"
                  " * changed tensors equal, all; changed members equal, all; silently different) */\n"
                  "#ifndef TND_TESTS_ARCHITECTURES_JUDGED_LIST_H\n"
                  "#define TND_TESTS_ARCHITECTURES_JUDGED_LIST_H\n\n/* clang-format off */\n"
                  f'#define TND_JUDGED_WITH "transformers {transformers.__version__}, torch '
                  f'{torch.__version__.split("+")[0]}, {time.strftime("%Y-%m-%d")}"\n'
                  "#define TND_JUDGED(X)")
        for family in sorted(found):
            out.write(f' \\\n    X("{family}", {found[family]})')
        out.write("\n/* clang-format on */\n\n#endif\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--configs", type=int, default=7, help="of each architecture")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--show", type=int, default=20, help="so many of each kind; 100: all kinds")
    parser.add_argument("--only", default="")
    parser.add_argument("--families", default="", help="those with one of these (a,b) in their names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at a time")
    parser.add_argument("--list", default="", help="writes what the page of architectures says")
    o = parser.parse_args()
    begin, rows = time.monotonic(), []
    names = [n for n in sorted(FAMILIES) if any(part in n for part in o.families.split(","))]
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(o.jobs, fork) as pool:
        for judged in concurrent.futures.as_completed(pool.submit(judge_family, o, n) for n in names):
            family, counts, worst, seconds = judged.result()
            rows.append((family, counts, worst, seconds))
            print(f"{family}: {add_counts(counts, outcomes=SILENT)} silent; " +
                  "; ".join(f"{sum(row.values())} {part}: " +
                            ", ".join(f"{n} {outcome}" for outcome, n in sorted(row.items()))
                            for part, row in counts.items()) +
                  f"; at most {worst:.1e} off; {seconds:.0f} s", flush=True)
    rows.sort()
    if o.list:
        write_list(o.list, rows)
    total = {}
    for _, counts, _, _ in rows:
        for part, row in counts.items():
            for outcome, n in row.items():
                total.setdefault(part, {}).setdefault(outcome, 0)
                total[part][outcome] += n
    print(f"transformers {transformers.__version__}, torch {torch.__version__}; {len(rows)} "
          f"architectures in {time.monotonic() - begin:.0f} s; largest difference of equal logits "
          f"{max(worst for _, _, worst, _ in rows):.1e}")
    for part, row in total.items():
        print(f"{sum(row.values()):5d} {part}: " +
              ", ".join(f"{n} {outcome}" for outcome, n in sorted(row.items())))
    bad = add_counts(total, outcomes=SILENT)
    print(f"models: {'good' if bad == 0 else f'{bad} silent differences, crashes or nameless refusals'}")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
