# SPDX-License-Identifier: MIT
"""Models whose extents depend on computed values, or change: judged by numpy, and by ONNX Runtime where
onnx is installed."""
import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import tandem_infer as ort  # noqa: E402
from onnxfile import model, node  # noqa: E402

W = np.random.default_rng(1).standard_normal((64, 64)).astype("float32")


def test_many_extents_have_one_set_of_weights_and_the_same_values():
    made = model([node("MatMul", ["x", "w"], ["y"])], [("x", "float32", ["n", 64])],
                 [("y", "float32", ["n", 64])], [("w", W)])
    with ort.InferenceSession(made) as session:
        for _ in range(2):
            for n in list(range(1, 40)) + [3, 1]:
                x = np.random.default_rng(n).standard_normal((n, 64)).astype("float32")
                np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ W, 1e-4, 1e-4)


def test_places_that_are_not_zero_are_found_for_other_values():
    made = model([node("Exp", ["x"], ["e"]), node("NonZero", ["x"], ["p"]), node("MatMul", ["e", "w"],
                                                                                ["y"])],
                 [("x", "float32", ["n", 64])], [("p", "int64", [2, "k"]), ("y", "float32", ["n", 64])],
                 [("w", W)])
    with ort.InferenceSession(made) as session:
        rng = np.random.default_rng(2)
        for n in (1, 2, 3, 2, 2, 2, 1):
            x = (rng.standard_normal((n, 64)) * (rng.random((n, 64)) < 0.2)).astype("float32")
            p, y = session.run(None, {"x": x})
            assert p.tolist() == [axis.tolist() for axis in np.nonzero(x)]
            np.testing.assert_allclose(y, np.exp(x) @ W, 1e-3, 1e-3)
            p, y = session.run(None, {"x": x * 2})
            assert p.tolist() == [axis.tolist() for axis in np.nonzero(x)]
        assert session.run(None, {"x": np.zeros((3, 64), "float32")})[0].shape == (2, 0)


def test_a_limit_that_is_computed_makes_a_range():
    one = np.array(1, "int64")
    made = model([node("Mul", ["a", "b"], ["limit"]), node("Range", ["zero", "limit", "one"], ["r"]),
                  node("Cast", ["r"], ["f"], to=1), node("Mul", ["f", "x"], ["y"])],
                 [("a", "int64", []), ("b", "int64", []), ("x", "float32", [1])],
                 [("y", "float32", ["k"])], [("zero", one * 0), ("one", one)])
    with ort.InferenceSession(made) as session:
        for a, b in ((2, 3), (1, 1), (4, 5), (2, 3), (3, 2), (0, 7)):
            feed = {"a": np.array(a, "int64"), "b": np.array(b, "int64"), "x": np.array([2], "float32")}
            assert session.run(None, feed)[0].tolist() == [2.0 * i for i in range(a * b)]


@pytest.mark.parametrize("op", ["Unique", "Compress", "TopK"])
def test_extents_follow_other_values(op):
    x = np.array([3, 1, 0, 3, 5, 1, 2, 0], "float32")
    nodes = {
        "Unique": [node("Unique", ["x"], ["y", "at", "back", "n"])],
        "Compress": [node("Greater", ["x", "least"], ["is"]), node("Compress", ["x", "is"], ["y"])],
        "TopK": [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["k0"], to=7),
                 node("Reshape", ["k0", "list"], ["k"]), node("TopK", ["x", "k"], ["y", "i"])],
    }[op]
    made = model(nodes, [("x", "float32", [8])], [("y", "float32", ["k"])],
                 [("least", np.array(1.5, "float32")), ("list", np.array([1], "int64"))])
    with ort.InferenceSession(made) as session:
        for given in (x, x[::-1] * 1, np.minimum(x, 2), x, np.maximum(x, 2)):
            want = {"Unique": np.unique(given), "Compress": given[given > 1.5],
                    "TopK": np.sort(given)[::-1][:int(given.max())]}[op]
            assert session.run(None, {"x": given})[0].tolist() == want.tolist()
