# SPDX-License-Identifier: MIT
"""Values from outside: buffers, arrays, lists and DLPack, without numpy; and DLPack for others."""
import array
import ctypes
import itertools
import operator
import struct
import sys
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32
from ctypes import c_uint64, c_void_p, py_object
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._handle import TandemError
from ._native import told

#: Formats of struct by kind: what one converts to the other without asking.
FLOATS, INTEGERS, BYTES = "efd", "bhilqBHILQnN", "Bbc"


class _PyBuffer(ctypes.Structure):  # Py_buffer of Python's C interface
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_size_t), ("itemsize", c_size_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", c_char_p),
                ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p),
                ("internal", c_void_p)]


_api = ctypes.pythonapi
_get_buffer = _api["PyObject_GetBuffer"]
_get_buffer.argtypes, _get_buffer.restype = [py_object, POINTER(_PyBuffer), ctypes.c_int], ctypes.c_int
_release_buffer = _api["PyBuffer_Release"]
_release_buffer.argtypes, _release_buffer.restype = [POINTER(_PyBuffer)], None


def address_of(view: memoryview) -> int:
    """Address of a contiguous view, for as long as somebody keeps the view."""
    buffer = _PyBuffer()
    _get_buffer(view, ctypes.byref(buffer), 0)
    address = int(buffer.buf or 0)
    _release_buffer(ctypes.byref(buffer))
    return address


# ---- values of any kind as a dense buffer ----


def _is_native(view: memoryview) -> bool:
    order = view.format[0]
    return (order not in "<>!" or view.itemsize == 1 or
            (order == "<") == (sys.byteorder == "little")) and len(view.format.lstrip("@=<>!")) == 1


def _code(view: memoryview) -> str:
    return view.format.lstrip("@=<>!")


def _bytes_of(view: memoryview) -> memoryview:
    """A contiguous view as bytes, for formats too that memoryview does not cast."""
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        flat: Any = (ctypes.c_char * view.nbytes).from_address(address_of(view))
        flat.keep = view
        made = memoryview(flat).cast("B")
        return made.toreadonly() if view.readonly else made


class Values:
    """A dense buffer in this machine's byte order: `view` (bytes), format `code`, and `shape`.
    `is_copy`: not the memory that was given."""

    def __init__(self, view: memoryview, code: str, shape: Tuple[int, ...], is_copy: bool,
                 owner: Any = None) -> None:
        self.view = view
        self.code = code
        self.shape = shape
        self.is_copy = is_copy
        self.owner = owner  # of memory that the view does not keep by itself

    @property
    def readonly(self) -> bool:
        return self.view.readonly

    def converted(self, code: str, what: str) -> "Values":
        """Floats as other floats, integers as others that can hold them."""
        if code == self.code:
            return self
        kinds = FLOATS if code in FLOATS else INTEGERS
        if self.code not in kinds:
            raise TypeError(f"{what}: items are '{self.code}', expected "
                            f"{'floats' if kinds == FLOATS else 'integers'}")
        cast: Any = self.view.cast  # its stubs take single formats alone
        items = struct.unpack(f"={self.view.nbytes // 2}e",
                              self.view) if self.code == "e" else cast(self.code)
        try:
            if code == "e":
                data = b"".join(struct.pack("e", item) for item in items)
            else:
                data = array.array(code, items).tobytes()
        except (OverflowError, struct.error) as error:
            raise OverflowError(f"{what}: {error}, expected items that fit into '{code}'") from None
        return Values(memoryview(data), code, self.shape, True)


def _flat_of_list(values: Any, what: str) -> Tuple[List[Any], Tuple[int, ...]]:
    """The items of nested lists, which are equally long, and the shape."""
    shape: List[int] = []
    level: List[Any] = [values]
    for _ in range(5):
        if not level or not isinstance(level[0], (list, tuple)):
            break
        n = len(level[0])
        if any(not isinstance(part, (list, tuple)) or len(part) != n for part in level):
            raise ValueError(f"{what}: lists of different lengths, expected equal ones")
        shape.append(n)
        level = list(itertools.chain.from_iterable(level))
    return level, tuple(shape)


