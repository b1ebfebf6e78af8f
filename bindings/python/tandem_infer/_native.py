# SPDX-License-Identifier: MIT
"""The C interface as ctypes sees it: libraries and prototypes (structures: _structs). Every call passes
one gate (_guarded), which checks each argument by its kind and takes turns on the objects."""
import ctypes
import operator
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float,
                    c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_ulong,
                    c_void_p)
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

from ._handle import Needs, State, TandemError, turn
from ._structs import (  # noqa: F401  (who fills them says _native.X)
    STRUCTS, BatchEntry, ChatOptions, ComputeOptions, ContextOptions, DeviceInfo, DraftInfo,
    DraftOptions, DriftInfo, EncodeOptions, Error, Hparams, LlamaShape, LowerOptions, MemoryReport,
    Message, NetArray, NetWindow,
    OnnxDim, OnnxMeta, OnnxOptions, OnnxValue, PlanNode, ProfileInfo, Rendered, RopeOptions,
    RuntimeInfo, RuntimeOptions, SamplerOptions, SessionOptions, TaskConfig, TokenStream,
    Transport, TuneOptions)

#: The library's binary interface (include/tandem/version.h), part of its file's name.
SUFFIX = ".so.0.2"

# ---- functions that the library calls ----

WriteFn = CFUNCTYPE(c_int, c_void_p, POINTER(c_char), c_ulong)
CancelFn = CFUNCTYPE(c_bool, c_void_p)
ProgressFn = CFUNCTYPE(None, c_void_p, c_int, c_int)
TuneProgressFn = CFUNCTYPE(c_bool, c_void_p, c_double, c_double)
EmitFn = CFUNCTYPE(c_bool, c_void_p, POINTER(c_char), c_size_t)
ReindexFn = CFUNCTYPE(None, c_void_p, POINTER(c_int64), POINTER(c_int64))
ExchangeFn = CFUNCTYPE(c_bool, c_void_p, POINTER(Message), c_int, POINTER(Message), c_int, c_double,
                       POINTER(c_int), POINTER(c_char), c_size_t)
CloseFn = CFUNCTYPE(None, c_void_p, c_bool)
LogFn = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)

# ---- kinds of arguments ----


class Kind:
    """How an argument is checked and what C gets; this one serves pointers that the package makes."""

    is_raw = True
    is_object = False

    def __init__(self, ctype: Any) -> None:
        self.ctype = ctype

    def check(self, value: Any, what: str, needs: List[Needs]) -> Any:
        return value


def told(value: Any) -> str:
    """A value in a message: not longer than a line."""
    try:
        written = repr(value)
    except Exception:  # pylint: disable=broad-except  # the program's own __repr__
        written = "?"
    return f"{written if len(written) <= 60 else written[:57] + '...'} ({type(value).__name__})"


class Integer(Kind):
    """Within the range of its C type; ctypes alone cuts."""

    is_raw = False

    def __init__(self, ctype: Any) -> None:
        super().__init__(ctype)
        bits = 8 * ctypes.sizeof(ctype)
        self.low = -(1 << (bits - 1)) if ctype(-1).value < 0 else 0
        self.high = (1 << (bits if self.low == 0 else bits - 1)) - 1

    def check(self, value: Any, what: str, needs: Any = None) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{what}: {told(value)}, expected an integer") from None
        if not self.low <= number <= self.high:
            raise OverflowError(f"{what}: {told(value)}, expected {self.low} to {self.high}")
        return number


class Real(Kind):
    is_raw = False

    def check(self, value: Any, what: str, needs: Any = None) -> float:
        if isinstance(value, (str, bytes, bytearray)) or not (
                hasattr(value, "__float__") or hasattr(value, "__index__")):
            raise TypeError(f"{what}: {told(value)}, expected a number")
        try:
            return float(value)
        except OverflowError:
            raise OverflowError(f"{what}: {told(value)}, expected a float") from None


class Truth(Kind):
    is_raw = False

    def check(self, value: Any, what: str, needs: Any = None) -> bool:
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f"{what}: {told(value)}, expected True or False")
        return bool(value)


