# SPDX-License-Identifier: MIT
"""Greedy text of a llama2.c checkpoint (version 0), computed in double precision, a token at a
time, from the formulas alone: usage: golden.py CHECKPOINT TOKENIZER STEPS [PROMPT]  (needs numpy).

The text goes to stdout; the smallest gap between the two best logits of a step, the loss of the
text and where the gap is go to stderr: exact text is a fair test only while the gap is far above
the rounding of F32."""
import struct
import sys

import numpy as np


def read_model(path):
    data = open(path, "rb").read()
    dim, hidden, layers, heads, kv_heads, vocabulary, context = struct.unpack("<7i", data[:28])
    head = dim // heads
    at = 28
    w = {"sizes": (dim, hidden, layers, heads, kv_heads, head)}
    for name, shape in [
            ("embedding", (vocabulary, dim)), ("attn_norm", (layers, dim)),
            ("q", (layers, dim, dim)), ("k", (layers, head * kv_heads, dim)),
            ("v", (layers, head * kv_heads, dim)), ("o", (layers, dim, dim)),
            ("ffn_norm", (layers, dim)), ("gate", (layers, hidden, dim)),
            ("down", (layers, dim, hidden)), ("up", (layers, hidden, dim)), ("norm", (dim,))]:
        n = int(np.prod(shape))
        w[name] = np.frombuffer(data, "<f4", n, at).astype(np.float64).reshape(shape)
        at += 4 * n
    return w


def read_tokens(path, n):
    data = open(path, "rb").read()
    tokens, at = [], 4
    for _ in range(n):
        score, length = struct.unpack_from("<fi", data, at)
        tokens.append((data[at + 8:at + 8 + length], score))
        at += 8 + length
    return tokens


def encode(text, tokens):
    """The pair whose merged piece has the best score goes first, the leftmost among equals."""
    find = {piece: i for i, (piece, _) in enumerate(tokens)}
    ids = []
    for c in (" " + text if text else ""):
        c = c.encode()
        ids += [find[c]] if c in find else [3 + byte for byte in c]
    while True:
        best = None
        for i in range(len(ids) - 1):
            merged = find.get(tokens[ids[i]][0] + tokens[ids[i + 1]][0])
            if merged is not None and (best is None or tokens[merged][1] > best[0]):
                best = (tokens[merged][1], i, merged)
        if best is None:
            return [1] + ids
        ids[best[1]:best[1] + 2] = [best[2]]


def norm(x, weight):
    return weight * x / np.sqrt(np.mean(x * x) + 1e-5)


def rotate(x, position, head):
    angle = position * 10000.0 ** (-np.arange(0, head, 2) / head)
    a, b = x[:, 0::2], x[:, 1::2]
    out = np.empty_like(x)
    out[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    out[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out


def forward(w, token, position, cache):
    dim, _, layers, heads, kv_heads, head = w["sizes"]
    x = w["embedding"][token]
    for l in range(layers):
        y = norm(x, w["attn_norm"][l])
        q = rotate((w["q"][l] @ y).reshape(heads, head), position, head)
        cache[l].append((rotate((w["k"][l] @ y).reshape(kv_heads, head), position, head),
                         (w["v"][l] @ y).reshape(kv_heads, head)))
        out = np.empty((heads, head))
        for h in range(heads):
            k = np.array([pair[0][h * kv_heads // heads] for pair in cache[l]])
            v = np.array([pair[1][h * kv_heads // heads] for pair in cache[l]])
            score = np.exp(k @ q[h] / np.sqrt(head) - np.max(k @ q[h] / np.sqrt(head)))
            out[h] = score / score.sum() @ v
        x = x + w["o"][l] @ out.reshape(dim)
        y = norm(x, w["ffn_norm"][l])
        gate = w["gate"][l] @ y
        x = x + w["down"][l] @ (gate / (1 + np.exp(-gate)) * (w["up"][l] @ y))
    return w["embedding"] @ norm(x, w["norm"])


def piece(tokens, before, token):
    text = tokens[token][0]
    if text.startswith(b"<0x") and len(text) == 6:
        return bytes([int(text[3:5], 16)])
    return text[1:] if before == 1 and text.startswith(b" ") else text


def main():
    w = read_model(sys.argv[1])
    tokens = read_tokens(sys.argv[2], len(w["embedding"]))
    steps = int(sys.argv[3])
    ids = encode(sys.argv[4] if len(sys.argv) > 4 else "", tokens)
    cache = [[] for _ in range(w["sizes"][2])]
    out, smallest, loss = b"", (1e9, 0), 0.0
    token = ids[0]
    for position in range(steps):
        logits = forward(w, token, position, cache)
        if position + 1 < len(ids):
            following = ids[position + 1]
        else:
            following = int(np.argmax(logits))
            order = np.sort(logits)
            smallest = min(smallest, (order[-1] - order[-2], position))
        loss += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[following]
        if following == 1:
            break
        out += piece(tokens, token, following)
        token = following
    sys.stdout.buffer.write(out + b"\n")
    print("smallest gap %.6f at step %d, mean loss %.4f" % (*smallest, loss / steps),
          file=sys.stderr)


if __name__ == "__main__":
    main()
