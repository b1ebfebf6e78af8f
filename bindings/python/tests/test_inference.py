# SPDX-License-Identifier: MIT
"""Programs for ONNX Runtime by import tandem_infer as ort, judged by numpy; and by ONNX Runtime itself
where it is installed."""
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import onnxfile  # noqa: E402
import tandem_infer as ort  # noqa: E402
from onnxfile import field, model, node  # noqa: E402

W = np.arange(12, dtype="float32").reshape(4, 3) - 5


def linear(dtype="float32"):
    """y = x w and z = relu(y), of any batch."""
    return model([node("MatMul", ["x", "w"], ["y"]), node("Relu", ["y"], ["z"])],
                 [("x", dtype, ["batch", 4])], [("y", dtype, ["batch", 3]), ("z", dtype, ["batch", 3])],
                 [("w", W.astype(dtype))], meta=[
                     field(2, "a test"), field(4, "org.example"), field(5, 3), field(6, "says"),
                     field(14, [field(1, "names"), field(2, "cat")])])


@pytest.fixture(scope="module")
def session():
    with ort.InferenceSession(linear(), providers=["CPUExecutionProvider"]) as one:
        yield one


def test_a_session_states_what_the_model_states(session):
    x, = session.get_inputs()
    y, z = session.get_outputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["batch", 4])
    assert (y.name, z.name, z.shape) == ("y", "z", ["batch", 3]) and "tensor(float)" in repr(y)
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.domain, meta.version) == ("a test", "org.example", 3)
    assert (meta.description, meta.graph_name, meta.graph_description) == ("says", "main", "")
    assert meta.custom_metadata_map == {"names": "cat"}
    assert session.get_overridable_initializers() == [] and session.end_profiling() == ""
    assert session.get_providers() == ort.get_available_providers() == ort.get_all_providers()
    assert "CPUExecutionProvider" in session.get_provider_options() and ort.get_device() == "CPU"


def test_an_array_of_too_many_dimensions_is_refused_by_name(session):
    with pytest.raises(ValueError, match="input 'x': 9 dimensions, expected at most 8"):
        session.run(None, {"x": np.ones((1,) * 8 + (4,), "float32")})


def test_every_type_has_onnxs_name():
    said = {}
    for name in onnxfile.TYPES:
        made = ort.InferenceSession(model([node("Identity", ["x"], ["y"])], [("x", name, ["n", None])],
                                          [("y", name, None)]))
        assert made.get_inputs()[0].shape == ["n", None] and made.get_outputs()[0].shape == []
        said[name] = made.get_inputs()[0].type
    assert said == {name: f"tensor({ {'float32': 'float', 'float64': 'double'}.get(name, name)})"
                    for name in onnxfile.TYPES}


def test_outputs_come_in_the_wanted_order(session):
    for batch in (1, 5, 0, 2, 5):
        x = np.arange(batch * 4, dtype="float32").reshape(batch, 4)
        y, z = session.run(None, {"x": x})
        assert (y == x @ W).all() and (z == np.maximum(y, 0)).all() and y.dtype == "float32"
        assert y.shape == (batch, 3)
        again = session.run(["z", "y"], {"x": x})
        assert (again[0] == z).all() and (again[1] == y).all()
        assert len(session.run([], {"x": x})) == 2
    y[...] = 7  # a copy of ours
    assert (session.run(["y"], {"x": x})[0] == x @ W).all()


def test_more_extents_than_are_kept(session):
    for batch in list(range(1, 13)) * 2:
        x = np.full((batch, 4), batch, "float32")
        assert (session.run(["y"], {"x": x})[0] == x @ W).all()


@pytest.mark.parametrize("name", [one for one in onnxfile.TYPES if one not in ("string", "bfloat16")])
def test_every_type_goes_in_and_out(name):
    made = ort.InferenceSession(model([node("Identity", ["x"], ["y"]), node("Identity", ["s"], ["t"])],
                                      [("x", name, ["n", "m"]), ("s", name, [])],
                                      [("y", name, ["n", "m"]), ("t", name, [])]))
    for shape in ((2, 3), (0, 3), (2, 0)):
        x = np.random.default_rng(1).integers(0, 2, shape).astype(name)
        y, t = made.run(None, {"x": x, "s": np.ones((), name)})
        assert (y == x).all() and y.dtype == x.dtype and y.shape == shape
        assert t == 1 and t.shape == () and t.dtype == x.dtype
    scalar = np.dtype(name).type(1)
    assert made.run(["t"], {"x": x, "s": scalar})[0] == 1


