# SPDX-License-Identifier: MIT
"""Models of the llama family: sessions, tokens, samplers, chats."""
import ctypes
from dataclasses import dataclass
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple,
                    Union)

from . import _native
from ._handle import Handle, TandemError, turn
from ._interrupt import interruptible
from ._native import llama, tandem, text, told
from .ranks import Communicator
from .runtime import Runtime, _Callbacks, shared_runtime
from .tensors import Path, Type


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
    """Weights that were found and checked. Never changed, and shared by any number of threads.

    Args:
        path: a file (GGUF, safetensors or the folder of a model, PyTorch, llama2.c), which is mapped.
    """

    _what = "model"

    def __init__(self, path: Path) -> None:
        self._take(_native.open_file("model_load", path))

    _runtime: Optional[Runtime] = None  # of eval; None: the one that all models share

    def _take(self, pointer: int, source: Optional["_Source"] = None) -> None:
        self._own(pointer, llama.tandem_model_free, () if source is None else (source,))
        self._source = source

    @classmethod
    def load(cls, path: Path) -> "Model":
        """Maps a file: ``Model(path)``."""
        return cls(path)

    @classmethod
    def synthesize(cls, dim: int = 256, hidden: int = 512, layers: int = 2, heads: int = 4,
                   kv_heads: int = 2, vocabulary: int = 512, context: int = 256,
                   type: Type = Type.Q4_0, seed: int = 1) -> "Model":
        """A llama with random weights, for trying and measuring."""
        shape = _native.filled(_native.LlamaShape, dim=dim, hidden=hidden, layers=layers,
                               heads=heads, kv_heads=kv_heads, vocabulary=vocabulary,
                               context=context)
        source = _Source(_native.make("source_synthesize", ctypes.byref(shape), Type(type), seed))
        model = cls.__new__(cls)
        model._take(_native.make("model_new", source), source)
        return model

    @property
    def hparams(self) -> Hparams:
        """The numbers that describe it."""
        with turn(self._needs):
            h = llama.tandem_model_hparams(self).contents
            return Hparams(text(h.architecture), h.dim, h.hidden, h.layers, h.heads, h.kv_heads,
                           h.vocabulary, h.context, Type(h.weight_type))

    def tokenizer(self, path: Optional[Path] = None) -> "Tokenizer":
        """The tokenizer of the model file, or the one at ``path``."""
        if path is not None:
            return Tokenizer._of(_native.open_file("tokenizer_open", path, self.hparams.vocabulary))
        with turn(self._needs):
            return Tokenizer._of(_native.make("tokenizer_from_source",
                                              llama.tandem_model_source(self)))

    def eval(self, prompt: Union[str, bytes], max_tokens: int = 128,
             sampler: Optional["Sampler"] = None, tokenizer: Optional["Tokenizer"] = None) -> str:
        """How a text goes on, in a session of its own. ``tokenizer``: default that of the file."""
        tokenizer = self.tokenizer() if tokenizer is None else tokenizer
        with Session(self, self._runtime or shared_runtime()) as session:
            return "".join(session.generate(prompt, tokenizer, max_tokens, sampler))

    def save_gguf(self, path: Path) -> None:
        """Writes a GGUF file."""
        with turn(self._needs):
            _native.call("source_save_gguf", llama.tandem_model_source(self), path, None)


class _Source(Handle):
    _what = "source"

    def __init__(self, pointer: int) -> None:
        self._own(pointer, tandem.tandem_source_close)


