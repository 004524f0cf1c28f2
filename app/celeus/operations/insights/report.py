"""What a report tells of a session: its document, its plan, its course, and its certificate.

All of it is read at one moment, so that no figure contradicts another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.certificate import assumptions_of
from app.core.plan import Plan, plan_from
from app.core.signing import public_of
from app.errors import Busy
from app.operations.certificates import issue
from app.operations.history import document_of, one_snapshot
from app.operations.poolrecord import PoolRecord
from app.operations.pools import get_pool
from app.operations.rooms import Rooms

ATTEMPTS = 3
MOST_EVENTS_INTERIM = 20_000
"""An interim certificate is outdated by the next label; one of a longer ledger is not worth the
seconds that making it takes."""


@dataclass(frozen=True, slots=True)
class Point:
    """The answer after a folded round."""

    round: int
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate that was issued of the session as it stands."""

    digest: str
    final: bool
    issued_at: datetime


@dataclass(frozen=True, slots=True)
class Account:
    """A session as of ``at``. ``document`` is the one that GET shows.

    ``points`` is the course of the interval, thinned, the last round always among them;
    ``reached`` is the first round that was as narrow as the precision in force. ``unjudgeable``
    counts folded rounds. ``certified`` is None where ``uncertified`` says why.
    """

    document: dict[str, Any]
    plan: Plan
    pool_id: UUID
    closed: bool
    points: Sequence[Point]
    reached: int | None
    unjudgeable: int
    amendments: int
    changes: int
    certified: Certified | None
    uncertified: str | None
    public_key: str | None
    at: datetime

    @property
    def assumptions(self) -> list[str]:
        """What the claim rests on beside the draws, in sentences."""
        return [one["text"] for one in assumptions_of(self.plan, amended=self.amendments > 0)]


async def report(rooms: Rooms, session_id: UUID, points: int) -> tuple[Account, PoolRecord]:
    """The session as it stands and its pool, with a certificate where one can be had.

    The final certificate of a closed session is issued if need be, the interim one of an open
    session unless its ledger is long.
    """
    told = await _read(rooms, session_id, points)
    for _ in range(ATTEMPTS):
        if told.certified is not None or not _worth_issuing(rooms, told):
            break
        try:
            await issue(rooms, session_id)
        except Busy:
            break
        told = await _read(rooms, session_id, points)
    # A sealed pool never changes, so it needs no part in the moment.
    return told, await get_pool(rooms, told.pool_id)


def _worth_issuing(rooms: Rooms, told: Account) -> bool:
    short = told.document["sequence"] <= MOST_EVENTS_INTERIM
    return rooms.signing_key is not None and (told.closed or short)


async def _read(rooms: Rooms, session_id: UUID, points: int) -> Account:
    async with rooms.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, rooms.project_id, session_id)
        asked = {
            "session_id": session_id,
            "sequence": document["sequence"],
            "revision": document["revision"],
            "last": document["round"],
            "step": max(1, -(-document["round"] // points)),
            "precision": document["precision"],
        }
        row = (await db.execute(_SESSION, asked)).one()
        counted = (await db.execute(_COUNTED, asked)).one()
        course = await db.execute(_COURSE, asked)
        closed = row.lifecycle == "closed"
        certified = await _certified(db, asked, final=closed)
        return Account(
            document=document,
            plan=plan_from(row.plan),
            pool_id=row.pool_id,
            closed=closed,
            points=[Point(**one) for one in course.mappings()],
            reached=(await db.execute(_REACHED, asked)).scalar_one(),
            unjudgeable=counted.unjudgeable,
            amendments=counted.amendments,
            changes=counted.changes,
            certified=certified,
            uncertified=None if certified is not None else _why_not(rooms, document),
            public_key=None if rooms.signing_key is None else public_of(rooms.signing_key).hex(),
            at=row.now,
        )


async def _certified(
    db: AsyncConnection, asked: dict[str, Any], *, final: bool
) -> Certified | None:
    row = (await db.execute(_CERTIFIED, asked | {"final": final})).one_or_none()
    return None if row is None else Certified(bytes(row.digest).hex(), final, row.issued_at)


def _why_not(rooms: Rooms, document: dict[str, Any]) -> str:
    if rooms.signing_key is None:
        return "The service has no key to sign certificates with."
    if document["sequence"] > MOST_EVENTS_INTERIM:
        return (
            "No interim certificate was issued at this point of a long session; fetching one makes"
            " it, and a report made after that names it."
        )
    return "The session went on while the certificate was being made."


_SESSION = text(
    "SELECT pool_id, plan, lifecycle, now() AS now FROM sessions WHERE session_id = :session_id"
)
_COUNTED = text(
    """
    SELECT
        (SELECT count(*) FROM (
            SELECT DISTINCT ON (round) loss FROM events
            WHERE session_id = :session_id AND kind IN (2, 3, 4) AND round <= :last
            ORDER BY round, sequence DESC
        ) AS latest WHERE loss IS NULL) AS unjudgeable,
        (SELECT count(*) FROM events WHERE session_id = :session_id AND kind = 4) AS amendments,
        (SELECT count(*) FROM events WHERE session_id = :session_id AND kind = 5) AS changes
    """
)
_COURSE = text(
    """
    SELECT round, estimate, lower, upper FROM trajectory
    WHERE session_id = :session_id AND revision = :revision AND (:last - round) % :step = 0
    ORDER BY round
    """
)
_REACHED = text(
    """
    SELECT min(round) FROM trajectory
    WHERE session_id = :session_id AND revision = :revision
      AND upper - lower <= CAST(:precision AS double precision)
    """
)
_CERTIFIED = text(
    """
    SELECT digest, issued_at FROM certificates
    WHERE session_id = :session_id AND sequence = :sequence AND revision = :revision
      AND final = :final
    LIMIT 1
    """
)
