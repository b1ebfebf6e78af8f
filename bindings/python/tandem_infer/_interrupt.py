# SPDX-License-Identifier: MIT
"""Ctrl-C ends computations. Python's own handler waits until the main thread is back from the
library; so the C handler writes each signal to a pipe (signal.set_wakeup_fd), and a thread that reads
it sets the flags of all calls in progress, which the library asks (tandem_cancel_flag)."""
import ctypes
import os
import signal
import threading
from typing import Any, List, Optional

INTERRUPTED = 2  # value of a flag

_lock = threading.Lock()
_running: List[ctypes.c_int32] = []
_pipe: Optional[List[int]] = None
_forward = -1  # whoever had the wakeup descriptor before
_watcher: Optional[threading.Thread] = None


def _is_default() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _watch(source: int) -> None:
    while True:
        try:
            signals = os.read(source, 64)
        except OSError:
            return
        if not signals:
            return
        if _forward >= 0:
            try:
                os.write(_forward, signals)
            except OSError:
                pass
        if signal.SIGINT in signals and _is_default():
            for flag in list(_running):
                flag.value = INTERRUPTED


def _open_pipe() -> List[int]:
    global _pipe
    if _pipe is None:
        _pipe = list(os.pipe())
        for end in _pipe:
            os.set_blocking(end, end == _pipe[0])
    return _pipe


def listen() -> int:
    """The main thread's signals go to the pipe too. Returns the descriptor that had them before."""
    global _forward
    if threading.current_thread() is not threading.main_thread():
        return -1
    ours = _open_pipe()[1]
    before = signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
    if before != ours:
        _forward = before
    return before


def _unlisten(before: int) -> None:
    if before >= 0 and _pipe is not None and before != _pipe[1]:
        signal.set_wakeup_fd(before)


def _start() -> None:
    global _watcher
    with _lock:
        if _watcher is None:
            pipe = _open_pipe()
            os.set_blocking(pipe[0], False)
            try:
                os.read(pipe[0], 4096)  # signals before the first call
            except BlockingIOError:
                pass
            os.set_blocking(pipe[0], True)
            _watcher = threading.Thread(target=_watch, args=(pipe[0],), daemon=True,
                                        name="tandem-interrupt")
            _watcher.start()


class interruptible:
    """For the block of a ``with`` that calls the library: Ctrl-C sets the flag."""

    __slots__ = ("_flag", "_before")

    def __init__(self, flag: ctypes.c_int32) -> None:
        self._flag = flag

    def __enter__(self) -> None:
        self._before = listen()
        if _watcher is None:
            _start()
        self._flag.value = 0
        _running.append(self._flag)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for i, flag in enumerate(_running):
            if flag is self._flag:
                del _running[i]
                break
        _unlisten(self._before)
        if self._flag.value == INTERRUPTED and (kind is None or kind.__name__ == "TandemError"):
            raise KeyboardInterrupt from None


def _after_fork() -> None:
    global _pipe, _watcher, _lock, _running
    old, _pipe, _watcher, _lock, _running = _pipe, None, None, threading.Lock(), []
    if old is not None:
        if threading.current_thread() is threading.main_thread():
            before = listen()
            if before != old[1]:
                _unlisten(before)
        for end in old:
            os.close(end)


os.register_at_fork(after_in_child=_after_fork)
_unlisten(listen())
