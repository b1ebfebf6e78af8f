# SPDX-License-Identifier: MIT
"""Wrong calls, each in a process of its own: constructors, methods, properties and operators of all
that the package exports, in short sequences, with arguments of every wrong kind. None may end by a
signal or hang; each gives a result or an exception that says what was wrong, and what is computed
afterwards is right. Where numpy is missing, what needs it is left out. usage: misuse.py [CASES [SEED [CASE]]]   (CASE: that one, told)"""
import array
import inspect
import math
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import threading
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import tandem_infer as ti  # noqa: E402

SECONDS = 20  # for one case; it takes 0.05
# What a caller can be told. Others, as AttributeError, tell of an argument that nobody looked at.
ALLOWED = (ti.TandemError, TypeError, ValueError, OverflowError, IndexError, BufferError, MemoryError,
           ModuleNotFoundError)
OPERATORS = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
             "__rtruediv__", "__neg__", "__matmul__", "__getitem__", "__len__", "__iter__",
             "__dlpack__", "__str__", "__repr__", "__enter__", "__array__", "__reduce_ex__", "__pow__",
             "__floordiv__", "__mod__", "__and__", "__lt__", "__eq__", "__invert__")
SKIPPED = {"load_into_ggml", "TandemError", "Choice", "Device", "Drift", "Hparams", "Profile",
           "RuntimeInfo", "ModelMetadata", "NodeArg",
           "Communicator"}  # a launcher starts one
ENUMERATIONS = ("Type", "Role", "Objective", "DType", "ExecutionMode", "GraphOptimizationLevel")
ADDRESSES = ("bind_input", "buffer_ptr")  # of memory that the caller answers for
try:
    import numpy
    import onnxfile
except ModuleNotFoundError:
    numpy = None
    SKIPPED |= set(ti._LAZY)


def write_tokenizer(path, n):
    """llama2.c's format: the longest piece, then score, length and bytes of each."""
    with open(path, "wb") as out:
        out.write(struct.pack("<i", 8))
        for i in range(n):
            piece = [b"<unk>", b"\n<s>\n", b"\n</s>\n"][i] if i < 3 else b"%c" % (i % 256)
            out.write(struct.pack("<fi", 0.0, len(piece)) + piece)


