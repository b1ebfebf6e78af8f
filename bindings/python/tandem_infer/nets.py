# SPDX-License-Identifier: MIT
"""Nets built by hand with numpy's operators and functions. Needs numpy."""
import ctypes
from typing import Any, Callable, List, Optional, Tuple, Union

from . import _native
from ._handle import TandemError, Uncopied, turn
from ._native import tandem, told
from .lowered import DType, End, Lowered, NetHandle, array_of, check_feed, dtype_of, feed_of
from .netops import Operators, extents_of, ints
from .runtime import Runtime, shared_runtime

NONE = -1  #: TANDEM_NET_NONE


class Net(NetHandle):
    """A net that is built: values are made by ``input`` and ``constant`` and joined by numpy's
    operators and functions, then ``compile`` makes it ready to compute::

        net = tandem_infer.Net()
        x = net.input("x", (4, 64))
        y = numpy.tanh(x @ weights + bias)              # arrays become constants
        compiled = net.compile(y)
        compiled(numpy.ones((4, 64), "float32"))        # an array of float32

    One thread at a time: others wait. A builder that fails raises an exception and changes nothing.
    """

    def __init__(self) -> None:
        super().__init__(_native.make("net_new"))
        self._inputs: List[str] = []

    def input(self, name: str, shape: Any, dtype: Any = "float32") -> "Value":
        """An input. ``shape``: up to 8 extents."""
        if name in self._inputs:
            raise ValueError(f"input '{name}': there is one of this name")
        extents = extents_of(shape, "shape")
        made = self._build("input", int(dtype_of(dtype)), len(extents), ints(extents), name)
        self._inputs.append(name)
        return made

    def constant(self, values: Any, dtype: Any = None) -> "Value":
        """A constant: a copy of an array, another buffer, an object with DLPack, or numbers."""
        kind = None if dtype is None else dtype_of(dtype)
        array = array_of(values, "constant", kind, "same_kind")
        return self._build("constant", int(kind if kind is not None else dtype_of(array.dtype)), array.ndim,
                           ints(array.shape), array.ctypes.data)

    def compile(self, *outputs: Any, runtime: Optional[Runtime] = None, threads: int = 0,
                passes: Optional[str] = None, **named: Any) -> "CompiledNet":
        """Makes the net ready to compute; it is empty from then on.

        Args:
            outputs, named: values that shall be computed; those without a name have their number.
            runtime: computes it; default: the one that nets of as many threads share.
            threads: of a computation; 0: one a core.
            passes: "fold,equal": these passes alone; default: all; "none".
        """
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime: {told(runtime)}, expected a runtime or None")
        wanted = {str(i): value for i, value in enumerate(outputs)}
        wanted.update(named)
        if not wanted:
            raise ValueError("compile: no outputs, expected one at least")
        for name, value in wanted.items():
            if not isinstance(value, Value) or value.net is not self:
                raise TypeError(f"compile: output '{name}' is {told(value)}, expected a value of this net")
        with turn(self._needs):
            for name, value in wanted.items():
                self._build("output", value._number, name)
            runtime = runtime or shared_runtime(threads)
            how = _native.filled(_native.LowerOptions, passes=passes)
            how.chooser = tandem.tandem_runtime_chooser(runtime)
            lowered = self.lower(how)
        return CompiledNet(lowered, runtime)

    def _build(self, name: str, *arguments: Any) -> "Value":
        """Calls a builder; a failed one raises what the net says, and the net goes on."""
        with turn(self._needs):
            number = getattr(tandem, "tandem_net_" + name)(self, *arguments)
            if number == NONE:
                try:
                    _native.call("net_status", self)
                except TandemError as error:
                    tandem.tandem_net_clear_error(self)
                    if error.status in ("ARGUMENT", "SHAPE", "TYPE"):
                        raise ValueError(str(error)) from None
                    raise
                raise TandemError(f"{name}: nothing was made", "MEMORY")
            return Value._at(self, number)

    def __str__(self) -> str:
        return _native.printed(tandem.tandem_net_print, self)


