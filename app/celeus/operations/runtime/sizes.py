"""Memory size of a value: the arrays in it, which are nearly all of it."""

import sys
from array import array
from collections import deque
from collections.abc import Iterable

import numpy as np


def nbytes(value: object, besides: object = None) -> int:
    """Bytes of all arrays reachable from ``value`` and not from ``besides``, each counted once.

    A view counts as the whole array that it keeps alive.
    """
    visited: set[int] = set()
    _count(besides, visited)
    return _count(value, visited)


def _count(value: object, visited: set[int]) -> int:
    total = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in visited:
            continue
        visited.add(id(one))
        if isinstance(one, np.ndarray):
            waiting.append(one.base)
            total += one.nbytes if one.base is None else 0
        elif isinstance(one, array | bytes):
            total += sys.getsizeof(one)
        else:
            waiting.extend(_parts(one))
    return total


def _parts(value: object) -> Iterable[object]:
    """Members of a collection, or attributes of one of our objects."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    names = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    members = [getattr(value, name) for name in names if hasattr(value, name)]
    return [*members, *getattr(value, "__dict__", {}).values()]
