# SPDX-License-Identifier: MIT
"""ONNX models by the calls of ONNX Runtime: ``import tandem_infer as ort`` serves programs that were
written for it. Needs numpy."""
import ctypes
import os
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy

from . import _native
from ._handle import Handle, TandemError, turn
from ._native import make, tandem, text, told
from ._structs import MAX_DIMS
from .lowered import DType, Lowered, array_of, check_feed, feed_of
from .options import GraphOptimizationLevel, RunOptions, SessionOptions
from .ortvalue import IOBinding, OrtValue
from .runtime import Runtime, shared_runtime
from .tensors import Path

#: Names that providers go by here; every other one is ignored with a warning.
PROVIDERS = ["TandemExecutionProvider", "CPUExecutionProvider"]
#: Plans of parts of a model that a session keeps.
KEPT = 1024


def get_available_providers() -> List[str]:
    """Tandem, which the second name means too: devices are used where the plan finds them faster."""
    return list(PROVIDERS)


def get_all_providers() -> List[str]:
    """As ``get_available_providers``."""
    return list(PROVIDERS)


def get_device() -> str:
    """Where arrays are: "CPU"."""
    return "CPU"


def set_default_logger_severity(_level: int = 0) -> None:
    """Ignored: nothing is written (Runtime(log=..) takes messages)."""


def set_default_logger_verbosity(_level: int = 0) -> None:
    """Ignored: nothing is written (Runtime(log=..) takes messages)."""


def set_seed(_seed: int = 0) -> None:
    """Ignored: no operator draws random numbers."""


def disable_telemetry_events() -> None:
    """Nothing to do: nothing is sent anywhere."""


class NodeArg:
    """An input or output as the model states it.

    Attributes:
        name: its name.
        type: "tensor(float)", "tensor(int64)", ...
        shape: extents; names of symbolic ones; None for those that are open. [] without dimensions,
            or where the model states no shape.
    """

    def __init__(self, value: Any) -> None:
        self.name = text(value.name)
        self.dtype: Optional[DType] = DType(value.type) if value.has_type else None
        self.type = f"tensor({self.dtype.onnx if self.dtype is not None else text(value.type_name)})"
        self.has_shape = value.n_dims >= 0
        self.shape: List[Union[int, str, None]] = []
        for dim in value.dims[0:max(value.n_dims, 0)]:
            self.shape.append(dim.extent if dim.extent >= 0 else text(dim.name) if dim.name else None)

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    def check(self, array: Any) -> None:
        """Raises ValueError unless an array has such a shape."""
        if len(array.shape) > MAX_DIMS:
            raise ValueError(f"input '{self.name}': {len(array.shape)} dimensions, expected at most "
                             f"{MAX_DIMS}")
        fits = not self.has_shape or len(array.shape) == len(self.shape)
        for extent, wanted in zip(array.shape, self.shape):
            fits = fits and (extent == wanted or not isinstance(wanted, int))
        if not fits:
            raise ValueError(f"input '{self.name}': an array of shape {array.shape}, expected "
                             f"{told_shape(self.shape)}")


def told_shape(shape: Sequence[Union[int, str, None]]) -> str:
    """A shape in a message: "(batch, 3)"."""
    return "(" + ", ".join("?" if one is None else str(one) for one in shape) + (
        ",)" if len(shape) == 1 else ")")


class ModelMetadata:
    """What the makers of a model say about it.

    Attributes:
        producer_name, graph_name, domain, description, graph_description: texts, may be "".
        version: of the model.
        custom_metadata_map: texts by their names.
    """

    def __init__(self, session: "InferenceSession") -> None:
        meta = _native.OnnxMeta()
        key, value = ctypes.c_char_p(), ctypes.c_char_p()
        with turn(session._needs):
            tandem.tandem_onnx_meta(session, ctypes.byref(meta))
            self.producer_name = text(meta.producer)
            self.graph_name = text(meta.graph_name)
            self.domain = text(meta.domain)
            self.description = text(meta.description)
            self.graph_description = text(meta.graph_description)
            self.version = int(meta.version)
            self.custom_metadata_map: Dict[str, str] = {}
            for i in range(meta.n_properties):
                tandem.tandem_onnx_property(session, i, ctypes.byref(key), ctypes.byref(value))
                self.custom_metadata_map[text(key.value)] = text(value.value)


