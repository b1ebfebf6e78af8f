# SPDX-License-Identifier: MIT
"""Tensors, graphs, plans and tables with numpy."""
import gc

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import layout  # noqa: E402
import onnxfile  # noqa: E402
import tandem_infer as ti  # noqa: E402


@pytest.fixture
def context():
    with ti.Context() as one:
        yield one
        gc.collect()


@pytest.fixture(scope="module")
def runtime():
    with ti.Runtime(threads=2, table="") as one:
        yield one


def test_all_types_of_the_library_have_names():
    from tandem_infer import _native
    names = {n: _native.tandem.tandem_type_name(n).decode().upper() for n in range(256)}
    assert {n: name for n, name in names.items() if name != "UNKNOWN"} == {t.value: t.name for t in ti.Type}


def test_structures_are_those_of_the_headers():
    wrong = layout.differences()
    if wrong is None:
        pytest.skip("no C compiler, or no headers beside the package")
    assert wrong == []


def test_a_changed_structure_is_noticed(monkeypatch):
    if layout.differences() is None:
        pytest.skip("no C compiler, or no headers beside the package")

    class Other(ti._native.Structure):
        _fields_ = [("size", ti._native.c_size_t), ("limit_bytes", ti._native.c_size_t)]

    monkeypatch.setitem(ti._native.STRUCTS, "context_options", (Other, True))
    assert len(layout.differences()) == 2


def test_arrays_share_memory_with_tensors(context):
    tensor = context.new((2, 3, 4))
    array = tensor.numpy()
    assert array.shape == (2, 3, 4) and array.dtype == np.float32 and not array.any()
    array[1, 2, 3] = 7
    assert tensor.tolist()[1][2][3] == 7
    own = np.arange(6, dtype=np.float32).reshape(2, 3)
    borrowed = context.borrow(own)
    assert borrowed.numpy().ctypes.data == own.ctypes.data
    del array


@pytest.mark.parametrize("dtype, type", [("float32", ti.Type.F32), ("float16", ti.Type.F16),
                                         ("int32", ti.Type.I32)])
def test_types_follow_those_of_arrays(context, dtype, type):
    tensor = context.borrow(np.ones((2, 2), dtype))
    assert tensor.type == type and tensor.numpy().dtype == dtype


def test_read_only_arrays_are_constants(context):
    array = np.ones(4, "float32")
    array.flags.writeable = False
    tensor = context.borrow(array)
    with pytest.raises(ti.TandemError) as caught:
        tensor.set(np.zeros(4, "float32"))
    assert caught.value.status == "STATE"


def test_memory_is_not_freed_under_an_array():
    context = ti.Context()
    array = context.new((8,)).numpy()
    with pytest.raises(BufferError):
        context.close()
    with pytest.raises(BufferError):
        context.reset()
    del context
    gc.collect()
    array[:] = 3  # the array keeps the context
    assert array.sum() == 24


@pytest.mark.parametrize("type, bound", [(ti.Type.F32, 1e-6), (ti.Type.F16, 1e-3),
                                         (ti.Type.Q8_0, 0.01), (ti.Type.Q4_0, 0.1),
                                         (ti.Type.Q4_K, 0.1)])
def test_products_are_those_of_numpy(context, runtime, type, bound):
    rng = np.random.default_rng(1)
    w = rng.standard_normal((48, 256), dtype="float32")
    x = rng.standard_normal((5, 256), dtype="float32")
    tensor = context.quantize(w, type)
    y = context.mul_mat(tensor, context.borrow(x))
    runtime.compute(context.graph(y))
    exact = x @ w.T
    assert np.linalg.norm(y.numpy() - exact) / np.linalg.norm(exact) < bound
    stored = ti.dequantize(tensor.memoryview(), type).reshape(w.shape)
    assert np.linalg.norm(stored - w) / np.linalg.norm(w) < bound


def test_operations_are_those_of_numpy(context, runtime):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((3, 16), dtype="float32")
    b = rng.standard_normal((3, 16), dtype="float32") + 4
    ta, tb = context.borrow(a), context.borrow(b)
    wanted = {
        "add": (ta + tb, a + b), "sub": (ta - tb, a - b), "mul": (ta * tb, a * b),
        "div": (ta / tb, a / b), "scale": (ta * 3, a * 3),
        "silu": (context.silu(ta), a / (1 + np.exp(-a))),
        "clip": (context.clip(ta, -0.5, 0.5), np.clip(a, -0.5, 0.5)),
        "relu": (context.op("relu", ta), np.maximum(a, 0)),
        "rms_norm": (context.rms_norm(ta),
                     a / np.sqrt((a * a).mean(1, keepdims=True) + 1e-5)),
        "soft_max": (context.soft_max(ta), np.exp(a) / np.exp(a).sum(1, keepdims=True)),
        "reshape": (context.op("cont", context.reshape(ta, (6, 8))), a.reshape(6, 8)),
        "transpose": (context.op("cont", context.op("transpose", ta)), a.T),
        "get_rows": (context.get_rows(ta, context.borrow(np.array([2, 0], "int32"))), a[[2, 0]]),
    }
    runtime.compute(context.graph(*[tensor for tensor, _ in wanted.values()]))
    for name, (tensor, exact) in wanted.items():
        np.testing.assert_allclose(tensor.numpy(), exact, rtol=2e-3, atol=2e-3, err_msg=name)


