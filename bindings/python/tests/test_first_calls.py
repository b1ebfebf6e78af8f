# SPDX-License-Identifier: MIT
"""First calls typed from memory, threads, Ctrl-C, forks and ends: nothing ends the process. Neither
numpy nor pytest is needed: python3 test_first_calls.py runs all of it."""
import array
import ctypes
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tandem_infer as ti  # noqa: E402


def raises(kind, part, function, *arguments, **named):
    """The call raises this, with these words."""
    try:
        function(*arguments, **named)
    except kind as error:
        assert part in str(error), (part, str(error))
        return
    raise AssertionError(f"no {kind}")


def small(**shape):
    return ti.Model.synthesize(**{"dim": 64, "hidden": 128, "vocabulary": 100, "context": 64, **shape})


def computed(context, *tensors):
    with ti.Runtime(threads=1, table="") as runtime:
        runtime.compute(context.graph(*tensors))
    return [tensor.tolist() for tensor in tensors]


def test_constructors_take_paths_and_objects():
    with ti.Runtime(threads=1, table="") as runtime:
        for kind in (ti.Model, ti.Tokenizer, ti.Table):
            raises(ti.TandemError, "/no/such", kind, "/no/such")
            raises(ti.TandemError, "/no/such", kind, Path("/no/such"))
            raises(TypeError, "path", kind, 140000)
            raises(ValueError, "zero", kind, "a\0b")
        raises(ti.TandemError, "/no/such", ti.Runtime, table="/no/such")
        raises(ti.TandemError, "expected a table", ti.Runtime, table=Path(__file__))
        raises(TypeError, "expected a model", ti.Session, "x", runtime)
        raises(TypeError, "expected a model", ti.Session, 12345, runtime)
        raises(TypeError, "expected a runtime", ti.Session, small(), 1)
        raises(TypeError, "made by a context", ti.Tensor, 1, 2)
        raises(TypeError, "expected a context", ti.Graph, 1, ())
        raises(TypeError, "expected a runtime", ti.Plan, 1, 2)
        raises(TypeError, "copied", __import__("copy").copy, runtime)
        raises(TypeError, "pickled", __import__("pickle").dumps, small())


def test_numbers_are_no_addresses():
    context = ti.Context()
    x = context.borrow([[1.0, 2.0], [3.0, 4.0]])
    for call in (lambda: context.op("silu", 1), lambda: context.mul_mat(x, 1),
                 lambda: context.soft_max(x, mask=3), lambda: context.graph(1),
                 lambda: ti.Runtime(threads=1, table="").compute(1), lambda: x + "1",
                 lambda: x + [1], lambda: x @ 3, lambda: context.op("rope", x, 5),
                 lambda: context.op("scale", x, "2"), lambda: context.op("silu", x, x),
                 lambda: context.op("view", x, 1, 2, 3, 4), lambda: context.new("ab")):
        raises(TypeError, "", call)
    raises(ti.TandemError, "there is none", context.op, "context_free", x)
    raises(ti.TandemError, "there is none", context.op, 3, x)
    raises(OverflowError, "top_k", context.op, "top_k", x, 2**70)
    raises(ti.TandemError, "add", lambda: x + context.new((3, 5)))
    assert computed(context, x + x) == [[[2, 4], [6, 8]]]  # the context goes on


def test_numbers_are_constants_beside_tensors():
    context = ti.Context()
    x = context.borrow([[1.0, 2.0], [4.0, 8.0]])
    found = computed(context, x + 1, 1 + x, x - 1, 1 - x, 2 * x, x * 2, x / 2, 8 / x, -x)
    assert found == [[[2, 3], [5, 9]], [[2, 3], [5, 9]], [[0, 1], [3, 7]], [[0, -1], [-3, -7]],
                     [[2, 4], [8, 16]], [[2, 4], [8, 16]], [[.5, 1], [2, 4]], [[8, 4], [2, 1]],
                     [[-1, -2], [-4, -8]]]


