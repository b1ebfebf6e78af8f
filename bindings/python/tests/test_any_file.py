# SPDX-License-Identifier: MIT
"""Files of any kind, and files that change while they are read: an exception, or a model that computes;
never the end of the process. Neither numpy nor pytest is needed: python3 test_any_file.py."""
import os
import random
import shutil
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":  # (pytest finds the package that is installed)
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tandem_infer as ti  # noqa: E402

try:
    import numpy
except ModuleNotFoundError:
    numpy = None
    print("SKIP python: no numpy, so that ONNX files are not read")
SECONDS = 120  # for all calls of a test


def small_gguf(folder):
    with ti.Model.synthesize(dim=64, hidden=128, vocabulary=60, context=32) as model:
        model.save_gguf(folder / "good.gguf")
    return (folder / "good.gguf").read_bytes()


def small_onnx():
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from onnxfile import model, node
    w = numpy.arange(4096, dtype="float32").reshape(64, 64)
    return model([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])],
                 [("x", "float32", ["n", 64])], [("y", "float32", ["n", 64])], [("w", w)])


def damaged(data, seed, n):
    """Copies cut short, and with changed bytes at the beginning, where structure is."""
    draws = random.Random(seed)
    for i in range(n):
        yield data[:len(data) * i // n]
        changed = bytearray(data)
        for _ in range(3):
            changed[draws.randrange(min(len(data), 400 if i % 2 else 6000))] = draws.randrange(256)
        yield bytes(changed)


def use(kind, path):
    """Opens a file and computes with what was found."""
    try:
        found = kind(path)
        if isinstance(found, ti.Model):
            with ti.Runtime(threads=1, table="") as runtime, found:
                if found.hparams.context * found.hparams.dim < 1 << 20:
                    list(ti.Session(found, runtime).tokens([1, 2], 3))
        elif isinstance(found, ti.Tokenizer):
            found.decode(found.encode("some text"))
        elif numpy is not None and isinstance(found, ti.InferenceSession):
            found.get_modelmeta()
            shapes = [[one if isinstance(one, int) and one < 4096 else 2 for one in x.shape]
                      for x in found.get_inputs()]
            found.eval(*[numpy.ones(shape, "uint8") for shape in shapes])
    except (ti.TandemError, ValueError, MemoryError, OverflowError) as error:
        assert str(error), f"{kind}: {path}: no message"
        return error
    return None


def kinds():
    made = [ti.Model, ti.Tokenizer, ti.Table, ti.ChatTemplate]
    return made + [ti.load, ti.InferenceSession] if numpy is not None else made


def in_folder(test):
    """Runs a test in a folder of its own, within SECONDS."""
    def run():
        folder = Path(tempfile.mkdtemp())
        before = signal.alarm(SECONDS)
        try:
            test(folder)
        finally:
            signal.alarm(before)
            shutil.rmtree(folder)

    run.__name__ = test.__name__
    return run


@in_folder
def test_what_is_no_regular_file(folder):
    os.mkfifo(folder / "pipe")
    os.symlink(folder / "loop", folder / "loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        for kind in kinds():
            for path in (folder / "missing", folder / "missing" / "below", folder, folder / "pipe",
                         folder / "loop", folder / "socket", "/dev/null", "/dev/zero", "/proc/self/mem", "",
                         "x" * 5000):
                if kind is ti.ChatTemplate and isinstance(path, str) and "/" not in path:
                    continue  # the text of a template
                for one in (path, f"{path}.onnx") if path == folder / "missing" else (path,):
                    error = use(kind, one)
                    assert isinstance(error, ti.TandemError), (kind, one, error)


@in_folder
def test_any_bytes_under_any_name(folder):
    contents = {"empty": b"", "zeros": bytes(4096), "words": b"hello\n" * 50,
                "noise": random.Random(1).randbytes(9999), "gguf": b"GGUF",
                "gguf counts": b"GGUF\3\0\0\0" + b"\xff" * 64, "zip": b"PK\3\4" + bytes(100),
                "json": b'{"a": [1, 2', "safetensors": struct.pack("<Q", 1 << 60) + b"{}"}
    contents["good gguf"] = small_gguf(folder)
    if numpy is not None:
        contents["good onnx"] = small_onnx()
    for name, content in contents.items():
        for suffix in ("", ".onnx", ".gguf", ".bin", ".json", ".safetensors", ".pt"):
            path = folder / (name + suffix)
            path.write_bytes(content)
            for kind in kinds():
                error = use(kind, path)
                if kind is ti.Model:
                    assert (error is None) == (name == "good gguf"), (path, error)
                if kind is getattr(ti, "load", None) and numpy is not None:
                    assert (error is None) == name.startswith("good"), (path, error)


@in_folder
def test_damaged_models(folder):
    for i, content in enumerate(damaged(small_gguf(folder), 2, 60)):
        path = folder / f"{i}.gguf"
        path.write_bytes(content)
        for kind in (ti.Model, ti.Tokenizer):
            use(kind, path)
    if numpy is not None:
        for content in damaged(small_onnx(), 3, 200):
            (folder / "m.onnx").write_bytes(content)
            use(ti.InferenceSession, folder / "m.onnx")
            use(ti.InferenceSession, content)


@in_folder
def test_files_cut_short_while_they_are_used(folder):
    small_gguf(folder)
    with ti.Runtime(threads=1, table="") as runtime, ti.Model(folder / "good.gguf") as model:
        os.truncate(folder / "good.gguf", 100)
        try:
            found = list(ti.Session(model, runtime).tokens([1, 2, 3], 4))
            raise AssertionError(f"tokens {found} of weights that are gone")
        except ti.TandemError as error:
            assert error.status == "FILE" and "good.gguf" in str(error)
    if numpy is not None:
        (folder / "m.onnx").write_bytes(small_onnx())
        session = ti.InferenceSession(folder / "m.onnx")
        x = numpy.ones((1, 64), "float32")
        y = session.eval(x)
        os.truncate(folder / "m.onnx", 100)
        assert (session.eval(x) == y).all()  # weights of prepared extents are copies
        try:
            session.eval(numpy.ones((2, 64), "float32"))
            raise AssertionError("a net of weights that are gone")
        except ti.TandemError as error:
            assert error.status == "FILE" and "m.onnx" in str(error)


if __name__ == "__main__":
    for one in [made for name, made in list(globals().items()) if name.startswith("test_")]:
        one()
    print("any file: good")