class CompiledNet(Uncopied):
    """A net that is ready to compute. One thread at a time: others wait."""

    def __init__(self, lowered: Lowered, runtime: Runtime) -> None:
        if not isinstance(lowered, Lowered):
            raise TypeError("CompiledNet: it is made by a net: net.compile")
        self._lowered = lowered
        self._runtime = runtime
        self._names = [end.name for end in lowered.inputs]

    @property
    def inputs(self) -> List[End]:
        """Inputs, with ``name``, ``dtype`` and ``shape``."""
        return list(self._lowered.inputs)

    @property
    def outputs(self) -> List[End]:
        """Outputs, the same."""
        return list(self._lowered.outputs)

    def eval(self, *inputs: Any, out: Any = None, cancel: Optional[Callable[[], bool]] = None,
             progress: Optional[Callable[[int, int], Any]] = None, **named: Any) -> Any:
        """Computes the outputs, an array or a tuple of arrays, of inputs in the order in which they were
        made, or by name. Ctrl-C ends it.

        Args:
            inputs, named: arrays, other buffers, objects with DLPack, or numbers. Floats become the
                floats that the net takes.
            out: an array, or a tuple of them, that outputs are written to.
            cancel: asked between nodes; True ends with TandemError (CANCELLED).
            progress: told nodes done and nodes in all, now and then.
        """
        lowered = self._lowered
        feed = feed_of(self._names, inputs, named)
        check_feed(self._names, feed)
        arrays = [array_of(feed[end.name], f"input '{end.name}'", end.dtype, "same_kind")
                  for end in lowered.inputs]
        given = (None,) * len(lowered.outputs) if out is None else out if isinstance(
            out, tuple) else (out,)
        if len(given) != len(lowered.outputs):
            raise ValueError(f"out: {len(given)} arrays, expected {len(lowered.outputs)}")
        with turn(lowered._needs + self._runtime._needs):
            for i, array in enumerate(arrays):
                lowered.fill(i, array)
            lowered.compute(self._runtime, cancel, progress)
            found = tuple(lowered.take(i, one) for i, one in enumerate(given))
        return found[0] if len(found) == 1 else found

    __call__ = eval

    def compute(self) -> None:
        """Computes the outputs in place, of what stands in ``input_array``."""
        with turn(self._lowered._needs + self._runtime._needs):
            self._lowered.compute(self._runtime)

    def input_array(self, which: Union[int, str]) -> Any:
        """An array over the memory of an input, to write into without a copy. It keeps its values
        from computation to computation; the net cannot be closed while the array lives."""
        return self._lowered.view(self._find(self._lowered.inputs, which), False)

    def output_array(self, which: Union[int, str] = 0) -> Any:
        """An array over the memory of an output, which changes with each computation."""
        return self._lowered.view(self._find(self._lowered.outputs, which), True)

    @staticmethod
    def _find(ends: List[End], which: Union[int, str]) -> End:
        for i, end in enumerate(ends):
            if which in (i, end.name):
                return end
        raise ValueError(f"{told(which)}, expected one of {[end.name for end in ends]}")

    def explain(self) -> str:
        """Why each node runs as it does."""
        with turn(self._lowered._needs + self._runtime._needs):
            return self._runtime.explain(self._lowered.graph, self._lowered.plan(self._runtime))

    def tune(self, budget_s: float = 5.0, save: bool = False,
             progress: Optional[Callable[[float, float], bool]] = None) -> None:
        """Measures the products of the net (Runtime.tune)."""
        self._runtime.tune(self._lowered.graph, budget_s, save, progress)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._lowered.closed

    def close(self) -> None:
        """Frees it. Raises BufferError while arrays over its memory are in use."""
        self._lowered.close()

    def __enter__(self) -> "CompiledNet":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Value(Operators, Uncopied):
    """A value of a net that is built: numbers come when the net is computed. Operators and functions
    of numpy make further values, with numpy's types, shapes and broadcasting."""

    net: Net
    _number: int
    dtype: Any  #: in numpy
    shape: Tuple[int, ...]
    kind: DType

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("Value: it is made by a net: net.input, net.constant, or an operator")

    @classmethod
    def _at(cls, net: Net, number: int) -> "Value":
        array = _native.NetArray()
        tandem.tandem_net_value(net, number, ctypes.byref(array))
        value = cls.__new__(cls)
        value.net, value._number = net, number
        value.kind = DType(array.type)
        value.dtype = value.kind.numpy
        value.shape = tuple(array.dims[0:array.n_dims])
        return value

    # ---- what it is ----

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a value without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a value of a net has no truth before it is computed, expected numpy.where or "
                        "logical functions")

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Value({self.kind.name}, {self.shape})"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a value of a net is no array before it is computed: net.compile(value)")