def test_bfloat16_is_its_bits():
    made = ort.InferenceSession(model([node("Cast", ["x"], ["y"], to=1), node("Identity", ["x"], ["z"])],
                                      [("x", "bfloat16", [2])],
                                      [("y", "float32", [2]), ("z", "bfloat16", [2])]))
    bits = np.array([0x3f80, 0xc040], "uint16")
    y, z = made.run(None, {"x": bits})
    assert y.tolist() == [1, -3] and z.dtype == "uint16" and (z == bits).all()


def test_a_float16_net_computes():
    x = np.random.default_rng(1).uniform(-1, 1, (3, 4)).astype("float16")
    y, _ = ort.InferenceSession(linear("float16")).run(None, {"x": x})
    assert y.dtype == "float16"
    np.testing.assert_allclose(y, x.astype("float32") @ W, 2e-2, 2e-2)


def test_arrays_of_any_layout_are_taken(session):
    x = np.arange(8, dtype="float32").reshape(2, 4)
    readonly = x.copy()
    readonly.flags.writeable = False
    strided = np.repeat(x, 2, 1)[:, ::2]

    class Lender:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

    for given in (x, np.asfortranarray(x), x[::-1][::-1], strided, x.astype(">f4"), readonly,
                  x.tolist(), memoryview(x), ort.OrtValue.ortvalue_from_numpy(x), Lender(),
                  np.broadcast_to(x[:1], (2, 4)) * 0 + x, np.ma.array(x)):
        assert (session.run(["y"], {"x": given})[0] == x @ W).all()


def test_what_is_wrong_is_a_value_error(session):
    x = np.ones((2, 4), "float32")
    for names, feed, said in (
            (None, {}, "missing"), (None, {"x": x, "q": x}, "Invalid input name"),
            (["q"], {"x": x}, "Invalid output name"), (["y", "q"], {"x": x}, "Invalid output name"),
            ("y", {"x": x}, "output_names"), (None, [x], "dictionary"), (None, None, "dictionary"),
            (None, {"x": x.astype("float64")}, "tensor.double., expected tensor.float."),
            (None, {"x": x.astype("int64")}, "tensor.int64."), (None, {"x": x > 0}, "tensor.bool."),
            (None, {"x": x[:, :3]}, r"shape \(2, 3\), expected \(batch, 4\)"),
            (None, {"x": x[0]}, "shape"), (None, {"x": x[None]}, "shape"), (None, {"x": 3.0}, "shape"),
            (None, {"x": [["a"] * 4]}, "numbers"), (None, {"x": [[1, 2], [3]]}, "input 'x'"),
            (None, {"x": x.astype("complex64")}, "complex64"), (None, {"x": np.array(["a"])}, "text"),
            (None, {"x": None}, "input 'x'"), (None, {"x": object()}, "input 'x'"),
            (None, {"x": x.astype(object)}, "object"), (None, {3: x, "x": x}, "Invalid input name")):
        with pytest.raises(ValueError, match=said):
            session.run(names, feed)
    assert (session.run(["y"], {"x": x})[0] == x @ W).all()


def test_options_are_taken_or_named_once():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_free_dimension_override_by_name("batch", 2)
    x = np.ones((2, 4), "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ort.InferenceSession(linear(), options, ["TandemExecutionProvider"])
        ort.InferenceSession(linear(), sess_options=ort.SessionOptions(),
                             providers=ort.get_available_providers())
    assert (made.run(None, {"x": x})[0] == x @ W).all() and made.get_session_options() is options
    assert made._runtime.threads == 1
    options.inter_op_num_threads = 4
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.enable_profiling = True
    options.of_a_later_release = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.warns(RuntimeWarning) as caught:
        ort.InferenceSession(linear(), options, [("CUDAExecutionProvider", {"device_id": 0}),
                                                 "CPUExecutionProvider"], [{"device_id": 0}, {}])
    assert len(caught) == 1
    for name in ("inter_op_num_threads", "execution_mode", "enable_profiling", "of_a_later_release",
                 "session.intra_op.allow_spinning", "CUDAExecutionProvider", "provider_options"):
        assert name in str(caught[0].message)
    assert caught[0].filename == __file__
    for call in (lambda: options.register_custom_ops_library("x.so"),
                 lambda: options.add_initializer("w", None),
                 lambda: ort.InferenceSession(linear(), providers="CPUExecutionProvider")):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: ort.InferenceSession(linear(), {"a": 1}), lambda: ort.InferenceSession(3),
                 lambda: ort.InferenceSession(None), lambda: ort.InferenceSession(linear(), runtime=3),
                 lambda: ort.InferenceSession(linear()).run(None, {"x": x}, 3)):
        with pytest.raises(TypeError):
            call()
    options = ort.SessionOptions()
    options.intra_op_num_threads = -1
    with pytest.raises((ort.TandemError, ValueError)):
        ort.InferenceSession(linear(), options)