class Tokenizer(Handle):
    """Text to tokens and back. Any thread.

    Args:
        path: tokenizer.model, tokenizer.json, vocab.json, a GGUF file or a model's folder.
    """

    _what = "tokenizer"

    def __init__(self, path: Path) -> None:
        self._own(_native.open_file("tokenizer_open", path, 0), tandem.tandem_tokenizer_close)

    @classmethod
    def _of(cls, pointer: int) -> "Tokenizer":
        tokenizer = cls.__new__(cls)
        tokenizer._own(pointer, tandem.tandem_tokenizer_close)
        return tokenizer

    @classmethod
    def open(cls, path: Path) -> "Tokenizer":
        """Reads a tokenizer: ``Tokenizer(path)``."""
        return cls(path)

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

    @property
    def adds_eos(self) -> bool:
        """Whether the file wants the end token behind every text."""
        return bool(tandem.tandem_tokenizer_adds_eos(self))

    def _encode_pair(self, first: Union[str, bytes], second: Union[str, bytes],
                     ) -> Tuple[List[int], int]:
        """Tokens of two texts, and where the second begins (0: nobody tells them apart)."""
        one, two = _native.data_of(first, "query"), _native.data_of(second, "document")
        begin = ctypes.c_size_t()
        ids = _native.encoded("tokenizer_encode_pair", len(one) + len(two) + 16, self, one, len(one),
                              two, len(two), behind=[ctypes.byref(begin)])
        return ids, begin.value

    def encode(self, content: Union[str, bytes], bos: Optional[bool] = None, eos: bool = False,
               special: bool = False) -> List[int]:
        """Tokens of a text.

        Args:
            bos: beginning token in front; default: as the file wants it.
            special: recognise special tokens; not for text of people whom you do not trust.
        """
        data = _native.data_of(content, "encode")
        options = _native.filled(_native.EncodeOptions, add_eos=eos, special_tokens=special,
                                 add_bos=self.adds_bos if bos is None else bos)
        return _native.encoded("tokenizer_encode_with", len(data) + 16, self, data, len(data),
                               ctypes.byref(options))

    def pieces(self, tokens: Iterable[int], begins: bool = True,
               special: bool = False) -> Iterator[str]:
        """The text of each token as soon as its characters are whole; may be empty. ``begins``: at
        the beginning of a text, whose first blank may be the tokenizer's."""
        stream = tandem.tandem_token_stream_begin(self, begins)
        stream.shows_special = bool(special)
        if isinstance(tokens, (str, bytes)) or not hasattr(tokens, "__iter__"):
            raise TypeError(f"tokens: {told(tokens)}, expected integers")
        return self._pieces(stream, tokens)

    def _pieces(self, stream: Any, tokens: Iterable[int]) -> Iterator[str]:
        out = ctypes.create_string_buffer(4096)
        for token in tokens:
            with turn(self._needs):  # the stream has a pointer to it
                n = tandem.tandem_token_stream_next(ctypes.byref(stream), token, out, len(out))
            yield out.raw[:min(n, len(out))].decode("utf-8", "replace")
        with turn(self._needs):
            n = tandem.tandem_token_stream_end(ctypes.byref(stream), out, len(out))
        if n > 0:
            yield out.raw[:n].decode("utf-8", "replace")

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        """Text of tokens, without the beginning token unless ``special``."""
        ids = _ids(tokens)
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
    _alone = True

    def __init__(self, vocabulary: int, temperature: float = 0.0, top_p: float = 0.0,
                 min_p: float = 0.0, top_k: int = 0, repeat_penalty: float = 0.0,
                 repeat_last: int = 0, seed: int = 1,
                 tokenizer: Optional[Tokenizer] = None) -> None:
        options = _native.filled(
            _native.SamplerOptions, vocabulary=vocabulary, temperature=temperature, top_p=top_p,
            min_p=min_p, top_k=top_k, repeat_penalty=repeat_penalty, repeat_last=repeat_last,
            seed=seed)
        self._own(_native.make("sampler_new", ctypes.byref(options)), llama.tandem_sampler_free)
        self._vocabulary = int(options.vocabulary)
        if tokenizer is not None:
            _native.call("sampler_keep_utf8", self, tokenizer)

    @property
    def vocabulary(self) -> int:
        """Logits that it chooses from."""
        return self._vocabulary

    def _check_fits(self, session: "Session") -> None:
        if self._vocabulary > session._vocabulary:
            raise ValueError(f"sampler: a vocabulary of {self._vocabulary}, expected at most "
                             f"{session._vocabulary}, the model's")

    def sample(self, session: "Session", sequence: int = 0) -> int:
        """The next token of a sequence that has logits."""
        if not isinstance(session, Session):
            raise TypeError(f"sample: {told(session)}, expected a session")
        self._check_fits(session)
        with turn(self._needs + session._needs):
            return int(llama.tandem_sampler_sample(self, session._logits(sequence)))

    def accept(self, token: int, is_output: bool = True) -> None:
        """Notes a token that stands in the text."""
        llama.tandem_sampler_accept(self, token, is_output)

    def reset(self) -> None:
        """Drops all noted tokens."""
        llama.tandem_sampler_reset(self)


