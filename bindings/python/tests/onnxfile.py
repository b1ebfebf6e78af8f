# SPDX-License-Identifier: MIT
"""Writes small ONNX models without the package onnx: messages of Protocol Buffers, field by field, by
the numbers of github.com/onnx/onnx/blob/main/onnx/onnx.proto."""
import struct

#: TensorProto.DataType by numpy's names.
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8,
         "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A number, a text or bytes, or a list of fields."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else b"".join(value) if isinstance(
        value, list) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value(name, dtype, shape):
    """ValueInfoProto. An extent is a number, a name, or None; shape None: not stated."""
    dims = [field(1, [] if one is None else [field(2, one) if isinstance(one, str) else field(1, one)])
            for one in shape or ()]
    tensor = [field(1, TYPES[dtype])] + ([field(2, dims)] if shape is not None else [])
    return [field(1, name), field(2, [field(1, tensor)])]


def tensor(name, array):
    """TensorProto of a numpy array."""
    return [field(1, n) for n in array.shape] + [field(2, TYPES[str(array.dtype)]), field(8, name),
                                                 field(9, array.tobytes())]


def attribute(name, given):
    """AttributeProto of a number, numbers or a text."""
    if isinstance(given, float):
        return [field(1, name), varint(2 << 3 | 5) + struct.pack("<f", given), field(20, 1)]
    if isinstance(given, int):
        return [field(1, name), field(3, given), field(20, 2)]
    if isinstance(given, str):
        return [field(1, name), field(4, given), field(20, 3)]
    return [field(1, name)] + [field(8, one) for one in given] + [field(20, 7)]


def node(op, inputs, outputs, **attributes):
    """NodeProto."""
    return ([field(1, one) for one in inputs] + [field(2, one) for one in outputs] + [field(4, op)] +
            [field(5, attribute(*one)) for one in attributes.items()])


def model(nodes, inputs, outputs, weights=(), opset=17, meta=()):
    """ModelProto as bytes. inputs, outputs: (name, type, shape); weights: pairs of name and array."""
    graph = ([field(1, one) for one in nodes] + [field(2, "main")] +
             [field(5, tensor(*one)) for one in weights] + [field(11, value(*one)) for one in inputs] +
             [field(12, value(*one)) for one in outputs])
    return b"".join([field(1, 8), field(7, graph), field(8, [field(2, opset)]), *meta])
