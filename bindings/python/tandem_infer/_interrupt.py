# SPDX-License-Identifier: MIT
"""Ctrl-C ends computations and never leaves a call half done. Two parts:

Python's own handler waits until the main thread is back from the library. So the C handler writes each
signal to a pipe (signal.set_wakeup_fd), and a thread that reads the pipe sets the flags of all calls in
progress, which the library polls (tandem_cancel_flag).

Python's own handler raises KeyboardInterrupt between any two instructions, also between taking a turn
and noting it. So a call replaces it for its duration (``shield``) by one that only notes the signal;
``unshield`` raises the exception once everything is tidied up. While a function of the program runs
inside the call, the exception is raised at once. Handlers of the program's own are left alone."""
import array
import ctypes
import fcntl
import os
import select
import signal
import termios
import threading
from typing import Any, List, Optional

try:  # those of signal make enumerations of all that they take and give: 20 us a call
    from _signal import getsignal as _handler_of, signal as _set_handler
except ImportError:
    from signal import getsignal as _handler_of, signal as _set_handler

INTERRUPTED = 2  # value of a flag
_SIGINT = int(signal.SIGINT)

NO_SHIELD, SHIELDED, NESTED = range(3)  # what shield() did

_main: Optional[int] = threading.main_thread().ident  # runs Python's handlers; None: not ours to use
_pending = False  # Ctrl-C has come behind a shield
_raises = False  # the main thread runs a function of the program inside a shielded call
_lock = threading.Lock()
_running: List[ctypes.c_int32] = []
_pipe: Optional[List[int]] = None
_forward = -1  # whoever had the wakeup descriptor before
_watcher: Optional[threading.Thread] = None
_reads = False  # the watcher has a signal in hand
_settled = threading.Event()
_MARK = b"\xff"  # no signal has this number; all in the pipe before it was seen when it is read


def _is_default() -> bool:
    return _handler_of(_SIGINT) in (signal.default_int_handler, _defer)


def _set_flags() -> None:
    for flag in list(_running):
        flag.value = INTERRUPTED


def _defer(_number: int, _frame: Any) -> None:
    """The handler behind a shield."""
    global _pending, _raises
    _set_flags()
    if _raises:
        _raises = False  # one exception: the call is to end, not its clean-up
        raise KeyboardInterrupt
    _pending = True


def shield() -> int:
    """No KeyboardInterrupt is raised on this thread until ``unshield``. Of other threads than the main
    one it never is."""
    global _main, _pending, _raises
    if threading.get_ident() != _main:
        return NO_SHIELD
    handler = _handler_of(_SIGINT)
    if handler is signal.default_int_handler:
        try:
            _set_handler(_SIGINT, _defer)
        except ValueError:  # an interpreter that gets no signals
            _main = None
            return NO_SHIELD
        _pending = _raises = False
        return SHIELDED
    if handler is _defer and _raises:
        _raises = False
        return NESTED
    return NO_SHIELD


def pending() -> bool:
    """Whether Ctrl-C has come since the shield of this thread."""
    return _pending and threading.get_ident() == _main


def unshield(what: int, kind: Any = None) -> None:
    """Ends what ``shield`` began. Raises KeyboardInterrupt if Ctrl-C has come since, unless an
    exception of that kind is on its way already."""
    global _pending, _raises
    if what == SHIELDED:
        if _handler_of(_SIGINT) is _defer:  # a callback may have set another
            _set_handler(_SIGINT, signal.default_int_handler)
    elif what == NESTED:
        _raises = True
    else:
        return
    if _pending:
        _pending = False
        if kind is not KeyboardInterrupt:
            raise KeyboardInterrupt from None


def run_inside(function: Any, *arguments: Any) -> Any:
    """Runs a function of the program inside a shielded call: there Ctrl-C raises at once."""
    global _raises
    is_main = threading.get_ident() == _main
    try:
        _raises = _raises or is_main
        return function(*arguments)
    finally:
        if is_main:
            _raises = False


def _watch(source: int) -> None:
    global _reads
    poll = select.poll()
    poll.register(source, select.POLLIN)
    while True:
        try:
            poll.poll()
            _reads = True  # before the pipe is empty: see _settle
            signals = os.read(source, 64)
        except OSError:
            return
        if not signals:
            return
        if _SIGINT in signals and _is_default():
            _set_flags()
        told = signals.replace(_MARK, b"")
        if _forward >= 0 and told:
            try:
                os.write(_forward, told)
            except OSError:
                pass
        _reads = False
        if len(told) < len(signals):
            _settled.set()


def _settle() -> None:
    """Waits until the watcher has seen all signals so far. Else it could set the flag of a call that
    began behind them, and one Ctrl-C would end two calls."""
    n_unread = array.array("i", [0])
    if _pipe is None or _watcher is None:
        return
    fcntl.ioctl(_pipe[0], termios.FIONREAD, n_unread)
    if n_unread[0] or _reads:
        with _lock:
            _settled.clear()
            try:
                os.write(_pipe[1], _MARK)
            except OSError:  # full: the watcher is dead
                return
            _settled.wait(1.0)


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
        _settle()
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
    global _pipe, _watcher, _lock, _running, _main, _reads, _settled
    _reads, _settled = False, threading.Event()
    if _main is not None and threading.get_ident() != _main:
        _main = threading.get_ident()  # the thread that forked; the shield was another one's
        if _handler_of(_SIGINT) is _defer:
            _set_handler(_SIGINT, signal.default_int_handler)
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
