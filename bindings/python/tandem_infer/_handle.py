# SPDX-License-Identifier: MIT
"""Ownership: an object of Python that owns one of the library's."""
import weakref
from typing import Any, Callable, Tuple

from ._native import TandemError


class Handle:
    """Owns an object of the library. Ends with ``close()``, at the end of a ``with``, or when nobody
    refers to it any more. What was made from it and still lives is closed before it."""

    _what = "object"

    def __init__(self, pointer: int, free: Callable[[int], Any],
                 parents: Tuple["Handle", ...] = ()) -> None:
        self._pointer = pointer
        self._parents = parents  # must outlive this one
        self._children: "weakref.WeakSet[Handle]" = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, free, pointer)
        for parent in parents:
            parent._children.add(self)

    @property
    def _as_parameter_(self) -> int:  # what ctypes passes
        if not self._finalizer.alive:
            raise TandemError(f"{self._what}: it is closed, expected an open one", "STATE")
        return self._pointer

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Frees the object; a second call does nothing."""
        for child in list(self._children):
            child.close()
        self._finalizer()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
