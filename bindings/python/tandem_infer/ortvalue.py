# SPDX-License-Identifier: MIT
"""Arrays with a name of ONNX Runtime's, and bindings: memory for inputs and outputs that is used again
from call to call. Needs numpy."""
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import numpy

from ._native import told
from .lowered import DType, Lowered, _Memory, array_of, dtype_of, from_dlpack

if TYPE_CHECKING:
    from .inference import InferenceSession

#: Types of ONNX by their numbers (TensorProto.DataType), which some programs give.
_OF_ONNX = {1: DType.F32, 2: DType.U8, 3: DType.I8, 4: DType.U16, 5: DType.I16, 6: DType.I32,
            7: DType.I64, 9: DType.BOOL, 10: DType.F16, 11: DType.F64, 12: DType.U32, 13: DType.U64,
            16: DType.BF16}


def _type_of(element_type: Any) -> DType:
    if isinstance(element_type, int) and not isinstance(element_type, DType):
        if element_type not in _OF_ONNX:
            raise ValueError(f"element_type: {element_type}, expected a number of TensorProto.DataType")
        return _OF_ONNX[element_type]
    return dtype_of(element_type)


def _check_host(device_type: Any) -> None:
    name = device_type() if callable(device_type) else device_type
    if str(getattr(name, "name", name)).lower() != "cpu":
        raise ValueError(f"device_type: {told(device_type)}, expected 'cpu': arrays are in host memory")


class OrtValue:
    """A numpy array, shared and not copied, with the calls of ONNX Runtime's class of this name."""

    def __init__(self, array: Any, dtype: Optional[DType] = None) -> None:
        kind = None if dtype is None else dtype_of(dtype)
        self._array = array_of(array, "OrtValue", kind)
        self._dtype = kind if kind is not None else dtype_of(self._array.dtype)

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Any, device_type: Any = "cpu", _device_id: int = 0) -> "OrtValue":
        """Over the array's memory where it has no gaps."""
        _check_host(device_type)
        return OrtValue(numpy_obj)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: Any, onnx_element_type: int) -> "OrtValue":
        """The same for types that numpy does not have: bfloat16 (16) over uint16."""
        return OrtValue(data, _type_of(onnx_element_type))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any = numpy.float32,
                                     device_type: Any = "cpu", _device_id: int = 0) -> "OrtValue":
        """Memory of zeros."""
        _check_host(device_type)
        kind = _type_of(element_type)
        return OrtValue(numpy.zeros(tuple(shape), kind.numpy), kind)

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> "OrtValue":
        """Over the memory of an object with ``__dlpack__`` in host memory."""
        array = from_dlpack(data)
        return OrtValue(array.view("bool") if is_bool_tensor and array.dtype == "uint8" else array)

    def numpy(self) -> Any:
        """The array itself."""
        return self._array

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        if dtype is not None and self._array.dtype != dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Host memory, for DLPack."""
        device: Tuple[int, int] = self._array.__dlpack_device__()
        return device

    def __dlpack__(self, **options: Any) -> Any:
        """The memory for another package."""
        return self._array.__dlpack__(**options)

    def shape(self) -> List[int]:
        """Extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """"tensor(float)" and the like."""
        return f"tensor({self._dtype.onnx})"

    def element_type(self) -> int:
        """Number of the type in TensorProto.DataType."""
        return next(number for number, kind in _OF_ONNX.items() if kind == self._dtype)

    def device_name(self) -> str:
        """"cpu"."""
        return "cpu"

    def data_ptr(self) -> int:
        """Address of the memory."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """Bytes of all values."""
        return int(self._array.nbytes)

    def has_value(self) -> bool:
        """True."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False

    def update_inplace(self, np_arr: Any) -> None:
        """Copies values of the same type and shape into the memory."""
        array = array_of(np_arr, "update_inplace", self._dtype)
        if array.shape != self._array.shape:
            raise ValueError(f"update_inplace: shape {array.shape}, expected {self._array.shape}")
        self._array[...] = array