def test_memory_is_bound_and_used_again(session):
    binding = session.io_binding()
    x = np.ones((2, 4), "float32")
    y = np.empty((2, 3), "float32")
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, [2, 3], y.ctypes.data)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    assert (y == x @ W).all()
    seen = binding.get_outputs()
    assert [one.numpy().shape for one in seen] == [(2, 3)] * 2 and seen[0].data_ptr() == y.ctypes.data
    x[...] = 2  # what is bound is read again
    session.run_with_iobinding(binding)
    assert (y == x @ W).all() and (seen[1].numpy() == np.maximum(y, 0)).all()
    copies = binding.copy_outputs_to_cpu()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    out = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding.clear_binding_outputs()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, value.data_ptr())
    binding.bind_ortvalue_output("y", out)
    value.update_inplace(np.zeros((2, 4), "float32"))
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    assert not out.numpy().any() and (copies[0] == np.full((2, 4), 2) @ W).all()
    binding.bind_output("y", array=np.empty((3, 3), "float32"))
    with pytest.raises(ValueError, match="bound to"):
        session.run_with_iobinding(binding)
    for call in (lambda: binding.bind_cpu_input("q", x), lambda: binding.bind_output("q"),
                 lambda: binding.bind_output("y", "cuda"), lambda: binding.bind_output("y", buffer_ptr=1),
                 lambda: binding.bind_input("x", "cpu", 0, 99, [2], 1), lambda: binding.bind_output(
                     "y", array=[1]), lambda: binding.bind_ortvalue_output("y", 3),
                 lambda: binding.bind_input("x", "cpu", 0, np.float32, [-1], 1),
                 lambda: session.run_with_iobinding(ort.InferenceSession(linear()).io_binding()),
                 lambda: ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)):
        with pytest.raises(ValueError):
            call()
    binding.clear_binding_inputs()
    with pytest.raises(ValueError, match="missing"):
        session.run_with_iobinding(binding)


def test_ort_values_tell_of_themselves():
    value = ort.OrtValue.ortvalue_from_numpy(np.ones((2, 3), "float16"))
    assert (value.shape(), value.data_type(), value.element_type()) == ([2, 3], "tensor(float16)", 10)
    assert value.device_name() == "cpu" and value.is_tensor() and value.has_value()
    assert not value.is_sparse_tensor() and not value.is_tensor_sequence()
    assert value.tensor_size_in_bytes() == 12 and np.asarray(value).dtype == "float16"
    half = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, "uint16"), 16)
    assert half.data_type() == "tensor(bfloat16)"
    with pytest.raises(ValueError):
        value.update_inplace(np.ones((3, 2), "float16"))
    with pytest.raises(ValueError):
        value.update_inplace(np.ones((2, 3)))
    y, = ort.InferenceSession(linear()).run_with_ort_values(
        ["y"], {"x": ort.OrtValue.ortvalue_from_numpy(np.ones((1, 4), "float32"))})
    assert (y.numpy() == W.sum(0)).all()


def test_extents_that_follow_from_values():
    made = ort.InferenceSession(model([node("Reshape", ["x", "to"], ["y"])],
                                      [("x", "float32", [6]), ("to", "int64", [2])],
                                      [("y", "float32", ["a", "b"])]))
    x = np.arange(6, dtype="float32")
    for to in ([2, 3], [3, 2], [2, 3], [1, -1]):
        y, = made.run(None, {"x": x, "to": np.array(to, "int64")})
        assert (y == x.reshape(to)).all() and y.shape == x.reshape(to).shape
    with pytest.raises(ort.TandemError):
        made.run(None, {"x": x, "to": np.array([4, 4], "int64")})
    assert made.run(None, {"x": x, "to": [6, 1]})[0].shape == (6, 1)


