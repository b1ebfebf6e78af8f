# SPDX-License-Identifier: MIT
"""Stand-ins for PyTorch's checkpoints: usage: checkpoints.py FOLDER LIST  (needs Python alone).

Writes FOLDER/torch, as torch.save lays files out, by Python's own pickle and zipfile, with classes
that have PyTorch's names; and LIST, tests/torch-stand-ins-list.h, what the files hold."""
import collections
import io
import json
import math
import os
import pickle
import random
import struct
import sys
import types
import zipfile

KINDS = {  # storage class: bytes of a value, struct letter, type in Tandem
    "FloatStorage": (4, "f", "F32"), "DoubleStorage": (8, "d", "F32"),
    "HalfStorage": (2, "e", "F16"), "BFloat16Storage": (2, None, "BF16"),
    "LongStorage": (8, "q", "I32"), "IntStorage": (4, "i", "I32"), "ShortStorage": (2, "h", "I32"),
    "CharStorage": (1, "b", "I32"), "ByteStorage": (1, "B", "I32"), "BoolStorage": (1, "?", "I32")}

# ---- PyTorch's names ----

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules.update({"torch": torch, "torch._utils": utils})


def as_theirs(module, thing, name):
    thing.__module__, thing.__name__, thing.__qualname__ = module.__name__, name, name
    setattr(module, name, thing)
    return thing


for name in KINDS:
    as_theirs(torch, type(name, (), {}), name)
rebuild_tensor = as_theirs(utils, lambda *arguments: None, "_rebuild_tensor_v2")
rebuild_parameter = as_theirs(utils, lambda *arguments: None, "_rebuild_parameter")


class Storage:
    def __init__(self, values, kind="FloatStorage"):
        self.values, self.kind = values, kind

    def bytes(self):
        letter = KINDS[self.kind][1]
        if letter is None:  # the upper half of F32; the values here have no more
            return b"".join(struct.pack("<f", v)[2:] for v in self.values)
        return struct.pack("<%d%s" % (len(self.values), letter), *self.values)


