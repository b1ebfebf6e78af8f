# SPDX-License-Identifier: MIT
"""Options as ONNX Runtime names them. Those that mean something here are taken; the others are kept,
and a session names them once in a warning."""
import enum
from ctypes import c_int64
from typing import Any, Dict, List, Tuple

from ._native import KINDS, told


class GraphOptimizationLevel(enum.IntEnum):
    """DISABLE_ALL runs no pass over a model, every other level runs all of them."""
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Read by nobody: nodes that do not wait for each other always overlap where that is faster."""
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class _Options:
    """Members with defaults, and whatever else a program sets."""

    _defaults: Dict[str, Any] = {}
    _taken: Tuple[str, ...] = ()

    def __init__(self) -> None:
        self.__dict__.update(self._defaults)
        self._entries: Dict[str, str] = {}

    def _entry(self, key: str) -> str:
        found = self._entries.get(str(key))
        if found is None:
            raise ValueError(f"configuration {told(key)}: there is none of this key, expected one of "
                             f"{sorted(self._entries)}")
        return found

    def _left_out(self) -> List[str]:
        """Names of members that were changed and that nobody reads."""
        return [name for name, value in vars(self).items()
                if not name.startswith("_") and name not in self._taken and
                not (name in self._defaults and value == self._defaults[name])]


class SessionOptions(_Options):
    """How a session computes.

    Attributes:
        intra_op_num_threads: threads of a computation; 0: one a core.
        graph_optimization_level: see GraphOptimizationLevel.
    """

    _defaults = {
        "intra_op_num_threads": 0, "inter_op_num_threads": 0,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": None,
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True,
        "enable_profiling": False, "log_severity_level": -1, "log_verbosity_level": 0, "logid": "",
        "optimized_model_filepath": "", "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
    }
    # The same plan always gives the same bits, so that use_deterministic_compute is kept; what the
    # library writes is no more than what these levels ask for, and its memory is planned anyway.
    _taken = ("intra_op_num_threads", "graph_optimization_level", "use_deterministic_compute",
              "log_severity_level", "log_verbosity_level", "logid", "enable_cpu_mem_arena",
              "enable_mem_pattern", "enable_mem_reuse")

    intra_op_num_threads: int
    graph_optimization_level: Any

    def __init__(self) -> None:
        super().__init__()
        self._extents: Dict[str, int] = {}

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        """Fixes a symbolic dimension, so that the model is prepared when it is loaded."""
        self._extents[str(name)] = KINDS[c_int64].check(extent, "extent", [])

    def add_free_dimension_override_by_denotation(self, denotation: str, _extent: int) -> None:
        """Ignored."""
        self._entries[f"add_free_dimension_override_by_denotation('{denotation}')"] = ""

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept and ignored."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """What was added."""
        return self._entry(key)

    def has_providers(self) -> bool:
        """Providers are not kept here."""
        return False

    def add_provider(self, name: str, _options: Any) -> None:
        """Ignored."""
        self._entries[f"add_provider('{name}')"] = ""

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: operators of other libraries cannot run."""
        raise ValueError(f"register_custom_ops_library: '{path}', expected none: Tandem computes its own "
                         "operators alone")

    def add_initializer(self, name: str, _value: Any) -> None:
        """Refused: weights are those of the file."""
        raise ValueError(f"add_initializer: '{name}', expected weights in the model file")

    def add_external_initializers(self, names: Any, _values: Any) -> None:
        """Refused: weights are those of the file."""
        raise ValueError(f"add_external_initializers: {told(names)}, expected weights in the model file "
                         "and the files that it names")

    def _left_out(self) -> List[str]:
        return super()._left_out() + list(self._entries)


class RunOptions(_Options):
    """How one computation runs.

    Attributes:
        terminate: True, set by any thread, ends computations with TandemError (CANCELLED).
    """

    _defaults = {"terminate": False, "log_severity_level": 2, "log_verbosity_level": 0, "logid": "",
                 "only_execute_path_to_fetches": False, "training_mode": False}

    terminate: bool

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept and ignored."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """What was added."""
        return self._entry(key)
