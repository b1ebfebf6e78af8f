# SPDX-License-Identifier: MIT
"""Tensors and graphs, with numpy arrays over the same memory."""
import ctypes
import enum
import weakref
from typing import Any, List, Optional, Sequence, Tuple

from . import _native
from ._handle import Handle
from ._native import TandemError, tandem, text


class Type(enum.IntEnum):
    """Type of a tensor's values; numbers as in ggml, but for BCML1."""
    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    I32 = 26
    BF16 = 30
    BCML1 = 241

    @property
    def is_quantized(self) -> bool:
        """Whether values are stored in blocks of more than one."""
        return bool(tandem.tandem_type_is_quantized(self))

    def row_bytes(self, n: int) -> int:
        """Bytes of n values; 0 when n is no multiple of the block."""
        return int(tandem.tandem_type_row_bytes(self, n))


class Role(enum.IntEnum):
    """Who may change a tensor that no graph computes."""
    INPUT = 0  #: anybody, between two computations
    CONSTANT = 1  #: nobody: weights, of which devices and packed kernels keep copies
    STATE = 2  #: graphs of one runtime alone


# format of the buffer protocol: itemsize, our type
_FORMATS = {"f": (4, Type.F32), "e": (2, Type.F16), "i": (4, Type.I32), "l": (4, Type.I32)}
# in memoryviews, and in numpy
_DTYPES = {Type.F32: ("f", "float32"), Type.F16: ("H", "float16"), Type.I32: ("i", "int32"),
           Type.BF16: ("H", "uint16")}


class _Exported:
    """Marks memory of a context that somebody outside looks at."""


