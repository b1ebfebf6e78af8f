# SPDX-License-Identifier: MIT
"""x[..] of values of nets: integers, slices, ..., None and one array of integers."""
import operator
from typing import Any, List, Tuple

import numpy

from ._native import told
from .netfuncs import is_value


def _parts(key: Any, n_dims: int) -> List[Any]:
    """One part for each dimension, with None between them."""
    parts = list(key) if isinstance(key, tuple) else [key]
    n = sum(part is not None and part is not Ellipsis for part in parts)
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1 or n > n_dims:
        raise IndexError(f"index {told(key)}: {n} parts, expected {n_dims} at most, and ... once")
    at = dots[0] if dots else len(parts)
    return parts[:at] + [slice(None)] * (n_dims - n) + parts[at + len(dots):]


def _slice(x: Any, axis: int, part: slice) -> Any:
    start, stop, step = part.indices(x.shape[axis])
    n = len(range(start, stop, step))
    if (start, n, step) == (0, x.shape[axis], 1):
        return x
    return x._build("slice", axis, start if n > 0 else 0, n, step)


def take_index(x: Any, key: Any) -> Any:
    """What numpy would give, of these kinds of parts."""
    parts = _parts(key, len(x.shape))
    arrays: List[Tuple[int, Any]] = []  # place among the dimensions that stay, indices
    fixed: List[bool] = []  # by part: an integer or array
    shape: List[int] = []
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            fixed.append(False)
            continue
        if isinstance(part, slice):
            x = _slice(x, axis, part)
            shape.append(x.shape[axis])
        elif is_value(part) or isinstance(part, (list, numpy.ndarray)) and numpy.ndim(part) > 0:
            arrays.append((len(shape), part))
            shape.append(x.shape[axis])
        else:
            x = _one(x, axis, part)
        fixed.append(not isinstance(part, slice))
        axis += 1
    if len(arrays) > 1:
        raise IndexError(f"index {told(key)}: {len(arrays)} arrays, expected one")
    if arrays and "".join("x" if one else " " for one in fixed).strip().count(" ") > 0:
        raise IndexError(f"index {told(key)}: an array and an integer with a slice between them, "
                         "expected them side by side")
    x = x if x.shape == tuple(shape) else x.reshape(tuple(shape))
    return x.take(arrays[0][1], arrays[0][0]) if arrays else x


def _one(x: Any, axis: int, part: Any) -> Any:
    try:
        i = operator.index(part)
    except TypeError:
        raise IndexError(f"index {told(part)}, expected integers, slices, ..., None or an array of "
                         "integers") from None
    n = x.shape[axis]
    if isinstance(part, (bool, numpy.bool_)) or not -n <= i < n:
        raise IndexError(f"index {told(part)}, expected {-n} to {n - 1}")
    return x._build("slice", axis, i % n, 1, 1)
