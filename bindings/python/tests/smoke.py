# SPDX-License-Identifier: MIT
"""Without numpy, pytest and network: the package imports, its structures are those of the headers,
a graph computes, a session generates, faults are exceptions. usage: smoke.py (TANDEM_INFER_LIBRARY
names the folder of the libraries)"""
import array
import faulthandler
import gc
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import layout  # noqa: E402
import tandem_infer as ti  # noqa: E402


def fails(status, part, function, *arguments):
    """The call raises a TandemError of this status with these words."""
    try:
        function(*arguments)
    except ti.TandemError as error:
        assert error.status == status and part in str(error), (error.status, str(error))
        return
    raise AssertionError(f"no {status}")


def structures_are_those_of_the_headers():
    wrong = layout.differences()
    assert wrong is None or wrong == [], wrong
    if wrong is None:
        print("SKIP python: no C compiler to compare structures with")


def a_graph_computes():
    with ti.Context() as context, ti.Runtime(threads=1, table="") as runtime:
        values = memoryview(array.array("f", [1, 2, 3, 4, 5, 6])).cast("B").cast("f", (2, 3))
        x = context.borrow(values)
        y = (x + x) * 0.5
        graph = context.graph(y)
        assert runtime.compute(graph) == (y,) and y.tolist() == [[1, 2, 3], [4, 5, 6]]
        values[1, 2] = 60.0  # the tensor borrows: no copy
        runtime.compute(graph)
        view = y.memoryview()
        assert view[1, 2] == 60.0 and y.shape == (2, 3)
        plan = runtime.plan(graph)
        assert len(plan) == len(graph) and plan[0].threads == 1 and "add" in str(plan)
        try:
            context.close()
            raise AssertionError("closed under a view")
        except BufferError:
            pass
        del view
        gc.collect()
        n, begin = 2000, time.perf_counter()
        for _ in range(n):
            runtime.compute(graph, plan)
        print(f"a graph of 2 nodes: {(time.perf_counter() - begin) / n * 1e6:.1f} us a call")


def a_session_generates():
    with ti.Model.synthesize(dim=64, hidden=128, vocabulary=100, context=32) as model, \
            ti.Runtime(threads=1, table="") as runtime, tempfile.TemporaryDirectory() as folder:
        assert model.hparams.dim == 64 and model.hparams.vocabulary == 100
        session = ti.Session(model, runtime)
        first = list(session.tokens([1, 17, 42], 8))
        assert len(first) == 8 and all(0 <= t < 100 for t in first)
        session.rollback()
        session.decode([1, 17, 42])
        session.save(Path(folder) / "state")
        session.rollback()
        session.load(Path(folder) / "state")
        assert ti.Sampler(100).sample(session) == first[0] and session.position() == 3
        fails("LIMIT", "", session.decode, list(range(40)))
        fails("FORMAT", "tokenizer", model.tokenizer)
        runtime.close()  # closes the session first
        assert session.closed
        fails("STATE", "session: it is closed", session.decode, [1])


def faults_are_exceptions():
    fails("FILE", "/no/such", ti.Table.load, "/no/such")
    fails("FORMAT", "", ti.Table.parse, "{}")
    fails("NOT_FOUND", "none-such", lambda: ti.Runtime(profile="none-such"))
    with ti.Context() as context:
        a, b = context.new((2, 3)), context.new((4, 5))
        fails("SHAPE", "add", lambda: a + b)
        a + a  # the context goes on
        context.reset()
        fails("STATE", "reset", lambda: a.shape)
        fails("TYPE", "items are", context.borrow, memoryview(b"abcdefgh")[::2])
        fails("TYPE", "items are 'B'", context.borrow, b"abcd")

    def stop():
        raise KeyError("mine")

    with ti.Context() as context, ti.Runtime(threads=1, table="") as runtime:
        graph = context.graph(context.new((4, 4)) + context.new((4, 4)))
        fails("CANCELLED", "", lambda: runtime.compute(graph, cancel=lambda: True))
        try:
            runtime.compute(graph, cancel=stop)
            raise AssertionError("the exception was lost")
        except KeyError:
            pass


def tables_are_read_and_written():
    table = ti.Table()
    table.check()
    again = ti.Table.parse(__import__("json").dumps(table.json()))
    again.merge(table)
    assert again.json()["version"] == 2 and again.curves() == []


if __name__ == "__main__":
    faulthandler.dump_traceback_later(600, exit=True)
    for test in (structures_are_those_of_the_headers, a_graph_computes, a_session_generates,
                 faults_are_exceptions, tables_are_read_and_written):
        test()
    print(f"check_python: good ({ti.version()}, Python {sys.version.split()[0]})")