class Tensor:
    """A typed view with up to 4 dimensions. ``shape`` is as numpy has it, slowest first: a matrix of
    N rows with K values each is ``(N, K)``. Lives as long as its context, which it keeps alive.

    ``+ - * /`` and ``x @ w.T`` build nodes; nothing is computed until a runtime computes the graph.
    """

    def __init__(self, context: "Context", pointer: int) -> None:
        self.context = context
        self._pointer = pointer
        self._generation = context._generation

    @property
    def _as_parameter_(self) -> int:
        self.context._as_parameter_  # raises where it is closed
        if self._generation != self.context._generation:
            raise TandemError("tensor: its context was reset, expected a tensor made since", "STATE")
        return self._pointer

    @property
    def type(self) -> Type:
        """Type of the values."""
        return Type(tandem.tandem_tensor_type(self))

    @property
    def shape(self) -> Tuple[int, ...]:
        """Extents, slowest first, without leading ones."""
        ne = list(tandem.tandem_tensor_ne(self)[0:4])
        while len(ne) > 1 and ne[-1] == 1:
            ne.pop()
        return tuple(int(n) for n in reversed(ne))

    @property
    def strides(self) -> Tuple[int, ...]:
        """Bytes between neighbours of each dimension; of the last one the size of a block."""
        nb = tandem.tandem_tensor_nb(self)[0:len(self.shape)]
        return tuple(int(n) for n in reversed(nb))

    @property
    def name(self) -> str:
        """Stands in messages, plans and dumps."""
        return text(tandem.tandem_tensor_name(self))

    @name.setter
    def name(self, name: str) -> None:
        tandem.tandem_tensor_set_name(self, name.encode())

    @property
    def op(self) -> str:
        """Operation that makes it: "none" for a leaf, else "mul_mat" and the like."""
        return text(tandem.tandem_tensor_op_name(self))

    @property
    def nbytes(self) -> int:
        """Bytes from the first to behind the last value."""
        return int(tandem.tandem_tensor_bytes(self))

    def set_role(self, role: Role) -> "Tensor":
        """Sets who may change the values; before a graph computes with it. Returns the tensor."""
        tandem.tandem_tensor_set_role(self, role)
        return self

    def _buffer(self) -> Any:
        """A ctypes array over the values, which keeps the context alive."""
        data = tandem.tandem_tensor_data(self)
        if not data:
            raise TandemError(f"tensor '{self.name}': it has no memory of its own, expected a leaf or "
                              "an output of a finished graph", "STATE", self.name)
        buffer: Any = (ctypes.c_char * self.nbytes).from_address(data)
        buffer._exported = _Exported()
        buffer._tensor = self
        self.context._exports.add(buffer._exported)
        return buffer

    def memoryview(self) -> Any:
        """The values without a copy and without numpy: F32 and I32 as such, F16 and BF16 as their
        16 bits, quantised types, and rows with gaps between them, as bytes."""
        flat: Any = memoryview(self._buffer()).cast("B")
        if self.type not in _DTYPES or not self._is_dense():
            return flat
        return flat.cast(_DTYPES[self.type][0], self.shape)

    def _is_dense(self) -> bool:
        n = 1
        for extent in self.shape:
            n *= extent
        return self.type.row_bytes(n) == self.nbytes

    def numpy(self) -> Any:
        """A numpy array over the values, without a copy: what one side writes the other sees. BF16
        gives uint16; quantised types give uint8, a row of blocks each. Between two computations
        only; the context cannot be closed or reset while the array lives."""
        import numpy
        if self.type in _DTYPES:
            return numpy.ndarray(self.shape, _DTYPES[self.type][1], self._buffer(), 0, self.strides)
        row = self.type.row_bytes(self.shape[-1])
        return numpy.ndarray(self.shape[:-1] + (row,), "uint8", self._buffer(), 0,
                             self.strides[:-1] + (1,))

    def set(self, values: Any) -> "Tensor":
        """Copies values, in the tensor's own type and block layout, from an object with a buffer
        (bytes, array, numpy array). Returns the tensor."""
        view = memoryview(values)
        if not view.c_contiguous or view.nbytes != self.type.row_bytes(
                int(tandem.tandem_tensor_elements(self))):
            raise TandemError(f"tensor '{self.name}': {view.nbytes} bytes were given, expected "
                              f"{self.type.name} values of shape {self.shape} without gaps", "SHAPE")
        _native.call("tensor_set", self, 0, -1, _address_of(view.cast("B"))[0])
        return self

    def tolist(self) -> List[Any]:
        """The values as (nested) lists: F32 and I32."""
        return self.memoryview().tolist()

    def __add__(self, other: "Tensor") -> "Tensor":
        return self.context.op("add", self, other)

    def __sub__(self, other: "Tensor") -> "Tensor":
        return self.context.op("sub", self, other)

    def __mul__(self, other: Any) -> "Tensor":
        if isinstance(other, (int, float)):
            return self.context.op("scale", self, float(other))
        return self.context.op("mul", self, other)

    def __truediv__(self, other: "Tensor") -> "Tensor":
        return self.context.op("div", self, other)

    def __repr__(self) -> str:
        return f"<Tensor '{self.name}' {self.op} {self.type.name} {self.shape}>"


def _address_of(view: memoryview) -> Tuple[int, Any]:
    """Address of a contiguous view of bytes, and what has to live as long as it is used."""
    if not view.readonly:
        array = (ctypes.c_char * view.nbytes).from_buffer(view)
        return ctypes.addressof(array), array
    interface = getattr(view.obj, "__array_interface__", None)
    if interface is not None:
        return int(interface["data"][0]), view
    kept = bytes(view) if not isinstance(view.obj, bytes) else view.obj
    return int(ctypes.cast(ctypes.c_char_p(kept), ctypes.c_void_p).value or 0), kept


def _extents(shape: Sequence[int]) -> Tuple[int, Any]:
    if not 1 <= len(shape) <= 4:
        raise TandemError(f"shape {tuple(shape)}: {len(shape)} dimensions, expected 1 to 4", "SHAPE")
    return len(shape), (ctypes.c_int64 * 4)(*[int(n) for n in reversed(shape)])


