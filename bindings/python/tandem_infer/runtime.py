# SPDX-License-Identifier: MIT
"""Runtimes, plans, timing tables, devices."""
import ctypes
import enum
import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _native
from ._handle import Handle, TandemError, call_back, turn
from ._interrupt import interruptible
from ._native import tandem, text, told
from .tensors import Graph, Path, Tensor, index_of


class Objective(enum.IntEnum):
    """What plans aim at; the last two need a table with joules."""
    TIME = 0
    ENERGY = 1
    EDP = 2


@dataclass(frozen=True)
class Choice:
    """How one node of a plan runs."""
    profile: str  #: "cpu", "cpu-packed", ...
    threads: int
    reason: str  #: "table", "rule", "forced", ...
    predicted_us: float  #: of all stages; 0 where nothing is known
    runner_up_us: float  #: of the second best; 0: there is none


@dataclass(frozen=True)
class Profile:
    """A way of computing matrix products."""
    name: str
    what: str
    available: bool
    reason: str  #: why it is not available


@dataclass(frozen=True)
class Drift:
    """A time of the table that computations do not bear out."""
    what: str
    predicted_us: float
    measured_us: float
    noise: float


@dataclass(frozen=True)
class Device:
    """A device as its driver describes it."""
    name: str
    platform: str
    vendor: str
    driver: str
    kind: str  #: "gpu", "cpu", "accelerator", "other"
    memory_bytes: int
    compute_units: int
    is_fit: bool  #: the library can use it
    is_default: bool  #: opened without being asked for
    reason: str  #: why it is not fit, or not opened by default


@dataclass(frozen=True)
class RuntimeInfo:
    """Facts for reports."""
    cpu: str
    isa: str
    topology: str
    table: str  #: path of the table in use, or ""
    threads: int
    cores: int
    prepared_bytes: int  #: copies of weights that backends have made


class _Callbacks:
    """Functions of Python that the library calls. What they raise ends the call and is raised behind
    it: nothing may travel through the library."""

    def __init__(self) -> None:
        self.raised: Optional[BaseException] = None
        self._kept: List[Any] = []

    def wrap(self, kind: Any, function: Optional[Callable[..., Any]], stop: Any) -> Optional[int]:
        if function is None:
            return None
        if not callable(function):
            raise TypeError(f"callback: {told(function)}, expected a function or None")
        wanted = function

        def guarded(_user: Any, *arguments: Any) -> Any:
            try:
                answer = stop if self.raised is not None else call_back(wanted, *arguments)
                return None if stop is None else bool(answer)
            except BaseException as error:  # pylint: disable=broad-except  # KeyboardInterrupt too
                self.raised = error
                return stop

        made = kind(guarded)
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def call(self, name: str, flag: ctypes.c_int32, *arguments: Any) -> None:
        """Calls a function that takes long; Ctrl-C sets the flag."""
        try:
            with interruptible(flag):
                _native.call(name, *arguments)
        except TandemError:
            if self.raised is None:
                raise
        if self.raised is not None:
            raise self.raised


class Table(Handle):
    """A timing table: what each way of computing costs on one machine. Any thread, one at a time.

    Args:
        path: a file, text or JSON; None: an empty table with this machine's fingerprint.
    """

    _what = "table"
    _alone = True

    def __init__(self, path: Optional[Path] = None) -> None:
        self._own(_native.make("table_new") if path is None else _native.make("table_load", path),
                  tandem.tandem_table_free)

    @classmethod
    def _of(cls, pointer: int) -> "Table":
        table = cls.__new__(cls)
        table._own(pointer, tandem.tandem_table_free)
        return table

    @classmethod
    def load(cls, path: Path) -> "Table":
        """Reads a file, text or JSON: ``Table(path)``."""
        return cls._of(_native.make("table_load", path))

    @classmethod
    def parse(cls, content: Union[str, bytes], name: str = "table") -> "Table":
        """Reads a table from text or bytes; ``name`` stands in messages."""
        data = _native.data_of(content, "parse")
        return cls._of(_native.make("table_parse", data, len(data), name))

    @staticmethod
    def default_path() -> str:
        """Path of this machine's own table, whether or not it exists."""
        out = ctypes.create_string_buffer(4096)
        _native.call("table_default_path", out, len(out))
        return text(out.value)

    def save(self, path: Path, json: bool = True) -> None:
        """Writes a file as a whole or not at all: JSON, or text of version 1."""
        _native.call("table_save", self, path, 2 if json else 1)

    def merge(self, other: "Table") -> None:
        """Adds the cells of another table; of two for one cell the better measured one stays."""
        _native.call("table_merge", self, other)

    def copy(self) -> "Table":
        """A table of the same contents."""
        return Table._of(_native.make("table_copy", self))

    def check(self) -> None:
        """Raises TandemError (TABLE_FOREIGN) when it was measured on another machine."""
        _native.call("table_check", self)

    def json(self) -> Dict[str, Any]:
        """The contents as docs/table-format.md describes them."""
        pieces: List[bytes] = []

        def write(_user: Any, data: Any, n: int) -> int:
            pieces.append(ctypes.string_at(data, n))
            return 0

        _native.call("table_print", self, 2, _native.WriteFn(write), None)
        content: Dict[str, Any] = json.loads(b"".join(pieces))
        return content

    def curves(self, type: Optional[str] = None, n: Optional[int] = None, k: Optional[int] = None,
               stage: str = "compute") -> List[Dict[str, Any]]:
        """Measured curves of matrix products, for plots: dictionaries with ``type``, ``n``, ``k``,
        ``backend``, ``task``, ``threads``, and lists ``m`` and ``us``."""
        out = []
        for curve in self.json().get("curves", []):
            if (curve["op"] == "mul_mat" and curve["stage"] == stage and
                    type in (None, curve["type"]) and n in (None, curve["n"]) and
                    k in (None, curve["k"])):
                samples = curve["samples"]
                out.append({**{key: curve[key] for key in ("type", "n", "k", "backend", "task",
                                                          "threads")},
                            "m": [s["m"] for s in samples],
                            "us": [s["median_us"] for s in samples]})
        return out


