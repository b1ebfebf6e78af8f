# SPDX-License-Identifier: MIT
"""Nets built by hand with numpy's operators and functions: each against numpy itself."""
import math
import operator
import re
import threading
import warnings

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import layout  # noqa: E402
import tandem_infer as ti  # noqa: E402
from tandem_infer import netfuncs, netnumpy, netops  # noqa: E402

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def check(function, *arrays, rtol=2e-5, atol=1e-6):
    """The same function of arrays and of values of a net with these as inputs."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = function(*arrays)
    net = ti.Net()
    values = [net.input(f"x{i}", array.shape, array.dtype) for i, array in enumerate(arrays)]
    made = function(*values)
    assert isinstance(made, ti.Value), f"{made!r}"
    assert made.dtype == want.dtype and made.shape == want.shape, (made, want.dtype, want.shape)
    got = net.compile(made)(*arrays)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind == "f":
        tolerance = 1e-2 if want.dtype == "float16" else rtol
        np.testing.assert_allclose(got, want, tolerance, max(atol, tolerance * 0.1 if want.dtype ==
                                                             "float16" else atol))
    else:
        np.testing.assert_array_equal(got, want)


def draw(seed, shape, dtype="float32", low=-3, high=3):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else low, high + 1, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


def test_numbers_of_operations_are_those_of_the_header():
    header = layout.INCLUDE / "tandem" / "net-list.h"
    if not header.exists():
        pytest.skip("no headers beside the package")
    content = header.read_text()
    lists = {"DTYPE": {kind.name: int(kind) for kind in ti.DType}, "UNARY": netfuncs.UNARY,
             "BINARY": netfuncs.BINARY, "REDUCE": netops.REDUCE, "PAD": netops.PAD,
             "POOL": netops.POOL, "NORM": netops.NORM}
    for name, numbers in lists.items():
        part = re.search(rf"#define TANDEM_{name}_LIST\(X\)((?:.*\\\n)*.*\n)", content).group(1)
        assert {word: int(n) for word, n in re.findall(r"X\((\w+), (\d+)\)", part)} == numbers


def test_values_move_as_a_function_says():
    values = draw(3, (4, 6))
    net = ti.Net()
    x = net.input("x", (4, 6))
    flipped = x.reindex(lambda i, j: (j, 5 - i), (6, 4), "flip")
    squares = x.reindex(lambda i: (i * i % 4, i), (5,), "squares")
    compiled = net.compile(flipped, squares)
    got = compiled(values)
    np.testing.assert_array_equal(got[0], values[:, ::-1].T)
    np.testing.assert_array_equal(got[1], [values[i * i % 4, i] for i in range(5)])
    other = ti.Net()
    y = other.input("y", (4,))
    with pytest.raises(ZeroDivisionError):
        y.reindex(lambda i: (0 // (i - 2),), (4,))
    with pytest.raises(ValueError, match="expected 1 indices"):
        y.reindex(lambda i: (i, i), (4,))
    with pytest.raises(ValueError):
        y.reindex(lambda i: (i + 1,), (4,))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ("float16", "bool"))
@pytest.mark.parametrize("name", "add sub mul truediv floordiv mod pow and_ or_ xor lt le gt ge eq "
                         "ne".split())
def test_operators_are_numpys(name, dtype):
    of = getattr(operator, name)
    low, high = (1, 3) if name == "pow" else (-7, 7)
    a, b = draw(1, (3, 4), dtype, low, high), draw(2, (4,), dtype, low, high)
    b = np.where(b == 0, b.dtype.type(1), b)
    try:
        of(a, b)
    except TypeError:
        net = ti.Net()
        with pytest.raises(TypeError):
            of(net.input("a", a.shape, dtype), net.input("b", b.shape, dtype))
        return
    check(of, a, b)
    check(lambda x: of(x, b), a)
    check(lambda x: of(b, x), a)
    if dtype != "bool":
        check(lambda x: of(x, 2), a)
        check(lambda x: of(2, x), np.abs(a) + 1)


@pytest.mark.parametrize("name", sorted(netfuncs.UFUNCS))
@pytest.mark.parametrize("dtype", ("float32", "float64", "int32", "uint8", "bool", "float16"))
def test_universal_functions_are_numpys(name, dtype):
    ufunc = getattr(np, name)
    if name == "matmul":
        check(ufunc, draw(1, (2, 3, 4), dtype), draw(2, (4, 5), dtype))
        return
    low, high = (1, 4) if name in ("arccosh", "power", "float_power") else (-0.9, 0.9) if name in (
        "arcsin", "arccos", "arctanh", "log1p") else (0.1, 4) if name.startswith("log") or name in (
            "sqrt", "left_shift", "right_shift") else (-3, 3)
    if np.dtype(dtype).kind in "iu":
        low, high = int(np.ceil(low)), int(high)
    arrays = [draw(i, (5, 7), dtype, low, high) for i in range(ufunc.nin)]
    try:
        with np.errstate(all="ignore"):
            want = ufunc(*arrays)
    except TypeError:
        net = ti.Net()
        with pytest.raises(TypeError):
            ufunc(*[net.input(str(i), array.shape, dtype) for i, array in enumerate(arrays)])
        return
    if np.dtype(dtype).kind in "iu" and name in ("floor_divide", "remainder", "fmod", "reciprocal"):
        arrays[-1] = np.where(arrays[-1] == 0, arrays[-1].dtype.type(1), arrays[-1])
    if name in ("divide", "true_divide", "reciprocal") or want.dtype.kind != "f":
        arrays[-1] = np.where(arrays[-1] == 0, arrays[-1].dtype.type(1), arrays[-1])
    check(ufunc, *arrays)


def test_small_arguments_keep_their_digits():
    x = np.array([1e-6, -3e-5, 1e-3, 0.3, 5], "float64")
    check(np.expm1, x, rtol=1e-13, atol=0)
    check(np.log1p, x, rtol=1e-13, atol=0)
    check(np.logaddexp, x, x[::-1].copy(), rtol=1e-13, atol=0)


def test_not_a_number_and_infinity_go_through():
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1], "float32")
    for of in (np.isnan, np.isinf, np.isfinite, np.exp, np.abs, lambda v: np.fmax(v, 2),
               lambda v: np.fmin(2, v), lambda v: np.maximum(v, 0), lambda v: v == v, lambda v: v != v,
               lambda v: np.where(np.isnan(v), 7, v), lambda v: v.max(), lambda v: np.sum(v)):
        check(of, x)


@pytest.mark.parametrize("keepdims", (False, True))
@pytest.mark.parametrize("axis", (None, 0, -1, (0, 2), 1))
@pytest.mark.parametrize("name", "sum mean max min prod var std any all".split())
def test_reductions_are_numpys(name, axis, keepdims):
    for dtype in ("float32", "int32", "uint8", "bool", "float16", "float64"):
        x = draw(5, (2, 3, 4), dtype, 1, 2)
        check(lambda v, of=name: getattr(np, of)(v, axis=axis, keepdims=keepdims), x)
        check(lambda v, of=name: getattr(v, of)(axis=axis, keepdims=keepdims), x)


def test_functions_of_axes_are_numpys():
    x = draw(6, (3, 4, 5))
    for of in (np.argmax, np.argmin):
        for axis in (None, 0, -1):
            check(lambda v, f=of, a=axis: f(v, a), x)
            check(lambda v, f=of, a=axis: f(v, axis=a, keepdims=True), x)
    for axis in (0, 1, -1):
        check(lambda v, a=axis: np.cumsum(v, a), x)
        check(lambda v, a=axis: np.sort(v, a), x)
        check(lambda v, a=axis: np.argsort(v, axis=a), x)
    check(np.cumsum, x)
    check(lambda v: np.add.reduce(v, axis=1), x)


@pytest.mark.parametrize("key", [
    0, -1, slice(1, 3), slice(None, None, -1), slice(3, 0, -2), (1, 2), (slice(None), 1), ...,
    (..., 0), (0, ..., -1), None, (None, 1, ..., None), (slice(0, 0),), (slice(1, 3), slice(None), 2),
    [0, 2, -1], (slice(None), [1, 1, 0]), (1, [0, 3]), (..., np.array([[0, 1], [4, -5]]))])
def test_indices_are_numpys(key):
    check(lambda v: v[key], draw(7, (3, 4, 5)))


def test_wrong_indices_are_refused_as_numpy_does():
    x = ti.Net().input("x", (3, 4))
    for key in (3, -4, (0, 0, 0), (..., ...), "a", 1.5, True, [5], ([0], [1]), [True, False, True],
                (0, slice(None), None, [0]), np.array([0.5])):
        with pytest.raises(IndexError):
            x[key]
    y = ti.Net().input("x", (3, 4, 5))
    with pytest.raises(IndexError, match="side by side"):
        y[0, :, [1, 2]]
    assert [one.shape for one in x] == [(4,)] * 3 and len(x) == 3


def test_shapes_are_changed_as_numpy_does():
    x = draw(8, (2, 3, 4))
    for of in (lambda v: v.reshape(6, 4), lambda v: v.reshape((4, -1)), lambda v: np.reshape(v, (24,)),
               lambda v: v.T, lambda v: v.transpose(1, 0, 2), lambda v: np.transpose(v, (2, 0, 1)),
               lambda v: np.swapaxes(v, 0, -1), lambda v: v.swapaxes(1, 2), np.ravel,
               lambda v: v.flatten(), lambda v: np.expand_dims(v, 1), lambda v: np.expand_dims(v, (0, -1)),
               lambda v: np.squeeze(np.expand_dims(v, 1)), lambda v: np.moveaxis(v, 0, -1),
               lambda v: np.broadcast_to(v[:, :1], (5, 2, 3, 4)[1:]), lambda v: np.flip(v, 1),
               lambda v: np.flip(v), lambda v: np.tile(v, (1, 2)), lambda v: np.tile(v, 2),
               lambda v: np.pad(v, 1), lambda v: np.pad(v, ((0, 1), (2, 0), (1, 1)), constant_values=5),
               lambda v: np.pad(v, 1, mode="edge"), lambda v: np.pad(v, 1, "reflect"),
               lambda v: np.pad(v, 1, "wrap"), lambda v: np.concatenate([v, v], 1),
               lambda v: np.concatenate([v, v], None), lambda v: np.stack([v, v * 2], -1),
               lambda v: np.vstack([v, v]), lambda v: np.hstack([v, v]), lambda v: np.split(v, 2, 2)[1],
               lambda v: np.split(v, [1, 2], 1)[2], np.tril, lambda v: np.triu(v, 1),
               lambda v: np.zeros_like(v) + v, np.ones_like, lambda v: np.full_like(v, 3),
               lambda v: np.take(v, [[0, 1], [1, -1]], 1), lambda v: np.take(v, [3, 20]),
               lambda v: np.take_along_axis(v, np.argsort(v, -1), -1), lambda v: np.clip(v, -1, 0.5),
               lambda v: v.clip(0), lambda v: np.where(v > 0, v, -1), lambda v: np.round(v),
               lambda v: v.astype("int32"), lambda v: v.astype(bool), lambda v: v.astype("float64") / 3,
               lambda v: np.dot(v[0], v[1].T), lambda v: -v + +v, lambda v: abs(v) ** 0.5,
               lambda v: v @ np.ones((4, 2), "float32"), lambda v: np.ones((5, 3), "float32") @ v,
               lambda v: np.concatenate([v, v.astype("float64")]), lambda v: v * np.float64(2),
               lambda v: v * np.ones(4), lambda v: np.float32(2) - v, lambda v: v + [1, 2, 3, 4]):
        check(of, x)
    net = ti.Net()
    value = net.input("x", x.shape)
    assert np.shape(value) == value.shape and np.ndim(value) == 3 and np.size(value) == 24
    for name in netnumpy.FUNCTIONS:
        assert hasattr(np, name) or name in ("permute_dims", "concat", "matrix_transpose"), name


def reference_conv(x, w, stride, padding):
    x = np.pad(x, ((0, 0), (0, 0), padding[0], padding[1]))
    n, _, h, width = x.shape
    m, _, kh, kw = w.shape
    out = np.zeros((n, m, (h - kh) // stride + 1, (width - kw) // stride + 1))
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            part = x[:, :, i * stride:i * stride + kh, j * stride:j * stride + kw]
            out[:, :, i, j] = np.tensordot(part, w, ((1, 2, 3), (1, 2, 3)))
    return out


def test_layers_of_networks():
    x, w, b = draw(1, (2, 3, 8, 7)), draw(2, (5, 3, 3, 2)), draw(3, (5,))
    net = ti.Net()
    v = net.input("x", x.shape)
    want = reference_conv(x.astype("float64"), w.astype("float64"), 2, ((1, 0), (1, 1)))
    q = net.input("q", (2, 4, 8))
    found = net.compile(
        v.conv(w, b, stride=2, padding=((1, 0), (1, 1))), v.max_pool(2), v.mean_pool((2, 1), stride=1),
        v.softmax(1), v.relu(), v.sigmoid(), v.gelu(), v.gelu(True), v.silu(), v.erf(), v.layer_norm((-2, -1)),
        v.rms_norm(), q.attention(q, q))
    y = draw(9, (2, 4, 8))
    conv, largest, mean, soft, relu, sigmoid, gelu, gelu_tanh, silu, erf, layer, rms, attention = found(x, y)
    np.testing.assert_allclose(conv, want + b[:, None, None], 1e-4, 1e-4)
    np.testing.assert_array_equal(largest, x[:, :, :8, :6].reshape(2, 3, 4, 2, 3, 2).max((3, 5)))
    np.testing.assert_allclose(mean, (x[:, :, 1:] + x[:, :, :-1]) / 2, 1e-5, 1e-6)
    exps = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(soft, exps / exps.sum(1, keepdims=True), 1e-5, 1e-6)
    np.testing.assert_array_equal(relu, np.maximum(x, 0))
    np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-x)), 1e-5, 1e-6)
    np.testing.assert_allclose(silu, x / (1 + np.exp(-x)), 1e-5, 1e-6)
    phi = np.vectorize(math.erf)(x.astype("float64") / math.sqrt(2))
    np.testing.assert_allclose(erf, np.vectorize(math.erf)(x.astype("float64")), 1e-5, 1e-6)
    np.testing.assert_allclose(gelu, x / 2 * (1 + phi), 1e-4, 1e-5)
    np.testing.assert_allclose(gelu_tanh, gelu, 1e-2, 1e-2)
    mu = x.mean((2, 3), keepdims=True)
    np.testing.assert_allclose(layer, (x - mu) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5), 1e-4, 1e-5)
    np.testing.assert_allclose(rms, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5), 1e-4, 1e-5)
    scores = np.exp(y @ y.swapaxes(1, 2) / np.sqrt(8))
    np.testing.assert_allclose(attention, scores / scores.sum(-1, keepdims=True) @ y, 1e-4, 1e-5)


def test_a_wrong_call_is_a_clear_error_and_the_net_goes_on():
    net = ti.Net()
    x = net.input("x", (2, 3))
    for call in (lambda: x + np.ones(4, "float32"), lambda: x @ x, lambda: x.reshape(5),
                 lambda: x.conv(np.ones((1, 1, 1), "float32")), lambda: x.sum(2), lambda: x.reshape(-1, -1),
                 lambda: net.input("x", 3), lambda: net.input("a\0b", 3), lambda: x.transpose(0, 0),
                 lambda: x.squeeze(0), lambda: x + ti.Net().input("y", (2, 3)), lambda: net.compile(),
                 lambda: net.input("y", (1,) * 9), lambda: np.pad(x, 1, "linear_ramp"),
                 lambda: np.broadcast_to(x, (3, 3)), lambda: x.attention(x, x), lambda: net.input("y", -1)):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: bool(x), lambda: float(x), lambda: np.asarray(x), lambda: x + "a", lambda: x + None,
                 lambda: np.linalg.norm(x), lambda: np.frexp(x), lambda: np.add.accumulate(x),
                 lambda: net.compile(3), lambda: ti.Value(), lambda: net.input("y", "ab"),
                 lambda: net.input("y", 2, "complex64"), lambda: net.constant("abc"), lambda: x & x,
                 lambda: net.constant(object()), lambda: np.exp(x, where=True), lambda: hash([x]),
                 lambda: net.input("y", (2.5,)), lambda: __import__("pickle").dumps(x)):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert net.compile(x * 2)(np.ones((2, 3), "float32")).tolist() == [[2] * 3] * 2
    with pytest.raises(ti.TandemError):  # lowered
        x + 1


def test_inputs_are_converted_or_refused():
    net = ti.Net()
    compiled = net.compile(net.input("x", (2, 3)) + 1, n=net.input("n", (), "int64") * 2)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    for given in (x, x.astype("float64"), x.astype(">f4"), np.asfortranarray(x), x.tolist(),
                  np.tile(x, (1, 2))[:, ::-1][:, ::2] if False else x[::1, ::1], x.astype("int32"),
                  memoryview(x)):
        y, n = compiled(given, 3)
        assert (y == x + 1).all() and n == 6 and n.shape == ()
    y, _ = compiled(n=5, x=np.repeat(x, 2, 1)[:, ::2])
    assert (y == x + 1).all()
    for wrong in (x[:1], x.T, "abc", None, x.astype(complex), [["a"] * 3] * 2, object(), [[1, 2], [3]]):
        with pytest.raises((ValueError, TypeError), match="input|list|expected"):
            compiled(wrong, 3)
    for wrong in (2.5, 2**70, "3", [1]):
        with pytest.raises((ValueError, TypeError)):
            compiled(x, wrong)
    for call in (lambda: compiled(x), lambda: compiled(x, 1, 2), lambda: compiled(x, 3, y=1),
                 lambda: compiled(x, x=x), lambda: compiled(x, 3, out=np.empty(3))):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError, match="missing"):
        compiled(x)


def test_memory_is_shared_where_it_can_be():
    net = ti.Net()
    compiled = net.compile(y=net.input("x", (2, 3)) * 3)
    inside, outside = compiled.input_array("x"), compiled.output_array("y")
    inside[...] = 2
    compiled.compute()
    assert (outside == 6).all() and not outside.flags.writeable
    inside[0, 0] = 5
    compiled.compute()
    assert outside[0, 0] == 15
    out = np.empty((2, 3), "float32")
    assert compiled(np.ones((2, 3)), out=out) is out and (out == 3).all()
    gaps = np.zeros((2, 6), "float32")
    compiled(np.ones((2, 3)), out=gaps[:, ::2])
    assert gaps.tolist() == [[3, 0] * 3] * 2
    with pytest.raises(BufferError):
        compiled.close()
    del inside, outside
    compiled.close()
    assert compiled.closed
    with pytest.raises(ti.TandemError, match="closed"):
        compiled(np.ones((2, 3)))
    array = ti.Net().constant(3)  # noqa: F841  # a net that nobody keeps
    net = ti.Net()
    view = net.compile(net.input("x", 4) + 1).output_array()
    assert view.shape == (4,)  # the array keeps the net


def test_every_type_goes_in_and_out():
    for kind in ti.DType:
        net = ti.Net()
        x = net.input("x", (2, 0, 3), kind)
        s = net.input("s", (), kind)
        empty, one = net.compile(x.transpose(2, 0, 1), s.reshape(1))(np.zeros((2, 0, 3), kind.numpy),
                                                                     np.ones((), kind.numpy))
        assert empty.shape == (3, 2, 0) and empty.dtype == kind.numpy and one.tolist() == [1]
    net = ti.Net()  # bfloat16 as its bits
    x = net.input("x", 3, "bfloat16")
    y = net.compile(x + 1, (x + 1).astype("float32"))(np.array([0x3f80, 0x4000, 0xc000], "uint16"))
    assert y[0].tolist() == [0x4000, 0x4040, 0xbf80] and y[1].tolist() == [2, 3, -1]


def test_dlpack_goes_in_and_out():
    class Lender:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return 1, 0

    x = np.arange(12, dtype="float32").reshape(3, 4)
    shared = ti.from_dlpack(Lender(x))
    assert shared.ctypes.data == x.ctypes.data and (shared == x).all()
    assert (ti.from_dlpack(Lender(x.T)) == x.T).all()  # gaps: no copy either
    assert ti.from_dlpack(Lender(x > 3)).dtype == bool
    assert ti.from_dlpack(Lender(np.zeros((0, 2)))).shape == (0, 2)
    net = ti.Net()
    compiled = net.compile(net.input("x", (4, 3)) + net.constant(Lender(np.ones(3, "float32"))))
    assert (np.from_dlpack(compiled(Lender(x.T))) == x.T + 1).all()
    value = ti.OrtValue.from_dlpack(Lender(x))
    assert value.data_ptr() == x.ctypes.data and value.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(value).ctypes.data == x.ctypes.data
    with pytest.raises(TypeError, match="__dlpack__"):
        ti.from_dlpack(3)
    context = ti.Context()
    with pytest.raises(TypeError, match="bool"):
        context.from_dlpack(Lender(x > 3))


def test_progress_and_cancel():
    net = ti.Net()
    x = net.input("x", (64, 64))
    y = x
    for _ in range(30):
        y = np.tanh(y @ x)
    compiled = net.compile(y)
    seen = []
    a = np.ones((64, 64), "float32")
    compiled(a, progress=lambda done, total: seen.append((done, total)))
    assert seen and all(0 <= done <= total for done, total in seen)
    with pytest.raises(ti.TandemError) as caught:
        compiled(a, cancel=lambda: True)
    assert caught.value.status == "CANCELLED"
    with pytest.raises(ZeroDivisionError):
        compiled(a, cancel=lambda: 1 // 0)
    assert np.isfinite(compiled(a)).all() and "mul_mat" in compiled.explain()


def test_threads_compute_at_once():
    nets = []
    for i in range(3):
        net = ti.Net()
        x = net.input("x", (32, 32))
        nets.append(net.compile(x @ x + i, threads=1))
    a = draw(1, (32, 32))
    wrong = []

    def work(i):
        for _ in range(50):
            got = nets[i % 3](a)
            if not np.allclose(got, a @ a + i % 3, 1e-4, 1e-4):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_integer_division_by_zero_is_no_signal():
    for dtype in INTEGERS:
        net = ti.Net()
        a, b = net.input("a", 3, dtype), net.input("b", 3, dtype)
        compiled = net.compile(a // b, a % b, np.fmod(a, b))
        least = np.iinfo(dtype).min
        compiled(np.array([1, 0, least], dtype), np.array([0, 0, 0], dtype))
        if least < 0:
            compiled(np.array([1, 0, least], dtype), np.array([-1, -1, -1], dtype))