class InferenceSession(Handle):
    """An ONNX model that is ready to compute, with the calls of ONNX Runtime's class of this name::

        session = tandem_infer.InferenceSession("model.onnx")
        y, = session.run(None, {"x": x})

    A model with symbolic extents is prepared when a set of extents is met for the first time, with
    the weights of all others, and kept. Extents that depend on values are computed. Calls from several threads run one after another.

    Args:
        path_or_bytes: a file, or the bytes of a model without external data.
        sess_options: SessionOptions.
        providers, provider_options: ignored, with a warning where a name is not one of ours: plans
            choose devices by the timing table.
        runtime: computes instead of the runtime that sessions of as many threads share.
    """

    _what = "inference session"
    _alone = True

    def __init__(self, path_or_bytes: Union[Path, bytes, bytearray, memoryview],
                 sess_options: Optional[SessionOptions] = None,
                 providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Dict[str, Any]]] = None,
                 *, runtime: Optional[Runtime] = None, **others: Any) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options: {told(sess_options)}, expected SessionOptions")
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime: {told(runtime)}, expected a runtime or None")
        self._options = sess_options or SessionOptions()
        _warn_of(self._options, providers, provider_options, others)
        self._runtime = runtime or shared_runtime(int(self._options.intra_op_num_threads))
        content = None
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            content = bytes(path_or_bytes)
            pointer = make("onnx_read", content, len(content), None)
        elif isinstance(path_or_bytes, (str, os.PathLike)):
            pointer = _native.open_file("onnx_open", path_or_bytes)
        else:
            raise TypeError(f"model: {told(path_or_bytes)}, expected a path or the bytes of a file")
        kept = [content]  # borrowed by the model

        def free(model: int) -> None:
            tandem.tandem_onnx_close(model)
            kept.clear()

        self._own(pointer, free, (self._runtime,))
        self._content = content
        self._inputs = self._stated(tandem.tandem_onnx_input)
        self._outputs = self._stated(tandem.tandem_onnx_output)
        self._names = [one.name for one in self._inputs]
        self._lowered: List[Lowered] = []  # the one that was computed last
        self._parts: Dict[int, Lowered] = {}  # by serial number, the last one used behind
        self._first: Optional[Lowered] = None
        self._is_single = False  # the model is one part for the last shapes
        self._arrays_given: Any = None
        if None not in [self._size(one) for one in self._inputs] and self._inputs and all(
                one.dtype is not None for one in self._inputs):
            with turn(self._needs):
                self._begin([numpy.zeros(self._extents_of(one), one.dtype.numpy)
                             for one in self._inputs])

    def _stated(self, function: Callable[..., bool]) -> List[NodeArg]:
        value = _native.OnnxValue()
        found: List[NodeArg] = []
        while function(self, len(found), ctypes.byref(value)):
            found.append(NodeArg(value))
        return found

    def _extents_of(self, stated: NodeArg) -> List[int]:
        return [self._options._extents[one] if isinstance(one, str) else one for one in stated.shape]

    def _size(self, stated: NodeArg) -> Any:
        """How many values an input has; None: that is not stated."""
        n = 1
        for one in stated.shape:
            extent = self._options._extents.get(one) if isinstance(one, str) else one
            if extent is None:
                return None
            n *= extent
        return n if stated.has_shape else None

    # ---- what the model states ----

    def get_inputs(self) -> List[NodeArg]:
        """Inputs in the model's order."""
        return list(self._inputs)

    def get_outputs(self) -> List[NodeArg]:
        """Outputs in the model's order."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> List[NodeArg]:
        """Weights that an input could replace: none."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the makers of the model say about it."""
        return ModelMetadata(self)

    def get_providers(self) -> List[str]:
        """As ``get_available_providers``."""
        return list(PROVIDERS)

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        """None for each provider."""
        return {name: {} for name in PROVIDERS}

    def set_providers(self, providers: Optional[Sequence[Any]] = None,
                      provider_options: Optional[Sequence[Dict[str, Any]]] = None) -> None:
        """Ignored, as the argument of the constructor."""
        _warn_of(SessionOptions(), providers, provider_options, {})

    def get_session_options(self) -> SessionOptions:
        """The options of the session."""
        return self._options

    def disable_fallback(self) -> None:
        """Nothing to do: there is no other provider."""

    def enable_fallback(self) -> None:
        """Nothing to do: there is no other provider."""

    def end_profiling(self) -> str:
        """Nothing is profiled: "" (``explain`` tells of plans)."""
        return ""

    # ---- computing ----

    def run(self, output_names: Optional[Sequence[str]], input_feed: Dict[str, Any],
            run_options: Optional[RunOptions] = None, *, cancel: Optional[Callable[[], bool]] = None,
            progress: Optional[Callable[[int, int], Any]] = None) -> List[Any]:
        """Computes outputs, new numpy arrays. Ctrl-C ends it. bfloat16 goes in and out as uint16.

        Args:
            output_names: outputs in the wanted order; None: all.
            input_feed: arrays by the names of inputs, of their types and shapes. Other buffers,
                tensors with DLPack, OrtValues and numbers will do. Not changed, nor kept.
            cancel: asked between nodes; True ends with TandemError (CANCELLED).
            progress: told nodes done and nodes in all, now and then.

        Raises ValueError where a name, type or shape is wrong.
        """
        wanted = self._wanted(output_names)
        arrays = self._arrays(input_feed, "no")
        with turn(self._needs):
            lowered = self._compute(arrays, run_options, cancel, progress)
            return [lowered.take(i) for i in wanted]

    def eval(self, *inputs: Any, **named: Any) -> Any:
        """Computes all outputs of inputs in the model's order, or by name: an array, or a tuple where
        there are several. Floats become the floats that the model takes, integers numbers."""
        arrays = self._arrays(feed_of(self._names, inputs, named), "same_kind")
        with turn(self._needs):
            lowered = self._compute(arrays, None, None, None)
            found = tuple(lowered.take(i) for i in range(len(lowered.outputs)))
        return found[0] if len(found) == 1 else found

    __call__ = eval

    def run_with_ort_values(self, output_names: Optional[Sequence[str]],
                            input_dict_ort_values: Dict[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> List[OrtValue]:
        """As ``run``, with OrtValues."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values,
                                                      run_options)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs with memory that is used again: see ``IOBinding``."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding,
                           run_options: Optional[RunOptions] = None) -> None:
        """Computes from bound inputs to bound outputs."""
        if not isinstance(iobinding, IOBinding) or iobinding._session is not self:
            raise ValueError(f"iobinding: {told(iobinding)}, expected one of this session")
        arrays = self._arrays(iobinding._inputs, "no")
        with turn(self._needs):
            lowered = self._compute(arrays, run_options, None, None)
            iobinding._take(lowered)

    def explain(self) -> str:
        """Why each node of the model, as prepared for the last inputs, runs as it does."""
        with turn(self._needs):
            if not self._lowered:
                raise TandemError("explain: nothing was computed, expected a run before", "STATE")
            lowered = self._lowered[0]
            return self._runtime.explain(lowered.graph, lowered.plan(self._runtime))

    def tune(self, budget_s: float = 5.0, save: bool = False,
             progress: Optional[Callable[[float, float], bool]] = None) -> None:
        """Measures the products of the model as prepared for the last inputs (Runtime.tune)."""
        with turn(self._needs):
            if not self._lowered:
                raise TandemError("tune: nothing was computed, expected a run before", "STATE")
            self._runtime.tune(self._lowered[0].graph, budget_s, save, progress)

    def _wanted(self, names: Optional[Sequence[str]]) -> List[int]:
        """Numbers of outputs."""
        if isinstance(names, (str, bytes)):
            raise ValueError(f"output_names: {told(names)}, expected a list of names, or None")
        known = [one.name for one in self._outputs]
        if names is None or len(names) == 0:
            return list(range(len(known)))
        for name in names:
            if name not in known:
                raise ValueError(f"Invalid output name: {told(name)}, expected one of {known}")
        return [known.index(name) for name in names]

    def _arrays(self, feed: Any, casting: str) -> List[Any]:
        """Arrays for the inputs, in order."""
        check_feed(self._names, feed)
        found = []
        for one in self._inputs:
            value = feed[one.name]
            if one.dtype is None:
                raise ValueError(f"input '{one.name}': the model wants {one.type}, expected numbers")
            array = array_of(value._array if isinstance(value, OrtValue) else value,
                             f"input '{one.name}'", one.dtype, casting)
            one.check(array)
            found.append(array)
        return found

    def _compute(self, arrays: List[Any], options: Optional[RunOptions],
                 cancel: Optional[Callable[[], bool]],
                 progress: Optional[Callable[[int, int], Any]]) -> Lowered:
        if options is not None:
            if not isinstance(options, RunOptions):
                raise TypeError(f"run_options: {told(options)}, expected RunOptions or None")
            wanted, told_to_end = cancel, options
            cancel = (lambda: bool(told_to_end.terminate) or (wanted is not None and wanted()))
        lowered = self._begin(arrays)
        while True:
            lowered.compute(self._runtime, cancel, progress)
            if self._is_single:
                return lowered
            after = make("onnx_next", self)
            if after == 0:
                self._is_single = lowered is self._first
                self._arrays_given = None
                return lowered
            lowered = self._part(after)

    def _begin(self, arrays: List[Any]) -> Lowered:
        """The first part of the model for these inputs, which it has; mostly it is the only one."""
        shapes = [array.shape for array in arrays]
        if self._is_single and [end.shape for end in self._lowered[0].inputs] == shapes:
            for i, array in enumerate(arrays):
                self._lowered[0].fill(i, array)
            return self._lowered[0]
        self._is_single = False
        given = (_native.NetArray * max(len(arrays), 1))()
        names = [one.name.encode() for one in self._inputs]
        for name, stated, array, one in zip(names, self._inputs, arrays, given):
            one.name, one.type, one.n_dims = name, int(stated.dtype or 0), array.ndim
            one.dims[0:array.ndim] = array.shape
            one.data, one.bytes = array.ctypes.data, array.nbytes
        level = self._options.graph_optimization_level
        how = _native.filled(_native.LowerOptions, passes=(
            b"none" if level == GraphOptimizationLevel.ORT_DISABLE_ALL else None))
        how.chooser = tandem.tandem_runtime_chooser(self._runtime)
        self._arrays_given = (given, names, arrays)  # borrowed until the last part
        self._first = self._part(make("onnx_begin", self, given, len(arrays), ctypes.byref(how)))
        return self._first

    def _part(self, pointer: int) -> Lowered:
        """A lowered net of the model, with the plan that it was computed by before, if it was."""
        serial = int(tandem.tandem_lowered_serial.library_function(pointer))
        found = self._parts.pop(serial, None)
        if found is None:
            found = Lowered(pointer, self._content, borrowed=True)
            while len(self._parts) >= KEPT:
                del self._parts[next(iter(self._parts))]  # the one that was used longest ago
        self._parts[serial] = found
        self._lowered = [found]
        return found

    def close(self) -> None:
        """Frees the model, and what it was prepared for."""
        if not self.closed:
            with turn(self._needs):
                self._lowered = []
                self._parts.clear()
                super().close()


def _warn_of(options: SessionOptions, providers: Optional[Sequence[Any]],
             provider_options: Optional[Sequence[Dict[str, Any]]], others: Dict[str, Any]) -> None:
    """One warning that names what is ignored."""
    if isinstance(providers, (str, bytes)) or isinstance(provider_options, (dict, str, bytes)):
        raise ValueError(f"providers: {told(providers)}, {told(provider_options)}, expected lists")
    ignored = list(options._left_out())
    for one in providers or ():
        name = one[0] if isinstance(one, (tuple, list)) and one else one
        if name not in PROVIDERS:
            ignored.append(str(name))
        elif isinstance(one, (tuple, list)) and len(one) > 1 and one[1]:
            ignored.append(f"options of {name}")
    if any(provider_options or ()):
        ignored.append("provider_options")
    ignored += list(others)
    if ignored:
        warnings.warn(f"tandem_infer: ignored: {', '.join(ignored)} (Tandem chooses threads, memory and "
                      "devices by its timing table)", RuntimeWarning, stacklevel=3)
