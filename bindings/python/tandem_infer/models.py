# SPDX-License-Identifier: MIT
"""Models of the llama family: sessions, tokens, samplers, chats."""
import ctypes
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native
from ._handle import Handle
from ._native import TandemError, llama, tandem, text
from .runtime import Runtime, _Callbacks
from .tensors import Type


@dataclass(frozen=True)
class Hparams:
    """The numbers that describe a model."""
    architecture: str
    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    context: int
    weight_type: Type


class Model(Handle):
    """Weights that were found and checked: ``Model.load`` or ``Model.synthesize``. Never changed,
    and shared by any number of threads."""

    _what = "model"

    def __init__(self, pointer: int, source: Optional["_Source"] = None) -> None:
        super().__init__(pointer, llama.tandem_model_free, () if source is None else (source,))
        self._source = source

    @classmethod
    def load(cls, path: Any) -> "Model":
        """Maps a file (GGUF, safetensors or the folder of a model, PyTorch, llama2.c)."""
        return cls(_native.make("model_load", _native.path_bytes(path)))

    @classmethod
    def synthesize(cls, dim: int = 256, hidden: int = 512, layers: int = 2, heads: int = 4,
                   kv_heads: int = 2, vocabulary: int = 512, context: int = 256,
                   type: Type = Type.Q4_0, seed: int = 1) -> "Model":
        """A llama with random weights, for trying and measuring."""
        shape = _native.LlamaShape(ctypes.sizeof(_native.LlamaShape), dim, hidden, layers, heads,
                                   kv_heads, vocabulary, context)
        source = _Source(_native.make("source_synthesize", ctypes.byref(shape), type, seed))
        return cls(_native.make("model_new", source), source)

    @property
    def hparams(self) -> Hparams:
        """The numbers that describe it."""
        h = llama.tandem_model_hparams(self).contents
        return Hparams(text(h.architecture), h.dim, h.hidden, h.layers, h.heads, h.kv_heads,
                       h.vocabulary, h.context, Type(h.weight_type))

    def tokenizer(self, path: Any = None) -> "Tokenizer":
        """The tokenizer of the model file, or the one at ``path``."""
        if path is not None:
            return Tokenizer(_native.make("tokenizer_open", _native.path_bytes(path),
                                          self.hparams.vocabulary))
        return Tokenizer(_native.make("tokenizer_from_source", llama.tandem_model_source(self)))

    def save_gguf(self, path: Any) -> None:
        """Writes a GGUF file."""
        _native.call("source_save_gguf", llama.tandem_model_source(self),
                     _native.path_bytes(path), None)


class _Source(Handle):
    _what = "source"

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer, tandem.tandem_source_close)


class Tokenizer(Handle):
    """Text to tokens and back. Any thread."""

    _what = "tokenizer"

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer, tandem.tandem_tokenizer_close)

    @classmethod
    def open(cls, path: Any) -> "Tokenizer":
        """Reads tokenizer.model, tokenizer.json, vocab.json, a GGUF file or a model's folder."""
        return cls(_native.make("tokenizer_open", _native.path_bytes(path), 0))

    def __len__(self) -> int:
        return int(tandem.tandem_tokenizer_vocabulary(self))

    @property
    def bos(self) -> int:
        """Token that begins a text, or -1."""
        return int(tandem.tandem_tokenizer_bos(self))

    @property
    def eos(self) -> int:
        """Token that ends a text, or -1."""
        return int(tandem.tandem_tokenizer_eos(self))

    @property
    def adds_bos(self) -> bool:
        """Whether the file wants the beginning token in front of every text."""
        return bool(tandem.tandem_tokenizer_adds_bos(self))

    def encode(self, content: Union[str, bytes], bos: Optional[bool] = None, eos: bool = False,
               special: bool = False) -> List[int]:
        """Tokens of a text.

        Args:
            bos: beginning token in front; default: as the file wants it.
            special: recognise special tokens; not for text of people whom you do not trust.
        """
        data = content.encode() if isinstance(content, str) else content
        options = _native.EncodeOptions(ctypes.sizeof(_native.EncodeOptions),
                                        self.adds_bos if bos is None else bos, eos, special)
        ids = (ctypes.c_int32 * (len(data) + 16))()
        n = ctypes.c_size_t()
        _native.call("tokenizer_encode_with", self, data, len(data), ctypes.byref(options), ids,
                     len(ids), ctypes.byref(n))
        return list(ids[:n.value])

    def pieces(self, tokens: Iterable[int], begins: bool = True,
               special: bool = False) -> Iterator[str]:
        """The text of each token as soon as its characters are whole; may be empty. ``begins``: at
        the beginning of a text, whose first blank may be the tokenizer's."""
        stream = tandem.tandem_token_stream_begin(self, begins)
        stream.shows_special = special
        out = ctypes.create_string_buffer(4096)
        for token in tokens:
            n = tandem.tandem_token_stream_next(ctypes.byref(stream), token, out, len(out))
            yield out.raw[:min(n, len(out))].decode("utf-8", "replace")
        n = tandem.tandem_token_stream_end(ctypes.byref(stream), out, len(out))
        if n > 0:
            yield out.raw[:n].decode("utf-8", "replace")

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        """Text of tokens, without the beginning token unless ``special``."""
        ids = list(tokens)
        begin = 1 if ids and ids[0] == self.bos and not special else 0
        return "".join(self.pieces(ids[begin:], True, special))