class Context(Handle):
    """Owns tensors and graphs, and builds them. One thread at a time.

    Args:
        limit_bytes: it never takes more memory than this; 0: no limit.
    """

    _what = "context"

    def __init__(self, limit_bytes: int = 0) -> None:
        options = _native.ContextOptions(ctypes.sizeof(_native.ContextOptions), 0, limit_bytes)
        super().__init__(_native.make("context_new", ctypes.byref(options)),
                         tandem.tandem_context_free)
        self._kept: List[Any] = []  # memory that tensors borrow
        self._exports: "weakref.WeakSet[_Exported]" = weakref.WeakSet()
        self._generation = 0

    def _require_no_exports(self) -> None:
        if len(self._exports) > 0:
            raise BufferError(f"context: {len(self._exports)} arrays over its memory are in use, "
                              "expected none")

    def close(self) -> None:
        """Frees all tensors and graphs. Raises BufferError while arrays over them are in use."""
        if not self.closed:
            self._require_no_exports()
        super().close()
        self._kept.clear()

    def reset(self) -> None:
        """Forgets everything made in it, an error too, and keeps the memory for what comes next."""
        self._require_no_exports()
        tandem.tandem_context_reset(self)
        self._generation += 1
        self._kept.clear()

    @property
    def nbytes(self) -> int:
        """Memory taken from the system."""
        return int(tandem.tandem_context_bytes(self))

    def _wrap(self, pointer: Optional[int]) -> Tensor:
        if not pointer:
            _native.call("context_status", self)
            raise TandemError("context: no tensor was made", "MEMORY")
        return Tensor(self, pointer)

    def new(self, shape: Sequence[int], type: Type = Type.F32, name: str = "") -> Tensor:
        """A tensor of zeros with memory of its own. ``shape``: slowest first, 1 to 4 extents."""
        n, ne = _extents(shape)
        tensor = self._wrap(tandem.tandem_tensor_new(self, type, n, ne))
        if name:
            tensor.name = name
        return tensor

    def borrow(self, values: Any, type: Optional[Type] = None,
               shape: Optional[Sequence[int]] = None, name: str = "") -> Tensor:
        """A tensor over the memory of a numpy array, or any object with a buffer, without a copy.

        Args:
            values: contiguous; float32, float16, int32, or bytes of blocks with ``type`` and
                ``shape``. It is kept alive. Read-only memory makes a constant tensor.
            type, shape: default: those of ``values``.
        """
        view: Any = memoryview(values)
        if not view.c_contiguous:
            raise TandemError("borrow: the values have gaps, expected a contiguous array", "SHAPE")
        size, known = _FORMATS.get(view.format.lstrip("@=<"), (0, None))
        if type is None:
            if known is None or size != view.itemsize:
                raise TandemError(f"borrow: items are '{view.format}', expected float32, float16 or "
                                  "int32, or a type and a shape", "TYPE")
            type = known
        n, ne = _extents(view.shape if shape is None else shape)
        address, kept = _address_of(view.cast("B"))
        make = tandem.tandem_tensor_borrow_const if view.readonly else tandem.tandem_tensor_borrow
        tensor = self._wrap(make(self, type, n, ne, address, view.nbytes))
        self._kept.append((values, kept))
        if name:
            tensor.name = name
        return tensor

    def quantize(self, values: Any, type: Type, name: str = "") -> Tensor:
        """Constant weights: a copy of a float32 array (numpy or any buffer with a shape) in another
        type. Rows are a multiple of the type's block long."""
        view: Any = memoryview(values)
        if view.format.lstrip("@=<") != "f" or not view.c_contiguous:
            raise TandemError(f"quantize: items are '{view.format}', expected contiguous float32",
                              "TYPE")
        tensor = self.new(view.shape, type, name)
        address, kept = _address_of(view.cast("B"))
        _native.check(tandem.tandem_quantize(type, address, tandem.tandem_tensor_data(tensor),
                                             view.nbytes // 4))
        del kept
        return tensor.set_role(Role.CONSTANT)

    def op(self, name: str, *arguments: Any) -> Tensor:
        """Builds a node: operations and arguments as in tandem/ops.h, without the context. The named
        methods say more."""
        prototype = _native.TANDEM.get(name)
        if prototype is None or prototype[1][:2] != [ctypes.c_void_p] * 2:
            raise TandemError(f"operation '{name}': there is none, expected one of tandem/ops.h",
                              "NOT_FOUND", name)
        return self._wrap(getattr(tandem, "tandem_" + name)(self, *arguments))

    def mul_mat(self, w: Tensor, x: Tensor) -> Tensor:
        """``x @ w.T``: weights (N, K) of any type times activations (M, K) give (M, N)."""
        return self.op("mul_mat", w, x)

    def get_rows(self, w: Tensor, ids: Tensor) -> Tensor:
        """Rows of w (V, K) by their numbers (I32, M): (M, K)."""
        return self.op("get_rows", w, ids)

    def soft_max(self, a: Tensor, mask: Optional[Tensor] = None, scale: float = 1.0) -> Tensor:
        """soft_max(a * scale + mask) along the last dimension."""
        return self.op("soft_max", a, mask, scale)

    def rms_norm(self, a: Tensor, eps: float = 1e-5) -> Tensor:
        """a / sqrt(mean(a^2) + eps) along the last dimension."""
        return self.op("rms_norm", a, eps)

    def silu(self, a: Tensor) -> Tensor:
        """a / (1 + exp(-a))."""
        return self.op("silu", a)

    def reshape(self, a: Tensor, shape: Sequence[int]) -> Tensor:
        """The same values in the same order under another shape."""
        return self.op("reshape", a, *_extents(shape))

    def rope(self, a: Tensor, positions: Tensor, n_rot: int = 0, freq_base: float = 10000.0,
             freq_scale: float = 1.0, halves: bool = False) -> Tensor:
        """Rotary position embedding; see tandem/ops.h."""
        options = _native.RopeOptions(ctypes.sizeof(_native.RopeOptions), int(halves), n_rot,
                                      freq_base, freq_scale)
        return self.op("rope", a, positions, ctypes.byref(options))

    def graph(self, *outputs: Tensor) -> "Graph":
        """A finished graph of these results."""
        return Graph(self, outputs)


class Graph:
    """Nodes in execution order, made once and computed any number of times by a runtime. Its
    outputs keep their values until the next computation."""

    def __init__(self, context: Context, outputs: Sequence[Tensor]) -> None:
        self.context = context
        self.outputs = tuple(outputs)
        self._generation = context._generation
        self._pointer = tandem.tandem_graph_new(context)
        if not self._pointer:
            _native.call("context_status", context)
        for output in outputs:
            tandem.tandem_graph_add(self._pointer, output)
        _native.call("graph_finish", self._pointer)

    @property
    def _as_parameter_(self) -> int:
        self.context._as_parameter_
        if self._generation != self.context._generation:
            raise TandemError("graph: its context was reset, expected a graph made since", "STATE")
        return self._pointer

    @property
    def nodes(self) -> List[Tensor]:
        """Nodes that compute something, in execution order."""
        return [Tensor(self.context, tandem.tandem_graph_node(self, i)) for i in range(len(self))]

    def __len__(self) -> int:
        return int(tandem.tandem_graph_node_count(self))

    @property
    def planned_bytes(self) -> int:
        """Memory that intermediate results share."""
        report = _native.MemoryReport(ctypes.sizeof(_native.MemoryReport))
        _native.check(tandem.tandem_graph_memory(self, ctypes.byref(report)))
        return int(report.planned_bytes)

    def __str__(self) -> str:
        return _native.printed(tandem.tandem_graph_print, self)


def dequantize(blocks: Any, type: Type) -> Any:
    """Float32 values of a buffer of blocks, as a numpy array of one dimension."""
    import numpy
    view = memoryview(blocks).cast("B")
    n = view.nbytes // type.row_bytes(_block(type)) * _block(type)
    out = numpy.empty(n, "float32")
    address, kept = _address_of(view)
    _native.check(tandem.tandem_dequantize(type, address, out.ctypes.data, n))
    del kept
    return out


def _block(type: Type) -> int:
    return int(tandem.tandem_type_block_values(type))
