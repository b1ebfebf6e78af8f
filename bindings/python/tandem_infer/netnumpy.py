# SPDX-License-Identifier: MIT
"""numpy's functions of arrays (numpy.sum, numpy.concatenate, ...) for values of nets. A function is a row
of a table."""
from ctypes import c_int
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy

from ._native import told
from .lowered import DType
from .netfuncs import axes_of, call, common_kind, is_value, operand, select
from .netops import PAD, Axes, extents_of, ints


def _net_of(values: Sequence[Any]) -> Any:
    return next(one.net for one in values if is_value(one))


def _joined(values: Sequence[Any]) -> List[Any]:
    """Values of one net and one type, the one that numpy joins them in."""
    net = _net_of(values)
    kind = common_kind(*values)
    return [operand(net, one, kind) for one in values]


def _concatenate(arrays: Sequence[Any], axis: Optional[int] = 0) -> Any:
    values = _joined(arrays)
    if axis is None:
        values, axis = [one.ravel() for one in values], 0
    at, = axes_of(axis, len(values[0].shape))
    return values[0].net._build("concat", ints([one._number for one in values], c_int), len(values), at)


def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    values = _joined(arrays)
    at, = axes_of(axis, len(values[0].shape) + 1)
    return _concatenate([_expand_dims(one, at) for one in values], at)


def _expand_dims(a: Any, axis: Any) -> Any:
    n = len(a.shape) + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    new = axes_of(axis, n)
    rest = iter(a.shape)
    return a.reshape(tuple(1 if i in new else next(rest) for i in range(n)))


def _where(condition: Any, x: Any, y: Any) -> Any:
    net = _net_of((condition, x, y))
    kind = common_kind(x, y)
    test = condition.astype(bool) if is_value(condition) else net.constant(condition, bool)
    return select(test, operand(net, x, kind), operand(net, y, kind))


def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    n = len(a.shape)
    sources, targets = axes_of(source, n), axes_of(destination, n)
    order = [i for i in range(n) if i not in sources]
    for target, one in sorted(zip(targets, sources)):
        order.insert(target, one)
    return a.transpose(*order)


def _pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    name = mode.upper()
    if name not in PAD:
        raise ValueError(f"pad: mode {told(mode)}, expected one of {', '.join(PAD).lower()}")
    n = len(array.shape)
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (n, 2))
    filler = operand(array.net, constant_values, array.kind)._number if name == "CONSTANT" else -1
    return array.net._build("pad", PAD[name], array._number, ints(widths[:, 0].tolist()),
                            ints(widths[:, 1].tolist()), filler)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> List[Any]:
    at, = axes_of(axis, len(ary.shape))
    n = ary.shape[at]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0 or n % indices_or_sections != 0:
            raise ValueError(f"split: {n} values in {indices_or_sections} parts, expected equal ones")
        step = n // indices_or_sections
        ends = [i * step for i in range(indices_or_sections + 1)]
    else:
        ends = [0, *indices_or_sections, n]
    return [ary[(slice(None),) * at + (slice(a, b),)] for a, b in zip(ends, ends[1:])]


def _tile(a: Any, reps: Any) -> Any:
    times = extents_of(reps, "tile")
    n = max(len(times), len(a.shape))
    times = (1,) * (n - len(times)) + times
    x = a.reshape((1,) * (n - len(a.shape)) + a.shape)
    for axis, n_times in enumerate(times):
        x = _concatenate([x] * n_times, axis) if n_times > 1 else x[
            (slice(None),) * axis + (slice(0, x.shape[axis] * n_times),)]
    return x


def _flip(m: Any, axis: Axes = None) -> Any:
    gone = axes_of(axis, len(m.shape))
    return m[tuple(slice(None, None, -1 if i in gone else 1) for i in range(len(m.shape)))]


def _like(value: Any) -> Callable[..., Any]:
    def made(a: Any, *given: Any, dtype: Any = None, **_: Any) -> Any:
        number = given[0] if value is None else value
        return a.net.constant(numpy.full(a.shape, number, a.dtype if dtype is None else dtype))
    return made


def _triangle(is_upper: bool) -> Callable[..., Any]:
    def made(m: Any, k: int = 0) -> Any:
        rows, columns = m.shape[-2:]
        mask = numpy.tri(rows, columns, k - 1 if is_upper else k, bool)
        zero = m.net.constant(numpy.zeros((), m.dtype)).astype(m.kind)
        return _where(~mask if is_upper else mask, m, zero)
    return made


def _method(name: str) -> Callable[..., Any]:
    def made(a: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_value(a):
            raise TypeError(f"{name}: {told(a)}, expected a value of a net")
        return getattr(a, name)(*args, **kwargs)
    return made


FUNCTIONS: Dict[str, Callable[..., Any]] = {
    **{name: _method(name) for name in (
        "reshape", "transpose", "swapaxes", "squeeze", "ravel", "broadcast_to", "sum", "prod", "max", "min",
        "mean", "var", "std", "any", "all", "argmax", "argmin", "argsort", "sort", "cumsum", "clip", "take",
        "take_along_axis", "dot", "round")},
    "amax": _method("max"), "amin": _method("min"), "permute_dims": _method("transpose"),
    "concatenate": _concatenate, "concat": _concatenate, "stack": _stack, "expand_dims": _expand_dims,
    "where": _where, "moveaxis": _moveaxis, "pad": _pad, "split": _split, "tile": _tile, "flip": _flip,
    "tril": _triangle(False), "triu": _triangle(True), "zeros_like": _like(0), "ones_like": _like(1),
    "full_like": _like(None), "matrix_transpose": lambda x: x.mT,
    "vstack": lambda tup: _concatenate([one if len(one.shape) > 1 else one[None] for one in tup]),
    "hstack": lambda tup: _concatenate(list(tup), 1 if len(tup[0].shape) > 1 else 0),
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim, "size": lambda a: a.size,
    "square": lambda x: call(numpy.square, x),
}