class Sampler(Handle):
    """Chooses tokens: a penalty for recent ones, temperature, top-k, top-p, min-p (tandem/llama.h).

    Args:
        vocabulary: logits of the model.
        temperature: 0: always the likeliest token.
        seed: the same seed and logits give the same choices on every machine.
    """

    _what = "sampler"

    def __init__(self, vocabulary: int, temperature: float = 0.0, top_p: float = 0.0,
                 min_p: float = 0.0, top_k: int = 0, repeat_penalty: float = 0.0,
                 repeat_last: int = 0, seed: int = 1,
                 tokenizer: Optional[Tokenizer] = None) -> None:
        options = _native.SamplerOptions(ctypes.sizeof(_native.SamplerOptions), vocabulary,
                                         temperature, top_p, min_p, repeat_penalty, top_k,
                                         repeat_last, seed, False)
        super().__init__(_native.make("sampler_new", ctypes.byref(options)),
                         llama.tandem_sampler_free)
        self.vocabulary = vocabulary
        if tokenizer is not None:
            _native.call("sampler_keep_utf8", self, tokenizer)

    def sample(self, session: "Session", sequence: int = 0) -> int:
        """The next token of a sequence that has logits."""
        return int(llama.tandem_sampler_sample(self, session._logits(sequence)))

    def accept(self, token: int, is_output: bool = True) -> None:
        """Notes a token that stands in the text."""
        llama.tandem_sampler_accept(self, token, is_output)

    def reset(self) -> None:
        """Drops all noted tokens."""
        llama.tandem_sampler_reset(self)


def _ids(tokens: Sequence[int]) -> Any:
    return (ctypes.c_int32 * len(tokens))(*tokens)


