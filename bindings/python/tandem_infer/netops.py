# SPDX-License-Identifier: MIT
"""Operators and methods of values of nets, as numpy's arrays have them, and what neural networks need
beside them. Needs numpy."""
import ctypes
import operator
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy

from . import _native
from ._native import told
from .lowered import DType, dtype_of
from .netfuncs import apply_ufunc, axes_of, binary, call, cast, is_value, operand, scalar, unary

# Numbers of the lists in tandem/net-list.h, whose order tests/test_nets.py compares.
REDUCE = {name: i for i, name in enumerate("SUM PROD MAX MIN".split())}
PAD = {name: i for i, name in enumerate("CONSTANT EDGE REFLECT WRAP".split())}
POOL = {name: i for i, name in enumerate("MAX ARG_MAX SUM".split())}
NORM = {name: i for i, name in enumerate("LAYER RMS".split())}

Axes = Union[None, int, Sequence[int]]
_FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)


def ints(values: Sequence[int], kind: Any = ctypes.c_int64) -> Any:
    """An array for C."""
    return (kind * max(len(values), 1))(*values)


def extents_of(shape: Any, what: str) -> Tuple[int, ...]:
    """Extents: integers, or one tuple of them."""
    if isinstance(shape, (tuple, list)) and len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    try:
        return tuple(operator.index(one) for one in (
            shape if isinstance(shape, (tuple, list)) else (shape,)))
    except TypeError:
        raise TypeError(f"{what}: {told(shape)}, expected integers") from None


def _binary(ufunc: Any) -> Tuple[Callable[..., Any], Callable[..., Any]]:
    return (lambda self, other: call(ufunc, self, other)), (lambda self, other: call(ufunc, other, self))