def test_views_are_those_of_lists():
    context = ti.Context()
    rows = [[float(10 * i + j) for j in range(5)] for i in range(4)]
    x = context.borrow(rows)
    columns = [list(column) for column in zip(*rows)]
    assert x[0].tolist() == rows[0] and x[-1].tolist() == rows[-1]
    assert x[1:3].tolist() == rows[1:3] and x[::2].tolist() == rows[::2]
    assert x[:, 1:3].tolist() == [row[1:3] for row in rows]
    assert x[:, 2].tolist() == columns[2] and x[2, 3].tolist() == [rows[2][3]]
    assert x[:, ::2].tolist() == [row[::2] for row in rows]
    assert x.T.tolist() == columns and x.T[1].tolist() == columns[1]
    assert x.T[1:3, ::3].tolist() == [column[::3] for column in columns[1:3]]
    assert x[..., 0].tolist() == columns[0] and [row.tolist() for row in x] == rows
    assert len(x) == 4 and x[0:0].tolist() == []
    raises(IndexError, "4", lambda: x[4])
    raises(IndexError, "parts", lambda: x[0, 0, 0])
    raises(TypeError, "integer", lambda: x["a"])
    raises(IndexError, "step", lambda: x[::-1])
    w = context.quantize([[127.0] * 64] * 3, ti.Type.Q8_0)  # exact
    v = context.borrow([[2.0] * 64])
    raises(IndexError, "blocks", lambda: w[:, 1:33])
    assert w[:, 32:].shape == (3, 32) and w[1].shape == (64,)
    assert computed(context, v @ w.T, x @ x[:2].T, x[1] + x[2], x @ context.borrow([[1.0]] * 5)) == [
        [16256.0] * 3, [[sum(a * b for a, b in zip(one, two)) for two in rows[:2]] for one in rows],
        [a + b for a, b in zip(rows[1], rows[2])], [[sum(row)] for row in rows]]


def test_values_are_converted_or_refused_never_reinterpreted():
    context = ti.Context()
    x = context.new((2, 3))
    floats = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    table = [floats[:3], floats[3:]]
    shaped = memoryview(array.array("d", floats)).cast("B").cast("d", (2, 3))
    for values in (table, array.array("f", floats), shaped, ((1, 2, 3), (4, 5, 6))):
        assert x.set([[0] * 3] * 2).set(values).tolist() == table
    raises(TypeError, "expected floats", x.set, array.array("i", range(6)))
    raises(ti.TandemError, "shape (3, 2)", x.set, [[1, 2], [3, 4], [5, 6]])
    raises(ti.TandemError, "shape (6,)", x.set, floats)
    raises(ValueError, "different lengths", x.set, [[1, 2, 3], [4]])
    raises(TypeError, "", x.set, None)
    raises(TypeError, "", x.set, [["a"] * 3] * 2)
    raises(TypeError, "", x.set, "abcdef")
    raises(ti.TandemError, "bytes", x.set, b"abc")
    ids = context.new((3,), ti.Type.I32)
    raises(TypeError, "integers", ids.set, [1.5, 2.5, 3.5])
    raises(OverflowError, "", ids.set, [2**40, 0, 0])
    raises(OverflowError, "", ids.set, array.array("q", [2**40, 0, 0]))
    assert ids.set(array.array("q", [7, 8, 9])).tolist() == [7, 8, 9]
    assert context.borrow(array.array("d", floats)).tolist() == floats  # copied
    assert context.borrow(memoryview(array.array("f", floats))[::2]).tolist() == floats[::2]
    assert context.borrow((ctypes.c_float.__ctype_be__ * 2)(1.5, 2.5)).tolist() == [1.5, 2.5]
    raises(ti.TandemError, "no copy", context.borrow, array.array("d", floats), copy=False)
    constant = context.borrow(memoryview(array.array("f", floats))[2:].toreadonly())
    assert constant.tolist() == floats[2:]
    raises(ti.TandemError, "", constant.set, floats[2:])
    raises(TypeError, "", memoryview(constant.memoryview()).__setitem__, 0, 1.0)
    raises(TypeError, "", context.borrow, 1j)
    raises(TypeError, "", context.borrow, object())
    raises(ti.TandemError, "", context.new, (2**40, 2**40))
    raises(ValueError, "0 or more", context.new, (-1,))