class Text(Kind):
    """str, or bytes; without a zero, at which C ends."""

    is_raw = False

    def __init__(self, optional: bool = False) -> None:
        super().__init__(c_char_p)
        self.optional = optional

    def check(self, value: Any, what: str, needs: Any = None) -> Optional[bytes]:
        if value is None and self.optional:
            return None
        if not isinstance(value, (str, bytes)):
            raise TypeError(f"{what}: {told(value)}, expected a text")
        data = value.encode() if isinstance(value, str) else value
        if b"\0" in data:
            raise ValueError(f"{what}: {told(value)}, expected a text without zero bytes")
        return data


class FilePath(Kind):
    is_raw = False

    def __init__(self) -> None:
        super().__init__(c_char_p)

    def check(self, value: Any, what: str, needs: Any = None) -> bytes:
        try:
            data = os.fsencode(os.fspath(value))
        except TypeError:
            raise TypeError(f"{what}: {told(value)}, expected a path") from None
        if b"\0" in data:
            raise ValueError(f"{what}: {told(value)}, expected a path without zero bytes")
        return data


class Object(Kind):
    """One of the package's own, by its class's word for it (``_what``). ``_needs`` are turns that
    the call takes; a tensor and a graph look at their context (``_check``) when it has them."""

    is_raw = False
    is_object = True

    def __init__(self, what: str, optional: bool = False) -> None:
        super().__init__(c_void_p)
        self.what = what
        self.article = "an" if what[0] in "aeiou" else "a"
        self.optional = optional

    def check(self, value: Any, what: str, needs: List[Needs]) -> Any:
        if value is None and self.optional:
            return None
        if getattr(type(value), "_what", None) != self.what:
            raise TypeError(f"{what}: {told(value)}, expected {self.article} {self.what}"
                            f"{' or None' if self.optional else ''}")
        needs.append(value._needs)
        return value


#: Kinds by the C type of an argument or member.
KINDS: Dict[Any, Kind] = {
    **{ctype: Integer(ctype) for ctype in (c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32,
                                           c_uint64)},
    c_float: Real(c_float), c_double: Real(c_double), c_bool: Truth(c_bool), c_char_p: Text(),
}

# ---- prototypes ----

_P = c_void_p
_CONTEXT, _TENSOR, _GRAPH = Object("context"), Object("tensor"), Object("graph")
_RUNTIME, _PLAN, _TABLE = Object("runtime"), Object("plan"), Object("table")
_SOURCE, _TOKENIZER, _MODEL = Object("source"), Object("tokenizer"), Object("model")
_COMMUNICATOR = Object("communicator")
_SESSION, _SAMPLER, _CHAT = Object("session"), Object("sampler"), Object("chat")
_TEMPLATE = Object("chat template")
_NET, _ONNX, _LOWERED = Object("net"), Object("inference session"), Object("lowered net")
_MAYBE_TENSOR, _MAYBE_PLAN = Object("tensor", True), Object("plan", True)
_MAYBE_TABLE, _MAYBE_TOKENIZER = Object("table", True), Object("tokenizer", True)
_PATH, _MAYBE_TEXT = FilePath(), Text(True)
_ERROR = POINTER(Error)
_IDS = POINTER(c_int32)
_AXES = POINTER(c_int)
_NE = POINTER(c_int64)
_COUNT = POINTER(c_size_t)

