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

Objects that own something of the library have ``close()``, work with ``with``, and close themselves
when nobody refers to them. Failures raise ``TandemError``. numpy is needed where it is named only.
"""
from ._handle import TandemError
from ._native import (library_path as _library_path, load_into_ggml as _load_into_ggml,
                      tandem as _tandem)
from .models import Chat, Hparams, Model, Sampler, Session, Tokenizer
from .templates import ChatTemplate
from .runtime import (Choice, Device, Drift, Objective, Plan, Profile, Runtime, RuntimeInfo, Table,
                      devices)
from .tensors import Context, Graph, Role, Tensor, Type, dequantize

__all__ = [
    "Chat", "ChatTemplate", "Choice", "Context", "Device", "Drift", "Graph", "Hparams", "Model",
    "Objective", "Plan", "Profile", "Role", "Runtime", "RuntimeInfo", "Sampler", "Session", "Table", "TandemError",
    "Tensor", "Tokenizer", "Type", "dequantize", "devices", "ggml_backend_path",
    "load_into_ggml", "version",
]


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