class Tensor:
    def __init__(self, storage, shape, offset=0, strides=None):
        self.storage, self.shape, self.offset = storage, tuple(shape), offset
        dense = [math.prod(shape[i + 1:]) for i in range(len(shape))]
        self.strides = tuple(strides or dense)

    def __reduce__(self):
        return rebuild_tensor, (self.storage, self.offset, self.shape, self.strides, False,
                                collections.OrderedDict())

    def values(self):
        """In the order of a dense tensor, as Tandem holds them."""
        at = [self.offset]
        for n, stride in zip(self.shape, self.strides):
            at = [a + i * stride for a in at for i in range(n)]
        values = [self.storage.values[a] for a in at]
        if KINDS[self.storage.kind][2] == "I32":
            return [float(v) for v in values]
        return [struct.unpack("<f", struct.pack("<f", v))[0] for v in values]


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return rebuild_parameter, (self.tensor, True, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def __init__(self, out, is_legacy):
        super().__init__(out, 2)
        self.storages, self.is_legacy = [], is_legacy

    def persistent_id(self, thing):
        if not isinstance(thing, Storage):
            return None
        if thing not in self.storages:
            self.storages.append(thing)
        key = self.key(thing)
        rest = (None,) if self.is_legacy else ()
        return ("storage", getattr(torch, thing.kind), key, "cpu", len(thing.values)) + rest

    def key(self, storage):
        return str(self.storages.index(storage) + (94000 if self.is_legacy else 0))


def pickled(thing, is_legacy):
    out = io.BytesIO()
    pickler = Pickler(out, is_legacy)
    pickler.dump(thing)
    return out.getvalue(), pickler


def save_zip(path, thing):
    """Entries are stored, and values begin at multiples of 64 bytes: extra field "FB" pads."""
    data, pickler = pickled(thing, False)
    stem = os.path.splitext(os.path.basename(path))[0]
    entries = [("data.pkl", data), ("byteorder", b"little")]
    entries += [("data/" + pickler.key(s), s.bytes()) for s in pickler.storages]
    entries.append(("version", b"3\n"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo("%s/%s" % (stem, name), (1980, 1, 1, 0, 0, 0))
            begin = archive.fp.tell() + 30 + len(info.filename) + 4
            padding = -begin % 64
            info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
            archive.writestr(info, content)


def save_legacy(path, thing):
    """Magic number, protocol, machine, object, keys; then count and bytes of each storage."""
    data, pickler = pickled(thing, True)
    sizes = {"short": 2, "int": 4, "long": 4}
    with open(path, "wb") as out:
        pickle.dump(0x1950a86a20f9469cfc6c, out, 2)
        pickle.dump(1001, out, 2)
        pickle.dump({"protocol_version": 1001, "little_endian": True, "type_sizes": sizes}, out, 2)
        out.write(data)
        pickle.dump([pickler.key(s) for s in pickler.storages], out, 2)
        for s in pickler.storages:
            out.write(struct.pack("<q", len(s.values)) + s.bytes())


def save_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        kind = {"FloatStorage": "F32", "LongStorage": "I64"}[tensor.storage.kind]
        content = tensor.storage.bytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


# ---- what the files hold ----

rng = random.Random(14)


def normal(*shape):
    values = [struct.unpack("<f", struct.pack("<f", rng.gauss(0, 1)))[0]
              for _ in range(math.prod(shape))]
    return Tensor(Storage(values), shape)


def of(values, kind="FloatStorage", shape=None):
    return Tensor(Storage(values, kind), shape if shape is not None else (len(values),))


def layer(n, k):
    return {"weight": normal(n, k), "bias": normal(n)}


def mnist(batches):
    tensors = {"conv1.weight": normal(8, 1, 3, 3), "conv1.bias": normal(8),
               "norm1.weight": normal(8), "norm1.bias": normal(8), "norm1.running_mean": normal(8),
               "norm1.num_batches_tracked": of([batches], "LongStorage", ()),
               "fc1.weight": normal(10, 72), "fc1.bias": normal(10)}
    return collections.OrderedDict(tensors)


def views():
    """Tensors of one storage: from its beginning, from its middle, every second, transposed."""
    shared = Storage([float(i) for i in range(24)])
    return {"all": Tensor(shared, (4, 6)), "middle": Tensor(shared, (10,), 7),
            "second": Tensor(shared, (12,), 0, (2,)), "turned": Tensor(shared, (6, 4), 0, (1, 6)),
            "repeated": Tensor(shared, (3, 2), 5, (0, 1))}


def files():
    one = lambda *arguments: {"tensor": of(*arguments)}
    reader = "src/pytorch/tests/reader/test_data/"
    zips = {
        "float32": one([1.0, -2.5, 0.25, 0.0]), "float16": one([1.5, -2.25, 3.125], "HalfStorage"),
        "float64": one([1.1, 2.2, -3.3], "DoubleStorage"),
        "bfloat16": one([1.5, -2.5, 3.5], "BFloat16Storage"),
        "int64": one([100, -200, 300, 0], "LongStorage"), "int32": one([10, 20, -30], "IntStorage"),
        "int16": one([1000, -2000, 3000], "ShortStorage"),
        "int8": one([127, -128, 5], "CharStorage"),
        "uint8": one([0, 128, 255, 42], "ByteStorage"),
        "bool": one([True, False, True, True], "BoolStorage"),
        "empty": one([]), "scalar": one([42.0], "FloatStorage", ()),
        "special_values": one([math.nan, math.inf, -math.inf, 0.0, 1.0]),
        "extreme_values": one([1e-30, 1e30, -1e-30, -1e30]),
        "tensor_4d": {"tensor": normal(2, 3, 2, 2)},
        "mixed_types": {"float32": of([1.0, 2.0]), "int64": of([100, 200], "LongStorage"),
                        "bool": of([True, False], "BoolStorage")},
        "nested_dict": {"layer1": layer(2, 3), "layer2": layer(4, 2)},
        "state_dict": collections.OrderedDict(layer(3, 4), running_var=of([1.0] * 3)),
        "checkpoint": {"epoch": 7, "loss": 0.25, "name": "run", "flags": (True, None, [1, 2]),
                       "model_state_dict": {"fc1.weight": normal(5, 4), "fc1.bias": normal(5)},
                       "optimizer_state_dict": {"state": {0: {"momentum_buffer": normal(5, 4)}},
                                                "param_groups": [{"lr": 0.1, "params": [0, 1]}]}},
        "parameter": {"param": Parameter(normal(3, 3))}, "shared_views": views(),
    }
    for name, thing in zips.items():
        yield reader + name + ".pt", thing, save_zip
    yield reader + "simple_legacy.pt", collections.OrderedDict(
        layer(2, 3), running_mean=of([0.0, 0.0])), save_legacy
    yield reader + "legacy_shared_storage.pt", views(), save_legacy
    yield reader + "legacy_mixed.pt", {"a": of([1, -2], "LongStorage"), "b": layer(3, 2),
                                       "c": of([0.5], "HalfStorage")}, save_legacy
    yield "examples/import-model-weights/weights/mnist.pt", mnist(120), save_zip


def tensors_of(thing, prefix=""):
    if isinstance(thing, Parameter):
        thing = thing.tensor
    if isinstance(thing, Tensor):
        yield prefix, thing
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from tensors_of(value, "%s.%s" % (prefix, key) if prefix else str(key))


def number(value):
    return "NAN" if math.isnan(value) else repr(value)


def main():
    folder, rows = sys.argv[1] + "/torch/burn/", []
    for name, thing, save in files():
        os.makedirs(os.path.dirname(folder + name), exist_ok=True)
        save(folder + name, thing)
        for tensor_name, tensor in tensors_of(thing):
            values = tensor.values()
            shape = "x".join(map(str, tensor.shape)) or "1 value"
            rows.append('    X("%s", "%s", "%s", %s, %s)' % (
                name, tensor_name, shape, KINDS[tensor.storage.kind][2],
                ", ".join(number(v) for v in (sum(values), values[0] if values else 0.0,
                                              values[-1] if values else 0.0))))
    save_safetensors(folder + "examples/import-model-weights/weights/mnist.safetensors", mnist(240))
    os.makedirs(folder + "safetensors-tests/tests/multi_layer", exist_ok=True)
    save_safetensors(folder + "safetensors-tests/tests/multi_layer/multi_layer.safetensors", mnist(0))
    with open(folder + "src/pytorch/tests/reader/test_data/broken.pt", "wb") as out:
        out.write(b"xyz")
    with open(sys.argv[2], "w") as out:
        out.write("/* SPDX-License-Identifier: MIT\n"
                  " * X(file, tensor, shape slowest first, type here, sum, first and last value): what "
                  "the stand-ins\n * for PyTorch's checkpoints hold. Written with them by "
                  "tools/dev/stand_ins/checkpoints.py. */\n"
                  "#define TORCH_STAND_INS_LIST(X) \\\n" + " \\\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