#: Functions of libtandem: result, arguments. A result of None is an enum tandem_status, whose call
#: ends with a struct tandem_error.
TANDEM: Dict[str, Tuple[Any, List[Any]]] = {
    "version": (c_char_p, []),
    "communicator_new": (None, [POINTER(Transport), POINTER(_P)]),
    "communicator_launched": (c_int, []),
    "communicator_open": (None, [POINTER(_P)]),
    "communicator_close": (c_int, [_P]),
    "communicator_rank": (c_int, [_COMMUNICATOR]),
    "communicator_count": (c_int, [_COMMUNICATOR]),
    "communicator_host": (c_char_p, [_COMMUNICATOR, c_int]),
    "communicator_name": (c_char_p, [_COMMUNICATOR]),
    "communicator_set_limit": (c_int, [_COMMUNICATOR, c_double]),
    "status_name": (c_char_p, [c_int]),
    "status_text": (c_char_p, [c_int]),
    "guard_mapped_files": (c_int, [_P]),
    "type_name": (c_char_p, [c_int]),
    "type_is_quantized": (c_bool, [c_int]),
    "type_block_values": (c_int64, [c_int]),
    "type_row_bytes": (c_size_t, [c_int, c_int64]),
    "quantize": (c_int, [c_int, _P, _P, c_int64]),
    "dequantize": (c_int, [c_int, _P, _P, c_int64]),
    "context_new": (None, [POINTER(ContextOptions), POINTER(_P)]),
    "context_free": (c_int, [_P]),
    "context_reset": (c_int, [_CONTEXT]),
    "context_status": (None, [_CONTEXT]),
    "context_clear_error": (c_int, [_CONTEXT]),
    "context_bytes": (c_size_t, [_CONTEXT]),
    "tensor_new": (_P, [_CONTEXT, c_int, c_int, _NE]),
    "tensor_borrow": (_P, [_CONTEXT, c_int, c_int, _NE, _P, c_size_t]),
    "tensor_borrow_const": (_P, [_CONTEXT, c_int, c_int, _NE, _P, c_size_t]),
    "tensor_set_name": (_P, [_TENSOR, c_char_p]),
    "tensor_set_role": (_P, [_TENSOR, c_int]),
    "tensor_set": (None, [_TENSOR, c_int64, c_int64, _P]),
    "tensor_get": (None, [_TENSOR, c_int64, c_int64, _P]),
    "tensor_src": (_P, [_P, c_int]),
    "tensor_type": (c_int, [_P]),
    "tensor_ne": (_NE, [_P]),
    "tensor_nb": (_COUNT, [_P]),
    "tensor_name": (c_char_p, [_TENSOR]),
    "tensor_op_name": (c_char_p, [_TENSOR]),
    "tensor_data": (_P, [_TENSOR]),
    "tensor_elements": (c_int64, [_TENSOR]),
    "tensor_bytes": (c_size_t, [_TENSOR]),
    "graph_new": (_P, [_CONTEXT]),
    "graph_add": (c_int, [_P, _TENSOR]),
    "graph_finish": (None, [_P]),
    "graph_node_count": (c_int, [_GRAPH]),
    "graph_node": (_P, [_GRAPH, c_int]),
    "graph_memory": (c_int, [_GRAPH, POINTER(MemoryReport)]),
    "graph_print": (c_int, [_GRAPH, WriteFn, _P]),
    # operations: a context, operands, parameters
    "view": (_P, [_CONTEXT, _TENSOR, c_int, _NE, _COUNT, c_size_t]),
    "reshape": (_P, [_CONTEXT, _TENSOR, c_int, _NE]),
    "permute": (_P, [_CONTEXT, _TENSOR, c_int, c_int, c_int, c_int]),
    "transpose": (_P, [_CONTEXT, _TENSOR]),
    "get_rows": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "mul_mat": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "mul_mat_id": (_P, [_CONTEXT, _TENSOR, _TENSOR, _TENSOR]),
    "top_k": (_P, [_CONTEXT, _TENSOR, c_int64]),
    "gather": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "weighted_sum": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "add": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "sub": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "mul": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "div": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "scale": (_P, [_CONTEXT, _TENSOR, c_float]),
    "clamp": (_P, [_CONTEXT, _TENSOR, c_float, c_float]),
    "sqr": (_P, [_CONTEXT, _TENSOR]),
    "sqrt": (_P, [_CONTEXT, _TENSOR]),
    "gelu_erf": (_P, [_CONTEXT, _TENSOR]),
    "sigmoid": (_P, [_CONTEXT, _TENSOR]),
    "tanh": (_P, [_CONTEXT, _TENSOR]),
    "silu": (_P, [_CONTEXT, _TENSOR]),
    "gelu": (_P, [_CONTEXT, _TENSOR]),
    "relu": (_P, [_CONTEXT, _TENSOR]),
    "rms_norm": (_P, [_CONTEXT, _TENSOR, c_float]),
    "norm": (_P, [_CONTEXT, _TENSOR, c_float]),
    "soft_max": (_P, [_CONTEXT, _TENSOR, _MAYBE_TENSOR, c_float]),
    "diag_mask_inf": (_P, [_CONTEXT, _TENSOR, c_int64]),
    "rope": (_P, [_CONTEXT, _TENSOR, _TENSOR, POINTER(RopeOptions)]),
    "attention": (_P, [_CONTEXT, _TENSOR, _TENSOR, _TENSOR, _MAYBE_TENSOR, c_float]),
    "cpy": (_P, [_CONTEXT, _TENSOR, _TENSOR]),
    "scatter": (_P, [_CONTEXT, _TENSOR, _TENSOR, _TENSOR]),
    "cont": (_P, [_CONTEXT, _TENSOR]),
    "concat": (_P, [_CONTEXT, _TENSOR, _TENSOR, c_int]),
    # runtimes, plans
    "runtime_open": (None, [POINTER(RuntimeOptions), POINTER(_P)]),
    "runtime_close": (c_int, [_P]),
    "runtime_backend_count": (c_int, [_RUNTIME]),
    "runtime_backend_name": (c_char_p, [_RUNTIME, c_int]),
    "runtime_table_status": (None, [_RUNTIME]),
    "runtime_set_table": (None, [_RUNTIME, _MAYBE_TABLE]),
    "runtime_set_threads": (c_int, [_RUNTIME, c_int]),
    "runtime_threads": (c_int, [_RUNTIME]),
    "runtime_chooser": (_P, [_RUNTIME]),
    "runtime_pause": (c_int, [_RUNTIME]),
    "runtime_resume": (c_int, [_RUNTIME]),
    "runtime_force_profile": (None, [_RUNTIME, _MAYBE_TEXT]),
    "runtime_plan": (None, [_RUNTIME, _GRAPH, POINTER(_P)]),
    "runtime_force_node": (None, [_RUNTIME, _GRAPH, _PLAN, c_int, c_char_p]),
    "runtime_print_plan": (c_int, [_RUNTIME, _GRAPH, _PLAN, WriteFn, _P]),
    "runtime_explain": (c_int, [_RUNTIME, _GRAPH, _MAYBE_PLAN, WriteFn, _P]),
    "runtime_save_plan": (None, [_RUNTIME, _GRAPH, _PLAN, _PATH]),
    "runtime_load_plan": (None, [_RUNTIME, _GRAPH, _PATH, POINTER(_P)]),
    "runtime_compute": (None, [_RUNTIME, _GRAPH, _MAYBE_PLAN, POINTER(ComputeOptions)]),
    "cancel_flag": (c_bool, [_P]),
    "runtime_drift": (c_int, [_RUNTIME, POINTER(DriftInfo), c_int]),
    "runtime_forget": (c_int, [_RUNTIME, _TENSOR]),
    "runtime_profiles": (c_int, [_RUNTIME, POINTER(ProfileInfo), c_int]),
    "runtime_describe": (c_int, [_RUNTIME, POINTER(RuntimeInfo)]),
    "tune_graph": (None, [_RUNTIME, _GRAPH, POINTER(TuneOptions)]),
    "plan_free": (c_int, [_P]),
    "plan_node_count": (c_int, [_PLAN]),
    "plan_took_us": (c_double, [_PLAN]),
    "plan_node": (POINTER(PlanNode), [_PLAN, c_int]),
    "plan_reason_name": (c_char_p, [c_int]),
    # tables, devices
    "table_new": (None, [POINTER(_P)]),
    "table_load": (None, [_PATH, POINTER(_P)]),
    "table_parse": (None, [_P, c_size_t, c_char_p, POINTER(_P)]),
    "table_save": (None, [_TABLE, _PATH, c_int]),
    "table_print": (None, [_TABLE, c_int, WriteFn, _P]),
    "table_merge": (None, [_TABLE, _TABLE]),
    "table_copy": (None, [_TABLE, POINTER(_P)]),
    "table_check": (None, [_TABLE]),
    "table_free": (c_int, [_P]),
    "table_default_path": (None, [_P, c_size_t]),
    "devices": (c_int, [POINTER(DeviceInfo), c_int, _ERROR]),
    "device_type_name": (c_char_p, [c_int]),
    # nets: builders give the number of a value
    "net_new": (None, [POINTER(_P)]),
    "net_free": (c_int, [_P]),
    "net_status": (None, [_NET]),
    "net_clear_error": (c_int, [_NET]),
    "net_value": (c_bool, [_NET, c_int, POINTER(NetArray)]),
    "net_print": (c_int, [_NET, WriteFn, _P]),
    "net_input": (c_int, [_NET, c_int, c_int, _NE, c_char_p]),
    "net_constant": (c_int, [_NET, c_int, c_int, _NE, _P]),
    "net_scalar": (c_int, [_NET, c_int, c_double]),
    "net_output": (c_int, [_NET, c_int, c_char_p]),
    "net_permute": (c_int, [_NET, c_int, _AXES]),
    "net_reshape": (c_int, [_NET, c_int, c_int, _NE]),
    "net_reindex": (c_int, [_NET, c_int, c_int, _NE, _P, _P, c_char_p]),
    "net_expand": (c_int, [_NET, c_int, c_int, _NE]),
    "net_slice": (c_int, [_NET, c_int, c_int, c_int64, c_int64, c_int64]),
    "net_cast": (c_int, [_NET, c_int, c_int]),
    "net_unary": (c_int, [_NET, c_int, c_int]),
    "net_binary": (c_int, [_NET, c_int, c_int, c_int]),
    "net_select": (c_int, [_NET, c_int, c_int, c_int]),
    "net_reduce": (c_int, [_NET, c_int, c_int, _AXES, c_int, c_bool]),
    "net_arg_reduce": (c_int, [_NET, c_bool, c_int, c_int]),
    "net_scan": (c_int, [_NET, c_int, c_int]),
    "net_arg_sort": (c_int, [_NET, c_int, c_int, c_bool]),
    "net_softmax": (c_int, [_NET, c_int, c_int]),
    "net_norm": (c_int, [_NET, c_int, c_int, _AXES, c_int, c_double]),
    "net_matmul": (c_int, [_NET, c_int, c_int]),
    "net_attention": (c_int, [_NET, c_int, c_int, c_int, c_int, c_double]),
    "net_conv": (c_int, [_NET, c_int, c_int, POINTER(NetWindow)]),
    "net_pool": (c_int, [_NET, c_int, c_int, POINTER(NetWindow)]),
    "net_concat": (c_int, [_NET, _AXES, c_int, c_int]),
    "net_pad": (c_int, [_NET, c_int, c_int, _NE, _NE, c_int]),
    "net_gather": (c_int, [_NET, c_int, c_int, c_int]),
    "net_gather_elements": (c_int, [_NET, c_int, c_int, c_int]),
    "net_scatter_elements": (c_int, [_NET, c_int, c_int, c_int, c_int, c_int]),
    "net_lower": (None, [_NET, POINTER(LowerOptions), POINTER(_P)]),
    "lowered_free": (c_int, [_P]),
    "lowered_graph": (_P, [_LOWERED]),
    "lowered_input": (c_bool, [_LOWERED, c_int, POINTER(NetArray)]),
    "lowered_serial": (c_uint64, [_LOWERED]),
    "lowered_output": (c_bool, [_LOWERED, c_int, POINTER(NetArray)]),
    "lowered_set_input": (None, [_LOWERED, c_int, _P, c_size_t]),
    # ONNX models
    "onnx_open": (None, [_PATH, POINTER(_P)]),
    "onnx_read": (None, [_P, c_size_t, _MAYBE_TEXT, POINTER(_P)]),
    "onnx_close": (c_int, [_P]),
    "onnx_input": (c_bool, [_ONNX, c_int, POINTER(OnnxValue)]),
    "onnx_output": (c_bool, [_ONNX, c_int, POINTER(OnnxValue)]),
    "onnx_meta": (c_bool, [_ONNX, POINTER(OnnxMeta)]),
    "onnx_property": (c_bool, [_ONNX, c_int, POINTER(c_char_p), POINTER(c_char_p)]),
    "onnx_net": (None, [_ONNX, POINTER(OnnxOptions), POINTER(_P)]),
    "onnx_begin": (None, [_ONNX, POINTER(NetArray), c_int, POINTER(LowerOptions), POINTER(_P)]),
    "onnx_next": (None, [_ONNX, POINTER(_P)]),
    # model files, tokenizers
    "source_open": (None, [_PATH, POINTER(_P)]),
    "source_close": (c_int, [_P]),
    "source_synthesize": (None, [POINTER(LlamaShape), c_int, c_uint64, POINTER(_P)]),
    "source_save_gguf": (None, [_P, _PATH, _P]),
    "tokenizer_open": (None, [_PATH, c_int64, POINTER(_P)]),
    "tokenizer_from_source": (None, [_P, POINTER(_P)]),
    "tokenizer_close": (c_int, [_P]),
    "tokenizer_vocabulary": (c_int64, [_TOKENIZER]),
    "tokenizer_bos": (c_int32, [_TOKENIZER]),
    "tokenizer_eos": (c_int32, [_TOKENIZER]),
    "tokenizer_adds_bos": (c_bool, [_TOKENIZER]),
    "tokenizer_adds_eos": (c_bool, [_TOKENIZER]),
    "tokenizer_encode_pair": (None, [_TOKENIZER, _P, c_size_t, _P, c_size_t, _IDS, c_size_t,
                                     POINTER(c_size_t), POINTER(c_size_t)]),
    "tokenizer_encode_with": (None, [_TOKENIZER, _P, c_size_t, POINTER(EncodeOptions), _IDS,
                                     c_size_t, _COUNT]),
    "chat_template_name": (c_char_p, [c_int]),
    "chat_template_open": (None, [_PATH, POINTER(_P)]),
    "chat_template_parse": (None, [_P, c_size_t, _MAYBE_TEXT, POINTER(_P)]),
    "chat_template_of_source": (None, [_P, _MAYBE_TEXT, POINTER(_P)]),
    "chat_template_free": (c_int, [_P]),
    "chat_template_text": (_P, [_TEMPLATE, _COUNT]),
    "chat_template_render": (None, [_TEMPLATE, _P, c_size_t, _MAYBE_TOKENIZER, c_int64,
                                    POINTER(Rendered)]),
    "rendered_free": (c_int, [POINTER(Rendered)]),
    "rendered_encode": (None, [_TOKENIZER, POINTER(Rendered), _IDS, c_size_t, _COUNT]),
    "token_stream_begin": (TokenStream, [_TOKENIZER, c_bool]),
    "token_stream_next": (c_size_t, [POINTER(TokenStream), c_int32, _P, c_size_t]),
    "token_stream_end": (c_size_t, [POINTER(TokenStream), _P, c_size_t]),
}

