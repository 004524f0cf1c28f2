"""What takes long to make, kept for as long as its session stands where it stood."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from celeus.errors import Busy
from celeus.operations.runtime.concurrency import Gate

MOST_SESSIONS = 256
PATIENCE_SECONDS = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in its history a session stood."""

    sequence: int
    revision: int


@dataclass(frozen=True, slots=True)
class Issued:
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


class Memo(Generic[T]):
    """The last one made of each session; ``gate`` lets a new one be made one at a time.

    However many people ask, at most one processor is busy with it. Beside the last one, at most
    ``most_bytes`` are kept.
    """

    def __init__(self, what: str, most_bytes: int = 0) -> None:
        """``what`` is being made when somebody is refused."""
        self.gate = Gate(1, PATIENCE_SECONDS, lambda: Busy(f"{what}; try again"))
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[UUID, tuple[str, T, int]] = OrderedDict()

    def known(self, session_id: UUID, version: str) -> T | None:
        """What was made of this version of the session, or None."""
        kept = self._kept.get(session_id)
        if kept is None or kept[0] != version:
            return None
        self._kept.move_to_end(session_id)
        return kept[1]

    def keep(self, session_id: UUID, version: str, made: T, size: int = 0) -> None:
        """Remember it, of ``size`` bytes, instead of the one before."""
        _, _, before = self._kept.pop(session_id, (version, made, 0))
        self._kept[session_id] = (version, made, size)
        self._bytes += size - before
        while len(self._kept) > MOST_SESSIONS or (
            self._bytes > self._most_bytes and len(self._kept) > 1
        ):
            _, (_, _, dropped) = self._kept.popitem(last=False)
            self._bytes -= dropped
