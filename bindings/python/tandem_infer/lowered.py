# SPDX-License-Identifier: MIT
"""Nets that are ready to compute: the arrays that they take and give, and their graph. What ONNX
models and nets built by hand have in common. Needs numpy."""
import ctypes
import enum
import weakref
from time import perf_counter as _now
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy

from . import _native
from ._buffers import borrow_dlpack
from ._handle import Handle, Needs, TandemError, turn
from ._interrupt import interruptible
from ._native import tandem, text, told
from .runtime import Plan, Runtime
from .tensors import Graph, Tensor

_SHORT_S = 0.002  # of computations that Ctrl-C waits for: listening to it costs 8 us


class DType(enum.IntEnum):
    """Type of a net's values."""
    F32 = 0
    F64 = 1
    F16 = 2
    BF16 = 3
    I8 = 4
    I16 = 5
    I32 = 6
    I64 = 7
    U8 = 8
    U16 = 9
    U32 = 10
    U64 = 11
    BOOL = 12
    F8E4M3FN = 13
    F8E4M3FNUZ = 14
    F8E5M2 = 15
    F8E5M2FNUZ = 16
    F8E8M0 = 17
    F4E2M1 = 18
    F6E2M3 = 19
    F6E3M2 = 20

    @property
    def numpy(self) -> Any:
        """The type in numpy; BF16, which numpy does not have, is uint16 with its bits, floats of 8
        bits and fewer are uint8 with theirs."""
        return _NUMPY[self]

    @property
    def onnx(self) -> str:
        """The word that ONNX Runtime has for it, such as "float"."""
        return _ONNX.get(self) or str(_NUMPY[self])


_NUMPY: Dict[DType, Any] = {
    kind: numpy.dtype(name) for kind, name in zip(DType, (
        "float32", "float64", "float16", "uint16", "int8", "int16", "int32", "int64", "uint8", "uint16",
        "uint32", "uint64", "bool") + 8 * ("uint8",))}
_ONNX = {DType.F32: "float", DType.F64: "double", DType.BF16: "bfloat16",
         **{kind: kind.name.lower().replace("f", "float", 1) for kind in DType if kind > DType.BOOL}}
_OF_NUMPY = {dtype: kind for kind, dtype in _NUMPY.items()
             if kind != DType.BF16 and kind <= DType.BOOL}


def dtype_of(given: Any) -> DType:
    """DType of a type in numpy, or its name ("bfloat16" too)."""
    if isinstance(given, DType):
        return given
    if str(given) == "bfloat16":  # ml_dtypes has a type of that name for numpy
        return DType.BF16
    try:
        return _OF_NUMPY[numpy.dtype(given).newbyteorder("=")]
    except (TypeError, KeyError):
        raise TypeError(f"type {told(given)}, expected one of "
                        f"{', '.join(str(dtype) for dtype in _OF_NUMPY)}, bfloat16") from None


def array_of(given: Any, what: str, dtype: Optional[DType] = None, casting: Any = "no") -> Any:
    """A numpy array without gaps, of this machine's byte order, of `dtype` (None: as it is), over the
    memory of `given` where that can be: an array, another buffer, an object with DLPack, numbers.

    Args:
        what: stands in messages.
        casting: what becomes `dtype`, as numpy names it; lists and numbers become it if they fit.
    """
    if dtype is not None and type(given) is numpy.ndarray and given.dtype == dtype.numpy and (
            given.flags.c_contiguous):
        return given
    is_free = isinstance(given, (list, tuple, int, float, bool))
    try:
        if is_free and dtype not in (None, DType.BF16):
            found = _of_numbers(given, what, dtype.numpy if dtype is not None else None)
        elif not isinstance(given, numpy.ndarray) and hasattr(given, "__dlpack__"):
            found = from_dlpack(given, what)
        else:
            found = numpy.asarray(given)
    except (ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{what}: {error}") from None
    if dtype is None:
        dtype = dtype_of(found.dtype)
    if str(found.dtype) == "bfloat16":
        found = found.view("uint16")
    wanted = dtype.numpy
    if found.dtype.newbyteorder("=") != wanted and not (
            found.dtype.kind in "biuf" and numpy.can_cast(found.dtype, wanted, casting)):
        raise ValueError(f"{what}: values of {_said(found.dtype)}, expected tensor({dtype.onnx})")
    return numpy.asarray(found, wanted, "C")


def _of_numbers(given: Any, what: str, wanted: Any) -> Any:
    found = numpy.asarray(given)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"values of {_said(found.dtype)}, expected numbers")
    with numpy.errstate(all="ignore"):
        made = found.astype(wanted)
    if wanted.kind in "iub" and found.size and not (made == found).all():
        raise ValueError(f"{told(given)}, expected numbers that fit into {wanted}")
    return made


def _said(dtype: Any) -> str:
    try:
        return f"tensor({dtype_of(dtype).onnx})"
    except TypeError:
        return "text" if dtype.kind in "US" else str(dtype)