def test_rope_keeps_lengths_and_the_first_position(context, runtime):
    a = np.random.default_rng(3).standard_normal((2, 1, 8)).astype("float32")
    turned = context.rope(context.borrow(a), context.borrow(np.array([0, 9], "int32")))
    runtime.compute(context.graph(turned))
    out = turned.numpy()
    np.testing.assert_allclose(out[0], a[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(out[1]), np.linalg.norm(a[1]), rtol=1e-5)


def test_plans_say_why_and_can_be_changed(context, runtime, tmp_path):
    w = context.quantize(np.ones((64, 256), "float32"), ti.Type.Q4_0, "w")
    graph = context.graph(context.mul_mat(w, context.new((4, 256))))
    plan = runtime.plan(graph)
    assert plan[0].reason == "rule" and "mul_mat:q4_0:n64:k256:m4" in str(plan)
    plan.force(0, "cpu")
    assert plan[0].profile == "cpu"
    plan.save(tmp_path / "plan")
    assert runtime.load_plan(graph, tmp_path / "plan")[0].profile == "cpu"
    assert "mul_mat" in runtime.explain(graph) and "w" in str(graph)
    with pytest.raises(IndexError):
        plan[1]
    with pytest.raises(ti.TandemError, match="no-such"):
        plan.force(0, "no-such")


def test_tuning_fills_a_table_that_plans_go_by(context):
    w = context.quantize(np.ones((256, 256), "float32"), ti.Type.Q4_0)
    graph = context.graph(context.mul_mat(w, context.new((4, 256))))
    told = []
    with ti.Runtime(threads=1, table="") as runtime:
        with pytest.raises(ti.TandemError):
            runtime.check_table()
        runtime.tune(graph, 1.0, progress=lambda gone, budget: bool(told.append(gone)))
        assert runtime.plan(graph)[0].reason == "table" and told


def test_progress_is_told_and_its_exceptions_come_back(context, runtime):
    graph = context.graph(context.new((4, 4)) + context.new((4, 4)))
    with pytest.raises(ZeroDivisionError):
        runtime.compute(graph, cancel=lambda: 1 // 0)
    with pytest.raises(ti.TandemError) as caught:
        runtime.compute(graph, cancel=lambda: True)
    assert caught.value.status == "CANCELLED"
    runtime.compute(graph, progress=lambda done, total: None)


def test_tables_are_merged_and_read_again(tmp_path):
    table = ti.Table()
    table.save(tmp_path / "table.json")
    again = ti.Table.load(tmp_path / "table.json")
    again.merge(table)
    assert again.json()["fingerprint"] == table.json()["fingerprint"]
    with pytest.raises(ti.TandemError, match="/none"):
        ti.Table.load("/none")


def test_a_measured_table_has_curves(pytestconfig):
    folder = layout.INCLUDE.parent / "bench-data"
    if not folder.exists():
        pytest.skip("no measured tables beside the package")
    table = ti.Table.load(folder / "epyc-zen4-2-cores" / "table.json")
    curves = table.curves(type="q4_0")
    assert curves and all(len(c["m"]) == len(c["us"]) > 0 for c in curves)


def test_logs_reach_python():
    lines = []
    with ti.Runtime(table="", log=lambda *line: lines.append(line), log_level=4):
        pass
    assert lines and all(isinstance(line[2], str) and 1 <= line[0] <= 4 for line in lines)


def test_facts_are_told(runtime):
    assert runtime.info.cores >= 1 and "cpu" in runtime.backends and runtime.threads == 2
    assert any(p.name == "cpu-packed" and p.available for p in runtime.profiles)
    assert isinstance(ti.devices(), list) and runtime.drift == []


def test_help_describes_everything():
    import pydoc
    for name in ti.__all__:
        thing = getattr(ti, name)
        assert thing.__doc__, name
        assert name in pydoc.render_doc(thing), name
        for member, value in vars(thing).items() if isinstance(thing, type) else []:
            if callable(value) and not member.startswith("_"):
                assert value.__doc__, f"{name}.{member}"


def test_the_lines_of_the_readme_run(capsys, monkeypatch, tmp_path):
    import re
    monkeypatch.setenv("GGML_BACKEND_PATH", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(onnxfile.model(
        [onnxfile.node("Relu", ["x"], ["y"])], [("x", "float32", ["n", 4])], [("y", "float32", ["n", 4])]))
    folder = layout.INCLUDE.parent
    for document in (folder / "bindings" / "python" / "README.md", folder / "docs" / "python.md"):
        blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(), re.M | re.S)
        assert blocks
        for block in blocks:
            exec(compile(block, str(document), "exec"),
                 {"__name__": "__main__", "x": np.ones((2, 4), "float32")})
    assert "(3, 64)" in capsys.readouterr().out


def test_the_example_plots_a_table(tmp_path):
    import subprocess
    import sys
    pytest.importorskip("matplotlib")
    folder = layout.INCLUDE.parent
    out = tmp_path / "table.png"
    subprocess.check_call([sys.executable, str(folder / "bindings/python/examples/plot_table.py"),
                           str(folder / "bench-data/epyc-zen4-2-cores/table.json"), str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
