# SPDX-License-Identifier: MIT
"""Tandem for Python: tensor graphs, plans by measured timing tables, and models of the llama family.

A product of quantised weights and activations, by what this machine does fastest::

    import numpy, tandem_infer as ti

    with ti.Context() as context, ti.Runtime() as runtime:
        w = context.quantize(numpy.ones((64, 256), "float32"), ti.Type.Q4_0)
        x = context.borrow(numpy.ones((3, 256), "float32"))
        y = context.mul_mat(w, x)              # x @ w.T, shape (3, 64)
        runtime.compute(context.graph(y))
        print(y.numpy().copy())

A model that continues a text::

    with ti.Model.load("model.gguf") as model, ti.Runtime() as runtime:
        session = ti.Session(model, runtime)
        for piece in session.generate("Once upon a time", model.tokenizer()):
            print(piece, end="", flush=True)

An ONNX model, in one call, and with those of ONNX Runtime::

    y = ti.load("model.onnx").eval(x)

    session = ti.InferenceSession("model.onnx")
    y, = session.run(None, {"x": x})

A net of one's own, with numpy's operators and functions::

    net = ti.Net()
    x = net.input("x", (4, 64))
    compiled = net.compile(numpy.tanh(x @ weights + bias))
    y = compiled(values)

Objects that own something of the library have ``close()``, work with ``with``, and close themselves
when nobody refers to them. Failures raise ``TandemError``. numpy is needed where it is named only.
"""
import importlib
from typing import TYPE_CHECKING, Any, List, Union

from ._handle import TandemError
from ._native import (library_path as _library_path, load_into_ggml as _load_into_ggml,
                      tandem as _tandem)
from .models import Chat, Hparams, Model, Sampler, Session, Tokenizer
from .ranks import Communicator
from .templates import ChatTemplate
from .runtime import (Choice, Device, Drift, Objective, Plan, Profile, Runtime, RuntimeInfo, Table,
                      devices, shared_runtime as _shared_runtime)
from .tensors import Context, Graph, Path, Role, Tensor, Type, dequantize

if TYPE_CHECKING:
    from .inference import (InferenceSession, ModelMetadata, NodeArg, disable_telemetry_events,
                            get_all_providers, get_available_providers, get_device,
                            set_default_logger_severity, set_default_logger_verbosity, set_seed)
    from .lowered import DType, from_dlpack
    from .nets import CompiledNet, Net, Value
    from .options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
    from .ortvalue import IOBinding, OrtValue

#: Names of modules that need numpy, which is imported when the first of them is asked for.
_LAZY = {
    **{name: "inference" for name in (
        "InferenceSession", "ModelMetadata", "NodeArg", "disable_telemetry_events", "get_all_providers",
        "get_available_providers", "get_device", "set_default_logger_severity",
        "set_default_logger_verbosity", "set_seed")},
    **{name: "lowered" for name in ("DType", "from_dlpack")},
    **{name: "nets" for name in ("CompiledNet", "Net", "Value")},
    **{name: "options" for name in (
        "ExecutionMode", "GraphOptimizationLevel", "RunOptions", "SessionOptions")},
    **{name: "ortvalue" for name in ("IOBinding", "OrtValue")},
}

__all__ = [
    "Chat", "ChatTemplate", "Choice", "Communicator", "CompiledNet", "Context", "DType", "Device",
    "Drift",
    "ExecutionMode", "Graph", "GraphOptimizationLevel", "Hparams", "IOBinding", "InferenceSession",
    "Model", "ModelMetadata", "Net", "NodeArg", "Objective", "OrtValue", "Plan", "Profile", "Role",
    "RunOptions", "Runtime", "RuntimeInfo", "Sampler", "Session", "SessionOptions", "Table",
    "TandemError", "Tensor", "Tokenizer", "Type", "Value", "best", "dequantize", "devices",
    "disable_telemetry_events", "from_dlpack", "get_all_providers", "get_available_providers",
    "get_device", "ggml_backend_path", "load", "load_into_ggml", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed", "version",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = getattr(importlib.import_module("." + _LAZY[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))


def best(threads: int = 0) -> Runtime:
    """The runtime that sessions and nets of this process share: all backends that are there, this
    machine's timing table, as many threads as cores (or ``threads``)."""
    return _shared_runtime(threads)


def load(path: Path) -> "Union[InferenceSession, Model]":
    """Loads a model, whose ``eval`` gives the result: ``load("model.onnx").eval(x)`` an array,
    ``load("model.gguf").eval("Once upon a time")`` a text. See ``Runtime.load``."""
    return best().load(path)


def version() -> str:
    """Version of the library that is loaded, such as "0.2.0"."""
    return str(_tandem.tandem_version().decode())


__version__ = version()


def ggml_backend_path() -> str:
    """Path of the backend for programs with ggml (docs/bridge.md), for the variable
    GGML_BACKEND_PATH of those that look for backends when they start, as llama.cpp's own do::

        os.environ["GGML_BACKEND_PATH"] = tandem_infer.ggml_backend_path()

    Packages for Python do not look for any: see ``load_into_ggml``.
    """
    return _library_path("libggml-tandem")


def load_into_ggml() -> str:
    """Loads the backend into the ggml of this process, behind ``import llama_cpp`` or
    ``import xllamacpp`` and before a model is loaded::

        import llama_cpp, tandem_infer
        tandem_infer.load_into_ggml()

    Returns the path of the library that has taken it. Raises TandemError where no ggml is loaded, or
    where it refuses the backend (its log says why).
    """
    return _load_into_ggml(ggml_backend_path())
