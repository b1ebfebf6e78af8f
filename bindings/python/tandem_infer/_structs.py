# SPDX-License-Identifier: MIT
"""Structures of the C interface, `struct tandem_<name>` each. tests/layout.py compares all of them with
the headers."""
from ctypes import (POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32,
                    c_int64, c_size_t, c_ubyte, c_uint8, c_uint32, c_uint64, c_void_p)
from typing import Dict, Tuple, Type


class Error(Structure):
    _fields_ = [("status", c_int), ("got", c_int64), ("limit", c_int64), ("where", c_char * 96),
                ("text", c_char * 256)]


class ContextOptions(Structure):
    _fields_ = [("size", c_size_t), ("chunk_bytes", c_size_t), ("limit_bytes", c_size_t)]


class RopeOptions(Structure):
    _fields_ = [("size", c_size_t), ("pairs", c_int), ("n_rot", c_int64), ("freq_base", c_float),
                ("freq_scale", c_float)]


class MemoryReport(Structure):
    _fields_ = [("size", c_size_t), ("planned_bytes", c_size_t), ("sum_bytes", c_size_t),
                ("output_bytes", c_size_t), ("n_results", c_int)]


class TaskConfig(Structure):
    _fields_ = [("backend", c_uint8), ("task", c_uint8), ("parallel", c_bool), ("wait", c_bool),
                ("own_threads", c_bool)]


class PlanNode(Structure):
    _fields_ = [("profile", c_char * 32), ("stage", TaskConfig * 3), ("n_threads", c_int32),
                ("reason", c_uint32), ("predicted_us", c_float * 3), ("runner_up_us", c_float)]


class RuntimeOptions(Structure):
    _fields_ = [("size", c_size_t), ("n_threads", c_int), ("table_path", c_char_p),
                ("profile", c_char_p), ("backends", c_char_p), ("settings", c_char_p),
                ("log", c_void_p), ("log_user", c_void_p), ("log_level", c_int),
                ("spin_limit", c_int64), ("cpu_ids", POINTER(c_int)), ("n_cpu_ids", c_int),
                ("nice", c_int), ("error_bound", c_double), ("ignore_drift", c_bool),
                ("plugins", c_char_p), ("objective", c_int), ("team", c_void_p),
                ("team_user", c_void_p)]


class RuntimeInfo(Structure):
    _fields_ = [("size", c_size_t), ("cpu", c_char_p), ("isa", c_char_p), ("topology", c_char_p),
                ("table", c_char_p), ("n_threads", c_int), ("n_cores", c_int),
                ("prepared_bytes", c_size_t), ("n_devices", c_int)]


class ProfileInfo(Structure):
    _fields_ = [("name", c_char * 32), ("what", c_char * 96), ("stage", TaskConfig * 3),
                ("available", c_bool), ("reason", c_char * 128)]


class DriftInfo(Structure):
    _fields_ = [("what", c_char * 160), ("predicted_us", c_double), ("measured_us", c_double),
                ("noise", c_double)]


class TuneOptions(Structure):
    _fields_ = [("size", c_size_t), ("budget_s", c_double), ("saves", c_bool),
                ("progress", c_void_p), ("user", c_void_p)]


class ComputeOptions(Structure):
    _fields_ = [("size", c_size_t), ("cancel", c_void_p), ("progress", c_void_p),
                ("user", c_void_p), ("timed", c_void_p)]


class DeviceInfo(Structure):
    _fields_ = [("size", c_size_t), ("platform", c_char * 64), ("name", c_char * 128),
                ("vendor", c_char * 64), ("driver", c_char * 64), ("version", c_char * 64),
                ("type", c_uint32), ("memory_bytes", c_uint64), ("max_alloc_bytes", c_uint64),
                ("local_bytes", c_uint64), ("compute_units", c_uint32),
                ("max_clock_mhz", c_uint32), ("max_work_group", c_uint64),
                ("has_unified_memory", c_bool), ("has_fp16", c_bool), ("has_fp64", c_bool),
                ("has_subgroups", c_bool), ("is_fit", c_bool), ("is_default", c_bool),
                ("reason", c_char * 128), ("backend", c_char * 16)]


class LlamaShape(Structure):
    _fields_ = [("size", c_size_t), ("dim", c_int64), ("hidden", c_int64), ("layers", c_int64),
                ("heads", c_int64), ("kv_heads", c_int64), ("vocabulary", c_int64),
                ("context", c_int64), ("experts", c_int64), ("experts_used", c_int64),
                ("head_size", c_int64)]


class Hparams(Structure):
    """As far as the package reads it; later members follow."""
    _fields_ = [("size", c_size_t), ("architecture", c_char_p), ("dim", c_int64),
                ("hidden", c_int64), ("layers", c_int64), ("heads", c_int64),
                ("kv_heads", c_int64), ("head_size", c_int64), ("q_dim", c_int64),
                ("kv_dim", c_int64), ("vocabulary", c_int64), ("context", c_int64),
                ("window", c_int64), ("norm_eps", c_float), ("has_biases", c_bool),
                ("weight_type", c_int)]


class SessionOptions(Structure):
    _fields_ = [("size", c_size_t), ("context", c_int64), ("n_cells", c_int64),
                ("n_sequences", c_int), ("cache_type", c_int), ("is_unfused", c_bool),
                ("adjust", c_void_p), ("adjust_user", c_void_p), ("has_embeddings", c_bool),
                ("micro_batches", c_int),
                ("communicator", c_void_p), ("shares", c_void_p), ("pooling", c_int),
                ("is_cache_planned", c_bool), ("cache_memory", c_int64),
                ("division", c_int), ("layer_shares", c_void_p), ("prompt_batch", c_int64),
                ("has_whole_experts", c_bool), ("batches_in_flight", c_int)]


