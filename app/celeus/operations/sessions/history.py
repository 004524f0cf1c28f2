"""A session's history: status document, trajectory and ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import SessionNotFound
from celeus.operations.pools.pools import PAGE_BYTES
from celeus.operations.runtime.context import Context, one_snapshot


@dataclass(frozen=True, slots=True)
class Point:
    """The answer after a folded round."""

    round: int
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Course:
    """The interval label by label, thinned, the last round always among the points.

    ``reached`` is the first round that was as narrow as the precision in force.
    """

    points: Sequence[Point]
    reached: int | None


async def course(context: Context, session_id: UUID, most: int) -> Course:
    """Return the course of a session's interval in about ``most`` points."""
    async with context.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, context.project_id, session_id)
        return await course_of(db, session_id, document, most)


async def course_of(
    db: AsyncConnection, session_id: UUID, document: Mapping[str, Any], most: int
) -> Course:
    """Return the course of the interval of the session that ``document`` is the status of."""
    last, precision = document["round"], document["precision"]
    params = {
        "session_id": session_id,
        "after": 0,
        "last": last,
        "step": max(1, -(-last // most)),
        "limit": most + 1,
        "precision": precision,
    }
    rows = (await db.execute(_TRAJECTORY, params)).mappings()
    points = [Point(row["round"], row["estimate"], row["lower"], row["upper"]) for row in rows]
    reached = None
    if precision is not None:
        reached = (await db.execute(_REACHED, params)).scalar_one()
    return Course(points, reached)


async def trajectory(
    context: Context, session_id: UUID, after: int, limit: int, points: int | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The session's document and its interval after round ``after``; ``points`` thins evenly."""
    async with context.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, context.project_id, session_id)
        step = 1 if points is None else max(1, -(-(document["round"] - after) // points))
        rows = await db.execute(
            _TRAJECTORY,
            {
                "session_id": session_id,
                "after": after,
                "last": document["round"],
                "step": step,
                "limit": limit,
            },
        )
        return document, [dict(row) for row in rows.mappings()]


async def ledger(
    context: Context, session_id: UUID, after: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Events after sequence ``after``, in order, and the last one's sequence if more may follow.

    At most ``limit`` events and ``PAGE_BYTES``, but one at least.
    """
    async with context.transaction() as db:
        await one_snapshot(db)
        await document_of(db, context.project_id, session_id)
        params = {"session_id": session_id, "after": after, "limit": limit, "most": PAGE_BYTES}
        rows = [dict(row) for row in (await db.execute(_LEDGER, params)).mappings()]
    selected = [row.pop("selected") for row in rows]
    whole = len(rows) < limit and selected[:1] == [len(rows)]
    return rows, None if whole or not rows else rows[-1]["sequence"]


async def news(
    context: Context, session_id: UUID, position: tuple[int, int] | None, most: int
) -> tuple[dict[str, Any], Sequence[RowMapping], bool]:
    """The session's document, and the trajectory rows written since ``position``.

    That is a sequence and a revision. Without one, and at another revision than the session's,
    all rows are news and the flag is set: an amendment replaced every row. At most about ``most``
    rows, thinned evenly, the last one always among them.
    """
    async with context.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, context.project_id, session_id)
        sequence, revision = position or (0, None)
        reset = revision != document["revision"]
        params = {"session_id": session_id, "sequence": 0 if reset else sequence, "most": most}
        rows = await db.execute(_NEWS, params)
        return document, rows.mappings().all(), reset


async def check_session(
    db: AsyncConnection, project_id: UUID, session_id: UUID, lock: str = ""
) -> None:
    """Refuse a session that the project has not; a ``lock`` is held until the transaction ends."""
    params = {"project_id": project_id, "session_id": session_id}
    if (await db.execute(text(f"{_THERE} {lock}"), params)).one_or_none() is None:
        raise SessionNotFound.of(session_id)


async def document_of(db: AsyncConnection, project_id: UUID, session_id: UUID) -> dict[str, Any]:
    """The status document in the row of a session of this project."""
    params = {"project_id": project_id, "session_id": session_id}
    status = (await db.execute(_STATUS, params)).scalar_one_or_none()
    if status is None:
        raise SessionNotFound.of(session_id)
    document: dict[str, Any] = status
    return document


_THERE = "SELECT true FROM sessions WHERE session_id = :session_id AND project_id = :project_id"
_STATUS = text(
    "SELECT status FROM sessions WHERE session_id = :session_id AND project_id = :project_id"
)
_TRAJECTORY = text(
    """
    SELECT round, sequence, estimate, lower, upper FROM trajectory
    WHERE session_id = :session_id AND round > :after AND (:last - round) % :step = 0
    ORDER BY round LIMIT :limit
    """
)
_REACHED = text(
    """
    SELECT min(round) FROM trajectory
    WHERE session_id = :session_id AND upper - lower <= CAST(:precision AS double precision)
    """
)
_LEDGER = text(
    """
    WITH page AS (
        SELECT sequence, kind, round, item, q, strata_q, seen, loss, losses, detail, at FROM events
        WHERE session_id = :session_id AND sequence > :after ORDER BY sequence LIMIT :limit
    ), sized AS (
        SELECT *, count(*) OVER () AS selected, row_number() OVER (ORDER BY sequence) AS place,
            sum(coalesce(octet_length(CAST(detail AS text)), 0)
                + 2 * coalesce(octet_length(strata_q), 0)) OVER (ORDER BY sequence) AS bytes
        FROM page
    )
    SELECT sequence, kind, round, item, q, encode(strata_q, 'hex') AS strata_q, seen, loss, losses,
           detail, at, selected
    FROM sized WHERE place = 1 OR bytes <= :most ORDER BY sequence
    """
)
_NEWS = text(
    """
    WITH fresh AS (
        SELECT round, sequence, estimate, lower, upper,
               count(*) OVER () AS rows, row_number() OVER (ORDER BY round DESC) AS back
        FROM trajectory WHERE session_id = :session_id AND sequence > :sequence
    )
    SELECT round, estimate, lower, upper FROM fresh
    WHERE (back - 1) % greatest(1, rows / :most) = 0 ORDER BY round
    """
)
