"""A cache of what takes long to make, valid while its session stays in the same state."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

MOST_KEPT = 256

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a session's history."""

    sequence: int
    revision: int


@dataclass(frozen=True, slots=True)
class CertificateRecord:
    """A certificate that was issued for a session; the digest in hexadecimal."""

    digest: str
    final: bool
    issued_at: datetime


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate's bytes, their digest in hexadecimal, and the place it speaks of.

    ``issued_at`` is the time of the last event before it, or of the session's opening; ``version``
    names the ledger up to there.
    """

    body: bytes
    digest: str
    final: bool
    place: Place
    version: str
    issued_at: datetime


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """News of a session as JSON: ``{session, points, reset}``, of one line.

    ``position`` is the sequence and the revision they lead to; ``reset``: the points replace all
    earlier ones; ``last``: the session is closed.
    """

    data: str
    position: tuple[int, int]
    reset: bool
    last: bool


class LatestByKey(Generic[T]):
    """The last one made of each session, or other key.

    Beside the last of all, at most ``most_bytes`` are kept.
    """

    def __init__(self, most_bytes: int = 0) -> None:
        """Know none."""
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[str, T, int]] = OrderedDict()

    def known(self, key: Hashable, version: str) -> T | None:
        """The value kept of this version, or None."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != version:
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def keep(self, key: Hashable, version: str, made: T, size: int = 0) -> None:
        """Remember it, of ``size`` bytes, instead of the one before."""
        _, _, before = self._kept.pop(key, (version, made, 0))
        self._kept[key] = (version, made, size)
        self._bytes += size - before
        while len(self._kept) > MOST_KEPT or (
            self._bytes > self._most_bytes and len(self._kept) > 1
        ):
            _, (_, _, dropped) = self._kept.popitem(last=False)
            self._bytes -= dropped
