"""Memory size of a value: the arrays in it, which are nearly all of it."""

import sys
from array import array
from collections import deque
from collections.abc import Iterable
from functools import cache
from types import NoneType

import numpy as np

ATOMS = frozenset({float, int, bool, str, NoneType})
"""Types whose values are passed over: small, and most of what there is."""


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
        if type(one) in ATOMS or id(one) in visited:
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
    kind: type = type(value)
    own = getattr(value, "__dict__", {}).values()
    return [*own, *(getattr(value, name, None) for name in _slots(kind))]


@cache
def _slots(kind: type) -> tuple[str, ...]:
    """Names of the attributes that objects of a class keep outside a ``__dict__``."""
    names = (name for one in kind.__mro__ for name in getattr(one, "__slots__", ()))
    return tuple(name for name in names if name != "__weakref__")