class Lender:
    """Another package with DLPack."""

    def __init__(self, tensor, **named):
        self.tensor, self.named = tensor, named

    def __dlpack__(self, **named):
        return self.tensor.__dlpack__(**self.named, **named)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack_lends_and_borrows_memory():
    context, other = ti.Context(), ti.Context()
    x = context.borrow(array.array("f", [1, 2, 3, 4, 5, 6]))
    y = other.from_dlpack(Lender(x[::2]))  # copied: it has gaps
    assert y.tolist() == [1, 3, 5]
    z = other.borrow(Lender(x))
    z.set(array.array("f", range(6)))
    assert x.tolist() == [0, 1, 2, 3, 4, 5]  # the same memory
    raises(BufferError, "in use", context.close)
    other.close()
    x.__dlpack__()  # nobody takes it
    x.__dlpack__(max_version=(1, 0))
    context.close()
    context = ti.Context()
    constant = context.borrow(b"\0" * 8, ti.Type.F32, (2,))
    raises(BufferError, "read-only", constant.__dlpack__)
    raises(BufferError, "F32", context.quantize([1.0] * 32, ti.Type.Q8_0).__dlpack__)
    raises(TypeError, "__dlpack__", context.from_dlpack, 3)
    capsule = x_capsule = context.new((2,)).__dlpack__()
    once = type("Once", (), {"__dlpack__": lambda self, **_: capsule})()
    context.borrow(once)
    raises(TypeError, "capsule", context.borrow, once)
    del x_capsule


def test_tokens_are_checked():
    with ti.Runtime(threads=1, table="") as runtime:
        session = ti.Session(small(), runtime)
        raises(OverflowError, "tokens[0]", session.decode, [2**40])
        raises(ti.TandemError, "100", session.decode, [100])
        raises(ti.TandemError, "", session.decode, [-1])
        raises(TypeError, "Tokenizer.encode", session.decode, "abc")
        raises(TypeError, "", session.decode, 5)
        raises(TypeError, "tokens[1]", session.decode, [1, 1.5])
        raises(TypeError, "", session.decode_batch, [1, 2])
        raises(ValueError, "pairs", session.decode_batch, [(1, 2, 3)])
        session.decode([1, 2])
        raises(ValueError, "1000000", ti.Sampler(10**6).sample, session)
        raises(ValueError, "1000000", session.tokens, [1], 3, ti.Sampler(10**6))
        raises(TypeError, "expected a session", ti.Sampler(100).sample, 5)
        raises(ti.TandemError, "sequence 7", ti.Sampler(100).sample, session, 7)
        first, second = session.tokens([1], 9), session.tokens([2], 9)
        next(first), next(second)
        raises(ti.TandemError, "another call", next, first)
        assert len(list(second)) == 8


def test_a_plan_belongs_to_its_graph_and_runtime():
    context = ti.Context()
    one, two = (context.graph(context.new((2, 2)) + 1) for _ in range(2))
    with ti.Runtime(threads=1, table="") as first, ti.Runtime(threads=1, table="") as second:
        plan = first.plan(one)
        raises(ValueError, "another graph", first.compute, two, plan)
        raises(ValueError, "another runtime", second.compute, one, plan)
        raises(IndexError, "", lambda: plan[5])
        raises(TypeError, "", lambda: plan["a"])
        assert plan[-1] == plan[len(plan) - 1]


