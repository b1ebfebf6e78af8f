# SPDX-License-Identifier: MIT
"""Ownership and turns. An object of Python owns one of the library's, and no function of the library
is called without a turn on everything that it touches (``turn``): alone on a context or a session,
together with others on a runtime or a model. So an object is never freed under a call, and a second
thread waits; those that wait come in the order in which they came."""
import atexit
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._interrupt import NO_SHIELD, pending, run_inside, shield, unshield


class TandemError(Exception):
    """A call of the library has failed. The message names the thing, the value met and what was
    expected; the same stands in the attributes.

    Attributes:
        status: name of the status as in C without TANDEM_E_, such as ``"SHAPE"``.
        where: file, tensor, node or backend concerned; may be empty.
        got, limit: the value met and the one expected or allowed, where numbers say it.
    """

    def __init__(self, text: str, status: str = "STATE", where: str = "", got: int = 0,
                 limit: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.where = where
        self.got = got
        self.limit = limit


class _Here(threading.local):
    callbacks = 0  # functions of the program that the library has called on this thread
    holds = 0  # turns of this thread


_here = _Here()
# Reentrant: a collection of garbage may close objects while it is held.
_lock = threading.RLock()
_turns = threading.Condition(_lock)
_queue: "List[Needs]" = []  # of the threads that wait, the first one first

Key = Tuple[int, int]  # of a user: thread, callbacks


class State:
    """What the library's object is and who uses it. Outlives the handle where calls need it."""

    def __init__(self, what: str, pointer: int, free: Callable[[int], Any],
                 parents: Tuple["Handle", ...]) -> None:
        self.what = what
        self.pointer = pointer
        self.free = free
        self.parents = parents  # must outlive this one
        self.users: Dict[Key, int] = {}
        self.owner: Optional[Key] = None  # uses it alone
        self.why_closed = ""
        _states.add(self)

    def end(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Frees the object, unless another thread computes with it while the interpreter ends, or
        what it needs for that was freed (by a thread that closed it while this one was made). At the
        interpreter's very end the process frees it: a daemon thread may have been stopped for good
        while it had the lock."""
        if is_finalizing():
            return
        key = (threading.get_ident(), _here.callbacks)
        with _lock:
            if self.why_closed:
                return
            self.why_closed = "it is closed"
            if (any(user != key for user in self.users) or
                    any(parent._state.why_closed for parent in self.parents)):
                return
        self.free(self.pointer)


_states: "weakref.WeakSet[State]" = weakref.WeakSet()
_ends = False  # the program's end frees what is left


def _begin_end() -> None:
    global _ends
    _ends = True


weakref.finalize(State, int)  # so that what finalizers register with atexit runs behind the next line's
atexit.register(_begin_end)

Needs = Tuple[Tuple[State, bool], ...]  # and whether alone


class turn:
    """For the block of a ``with``: all these objects are open and stay so. Waits for threads that
    use one alone and for those that came earlier; all turns begin at once, and a thread that has one
    does not wait, so there is no deadlock. Ctrl-C raises before or behind the block."""

    __slots__ = ("_needs", "_key", "_shield")

    def __init__(self, needs: Needs) -> None:
        self._needs = needs

    def __enter__(self) -> None:
        here = _here
        self._shield = shield()
        try:
            key = self._key = (threading.get_ident(), here.callbacks)
            with _lock:
                if _queue:
                    _wait(self._needs, key, self._shield)
                else:
                    for state, alone in self._needs:
                        if state.why_closed or state.users and (alone or state.owner is not None):
                            _wait(self._needs, key, self._shield)
                            break
                for state, alone in self._needs:
                    users = state.users
                    users[key] = users.get(key, 0) + 1
                    if alone:
                        state.owner = key
                here.holds += 1
        except BaseException as error:
            unshield(self._shield, type(error))
            raise

    def __exit__(self, kind: Any, *_: Any) -> None:
        key = self._key
        with _lock:
            _here.holds -= 1
            for state, _alone in self._needs:
                n = state.users.pop(key, 0)
                if n > 1:
                    state.users[key] = n - 1
                elif state.owner == key:
                    state.owner = None
            if _queue:
                _turns.notify_all()
        unshield(self._shield, kind)


def _in_the_way(needs: Needs, key: Key) -> Optional[State]:
    """An object that another thread uses; raises where waiting would not help."""
    for state, alone in needs:
        if state.why_closed:
            while _ends and threading.current_thread().daemon:
                _turns.wait()  # no error at the program's end: this thread ends with the process
            raise TandemError(f"{state.what}: {state.why_closed}, expected an open one", "STATE")
        if alone or state.owner not in (None, key):
            for user in state.users:
                if user[0] == key[0] and user[1] != key[1]:
                    raise TandemError(f"{state.what}: it is in use by the call that calls this "
                                      "function, expected one that is not", "STATE")
                if user != key:
                    return state
    return None


def _is_before(needs: Needs) -> bool:
    """Whether a thread that came earlier waits for an object of these. Without this, a thread that
    makes one call after another can keep the others out for ever."""
    for ahead in _queue:
        if ahead is needs:
            return False
        for state, alone in ahead:
            if any(state is mine and (alone or mine_alone) for mine, mine_alone in needs):
                return True
    return False


def _wait(needs: Needs, key: Key, shielded: int) -> None:
    state = _in_the_way(needs, key)
    if _here.holds or _here.callbacks:
        if state is not None:
            raise TandemError(f"{state.what}: another thread uses it, expected one that is free, since "
                              "who uses another object or is called back does not wait", "STATE")
        return
    mine = tuple(list(needs))  # found in the queue by its identity
    _queue.append(mine)
    try:
        while state is not None or _is_before(mine):
            _turns.wait(None if shielded == NO_SHIELD else 0.05)  # a shield keeps Ctrl-C from waking it
            if pending():
                raise KeyboardInterrupt
            state = _in_the_way(needs, key)
    finally:
        _queue[:] = [one for one in _queue if one is not mine]
        _turns.notify_all()


def call_back(function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a function of the program that the library has called."""
    _here.callbacks += 1
    try:
        return run_inside(function, *arguments)
    finally:
        _here.callbacks -= 1


def _after_fork() -> None:
    """The child has none of the other threads: what they used stays as it is for ever."""
    global _lock, _turns
    _lock = threading.RLock()
    _turns = threading.Condition(_lock)
    _queue.clear()
    me = threading.get_ident()
    for state in list(_states):
        if any(user[0] != me for user in state.users):
            state.why_closed = "another thread used it when the process forked"


os.register_at_fork(after_in_child=_after_fork)


class Uncopied:
    """Cannot be copied or pickled: there is one object of the library."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{type(self).__name__}: it cannot be copied or pickled")


class Handle(Uncopied):
    """Owns an object of the library. Ends with ``close()``, at the end of a ``with``, or when nobody
    refers to it any more. What was made from it and still lives is closed before it."""

    _what = "object"
    _alone = False  # one thread at a time
    _state: State
    _needs: Needs = ()

    def _own(self, pointer: int, free: Callable[[int], Any],
             parents: Tuple["Handle", ...] = ()) -> None:
        self._state = State(self._what, pointer, free, parents)
        self._children: "weakref.WeakSet[Handle]" = weakref.WeakSet()
        needs = {id(need[0]): need for parent in parents for need in parent._needs}
        self._needs = ((self._state, self._alone),) + tuple(needs.values())
        self._finalizer = weakref.finalize(self, self._state.end)
        for parent in parents:
            parent._children.add(self)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return bool(self._state.why_closed)

    def close(self) -> None:
        """Frees the object, behind the calls of other threads; a second call does nothing."""
        if self.closed:
            return
        children: List[Handle] = list(self._children)
        for child in children:
            child.close()
        try:
            with turn(((self._state, True),) + self._needs[1:]):
                self._finalizer()
        except TandemError:
            if not self.closed:  # else another thread has done it
                raise

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _address(self) -> int:
        """What C gets, within a turn."""
        return self._state.pointer
