# SPDX-License-Identifier: MIT
# What computing with quantised weights costs beside the weights' own error: the same GGUF files,
# one of each type, in llama.cpp (the wheel xllamacpp) and here. KL divergence from the exact
# probabilities (weights as gguf-py decodes them, in double precision) of tokens that are computed
# one by one and of prompts. Ours must be at most theirs, but for chance.
# Needs: numpy, gguf, xllamacpp.
#
# usage: type_errors.py TANDEM_LLAMA [--types q4_0,...] [--tokens 32]
#        (TANDEM_INFER_LIBRARY and PYTHONPATH name the build and bindings/python)
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

from bridge import add_vocabulary, open_xllamacpp

TYPES = ("f16,bf16,q8_0,q6_k,q5_k,q5_1,q5_0,q4_k,q4_1,q4_0,iq4_nl,iq4_xs,mxfp4,q3_k,iq3_s,iq3_xxs,"
         "q2_k,iq2_s,iq2_xs,iq2_xxs,iq1_m,iq1_s,tq2_0,tq1_0")
SHAPE = "512,1024,3,8,4,512"
PROMPTS = (4, 16, 64)  # tokens
NOTHING = 1e-9  # a KL below it is rounding of the sums
CHANCE = 1.25  # of two computations that round alike, in another order


def exact(path, ids):
    """Log probabilities behind each token."""
    import gguf
    from trained import log_probabilities
    reader = gguf.GGUFReader(path)
    found = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
    value = {k: f.contents() for k, f in reader.fields.items() if k.startswith("llama.")}
    layers = value["llama.block_count"]
    heads, kv_heads = (value["llama.attention." + k] for k in ("head_count", "head_count_kv"))
    dim = value["llama.embedding_length"]
    w = {"sizes": (dim, 0, layers, heads, kv_heads, dim // heads), "embedding": found["token_embd.weight"],
         "output": found.get("output.weight", found["token_embd.weight"]), "norm": found["output_norm.weight"],
         "eps": value["llama.attention.layer_norm_rms_epsilon"]}
    for ours, name in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"), ("o", "attn_output"),
                       ("gate", "ffn_gate"), ("up", "ffn_up"), ("down", "ffn_down"),
                       ("attn_norm", "attn_norm"), ("ffn_norm", "ffn_norm")):
        w[ours] = [found[f"blk.{l}.{name}.weight"] for l in range(layers)]
    return log_probabilities(w, np.array(ids))


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def kl(want, got):
    return float((np.exp(want) * (want - got)).sum(-1).mean())


def ours(path, ids, n_one):
    """Rows of tokens one by one, and of the last token of each prompt."""
    import tandem_infer
    with tandem_infer.Runtime() as runtime, tandem_infer.Model(path) as model:
        one, whole = [], []
        with tandem_infer.Session(model, runtime) as session:
            for token in ids[:n_one]:
                session.decode([token])
                one.append(np.array(session.logits()))
        for n in PROMPTS:
            with tandem_infer.Session(model, runtime) as session:
                session.decode(ids[:n])
                whole.append(np.array(session.logits()))
    return log_softmax(one), log_softmax(whole)


def be_theirs(path, ids, n_one):
    """A process of its own: the program's log goes on beside what it prints."""
    complete = open_xllamacpp(path, None, 1)

    def row(n, cached):
        answer = complete(ids[:n], 1, logprobs=512, cache_prompt=cached)
        out = [-1e9] * 512
        for top in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
            out[top["id"]] = top["logprob"]
        return out
    found = [[row(n + 1, True) for n in range(n_one)], [row(n, False) for n in PROMPTS]]
    print("FOUND " + json.dumps(found), flush=True)
    os._exit(0)


def theirs(path, ids, n_one):
    process = subprocess.run([sys.executable, __file__, "--theirs", path, json.dumps([ids, n_one])],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", timeout=600)
    place = process.stdout.find("FOUND [")
    if place < 0:
        raise SystemExit("the program failed:\n" + process.stdout[-2000:])
    return [log_softmax(rows) for rows in
            json.JSONDecoder().raw_decode(process.stdout, place + 6)[0]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--tokens", type=int, default=48)
    o = parser.parse_args()
    rng = random.Random(7)
    ids = [1] + [rng.randrange(259, 512) for _ in range(max(o.tokens, max(PROMPTS)) - 1)]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="judge-types-") as folder:
        plain = folder + "/plain.gguf"
        print("KL from exact probabilities: one token at a time, prompts (xllamacpp's)")
        for name in o.types.split(","):
            path = f"{folder}/{name}.gguf"
            subprocess.check_call([o.program, "synth", "-q", "-y", "--shape", SHAPE, "--type", name, plain])
            add_vocabulary(plain, path, 128)
            want = exact(path, ids)
            mine, other = ours(path, ids, o.tokens), theirs(path, ids, o.tokens)
            references = want[:o.tokens], want[[n - 1 for n in PROMPTS]]
            pairs = [(kl(w, a), kl(w, b)) for w, a, b in zip(references, mine, other)]
            is_good = all(a <= max(b * CHANCE, NOTHING) for a, b in pairs)
            bad += not is_good
            print("%-8s %s %s" % (name, "  ".join("%.3g (%.3g)" % p for p in pairs),
                                  "" if is_good else "WORSE"), flush=True)
    print("types: %s" % ("good" if bad == 0 else "%d are worse" % bad))
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        be_theirs(sys.argv[2], *json.loads(sys.argv[3]))
    sys.exit(main())