class _Memory:
    """Memory of somebody else as numpy takes it; strides in bytes, None: no gaps."""

    def __init__(self, keep: Any, address: int, dtype: Any, shape: Tuple[int, ...], readonly: bool,
                 strides: Optional[Tuple[int, ...]] = None) -> None:
        self.keep = keep
        self.__array_interface__ = {"version": 3, "data": (address, readonly), "shape": shape,
                                    "typestr": dtype.str, "strides": strides}


def from_dlpack(given: Any, what: str = "from_dlpack") -> Any:
    """A numpy array over an object with ``__dlpack__`` in host memory (a tensor of PyTorch, JAX, ...),
    without a copy; bfloat16 as its bits (uint16)."""
    if not hasattr(given, "__dlpack__"):
        raise TypeError(f"{what}: {told(given)}, expected an object with __dlpack__")
    lent = borrow_dlpack(given, what)
    dtype = numpy.dtype(lent.code)
    if 0 in lent.shape:
        return numpy.empty(lent.shape, dtype)
    return numpy.asarray(_Memory(lent.owner, lent.begin, dtype, lent.shape, lent.readonly,
                                 tuple(stride * dtype.itemsize for stride in lent.strides)))


class End:
    """An input or output of a lowered net."""

    def __init__(self, array: Any) -> None:
        self.name = text(array.name)
        self.dtype = DType(array.type)
        self.shape = tuple(array.dims[0:array.n_dims])
        self.address = int(array.data or 0)
        self.nbytes = int(array.bytes)

    def __repr__(self) -> str:
        return f"'{self.name}': {self.dtype.onnx} {self.shape}"


class LoweredGraph(Graph):
    """The graph of a lowered net, for plans and explanations. Its outputs are no tensors."""

    def __init__(self, lowered: "Lowered") -> None:  # pylint: disable=super-init-not-called
        self._owner = lowered._needs  # not the owner itself, which refers to this
        self.outputs = ()
        self._pointer = tandem.tandem_lowered_graph(lowered)

    @property
    def _needs(self) -> Needs:
        return self._owner

    def _address(self) -> int:
        return int(self._pointer)

    @property
    def nodes(self) -> List[Tensor]:
        """Not for nets: ``str(graph)`` tells of the nodes."""
        raise TandemError("graph: its nodes are a net's, expected a graph of tensors", "STATE")


_set_input = _native.direct("lowered_set_input")
_compute = _native.direct("runtime_compute")


def _forget(runtime: Runtime, lowered: int) -> None:
    """Has a runtime give up the copies of weights that it has made for a net, before they go away."""
    function = {name: getattr(tandem, "tandem_" + name).library_function for name in (
        "lowered_graph", "graph_node_count", "graph_node", "tensor_src", "runtime_forget")}
    graph = function["lowered_graph"](lowered)
    leaves = set()
    for i in range(function["graph_node_count"](graph)):
        node, k = function["graph_node"](graph, i), 0
        operand = function["tensor_src"](node, k)
        while operand:
            leaves.add(operand)
            k += 1
            operand = function["tensor_src"](node, k)
    try:
        with turn(runtime._needs):
            for leaf in leaves:
                function["runtime_forget"](runtime._state.pointer, leaf)
    except TandemError:
        pass  # it is closed, and with it went what it had


class _Exported:
    """Marks memory of a net that somebody outside looks at."""


