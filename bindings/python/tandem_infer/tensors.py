# SPDX-License-Identifier: MIT
"""Tensors and graphs, with numpy arrays over the same memory."""
import ctypes
import enum
import operator
import os
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native
from ._buffers import BYTES, CPU, Values, address_of, lend, values_of
from ._handle import Handle, Needs, TandemError, Uncopied, turn
from ._native import tandem, text, told

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


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
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    I32 = 26
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39
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


#: By type: format of struct, name in numpy, code and bits of DLPack.
_DENSE = {Type.F32: ("f", "float32", (2, 32)), Type.F16: ("e", "float16", (2, 16)),
          Type.I32: ("i", "int32", (0, 32)), Type.BF16: ("H", "uint16", (4, 16))}
_OF_CODE = {"f": Type.F32, "d": Type.F32, "e": Type.F16,
            **{code: Type.I32 for code in "bhilqHILQnN"}}


def index_of(i: Any, n: int, what: str) -> int:
    """An index of n things, which may count from the end."""
    try:
        at = operator.index(i)
    except TypeError:
        raise TypeError(f"{what} {told(i)}, expected an integer") from None
    if not -n <= at < n:
        raise IndexError(f"{what} {at}, expected {-n} to {n - 1}")
    return at % n


def _dims(shape: Any) -> Tuple[int, ...]:
    try:
        extents = tuple(operator.index(n) for n in ([shape] if isinstance(shape, int) else shape))
    except TypeError:
        raise TypeError(f"shape {told(shape)}, expected a tuple of integers") from None
    if not 1 <= len(extents) <= 4:
        raise TandemError(f"shape {extents}: {len(extents)} dimensions, expected 1 to 4", "SHAPE")
    for n in extents:
        if not 0 <= n < 1 << 63:
            raise ValueError(f"shape {told(extents)}: {n}, expected 0 or more, and 64 bits")
    return extents


def _extents(shape: Any) -> Tuple[int, Any]:
    extents = _dims(shape)
    return len(extents), (ctypes.c_int64 * 4)(*reversed(extents))


class _Exported:
    """Marks memory of a context that somebody outside looks at."""