#: The same of libtandem-llama.
LLAMA: Dict[str, Tuple[Any, List[Any]]] = {
    "model_new": (None, [_SOURCE, POINTER(_P)]),
    "model_load": (None, [_PATH, POINTER(_P)]),
    "model_free": (c_int, [_P]),
    "model_hparams": (POINTER(Hparams), [_MODEL]),
    "model_source": (_P, [_MODEL]),
    "session_new": (None, [_MODEL, _RUNTIME, POINTER(SessionOptions), POINTER(_P)]),
    "session_free": (c_int, [_P]),
    "session_follow": (None, [_MODEL, _RUNTIME, _COMMUNICATOR]),
    "session_dismiss": (None, [_COMMUNICATOR]),
    "session_decode": (None, [_SESSION, _IDS, c_int64, c_int64]),
    "session_decode_batch": (None, [_SESSION, POINTER(BatchEntry), c_int64]),
    "session_begin_batch": (None, [_SESSION, POINTER(BatchEntry), c_int64]),
    "session_end_batch": (None, [_SESSION]),
    "session_batches_in_flight": (c_int, [_SESSION, c_int]),
    "session_logits": (POINTER(c_float), [_SESSION, c_int32]),
    "session_embedding": (POINTER(c_float), [_SESSION, c_int32]),
    "session_embedding_size": (c_int64, [_SESSION]),
    "session_set_second": (c_int, [_SESSION, c_int32, c_int64]),
    "session_position": (c_int64, [_SESSION, c_int32]),
    "session_context": (c_int64, [_SESSION]),
    "session_rollback": (c_int64, [_SESSION, c_int32, c_int64]),
    "session_copy": (None, [_SESSION, c_int32, c_int32, c_int64]),
    "session_shift": (None, [_SESSION, c_int32, c_int64, c_int64]),
    "session_set_draft": (None, [_SESSION, POINTER(DraftOptions)]),
    "session_draft_info": (c_bool, [_SESSION, POINTER(DraftInfo)]),
    "session_set_cancel": (c_int, [_SESSION, _P, _P]),
    "session_save": (None, [_SESSION, _PATH]),
    "session_load": (None, [_SESSION, _PATH]),
    "session_cache_bytes": (c_size_t, [_SESSION]),
    "sampler_new": (None, [POINTER(SamplerOptions), POINTER(_P)]),
    "sampler_free": (c_int, [_P]),
    "sampler_keep_utf8": (None, [_SAMPLER, _TOKENIZER]),
    "sampler_sample": (c_int32, [_SAMPLER, POINTER(c_float)]),
    "sampler_accept": (c_int, [_SAMPLER, c_int32, c_bool]),
    "sampler_reset": (c_int, [_SAMPLER]),
    "chat_new": (None, [POINTER(ChatOptions), POINTER(_P)]),
    "chat_free": (c_int, [_P]),
    "chat_say": (None, [_CHAT, _P, c_size_t]),
    "chat_reset": (c_int, [_CHAT]),
}

