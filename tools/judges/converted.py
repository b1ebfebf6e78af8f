# SPDX-License-Identifier: MIT
# GGUF files judged from outside: small random models of transformers, written as GGUF by
# llama.cpp's converter and by ours, and computed by llama.cpp (the wheel xllamacpp) and here. Files of
# its converter must have transformers' probabilities here; files of ours must have them in llama.cpp,
# unless llama.cpp fails with its own converter's file, too. For encoders, embeddings are compared.
# Needs: torch, transformers, safetensors, numpy, gguf, xllamacpp, and the folder of llama.cpp's
# source with conversion/ (tools/judges/run.sh takes it from the archive of llama-cpp-python).
#
# usage: converted.py BUILD LLAMA_CPP [--configs N] [--seed N] [--families NAME] [--show N]
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

LIMIT = 2e-4
LIMIT_HOST = 1e-3  # llama.cpp's, of the largest logit: its GELU is a table in F16
LEAST = -60.0  # a log probability below it is none
PLACES = (1, 2, 7, 20)  # so many tokens of the text


def write_vocabulary(writer, n):
    """llama.cpp loads no model without tokens."""
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>", "<0x0A>"] + [f"\u2581w{i}" for i in range(n - 4)])
    writer.add_token_scores([-float(i) for i in range(n)])
    writer.add_token_types([2, 3, 3, 6] + [1] * (n - 4))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def be_converter(llama_cpp):
    """A process of its own, {"path", "to"} a line: their modules and ours have equal names."""
    sys.path.pop(0)
    sys.path.insert(0, llama_cpp)
    import logging
    from pathlib import Path
    import conversion
    import gguf
    import torch
    logging.disable(logging.WARNING)

    def set_vocab(self):
        write_vocabulary(self.gguf_writer, self.hparams["vocab_size"])
        if "bert" in self.hparams["model_type"]:
            self.gguf_writer.add_token_type_count(self.hparams.get("type_vocab_size", 1))

    for line in sys.stdin:
        ask = json.loads(line)
        try:
            folder = Path(ask["path"])
            hparams = conversion.ModelBase.load_hparams(folder, False)
            rope = hparams.get("rope_parameters") or {}
            # what version 4 of transformers wrote, and what is read for tokens' sake
            hparams.setdefault("rotary_pct", rope.get("partial_rotary_factor", 1.0))
            hparams.setdefault("n_ctx", hparams.get("n_positions"))
            if hparams.get("model_type") == "modernbert":
                hparams["layer_norm_eps"] = hparams["norm_eps"]
                hparams["global_rope_theta"] = rope["full_attention"]["rope_theta"]
                hparams["local_rope_theta"] = rope["sliding_attention"]["rope_theta"]
            if hparams.get("model_type") == "deepseek_v3":
                hparams.setdefault("scoring_func", "sigmoid")
            (folder / "tokenizer.json").write_text(json.dumps(
                {"model": {"vocab": {str(i): i for i in range(hparams["vocab_size"])}},
                 "added_tokens": []}))
            name = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
            kind = conversion.get_model_class(name)
            kind.set_vocab = set_vocab
            with torch.inference_mode():
                kind(folder, gguf.LlamaFileType.ALL_F32, Path(ask["to"]), eager=True,
                     hparams=hparams).write()
            answer = {"done": name}
        except Exception as error:
            answer = {"refusal": f"{type(error).__name__}: {error}"[:300]}
        print("ANSWER " + json.dumps(answer), flush=True)


def unit(rows):
    """Rows of length 1."""
    return [[x / sum(y * y for y in row)**0.5 for x in row] for row in rows]


