# SPDX-License-Identifier: MIT
# Judges quantised blocks independently: the plain block types byte for byte against ggml's reference
# functions (compiled from the source archive of llama-cpp-python) and gguf-py, the others by their
# squared error against ggml's, plain and (K-quants) weighted by the size of the values. Decoded
# random bytes must be bit-identical to ggml's and gguf-py's, for every type.
# Needs: numpy, gguf, pip (for the archive), a C compiler.
#
# usage: quants.py LIBTANDEM_SO [--rows N] [--archive llama_cpp_python-*.tar.gz]
import argparse
import ctypes
import glob
import os
import subprocess
import sys
import tarfile
import tempfile

import gguf
import numpy as np

PLAIN = {"Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q8_0": 34}  # bytes of 32 values
K = {"Q2_K": 84, "Q3_K": 110, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210}  # bytes of 256 values
FITTED = {"IQ4_NL": 18, "MXFP4": 17}  # bytes of 32 values
SUPER = {"IQ4_XS": 136, "IQ3_XXS": 98, "IQ3_S": 110, "IQ2_XXS": 66, "IQ2_XS": 74, "IQ2_S": 82,
         "IQ1_S": 50, "IQ1_M": 56, "TQ1_0": 54, "TQ2_0": 66}  # bytes of 256 values
NEEDS_WEIGHTS = ("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M")
STUBS = """
#include <stdlib.h>
void ggml_abort(const char *f, int l, const char *m, ...) { (void)f; (void)l; (void)m; abort(); }
size_t ggml_row_size(int t, long n) { (void)t; (void)n; abort(); }
const char *ggml_type_name(int t) { (void)t; return ""; }
size_t ggml_type_size(int t) { (void)t; abort(); }
"""


def build_ggml(folder, archive):
    if archive is None:
        subprocess.check_call([sys.executable, "-m", "pip", "-q", "download", "--no-deps",
                               "--no-binary", ":all:", "llama-cpp-python", "-d", folder])
        archive = glob.glob(os.path.join(folder, "llama_cpp_python-*.tar.gz"))[0]
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/vendor/llama.cpp/")[2]
            if member.isfile() and name.startswith("ggml/") and (
                    name.endswith(".h") or name == "ggml/src/ggml-quants.c"):
                member.name = name
                tar.extract(member, folder)
    with open(os.path.join(folder, "stubs.c"), "w") as file:
        file.write(STUBS)
    library = os.path.join(folder, "libggml-quants.so")
    # As ggml's own build of this file: no instructions beyond the machine's base set.
    subprocess.check_call(["cc", "-O2", "-w", "-fPIC", "-shared",
                           "-Iggml/include", "-Iggml/src", '-DGGML_VERSION="x"',
                           '-DGGML_COMMIT="x"', "-o", library, "ggml/src/ggml-quants.c", "stubs.c",
                           "-lm"], cwd=folder)
    return os.path.basename(archive), ctypes.CDLL(library)


def ggml_name(name):
    return name.replace("Q", "q", 1) if name.startswith("Q") else name.lower()