# ---- loading ----


def library_path(stem: str) -> str:
    """Where a library of Tandem lies: TANDEM_INFER_LIBRARY (a folder), else inside the package,
    else its bare name, which the system's loader looks up. `make install` puts the backend for
    programs with ggml into a folder of its own, beside the library that was loaded.

    Args:
        stem: "libtandem", "libtandem-llama" or "libggml-tandem".
    """
    asked = os.environ.get("TANDEM_INFER_LIBRARY")
    name = stem + (".so" if stem == "libggml-tandem" else SUFFIX)
    for folder in [Path(asked)] if asked else [Path(__file__).parent / "lib"]:
        if (folder / name).exists():
            return str(folder / name)
    if asked:
        raise TandemError(f"TANDEM_INFER_LIBRARY: '{asked}' has no {name}", "NOT_FOUND", asked)
    if stem == "libggml-tandem":
        plugin = _folder_of(tandem.tandem_version) / "ggml" / name
        if not plugin.exists():
            raise TandemError(f"{plugin}: there is no such file, expected the backend for programs with "
                              "ggml (Debian's package libggml-tandem)", "NOT_FOUND", str(plugin))
        return str(plugin)
    return name


class _DlInfo(Structure):  # Dl_info of <dlfcn.h>
    _fields_ = [("file", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p)]