def be_host(path, texts, is_encoder):
    """llama.cpp: log probabilities behind each text, or its vector, of length 1."""
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.warmup, params.fit_params = 256, 1, False, False
    params.verbosity = 3
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.embedding = is_encoder
    if is_encoder:  # sees a text at once
        params.n_batch = params.n_ubatch = 256
    server = xllamacpp.Server(params)
    rows = []
    for text in texts if is_encoder else ():
        answer = server.handle_embeddings({"input": [text], "embd_normalize": 2})
        answer = json.loads(answer) if isinstance(answer, str) else answer
        rows.append(dict(enumerate(unit([answer["data"][0]["embedding"]])[0])))
    for text in texts if not is_encoder else ():
        answer = server.handle_completions({"prompt": text, "n_predict": 1, "logprobs": 64,
                                            "temperature": 0.0, "ignore_eos": False,
                                            "cache_prompt": False})
        answer = json.loads(answer) if isinstance(answer, str) else answer
        tops = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        rows.append({top["id"]: top["logprob"] for top in tops})
    print("FOUND " + json.dumps(rows), flush=True)
    os._exit(0)


if "--converter" in sys.argv:
    be_converter(sys.argv[2])
    sys.exit(0)
if "--host" in sys.argv:
    be_host(sys.argv[2], json.loads(sys.argv[3]), "--encoder" in sys.argv)

import numpy

import models
from models import FAMILIES, ahead, Client, encoders, random_config, save_random, theirs