def _of_list(values: Any, what: str, integers: Optional[bool]) -> Values:
    items, shape = _flat_of_list(values, what)
    for item in items:
        if isinstance(item, (str, bytes, list, tuple)) or not (
                hasattr(item, "__float__") or hasattr(item, "__index__")):
            raise TypeError(f"{what}: {told(item)} in a list, expected numbers, four lists deep")
    if integers is None:
        integers = bool(items) and all(hasattr(item, "__index__") for item in items)
    try:
        made: Any
        if integers:
            made = array.array("i", [operator.index(item) for item in items])
        else:
            made = array.array("f", [float(item) for item in items])
    except OverflowError as error:
        raise OverflowError(f"{what}: {error}, expected items of 32 bits") from None
    except TypeError as error:
        raise TypeError(f"{what}: {error}, expected integers") from None
    return Values(memoryview(made).cast("B"), "i" if integers else "f", shape, True)


def values_of(given: Any, what: str, integers: Optional[bool] = None) -> Values:
    """Values of a buffer, an array (also one of a device of the host, by DLPack) or nested lists;
    copied where they have gaps or another byte order.

    Args:
        what: stands in messages.
        integers: what numbers of lists are to be; None: as they are.
    """
    if isinstance(given, (list, tuple, int, float)):
        return _of_list(given, what, integers)
    try:
        view = memoryview(given)
    except (TypeError, ValueError, BufferError):
        if hasattr(given, "__dlpack__"):
            return from_dlpack(given, what)
        raise TypeError(f"{what}: {told(given)}, expected an array, another buffer, or lists of "
                        "numbers") from None
    shape = tuple(view.shape or ())
    if not view.format or len(_code(view)) != 1 or _code(view) not in FLOATS + INTEGERS + "c":
        raise TypeError(f"{what}: items are '{view.format}', expected floats or integers")
    if view.c_contiguous and _is_native(view):
        flat = _bytes_of(view) if view.nbytes > 0 else memoryview(bytearray())
        return Values(flat, _code(view), shape, view.nbytes == 0)
    data = view.tobytes()  # in C order
    if not _is_native(view):
        data = array.array("B", data).tobytes()
        swapped = bytearray(len(data))
        for i in range(view.itemsize):
            swapped[i::view.itemsize] = data[view.itemsize - 1 - i::view.itemsize]
        data = bytes(swapped)
    return Values(memoryview(data), _code(view), shape, True)


# ---- DLPack: https://dmlc.github.io/dlpack/latest/c_api.html, version 1 ----


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


CPU = 1
_READ_ONLY = 1
#: by code (0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool) and bits: format of struct
_DL_CODES = {(0, 8): "b", (0, 16): "h", (0, 32): "i", (0, 64): "q", (1, 8): "B", (1, 16): "H",
             (1, 32): "I", (1, 64): "Q", (2, 16): "e", (2, 32): "f", (2, 64): "d", (4, 16): "H",
             (6, 8): "?"}
_NAMES = {_Managed: (b"dltensor", b"used_dltensor"),
          _Versioned: (b"dltensor_versioned", b"used_dltensor_versioned")}
_is_capsule = _api["PyCapsule_IsValid"]
_is_capsule.argtypes, _is_capsule.restype = [c_void_p, c_char_p], ctypes.c_int
_capsule_pointer = _api["PyCapsule_GetPointer"]
_capsule_pointer.argtypes, _capsule_pointer.restype = [c_void_p, c_char_p], c_void_p
_rename = _api["PyCapsule_SetName"]
_rename.argtypes, _rename.restype = [py_object, c_char_p], ctypes.c_int
_new_capsule = _api["PyCapsule_New"]
_new_capsule.argtypes, _new_capsule.restype = [c_void_p, c_char_p, c_void_p], py_object

_lent: Dict[int, Any] = {}  # structures that others have, with what they keep, by address
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, c_void_p)


def _give_back(address: Optional[int], lent: Dict[int, Any] = _lent) -> None:
    lent.pop(address or 0, None)


def _destroy(capsule: Optional[int], lent: Dict[int, Any] = _lent, valid: Any = _is_capsule,
             pointer: Any = _capsule_pointer,
             names: Tuple[bytes, ...] = (b"dltensor", b"dltensor_versioned")) -> None:
    """A capsule that nobody has taken."""
    for name in names:
        if valid(capsule, name):
            lent.pop(pointer(capsule, name) or 0, None)


_deleter, _destructor = _Deleter(_give_back), _Destructor(_destroy)
for _one in (_deleter, _destructor):  # arrays may outlive this module
    _api.Py_IncRef(py_object(_one))


