# SPDX-License-Identifier: MIT
"""numpy's universal functions over values of nets: which operation computes each, in numpy's types. A
function is a row of a table. Needs numpy."""
import math
from typing import Any, Callable, Dict, List, Tuple

import numpy

from ._native import told
from .lowered import DType, array_of, dtype_of

# Numbers of the lists in tandem/net-list.h, whose order tests/test_nets.py compares.
UNARY = {name: i for i, name in enumerate((
    "NEG ABS SIGN EXP LOG SQRT RECIPROCAL SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH "
    "ERF FLOOR CEIL ROUND NOT IS_NAN IS_INF GELU GELU_TANH SILU HARD_SWISH").split())}
BINARY = {name: i for i, name in enumerate((
    "ADD SUB MUL DIV POW MOD FMOD MAX MIN AND OR XOR SHIFT_LEFT SHIFT_RIGHT EQUAL LESS "
    "LESS_EQUAL").split())}


def is_value(given: Any) -> bool:
    """Whether it is a value of a net (of the class that this module must not know)."""
    return getattr(type(given), "_what", "") == "value"


def unary(name: str, x: Any) -> Any:
    """An operation of one value."""
    return x.net._build("unary", UNARY[name], x._number)


def binary(name: str, a: Any, b: Any) -> Any:
    """An operation of two values of one type."""
    return a.net._build("binary", BINARY[name], a._number, b._number)


def cast(x: Any, kind: DType) -> Any:
    """The value as one of another type."""
    return x if x.kind == kind else x.net._build("cast", x._number, int(kind))


def scalar(x: Any, number: float) -> Any:
    """A number beside a value, in its type."""
    return x.net._build("scalar", int(x.kind), float(number))