def test_a_graph_outlives_no_context_that_it_reads():
    context, other = ti.Context(), ti.Context()
    graph = context.graph(context.new((2,)) + other.new((2,)))
    with ti.Runtime(threads=1, table="") as runtime:
        runtime.compute(graph)
        other.reset()
        raises(ti.TandemError, "reset", runtime.compute, graph)
        other.close()
        raises(ti.TandemError, "closed", runtime.compute, graph)
        raises(ti.TandemError, "closed", lambda: other.new((2,)))


def test_threads_wait_for_each_other():
    with ti.Runtime(threads=1, table="") as runtime:
        session, wrong = ti.Session(small(context=4096), runtime), []

        def work():
            try:
                for _ in range(20):
                    session.decode([1, 2, 3])
                    session.position()
            except Exception as error:  # told below
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert not wrong and session.position() == 6 * 20 * 3, wrong


def test_closing_waits_for_the_call_of_another_thread():
    for closes in ("session", "runtime", "model"):
        runtime, model = ti.Runtime(threads=1, table=""), small(context=4096)
        session, ends = ti.Session(model, runtime), []

        def work():
            try:
                while True:
                    session.rollback()
                    session.decode([1] * 8)
            except ti.TandemError as error:
                ends.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        tries = 0
        while session.position() == 0:  # waits behind one call of the thread, not behind all
            tries += 1
        assert tries < 10000, tries
        {"session": session, "runtime": runtime, "model": model}[closes].close()
        thread.join()
        assert session.closed and len(ends) == 1 and "closed" in str(ends[0]), ends


def test_callbacks_cannot_close_what_calls_them():
    context = ti.Context()
    graph = context.graph(context.new((2, 2)) + 1)
    with ti.Runtime(threads=1, table="") as runtime:
        for call in (context.close, runtime.close, lambda: runtime.compute(graph),
                     lambda: context.new((2,))):
            raises(ti.TandemError, "in use", runtime.compute, graph, cancel=call)
        runtime.compute(graph)


def long_graph(context):
    x = w = context.new((1024, 1024))
    for _ in range(400):  # minutes on a thread
        x = context.mul_mat(w, x)
    return context.graph(x)