class Message(Structure):
    _fields_ = [("rank", c_int), ("data", c_void_p), ("bytes", c_size_t)]


class Transport(Structure):
    _fields_ = [("size", c_size_t), ("self", c_void_p), ("rank", c_int), ("count", c_int),
                ("exchange", c_void_p), ("close", c_void_p), ("name", c_char_p),
                ("post", c_void_p)]


class DraftOptions(Structure):
    _fields_ = [("size", c_size_t), ("model", c_void_p), ("most", c_int), ("is_fixed", c_bool),
                ("by_heads", c_bool)]


class DraftInfo(Structure):
    _fields_ = [("tokens", c_int64), ("batches", c_int64), ("drafted", c_int64),
                ("accepted", c_int64), ("last", c_int), ("has_failed", c_bool)]


class BatchEntry(Structure):
    _fields_ = [("tokens", POINTER(c_int32)), ("n", c_int64), ("sequence", c_int32),
                ("wants_logits", c_bool)]


class SamplerOptions(Structure):
    _fields_ = [("size", c_size_t), ("vocabulary", c_int64), ("temperature", c_float),
                ("top_p", c_float), ("min_p", c_float), ("repeat_penalty", c_float),
                ("top_k", c_int64), ("repeat_last", c_int64), ("seed", c_uint64),
                ("any_bytes", c_bool)]


class EncodeOptions(Structure):
    _fields_ = [("size", c_size_t), ("add_bos", c_bool), ("add_eos", c_bool),
                ("special_tokens", c_bool)]


class TokenStream(Structure):
    _fields_ = [("tokenizer", c_void_p), ("at_begin", c_bool), ("shows_special", c_bool),
                ("n_pending", c_ubyte), ("pending", c_char * 3)]


class ChatOptions(Structure):
    _fields_ = [("size", c_size_t), ("session", c_void_p), ("sampler", c_void_p),
                ("tokenizer", c_void_p), ("chat_template", c_void_p), ("system", c_char_p),
                ("max_answer", c_int64), ("cancel", c_void_p), ("emit", c_void_p),
                ("user", c_void_p), ("variables", c_char_p)]


class Rendered(Structure):
    _fields_ = [("size", c_size_t), ("text", c_void_p), ("n", c_size_t),
                ("from_variables", c_void_p)]


MAX_DIMS = 8  #: of values of nets


class NetArray(Structure):
    _fields_ = [("name", c_char_p), ("type", c_int), ("n_dims", c_int), ("dims", c_int64 * MAX_DIMS),
                ("data", c_void_p), ("bytes", c_size_t)]


class NetWindow(Structure):
    _fields_ = [("size", c_size_t), ("extent", c_int64 * 3), ("stride", c_int64 * 3),
                ("dilation", c_int64 * 3), ("before", c_int64 * 3), ("after", c_int64 * 3),
                ("groups", c_int64)]


class LowerOptions(Structure):
    _fields_ = [("size", c_size_t), ("passes", c_char_p), ("for_device", c_bool),
                ("chooser", c_void_p)]


class OnnxDim(Structure):
    _fields_ = [("name", c_char_p), ("extent", c_int64)]


class OnnxValue(Structure):
    _fields_ = [("name", c_char_p), ("type_name", c_char_p), ("has_type", c_bool), ("type", c_int),
                ("n_dims", c_int), ("dims", OnnxDim * MAX_DIMS)]


class OnnxMeta(Structure):
    _fields_ = [("producer", c_char_p), ("producer_version", c_char_p),
                ("domain", c_char_p), ("description", c_char_p), ("graph_name", c_char_p),
                ("graph_description", c_char_p), ("version", c_int64), ("n_properties", c_int)]


class OnnxOptions(Structure):
    _fields_ = [("size", c_size_t), ("dims", POINTER(OnnxDim)), ("n_dims", c_int),
                ("arrays", POINTER(NetArray)), ("n_arrays", c_int)]


#: Structure by its name in C without "tandem_"; False: the C one may have more members behind.
STRUCTS: Dict[str, Tuple[Type[Structure], bool]] = {
    "error": (Error, True), "context_options": (ContextOptions, True),
    "rope_options": (RopeOptions, True), "memory_report": (MemoryReport, True),
    "task_config": (TaskConfig, True), "plan_node": (PlanNode, True),
    "runtime_options": (RuntimeOptions, True), "runtime_info": (RuntimeInfo, True),
    "profile_info": (ProfileInfo, True), "drift_info": (DriftInfo, True),
    "tune_options": (TuneOptions, True), "compute_options": (ComputeOptions, True),
    "device_info": (DeviceInfo, True), "llama_shape": (LlamaShape, True),
    "hparams": (Hparams, False), "session_options": (SessionOptions, True),
    "message": (Message, True), "transport": (Transport, True), "batch_entry": (BatchEntry, True),
    "draft_options": (DraftOptions, True),
    "draft_info": (DraftInfo, True), "sampler_options": (SamplerOptions, True),
    "encode_options": (EncodeOptions, True), "token_stream": (TokenStream, True),
    "chat_options": (ChatOptions, True), "rendered": (Rendered, True),
    "net_array": (NetArray, True), "window": (NetWindow, True), "lower_options": (LowerOptions, True),
    "onnx_dim": (OnnxDim, True), "onnx_value": (OnnxValue, True), "onnx_meta": (OnnxMeta, True),
    "onnx_options": (OnnxOptions, True),
}