def test_what_cannot_be_computed_is_refused_by_name():
    big = [("x", "float32", [100, 100])]
    out = [("y", "float32", [100, 100])]
    with pytest.raises(ort.TandemError, match="Quux") as caught:
        ort.InferenceSession(model([node("Quux", ["x"], ["y"])], big, out))
    assert caught.value.status == "UNSUPPORTED_BUILD"
    text = ort.InferenceSession(model([node("Identity", ["x"], ["y"])], [("x", "string", [2])],
                                      [("y", "string", [2])]))
    with pytest.raises(ValueError, match="string"):
        text.run(None, {"x": np.array(["a", "b"])})
    gather = ort.InferenceSession(model([node("Gather", ["w", "i"], ["y"])], [("i", "int64", ["n"])],
                                        [("y", "float32", ["n", 3])], [("w", W)]))
    assert (gather.run(None, {"i": [3, 0]})[0] == W[[3, 0]]).all()
    with pytest.raises(ort.TandemError, match="Gather y': index 4 into 4 values"):
        gather.run(None, {"i": [4]})
    with pytest.raises(TypeError, match="expected a path or the bytes"):
        ort.InferenceSession(None)  # type: ignore[arg-type]
    assert gather.run(None, {"i": np.zeros(0, "int64")})[0].shape == (0, 3)


def test_one_call_from_file_to_result(tmp_path):
    path = tmp_path / "linear.onnx"
    path.write_bytes(linear())
    x = np.ones((2, 4))  # float64
    for made in (ort.load(path), ort.best().load(str(path)), ort.InferenceSession(path)):
        y, z = made.eval(x)
        assert (y == x @ W).all() and (z == np.maximum(y, 0)).all() and made(x=x)[0].dtype == "float32"
        for call in (lambda: made.eval(), lambda: made.eval(x, x), lambda: made.eval(x, x=x),
                     lambda: made.eval(q=x), lambda: made.eval(x > 0, y=1), lambda: made.eval(1j * x)):
            with pytest.raises(ValueError):
                call()
    assert ort.best() is ort.best() and "mul_mat" in made.explain()
    made.tune(budget_s=0.01)