def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition (BOOL) holds, else b; of one type."""
    return a.net._build("select", condition._number, a._number, b._number)


# ---- types as numpy finds them ----


def _sample(given: Any, n_dims: int) -> Any:
    """What has numpy find the types that an operand leads to."""
    if is_value(given):  # bfloat16 stands for float16, see _kind
        dtype = "float16" if given.kind == DType.BF16 else given.dtype
    else:
        if isinstance(given, (bool, int, float)) or numpy.ndim(given) == 0:
            return given  # (releases of numpy differ in what a number beside an array leads to)
        dtype = numpy.asarray(given).dtype
    return numpy.ones((1,) * n_dims, dtype)


def _kind(dtype: Any, inputs: Tuple[Any, ...]) -> DType:
    kinds = [one.kind for one in inputs if is_value(one)]
    if dtype == "float16" and DType.BF16 in kinds and DType.F16 not in kinds:
        return DType.BF16
    return dtype_of(dtype)


def kinds_of(ufunc: Any, inputs: Tuple[Any, ...], n_dims: int = 1) -> Tuple[DType, DType]:
    """Types that a function computes in and gives."""
    samples = [_sample(one, n_dims) for one in inputs]
    with numpy.errstate(all="ignore"):
        result = ufunc(*samples).dtype
    common = numpy.result_type(*samples) if result == bool else result
    return _kind(common, inputs), _kind(result, inputs)


def common_kind(*inputs: Any) -> DType:
    """The type that numpy joins arrays in."""
    return _kind(numpy.result_type(*[_sample(one, 1) for one in inputs]), inputs)


def operand(net: Any, given: Any, kind: DType) -> Any:
    """A value, or a constant of a number or an array, in a type."""
    if is_value(given):
        if given.net is not net:
            raise ValueError("values of two nets, expected those of one")
        return cast(given, kind)
    wide = DType.F32 if kind == DType.BF16 else kind
    return cast(net.constant(array_of(given, "constant", wide, "unsafe")), kind)


# ---- functions by numpy's names; their operands have the type that numpy computes in ----


def _for_bool(name: str, other: str) -> Callable[..., Any]:
    """An operation that is another one of truth values."""
    return lambda a, b: binary(other if a.kind == DType.BOOL else name, a, b)


def _is_float(x: Any) -> bool:
    return x.kind in (DType.F32, DType.F64, DType.F16, DType.BF16)


def _rounded(name: str) -> Callable[..., Any]:
    return lambda x: unary(name, x) if _is_float(x) else x


def _absolute(x: Any) -> Any:
    is_signed = _is_float(x) or x.kind in (DType.I8, DType.I16, DType.I32, DType.I64)
    return unary("ABS", x) if is_signed else x


def _invert(x: Any) -> Any:
    if x.kind == DType.BOOL:
        return unary("NOT", x)
    return binary("XOR", x, x.net.constant(numpy.array(-1).astype(x.dtype)))


def _negated(of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: unary("NOT", of(*operands))


def _truth(of: str) -> Callable[..., Any]:
    return lambda a, b: binary(of, cast(a, DType.BOOL), cast(b, DType.BOOL))


def _floor_divide(a: Any, b: Any) -> Any:
    """(a - a mod b) / b, which is an integer but for rounding."""
    quotient = binary("DIV", binary("SUB", a, binary("MOD", a, b)), b)
    return unary("ROUND", quotient) if _is_float(a) else quotient


def _near_zero(x: Any, near: Any, far: Any) -> Any:
    return select(binary("LESS", unary("ABS", x), scalar(x, 0.5)), near, far)


def _expm1(x: Any) -> Any:
    """2 exp(x/2) sinh(x/2) near 0, where exp(x) - 1 loses digits."""
    half = binary("MUL", x, scalar(x, 0.5))
    near = binary("MUL", binary("MUL", unary("EXP", half), unary("SINH", half)), scalar(x, 2))
    return _near_zero(x, near, binary("SUB", unary("EXP", x), scalar(x, 1)))


def _log1p(x: Any) -> Any:
    """2 artanh(x / (2 + x)) near 0, where log(1 + x) loses digits."""
    near = unary("ATANH", binary("DIV", x, binary("ADD", x, scalar(x, 2))))
    return _near_zero(x, binary("MUL", near, scalar(x, 2)),
                      unary("LOG", binary("ADD", x, scalar(x, 1))))


def _logaddexp(a: Any, b: Any) -> Any:
    gap = unary("NEG", unary("ABS", binary("SUB", a, b)))
    return binary("ADD", binary("MAX", a, b), _log1p(unary("EXP", gap)))


def _without_nan(name: str) -> Callable[..., Any]:
    """fmax and fmin: of a number and NaN the number."""
    def made(a: Any, b: Any) -> Any:
        found = binary(name, a, b)
        if _is_float(a):
            found = select(unary("IS_NAN", a), b, select(unary("IS_NAN", b), a, found))
        return found
    return made


def _scaled(factor: float, of: Callable[..., Any]) -> Callable[..., Any]:
    def made(x: Any) -> Any:
        found = of(x)
        return binary("MUL", found, scalar(found, factor))
    return made


def _plain(name: str) -> Callable[..., Any]:
    return lambda *operands: (unary if name in UNARY else binary)(name, *operands)


def _swapped(name: str) -> Callable[..., Any]:
    return lambda a, b: binary(name, b, a)


def _same(x: Any) -> Any:
    return x


def _as_bool(of: Callable[..., Any], otherwise: bool) -> Callable[..., Any]:
    """A test of floats; integers pass or fail all."""
    def made(x: Any) -> Any:
        if _is_float(x):
            return of(x)
        return x.net.constant(numpy.full(x.shape, otherwise))
    return made


_isnan, _isinf = _plain("IS_NAN"), _plain("IS_INF")

UFUNCS: Dict[str, Callable[..., Any]] = {
    "negative": _plain("NEG"), "positive": _same, "absolute": _absolute, "fabs": _plain("ABS"),
    "sign": _plain("SIGN"), "exp": _plain("EXP"), "log": _plain("LOG"), "sqrt": _plain("SQRT"),
    "reciprocal": _plain("RECIPROCAL"), "sin": _plain("SIN"), "cos": _plain("COS"),
    "tan": _plain("TAN"), "arcsin": _plain("ASIN"), "arccos": _plain("ACOS"),
    "arctan": _plain("ATAN"), "sinh": _plain("SINH"), "cosh": _plain("COSH"),
    "tanh": _plain("TANH"), "arcsinh": _plain("ASINH"), "arccosh": _plain("ACOSH"),
    "arctanh": _plain("ATANH"), "floor": _rounded("FLOOR"), "ceil": _rounded("CEIL"),
    "rint": _rounded("ROUND"), "invert": _invert, "expm1": _expm1, "log1p": _log1p,
    "trunc": lambda x: select(binary("LESS", x, scalar(x, 0)), unary("CEIL", x),
                              unary("FLOOR", x)) if _is_float(x) else x,
    "square": lambda x: _for_bool("MUL", "AND")(x, x), "exp2": lambda x: binary("POW", scalar(x, 2), x),
    "log2": _scaled(1 / math.log(2), _plain("LOG")),
    "log10": _scaled(1 / math.log(10), _plain("LOG")),
    "deg2rad": _scaled(math.pi / 180, _same), "radians": _scaled(math.pi / 180, _same),
    "rad2deg": _scaled(180 / math.pi, _same), "degrees": _scaled(180 / math.pi, _same),
    "isnan": _as_bool(_isnan, False), "isinf": _as_bool(_isinf, False),
    "isfinite": _as_bool(lambda x: unary("NOT", binary("OR", _isnan(x), _isinf(x))), True),
    "logical_not": lambda x: unary("NOT", cast(x, DType.BOOL)),
    "add": _for_bool("ADD", "OR"), "subtract": _plain("SUB"), "multiply": _for_bool("MUL", "AND"),
    "divide": _plain("DIV"), "true_divide": _plain("DIV"), "floor_divide": _floor_divide,
    "power": _plain("POW"), "float_power": _plain("POW"), "remainder": _plain("MOD"),
    "fmod": _plain("FMOD"), "maximum": _for_bool("MAX", "OR"), "minimum": _for_bool("MIN", "AND"),
    "fmax": _without_nan("MAX"), "fmin": _without_nan("MIN"), "bitwise_and": _plain("AND"),
    "bitwise_or": _plain("OR"), "bitwise_xor": _plain("XOR"), "left_shift": _plain("SHIFT_LEFT"),
    "right_shift": _plain("SHIFT_RIGHT"), "logical_and": _truth("AND"), "logical_or": _truth("OR"),
    "logical_xor": _truth("XOR"), "equal": _plain("EQUAL"), "not_equal": _negated(_plain("EQUAL")),
    "less": _plain("LESS"), "less_equal": _plain("LESS_EQUAL"), "greater": _swapped("LESS"),
    "greater_equal": _swapped("LESS_EQUAL"), "logaddexp": _logaddexp,
    "hypot": lambda a, b: unary("SQRT", binary("ADD", binary("MUL", a, a), binary("MUL", b, b))),
    "matmul": lambda a, b: a.net._build("matmul", a._number, b._number),
}


def apply_ufunc(ufunc: Any, method: str, inputs: Tuple[Any, ...], options: Dict[str, Any]) -> Any:
    """What numpy calls for ufunc(*inputs) with values of a net."""
    name = ufunc.__name__
    net = next(one.net for one in inputs if is_value(one))
    if method == "reduce" and len(inputs) == 1:
        of = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}.get(name)
        if of is not None:
            options = {"axis": 0, **{key: one for key, one in options.items() if one is not None}}
            return getattr(inputs[0], of)(**options)
    if method != "__call__" or name not in UFUNCS or options:
        said = f"{name}.{method}" if method != "__call__" else name
        raise TypeError(f"{said}({', '.join(options)}): not for values of nets, expected one of "
                        f"{', '.join(sorted(UFUNCS))}, without options")
    wanted, _ = kinds_of(ufunc, inputs, 2 if name == "matmul" else 1)
    return UFUNCS[name](*[operand(net, one, wanted) for one in inputs])


def call(ufunc: Any, *inputs: Any) -> Any:
    """A function of operands of which one is a value; NotImplemented for what no operand can be."""
    for one in inputs:
        if not is_value(one) and not isinstance(one, (bool, int, float, numpy.ndarray, numpy.generic,
                                                      list, tuple)) and not hasattr(one, "__dlpack__"):
            return NotImplemented
    return apply_ufunc(ufunc, "__call__", inputs, {})


def axes_of(axis: Any, n_dims: int) -> List[int]:
    """Axes from the front; None: all."""
    from operator import index
    if axis is None:
        return list(range(n_dims))
    try:
        given = [index(one) for one in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    except TypeError:
        raise TypeError(f"axis: {told(axis)}, expected integers or None") from None
    for one in given:
        if not -n_dims <= one < n_dims:
            raise ValueError(f"axis {one}, expected {-n_dims} to {n_dims - 1}")
    found = [one % n_dims for one in given]
    if len(set(found)) < len(found):
        raise ValueError(f"axis {told(axis)}, expected each axis once")
    return found