class Plan(Handle):
    """The choices for all nodes of one graph, as ``Runtime.plan`` makes them."""

    _what = "plan"
    _alone = True

    def __init__(self, runtime: "Runtime", graph: Graph) -> None:
        self._take(runtime, graph, _native.make("runtime_plan", runtime, graph))

    def _take(self, runtime: "Runtime", graph: Graph, pointer: int) -> None:
        self._own(pointer, tandem.tandem_plan_free)
        self.runtime = runtime
        self.graph = graph

    def __len__(self) -> int:
        return int(tandem.tandem_plan_node_count(self))

    def __getitem__(self, i: int) -> Choice:
        with turn(self._needs):
            n = len(self)
            at = index_of(i, n, "plan: node")
            node = tandem.tandem_plan_node(self, at).contents
            reason = tandem.tandem_plan_reason_name(node.reason & 0x7fffffff)
            return Choice(text(node.profile), node.n_threads, text(reason),
                          sum(node.predicted_us), node.runner_up_us)

    @property
    def took_us(self) -> float:
        """Time that making the plan took."""
        return float(tandem.tandem_plan_took_us(self))

    def force(self, i: int, profile: str) -> None:
        """Has node i run by another profile."""
        _native.call("runtime_force_node", self.runtime, self.graph, self, i, profile)

    def save(self, path: Path) -> None:
        """Writes the plan to a text file."""
        _native.call("runtime_save_plan", self.runtime, self.graph, self, path)

    def __str__(self) -> str:
        return _native.printed(tandem.tandem_runtime_print_plan, self.runtime, self.graph, self)