class Tensor(Uncopied):
    """A typed view with up to 4 dimensions. ``shape`` is as numpy has it, slowest first: a matrix of
    N rows with K values each is ``(N, K)``. Lives as long as its context, which it keeps alive. Made
    by the methods of a context.

    ``+ - * /`` with tensors and numbers, ``-x``, ``x @ w.T`` build nodes; ``x.T``, ``x[0]`` and
    slices are views. Nothing is computed until a runtime computes the graph.
    """

    _what = "tensor"
    __array_ufunc__ = None  # numpy leaves array + tensor to us, who refuse it

    context: "Context"
    _of: Optional["Tensor"] = None  # what it is the transposed of
    _readonly = False

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("Tensor: it is made by a context: context.new, context.borrow, context.op")

    @classmethod
    def _at(cls, context: "Context", pointer: int) -> "Tensor":
        """The tensor at an address, within a turn of its context."""
        tensor = cls.__new__(cls)
        tensor.context = context
        tensor._pointer = pointer
        tensor._generation = context._generation
        tensor._type = Type(tandem.tandem_tensor_type(pointer))
        tensor._ne = tuple(tandem.tandem_tensor_ne(pointer)[0:4])
        tensor._nb = tuple(tandem.tandem_tensor_nb(pointer)[0:4])
        return tensor

    @property
    def _needs(self) -> Needs:
        return self.context._needs

    def _address(self) -> int:
        if self._generation != self.context._generation:
            raise TandemError("tensor: its context was reset, expected a tensor made since", "STATE")
        return self._pointer

    _pointer: int
    _generation: int
    _type: Type
    _ne: Tuple[int, ...]
    _nb: Tuple[int, ...]

    def _require(self) -> None:
        """It still exists, now."""
        with turn(self._needs):
            self._address()

    @property
    def type(self) -> Type:
        """Type of the values."""
        return self._type

    @property
    def shape(self) -> Tuple[int, ...]:
        """Extents, slowest first, without leading ones."""
        self._require()
        ne = list(self._ne)
        while len(ne) > 1 and ne[-1] == 1:
            ne.pop()
        return tuple(reversed(ne))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def strides(self) -> Tuple[int, ...]:
        """Bytes between neighbours of each dimension; of the last one the size of a block."""
        return tuple(reversed(self._nb[:len(self.shape)]))

    @property
    def name(self) -> str:
        """Stands in messages, plans and dumps."""
        with turn(self._needs):
            return text(tandem.tandem_tensor_name(self))

    @name.setter
    def name(self, name: str) -> None:
        tandem.tandem_tensor_set_name(self, name)

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
        tandem.tandem_tensor_set_role(self, Role(role))
        return self

    # ---- values ----

    def _buffer(self) -> Any:
        """A view of the values' bytes, which keeps the context alive."""
        with turn(self._needs):
            data = tandem.tandem_tensor_data(self)
            if not data:
                raise TandemError(f"tensor '{self.name}': it has no memory of its own, expected a leaf "
                                  "or an output of a finished graph", "STATE", self.name)
            buffer: Any = (ctypes.c_char * self.nbytes).from_address(data)
            buffer._exported = _Exported()
            buffer._tensor = self
            self.context._exports.add(buffer._exported)
        return memoryview(buffer).toreadonly() if self._readonly else buffer

    def memoryview(self) -> Any:
        """The values without a copy and without numpy: F32 and I32 as such, F16 and BF16 as their
        16 bits, quantised types, and rows with gaps between them, as bytes."""
        flat: Any = memoryview(self._buffer()).cast("B")
        if self.type not in _DENSE or not self._is_dense() or 0 in self._ne:
            return flat
        code = _DENSE[self.type][0]
        return flat.cast("H" if code == "e" else code, self.shape)

    def _is_dense(self) -> bool:
        step = self._type.row_bytes(_block(self._type))
        for i, (extent, stride) in enumerate(zip(self._ne, self._nb)):
            if extent != 1 and stride != step:
                return False
            step *= extent // _block(self._type) if i == 0 else extent
        return True

    def numpy(self) -> Any:
        """A numpy array over the values, without a copy: what one side writes the other sees. BF16
        gives uint16; quantised types give uint8, a row of blocks each. Between two computations
        only; the context cannot be closed or reset while the array lives."""
        import numpy
        if self.type in _DENSE:
            return numpy.ndarray(self.shape, _DENSE[self.type][1], self._buffer(), 0, self.strides)
        row = self.type.row_bytes(self.shape[-1])
        return numpy.ndarray(self.shape[:-1] + (row,), "uint8", self._buffer(), 0,
                             self.strides[:-1] + (1,))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        """For numpy.asarray: as ``numpy()``; BF16 and quantised types as float32, copied."""
        if self.type in (Type.F32, Type.F16, Type.I32):
            found = self.numpy()
        elif copy is False:
            raise ValueError(f"tensor '{self.name}': {self.type.name} as float32 needs a copy")
        elif self._is_dense():
            found = dequantize(self.memoryview(), self.type).reshape(self.shape)
        else:
            raise TandemError(f"tensor '{self.name}': {self.type.name} with gaps, expected none "
                              "(op('cont', x))", "TYPE")
        if dtype is None or found.dtype == dtype:
            return found.copy() if copy else found
        if copy is False:
            raise ValueError(f"tensor '{self.name}': {found.dtype} as {dtype} needs a copy")
        return found.astype(dtype)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Host memory, for DLPack."""
        return CPU, 0

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """The values for another package, without a copy: ``numpy.from_dlpack(x)``,
        ``torch.from_dlpack(x)``. The context cannot be closed while they are in use."""
        if self.type not in _DENSE:
            raise BufferError(f"tensor '{self.name}': {self.type.name}, expected F32, F16, BF16 or I32")
        if copy or (dl_device is not None and tuple(dl_device) != (CPU, 0)):
            raise BufferError("tensor: a copy, or another device, expected neither")
        versioned = max_version is not None and tuple(max_version)[0] >= 1
        if self._readonly and not versioned:
            raise BufferError(f"tensor '{self.name}': it is read-only, expected a package that knows "
                              "DLPack 1")
        buffer = self._buffer()
        item = self.type.row_bytes(1)
        return lend(address_of(memoryview(buffer)), _DENSE[self.type][2], self.shape,
                    [stride // item for stride in self.strides], buffer, self._readonly, versioned)

    def set(self, values: Any) -> "Tensor":
        """Copies values into the tensor: an array, another buffer or nested lists of its shape and
        kind (floats, or integers); or bytes in its own type and block layout. Returns the tensor."""
        with turn(self._needs):
            found = self._fitting(values)
            _native.call("tensor_set", self, 0, -1, address_of(found.view))
        return self

    def _fitting(self, values: Any) -> Values:
        found = values_of(values, f"tensor '{self.name}'", self.type == Type.I32)
        if found.code in BYTES and len(found.shape) == 1 or self.type not in _DENSE:
            n = self.type.row_bytes(self._ne[0]) * self._ne[1] * self._ne[2] * self._ne[3]
            if found.code not in BYTES or found.view.nbytes != n:
                raise TandemError(f"tensor '{self.name}': {found.view.nbytes} bytes of '{found.code}' "
                                  f"were given, expected {n} bytes of {self.type.name} blocks",
                                  "SHAPE", self.name, found.view.nbytes, n)
            return found
        found = found.converted(_DENSE[self.type][0], f"tensor '{self.name}'")
        is_flat = len(found.shape) == 1 and type(values).__module__ == "array"
        n = 1
        for extent in self.shape:
            n *= extent
        if (found.shape or (1,)) != self.shape and not (is_flat and found.shape == (n,)):
            raise TandemError(f"tensor '{self.name}': values of shape {found.shape}, expected "
                              f"{self.shape}", "SHAPE", self.name)
        return found

    def tolist(self) -> List[Any]:
        """The values as (nested) lists: F32 and I32."""
        if self.type not in (Type.F32, Type.I32):
            raise TandemError(f"tensor '{self.name}': {self.type.name}, expected F32 or I32", "TYPE")
        shape = self.shape
        if self._is_dense() and 0 not in shape:
            found: List[Any] = self.memoryview().tolist()
            return found
        flat: Any = memoryview(self._buffer()).cast("B")
        code, strides = _DENSE[self.type][0], self.strides

        def part(at: int, depth: int) -> Any:
            if depth == len(shape):
                return flat[at:at + 4].cast(code)[0]
            return [part(at + i * strides[depth], depth + 1) for i in range(shape[depth])]

        listed: List[Any] = part(0, 0)
        return listed

    # ---- operators ----

    def _number(self, value: Any) -> Optional[float]:
        """A number that stands beside a tensor, or None."""
        if isinstance(value, Tensor):
            return None
        if hasattr(value, "shape") and value.shape != () or not (
                hasattr(value, "__float__") or hasattr(value, "__index__")):
            return None
        return float(value)

    def _constant(self, value: float) -> "Tensor":
        return self.context.new((1,))._filled(value)

    def _filled(self, value: float) -> "Tensor":
        n = int(tandem.tandem_tensor_elements(self))
        data = (ctypes.c_float * n)(*([value] * n))
        _native.call("tensor_set", self, 0, -1, ctypes.addressof(data))
        return self.set_role(Role.CONSTANT)

    def _binary(self, name: str, other: Any) -> Any:
        number = self._number(other)
        if number is not None:
            with turn(self._needs):
                return self.context.op(name, self, self._constant(number))
        return self.context.op(name, self, other) if isinstance(other, Tensor) else NotImplemented

    def __add__(self, other: Any) -> "Tensor":
        return self._binary("add", other)  # type: ignore[no-any-return]

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Tensor":
        return self._binary("sub", other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Any) -> "Tensor":
        return (-self)._binary("add", other)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> "Tensor":
        number = self._number(other)
        if number is not None:
            return self.context.op("scale", self, number)
        return self._binary("mul", other)  # type: ignore[no-any-return]

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Tensor":
        return self._binary("div", other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Any) -> "Tensor":
        number = self._number(other)
        if number is None:
            return NotImplemented
        with turn(self._needs):
            return self.context.op("div", self.context.new(self.shape)._filled(number), self)

    def __neg__(self) -> "Tensor":
        return self.context.op("scale", self, -1.0)

    def __pos__(self) -> "Tensor":
        return self

    def __matmul__(self, other: Any) -> "Tensor":
        if not isinstance(other, Tensor):
            return NotImplemented
        with turn(self._needs + other._needs):
            w = other._of if other._of is not None else other.T
            if w._nb[0] != w._type.row_bytes(_block(w._type)):
                w = self.context.op("cont", w)
            return self.context.op("mul_mat", w, self)

    # ---- views ----

    @property
    def T(self) -> "Tensor":
        """A view with the last two dimensions exchanged. Of a quantised type it serves as the right
        side of ``@`` alone."""
        with turn(self._needs):
            if self._type.is_quantized:
                turned = Tensor._at(self.context, self._address())
                turned._ne = (self._ne[1], self._ne[0]) + self._ne[2:]
                turned._nb = (self._nb[1], self._nb[0]) + self._nb[2:]
                turned._address = _refuse_transposed  # type: ignore[method-assign]
            else:
                turned = self.context.op("transpose", self)
            turned._of, turned._readonly = self, self._readonly
            return turned

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator["Tensor"]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> "Tensor":
        """A view: ``x[0]``, ``x[1:3]``, ``x[:, ::2]``, ``x[..., 0]``."""
        with turn(self._needs):
            shape = self.shape
            parts = list(key) if isinstance(key, tuple) else [key]
            at = [i for i, part in enumerate(parts) if part is Ellipsis]
            if len(at) > 1 or len(parts) - len(at) > len(shape):
                raise IndexError(f"index {told(key)}, expected at most {len(shape)} parts")
            place = at[0] if at else len(parts)
            parts[place:place + 1] = [slice(None)] * (len(shape) - len(parts) + len(at))
            return self._view(shape, parts)

    def _view(self, shape: Tuple[int, ...], parts: List[Any]) -> "Tensor":
        block, offset = _block(self._type), 0
        ne: List[int] = []  # slowest first, those that stay
        nb: List[int] = []
        for axis, (part, n, stride) in enumerate(zip(parts, shape, self.strides)):
            is_row = axis == len(shape) - 1 and block > 1
            if isinstance(part, slice):
                start, stop, step = part.indices(n)
                count = max(0, -(-(stop - start) // step))
                if step < 1 or is_row and (step != 1 or start % block or count % block):
                    raise IndexError(f"index {told(part)}, expected a step of 1 or more, and whole "
                                     "blocks of quantised values")
                ne.append(count)
                nb.append(stride * step)
            elif is_row:
                raise IndexError(f"index {told(part)}, expected a slice of whole blocks")
            else:
                start = index_of(part, n, "index")
            offset += start // (block if is_row else 1) * stride if n > 0 else 0
        if not ne:
            ne, nb = [1], [self._type.row_bytes(block)]
        return self.context._view_of(self, ne, nb, offset)

    def __repr__(self) -> str:
        try:
            return f"<Tensor '{self.name}' {self.op} {self.type.name} {self.shape}>"
        except TandemError as error:
            return f"<Tensor: {error}>"


def _refuse_transposed() -> int:
    raise TandemError("tensor: it is the transposed of a quantised one, expected it as the right side "
                      "of @ alone", "TYPE")


class Context(Handle):
    """Owns tensors and graphs, and builds them. One thread at a time: others wait.

    Args:
        limit_bytes: it never takes more memory than this; 0: no limit.
    """

    _what = "context"
    _alone = True

    def __init__(self, limit_bytes: int = 0) -> None:
        options = _native.filled(_native.ContextOptions, limit_bytes=limit_bytes)
        self._own(_native.make("context_new", ctypes.byref(options)), tandem.tandem_context_free)
        self._finalizer.atexit = False  # arrays over its memory may live until then
        self._kept: List[Any] = []  # memory that tensors borrow
        self._foreign: Dict[Tuple["Context", int], None] = {}  # whose leaves nodes read
        self._exports: "weakref.WeakSet[_Exported]" = weakref.WeakSet()
        self._generation = 0

    def _require_no_exports(self) -> None:
        if len(self._exports) > 0:
            raise BufferError(f"context: {len(self._exports)} arrays over its memory are in use, "
                              "expected none")

    def close(self) -> None:
        """Frees all tensors and graphs. Raises BufferError while arrays over them are in use."""
        if not self.closed:
            with turn(self._needs):
                self._require_no_exports()
                super().close()
        self._kept.clear()
        self._foreign.clear()

    def reset(self) -> None:
        """Forgets everything made in it and keeps the memory for what comes next."""
        with turn(self._needs):
            self._require_no_exports()
            tandem.tandem_context_reset(self)
            self._generation += 1
            self._kept.clear()
            self._foreign.clear()

    @property
    def nbytes(self) -> int:
        """Memory taken from the system."""
        return int(tandem.tandem_context_bytes(self))

    def _raise(self) -> None:
        """The error of a builder, which the context then forgets."""
        try:
            _native.call("context_status", self)
        finally:
            tandem.tandem_context_clear_error(self)
        raise TandemError("context: nothing was made", "MEMORY")

    def _wrap(self, pointer: Optional[int]) -> Tensor:
        if not pointer:
            self._raise()
        return Tensor._at(self, pointer or 0)

    def new(self, shape: Union[int, Sequence[int]], type: Type = Type.F32,
            name: str = "") -> Tensor:
        """A tensor of zeros with memory of its own. ``shape``: slowest first, 1 to 4 extents."""
        n, ne = _extents(shape)
        with turn(self._needs):
            tensor = self._wrap(tandem.tandem_tensor_new(self, Type(type), n, ne))
            if name != "":
                tensor.name = name
        return tensor

    def borrow(self, values: Any, type: Optional[Type] = None,
               shape: Union[None, int, Sequence[int]] = None, name: str = "",
               copy: Optional[bool] = None) -> Tensor:
        """A tensor over the memory of a numpy array, of another object with a buffer or with DLPack
        (a tensor of PyTorch), without a copy where it can be used as it is: float32, float16, int32,
        without gaps. Other floats and integers, arrays with gaps or of another byte order, and lists
        of numbers are copied.

        Args:
            values: kept alive. Read-only memory makes a constant tensor.
            type: default: F32 for floats (F16 for float16), I32 for integers. Bytes of blocks need a
                type and a shape.
            copy: True: always; False: never, TandemError instead; None: where needed.
        """
        wanted = None if type is None else Type(type)
        found = values_of(values, "borrow", None if wanted is None else wanted == Type.I32)
        if found.code in BYTES:
            if wanted is None:
                raise TandemError(f"borrow: items are '{found.code}', expected floats or integers, or "
                                  "a type and a shape", "TYPE")
        elif wanted is None:
            wanted = _OF_CODE[found.code]
        if wanted is None or wanted not in _DENSE and found.code not in BYTES:
            raise TandemError(f"borrow: items are '{found.code}', expected bytes of blocks for "
                              f"{wanted} (quantize makes them)", "TYPE")
        if found.code not in BYTES:
            found = found.converted(_DENSE[wanted][0], "borrow")
        if found.is_copy and copy is False:
            raise TandemError("borrow: the values have gaps, or another type or byte order; expected "
                              "what needs no copy", "TYPE")
        if copy and not found.is_copy:
            found = Values(memoryview(bytearray(found.view)), found.code, found.shape, True)
        extents = _dims((found.shape or (1,)) if shape is None else shape)
        make = (tandem.tandem_tensor_borrow_const if found.readonly and not found.is_copy
                else tandem.tandem_tensor_borrow)
        if found.is_copy:  # memory that nobody else has
            found = Values(memoryview(bytearray(found.view)), found.code, found.shape, True)
        n, ne = _extents(extents)
        size = wanted.row_bytes(extents[-1])
        for extent in extents[:-1]:
            size *= extent
        if shape is not None and size != found.view.nbytes and found.code not in BYTES or (
                size < found.view.nbytes):
            raise TandemError(f"borrow: {found.view.nbytes} bytes, expected {size} for {wanted.name} "
                              f"of shape {extents}", "SHAPE", name if isinstance(name, str) else "")
        with turn(self._needs):
            tensor = self._wrap(make(self, wanted, n, ne, address_of(found.view),
                                     found.view.nbytes))
            tensor._readonly = found.readonly and not found.is_copy
            self._kept.append((values, found))
            if name != "":
                tensor.name = name
        return tensor

    def from_dlpack(self, values: Any, name: str = "") -> Tensor:
        """``borrow`` for an object with ``__dlpack__``."""
        if not hasattr(values, "__dlpack__"):
            raise TypeError(f"from_dlpack: {told(values)}, expected an object with __dlpack__")
        return self.borrow(values, name=name)

    def quantize(self, values: Any, type: Type, name: str = "") -> Tensor:
        """Constant weights: a copy of an array of floats (any buffer with a shape, or lists) in
        another type. Rows are a multiple of the type's block long."""
        found = values_of(values, "quantize", False).converted("f", "quantize")
        with turn(self._needs):
            tensor = self.new(found.shape or (1,), type, name)
            data = tandem.tandem_tensor_data(tensor)
            _native.check(tandem.tandem_quantize(Type(type), address_of(found.view), data,
                                                 found.view.nbytes // 4))
            return tensor.set_role(Role.CONSTANT)

    def op(self, name: str, *arguments: Any) -> Tensor:
        """Builds a node: operations and arguments as in tandem/ops.h, without the context. The named
        methods say more."""
        function = getattr(tandem, f"tandem_{name}", None) if isinstance(name, str) else None
        kinds = getattr(function, "kinds", [])
        if len(kinds) < 2 or [getattr(kind, "what", "") for kind in kinds[:2]] != ["context",
                                                                                 "tensor"]:
            raise TandemError(f"operation {told(name)}: there is none, expected one of tandem/ops.h",
                              "NOT_FOUND", str(name)[:64])
        if any(kind.is_raw for kind in kinds):  # a shape, options: methods of these names
            if name == "view":
                raise TypeError("view: expected x[..] with slices")
            made: Tensor = getattr(self, name)(*arguments)
            return made
        if len(arguments) != len(kinds) - 1:
            raise TypeError(f"{name}: {len(arguments)} arguments, expected {len(kinds) - 1}")
        return self._build(name, *arguments)

    def _build(self, name: str, *arguments: Any) -> Tensor:
        tensors = [one for one in arguments if isinstance(one, Tensor)]
        with turn(sum((one._needs for one in tensors), self._needs)):
            made = self._wrap(getattr(tandem, "tandem_" + name)(self, *arguments))
            for one in tensors:
                if one.context is not self:
                    self._foreign[one.context, one._generation] = None
            if tensors and made.op in ("view", "reshape", "permute", "transpose"):
                made._readonly = tensors[0]._readonly
            return made

    def _view_of(self, a: Tensor, ne: List[int], nb: List[int], offset: int) -> Tensor:
        """Extents and strides in bytes, slowest first, `offset` bytes behind the start of `a`."""
        item = a._type.row_bytes(_block(a._type))
        n = len(ne)
        is_dense = nb[-1] == item
        if not is_dense and n == 4:
            dense = self.op("cont", a)
            raise TandemError(f"index: values of {dense.shape} with gaps in four dimensions, expected "
                              "three (op('cont', x) makes a copy without gaps)", "SHAPE")
        if not is_dense:  # a dimension of one value is the dense one, and goes behind the others
            ne, nb = ne + [1], nb + [item]
        shape, steps = (ctypes.c_int64 * 4)(*reversed(ne)), (ctypes.c_size_t * 4)(
            *list(reversed(nb))[1:])
        view = self._build("view", a, len(ne), shape, steps, offset)
        if not is_dense:
            axes = [n] + list(range(n)) + list(range(n + 1, 4))
            view = self.op("permute", view, *axes)
        return view

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

    def clip(self, a: Tensor, low: float, high: float) -> Tensor:
        """min(max(a, low), high); NaN stays, infinities are no bounds."""
        return self.op("clamp", a, low, high)

    def reshape(self, a: Tensor, shape: Union[int, Sequence[int]]) -> Tensor:
        """The same values in the same order under another shape."""
        return self._build("reshape", a, *_extents(shape))

    def rope(self, a: Tensor, positions: Tensor, n_rot: int = 0, freq_base: float = 10000.0,
             freq_scale: float = 1.0, halves: bool = False) -> Tensor:
        """Rotary position embedding; see tandem/ops.h."""
        options = _native.filled(_native.RopeOptions, pairs=int(bool(halves)), n_rot=n_rot,
                                 freq_base=freq_base, freq_scale=freq_scale)
        return self._build("rope", a, positions, ctypes.byref(options))

    def graph(self, *outputs: Tensor) -> "Graph":
        """A finished graph of these results."""
        return Graph(self, outputs)


class Graph(Uncopied):
    """Nodes in execution order, made once and computed any number of times by a runtime. Its
    outputs keep their values until the next computation."""

    _what = "graph"

    def __init__(self, context: Context, outputs: Sequence[Tensor]) -> None:
        if not isinstance(context, Context):
            raise TypeError(f"graph: {told(context)}, expected a context")
        try:
            self.outputs = tuple(outputs)
        except TypeError:
            raise TypeError(f"graph: {told(outputs)}, expected tensors") from None
        for output in self.outputs:
            if not isinstance(output, Tensor):
                raise TypeError(f"graph: {told(output)}, expected a tensor")
        self.context = context
        with turn(sum((output._needs for output in self.outputs), context._needs)):
            self._generation = context._generation
            self._pointer = tandem.tandem_graph_new(context)
            if not self._pointer:
                context._raise()
            for output in self.outputs:
                tandem.tandem_graph_add(self._pointer, output)
                if output.context is not context:
                    context._foreign[output.context, output._generation] = None
            try:
                _native.call("graph_finish", self._pointer)
            finally:
                tandem.tandem_context_clear_error(context)

    @property
    def _needs(self) -> Needs:
        needs = self.context._needs
        for other, _ in list(self.context._foreign):
            needs += ((other._state, False),)
        return needs

    def _address(self) -> int:
        is_new = self._generation == self.context._generation
        if not is_new or any(other._generation != generation
                             for other, generation in self.context._foreign):
            raise TandemError(f"graph: {'its context' if not is_new else 'a context that it reads'} was "
                              "reset, expected a graph made since", "STATE")
        return int(self._pointer)

    @property
    def nodes(self) -> List[Tensor]:
        """Nodes that compute something, in execution order."""
        with turn(self._needs):
            return [Tensor._at(self.context, tandem.tandem_graph_node(self, i))
                    for i in range(len(self))]

    def __len__(self) -> int:
        return int(tandem.tandem_graph_node_count(self))

    def __bool__(self) -> bool:
        return True

    @property
    def planned_bytes(self) -> int:
        """Memory that intermediate results share."""
        report = _native.filled(_native.MemoryReport)
        _native.check(tandem.tandem_graph_memory(self, ctypes.byref(report)))
        return int(report.planned_bytes)

    def __str__(self) -> str:
        return _native.printed(tandem.tandem_graph_print, self)


def dequantize(blocks: Any, type: Type) -> Any:
    """Float32 values of a buffer of blocks, as a numpy array of one dimension."""
    import numpy
    kind = Type(type)
    found = values_of(blocks, "dequantize")
    block = kind.row_bytes(_block(kind))
    if kind == Type.I32 or found.view.nbytes % block != 0:
        raise TandemError(f"dequantize: {found.view.nbytes} bytes of {kind.name}, expected a multiple of "
                          f"{block}, and no I32", "TYPE")
    n = found.view.nbytes // block * _block(kind)
    out = numpy.empty(n, "float32")
    _native.check(tandem.tandem_dequantize(kind, address_of(found.view), out.ctypes.data, n))
    return out


def _block(type: Type) -> int:
    return int(tandem.tandem_type_block_values(type))