class Operators:
    """What ``Value`` can do."""

    _what = "value"

    net: Any
    _number: int
    kind: DType
    dtype: Any
    shape: Tuple[int, ...]

    __hash__ = object.__hash__
    __add__, __radd__ = _binary(numpy.add)
    __sub__, __rsub__ = _binary(numpy.subtract)
    __mul__, __rmul__ = _binary(numpy.multiply)
    __truediv__, __rtruediv__ = _binary(numpy.true_divide)
    __floordiv__, __rfloordiv__ = _binary(numpy.floor_divide)
    __mod__, __rmod__ = _binary(numpy.remainder)
    __pow__, __rpow__ = _binary(numpy.power)
    __matmul__, __rmatmul__ = _binary(numpy.matmul)
    __and__, __rand__ = _binary(numpy.bitwise_and)
    __or__, __ror__ = _binary(numpy.bitwise_or)
    __xor__, __rxor__ = _binary(numpy.bitwise_xor)
    __lshift__, __rlshift__ = _binary(numpy.left_shift)
    __rshift__, __rrshift__ = _binary(numpy.right_shift)
    __lt__, __gt__ = _binary(numpy.less)[0], _binary(numpy.greater)[0]
    __le__, __ge__ = _binary(numpy.less_equal)[0], _binary(numpy.greater_equal)[0]

    def __eq__(self, other: Any) -> Any:
        return call(numpy.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return call(numpy.not_equal, self, other)

    def __neg__(self) -> Any:
        return call(numpy.negative, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return call(numpy.absolute, self)

    def __invert__(self) -> Any:
        return call(numpy.invert, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        from .netnumpy import FUNCTIONS
        made = FUNCTIONS.get(function.__name__)
        if made is None:
            raise TypeError(f"numpy.{function.__name__}: not for values of nets, expected one of "
                            f"{', '.join(sorted(FUNCTIONS))}, or a universal function")
        return made(*args, **kwargs)

    def _build(self, name: str, *arguments: Any) -> Any:
        return self.net._build(name, self._number, *arguments)

    # ---- views ----

    def astype(self, dtype: Any) -> Any:
        """Values of another type: floats towards zero, everything but 0 is true."""
        return cast(self, dtype_of(dtype))

    def reshape(self, *shape: Any) -> Any:
        """The same values in the same order; -1: as many as remain."""
        extents = list(extents_of(shape, "reshape"))
        if extents.count(-1) == 1:
            known, n = 1, 1
            for one in extents:
                known *= one if one != -1 else 1
            for one in self.shape:
                n *= one
            if known <= 0 or n % known != 0:
                raise ValueError(f"reshape: {n} values to {tuple(extents)}, expected a multiple of {known}")
            extents[extents.index(-1)] = n // known
        return self._build("reshape", len(extents), ints(extents))

    def reindex(self, function: Callable[..., Sequence[int]], shape: Any, name: str = "") -> Any:
        """result[i, j, ..] = value[function(i, j, ..)]. The function is asked once for each index,
        now. A view where strides can say it, else a gather that plans call "reindex NAME"."""
        from .runtime import _Callbacks
        extents = extents_of((shape,), "shape")
        n_from, n_to = len(self.shape), len(extents)

        def ask(at: Any, place: Any) -> None:
            found = function(*at[:n_to])
            if len(found) != n_from:
                raise ValueError(f"reindex: {tuple(found)}, expected {n_from} indices")
            for i, one in enumerate(found):
                place[i] = operator.index(one)

        callbacks = _Callbacks()
        address = callbacks.wrap(_native.ReindexFn, ask, None)
        try:
            return self._build("reindex", n_to, ints(extents), address, None, name)
        finally:
            if callbacks.raised is not None:
                raise callbacks.raised

    def transpose(self, *axes: Any) -> Any:
        """Other order of dimensions; default: reversed."""
        n = len(self.shape)
        if not axes or axes == (None,):
            order = list(range(n))[::-1]
        else:
            order = list(axes_of(extents_of(axes, "transpose"), n))
        if len(order) != n:
            raise ValueError(f"transpose: axes {tuple(axes)}, expected all {n}")
        return self._build("permute", ints(order, ctypes.c_int))

    @property
    def T(self) -> Any:
        """Dimensions in reversed order."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The last two dimensions swapped."""
        return self.swapaxes(-1, -2)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Two dimensions swapped."""
        a, = axes_of(axis1, len(self.shape))
        b, = axes_of(axis2, len(self.shape))
        order = list(range(len(self.shape)))
        order[a], order[b] = b, a
        return self.transpose(*order) if order else self

    def squeeze(self, axis: Axes = None) -> Any:
        """Without dimensions of extent 1."""
        n = len(self.shape)
        gone = [i for i in range(n) if self.shape[i] == 1] if axis is None else axes_of(axis, n)
        if any(self.shape[i] != 1 for i in gone):
            raise ValueError(f"squeeze: shape {self.shape}, axis {axis}: expected extents of 1")
        return self.reshape(tuple(one for i, one in enumerate(self.shape) if i not in gone))

    def ravel(self) -> Any:
        """One dimension."""
        return self.reshape(-1)

    flatten = ravel

    def broadcast_to(self, shape: Any) -> Any:
        """Repeated along dimensions of extent 1, and in front."""
        extents = extents_of(shape, "broadcast_to")
        return self._build("expand", len(extents), ints(extents))

    def __getitem__(self, key: Any) -> Any:
        from .netindex import take_index
        return take_index(self, key)

    # ---- along axes ----

    def _reduce(self, kind: str, axis: Axes, keepdims: bool) -> Any:
        axes = axes_of(axis, len(self.shape))
        if not axes:
            return self
        return self.net._build("reduce", REDUCE[kind], self._number, ints(axes, ctypes.c_int),
                               len(axes), bool(keepdims))

    def sum(self, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Sum; small integers become int64."""
        return self._added(dtype)._reduce("SUM", axis, keepdims)

    def prod(self, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Product; small integers become int64."""
        return self._added(dtype)._reduce("PROD", axis, keepdims)

    def _added(self, dtype: Any) -> Any:
        """In the type in which numpy adds."""
        if dtype is None and self.kind not in _FLOATS:
            dtype = numpy.ones(1, self.dtype).sum().dtype
        return self if dtype is None else self.astype(dtype)

    def max(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """The largest value; NaN if there is one."""
        return self._reduce("MAX", axis, keepdims) if self.kind != DType.BOOL else self.any(axis, keepdims)

    def min(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """The smallest value; NaN if there is one."""
        return self._reduce("MIN", axis, keepdims) if self.kind != DType.BOOL else self.all(axis, keepdims)

    def any(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Whether some are not 0."""
        truths = cast(cast(self, DType.BOOL), DType.U8)
        return cast(truths._reduce("MAX", axis, keepdims), DType.BOOL)

    def all(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Whether none is 0."""
        truths = cast(cast(self, DType.BOOL), DType.U8)
        return cast(truths._reduce("MIN", axis, keepdims), DType.BOOL)

    def _count(self, axis: Axes) -> int:
        n = 1
        for one in axes_of(axis, len(self.shape)):
            n *= self.shape[one]
        return n

    def mean(self, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Mean; of integers in float64."""
        kind = DType.F64 if dtype is None and self.kind not in _FLOATS else self.kind
        x = self.astype(dtype if dtype is not None else kind)
        wide = cast(x, DType.F32) if x.kind in (DType.F16, DType.BF16) else x
        total = wide._reduce("SUM", axis, keepdims)
        return cast(binary("DIV", total, scalar(total, self._count(axis))), x.kind)

    def var(self, axis: Axes = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Variance: sum of squared differences from the mean over n - ddof."""
        kind = DType.F64 if dtype is None and self.kind not in _FLOATS else self.kind
        x = self.astype(dtype if dtype is not None else kind)
        wide = cast(x, DType.F32) if x.kind in (DType.F16, DType.BF16) else x
        gap = wide - wide.mean(axis, keepdims=True)
        total = (gap * gap)._reduce("SUM", axis, keepdims)
        return cast(binary("DIV", total, scalar(total, self._count(axis) - ddof)), x.kind)

    def std(self, axis: Axes = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Square root of the variance."""
        return unary("SQRT", self.var(axis, dtype, ddof, keepdims))

    def _arg(self, is_max: bool, axis: Optional[int], keepdims: bool) -> Any:
        x, n = (self, len(self.shape)) if axis is not None else (self.ravel(), 1)
        at, = axes_of(0 if axis is None else axis, n)
        found = x.net._build("arg_reduce", is_max, x._number, at)
        if keepdims:
            return found if axis is not None else found.reshape((1,) * len(self.shape))
        return found.squeeze(at)

    def argmax(self, axis: Optional[int] = None, keepdims: bool = False) -> Any:
        """Index (int64) of the first of the largest values."""
        return self._arg(True, axis, keepdims)

    def argmin(self, axis: Optional[int] = None, keepdims: bool = False) -> Any:
        """Index (int64) of the first of the smallest values."""
        return self._arg(False, axis, keepdims)

    def argsort(self, axis: int = -1, descending: bool = False) -> Any:
        """Indices (int64) that sort; equal values keep their order."""
        at, = axes_of(axis, len(self.shape))
        return self._build("arg_sort", at, bool(descending))

    def sort(self, axis: int = -1, descending: bool = False) -> Any:
        """Sorted values (a new value, as numpy.sort gives)."""
        return self.take_along_axis(self.argsort(axis, descending), axis)

    def cumsum(self, axis: Optional[int] = None, dtype: Any = None) -> Any:
        """Running sum."""
        x = self._added(dtype)
        x = x.ravel() if axis is None else x
        at, = axes_of(0 if axis is None else axis, len(x.shape))
        return x._build("scan", at)

    # ---- moving values ----

    def take(self, indices: Any, axis: Optional[int] = None) -> Any:
        """Rows of an axis by integers of any shape, which may count from the end."""
        x = self.ravel() if axis is None else self
        at, = axes_of(0 if axis is None else axis, len(x.shape))
        return x._build("gather", self._indices(indices, x.shape[at])._number, at)

    def take_along_axis(self, indices: Any, axis: int) -> Any:
        """One value an index along an axis, the other dimensions in step."""
        at, = axes_of(axis, len(self.shape))
        return self._build("gather_elements", self._indices(indices, self.shape[at])._number, at)

    def _indices(self, given: Any, n: int) -> Any:
        if is_value(given):
            if given.net is not self.net:
                raise ValueError("indices of another net, expected those of one")
            if given.kind in _FLOATS or given.kind == DType.BOOL:
                raise IndexError(f"indices of {given.kind.name}, expected integers")
            return given if given.kind in (DType.I32, DType.I64) else cast(given, DType.I64)
        array = numpy.asarray(given)
        if array.dtype.kind not in "iu":
            raise IndexError(f"indices of {array.dtype}, expected integers")
        if array.size and (array.max() >= n or array.min() < -n):
            raise IndexError(f"indices {array.min()} to {array.max()}, expected {-n} to {n - 1}")
        return self.net.constant(array.astype("int64"))

    def clip(self, a_min: Any = None, a_max: Any = None) -> Any:
        """Not below and not above bounds; None: no bound."""
        x: Any = self
        x = x if a_min is None else call(numpy.maximum, x, a_min)
        return x if a_max is None else call(numpy.minimum, x, a_max)

    def round(self) -> Any:
        """To whole numbers, halves to even."""
        return call(numpy.rint, self) if self.kind in _FLOATS else self

    def dot(self, other: Any) -> Any:
        """As numpy.dot of up to 2 dimensions."""
        return call(numpy.matmul, self, other)

    # ---- neural networks ----

    def softmax(self, axis: int = -1) -> Any:
        """exp(x - max) / sum along an axis."""
        return self._build("softmax", axes_of(axis, len(self.shape))[0])

    def relu(self) -> Any:
        """max(x, 0)."""
        return binary("MAX", self, scalar(self, 0))

    def sigmoid(self) -> Any:
        """1 / (1 + exp(-x))."""
        return unary("RECIPROCAL", binary("ADD", unary("EXP", unary("NEG", self)), scalar(self, 1)))

    def gelu(self, approximate: bool = False) -> Any:
        """x Phi(x), or its approximation by tanh."""
        return unary("GELU_TANH" if approximate else "GELU", self)

    def hard_swish(self) -> Any:
        """x * min(max(x + 3, 0), 6) / 6."""
        return unary("HARD_SWISH", self)

    def silu(self) -> Any:
        """x / (1 + exp(-x))."""
        return unary("SILU", self)

    def erf(self) -> Any:
        """The error function."""
        return unary("ERF", self)

    def _norm(self, kind: str, axes: Axes, epsilon: float) -> Any:
        found = axes_of(axes, len(self.shape))
        return self.net._build("norm", NORM[kind], self._number, ints(found, ctypes.c_int), len(found),
                               epsilon)

    def layer_norm(self, axes: Axes = -1, epsilon: float = 1e-5) -> Any:
        """(x - mean) / sqrt(variance + epsilon) over axes."""
        return self._norm("LAYER", axes, epsilon)

    def rms_norm(self, axes: Axes = -1, epsilon: float = 1e-5) -> Any:
        """x / sqrt(mean of squares + epsilon) over axes."""
        return self._norm("RMS", axes, epsilon)

    def attention(self, k: Any, v: Any, mask: Any = None, scale: Optional[float] = None) -> Any:
        """softmax(q k^T scale + mask) v of q {B, M, D}, k {B, N, D}, v {B, N, E}, mask {B, M, N}, to
        {B, M, E}. ``scale``: default 1 / sqrt(D)."""
        numbers = [operand(self.net, one, self.kind)._number for one in (k, v)]
        hidden = -1 if mask is None else operand(self.net, mask, self.kind)._number
        factor = self.shape[-1] ** -0.5 if scale is None and self.shape and self.shape[-1] else scale
        return self._build("attention", *numbers, hidden, 1.0 if factor is None else factor)

    def conv(self, weights: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
             groups: int = 1) -> Any:
        """x {N, C, ...} with weights {M, C / groups, ...} and a bias {M}, to {N, M, ...}. ``padding``: a
        number, one a dimension, or (in front, behind) each."""
        w = operand(self.net, weights, self.kind)
        window = self._window(None, stride, padding, dilation, groups)
        y = self._build("conv", w._number, ctypes.byref(window))
        if bias is not None:
            b = operand(self.net, bias, self.kind)
            y = binary("ADD", y, b.reshape((-1,) + (1,) * (len(y.shape) - 2)))
        return y

    def max_pool(self, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Any:
        """The largest values of windows of x {N, C, ...}; ``stride``: default the size."""
        window = self._window(size, size if stride is None else stride, padding, dilation, 1)
        return self.net._build("pool", POOL["MAX"], self._number, ctypes.byref(window))

    def mean_pool(self, size: Any, stride: Any = None, padding: Any = 0) -> Any:
        """Means of windows of x {N, C, ...}; padding counts as zeros."""
        window = self._window(size, size if stride is None else stride, padding, 1, 1)
        total = self.net._build("pool", POOL["SUM"], self._number, ctypes.byref(window))
        n = 1
        for one in window.extent[0:len(self.shape) - 2]:
            n *= one
        return binary("DIV", total, scalar(total, n))

    def _window(self, size: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        n = len(self.shape) - 2
        if not 1 <= n <= 3:
            raise ValueError(f"a window over shape {self.shape}, expected 3 to 5 dimensions")

        def each(given: Any, what: str) -> List[int]:
            found = extents_of(given, what)
            found = found * n if len(found) == 1 else found
            if len(found) != n:
                raise ValueError(f"{what}: {told(given)}, expected {n} integers or one")
            return list(found)

        is_pairs = isinstance(padding, (tuple, list)) and any(
            isinstance(one, (tuple, list)) for one in padding)
        if is_pairs and (len(padding) != n or any(len(extents_of(one, "padding")) != 2
                                                  for one in padding)):
            raise ValueError(f"padding: {told(padding)}, expected {n} pairs")
        before = each([p[0] for p in padding] if is_pairs else padding, "padding")
        after = each([p[1] for p in padding] if is_pairs else padding, "padding")
        window = _native.filled(_native.NetWindow, groups=groups)
        for field, values in (("extent", [0] * n if size is None else each(size, "size")),
                              ("stride", each(stride, "stride")),
                              ("dilation", each(dilation, "dilation")), ("before", before),
                              ("after", after)):
            getattr(window, field)[0:n] = [_native.KINDS[ctypes.c_int64].check(one, field, [])
                                           for one in values]
        return window
