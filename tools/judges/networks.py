# SPDX-License-Identifier: MIT
# Typical networks with random weights, as ONNX models: an MLP, a CNN like
# ResNet-18, a U-Net with attention and its sampler loop, an encoder like BERT, and encoder and
# decoder like Whisper's. tandem-graph runs each; ONNX Runtime, which shares no code with it, computes
# the expected results. The sources of the shapes: He et al. 2015 (arXiv 1512.03385), Ronneberger et
# al. 2015 (1505.04597), Devlin et al. 2018 (1810.04805), Radford et al. 2022 (2212.04356).
# Needs: onnx, onnxruntime, numpy.
#
# usage: networks.py TANDEM_GRAPH [--networks mlp,resnet18] [--small] [--bench ROUNDS] [--memory]
#                    [--profile opencl] [--keep DIR]
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
MEMORY_BOUND = 1.1  # of ONNX Runtime's peak
BOUND = 2e-3  # of the largest value: float32 sums in another order, through the whole network


class Net:
    """An ONNX graph that is being built: each method adds a node and gives the name of its result."""

    def __init__(self, name, seed=1):
        self.name = name
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.random = np.random.default_rng(seed)

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, fan_in=None):
        scale = 1 / np.sqrt(fan_in or shape[0])
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def near(self, *shape, middle=0.0):
        return self.constant((middle + 0.1 * self.random.standard_normal(shape)).astype(np.float32))

    def op(self, kind, *operands, n_out=1, **attributes):
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(n_out)]
        self.nodes.append(helper.make_node(kind, list(operands), outputs, **attributes))
        return outputs[0] if n_out == 1 else outputs

    def number(self, value):
        return self.constant(np.float32(value))

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def output(self, value, name, kind=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        return model

    # ---- layers ----
    def linear(self, x, n_in, n_out, bias=True):
        y = self.op("MatMul", x, self.weight(n_in, n_out))
        return self.op("Add", y, self.near(n_out)) if bias else y

    def conv(self, x, n_in, n_out, size=3, stride=1, groups=1, bias=True):
        operands = [x, self.weight(n_out, n_in // groups, size, size, fan_in=n_in // groups * size**2)]
        if bias:
            operands.append(self.near(n_out))
        return self.op("Conv", *operands, kernel_shape=[size] * 2, strides=[stride] * 2,
                       pads=[size // 2] * 4, group=groups)

    def batch_norm(self, x, n):
        variance = self.constant((1 + 0.2 * self.random.random(n)).astype(np.float32))
        return self.op("BatchNormalization", x, self.near(n, middle=1), self.near(n), self.near(n),
                       variance)

    def layer_norm(self, x, n):
        """Of primitive operations, as exporters of opset 16 and before write it."""
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        variance = self.op("ReduceMean", self.op("Mul", centred, centred), axes=[-1])
        spread = self.op("Sqrt", self.op("Add", variance, self.number(1e-5)))
        scaled = self.op("Mul", self.op("Div", centred, spread), self.near(n, middle=1))
        return self.op("Add", scaled, self.near(n))

    def group_norm(self, x, n, groups, height, width):
        flat = self.op("Reshape", x, self.integers(1, groups, -1))
        normed = self.op("InstanceNormalization", flat, self.constant(np.ones(groups, np.float32)),
                         self.constant(np.zeros(groups, np.float32)))
        back = self.op("Reshape", normed, self.integers(1, n, height, width))
        return self.op("Add", self.op("Mul", back, self.near(n, 1, 1, middle=1)), self.near(n, 1, 1))

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.number(np.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.number(1))), self.number(0.5))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def heads(self, x, length, n_heads, width, order):
        split = self.op("Reshape", x, self.integers(1, length, n_heads, width // n_heads))
        return self.op("Transpose", split, perm=order)

    def attend(self, q, k, v, n_heads, width, length, mask=None):
        """q {1, heads, length, d}, k {1, heads, d, any}, v {1, heads, any, d}."""
        scores = self.op("Mul", self.op("MatMul", q, k), self.number((width // n_heads) ** -0.5))
        if mask is not None:
            scores = self.op("Add", scores, mask)
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        turned = self.op("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = self.op("Reshape", turned, self.integers(1, length, width))
        return self.linear(joined, width, width)

    def self_attention(self, x, length, n_heads, width, mask=None):
        q = self.heads(self.linear(x, width, width), length, n_heads, width, [0, 2, 1, 3])
        k = self.heads(self.linear(x, width, width), length, n_heads, width, [0, 2, 3, 1])
        v = self.heads(self.linear(x, width, width), length, n_heads, width, [0, 2, 1, 3])
        return self.attend(q, k, v, n_heads, width, length, mask)

    def feed_forward(self, x, width, hidden):
        return self.linear(self.gelu(self.linear(x, width, hidden)), hidden, width)


# ---- the networks: each gives a Net; `small` is for a quick look ----

def mlp(small):
    net = Net("mlp")
    x = net.input("image", [32, 784])
    for n_in, n_out in ((784, 512), (512, 256)):
        x = net.op("Relu", net.linear(x, n_in, n_out))
    net.output(net.op("Softmax", net.linear(x, 256, 10), axis=-1), "digits")
    return net


def resnet18(small):
    net = Net("resnet18")
    size = 64 if small else 224
    x = net.input("image", [1, 3, size, size])
    x = net.op("Relu", net.batch_norm(net.conv(x, 3, 64, 7, 2, bias=False), 64))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    n = 64
    for width, first_stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first_stride, 1):
            y = net.op("Relu", net.batch_norm(net.conv(x, n, width, 3, stride, bias=False), width))
            y = net.batch_norm(net.conv(y, width, width, 3, bias=False), width)
            if n != width:
                x = net.batch_norm(net.conv(x, n, width, 1, stride, bias=False), width)
            x = net.op("Relu", net.op("Add", x, y))
            n = width
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    net.output(net.op("Gemm", x, net.weight(512, 1000), net.near(1000)), "logits")
    return net


def bert(small):
    net = Net("bert")
    length, width, n_heads, layers, words = 128, 384, 6, 2 if small else 6, 2000
    tokens = net.input("tokens", [1, length], TensorProto.INT64)
    mask = net.input("mask", [1, length], TensorProto.INT64)
    table = net.weight(words, width, fan_in=1)
    x = net.op("Add", net.op("Gather", table, tokens), net.near(length, width))
    x = net.layer_norm(x, width)
    is_hidden = net.op("Sub", net.number(1), net.op("Cast", mask, to=TensorProto.FLOAT))
    penalty = net.op("Unsqueeze", net.op("Mul", is_hidden, net.number(-1e4)), net.integers(1, 2))
    for _ in range(layers):
        x = net.layer_norm(net.op("Add", x, net.self_attention(x, length, n_heads, width, penalty)),
                           width)
        x = net.layer_norm(net.op("Add", x, net.feed_forward(x, width, 4 * width)), width)
    weights = net.op("Unsqueeze", net.op("Cast", mask, to=TensorProto.FLOAT), net.integers(2))
    mean = net.op("Div", net.op("ReduceSum", net.op("Mul", x, weights), net.integers(1), keepdims=0),
                  net.op("ReduceSum", weights, net.integers(1), keepdims=0))
    norm = net.op("ReduceL2", mean, axes=[-1])
    net.output(net.op("Div", mean, norm), "embedding")
    return net


def unet_block(net, x, time_vector, n_in, n_out, size):
    y = net.conv(net.silu(net.group_norm(x, n_in, 8, size, size)), n_in, n_out)
    y = net.op("Add", y, net.op("Reshape", net.linear(time_vector, 256, n_out),
                                net.integers(1, n_out, 1, 1)))
    y = net.conv(net.silu(net.group_norm(y, n_out, 8, size, size)), n_out, n_out)
    return net.op("Add", y, x if n_in == n_out else net.conv(x, n_in, n_out, 1))


def unet(small):
    """Predicts the noise in a picture of 3 x 32 x 32 at a step of a diffusion."""
    net = Net("unet")
    size, n = 32, 32 if small else 64
    x = net.input("picture", [1, 3, size, size])
    step = net.input("step", [1])
    waves = np.exp(-np.log(10000) * np.arange(32) / 32).astype(np.float32)
    angles = net.op("Mul", net.op("Reshape", step, net.integers(1, 1)), net.constant(waves))
    wave = net.op("Concat", net.op("Sin", angles), net.op("Cos", angles), axis=-1)
    time_vector = net.silu(net.linear(net.silu(net.linear(wave, 64, 256)), 256, 256))
    x = net.conv(x, 3, n)
    kept = []
    for level, (n_in, n_out) in enumerate(((n, n), (n, 2 * n), (2 * n, 4 * n))):
        x = unet_block(net, x, time_vector, n_in, n_out, size >> level)
        kept.append((x, n_out))
        if level < 2:
            x = net.conv(x, n_out, n_out, 3, 2)
    side = size >> 2
    flat = net.op("Transpose", net.op("Reshape", x, net.integers(1, 4 * n, -1)), perm=[0, 2, 1])
    mixed = net.self_attention(net.layer_norm(flat, 4 * n), side * side, 4, 4 * n)
    x = net.op("Add", x, net.op("Reshape", net.op("Transpose", mixed, perm=[0, 2, 1]),
                                net.integers(1, 4 * n, side, side)))
    width = 4 * n
    for level in (2, 1, 0):
        side_value, side_n = kept[level]
        x = unet_block(net, net.op("Concat", x, side_value, axis=1), time_vector, width + side_n,
                       side_n, size >> level)
        width = side_n
        if level > 0:
            doubled = net.constant(np.array([1, 1, 2, 2], np.float32))
            x = net.conv(net.op("Resize", x, "", doubled, mode="nearest",
                                coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
                         width, width)
    x = net.silu(net.group_norm(x, width, 8, size, size))
    net.output(net.conv(x, width, 3), "noise")
    return net


def whisper_encoder(small):
    net = Net("whisper_encoder")
    frames, width, n_heads, layers = 500 if small else 3000, 384, 6, 2 if small else 4
    x = net.input("mel", [1, 80, frames])
    for n_in, stride in ((80, 1), (width, 2)):
        weight = net.weight(width, n_in, 3, fan_in=3 * n_in)
        x = net.gelu(net.op("Conv", x, weight, net.near(width), kernel_shape=[3], strides=[stride],
                            pads=[1, 1]))
    length = frames // 2
    x = net.op("Add", net.op("Transpose", x, perm=[0, 2, 1]), net.near(length, width))
    for _ in range(layers):
        x = net.op("Add", x, net.self_attention(net.layer_norm(x, width), length, n_heads, width))
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    net.output(net.layer_norm(x, width), "states")
    return net


def whisper_decoder(small):
    """One token: keys and values of the text so far are inputs and outputs (longer by one); those
    of the encoder's states are computed once, by whisper_cross, and are inputs."""
    net = Net("whisper_decoder")
    width, n_heads, layers, words = 384, 6, 2 if small else 4, 2000
    length, past = 250 if small else 1500, 20
    head = width // n_heads
    token = net.input("token", [1, 1], TensorProto.INT64)
    table = net.weight(words, width, fan_in=width)
    x = net.op("Add", net.op("Gather", table, token), net.near(width))
    for i in range(layers):
        normed = net.layer_norm(x, width)
        q = net.heads(net.linear(normed, width, width), 1, n_heads, width, [0, 2, 1, 3])
        k = net.heads(net.linear(normed, width, width), 1, n_heads, width, [0, 2, 1, 3])
        v = net.heads(net.linear(normed, width, width), 1, n_heads, width, [0, 2, 1, 3])
        k = net.op("Concat", net.input(f"past_k{i}", [1, n_heads, past, head]), k, axis=2)
        v = net.op("Concat", net.input(f"past_v{i}", [1, n_heads, past, head]), v, axis=2)
        net.output(k, f"k{i}")
        net.output(v, f"v{i}")
        turned = net.op("Transpose", k, perm=[0, 1, 3, 2])
        x = net.op("Add", x, net.attend(q, turned, v, n_heads, width, 1))
        q = net.heads(net.linear(net.layer_norm(x, width), width, width), 1, n_heads, width,
                      [0, 2, 1, 3])
        cross_k = net.input(f"cross_k{i}", [1, n_heads, head, length])
        cross_v = net.input(f"cross_v{i}", [1, n_heads, length, head])
        x = net.op("Add", x, net.attend(q, cross_k, cross_v, n_heads, width, 1))
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    x = net.layer_norm(x, width)
    net.output(net.op("MatMul", x, net.op("Transpose", table, perm=[1, 0])), "logits")
    return net


def listener():
    """The encoder with the keys and values that the decoder's cross attention reads, computed once
    a sound."""
    net = whisper_encoder(True)
    net.name = "listener"
    width, n_heads, length = 384, 6, 250
    states = net.nodes[-1].input[0]
    for i in range(2):
        for name, order in (("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            heads = net.heads(net.linear(states, width, width), length, n_heads, width, order)
            net.output(heads, f"cross_{name}{i}")
    return net


def speaker(words=200):
    """One token: the text's keys and values are kept by the caller, in cells of which the mask says
    which are seen; the outputs k and v are the next cell."""
    net = Net("speaker", seed=2)
    width, n_heads, length, head = 384, 6, 250, 64
    token = net.input("token", [1, 1], TensorProto.INT64)
    position = net.input("position", [1, 1], TensorProto.INT64)
    mask = net.input("mask", [1, 1, 1, "keys"])
    table, places = net.weight(words, width, fan_in=4), net.weight(448, width, fan_in=1)
    x = net.op("Add", net.op("Gather", table, token), net.op("Gather", places, position))
    for i in range(2):
        normed = net.layer_norm(x, width)
        q, k, v = (net.heads(net.linear(normed, width, width), 1, n_heads, width, [0, 2, 1, 3])
                   for _ in range(3))
        net.output(k, f"k{i}")
        net.output(v, f"v{i}")
        k = net.op("Concat", net.input(f"past_k{i}", [1, n_heads, "cells", head]), k, axis=2)
        v = net.op("Concat", net.input(f"past_v{i}", [1, n_heads, "cells", head]), v, axis=2)
        scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = net.op("Add", net.op("Mul", scores, net.number(head ** -0.5)), mask)
        seen = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
        seen = net.op("Reshape", net.op("Transpose", seen, perm=[0, 2, 1, 3]),
                      net.integers(1, 1, width))
        x = net.op("Add", x, net.linear(seen, width, width))
        q = net.heads(net.linear(net.layer_norm(x, width), width, width), 1, n_heads, width,
                      [0, 2, 1, 3])
        cross_k = net.input(f"cross_k{i}", [1, n_heads, head, length])
        cross_v = net.input(f"cross_v{i}", [1, n_heads, length, head])
        x = net.op("Add", x, net.attend(q, cross_k, cross_v, n_heads, width, 1))
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    x = net.layer_norm(x, width)
    net.output(net.linear(x, width, words, bias=False), "logits")
    return net


NETWORKS = {f.__name__: f for f in (mlp, resnet18, bert, unet, whisper_encoder, whisper_decoder)}


# ---- running ----

def inputs_of(model, seed=7):
    random = np.random.default_rng(seed)
    arrays = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        if kind.elem_type == TensorProto.INT64:
            high = 2 if value.name == "mask" else 2000
            arrays[value.name] = random.integers(0, high, shape)
        else:
            arrays[value.name] = random.standard_normal(shape).astype(np.float32)
    return arrays


class Ours:
    """tandem-graph with files in between."""

    def __init__(self, program, path, folder, options=()):
        self.program, self.path, self.folder, self.options = program, path, folder, options

    def run(self, arrays):
        command = [self.program, "run", self.path, "--output", self.folder, "-y", *self.options]
        for name, array in arrays.items():
            file = os.path.join(self.folder, f"in_{name}.npy")
            np.save(file, array)
            command += ["--input", f"{name}={file}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())
        return lambda name: np.load(os.path.join(self.folder, f"{name}.npy"))


def largest_difference(want, get):
    """Of all outputs, as a share of the largest value of each."""
    worst = 0.0
    for name, array in want.items():
        got = get(name)
        if got.shape != array.shape or not np.isfinite(got).all():
            return float("inf")
        worst = max(worst, float(np.abs(got - array).max() / max(np.abs(array).max(), 1e-30)))
    return worst


def session_of(path, threads=2):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def sample(session, ours, steps=8):
    """A deterministic sampler (Song et al. 2020, arXiv 2010.02502) from the same noise with both:
    the largest difference of the two pictures."""
    kept = np.cos(np.linspace(0.05, 1.5, steps + 1)).astype(np.float32) ** 2
    pictures = []
    for predict in (lambda x, t: session.run(["noise"], {"picture": x, "step": t})[0],
                    lambda x, t: ours.run({"picture": x, "step": t})("noise")):
        x = np.random.default_rng(3).standard_normal((1, 3, 32, 32)).astype(np.float32)
        for i in range(steps, 0, -1):
            noise = predict(x, np.array([i * 100], np.float32))
            clean = (x - np.sqrt(1 - kept[i]) * noise) / np.sqrt(kept[i])
            x = (np.sqrt(kept[i - 1]) * clean + np.sqrt(1 - kept[i - 1]) * noise).astype(np.float32)
        pictures.append(x)
    return largest_difference({"x": pictures[0]}, lambda name: pictures[1])


def time_of(session, arrays, seconds=1.0):
    session.run(None, arrays)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        session.run(None, arrays)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def bench(program, path, *options):
    done = subprocess.run([program, "bench", path, "--threads", "2", "--json", *options],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def compare_speed(program, path, arrays, rounds):
    """In turns; the medians of the rounds."""
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(time_of(session_of(path), arrays))
        ours.append(bench(program, path)["ms"])
    a, b = statistics.median(theirs), statistics.median(ours)
    print(f"  2 threads: ONNX Runtime {a:.2f} ms, tandem-graph {b:.2f} ms, ratio {b / a:.2f}",
          flush=True)


# Run by a process of its own: what it prints is all that the model adds to Python and libraries.
THEIR_MEMORY = """
import sys
import numpy as np
import onnxruntime
def status(name):
    return [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)][0]
before = status("VmRSS:")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
options.log_severity_level = 3
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
arrays = {i.name: np.ones(i.shape, np.int64 if "int64" in i.type else np.float32)
          for i in session.get_inputs()}
for _ in range(3):
    session.run(None, arrays)
print((status("VmHWM:") - before) / 1024)
"""


def compare_memory(program, path):
    """Peak resident memory of a process that loads the model and runs it, less what the process had
    before it loaded."""
    theirs = subprocess.run([sys.executable, "-c", THEIR_MEMORY, path], capture_output=True,
                            text=True, check=True)
    ours = bench(program, path, "--seconds", "0")
    a, b = float(theirs.stdout), ours["peak_mib"]
    print(f"  memory: ONNX Runtime {a:.1f} MiB, tandem-graph {b:.1f} MiB ({ours['results_mib']:.1f} of "
          f"results), ratio {b / a:.2f}", flush=True)
    return b <= MEMORY_BOUND * a


def judge_text(program, folder, options, n_tokens=48):
    """From a sound to tokens: tandem-graph transcribe, whose decoder reads blocks of cells, against
    ONNX Runtime's greedy tokens, with exactly the cells that the text has."""
    import mel
    paths = [os.path.join(folder, f"{net.name}.onnx") for net in (listener(), speaker())]
    for path, net in zip(paths, (listener(), speaker())):
        onnx.save(net.model(), path)
    sound = os.path.join(folder, "sound.wav")
    samples = mel.write_wav(sound, mel.sound(5.0), 2, 1)
    encoder, decoder = (session_of(path) for path in paths)
    names = [output.name for output in encoder.get_outputs()]
    spectrogram = mel.spectrogram(samples, 80, 500)[None].astype(np.float32)
    states = dict(zip(names, encoder.run(names, {"mel": spectrogram})))
    feeds = {name: array for name, array in states.items() if name.startswith("cross_")}
    pasts = {f"past_{n}{i}": np.zeros((1, 6, 0, 64), np.float32) for n in "kv" for i in range(2)}
    token, want = 1, []
    for at in range(n_tokens):
        names = [output.name for output in decoder.get_outputs()]
        step = {"token": [[token]], "position": [[at]], "mask": np.zeros((1, 1, 1, at + 1))}
        step = {k: np.asarray(v, np.float32 if k == "mask" else np.int64) for k, v in step.items()}
        out = dict(zip(names, decoder.run(names, {**feeds, **pasts, **step})))
        pasts = {name: np.concatenate([array, out[name[5:]]], 2) for name, array in pasts.items()}
        token = int(out["logits"].argmax())
        want.append(token)
    done = subprocess.run([program, "transcribe", *paths, sound, "--prompt", "1", "--tokens",
                           str(n_tokens), *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    got = [int(word) for word in done.stdout.split()]
    same = sum(a == b for a, b in zip(got, want))
    print(f"transcribe: {same} of {n_tokens} tokens as ONNX Runtime has them, {len(set(want))} "
          f"different ones", flush=True)
    return got == want


def options_of(arguments):
    return ["--profile", arguments.profile] if arguments.profile else []


def judge(name, program, folder, arguments):
    model = NETWORKS[name](arguments.small).model()
    path = os.path.join(folder, f"{name}.onnx")
    onnx.save(model, path)
    arrays = inputs_of(model)
    session = session_of(path)
    names = [output.name for output in session.get_outputs()]
    want = dict(zip(names, session.run(names, arrays)))
    options = options_of(arguments)
    ours = Ours(program, path, folder, options)
    worst = largest_difference(want, ours.run(arrays))
    print(f"{name}: {len(model.graph.node)} nodes, largest difference {worst:.1e} of the largest "
          f"value", flush=True)
    if options:
        told = bench(program, path, "--seconds", "0", *options)
        print(f"  {told['on_device']} of {told['nodes']} nodes on the device", flush=True)
        worst = worst if told["on_device"] > 0 else float("inf")
    if name == "unet":
        looped = sample(session, ours)
        print(f"  8 steps from noise to a picture: {looped:.1e}", flush=True)
        worst = max(worst, looped)
    if arguments.bench > 0:
        compare_speed(program, path, arrays, arguments.bench)
    has_room = not arguments.memory or compare_memory(program, path)
    return worst <= BOUND and has_room


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--networks", default=",".join([*NETWORKS, "transcribe"]))
    parser.add_argument("--small", action="store_true", help="fewer layers, smaller inputs")
    parser.add_argument("--bench", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--memory", action="store_true",
                        help=f"compare peaks; more than {MEMORY_BOUND} of theirs fails")
    parser.add_argument("--profile", help="force it: opencl puts what it can on the device")
    parser.add_argument("--keep", metavar="DIR", help="where the models stay")
    arguments = parser.parse_args()
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}; a difference of more "
          f"than {BOUND:g} fails")
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name in arguments.networks.split(","):
            try:
                is_good = (judge_text(arguments.program, folder, options_of(arguments))
                           if name == "transcribe" else
                           judge(name, arguments.program, folder, arguments))
            except RuntimeError as problem:
                print(f"{name}: {problem}")
                is_good = False
            if not is_good:
                failed.append(name)
    print(f"networks: {len(arguments.networks.split(',')) - len(failed)} good"
          + (f", FAILED: {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
