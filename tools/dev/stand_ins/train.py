# SPDX-License-Identifier: MIT
"""Trains the stand-in for a trained model: usage: train.py FOLDER [STEPS]  (needs numpy and jax).

Writes FOLDER/tokens.txt, 253 pieces merged from pairs of characters by frequency, a line each,
and FOLDER/weights.bin: for each row of each tensor one little-endian F32 scale and one signed byte
a weight, value = scale * byte, exact in F32. Tensors and their order are SHAPES below. A Llama as
llama2.c trains it: RMS norm, rotation of neighbouring pairs, grouped heads, SwiGLU, the embedding
again as classifier. With SIZES set FOLDER/model.bin instead, a checkpoint of llama2.c."""
import collections
import functools
import os
import random
import struct
import sys

import jax
import jax.numpy as jnp
import numpy as np

from stories import story

# Other sizes, dim,hidden,layers,heads,kv_heads, give a checkpoint that is no stand-in.
SIZES = os.environ.get("SIZES", "")
DIM, HIDDEN, LAYERS, HEADS, KV_HEADS = map(int, (SIZES or "64,172,5,8,4").split(","))
VOCABULARY = 512
HEAD = DIM // HEADS
KV = HEAD * KV_HEADS
FIRST_PIECE = 259  # <unk> <s> </s> and 256 bytes come first
LENGTH, BATCH = 256, 4
SHAPES = {  # in the order of llama2.c's version 0
    "embedding": (VOCABULARY, DIM), "attn_norm": (LAYERS, DIM), "q": (LAYERS, DIM, DIM),
    "k": (LAYERS, KV, DIM), "v": (LAYERS, KV, DIM), "o": (LAYERS, DIM, DIM),
    "ffn_norm": (LAYERS, DIM), "gate": (LAYERS, HIDDEN, DIM), "down": (LAYERS, DIM, HIDDEN),
    "up": (LAYERS, HIDDEN, DIM), "norm": (DIM,)}


def train_pieces(text):
    """Characters first, then the most frequent pair, as sentencepiece's BPE does; a blank stands at
    the beginning of its word, and no piece crosses it."""
    words = collections.Counter((" " + text).replace(" ", "\n ").split("\n"))
    words = {tuple(word): n for word, n in sorted(words.items()) if word}
    letters = sorted({c for word in words for c in word} | {chr(c) for c in range(32, 127)})
    letters.append("\n")
    pieces = []
    while len(pieces) + len(letters) < VOCABULARY - FIRST_PIECE:
        pairs = collections.Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        a, b = max(sorted(pairs), key=pairs.get)
        pieces.append(a + b)
        merged = {}
        for word, n in words.items():
            out = []
            for c in word:
                if out and out[-1] == a and c == b:
                    out[-1] = a + b
                else:
                    out.append(c)
            merged[tuple(out)] = merged.get(tuple(out), 0) + n
        words = merged
    return pieces + letters


@functools.lru_cache(maxsize=None)
def encode_word(word, pieces):
    parts = list(word)
    rank = {piece: i for i, piece in enumerate(pieces)}
    while True:
        best = min((rank.get(a + b, 9999), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))) \
            if len(parts) > 1 else (9999, 0)
        if best[0] == 9999:
            return [FIRST_PIECE + rank[part] for part in parts]
        i = best[1]
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


def encode(text, pieces):
    """Ids of `text` behind <s>; the text begins with a blank of its own, as sentencepiece adds."""
    ids = [1]
    for word in (" " + text).replace(" ", "\0 ").replace("\n", "\0\n\0").split("\0"):
        if word:
            ids += encode_word(word, pieces)
    return ids