class Quantiser:
    def __init__(self, tandem, ggml):
        self.tandem = ctypes.CDLL(os.path.abspath(tandem))
        self.ggml = ggml
        for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M"):
            ggml.iq2xs_init_impl(ctypes.c_int(int(gguf.GGMLQuantizationType[name])))
        for points in (256, 512):
            ggml.iq3xs_init_impl(ctypes.c_int(points))

    @staticmethod
    def blocks(name, n):
        small = {**PLAIN, **FITTED}
        large = {**K, **SUPER}
        return np.zeros(n // 32 * small[name] if name in small else n // 256 * large[name], np.uint8)

    def ours(self, name, x):
        out = self.blocks(name, x.size)
        status = self.tandem.tandem_quantize(ctypes.c_int(int(gguf.GGMLQuantizationType[name])),
                                             ctypes.c_void_p(x.ctypes.data),
                                             ctypes.c_void_p(out.ctypes.data),
                                             ctypes.c_int64(x.size))
        assert status == 0, (name, status)
        return out

    def theirs(self, name, x):
        out = self.blocks(name, x.size)
        if name in NEEDS_WEIGHTS:  # and nothing is more important
            ones = np.ones(256, np.float32)
            getattr(self.ggml, "quantize_" + ggml_name(name))(
                ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
                ctypes.c_int64(x.size // 256), ctypes.c_int64(256), ctypes.c_void_p(ones.ctypes.data))
            return out
        function = getattr(self.ggml, "quantize_row_%s_ref" % ggml_name(name))
        function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
                 ctypes.c_int64(x.size))
        return out


    def decoded(self, name, blocks, n):
        ours, theirs = np.zeros(n, np.float32), np.zeros(n, np.float32)
        status = self.tandem.tandem_dequantize(
            ctypes.c_int(int(gguf.GGMLQuantizationType[name])), ctypes.c_void_p(blocks.ctypes.data),
            ctypes.c_void_p(ours.ctypes.data), ctypes.c_int64(n))
        assert status == 0, (name, status)
        getattr(self.ggml, "dequantize_row_%s" % ggml_name(name))(
            ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(theirs.ctypes.data),
            ctypes.c_int64(n))
        return ours, theirs


def decode(name, blocks):
    return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float64)


def constant_rows(rng, n, value, count, far):
    x = np.full((n, 256), value)
    for row in x:
        places = rng.choice(256, count, replace=False)
        row[places] = far * rng.choice([-1, 1], count) * rng.uniform(0.8, 1.2, count)
    return x


def make_rows(rng, n):
    def shape():
        return (n, 256)
    rows = {
        "normal": rng.standard_normal(shape()),
        "uniform": rng.uniform(-1, 1, shape()),
        "positive": rng.uniform(0, 1, shape()),
        "around 1": rng.standard_normal(shape()) * 0.1 + 1,
        "around -1": rng.standard_normal(shape()) * 0.1 - 1,
        "Student t, 3": rng.standard_t(3, shape()),
        "Student t, 1.5": rng.standard_t(1.5, shape()),
        "Laplace": rng.laplace(size=shape()),
        "log-normal": rng.standard_normal(shape()) * np.exp(rng.standard_normal(shape())),
        "walk": np.cumsum(rng.standard_normal(shape()), 1),
        "constant": np.repeat(rng.standard_normal((n, 1)), 256, 1),
        "two values": rng.choice([-1.0, 1.0], shape()),
        "ternary": rng.choice([-1.0, 0.0, 1.0], shape()) * rng.standard_normal((n, 1)),
        "tenths": rng.integers(-7, 8, shape()) * 0.1,
        "groups of other size": (rng.standard_normal((n, 8, 32)) *
                                 np.exp(1.5 * rng.standard_normal((n, 8, 1)))).reshape(n, 256),
    }
    weights = rng.standard_normal(shape()) * 0.02
    for row in weights:
        row[rng.choice(256, 3, replace=False)] *= 30
    rows["normal, 3 outliers"] = weights
    for part in (0.01, 0.1, 0.5):
        rows["sparse %g" % part] = rng.standard_normal(shape()) * (rng.random(shape()) < part)
    for value in (1.0, -1.0):
        for count in (1, 3, 10):
            for far in (2, 5, 20, 100):
                rows["%+g, %d outliers of %d" % (value, count, far)] = constant_rows(
                    rng, n, value, count, far)
    return {name: np.ascontiguousarray(x.reshape(-1), np.float32) for name, x in rows.items()}


def judge_plain(quantiser, rows):
    bad = 0
    for name in PLAIN:
        differ = 0
        differ_python = 0
        blocks = 0
        for x in rows.values():
            ours = quantiser.ours(name, x).reshape(-1, PLAIN[name])
            python = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name])
            differ += int((ours != quantiser.theirs(name, x).reshape(ours.shape)).any(1).sum())
            # gguf-py gives a block of zeros the scale +0 where the first zero is negative.
            is_zero = (x.reshape(-1, 32) == 0).all(1)
            differ_python += int(((ours != python.reshape(ours.shape)).any(1) & ~is_zero).sum())
            blocks += len(ours)
        print("%-5s %d blocks: %d differ from ggml's, %d from gguf-py's" %
              (name, blocks, differ, differ_python))
        bad += differ
    return bad


def judge_k(quantiser, rows):
    bad = 0
    for name in {**K, **FITTED, **SUPER}:
        ratios = []
        for kind, x in rows.items():
            wide = x.astype(np.float64)
            square = wide.reshape(-1, 256) ** 2
            weight = (np.sqrt(square.mean(1, keepdims=True)) + np.sqrt(square)).reshape(-1)
            least = 1e-7 * square.sum()  # what rounding the scales to half precision costs
            theirs = (decode(name, quantiser.theirs(name, x)) - wide) ** 2
            ours = (decode(name, quantiser.ours(name, x)) - wide) ** 2
            plain = (ours.sum() + least) / (theirs.sum() + least)
            weighted = (((ours * weight).sum() + least * weight.mean()) /
                        ((theirs * weight).sum() + least * weight.mean()))
            weighted = weighted if name in K else plain
            ratios.append((plain, weighted))
            if max(plain, weighted) > 1.0:
                bad += 1
                print("%s, %s: %.4f times ggml's error, %.4f weighted" % (name, kind, plain, weighted))
        mean = np.exp(np.log(ratios).mean(0))
        print("%-5s %d kinds of rows: %.3f times ggml's squared error (geometric mean), %.3f weighted; "
              "worst %.3f and %.3f" % (name, len(ratios), *mean, *np.max(ratios, 0)))
    return bad


# Every code and scale; not-a-number is one bit pattern.
def judge_decoding(quantiser, rng):
    bad = 0
    n = 256 * 4096
    for name in {**PLAIN, **K, **FITTED, **SUPER}:
        blocks = rng.integers(0, 256, quantiser.blocks(name, n).size, np.uint8)
        with np.errstate(all="ignore"):
            python = decode(name, blocks).astype(np.float32)
        ours, theirs = quantiser.decoded(name, blocks, n)
        for values in (ours, theirs, python):
            values[np.isnan(values)] = np.nan
        bits = ours.view(np.uint32)
        differ = int((bits != theirs.view(np.uint32)).sum())
        differ_python = int((bits != python.view(np.uint32)).sum())
        print("%-7s %d values of random bytes: %d differ from ggml's, %d from gguf-py's" %
              (name, n, differ, differ_python))
        bad += differ
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--archive")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="judge-quants-") as folder:
        archive, ggml = build_ggml(folder, options.archive)
        print("ggml of %s, %d rows of each kind" % (archive, options.rows))
        quantiser = Quantiser(options.library, ggml)
        rows = make_rows(np.random.default_rng(20261122), options.rows)
        bad = (judge_decoding(quantiser, np.random.default_rng(20261126)) +
               judge_plain(quantiser, rows) + judge_k(quantiser, rows))
    print("quants: %s" % ("good" if bad == 0 else "%d failures" % bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
