# SPDX-License-Identifier: MIT
"""One program for ONNX Runtime, run with it and with tandem_infer in its place: the node cases of the
package onnx, from bytes. usage: sessions.py (TANDEM_INFER_LIBRARY names the folder of the libraries)

Prints how many cases give the same, are refused by one or both, or differ. Where both disagree, the
values of the case judge. Exit code 1: wrong names, types, shapes or values, or another exception than
TandemError."""
import collections
import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
from onnx.backend.test.case.node import collect_testcases

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings" / "python"))

import tandem_infer  # noqa: E402


def program(ort, content, arrays):
    """What a program asks of a session: types and shapes, then all outputs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    stated = [(one.name, one.type, one.shape) for one in session.get_inputs() + session.get_outputs()]
    names = [one.name for one in session.get_inputs()]
    return stated, session.run([one.name for one in session.get_outputs()], dict(zip(names, arrays)))


def attempt(ort, content, arrays):
    try:
        return program(ort, content, arrays)
    except Exception as error:  # pylint: disable=broad-except  # a case that is refused
        return error


def is_close(got, want):
    want = np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype and got.dtype != "uint16":  # bfloat16's bits
        return False
    if got.dtype.kind != "f":
        return bool((got == (want.view("uint16") if want.dtype.kind == "V" else want)).all())
    tolerance = 1e-2 if got.dtype == "float16" else 1e-3
    return bool(np.allclose(got, want, tolerance, tolerance / 100, equal_nan=True))


def verdict(case):
    """A word for the count, and what is wrong, or ""."""
    arrays, expected = case.data_sets[0]
    if any(not isinstance(one, (np.ndarray, np.generic)) or one.dtype.kind not in "biuf" for one in arrays):
        return "other values than numbers", ""
    content = case.model.SerializeToString()
    theirs = attempt(onnxruntime, content, arrays)
    ours = attempt(tandem_infer, content, arrays)
    if isinstance(ours, Exception):
        word = "refused by both" if isinstance(theirs, Exception) else "refused"
        is_told = isinstance(ours, tandem_infer.TandemError) or (
            isinstance(ours, ValueError) and isinstance(theirs, Exception))
        return word, "" if is_told else f"{type(ours).__name__}: {ours}"
    if isinstance(theirs, Exception):
        return "refused by ONNX Runtime alone", ""
    if ours[0] != theirs[0]:
        return "wrong", f"stated {ours[0]}, ONNX Runtime {theirs[0]}"
    if all(is_close(one, other) for one, other in zip(ours[1], theirs[1])):
        return "same", ""
    if all(is_close(one, other) for one, other in zip(ours[1], expected)):
        return "as the case wants, where ONNX Runtime differs", ""
    return "wrong", "other values than ONNX Runtime and the case"


def main():
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    counts, n_wrong = collections.Counter(), 0
    for case in collect_testcases(None):
        word, wrong = verdict(case)
        counts[word] += 1
        if wrong:
            n_wrong += 1
            print(f"{case.name}: {wrong}")
    print(f"sessions: {', '.join(f'{n} {word}' for word, n in counts.most_common())}")
    return 1 if n_wrong or counts["same"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
