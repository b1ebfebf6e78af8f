# SPDX-License-Identifier: MIT
"""Ranks: processes that compute a session together."""
import ctypes
import time
from typing import Any, Dict, List, Optional

from . import _native
from ._handle import Handle, turn
from ._native import tandem, text
from .runtime import Runtime

_TAG = 7
_PIECE = 1 << 30  # bytes: MPI counts by int
_NAP_S = 5e-5
_kept: List[Any] = []  # transports: the library calls them until it has closed them


class Communicator(Handle):
    """The ranks that a launcher such as mpirun has started, or those of a program that uses MPI itself.
    Rank 0 gives it to its ``Session``, the others call ``follow``; at the end rank 0 calls ``dismiss``.

    Args:
        comm: a communicator of mpi4py, which is duplicated; None: all ranks of the launcher, by
            the library's own part for MPI.
        limit: seconds that a rank waits for another one before all give up; 60.
    """

    _what = "communicator"
    _alone = True

    def __init__(self, comm: Any = None, limit: float = 60.0) -> None:
        pointer = (_native.make("communicator_open") if comm is None else
                   _native.make("communicator_new", ctypes.byref(_transport(comm))))
        self._own(pointer, tandem.tandem_communicator_close)
        with turn(self._needs):
            tandem.tandem_communicator_set_limit(self, limit)

    @staticmethod
    def launched() -> int:
        """How many processes a launcher has started; 0: none has."""
        return int(tandem.tandem_communicator_launched())

    @property
    def rank(self) -> int:
        """This process, from 0."""
        with turn(self._needs):
            return int(tandem.tandem_communicator_rank(self))

    @property
    def count(self) -> int:
        """How many ranks there are."""
        with turn(self._needs):
            return int(tandem.tandem_communicator_count(self))

    @property
    def hosts(self) -> List[str]:
        """The host of each rank."""
        with turn(self._needs):
            n = int(tandem.tandem_communicator_count(self))
            return [text(tandem.tandem_communicator_host(self, i)) for i in range(n)]

    @property
    def name(self) -> str:
        """What carries the messages."""
        with turn(self._needs):
            return text(tandem.tandem_communicator_name(self))

    def follow(self, model: Any, runtime: Runtime) -> None:
        """Not on rank 0: computes this rank's part of rank 0's sessions until that dismisses it. The
        model is of the same file."""
        _native.call("session_follow", model, runtime, self)

    def dismiss(self) -> None:
        """On rank 0, when its sessions are closed: the others go on behind ``follow``."""
        _native.call("session_dismiss", self)


def _buffer(message: Any, at: int) -> Any:
    n = min(message.bytes - at, _PIECE)
    return (ctypes.c_char * n).from_address(message.data + at)


def _transport(comm: Any) -> Any:
    """struct tandem_transport over a communicator of mpi4py."""
    from mpi4py import MPI

    own = comm.Dup()
    own.Set_errhandler(MPI.ERRORS_RETURN)

    def begin(function: Any, messages: Any, n: int) -> List[Any]:
        return [(messages[i].rank, function([_buffer(messages[i], at), MPI.BYTE], messages[i].rank, _TAG))
                for i in range(n) for at in range(0, messages[i].bytes, _PIECE)]

    def exchange(_self: Any, sends: Any, n_sends: int, receives: Any, n_receives: int, limit_s: float,
                 out_rank: Any, why: Any, why_bytes: int) -> bool:
        rank = -1
        try:
            left = begin(own.Irecv, receives, n_receives) + begin(own.Isend, sends, n_sends)
            began = time.monotonic()
            while left:
                rank = left[0][0]
                if left[0][1].Test():
                    left.pop(0)
                    continue
                waited = time.monotonic() - began
                if 0 < limit_s < waited:
                    raise TimeoutError(f"no answer within {limit_s:.1f} s: it has ended, hangs, or "
                                       "cannot be reached")
                if waited > _NAP_S:
                    time.sleep(_NAP_S)
            return True
        except BaseException as error:  # it cannot pass through C
            words = str(error).encode("utf-8", "replace")[:max(why_bytes - 1, 0)] + b"\0"
            ctypes.memmove(why, words, len(words))
            out_rank[0] = rank
            return False

    def close(_self: Any, has_failed: bool) -> None:
        _kept.remove(kept)
        if has_failed:
            own.Abort(1)
        own.Free()

    functions = _native.ExchangeFn(exchange), _native.CloseFn(close)
    name = f"mpi4py, {MPI.Get_library_version().split(',')[0]}".encode()
    kept: Dict[str, Any] = {"functions": functions, "name": name}
    _kept.append(kept)
    made = _native.Transport(size=ctypes.sizeof(_native.Transport), rank=own.Get_rank(),
                             count=own.Get_size(), name=name)
    made.exchange, made.close = (ctypes.cast(f, ctypes.c_void_p) for f in functions)
    return made