def lend(data: int, code: Tuple[int, int], shape: Sequence[int], strides: Sequence[int],
         keep: Any, readonly: bool, versioned: bool) -> Any:
    """A capsule over memory, strides in items. `keep` lives as long as somebody has it."""
    n = len(shape)
    kind = _Versioned if versioned else _Managed
    managed: Any = kind()
    extents = (c_int64 * max(n, 1))(*shape)
    steps = (c_int64 * max(n, 1))(*strides)
    managed.tensor = _Tensor(data, CPU, 0, n, code[0], code[1], 1, extents, steps, 0)
    managed.deleter = ctypes.cast(_deleter, c_void_p).value
    if versioned:
        managed.major, managed.minor = 1, 0
        managed.flags = _READ_ONLY if readonly else 0
    address = ctypes.addressof(managed)
    _lent[address] = (managed, extents, steps, keep)
    return _new_capsule(address, _NAMES[kind][0], ctypes.cast(_destructor, c_void_p).value)


class _Borrowed:
    """A structure of somebody else, given back when nobody refers to this."""

    def __init__(self, managed: Any) -> None:
        self.managed = managed

    def __del__(self) -> None:
        if self.managed.deleter:
            _Deleter(self.managed.deleter)(ctypes.addressof(self.managed))


def _dense_strides(shape: Sequence[int]) -> List[int]:
    strides, n = [], 1
    for extent in reversed(shape):
        strides.append(n)
        n *= max(extent, 1)
    return strides[::-1]


class Lent:
    """Memory that somebody lends by DLPack: where it begins, format of its items, strides in items."""

    def __init__(self, owner: Any, begin: int, code: str, shape: Tuple[int, ...],
                 strides: List[int], readonly: bool) -> None:
        self.owner = owner
        self.begin = begin
        self.code = code
        self.shape = shape
        self.strides = strides
        self.readonly = readonly


def borrow_dlpack(given: Any, what: str) -> Lent:
    """Memory of an object with ``__dlpack__`` in host memory."""
    device = getattr(given, "__dlpack_device__", None)
    if device is not None and device()[0] != CPU:
        raise TandemError(f"{what}: it is on the device {tuple(device())}, expected one in host memory",
                          "DEVICE")
    try:
        capsule = given.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = given.__dlpack__()
    for kind, (name, used) in _NAMES.items():
        if _is_capsule(id(capsule), name):
            managed = kind.from_address(_capsule_pointer(id(capsule), name) or 0)
            _rename(capsule, used)
            break
    else:
        raise TypeError(f"{what}: {told(capsule)} of __dlpack__, expected a capsule of a tensor that "
                        "nobody has taken")
    owner = _Borrowed(managed)
    major = getattr(managed, "major", 1)
    tensor = managed.tensor
    code = _DL_CODES.get((tensor.code, tensor.bits))
    if major != 1 or tensor.device_type != CPU or code is None or tensor.lanes != 1 or (
            not 0 <= tensor.ndim <= 8):
        raise TypeError(f"{what}: DLPack version {major}, device {tensor.device_type}, type "
                        f"{tensor.code} of {tensor.bits} bits x {tensor.lanes}; expected version 1, "
                        "the host, integers or floats")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = ([tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides
               else _dense_strides(shape))
    readonly = bool(getattr(managed, "flags", 0) & _READ_ONLY)
    return Lent(owner, (tensor.data or 0) + tensor.byte_offset, code, shape, strides, readonly)


def from_dlpack(given: Any, what: str) -> Values:
    """Values of an object with ``__dlpack__`` in host memory; copied where they have gaps."""
    lent = borrow_dlpack(given, what)
    code, shape, begin = lent.code, lent.shape, lent.begin
    if code == "?":
        raise TypeError(f"{what}: items are bool, expected integers or floats")
    n, item = 1, struct.calcsize("=" + code)
    for extent in shape:
        n *= extent
    if n == 0:
        return Values(memoryview(bytearray()), code, shape, True)
    if all(a == b or extent == 1 for a, b, extent in zip(lent.strides, _dense_strides(shape), shape)):
        buffer = (ctypes.c_char * (n * item)).from_address(begin)
        view = memoryview(buffer).cast("B")
        return Values(view.toreadonly() if lent.readonly else view, code, shape, False,
                      (lent.owner, buffer))
    offsets = [0]
    for extent, stride in zip(shape, lent.strides):
        offsets = [at + i * stride for at in offsets for i in range(extent)]
    data = b"".join(ctypes.string_at(begin + at * item, item) for at in offsets)
    return Values(memoryview(data), code, shape, True)
