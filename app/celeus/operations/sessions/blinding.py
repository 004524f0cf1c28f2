"""The rounds of a session as a blind key, one that may not see the session, knows them.

Rounds count from 1, so that a round's number would tell how many are drawn. To a blind key every
round has another number, in no order. What was never handed to the key is refused in the same
words after the same statements, whether it is judged, drawn, or neither.
"""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.operations.sessions.ledger import with_kinds

_HALF = 15
_MASK = (1 << _HALF) - 1
_MOST = 1 << 2 * _HALF
_TURNS = range(4)


class RoundNumbers:
    """Numbers of rounds for blind keys: a permutation of 1 to 2^30 that the session's seed keys.

    Numbers beyond stand for themselves; no session has as many rounds.
    """

    __slots__ = ("_seed",)

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def shown(self, round_: int) -> int:
        """The number that stands for a round."""
        if not 1 <= round_ <= _MOST:
            return round_
        left, right = divmod(round_ - 1, 1 << _HALF)
        for turn in _TURNS:
            left, right = right, left ^ self._mixed(turn, right)
        return (left << _HALF | right) + 1

    def round_of(self, shown: int) -> int:
        """The round that a number stands for, drawn or not."""
        if not 1 <= shown <= _MOST:
            return shown
        left, right = divmod(shown - 1, 1 << _HALF)
        for turn in reversed(_TURNS):
            left, right = right ^ self._mixed(turn, left), left
        return (left << _HALF | right) + 1

    def _mixed(self, turn: int, half: int) -> int:
        data = bytes([turn]) + half.to_bytes(2, "big")
        mixed = hashlib.blake2b(data, digest_size=2, key=self._seed, person=b"round number")
        return int.from_bytes(mixed.digest(), "big") & _MASK


async def judged_by(
    db: AsyncConnection, session_id: UUID, key_id: str | None, rounds: Sequence[int]
) -> dict[int, RowMapping]:
    """The first judgements of those of the rounds that this key has judged, with their details."""
    params: dict[str, Any] = {"session_id": session_id, "key_id": key_id, "rounds": list(rounds)}
    rows = (await db.execute(_JUDGED, params)).mappings()
    return {row["round"]: row for row in rows}


async def predecessors(db: AsyncConnection, key_id: str | None) -> frozenset[str]:
    """Keys of this key's name and project that are revoked, expired or rotated.

    What they held and did not judge is their successor's to judge.
    """
    return frozenset((await db.execute(_PREDECESSORS, {"key_id": key_id})).scalars())


_JUDGED = with_kinds(
    """
    SELECT round, loss, losses, detail FROM events
    WHERE session_id = :session_id AND kind IN (:observation, :unjudgeable)
      AND round = ANY(:rounds) AND detail->>'key' = :key_id
    """
)
_PREDECESSORS = text(
    """
    SELECT earlier.key_id FROM keys JOIN keys AS earlier USING (project_id, name)
    WHERE keys.key_id = :key_id
      AND (earlier.revoked_at IS NOT NULL OR earlier.expires_at <= now()
           OR earlier.replaced_by IS NOT NULL)
    """
)