def _at(pointer: int, kind: DType, shape: Sequence[int], what: str) -> Any:
    """An array over memory of the caller's, which stays his."""
    extents = tuple(int(extent) for extent in shape)
    if min(extents, default=0) < 0 or not pointer:
        raise ValueError(f"{what}: shape {extents} at {pointer}, expected extents of 0 or more and memory")
    if 0 in extents:
        return numpy.empty(extents, kind.numpy)
    return numpy.asarray(_Memory(None, int(pointer), kind.numpy, extents, False))


class IOBinding:
    """Inputs and outputs of an InferenceSession with memory that is used again::

        binding = session.io_binding()
        binding.bind_cpu_input("x", x)            # x may change between two runs
        binding.bind_output("y")                  # or an array: bind_output("y", array=y)
        session.run_with_iobinding(binding)
        y, = binding.copy_outputs_to_cpu()

    ``get_outputs`` gives outputs that nobody bound memory for in arrays of the binding: they change
    with its next computation of the same shapes.
    """

    def __init__(self, session: "InferenceSession") -> None:
        if getattr(type(session), "_what", "") != "inference session":
            raise TypeError(f"IOBinding: {told(session)}, expected an inference session")
        self._session = session
        self._inputs: Dict[str, Any] = {}
        self._bound: Dict[str, Any] = {}  # arrays, or None: the binding has one
        self._found: List[Any] = []
        self._kept: Dict[str, Any] = {}  # arrays of the binding

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """An array, which is read at each run."""
        self._check(name, self._session._names, "input")
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: Any, device_id: int, element_type: Any,
                   shape: Sequence[int], buffer_ptr: int) -> None:
        """Memory at an address, which has to live until the last run."""
        _check_host(device_type)
        self.bind_cpu_input(name, _at(buffer_ptr, _type_of(element_type), shape, f"input '{name}'"))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue, which is read at each run."""
        self.bind_cpu_input(name, ortvalue)

    def bind_output(self, name: str, device_type: Any = "cpu", device_id: int = 0,
                    element_type: Any = None, shape: Optional[Sequence[int]] = None,
                    buffer_ptr: Optional[int] = None, *, array: Any = None) -> None:
        """An output that runs shall give: in memory of the session; at an address, which has to live
        until the last run; or in a numpy array."""
        _check_host(device_type)
        self._check(name, [one.name for one in self._session._outputs], "output")
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise ValueError(f"output '{name}': an address, expected a type and a shape too")
            array = _at(buffer_ptr, _type_of(element_type), shape, f"output '{name}'")
        if array is not None and not (isinstance(array, numpy.ndarray) and array.flags.writeable):
            raise ValueError(f"output '{name}': {told(array)}, expected a numpy array to write into")
        self._bound[name] = array

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """An output into an OrtValue."""
        if not isinstance(ortvalue, OrtValue):
            raise ValueError(f"output '{name}': {told(ortvalue)}, expected an OrtValue")
        self.bind_output(name, array=ortvalue._array)

    def clear_binding_inputs(self) -> None:
        """No input is bound."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """No output is bound."""
        self._bound.clear()
        self._found.clear()
        self._kept.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to do: inputs are in host memory."""

    def synchronize_outputs(self) -> None:
        """Nothing to do: outputs are in host memory."""

    def get_outputs(self) -> List[OrtValue]:
        """Outputs in the order of their binding."""
        return [OrtValue(array, dtype) for array, dtype in self._found]

    def get_outputs_as_ortvaluevector(self) -> List[OrtValue]:
        """As ``get_outputs``."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> List[Any]:
        """Copies of the outputs."""
        return [array.copy() for array, _ in self._found]

    @staticmethod
    def _check(name: str, known: Sequence[str], what: str) -> None:
        if name not in known:
            raise ValueError(f"Invalid {what} name: {told(name)}, expected one of {list(known)}")

    def _take(self, lowered: Lowered) -> None:
        """What a run has computed."""
        names = [one.name for one in self._session._outputs]
        found = []
        for name, array in self._bound.items():
            i = names.index(name)
            end = lowered.outputs[i]
            if array is not None:
                found.append((lowered.take(i, array), end.dtype))
                continue
            kept = self._kept.get(name)
            if kept is not None and kept.shape != end.shape:
                kept = None
            self._kept[name] = kept = lowered.take(i, kept)
            found.append((kept, end.dtype))
        self._found = found