class World:
    """Right arguments by the name of a parameter, and wrong ones."""

    def __init__(self, folder, random):
        self.random = random
        self.folder = folder
        self.runtime = ti.Runtime(threads=1, table="")
        self.model = MODEL
        self.tokenizer = ti.Tokenizer(folder / "tok.bin")
        self.context = ti.Context()
        a = self.context.borrow([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        b = self.context.new((2, 3))
        ids = self.context.borrow([1, 0])
        w = self.context.quantize([[1.0] * 32] * 4, ti.Type.Q8_0)
        other = ti.Context()
        gone = ti.Context()
        lost = gone.new((2, 3))
        reset = ti.Context()
        stale = reset.new((2, 3))
        reset.reset()
        sums = a + b
        graph = self.context.graph(sums)
        self.tensors = [a, b, ids, w, sums, w.T, a.T, a[0], other.new((2, 3)), other.new((2, 3)) * 2,
                        lost, stale]
        session = ti.Session(MODEL, self.runtime)
        session.decode([1, 2, 3])
        shut = ti.Session(MODEL, self.runtime)
        shut.close()
        gone.close()
        self.objects = self.of_numpy() if numpy is not None else {}
        self.objects |= {
            "context": [self.context, other, gone, reset], "runtime": [self.runtime],
            "model": [MODEL], "tokenizer": [self.tokenizer], "graph": [graph],
            "plan": [None, self.runtime.plan(graph)], "table": [ti.Table(), None],
            "session": [session, ti.Session(MODEL, self.runtime, sequences=2), shut],
            "sampler": [None, ti.Sampler(60), ti.Sampler(10**6), ti.Sampler(30, temperature=1.0)],
        }
        closed = ti.Runtime(threads=1, table="")
        closed.close()
        self.objects["runtime"].append(closed)
        self.objects["chat"] = [ti.Chat(self.objects["session"][1], self.tokenizer,
                                        template="plain", max_answer=3)]
        self.objects["tensor"] = self.tensors
        lost = ti.Tokenizer(folder / "tok.bin")
        lost.close()
        self.objects["tokenizer"].append(lost)
        gone = ti.ChatTemplate("chatml")
        gone.close()
        self.objects["chattemplate"] = [ti.ChatTemplate("{{ messages[0].content }}"),
                                        ti.ChatTemplate("chatml"), gone]
        self.plain = {
            "path": [folder / "state", str(folder / "tok.bin"), str(folder / "plan"), "/proc/no/such", "", b"x", folder],
            "tokens": [[1, 2], [0], [], [59], range(3)], "prompt": [[1], "ab", [5, 6]],
            "shape": [(2, 3), (6,), 6, (1, 2, 3)], "values": [[[1, 2, 3], [4, 5, 6]], [1.5, 2.5]],
            "name": ["x", ""], "type": list(ti.Type), "role": list(ti.Role), "cache_type":
            [ti.Type.F16, ti.Type.F32], "content": ["abc", b"\x00\xff"], "said": ["hello"],
            "max_tokens": [2], "n": [1, 2], "i": [0], "profile": ["cpu", None], "template": ["plain"],
            "entries": [[(0, [1]), (1, [2])]], "cancel": [None, lambda: False, lambda: True],
            "progress": [None, lambda *_: True], "emit": [None, print], "log": [None],
            "threads": [1, 2], "budget_s": [0.02], "vocabulary": [60], "key": [0, slice(1), (0, 1)],
            "messages": [[{"role": "user", "content": "a"}], [], [{}]], "tools": [None, [{}]],
            "other": [2, 1.5, *self.tensors[:3]], "blocks": [b"\0" * 34],
            "input_feed": [{"x": [[1, 2, 3]]}, {}, {"x": 3}], "output_names": [None, ["y"], ["q"]],
            "axis": [0, 1, -1, None], "dtype": ["float32", "int8", None], "runtime": [self.runtime],
            "path_or_bytes": [folder / "m.onnx"], "indices": [[0, 1], 0], "size": [1, (1, 2)],
        }
        if numpy is not None:
            self.plain |= {"x": [numpy.ones((2, 3), "float32")], "inputs": [numpy.ones((2, 3))],
                           "arr_on_cpu": [numpy.ones((1, 3), "float32")], "data": [numpy.ones(2)],
                           "array": [numpy.ones((2, 3), "float32")]}
        self.wrong = [
            None, True, 0, 1, -1, 7, 2**31 - 1, 2**31, 2**40, -2**63, 2**63, 2**64 + 1, 10**400,
            0.5, -1.0, math.nan, math.inf, "", "x", "m.gguf", "a\0b", "\ud800", b"", b"\xff\0", [],
            [[]], [1], [1, "a"], [[1, 2], [3]], [2**40], [-1], [[[[[[1]]]]]], {}, {1: 2}, object(),
            int, print, lambda *_: 1 // 0, range(5), iter([1, 2]), slice(None), slice(-9, 99, -1),
            Ellipsis, (0, 0), (-1, 2), (2**33, 2**33), (1, 1, 1, 1, 1), 1j, bytearray(24),
            array.array("f", [1, 2, 3, 4, 5, 6]), array.array("d", [1, 2]), array.array("q", [2**40]),
            memoryview(b"abcdefgh")[::2], memoryview(bytearray(24)).cast("f", (2, 3)),
            memoryview(array.array("d", range(6)))[::-1], ti.Type.Q4_K, ti, ti.Context, threading,
        ]

    def of_numpy(self):
        """Objects that need numpy."""
        net, other = ti.Net(), ti.Net()
        x = net.input("x", (2, 3))
        values = [x, net.constant([[1, 2, 3]]), x + 1, net.input("n", (3,), "int64"), x > 0,
                  net.input("h", (1, 2, 3, 3), "float16"), other.input("x", (2, 3))]
        built = ti.Net()
        compiled = built.compile(y=built.input("x", (2, 3)) * 2, runtime=self.runtime)
        values.append(built)
        shut = ti.Net().constant(1.0)
        gone = shut.net.compile(shut, runtime=self.runtime)
        gone.close()
        content = onnxfile.model([onnxfile.node("Relu", ["x"], ["y"])], [("x", "float32", ["n", 3])],
                                 [("y", "float32", ["n", 3])])
        (self.folder / "m.onnx").write_bytes(content)
        session = ti.InferenceSession(content, runtime=self.runtime)
        closed = ti.InferenceSession(content, runtime=self.runtime)
        closed.close()
        binding = session.io_binding()
        binding.bind_cpu_input("x", numpy.ones((2, 3), "float32"))
        binding.bind_output("y")
        return {"inferencesession": [session, closed], "iobinding": [binding, session.io_binding()],
                "compilednet": [compiled, gone], "net": [net, other, built], "value": values[:-1],
                "ortvalue": [ti.OrtValue(numpy.ones((2, 3), "float32"))],
                "sessionoptions": [ti.SessionOptions()], "runoptions": [ti.RunOptions()]}

    def argument(self, name, of):
        everything = self.objects.get(of, []) + self.objects.get(name, []) + self.plain.get(name, [])
        dice = self.random.random()
        if everything and dice < 0.6:
            return self.random.choice(everything)
        if dice < 0.75:
            return self.random.choice(self.random.choice(list(self.objects.values())))
        return self.random.choice(self.wrong)

    def arguments(self, function, owner):
        """Positional and named ones; sometimes too many."""
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        given, named = [], {}
        for p in parameters:
            of = str(p.annotation).lower()
            of = next((word for word in self.objects if word in of), "")
            if p.name == "self":
                continue
            if p.kind is p.VAR_POSITIONAL:
                of = of or ("tensor" if owner not in ("Net", "CompiledNet", "InferenceSession", "Value")
                            else "value")
                given += [self.argument(p.name, of) for _ in range(self.random.randrange(3))]
            elif p.kind is p.VAR_KEYWORD or p.name in ADDRESSES:
                continue
            elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY:
                given.append(self.argument(p.name, of))
            elif self.random.random() < 0.4 or p.name == "budget_s":
                named[p.name] = self.argument(p.name, of)
        if "budget_s" in named and named["budget_s"] not in (0.02, None, -1, "x"):
            named["budget_s"] = 0.02
        if self.random.random() < 0.03:
            given.append(self.random.choice(self.wrong))
        return given, named

    def step(self):
        """One call: its words, and the function that does it."""
        name = self.random.choice([name for name in ti.__all__ if name not in SKIPPED])
        thing = getattr(ti, name)
        if not inspect.isclass(thing):
            given, named = self.arguments(thing, None)
            return f"{name}{told(given, named)}", lambda: thing(*given, **named)
        if self.random.random() < 0.15 or name in ENUMERATIONS:
            given, named = self.arguments(thing.__init__ if name not in ENUMERATIONS
                                          else lambda value: 0, name)
            return f"{name}{told(given, named)}", lambda: thing(*given, **named)
        of = self.random.choice([one for one in self.objects[name.lower()] if one is not None])
        members = [member for member in dir(thing) if member[0] != "_" and member not in ADDRESSES]
        members += [member for member in OPERATORS
                    if getattr(thing, member, None) is not getattr(object, member, None)]
        member = self.random.choice(members)
        if name == "Context" and self.random.random() < 0.3:
            op = self.random.choice(OPS)
            given = [self.argument("a", "tensor") for _ in range(self.random.randrange(4))]
            given += [self.random.choice(self.wrong) for _ in range(self.random.randrange(2))]
            return f"Context.op({op!r}, {told(given, {})}", lambda: of.op(op, *given)
        described = inspect.getattr_static(thing, member)
        if isinstance(described, property):
            if described.fset is not None and self.random.random() < 0.5:
                value = self.argument(member, "")
                return f"{name}.{member} = {told([value], {})}", lambda: setattr(of, member, value)
            return f"{name}.{member}", lambda: getattr(of, member)
        given, named = self.arguments(getattr(thing, member), name)
        return f"{name}.{member}{told(given, named)}", lambda: getattr(of, member)(*given, **named)

    def check(self):
        """What is right before is right behind."""
        with ti.Context() as context, ti.Runtime(threads=1, table="") as runtime:
            y = context.borrow([[1.0, 2.0], [3.0, 4.0]]) * 2 + 1
            runtime.compute(context.graph(y))
            assert y.tolist() == [[3, 5], [7, 9]], y.tolist()
            model = MODEL if not MODEL.closed else ti.Model.synthesize(**SHAPE)
            found = list(ti.Session(model, runtime).tokens([1, 17, 42], 6))
            assert found == EXPECTED, (found, EXPECTED)
        if not self.context.closed and not self.runtime.closed:
            a = self.context.borrow([1.0, 2.0])
            z = a + a
            self.runtime.compute(self.context.graph(z))
            assert z.tolist() == [2, 4], z.tolist()


def told(given, named):
    def one(value):
        try:
            return f"{value!r:.80}"
        except Exception as error:
            return f"<{type(value).__name__}: {error}>"
    return "(" + ", ".join([one(v) for v in given] + [f"{k}={one(v)}" for k, v in named.items()]) + ")"


def used(result):
    """Looks at what came out, as a caller would."""
    if inspect.isgenerator(result) or hasattr(result, "__next__"):
        for _, _item in zip(range(10), result):
            pass
    elif isinstance(result, ti.Tensor):
        repr(result)
    elif isinstance(result, (ti.Plan, ti.Graph)):
        str(result)
        len(result)


def case(seed, i, folder):
    """One process's work."""
    draws = random.Random(f"{seed} {i}")
    world = World(folder, draws)
    kept = []
    for _ in range(draws.randrange(1, 6)):
        words, call = world.step()
        print(words, flush=True)
        try:
            result = call()
            kept.append(result)
            used(result)
            if isinstance(result, ti.Tensor):
                world.tensors.append(result)
        except ALLOWED as error:
            if type(error).__module__ == "ctypes":
                raise
            print(f"  {type(error).__name__}: {error!s:.150}", flush=True)
            assert "'NoneType' object" not in str(error), "an argument that nobody looked at"
        except ZeroDivisionError:
            print("  the callback's own exception", flush=True)
    world.check()
    del kept


def in_child(seed, i, folder, log):
    os.chdir(folder)
    os.environ["HOME"] = str(folder)
    signal.alarm(SECONDS)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    try:
        case(seed, i, folder)
    except BaseException:  # told in the log
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(0)  # with objects alive, in whatever order


def failure(status):
    """What is wrong with the end of a process; "" if nothing."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"longer than {SECONDS} s" if number == signal.SIGALRM else (
            f"signal {signal.Signals(number).name}")
    return "" if os.WEXITSTATUS(status) == 0 else f"exit {os.WEXITSTATUS(status)}"


SHAPE = {"dim": 64, "hidden": 128, "vocabulary": 60, "context": 32}
MODEL = ti.Model.synthesize(**SHAPE)
OPS = ["add", "sub", "mul", "div", "scale", "silu", "relu", "rms_norm", "soft_max", "mul_mat", "cpy",
       "get_rows", "reshape", "permute", "transpose", "rope", "attention", "concat", "cont", "scatter",
       "top_k", "diag_mask_inf", "mul_mat_id", "gather", "weighted_sum", "view", "none", "context_free"]
EXPECTED = []


def first_tokens():
    """Of a process of its own: here no runtime may be opened before forks."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        with ti.Runtime(threads=1, table="") as runtime:
            os.write(writes, bytes(ti.Session(MODEL, runtime).tokens([1, 17, 42], 6)))
        os._exit(0)
    os.waitpid(child, 0)
    return list(os.read(reads, 100))


def main():
    signal.alarm(900)  # of this process alone: forks have alarms of their own
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    wanted = [int(sys.argv[3])] if len(sys.argv) > 3 else range(n)
    failed, parent, folder = 0, os.getpid(), Path(tempfile.mkdtemp())
    try:
        EXPECTED.extend(first_tokens())
        for i in wanted:
            log = folder / "log"
            shutil.rmtree(folder / "case", ignore_errors=True)  # cases write files
            (folder / "case").mkdir()
            write_tokenizer(folder / "case" / "tok.bin", 60)
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                in_child(seed, i, folder / "case", log)
            why = failure(os.waitpid(child, 0)[1])
            if why:
                failed += 1
            if why or len(wanted) == 1:
                print(f"misuse: case {i} of seed {seed}: {why or 'good'}")
                print("    " + log.read_text(errors="replace").replace("\n", "\n    ")[-3000:])
    finally:
        if os.getpid() == parent:  # a child leaves this way too
            shutil.rmtree(folder)
    print(f"misuse: {len(wanted) - failed} of {len(wanted)} cases good (seed {seed})")
    return 1 if failed or not EXPECTED else 0


if __name__ == "__main__":
    sys.exit(main())