def _folder_of(function: Any) -> Path:
    """Folder of the library that a function of ctypes is from, by dladdr."""
    info = _DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [c_void_p, POINTER(_DlInfo)]
    pointer = ctypes.cast(function.library_function, c_void_p)
    if not dladdr(pointer, ctypes.byref(info)) or not info.file:
        return Path()
    return Path(os.fsdecode(info.file)).resolve().parent


def _preload() -> None:
    """What the libraries of the wheel need of other projects lies beside them, in this order, for
    systems that do not have it. A library that is loaded serves all that need its name."""
    listing = Path(__file__).parent / "lib" / "needed.txt"
    if not os.environ.get("TANDEM_INFER_LIBRARY") and listing.exists():
        for name in listing.read_text().split():
            try:
                ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                ctypes.CDLL(str(listing.parent / name), mode=ctypes.RTLD_GLOBAL)


def _guarded(name: str, function: Any, kinds: List[Kind]) -> Any:
    """The gate: checks the arguments, takes the turns, calls."""
    def guarded(*arguments: Any) -> Any:
        needs: List[Needs] = []
        if len(arguments) != len(kinds):
            raise TypeError(f"{name}: {len(arguments)} arguments, expected {len(kinds)}")
        given = [kind.check(value, name, needs) for kind, value in zip(kinds, arguments)]
        if not needs:
            return function(*given)
        merged: Dict[State, bool] = {}
        for part in needs:
            for state, alone in part:
                merged[state] = alone or merged.get(state, False)
        with turn(tuple(merged.items())):
            for i, value in enumerate(given):
                if kinds[i].is_object and value is not None:
                    given[i] = value._address()
            return function(*given)

    guarded.library_function = function  # type: ignore[attr-defined]
    guarded.kinds = kinds  # type: ignore[attr-defined]
    return guarded


