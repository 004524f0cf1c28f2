"""A session's ledger as rows: read it under the lock, and turn rows and events into each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
from psycopg.rows import dict_row
from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core import chain
from app.core.ledger import Amendment, Change, Draw, Event, Observation, Unjudgeable
from app.errors import SessionNotFound
from app.operations.chunks import raw_connection

KINDS: dict[type, int] = {Draw: 1, Observation: 2, Unjudgeable: 3, Amendment: 4, Change: 5}
KIND_NAMES = {number: chain.KINDS[kind] for kind, number in KINDS.items()}
"""What the numbers kept in rows are called on the wire."""


@dataclass(slots=True)
class Lease:
    """Who holds a draw that nobody has judged, and until when (the database's clock)."""

    round: int
    worker: str
    expires_at: datetime


@dataclass(slots=True)
class Entry:
    """An event with what the core does not need: who, why, when, and the label behind a loss."""

    sequence: int
    event: Event
    at: datetime
    detail: dict[str, Any] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The event as the hash chain takes it."""
        return chain.record_of(self.sequence, self.event, self.detail, moment(self.at))


def moment(at: datetime) -> str:
    """A time as chain and certificate write it: UTC, to the microsecond the database keeps."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


async def locked_rows(
    db: AsyncConnection, project_id: UUID, session_id: UUID, after: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a session of this project, locked, and what is there since, in one round trip.

    The statements are sent together and run one after the other. The second sees what others
    committed while the first waited for the lock; a single statement would not.
    """
    raw = await raw_connection(db)
    asked = {"project_id": project_id, "session_id": session_id, "after": after}
    locking, looking = raw.cursor(row_factory=dict_row), raw.cursor(row_factory=dict_row)
    async with raw.pipeline():
        await locking.execute(_LOCK, asked)
        await looking.execute(_LOOK, asked)
    row = await locking.fetchone()
    looked = await looking.fetchall()
    if row is None:
        raise _not_found(session_id)
    return row, looked


async def opening_row(db: AsyncConnection, project_id: UUID, session_id: UUID) -> RowMapping:
    """Pool, plan and seed of a session of this project: what its opening fixed."""
    asked = {"project_id": project_id, "session_id": session_id}
    row = (await db.execute(_PEEK, asked)).mappings().one_or_none()
    if row is None:
        raise _not_found(session_id)
    return row


async def events_of(db: AsyncConnection, session_id: UUID) -> list[Event]:
    """Every event so far, in order."""
    rows = await db.execute(_EVENTS, {"session_id": session_id})
    return [event_from(row) for row in rows.mappings()]


async def records_of(db: AsyncConnection, session_id: UUID, until: int) -> list[dict[str, Any]]:
    """The events up to sequence ``until`` as the hash chain takes them."""
    rows = await db.execute(_RECORDS, {"session_id": session_id, "until": until})
    return [record_from(row) for row in rows.mappings()]


def record_from(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of the ledger as the hash chain takes it."""
    return chain.record_of(row["sequence"], event_from(row), row["detail"], moment(row["at"]))


def row_of(entry: Entry) -> dict[str, Any]:
    """The row of an event; what it does not have is left out, and null in the table."""
    event = entry.event
    row: dict[str, Any] = {
        "sequence": entry.sequence,
        "kind": KINDS[type(event)],
        "detail": entry.detail,
        "at": moment(entry.at),
    }
    if not isinstance(event, Change):
        row["round"] = event.round
    if isinstance(event, Observation | Amendment):
        row["loss"] = event.loss
    if isinstance(event, Draw):
        row |= {"item": event.item, "q": event.q, "seen": event.seen}
        if event.strata_q is not None:
            row["strata_q"] = "\\x" + event.strata_q.tobytes().hex()
    return row


def event_from(row: Mapping[Any, Any]) -> Event:
    """The event a row of the ledger keeps."""
    match row["kind"]:
        case 1:
            kept = row["strata_q"]
            strata_q = None if kept is None else np.frombuffer(kept, dtype="<f8")
            return Draw(row["round"], row["item"], row["q"], row["seen"], strata_q)
        case 2:
            return Observation(row["round"], row["loss"])
        case 3:
            return Unjudgeable(row["round"])
        case 4:
            return Amendment(row["round"], row["loss"])
        case _:
            detail = row["detail"]
            return Change(detail["precision"], detail["budget"], detail.get("stop_when_decided"))


def _not_found(session_id: UUID) -> SessionNotFound:
    name = f"ses_{session_id.hex}"
    return SessionNotFound(f"no session {name}", field="session_id", value=name)


# Sent together, the two statements end with a message that turns PostgreSQL's own limit for idle
# transactions off: a process that then hung would keep the row for ever. Since version 17 the whole
# transaction can be limited; it gets the time of one statement.
_LOCK = """
    SELECT CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN
            set_config('transaction_timeout', current_setting('statement_timeout'), true)
        END AS limited,
        pool_id, name, sequence, revision, lifecycle, lease_seconds, forecast, created_at,
        ledger_head
    FROM sessions WHERE session_id = %(session_id)s AND project_id = %(project_id)s FOR UPDATE
    """
_PEEK = text(
    """
    SELECT pool_id, plan, seed FROM sessions
    WHERE session_id = :session_id AND project_id = :project_id
    """
)
_LOOK = """
    SELECT 0 AS kind, clock_timestamp() AS at, NULL::int AS sequence, NULL::int AS round,
           NULL::int AS item, NULL::float8 AS q, NULL::bytea AS strata_q, NULL::int AS seen,
           NULL::float8 AS loss, NULL::jsonb AS detail, NULL::text AS worker
    UNION ALL
    SELECT -1, expires_at, NULL, round, NULL, NULL, NULL, NULL, NULL, NULL, worker
    FROM leases WHERE session_id = %(session_id)s
    UNION ALL
    SELECT kind, at, sequence, round, item, q, strata_q, seen, loss, detail, NULL
    FROM events WHERE session_id = %(session_id)s AND sequence > %(after)s
    ORDER BY 3
    """
_EVENTS = text(
    """
    SELECT kind, sequence, round, item, q, strata_q, seen, loss, detail
    FROM events WHERE session_id = :session_id ORDER BY sequence
    """
)
_RECORDS = text(
    """
    SELECT kind, sequence, round, item, q, strata_q, seen, loss, detail, at
    FROM events WHERE session_id = :session_id AND sequence <= :until ORDER BY sequence
    """
)
