# SPDX-License-Identifier: MIT
# Judges K-quants on a trained model: a llama with rows of 256 values (no available file has such rows),
# trained here on stories from a grammar. Compares how much its probabilities change when all matrices
# become Q2_K .. Q6_K, by our quantiser and by ggml's reference functions, in double precision.
# Needs: numpy, jax, gguf, pip (for ggml's source archive), a C compiler.
#
# usage: trained.py LIBTANDEM_SO FOLDER [--archive llama_cpp_python-*.tar.gz]    (the model is kept)
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path += [here, os.path.join(here, "..", "dev", "stand_ins")]
from golden import read_model
from quants import K, Quantiser, build_ggml, decode
from stories import story

SIZES = "256,256,2,8,2"
STEPS = "300"
MATRICES = ("embedding", "q", "k", "v", "o", "gate", "down", "up")


def norm(x, weight, eps=1e-5):
    return weight * x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)


def rotate(x, head):
    angle = np.arange(len(x))[:, None, None] * 10000.0 ** (-np.arange(0, head, 2) / head)
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * np.cos(angle) - b * np.sin(angle),
                     a * np.sin(angle) + b * np.cos(angle)], -1).reshape(x.shape)


def log_probabilities(w, ids):
    """Of the token behind each position of a text."""
    dim, _, layers, heads, kv_heads, head = w["sizes"]
    eps = w.get("eps", 1e-5)
    n = len(ids)
    future = np.triu(np.ones((n, n), bool), 1)
    x = w["embedding"][ids]
    for l in range(layers):
        y = norm(x, w["attn_norm"][l], eps)
        q = rotate((y @ w["q"][l].T).reshape(n, heads, head), head)
        k = rotate((y @ w["k"][l].T).reshape(n, kv_heads, head), head)
        v = (y @ w["v"][l].T).reshape(n, kv_heads, head)
        k, v = (np.repeat(t, heads // kv_heads, 1) for t in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(head)
        scores[:, future] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", scores, v).reshape(n, dim) @ w["o"][l].T
        y = norm(x, w["ffn_norm"][l], eps)
        gate = y @ w["gate"][l].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w["up"][l].T)) @ w["down"][l].T
    logits = norm(x, w["norm"], eps) @ w.get("output", w["embedding"]).T
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def quantised(w, name, quantise):
    out = dict(w)
    for tensor in MATRICES:
        x = np.ascontiguousarray(w[tensor].reshape(-1), np.float32)
        out[tensor] = decode(name, quantise(name, x)).reshape(w[tensor].shape)
    return out


def train(folder):
    if not os.path.exists(folder + "/model.bin"):
        print("training a model of %s, some minutes" % SIZES, flush=True)
        subprocess.check_call([sys.executable, sys.path[-1] + "/train.py", folder, STEPS],
                              env=dict(os.environ, SIZES=SIZES), stdout=subprocess.DEVNULL)
    w = read_model(folder + "/model.bin")
    with open(folder + "/tokens.txt") as file:
        pieces = tuple(line[:-1].replace("\\n", "\n") for line in file)
    from train import encode  # needs jax
    rng = random.Random(15)  # not the texts of the training
    return w, [encode(story(rng), pieces)[:256] for _ in range(12)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("folder")
    parser.add_argument("--archive")
    options = parser.parse_args()
    w, texts = train(options.folder)
    with tempfile.TemporaryDirectory(prefix="judge-trained-") as folder:
        archive, ggml = build_ggml(folder, options.archive)
        quantiser = Quantiser(options.library, ggml)
        want = [log_probabilities(w, ids) for ids in texts]
        n = sum(map(len, texts))
        loss = -sum(lp[i, ids[i + 1]] for lp, ids in zip(want, texts) for i in range(len(ids) - 1))
        print("ggml of %s; %d tokens, perplexity %.3f" %
              (archive, n, np.exp(loss / (n - len(texts)))))
        bad = 0
        for name in K:
            kl = []
            for quantise in (quantiser.ours, quantiser.theirs):
                other = quantised(w, name, quantise)
                kl.append(sum(float((np.exp(lp) * (lp - log_probabilities(other, ids))).sum())
                              for lp, ids in zip(want, texts)) / n)
            print("%s: KL %.6f, ggml's %.6f, ratio %.3f" % (name, *kl, kl[0] / kl[1]), flush=True)
            bad += kl[0] > 1.05 * kl[1]
    print("trained: %s" % ("good" if bad == 0 else "%d failures" % bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