class Lowered(Handle):
    """A net that was lowered. One thread at a time: others wait.

    Args:
        pointer: tandem_lowered, owned from now on.
        keep: lives as long.
        borrowed: somebody else frees it, and knows when nobody uses it.
    """

    _what = "lowered net"
    _alone = True

    def __init__(self, pointer: int, keep: Any = None, borrowed: bool = False) -> None:
        runtimes: "weakref.WeakSet[Runtime]" = weakref.WeakSet()

        def free(lowered: int) -> None:
            if not borrowed:
                for runtime in list(runtimes):
                    _forget(runtime, lowered)
                tandem.tandem_lowered_free(lowered)
            kept.clear()

        kept = [keep]
        self._runtimes = runtimes  # that have computed it
        self._own(pointer, free)
        self._finalizer.atexit = False  # arrays over its memory may live until then
        self._exports: "weakref.WeakSet[_Exported]" = weakref.WeakSet()
        self.graph = LoweredGraph(self)
        self.inputs = self._ends(tandem.tandem_lowered_input)
        self.outputs = self._ends(tandem.tandem_lowered_output)
        self._plan: Optional[Plan] = None
        self._planned: Any = None  # what the plan was made for
        self._flag = ctypes.c_int32()  # that Ctrl-C sets
        self._took_s = _SHORT_S  # the last time
        self._options = _native.filled(_native.ComputeOptions, cancel=_native.CANCEL_FLAG,
                                       user=ctypes.addressof(self._flag))

    def _ends(self, function: Callable[..., bool]) -> List[End]:
        array = _native.NetArray()
        found: List[End] = []
        while function(self, len(found), ctypes.byref(array)):
            found.append(End(array))
        return found

    def close(self) -> None:
        """Frees it. Raises BufferError while arrays over its memory are in use."""
        if not self.closed:
            with turn(self._needs):
                if len(self._exports) > 0:
                    raise BufferError(f"net: {len(self._exports)} arrays over its memory are in use, "
                                      "expected none")
                super().close()

    def fill(self, i: int, array: Any) -> None:
        """Copies values into input i: an array without gaps, of its type and shape. Within a turn."""
        end = self.inputs[i]
        if array.dtype != end.dtype.numpy or array.shape != end.shape:
            raise ValueError(f"input '{end.name}': {array.dtype} {array.shape}, expected "
                             f"{end.dtype.numpy} {end.shape}")
        _set_input(self._state.pointer, i, array.ctypes.data, end.nbytes)

    def plan(self, runtime: Runtime) -> Plan:
        """The plan of a runtime, made once while its settings stay."""
        wanted = (runtime, runtime._n_settings)
        if self._plan is None or self._planned != wanted:
            self._plan, self._planned = runtime.plan(self.graph), wanted
            self._runtimes.add(runtime)
        return self._plan

    def compute(self, runtime: Runtime, cancel: Any = None, progress: Any = None) -> None:
        """Computes the outputs of the inputs. Within a turn of it and of the runtime."""
        plan = self.plan(runtime)
        if cancel is not None or progress is not None:
            runtime.compute(self.graph, plan, cancel, progress)
            return
        begin = _now()
        if self._took_s < _SHORT_S:  # Ctrl-C waits for the end of the turn
            self._flag.value = 0
            _compute(runtime._state.pointer, self.graph._pointer, plan._state.pointer,
                     ctypes.byref(self._options))
        else:
            with interruptible(self._flag):
                _compute(runtime._state.pointer, self.graph._pointer, plan._state.pointer,
                         ctypes.byref(self._options))
        self._took_s = _now() - begin

    def take(self, i: int, out: Any = None) -> Any:
        """A copy of output i, in `out` where that is given."""
        end = self.outputs[i]
        if out is None:
            out = numpy.empty(end.shape, end.dtype.numpy)
        elif out.dtype != end.dtype.numpy or out.shape != end.shape:
            raise ValueError(f"output '{end.name}': bound to {out.dtype} {out.shape}, expected "
                             f"{end.dtype.numpy} {end.shape}")
        if not out.flags.c_contiguous:
            out[...] = self.take(i)
        elif end.nbytes > 0:
            ctypes.memmove(out.ctypes.data, end.address, end.nbytes)
        return out

    def view(self, end: End, readonly: bool) -> Any:
        """An array over the memory of an input or output, which changes with each computation."""
        with turn(self._needs):
            if self.closed:
                raise TandemError("net: it is closed, expected an open one", "STATE")
            exported = _Exported()
            self._exports.add(exported)
        if end.nbytes == 0:
            return numpy.empty(end.shape, end.dtype.numpy)
        return numpy.asarray(_Memory((self, exported), end.address, end.dtype.numpy, end.shape,
                                     readonly))


class NetHandle(Handle):
    """A net that is built."""

    _what = "net"
    _alone = True

    def __init__(self, pointer: int) -> None:
        self._own(pointer, tandem.tandem_net_free)

    def lower(self, options: Any, keep: Any = None) -> Lowered:
        """Makes it ready to compute; it is empty from then on."""
        with turn(self._needs):
            lowered = Lowered(_native.make("net_lower", self, ctypes.byref(options)), keep)
            self.close()
        return lowered


def feed_of(names: Sequence[str], inputs: Tuple[Any, ...], named: Dict[str, Any]) -> Dict[str, Any]:
    """Values by the names of inputs, from positional and named arguments."""
    if len(inputs) > len(names):
        raise ValueError(f"{len(inputs)} values for {len(names)} inputs ({', '.join(names)})")
    feed = dict(zip(names, inputs))
    for name, value in named.items():
        if name in feed:
            raise ValueError(f"input '{name}' is given twice")
        feed[name] = value
    return feed


def check_feed(names: Sequence[str], feed: Any) -> None:
    """Raises ValueError unless there is a value for each input and no other."""
    if not hasattr(feed, "keys"):
        raise ValueError(f"feed: {told(feed)}, expected a dictionary of arrays by the names of inputs")
    if len(feed) == len(names) and all(name in feed for name in names):
        return
    missing = [name for name in names if name not in feed]
    if missing:
        raise ValueError(f"Required inputs ({missing}) are missing from input feed "
                         f"({list(feed.keys())}).")
    for name in feed.keys():
        if name not in names:
            raise ValueError(f"Invalid input name: {told(name)}, expected one of {list(names)}")
