# SPDX-License-Identifier: MIT
"""Judges blocks that make-stand-ins wrote by gguf-py: usage: judge.py STAND-INS  (numpy, gguf)."""
import sys

import gguf
import numpy as np

folder = sys.argv[1]
embedding = np.fromfile(folder + "/llama/stories260K.bin", "<f4", 512 * 64, offset=28)
wrong = 0
for name in "BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K".split():
    kind = gguf.GGMLQuantizationType[name]
    for part in ["rand", "tok_embd"][:2 if "_K" not in name else 1]:
        blocks = np.fromfile("%s/quants/%s.%s.blocks.bin" % (folder, name, part), np.uint8)
        values = np.fromfile("%s/quants/%s.%s.f32.bin" % (folder, name, part), "<f4")
        got = gguf.quants.dequantize(blocks, kind).astype("<f4")
        same = got.tobytes() == values.tobytes()
        if part == "tok_embd":
            same = same and gguf.quants.quantize(embedding, kind).tobytes() == blocks.tobytes()
        print(name, part, len(values), "same" if same else "DIFFERENT")
        wrong += not same
sys.exit(wrong > 0)