def _declare(library: ctypes.CDLL, prototypes: Dict[str, Tuple[Any, List[Any]]]) -> Any:
    functions = SimpleNamespace()
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, "tandem_" + name)
        listed = arguments + ([_ERROR] if result is None else [])
        kinds = [one if isinstance(one, Kind) else KINDS.get(one) or Kind(one) for one in listed]
        function.restype = c_int if result is None else result
        function.argtypes = [kind.ctype for kind in kinds]
        setattr(functions, "tandem_" + name, _guarded(name, function, kinds))
    return functions


def filled(struct: Type[Structure], **members: Any) -> Any:
    """A structure of options with its size and these members, each checked by its kind."""
    made = struct()
    if struct._fields_[0][0] == "size":
        made.size = ctypes.sizeof(struct)
    types = {field[0]: field[1] for field in struct._fields_}
    for name, value in members.items():
        kind = KINDS.get(types[name])
        if kind is not None and not (value is None and types[name] is c_char_p):
            value = kind.check(value, name, [])
        setattr(made, name, value)
    return made


def _load(stem: str) -> ctypes.CDLL:
    path = library_path(stem)
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise TandemError(f"{path}: cannot be loaded: {error}; expected a wheel of tandem-infer, an "
                          "installed library, or its folder in TANDEM_INFER_LIBRARY", "NOT_FOUND",
                          path) from error