def interrupted(function):
    """Seconds from Ctrl-C to the exception; None without one."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, send)
    timer.start()
    try:
        function()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    finally:
        timer.join()
    return None


def test_ctrl_c_ends_computations():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        context, runtime = ti.Context(), ti.Runtime(threads=1, table="")
        graph = long_graph(context)
        model = ti.Model.synthesize(dim=512, hidden=2048, layers=24, heads=8, kv_heads=8,
                                    vocabulary=512, context=8192)
        session = ti.Session(model, runtime)
        took = [interrupted(lambda: runtime.compute(graph)),
                interrupted(lambda: runtime.compute(graph, progress=lambda *_: None)),
                interrupted(lambda: session.decode([1] * 8000))]
        assert None not in took and max(took) < 5, took  # 0.1 on an idle machine
        assert session.position() < 8000
        session.rollback()
        session.decode([1, 2])

        ended, over = [], threading.Event()

        def work():
            try:
                runtime.compute(graph)
            except KeyboardInterrupt:
                ended.append(True)
            over.set()

        threading.Thread(target=work, daemon=True).start()
        assert interrupted(over.wait) is not None and over.wait(60) and ended
        print(f"Ctrl-C to the exception: {max(took) * 1e3:.0f} ms at most")
        heard = []  # a program's own handler: it goes on
        signal.signal(signal.SIGINT, lambda *_: heard.append(True))
        small_graph = context.graph(context.new((64, 64)) * 2)
        until = time.monotonic() + 0.5
        assert interrupted(lambda: [runtime.compute(small_graph)
                                    for _ in iter(lambda: time.monotonic() < until, False)]) is None
        assert heard
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_leaves_no_call_half_done():
    """Signals at any moment: each is one exception, and no object stays in use."""
    gc.collect()  # what a finalizer raises, Python drops
    gc.disable()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    heard, sent, draws, begin = [0], [0], random.Random(1), threading.Event()
    context, runtime = ti.Context(), ti.Runtime(threads=1, table="")
    x = context.borrow([[1.0, 2.0], [3.0, 4.0]])
    graph, session = context.graph(x * 2), ti.Session(small(), runtime)

    def send():
        begin.wait()
        for i in range(200):
            time.sleep(draws.random() * 0.002)
            sent[0] += 1
            os.kill(os.getpid(), signal.SIGINT)
            until = time.monotonic() + 60
            while heard[0] <= i and time.monotonic() < until:
                time.sleep(0.0001)

    sender = threading.Thread(target=send, daemon=True)
    try:
        sender.start()
        while heard[0] < 200:
            try:
                begin.set()
                while sender.is_alive():
                    runtime.compute(graph, progress=lambda *_: None, cancel=lambda: False)
                    x.shape, session.position()
                break
            except KeyboardInterrupt:
                heard[0] += 1
        sender.join()
        assert heard == sent == [200], (heard, sent)
        done = []
        other = threading.Thread(target=lambda: done.append(
            (runtime.compute(graph)[0].tolist(), x.tolist(), session.position())), daemon=True)
        other.start()
        other.join(60)
        assert done == [([[2, 4], [6, 8]], [[1, 2], [3, 4]], 0)], done
        runtime.close()
        context.close()
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)


def child(function):
    """Exit status of a forked process that calls it."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            signal.alarm(60)
            function()
            os._exit(0)
        except BaseException:
            __import__("traceback").print_exc()
            os._exit(1)
    return os.waitpid(process, 0)[1]


def test_forks():
    model, runtime, context = small(), ti.Runtime(threads=2, table=""), ti.Context()
    session = ti.Session(model, runtime)
    session.decode([1, 2])
    graph = context.graph(context.borrow([1.0, 2.0]) + 1)

    def forked():
        raises(ti.TandemError, "", runtime.compute, graph)
        raises(ti.TandemError, "", session.decode, [1])
        with ti.Runtime(threads=1, table="") as own:
            assert own.compute(graph)[0].tolist() == [2, 3]
            assert list(ti.Session(model, own).tokens([1], 4))
        session.close()
        runtime.close()

    assert child(forked) == 0
    session.decode([3])  # the parent's go on

    busy = threading.Thread(target=lambda: [session.decode([1]) for _ in range(40)])
    busy.start()
    assert child(lambda: (session.close(), runtime.close())) == 0  # whatever the thread was doing
    busy.join()


ENDS = """
import sys, threading, time
sys.path.insert(0, {folder!r})
import tandem_infer as ti
model, runtime, context = ti.Model.synthesize(), ti.Runtime(threads=2, table=""), ti.Context()
session = ti.Session(model, runtime, context=200000)
view, graph = context.new((3,)).memoryview(), context.graph(context.new((3,)) + 1)
plan = runtime.plan(graph)
lent = context.new((3,)).__dlpack__()
cycle = [session, runtime, model]; cycle.append(cycle)
generator = session.tokens([1, 2, 3], 50); next(generator)
other = ti.Session(model, runtime, context=200000)
def work():
    while True:
        other.rollback()
        other.decode([1] * 64)
if {busy}: threading.Thread(target=work, daemon=True).start(); time.sleep(0.2)
del cycle
"""


def test_programs_end_with_objects_alive():
    folder = str(Path(ti.__file__).resolve().parent.parent)
    for busy in (False, True):
        code = ENDS.format(folder=folder, busy=busy)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120,
                              text=True)
        assert done.returncode == 0 and done.stderr == "", (busy, done)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(600, exit=True)  # whatever waits for ever is told
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    print("first calls: good")