_TOKEN = _native.KINDS[ctypes.c_int32]


def _ids(tokens: Iterable[int], what: str = "tokens") -> List[int]:
    """Tokens as integers of 32 bits."""
    if isinstance(tokens, (str, bytes, bytearray)):
        raise TypeError(f"{what}: {told(tokens)}, expected integers (Tokenizer.encode gives them)")
    try:
        given = list(tokens)
    except TypeError:
        raise TypeError(f"{what}: {told(tokens)}, expected a list of integers") from None
    return [_TOKEN.check(token, f"{what}[{i}]", []) for i, token in enumerate(given)]


def _array(ids: List[int]) -> Any:
    return (ctypes.c_int32 * len(ids))(*ids)


def _check_tokenizer(tokenizer: Any) -> None:
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer: {told(tokenizer)}, expected a tokenizer")


class Session(Handle):
    """Tokens seen so far, as keys and values, and the logits behind them. One thread at a time:
    others wait. Ctrl-C ends a decode with what was decoded before it.

    Args:
        context: positions of a text; 0: the model's.
        sequences: independent texts at once.
        cache_type: of keys and values: F32, F16, Q8_0 or Q4_0; ``"auto"``: the session chooses
            by ``cache_memory`` and the timing table.
        cache_memory: bytes that keys and values may take where the session chooses; 0: no bound.
        draft: tokens that are decoded ahead where that is faster: ``"lookup"`` drafts them from
            the text so far, ``"mtp"`` by the model's layer that predicts ahead, a session of a smaller model with the same vocabulary and as many
            sequences by its likeliest tokens. Logits stay the model's own.
        embeddings: keep what ``embed`` gives; encoders do so anyway.
        pooling: ``"mean"``, ``"cls"`` or ``"last"`` of an encoder; default: as its file says.
        communicator: ranks that compute it together; this is rank 0, the others ``follow``.
        shares: of the work of each rank, in proportion; default: the same.
        divide: what ranks share: ``"rows"`` of all layers, whole ``"layers"``, one rank behind
            the other, or ``"mixed"``: layers of prompts and rows of generated tokens.
        layer_shares: mixed: of the layers of each rank; default: as ``shares``.
        prompt_batch: mixed: tokens of a batch from which on it goes by layers; 0: 128.
        experts: by rows, ranks have ``"rows"`` of all experts, or some of them ``"whole"``.
    """

    _divisions = {"rows": 0, "layers": 1, "mixed": 2}
    _poolings = {None: 0, "mean": 1, "cls": 2, "last": 3}

    _what = "session"
    _alone = True

    def __init__(self, model: Model, runtime: Runtime, context: int = 0, sequences: int = 1,
                 cache_type: Union[Type, str] = Type.F32,
                 draft: Union[None, str, "Session"] = None, embeddings: bool = False,
                 pooling: Optional[str] = None, cache_memory: int = 0,
                 communicator: Optional[Communicator] = None,
                 shares: Optional[Sequence[float]] = None, divide: str = "rows",
                 layer_shares: Optional[Sequence[float]] = None, prompt_batch: int = 0,
                 experts: str = "rows") -> None:
        if experts not in ("rows", "whole"):
            raise ValueError(f"experts: {told(experts)}, expected 'rows' or 'whole'")
        if divide not in self._divisions:
            raise ValueError(f"divide: {told(divide)}, expected 'rows', 'layers' or 'mixed'")
        if communicator is not None and not isinstance(communicator, Communicator):
            raise TypeError(f"communicator: {told(communicator)}, expected a communicator or None")
        n_ranks = 1 if communicator is None else communicator.count
        for name, given in (("shares", shares), ("layer_shares", layer_shares)):
            if given is not None and len(given) != n_ranks:
                raise ValueError(f"{name}: {len(given)} numbers, expected one of each of {n_ranks} ranks")
        if pooling not in self._poolings:
            raise ValueError(f"pooling: {told(pooling)}, expected 'mean', 'cls', 'last' or None")
        if draft not in (None, "lookup", "mtp") and not isinstance(draft, Session):
            raise ValueError(f"draft: {told(draft)}, expected 'lookup', 'mtp', a session or None")
        is_planned = cache_type == "auto"
        options = _native.filled(_native.SessionOptions, context=context, n_sequences=sequences,
                                 cache_type=Type.F16 if is_planned else Type(cache_type),
                                 has_embeddings=embeddings, pooling=self._poolings[pooling],
                                 division=self._divisions[divide], prompt_batch=prompt_batch,
                                 has_whole_experts=experts == "whole",
                                 is_cache_planned=is_planned, cache_memory=cache_memory)
        of_ranks = () if communicator is None else (communicator,)
        kept, kept_layers = (None if given is None else (ctypes.c_double * n_ranks)(*given)
                             for given in (shares, layer_shares))
        with turn(tuple(need for one in of_ranks for need in one._needs)):
            options.communicator = communicator._address() if communicator is not None else None
            options.shares = ctypes.addressof(kept) if kept is not None else None
            options.layer_shares = ctypes.addressof(kept_layers) if kept_layers is not None else None
            pointer = _native.make("session_new", model, runtime, ctypes.byref(options))
        drafting = (draft,) if isinstance(draft, Session) else ()
        self._own(pointer, llama.tandem_session_free, (model, runtime) + of_ranks + drafting)
        if draft is not None:
            with turn(self._needs):
                how = _native.filled(_native.DraftOptions,
                                     model=draft._address() if drafting else None,
                                     by_heads=draft == "mtp")
                _native.call("session_set_draft", self, ctypes.byref(how))
        self._model = model
        self._runtime = runtime
        self._vocabulary = model.hparams.vocabulary
        self._flag = ctypes.c_int32()
        self._n_calls = 0  # that change it

    @property
    def model(self) -> Model:
        """Its model."""
        return self._model

    @property
    def runtime(self) -> Runtime:
        """Where it computes."""
        return self._runtime

    def _long(self, name: str, *arguments: Any) -> None:
        """A decode: asks the flag, which Ctrl-C sets."""
        with turn(self._needs):
            self._n_calls += 1
            llama.tandem_session_set_cancel(self, _native.CANCEL_FLAG,
                                            ctypes.addressof(self._flag))
            with interruptible(self._flag):
                _native.call(name, self, *arguments)

    def decode(self, tokens: Iterable[int], batch: int = 0) -> None:
        """Appends tokens to sequence 0 and computes the logits behind the last one; at most
        ``batch`` of them together (0: as many as fit)."""
        ids = _ids(tokens)
        self._long("session_decode", _array(ids), len(ids), batch)

    def _decode_entries(self, name: str, entries: Sequence[Tuple[int, Iterable[int]]]) -> None:
        kept = []
        try:
            for sequence, tokens in entries:
                kept.append((_TOKEN.check(sequence, "sequence", []), _array(_ids(tokens))))
        except ValueError as error:
            if type(error) is not ValueError:
                raise
            raise ValueError(f"entries: {error}, expected pairs of sequence and tokens") from None
        rows = (_native.BatchEntry * len(kept))(
            *[_native.BatchEntry(ids, len(ids), sequence, True) for sequence, ids in kept])
        self._long(name, rows, len(kept))

    def decode_batch(self, entries: Sequence[Tuple[int, Iterable[int]]]) -> None:
        """Appends tokens to several sequences, (sequence, tokens) each, with one pass."""
        self._decode_entries("session_decode_batch", entries)

    def begin_batch(self, entries: Sequence[Tuple[int, Iterable[int]]]) -> None:
        """As ``decode_batch``, but the results come with ``end_batch``: ranks that have whole
        layers compute several batches at the same time, of different sequences. Without such
        ranks it is decoded here."""
        self._decode_entries("session_begin_batch", entries)

    def end_batch(self) -> None:
        """Ends the batch that was begun first, and has its results."""
        self._long("session_end_batch")

    def batches_in_flight(self, texts: int) -> int:
        """How many batches to begin before the first one is ended, where this many texts each get
        a token at a time; 1: more bring nothing."""
        with turn(self._needs):
            return int(llama.tandem_session_batches_in_flight(self, texts))

    def _embedding(self, ids: List[int], second: int) -> List[float]:
        self.rollback()
        with turn(self._needs):
            llama.tandem_session_set_second(self, 0, second)
        self.decode(ids)
        with turn(self._needs):
            found = llama.tandem_session_embedding(self, 0)
            if not found:
                raise TandemError("session: it keeps no embeddings, expected embeddings=True",
                                  "STATE")
            return [float(x) for x in found[:llama.tandem_session_embedding_size(self)]]

    def embed(self, content: Union[str, bytes], tokenizer: Tokenizer,
              normalize: bool = True) -> List[float]:
        """The vector of a text, of length 1 unless ``normalize`` is False. What sequence 0 had is
        dropped."""
        _check_tokenizer(tokenizer)
        row = self._embedding(tokenizer.encode(content, eos=tokenizer.adds_eos), 0)
        length = sum(x * x for x in row) ** 0.5
        return [x / length for x in row] if normalize and length > 0 else row

    def score(self, query: Union[str, bytes], document: Union[str, bytes],
              tokenizer: Tokenizer) -> List[float]:
        """What a reranker gives for a query and a document: mostly one number, the higher the
        better. What sequence 0 had is dropped."""
        _check_tokenizer(tokenizer)
        return self._embedding(*tokenizer._encode_pair(query, document))

    def _logits(self, sequence: int) -> Any:
        logits = llama.tandem_session_logits(self, sequence)
        if not logits:
            raise TandemError(f"session: sequence {sequence} has no logits, expected a decoded one",
                              "STATE")
        return logits

    def logits(self, sequence: int = 0) -> Any:
        """A copy of the logits behind a sequence's last token, as a numpy array."""
        import numpy
        with turn(self._needs):
            found = self._logits(sequence)
            return numpy.ctypeslib.as_array(found, (self._vocabulary,)).copy()

    def position(self, sequence: int = 0) -> int:
        """Tokens of a sequence so far."""
        return int(llama.tandem_session_position(self, sequence))

    @property
    def context(self) -> int:
        """Positions that a sequence can have."""
        return int(llama.tandem_session_context(self))

    @property
    def drafts(self) -> Optional[Dict[str, int]]:
        """What drafts have brought: ``tokens`` that were decoded one by one, ``batches`` computed
        for them, tokens ``drafted``, and those ``accepted``. None without drafts."""
        info = _native.DraftInfo()
        if not llama.tandem_session_draft_info(self, ctypes.byref(info)):
            return None
        return {name: int(getattr(info, name))
                for name in ("tokens", "batches", "drafted", "accepted")}

    @property
    def cache_bytes(self) -> int:
        """Memory of keys and values."""
        return int(llama.tandem_session_cache_bytes(self))

    def rollback(self, position: int = 0, sequence: int = 0) -> int:
        """Drops the tokens from ``position`` on; returns the position reached."""
        self._n_calls += 1
        return int(llama.tandem_session_rollback(self, sequence, position))

    def copy(self, source: int, target: int, n: int) -> None:
        """Makes the empty sequence ``target`` begin with the first n tokens of ``source``."""
        _native.call("session_copy", self, source, target, n)

    def shift(self, keep: int, n: int, sequence: int = 0) -> None:
        """Drops tokens keep .. keep + n - 1 and moves those behind them forward."""
        self._n_calls += 1
        _native.call("session_shift", self, sequence, keep, n)

    def save(self, path: Path) -> None:
        """Writes the state of all sequences to a file."""
        _native.call("session_save", self, path)

    def load(self, path: Path) -> None:
        """Goes on with a state that was saved."""
        self._n_calls += 1
        _native.call("session_load", self, path)

    def tokens(self, prompt: Iterable[int], max_tokens: int = 128,
               sampler: Optional[Sampler] = None, stop: Iterable[int] = ()) -> Iterator[int]:
        """Decodes a prompt and yields token after token, until one of ``stop`` or the context ends
        it. Without a sampler always the likeliest one. Raises TandemError when another call has
        changed the session between two tokens."""
        ids = _ids(prompt)
        ends = set(_ids(stop, "stop"))
        most = _TOKEN.check(max_tokens, "max_tokens", [])
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"sampler: {told(sampler)}, expected a sampler or None")
        own = Sampler(self._vocabulary) if sampler is None else sampler
        own._check_fits(self)
        return self._generated(ids, most, own, ends)

    def _generated(self, ids: List[int], most: int, own: Sampler, ends: Set[int]) -> Iterator[int]:
        for token in ids:
            own.accept(token, False)
        decoded, n_calls = ids, 0
        for i in range(most):
            with turn(self._needs + own._needs):
                if i > 0 and self._n_calls != n_calls:
                    raise TandemError("session: another call has changed it between two tokens, "
                                      "expected one generation at a time", "STATE")
                if decoded:
                    self.decode(decoded)
                n_calls = self._n_calls
                token = own.sample(self)
                if token in ends:
                    return
                own.accept(token)
                is_last = i + 1 == most or self.position() >= self.context
            yield token
            if is_last:
                return
            decoded = [token]

    def generate(self, prompt: str, tokenizer: Tokenizer, max_tokens: int = 128,
                 sampler: Optional[Sampler] = None) -> Iterator[str]:
        """Continues a text: yields pieces of whole characters as they come."""
        _check_tokenizer(tokenizer)
        ids = tokenizer.encode(prompt)
        if not ids:
            raise TandemError("prompt: it has no tokens, expected at least one", "ARGUMENT")
        found = self.tokens(ids, max_tokens, sampler,
                            () if tokenizer.eos < 0 else (tokenizer.eos,))
        return (piece for piece in tokenizer.pieces(found, begins=False) if piece)