def norm(x, weight):
    return weight * x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def rotate(x, length):
    angle = jnp.arange(length)[:, None] * 10000.0 ** (-jnp.arange(0, HEAD, 2) / HEAD)
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def forward(w, ids):
    """Logits of every position of one text."""
    n = ids.shape[0]
    x = w["embedding"][ids]
    hidden_future = jnp.where(jnp.tril(jnp.ones((n, n))) == 0, -1e9, 0.0)
    for l in range(LAYERS):
        y = norm(x, w["attn_norm"][l])
        q = rotate((y @ w["q"][l].T).reshape(n, HEADS, HEAD), n)
        k = rotate((y @ w["k"][l].T).reshape(n, KV_HEADS, HEAD), n)
        v = (y @ w["v"][l].T).reshape(n, KV_HEADS, HEAD)
        k, v = (jnp.repeat(t, HEADS // KV_HEADS, 1) for t in (k, v))
        scores = jnp.einsum("ihd,jhd->hij", q, k) / HEAD ** 0.5 + hidden_future
        y = jnp.einsum("hij,jhd->ihd", jax.nn.softmax(scores), v).reshape(n, DIM)
        x = x + y @ w["o"][l].T
        y = norm(x, w["ffn_norm"][l])
        x = x + (jax.nn.silu(y @ w["gate"][l].T) * (y @ w["up"][l].T)) @ w["down"][l].T
    return norm(x, w["norm"]) @ w["embedding"].T


def loss(w, batch):
    logits = jax.vmap(lambda ids: forward(w, ids[:-1]))(batch)
    best = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(best, batch[:, 1:, None], -1))


@jax.jit
def step(w, m, v, t, rate, batch):
    """One step of Adam."""
    value, g = jax.value_and_grad(loss)(w, batch)
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.98 * a + 0.02 * b * b, v, g)
    w = jax.tree.map(lambda x, a, b: x - rate * (a / (1 - 0.9 ** t))
                     / (jnp.sqrt(b / (1 - 0.98 ** t)) + 1e-8), w, m, v)
    return w, m, v, value


def save(w, path):
    with open(path, "wb") as out:
        for name in SHAPES:
            rows = np.asarray(w[name], np.float32).reshape(-1, SHAPES[name][-1])
            for row in rows:
                scale = np.float32(np.abs(row).max() / 127)
                out.write(scale.astype("<f4").tobytes())
                out.write(np.rint(row / scale).astype(np.int8).tobytes())


def save_checkpoint(w, path):
    """llama2.c's version 0; the tables of cosines and sines at the end, which nobody reads, are 0."""
    with open(path, "wb") as out:
        out.write(struct.pack("<7i", DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY, LENGTH))
        for name in SHAPES:
            out.write(np.asarray(w[name], "<f4").tobytes())
        out.write(bytes(4 * LENGTH * HEAD))


def main():
    folder = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 450
    rng = random.Random(14)
    texts = [story(rng) for _ in range(4000)]
    pieces = tuple(train_pieces("\n".join(texts[:400])))
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/tokens.txt", "w") as out:
        out.write("".join(piece.replace("\n", "\\n") + "\n" for piece in pieces))
    ids = [encode(text, pieces) for text in texts]
    print("tokens of a story:", sum(map(len, ids)) / len(ids), flush=True)
    ids = np.array([text[:LENGTH + 1] for text in ids if len(text) > LENGTH])
    draw = np.random.RandomState(14)
    w = {name: jnp.array(np.ones(shape) if "norm" in name else
                         draw.normal(0, 0.5 / shape[-1] ** 0.5, shape), jnp.float32)
         for name, shape in SHAPES.items()}
    m = jax.tree.map(jnp.zeros_like, w)
    v = jax.tree.map(jnp.zeros_like, w)
    for t in range(1, steps + 1):
        rate = 4e-3 * (64 / DIM) ** 0.5 * min(t / 50, 1.0) * (0.02 + 0.98 * (1 - t / steps))
        w, m, v, value = step(w, m, v, t, rate, ids[draw.randint(0, len(ids), BATCH)])
        if t % 50 == 0:
            print(t, float(value), flush=True)
    if SIZES:
        save_checkpoint(w, folder + "/model.bin")
    else:
        save(w, folder + "/weights.bin")


if __name__ == "__main__":
    main()
