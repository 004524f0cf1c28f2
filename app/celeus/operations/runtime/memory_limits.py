"""Memory size of a value: the arrays and open rounds in it, which are nearly all of it."""

import sys
from array import array
from collections import deque
from collections.abc import Iterable
from functools import cache
from types import NoneType

import numpy as np

from celeus.core.session.fold import OpenRound

ATOMS = frozenset({float, int, bool, str, NoneType})
"""Types whose values are passed over: small, and most of what there is."""
BYTES_OF_AN_OPEN_ROUND = 2_000
"""About what the numbers of a drawn round take until it is folded; to count them takes long."""


def nbytes(value: object, besides: object = None) -> int:
    """Bytes of arrays and open rounds reachable from ``value`` and not from ``besides``, once each.

    A view counts as the whole array that it keeps alive.
    """
    visited: set[int] = set()
    _count(besides, visited)
    return _count(value, visited)


def _count(value: object, visited: set[int]) -> int:
    total = 0
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if type(held) in ATOMS or id(held) in visited:
            continue
        visited.add(id(held))
        if isinstance(held, OpenRound):
            total += BYTES_OF_AN_OPEN_ROUND
        elif isinstance(held, np.ndarray):
            waiting.append(held.base)
            total += held.nbytes if held.base is None else 0
        elif isinstance(held, array | bytes):
            total += sys.getsizeof(held)
        else:
            waiting.extend(_parts(held))
    return total


def _parts(value: object) -> Iterable[object]:
    """Members of a collection, or attributes of one of our objects."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    kind: type = type(value)
    members = getattr(value, "__dict__", {}).values()
    return [*members, *(getattr(value, name, None) for name in _slots(kind))]


@cache
def _slots(kind: type) -> tuple[str, ...]:
    """Names of the attributes that objects of a class keep outside a ``__dict__``."""
    names = (name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
    return tuple(name for name in names if name != "__weakref__")