def test_progress_cancel_and_terminate(session):
    x = np.ones((2, 4), "float32")
    seen = []
    session.run(None, {"x": x}, progress=lambda done, total: seen.append((done, total)))
    with pytest.raises(ort.TandemError) as caught:
        session.run(None, {"x": x}, cancel=lambda: True)
    assert caught.value.status == "CANCELLED"
    options = ort.RunOptions()
    assert (session.run(["y"], {"x": x}, options)[0] == x @ W).all()
    options.terminate = True
    with pytest.raises(ort.TandemError):
        session.run(["y"], {"x": x}, options)
    with pytest.raises(ZeroDivisionError):
        session.run(None, {"x": x}, progress=lambda *_: 1 // 0, cancel=lambda: False)
    assert (session.run(["y"], {"x": x})[0] == x @ W).all()


def test_threads_share_a_session(session):
    wrong = []

    def work(i):
        for k in range(40):
            x = np.full((1 + (i + k) % 3, 4), i, "float32")
            if not (session.run(["y"], {"x": x})[0] == x @ W).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_objects_close_in_any_order():
    runtime = ort.Runtime(threads=1, table="")
    made = ort.InferenceSession(linear(), runtime=runtime)
    x = np.ones((2, 4), "float32")
    binding = made.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    made.run_with_iobinding(binding)
    view = binding.get_outputs()[0].numpy()
    del made
    assert (view == x @ W).all()
    binding.clear_binding_outputs()
    del view
    runtime.close()  # closes the session first
    assert binding._session.closed
    for call in (lambda: binding._session.run(None, {"x": x}), lambda: binding._session.get_modelmeta(),
                 lambda: binding._session.run_with_iobinding(binding)):
        with pytest.raises(ort.TandemError, match="closed"):
            call()
    assert binding._session.get_inputs()[0].name == "x"


def test_weights_of_extents_that_are_not_kept_go_away():
    w = np.ones((256, 256), "float32")
    content = model([node("MatMul", ["x", "w"], ["y"])], [("x", "float32", ["n", 256])],
                    [("y", "float32", ["n", 256])], [("w", w)])
    with ort.Runtime(threads=1, table="") as runtime:
        made = ort.InferenceSession(content, runtime=runtime)
        for n in range(1, 30):
            made.run(None, {"x": np.ones((n, 256), "float32")})
        assert runtime.info.prepared_bytes <= 8 * 2 * w.nbytes
        again = ort.InferenceSession(content, runtime=runtime)
        assert (again.run(None, {"x": np.ones((1, 256), "float32")})[0] == 256).all()
        made.close()
        assert runtime.info.prepared_bytes <= 2 * w.nbytes
        assert (again.run(None, {"x": np.ones((1, 256), "float32")})[0] == 256).all()
        del again  # nothing refers to it any more, also without a collection of garbage
        assert runtime.info.prepared_bytes == 0


def test_other_threads_run_while_a_session_computes():
    w = np.full((1024, 1024), 1 / 1024, "float32")
    nodes = [node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(30)]
    made = ort.InferenceSession(model(nodes, [("v0", "float32", [256, 1024])],
                                      [("v30", "float32", [256, 1024])], [("w", w)]))
    x = np.ones((256, 1024), "float32")
    found = []
    thread = threading.Thread(target=lambda: found.append(made.run(None, {"v0": x})[0]))
    thread.start()
    n_loops = 0
    while thread.is_alive():
        n_loops += 1
    thread.join()
    assert n_loops > 100, n_loops
    np.testing.assert_allclose(found[0], x, 1e-4)


LEFT_ALIVE = """
import sys, threading
import numpy as np
import tandem_infer as ort
session = ort.InferenceSession(open(sys.argv[1], "rb").read())
x = np.ones((2, 4), "float32")
binding = session.io_binding()
binding.bind_cpu_input("x", x)
binding.bind_output("y")
session.run_with_iobinding(binding)
view = binding.get_outputs()[0].numpy()
net = ort.Net()
value = net.input("x", (2, 4))
compiled = ort.Net()
compiled = compiled.compile(np.exp(compiled.input("x", (2, 4))))
inside = compiled.input_array(0)
capsule = ort.OrtValue(view.copy()).__dlpack__()
cycle = [session, binding, compiled, net]
cycle.append(cycle)
def work():
    while True:
        session.run(None, {"x": x})
if sys.argv[2] == "thread":
    threading.Thread(target=work, daemon=True).start()
    [session.run(None, {"x": x}) for _ in range(20)]
"""


@pytest.mark.parametrize("how", ("plain", "thread"))
def test_programs_end_with_sessions_alive(how, tmp_path):
    (tmp_path / "m.onnx").write_bytes(linear())
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", LEFT_ALIVE, str(tmp_path / "m.onnx"), how],
                               timeout=120, capture_output=True, text=True, env=dict(
                                   os.environ, PYTHONPATH=str(Path(ort.__file__).parents[1])))
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_forked_process_makes_sessions_of_its_own():
    x = np.ones((2, 4), "float32")
    before = ort.InferenceSession(linear())
    assert (before.run(["y"], {"x": x})[0] == x @ W).all()
    child = os.fork()
    if child == 0:
        try:
            before.run(["y"], {"x": x})
            os._exit(1)
        except ort.TandemError:
            pass
        good = (ort.InferenceSession(linear()).run(["y"], {"x": x})[0] == x @ W).all()
        os._exit(0 if good else 2)
    assert os.waitpid(child, 0)[1] == 0
    assert (before.run(["y"], {"x": x})[0] == x @ W).all()


def test_onnx_runtime_gives_the_same():
    judge = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

    def program(runtime):
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
        made = runtime.InferenceSession(linear(), options, providers=["CPUExecutionProvider"])
        x = np.random.default_rng(3).uniform(-1, 1, (3, 4)).astype("float32")
        stated = [(one.name, one.type, one.shape) for one in made.get_inputs() + made.get_outputs()]
        meta = made.get_modelmeta()
        told = (meta.producer_name, meta.domain, meta.version, meta.description, meta.graph_name,
                meta.custom_metadata_map)
        outputs = made.run(None, {made.get_inputs()[0].name: x})
        binding = made.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        made.run_with_iobinding(binding)
        return (stated, told), outputs + binding.copy_outputs_to_cpu() + [
            one.numpy() for one in binding.get_outputs()]

    ours, theirs = program(ort), program(judge)
    assert ours[0] == theirs[0]
    for one, other in zip(ours[1], theirs[1]):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)