class Session(Handle):
    """Tokens seen so far, as keys and values, and the logits behind them. One thread at a time.

    Args:
        context: positions of a text; 0: the model's.
        sequences: independent texts at once.
        cache_type: of keys and values: F32, F16 or Q8_0.
    """

    _what = "session"

    def __init__(self, model: Model, runtime: Runtime, context: int = 0, sequences: int = 1,
                 cache_type: Type = Type.F32) -> None:
        options = _native.SessionOptions(ctypes.sizeof(_native.SessionOptions), context, 0,
                                         sequences, cache_type)
        super().__init__(_native.make("session_new", model, runtime, ctypes.byref(options)),
                         llama.tandem_session_free, (model, runtime))
        self.model = model
        self.runtime = runtime

    def decode(self, tokens: Sequence[int], batch: int = 0) -> None:
        """Appends tokens to sequence 0 and computes the logits behind the last one; at most
        ``batch`` of them together (0: as many as fit)."""
        _native.call("session_decode", self, _ids(tokens), len(tokens), batch)

    def decode_batch(self, entries: Sequence[Tuple[int, Sequence[int]]]) -> None:
        """Appends tokens to several sequences, (sequence, tokens) each, with one pass."""
        kept = [_ids(tokens) for _, tokens in entries]
        rows = (_native.BatchEntry * len(entries))(
            *[_native.BatchEntry(ids, len(ids), sequence, True)
              for ids, (sequence, _) in zip(kept, entries)])
        _native.call("session_decode_batch", self, rows, len(entries))

    def _logits(self, sequence: int) -> Any:
        logits = llama.tandem_session_logits(self, sequence)
        if not logits:
            raise TandemError(f"session: sequence {sequence} has no logits, expected a decoded one",
                              "STATE")
        return logits

    def logits(self, sequence: int = 0) -> Any:
        """A copy of the logits behind a sequence's last token, as a numpy array."""
        import numpy
        return numpy.ctypeslib.as_array(self._logits(sequence),
                                        (self.model.hparams.vocabulary,)).copy()

    def position(self, sequence: int = 0) -> int:
        """Tokens of a sequence so far."""
        return int(llama.tandem_session_position(self, sequence))

    @property
    def context(self) -> int:
        """Positions that a sequence can have."""
        return int(llama.tandem_session_context(self))

    @property
    def cache_bytes(self) -> int:
        """Memory of keys and values."""
        return int(llama.tandem_session_cache_bytes(self))

    def rollback(self, position: int = 0, sequence: int = 0) -> int:
        """Drops the tokens from ``position`` on; returns the position reached."""
        return int(llama.tandem_session_rollback(self, sequence, position))

    def copy(self, source: int, target: int, n: int) -> None:
        """Makes the empty sequence ``target`` begin with the first n tokens of ``source``."""
        _native.call("session_copy", self, source, target, n)

    def shift(self, keep: int, n: int, sequence: int = 0) -> None:
        """Drops tokens keep .. keep + n - 1 and moves those behind them forward."""
        _native.call("session_shift", self, sequence, keep, n)

    def save(self, path: Any) -> None:
        """Writes the state of all sequences to a file."""
        _native.call("session_save", self, _native.path_bytes(path))

    def load(self, path: Any) -> None:
        """Goes on with a state that was saved."""
        _native.call("session_load", self, _native.path_bytes(path))

    def tokens(self, prompt: Sequence[int], max_tokens: int = 128,
               sampler: Optional[Sampler] = None, stop: Sequence[int] = ()) -> Iterator[int]:
        """Decodes a prompt and yields token after token, until one of ``stop`` or the context ends
        it. Without a sampler always the likeliest one."""
        own = Sampler(self.model.hparams.vocabulary) if sampler is None else sampler
        for token in prompt:
            own.accept(token, False)
        self.decode(prompt)
        for i in range(max_tokens):
            token = own.sample(self)
            if token in stop:
                return
            own.accept(token)
            yield token
            if i + 1 == max_tokens or self.position() >= self.context:
                return
            self.decode([token])

    def generate(self, prompt: str, tokenizer: Tokenizer, max_tokens: int = 128,
                 sampler: Optional[Sampler] = None) -> Iterator[str]:
        """Continues a text: yields pieces of whole characters as they come."""
        ids = tokenizer.encode(prompt)
        if not ids:
            raise TandemError("prompt: it has no tokens, expected at least one", "ARGUMENT")
        yield from (piece for piece in tokenizer.pieces(
            self.tokens(ids, max_tokens, sampler, (tokenizer.eos,)), begins=False) if piece)


class Chat(Handle):
    """A conversation with a model, as sequence 0 of an empty session.

    Args:
        template: "chatml", "llama-3", ...; None: the one that the model seems to want.
        system: what the model is told first.
        max_answer: tokens; 0: half of the context.
    """

    _what = "chat"

    def __init__(self, session: Session, tokenizer: Tokenizer, sampler: Optional[Sampler] = None,
                 template: Optional[str] = None, system: Optional[str] = None,
                 max_answer: int = 0) -> None:
        self._sampler = sampler or Sampler(session.model.hparams.vocabulary)
        name = template.encode() if template is not None else llama.tandem_chat_template_guess(
            llama.tandem_model_source(session.model), tokenizer)
        self._strings = (name, None if system is None else system.encode())
        self._emit: Optional[Callable[[str], Any]] = None
        self._callbacks = _Callbacks()
        options = _native.ChatOptions(ctypes.sizeof(_native.ChatOptions), session._as_parameter_,
                                      self._sampler._as_parameter_, tokenizer._as_parameter_,
                                      name, self._strings[1], max_answer)
        options.emit = self._callbacks.wrap(_native.EmitFn, self._take, False)
        super().__init__(_native.make("chat_new", ctypes.byref(options)), llama.tandem_chat_free,
                         (session, self._sampler, tokenizer))

    @staticmethod
    def templates() -> List[str]:
        """Names of the templates that the library knows."""
        names: List[str] = []
        while llama.tandem_chat_template_name(len(names)):
            names.append(text(llama.tandem_chat_template_name(len(names))))
        return names

    def _take(self, data: Any, n: int) -> bool:
        piece = ctypes.string_at(data, n).decode("utf-8", "replace")
        self._answer.append(piece)
        return self._emit is None or self._emit(piece) is not False

    def say(self, said: str, emit: Optional[Callable[[str], Any]] = None) -> str:
        """Says something and returns the answer. ``emit`` is told each part of it as it comes;
        returning False ends the answer."""
        data = said.encode()
        self._answer: List[str] = []
        self._emit = emit
        self._callbacks.raised = None
        self._callbacks.call("chat_say", self, data, len(data))
        return "".join(self._answer)

    def reset(self) -> None:
        """Drops the conversation."""
        llama.tandem_chat_reset(self)