class Runtime(Handle):
    """Backends, threads and this machine's timing table: plans graphs and computes them. Any number
    of threads may use it at once; each graph one at a time.

    Args:
        threads: of a graph; 0: one a core.
        table: path of a timing table over this machine's own; "": none, the rule serves. One that
            is missing, damaged or of another machine raises TandemError.
        profile: force this profile wherever it applies.
        backends: comma-separated names; default: all that are present; "auto": the CPU and those
            devices that the machine's tables have as the fastest for some product.
        settings: of backends, as "opencl:device=0;cpu:packed=4096".
        objective: what plans aim at.
        log: called with (level, room, text) for each line, from any thread.
        log_level: 1 errors, 2 warnings, 3 what was found and chosen, 4 all; 0: TANDEM_LOG, or 2.
    """

    _what = "runtime"
    _n_settings = 0  # how often what plans depend on was changed

    def __init__(self, threads: int = 0, table: Optional[str] = None, profile: Optional[str] = None,
                 backends: Optional[str] = None, settings: Optional[str] = None,
                 objective: Objective = Objective.TIME,
                 log: Optional[Callable[[int, str, str], Any]] = None,
                 log_level: int = 0) -> None:
        self._callbacks = _Callbacks()
        wanted = log
        line = None if wanted is None else (
            lambda level, room, words: wanted(level, text(room), text(words)))
        if log is not None and not callable(log):
            raise TypeError(f"log: {told(log)}, expected a function or None")
        options = _native.filled(
            _native.RuntimeOptions, n_threads=threads, profile=profile, backends=backends,
            table_path=None if table is None else _native.FilePath().check(table, "table"),
            settings=settings, objective=Objective(objective), log_level=log_level,
            log=self._callbacks.wrap(_native.LogFn, line, None))
        if table:
            Table(table).close()  # the library goes on without one that it cannot read
        pointer = _native.make("runtime_open", ctypes.byref(options))
        callbacks = self._callbacks  # lines may come until it is closed

        def free(runtime: int) -> None:
            tandem.tandem_runtime_close(runtime)
            callbacks.raised = None

        self._own(pointer, free)
        name = os.fsdecode(table) if table else ""
        if table and self.info.table != name:
            self.close()
            raise TandemError(f"{name}: none of its times hold on this machine; 'mulmat-tune table "
                              "check' says why", "TABLE_FOREIGN", name)

    def load(self, path: Path) -> Any:
        """Loads a model to compute it here: a Model (GGUF, safetensors, PyTorch, ...), or an
        InferenceSession of an ONNX file. Both have ``eval``."""
        name = os.fsdecode(os.fspath(path)) if isinstance(path, (str, bytes, os.PathLike)) else ""
        is_named = name.lower().endswith(".onnx")
        kinds = [self._load_onnx, self._load_model] if is_named else [self._load_model, self._load_onnx]
        try:
            return kinds[0](path)
        except TandemError as error:
            if error.status not in ("FORMAT", "TRUNCATED"):
                raise
            try:
                return kinds[1](path)
            except (TandemError, ModuleNotFoundError):
                raise error from None

    def _load_onnx(self, path: Path) -> Any:
        from .inference import InferenceSession
        return InferenceSession(path, runtime=self)

    def _load_model(self, path: Path) -> Any:
        from .models import Model
        model = Model(path)
        model._runtime = self
        return model

    @property
    def info(self) -> RuntimeInfo:
        """Facts for reports."""
        info = _native.filled(_native.RuntimeInfo)
        with turn(self._needs):
            _native.check(tandem.tandem_runtime_describe(self, ctypes.byref(info)))
            return RuntimeInfo(text(info.cpu), text(info.isa), text(info.topology),
                               text(info.table), info.n_threads, info.n_cores, info.prepared_bytes)

    @property
    def threads(self) -> int:
        """Threads that later plans have at most."""
        return int(tandem.tandem_runtime_threads(self))

    @threads.setter
    def threads(self, n: int) -> None:
        _native.check(tandem.tandem_runtime_set_threads(self, n))
        self._n_settings += 1

    @property
    def backends(self) -> List[str]:
        """Names of the open backends."""
        with turn(self._needs):
            n = tandem.tandem_runtime_backend_count(self)
            return [text(tandem.tandem_runtime_backend_name(self, slot)) for slot in range(1, n)]

    @property
    def profiles(self) -> List[Profile]:
        """Profiles that the library knows, available or not."""
        n = tandem.tandem_runtime_profiles(self, None, 0)
        rows = (_native.ProfileInfo * n)()
        tandem.tandem_runtime_profiles(self, rows, n)
        return [Profile(text(r.name), text(r.what), r.available, text(r.reason)) for r in rows]

    def set_table(self, table: Optional[Table]) -> None:
        """Uses another table, a copy of it; None: the rule."""
        _native.call("runtime_set_table", self, table)
        self._n_settings += 1

    def check_table(self) -> None:
        """Raises TandemError with the reason when no timing table is in use."""
        _native.call("runtime_table_status", self)

    def force_profile(self, profile: Optional[str]) -> None:
        """Forces a profile wherever it applies in later plans; None: choose."""
        _native.call("runtime_force_profile", self, profile)
        self._n_settings += 1

    def pause(self) -> None:
        """Idle workers sleep at once, until ``resume`` or the next computation."""
        tandem.tandem_runtime_pause(self)

    def resume(self) -> None:
        """Idle workers wait for work again."""
        tandem.tandem_runtime_resume(self)

    def plan(self, graph: Graph) -> Plan:
        """Chooses a profile and a number of threads for every node."""
        return Plan(self, graph)

    def load_plan(self, graph: Graph, path: Path) -> Plan:
        """Reads a plan that was saved for a graph like this one."""
        plan = Plan.__new__(Plan)
        plan._take(self, graph, _native.make("runtime_load_plan", self, graph, path))
        return plan

    def explain(self, graph: Graph, plan: Optional[Plan] = None) -> str:
        """Why each node runs as it does, and what would change the choice."""
        self._check_plan(graph, plan)
        return _native.printed(tandem.tandem_runtime_explain, self, graph, plan)

    def _check_plan(self, graph: Graph, plan: Optional[Plan]) -> None:
        if isinstance(plan, Plan) and (plan.runtime is not self or plan.graph is not graph):
            raise ValueError(f"plan: it is of another {'graph' if plan.runtime is self else 'runtime'}"
                             ", expected one of this runtime for this graph")

    def compute(self, graph: Graph, plan: Optional[Plan] = None,
                cancel: Optional[Callable[[], bool]] = None,
                progress: Optional[Callable[[int, int], Any]] = None) -> Tuple[Tensor, ...]:
        """Computes a graph by a plan, or by a fresh one. Returns its outputs. Ctrl-C ends it.

        Args:
            cancel: asked between nodes; True ends with TandemError (CANCELLED).
            progress: told nodes done and nodes in all, now and then.
        """
        self._check_plan(graph, plan)
        flag = ctypes.c_int32()
        callbacks = _Callbacks()
        wanted = cancel
        options = _native.ComputeOptions(ctypes.sizeof(_native.ComputeOptions))
        options.cancel, options.user = _native.CANCEL_FLAG, ctypes.addressof(flag)
        if wanted is not None or progress is not None:
            if wanted is not None and not callable(wanted):
                raise TypeError(f"cancel: {told(wanted)}, expected a function or None")
            options.cancel = callbacks.wrap(_native.CancelFn, lambda: (
                flag.value != 0 or callbacks.raised is not None or
                (wanted is not None and wanted())), True)
            options.progress = callbacks.wrap(_native.ProgressFn, progress, None)
        callbacks.call("runtime_compute", flag, self, graph, plan, ctypes.byref(options))
        return graph.outputs

    def tune(self, graph: Graph, budget_s: float = 5.0, save: bool = False,
             progress: Optional[Callable[[float, float], bool]] = None) -> None:
        """Measures the products of a graph for at most ``budget_s`` seconds and plans by what it
        found from then on. Ctrl-C ends it.

        Args:
            save: keep it in this machine's own table too.
            progress: told seconds gone and the budget; True ends measuring.
        """
        if progress is not None and not callable(progress):
            raise TypeError(f"progress: {told(progress)}, expected a function or None")
        flag = ctypes.c_int32()
        callbacks = _Callbacks()
        wanted = progress
        options = _native.filled(_native.TuneOptions, budget_s=budget_s, saves=save)
        options.progress = callbacks.wrap(
            _native.TuneProgressFn, lambda gone, budget: (
                flag.value != 0 or (wanted is not None and wanted(gone, budget))), True)
        try:
            callbacks.call("tune_graph", flag, self, graph, ctypes.byref(options))
        finally:
            self._n_settings += 1

    def forget(self, tensor: Tensor) -> None:
        """Devices give up what they keep of a constant tensor."""
        tandem.tandem_runtime_forget(self, tensor)

    @property
    def drift(self) -> List[Drift]:
        """Times of the table that turned out wrong."""
        n = max(0, tandem.tandem_runtime_drift(self, None, 0))
        rows = (_native.DriftInfo * n)()
        n = min(n, tandem.tandem_runtime_drift(self, rows, n))
        return [Drift(text(r.what), r.predicted_us, r.measured_us, r.noise) for r in rows[:n]]


_shared: Dict[Tuple[int, int], Runtime] = {}


def shared_runtime(threads: int = 0) -> Runtime:
    """The runtime that models of this process share which ask for so many threads (0: one a core)."""
    key = (os.getpid(), threads)  # a child of a fork has its own
    runtime = _shared.get(key)
    if runtime is None or runtime.closed:
        made = Runtime(threads=threads)
        runtime = made if runtime is not None and runtime.closed else _shared.setdefault(key, made)
        _shared[key] = runtime
    return runtime


def devices() -> List[Device]:
    """The devices of this machine, fit or not; empty when there is none."""
    error = _native.Error()
    n = tandem.tandem_devices(None, 0, ctypes.byref(error))
    if n <= 0:
        return []
    rows = (_native.DeviceInfo * n)()
    rows[0].size = ctypes.sizeof(_native.DeviceInfo)
    n = min(n, tandem.tandem_devices(rows, n, ctypes.byref(error)))
    return [Device(text(r.name), text(r.platform), text(r.vendor), text(r.driver),
                   text(tandem.tandem_device_type_name(r.type)), r.memory_bytes, r.compute_units,
                   r.is_fit, r.is_default, text(r.reason)) for r in rows[:n]]