_preload()
tandem: Any = _declare(_load("libtandem"), TANDEM)
llama: Any = _declare(_load("libtandem-llama"), LLAMA)


#: tandem_cancel_flag, for members `cancel`; `user` is the address of a c_int32.
CANCEL_FLAG: int = ctypes.cast(tandem.tandem_cancel_flag.library_function, c_void_p).value or 0


def data_of(content: Any, what: str) -> bytes:
    """Bytes of a text, which may have zeros."""
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"{what}: {told(content)}, expected a text")


def text(value: Any) -> str:
    """Text of the library, which may hold any bytes."""
    return (value or b"").decode("utf-8", "replace")


def check(status: int, error: Any = None) -> None:
    """Raises TandemError unless the status is OK."""
    if status != 0:
        name = text(tandem.tandem_status_name(status))
        if error is not None and error.text:
            raise TandemError(text(error.text), name, text(error.where), error.got, error.limit)
        raise TandemError(text(tandem.tandem_status_text(status)), name)


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status and takes a struct tandem_error at last."""
    library = llama if name in LLAMA else tandem
    error = Error()
    check(getattr(library, "tandem_" + name)(*arguments, ctypes.byref(error)), error)


def direct(name: str) -> Any:
    """Such a function of libtandem without the gate, for loops that hold all turns and whose arguments
    were looked at: 10 us less a call."""
    function = getattr(tandem, "tandem_" + name).library_function

    def called(*arguments: Any) -> None:
        error = Error()
        status = function(*arguments, ctypes.byref(error))
        if status != 0:
            check(status, error)

    return called


def make(name: str, *arguments: Any) -> int:
    """Calls such a function whose last argument but the error is an out-parameter; returns it."""
    out = c_void_p()
    call(name, *arguments, ctypes.byref(out))
    return out.value or 0


def encoded(name: str, most: int, *given: Any, behind: Sequence[Any] = ()) -> List[int]:
    """The ids that such a function writes; it tells how many there are where `most` leaves no room."""
    n = c_size_t()
    while True:
        ids = (c_int32 * most)()
        try:
            call(name, *given, ids, most, ctypes.byref(n), *behind)
            return list(ids[:n.value])
        except TandemError:
            if n.value <= most:
                raise
            most = n.value


def open_file(name: str, *arguments: Any) -> int:
    """``make`` for functions that map a file: when another program cuts the file short, calls that read
    it fail, and the process lives. (A program may have set a handler of SIGBUS since the last file.)"""
    check(tandem.tandem_guard_mapped_files(None))
    return make(name, *arguments)


def printed(function: Any, *arguments: Any) -> str:
    """The text that a print function writes. `function` takes a WriteFn and a pointer."""
    pieces: List[bytes] = []

    def write(_user: Any, data: Any, n: int) -> int:
        pieces.append(ctypes.string_at(data, n))
        return 0

    check(function(*arguments, WriteFn(write), None))
    return b"".join(pieces).decode("utf-8", "replace")


def load_into_ggml(backend: str) -> str:
    """Gives a backend to the first library of this process that has ggml's loader."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = dict.fromkeys(line.split(maxsplit=5)[5].rstrip("\n") for line in maps
                              if ".so" in line and len(line.split(maxsplit=5)) == 6)
    for path in paths:
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
            load = library.ggml_backend_load
        except (OSError, AttributeError):
            continue
        load.restype, load.argtypes = c_void_p, [c_char_p]
        if not load(os.fsencode(backend)):
            raise TandemError(f"{path}: it has not taken {backend}, expected a version of ggml that "
                              "docs/bridge.md names; its log says why", "UNSUPPORTED_BACKEND", path)
        return path
    raise TandemError("no library of this process has ggml_backend_load, expected a program with ggml: "
                      "import it first (llama_cpp, xllamacpp)", "NOT_FOUND")