def add_vocabulary(source, target):
    """A copy of a file of ours with such tokens."""
    import gguf
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith(("GGUF.", "tokenizer.", "general.architecture")):
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(field.name, field.contents())
        else:
            writer.add_key_value(field.name, field.contents(), field.types[0])
    words = next(t.shape[1] for t in reader.tensors if t.name == "token_embd.weight")
    write_vocabulary(writer, int(words))
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    if "tokenizer.ggml.token_type_count" in reader.fields:
        writer.add_token_type_count(reader.fields["tokenizer.ggml.token_type_count"].contents())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Converter:
    def __init__(self, llama_cpp):
        self.process = subprocess.Popen([sys.executable, __file__, "--converter", llama_cpp],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def write(self, path, to):
        """A word why not, or "" (its file lies there)."""
        self.process.stdin.write(json.dumps({"path": path, "to": to}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return json.loads(line[7:]).get("refusal", "")
        return "the converter ended"


def host(path, texts, vocabulary, is_encoder=False):
    """Rows of llama.cpp {texts, vocabulary}, or a word why there are none."""
    more = ["--encoder"] if is_encoder else []
    run = subprocess.run([sys.executable, __file__, "--host", path, json.dumps(texts), *more],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace", timeout=120)
    place = run.stdout.find("FOUND [")
    if place < 0:
        reasons = [l for l in run.stdout.splitlines() if "error" in l.lower() or "fail" in l.lower()]
        return "refused: " + " | ".join(reasons[:3])[:300]
    rows = json.JSONDecoder().raw_decode(run.stdout, place + 6)[0]
    return numpy.array([[row.get(str(i), -1e9) for i in range(vocabulary)] for row in rows])


def vectors(folder, texts):
    """transformers' of an encoder, of length 1."""
    with open(folder + "/config.json") as file:
        config = json.load(file)
    return numpy.array(unit([encoders.compute(config, folder, text)[0][0].tolist() for text in texts]))


def log_softmax(rows):
    rows = numpy.asarray(rows, numpy.float64)
    rows = rows - rows.max(-1, keepdims=True)
    return rows - numpy.log(numpy.exp(rows).sum(-1, keepdims=True))


def distance(got, want):
    """The largest difference, or the word that `got` is."""
    if isinstance(got, str):
        return got
    return float(numpy.abs(numpy.maximum(got, LEAST) - numpy.maximum(want, LEAST)).max())


def is_near(found, limit):
    return not isinstance(found, str) and found <= limit


BIASED = ("llama", "qwen2", "qwen2_moe", "stablelm", "glm4", "glm4_moe")
TIED = ("gemma", "gemma2", "gemma3_text", "cohere", "cohere2")
NO_WINDOW = ("mistral", "mixtral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "phi3", "starcoder2")


def published(rng, family):
    """As published models are: GGUF has no words for what else transformers can be told."""
    config = random_config(rng, family)
    if family in encoders.FAMILIES:
        config.judged_as = rng.choice(encoders.POOLINGS)
        config.hidden_act = "gelu"
        return config
    options, usual = config.to_dict(), type(config)()
    for name in ("hidden_act", "hidden_activation", "activation_function", "activation", "layer_types",
                 "no_rope_layers", "no_rope_layer_interval", "norm_topk_prob", "attn_logit_softcapping",
                 "final_logit_softcapping", "use_parallel_residual", "topk_method", "rope_interleave",
                 "scoring_func", "new_decoder_architecture"):
        if name in options and name not in ("layer_types", "no_rope_layers"):
            options[name] = getattr(usual, name, options[name])
        elif name in options:
            del options[name]
    for name in ("attention_bias", "mlp_bias", "use_bias", "bias"):
        if name in options and family not in BIASED:
            options[name] = getattr(usual, name)
    if family in TIED or family == "qwen2_moe":
        options["tie_word_embeddings"] = family in TIED
    if family == "qwen3_moe":
        options["norm_topk_prob"] = True
    if family == "gpt2":
        options["n_inner"] = None
    if family == "qwen2":
        options.pop("head_dim", None)
        options["hidden_size"] = 8 * options["num_attention_heads"]
    if family == "deepseek_v3":
        options["q_lora_rank"] = options["q_lora_rank"] or 12
    if family == "falcon":
        options.update(multi_query=True, num_kv_heads=1, ffn_hidden_size=4 * options["hidden_size"])
    if family in NO_WINDOW:
        options.update(sliding_window=None, use_sliding_window=False)
    rope = options.get("rope_parameters") or {}
    if "mscale" in rope:
        rope["mscale_all_dim"] = rope["mscale"]
    if "truncate" in rope:
        rope["truncate"] = True
    if rope.get("rope_type") in ("yarn", "longrope") and family not in ("phi3", "gpt_oss") \
            and not family.startswith("deepseek"):
        options["rope_parameters"] = {"rope_type": "default", "rope_theta": rope["rope_theta"]}
    return type(config)(**{k: v for k, v in options.items() if k not in ("model_type", "architectures")})




class Judge:
    def __init__(self, o):
        self.client, self.converter, self.show = Client(o.build), Converter(o.llama_cpp), o.show
        self.counts = {}

    def ours(self, path, tokens, vocabulary):
        answer = self.client.ask(path=path, tokens=tokens, vocabulary=vocabulary, at_once=False)
        return log_softmax(answer["logits"]) if "logits" in answer else str(answer)

    def count(self, family, part, outcome, detail):
        row = self.counts.setdefault(part, {})
        row[outcome] = row.get(outcome, 0) + 1
        if outcome.isupper() and row[outcome] <= self.show or self.show > 99:
            print(f"  {part}: {outcome}: {family}: {detail}"[:1500], flush=True)

    def our_vectors(self, path, texts, n):
        answers = [self.client.ask(path=path, tokens=text, vocabulary=n, at_once=True) for text in texts]
        bad = [a for a in answers if "logits" not in a]
        return str(bad[0]) if bad else numpy.array(unit([a["logits"][0] for a in answers]))

    def judge_encoder(self, family, what, folder, tokens):
        texts = [tokens[:n] for n in PLACES]
        want, other, mine = vectors(folder, texts), folder + "/theirs.gguf", folder + "/ours.gguf"
        refusal = self.converter.write(folder, other)
        there = refusal or host(other, texts, want.shape[1], True)
        if refusal:
            self.count(family, "their encoder here", "not written", f"{refusal} {what}")
        else:
            rows = self.our_vectors(other, texts, want.shape[1])
            found = distance(rows, want)
            same = "refused" if isinstance(rows, str) or isinstance(there, str) else distance(rows, there)
            self.count(family, "their encoder here", "equal" if is_near(found, LIMIT) else
                       "as llama.cpp has it" if is_near(same, LIMIT_HOST) else
                       "REFUSED" if isinstance(found, str) else "DIFFERS",
                       f"{found} (there {distance(there, want)}) {what}")
        os.unlink(folder + "/tokenizer.json")
        answer = self.client.ask(path=folder, to=mine)
        if "done" not in answer:
            return self.count(family, "our encoder there", "REFUSED", f"{answer} {what}")
        add_vocabulary(mine, mine + ".with")
        found = distance(host(mine + ".with", texts, want.shape[1], True), want)
        outcome = "equal" if is_near(found, LIMIT_HOST) else \
            "refused, as theirs is" if isinstance(found, str) and isinstance(there, str) else \
            "differs, as theirs does" if not is_near(distance(there, want), LIMIT_HOST) else "DIFFERS"
        return self.count(family, "our encoder there", outcome,
                          f"{found} (theirs {distance(there, want)}) {what}")

    def judge(self, family, what, folder, tokens):
        if family in encoders.FAMILIES:
            return self.judge_encoder(family, what, folder, tokens)
        reference = theirs(folder, tokens)
        if isinstance(reference, str):
            return self.count(family, "models", "refused by transformers", reference)
        want, texts = log_softmax(reference), [tokens[:n] for n in PLACES]
        limit_host = LIMIT_HOST * max(1.0, float(numpy.abs(reference).max()))
        wanted = want[[n - 1 for n in PLACES]]
        mine, other = folder + "/ours.gguf", folder + "/theirs.gguf"
        refusal = self.converter.write(folder, other)
        host_other = "not converted"
        if refusal:
            self.count(family, "their file here", "not written", f"{refusal} {what}")
        else:
            rows = self.ours(other, tokens, want.shape[1])
            found = distance(rows, want)
            there = host(other, texts, want.shape[1])
            host_other = distance(there, wanted)
            same = "refused" if isinstance(rows, str) or isinstance(there, str) else \
                distance(rows[[n - 1 for n in PLACES]], there)
            outcome = "equal" if is_near(found, LIMIT) else \
                "as llama.cpp has it" if is_near(same, limit_host) else \
                "refused by both" if isinstance(rows, str) and isinstance(there, str) else \
                "differs, and llama.cpp refuses it" if isinstance(there, str) else \
                "REFUSED" if isinstance(rows, str) else "DIFFERS"
            self.count(family, "their file here", outcome,
                       f"{found} (there {host_other}, from there {same}) {what}")
            if outcome == "equal" and ahead.is_told(other):
                wrong = ahead.judge_drafts(self.client, folder, other, what)
                self.count(family, "drafts", "DIFFERS" if wrong else "equal", f"{wrong} {what}")
        os.unlink(folder + "/tokenizer.json")
        answer = self.client.ask(path=folder, to=mine)
        if "done" not in answer:
            return self.count(family, "our file there", "REFUSED", f"{answer} {what}")
        add_vocabulary(mine, mine + ".with")
        found = distance(host(mine + ".with", texts, want.shape[1]), wanted)
        outcome = "equal" if is_near(found, limit_host) else \
            "refused, as theirs is" if isinstance(found, str) and isinstance(host_other, str) else \
            "differs, as theirs does" if not is_near(host_other, limit_host) else "DIFFERS"
        return self.count(family, "our file there", outcome, f"{found} (theirs {host_other}) {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("llama_cpp")
    parser.add_argument("--configs", type=int, default=3, help="of each family")
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--show", type=int, default=20, help="so many of each kind; 100: all kinds")
    parser.add_argument("--families", default="", help="those with this in their name; all")
    o = parser.parse_args()
    judge, bad = Judge(o), 0
    rng = random.Random(o.seed)
    tokens = [rng.randrange(4, models.VOCABULARY) for _ in range(models.N_TOKENS)]
    for family in sorted(f for f in FAMILIES if o.families in f and f not in models.parts.FAMILIES):
        for i in range(o.configs):
            rng = random.Random(f"{o.seed} {family} {i}")
            with tempfile.TemporaryDirectory() as folder:
                while True:
                    try:
                        config = published(rng, family)
                        save_random(config, folder, i)
                        if family in ahead.FAMILIES and i % 2 == 0:
                            ahead.add(folder, i % 4 == 0)
                        break
                    except Exception:
                        pass  # transformers does not want this one
                judge.judge(family, json.dumps(config.to_diff_dict()), folder, tokens)
    for part, row in judge.counts.items():
        print(f"{sum(row.values()):5d} {part}: " +
              ", ".join(f"{n} {outcome}" for outcome, n in sorted(row.items())))
        bad += sum(n for outcome, n in row.items() if outcome.isupper())
    print(f"converted: {'good' if bad == 0 else f'{bad} differ'}")
    sys.exit(bad != 0)


main()