class Chat(Handle):
    """A conversation with a model, as sequence 0 of an empty session.

    Args:
        template: a ``ChatTemplate``, a file, or a name such as "chatml"; None: the model's own.
        system: what the model is told first.
        max_answer: tokens; 0: half of the context.
    """

    _what = "chat"
    _alone = True

    def __init__(self, session: Session, tokenizer: Tokenizer, sampler: Optional[Sampler] = None,
                 template: Any = None, system: Optional[str] = None,
                 max_answer: int = 0) -> None:
        from .templates import ChatTemplate  # it stands on this module
        for value, kind in ((session, Session), (tokenizer, Tokenizer)):
            if not isinstance(value, kind):
                raise TypeError(f"chat: {told(value)}, expected a {kind._what}")
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"chat: {told(sampler)}, expected a sampler or None")
        self._sampler = Sampler(session._vocabulary) if sampler is None else sampler
        self._sampler._check_fits(session)
        self._emit: Optional[Callable[[str], Any]] = None
        self._answer: List[str] = []
        self._callbacks = _Callbacks()
        self._flag = ctypes.c_int32()
        chat_template = (template if isinstance(template, ChatTemplate)
                         else ChatTemplate(template) if template is not None
                         else ChatTemplate.of(session.model))
        with turn(session._needs + tokenizer._needs + self._sampler._needs +
                  chat_template._needs):
            options = _native.filled(
                _native.ChatOptions, session=session._address(),
                sampler=self._sampler._address(), tokenizer=tokenizer._address(),
                chat_template=chat_template._address(), system=system, max_answer=max_answer,
                cancel=_native.CANCEL_FLAG, user=ctypes.addressof(self._flag),
                emit=self._callbacks.wrap(_native.EmitFn, self._take, False))
            self._own(_native.make("chat_new", ctypes.byref(options)), llama.tandem_chat_free,
                      (session, self._sampler, tokenizer, chat_template))
        self._session = session
        self._strings = options.system

    def _take(self, data: Any, n: int) -> bool:
        piece = ctypes.string_at(data, n).decode("utf-8", "replace")
        self._answer.append(piece)
        return self._emit is None or self._emit(piece) is not False

    def say(self, said: str, emit: Optional[Callable[[str], Any]] = None) -> str:
        """Says something and returns the answer. ``emit`` is told each part of it as it comes;
        returning False ends the answer."""
        data = _native.data_of(said, "say")
        if emit is not None and not callable(emit):
            raise TypeError(f"emit: {told(emit)}, expected a function or None")
        with turn(self._needs):
            self._answer = []
            self._emit = emit
            self._callbacks.raised = None
            self._session._n_calls += 1
            self._callbacks.call("chat_say", self._flag, self, data, len(data))
            return "".join(self._answer)

    def reset(self) -> None:
        """Drops the conversation."""
        with turn(self._needs):
            self._session._n_calls += 1
            llama.tandem_chat_reset(self)
