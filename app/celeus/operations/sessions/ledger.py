"""Read ledger rows, under the lock or without."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row
from sqlalchemy import RowMapping, TextClause, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.canonical import canonical_json
from celeus.core.certificate import chain
from celeus.core.ledger import Event
from celeus.errors import SessionNotFound
from celeus.operations.sessions.event_rows import KIND_NAMES, event_from, moment, record_from
from celeus.store.database import raw_connection

PAGE = 200
"""Events read from the database at a time."""
MOST_EVENTS = 2**31 - 1


Holder = tuple[str, str]
"""Key and worker of a judge."""


@dataclass(slots=True)
class Lease:
    """A lease: who holds an unjudged draw, and until when (the database's clock).

    ``since`` is when the draw was handed to somebody who did not have it; renewing keeps it. A
    worker's name counts within its key. ``keys`` are all that ever held the draw, the holder's
    last; a caller without a key is "". ``passed`` are those of whom each gave it to somebody else.
    ``beside`` is who else holds it, of those who do for longer: key, worker, and the lease's end.
    ``runs`` were made of a draw of several, none of which settles it.
    """

    round: int
    worker: str
    expires_at: datetime
    since: datetime
    keys: list[str]
    passed: list[list[str]] = field(default_factory=list)
    beside: tuple[str, str, str] | None = None
    runs: int = 0

    @property
    def holder(self) -> Holder:
        """Key and worker of who asked for it last."""
        return (self.keys[-1], self.worker)

    @property
    def ends(self) -> dict[Holder, datetime]:
        """The end of each holder's lease, whether or not it has passed."""
        ends = {self.holder: self.expires_at}
        if self.beside is not None:
            key, worker, end = self.beside
            ends[key, worker] = datetime.fromisoformat(end)
        return ends

    def holders(self, now: datetime) -> list[Holder]:
        """Return the holders whose leases have not ended."""
        return [holder for holder, end in self.ends.items() if end > now]


def with_kinds(statement: str) -> TextClause:
    """The statement, where `:draw`, `:observation` and so on stand for kinds of event.

    They are sent as literals: an index on some kinds only is not used for a parameter.
    """
    names = set(re.findall(r":(\w+)", statement))
    return text(statement).bindparams(
        *(
            bindparam(name, number, literal_execute=True)
            for number, name in KIND_NAMES.items()
            if name in names
        )
    )


async def locked_rows(
    db: AsyncConnection, project_id: UUID, session_id: UUID, after: int, most: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Lock the session's row and read what was appended since, in one round trip.

    Of many events the first ``most``: the row's sequence shows whether there are more.

    The statements are sent together and run one after the other. The second sees what others
    committed while the first waited for the lock; a single statement would not.
    """
    raw = raw_connection(db)
    params = {"project_id": project_id, "session_id": session_id, "after": after, "most": most}
    locking, looking = raw.cursor(row_factory=dict_row), raw.cursor(row_factory=dict_row)
    async with raw.pipeline():
        await locking.execute(_LOCK, params)
        await looking.execute(_LOOK, params)
    row = await locking.fetchone()
    rows = await looking.fetchall()
    if row is None:
        raise SessionNotFound.of(session_id)
    return row, rows


async def rows_since(
    db: AsyncConnection, project_id: UUID, session_id: UUID, after: int, most: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a session of this project and the events since, unlocked: ``db`` sees one moment.

    The events are as in ``locked_rows``, and stand among rows of kind 0 and below.
    """
    raw = raw_connection(db)
    params = {"project_id": project_id, "session_id": session_id, "after": after, "most": most}
    row = await (await raw.cursor(row_factory=dict_row).execute(_ROW, params)).fetchone()
    if row is None:
        raise SessionNotFound.of(session_id)
    rows = await raw.cursor(row_factory=dict_row).execute(_LOOK, params)
    return row, await rows.fetchall()


async def opening_row(db: AsyncConnection, project_id: UUID, session_id: UUID) -> RowMapping:
    """Pool, plan and seed of a session of this project, fixed when it was opened."""
    params = {"project_id": project_id, "session_id": session_id}
    row = (await db.execute(_PEEK, params)).mappings().one_or_none()
    if row is None:
        raise SessionNotFound.of(session_id)
    return row


async def events_of(db: AsyncConnection, session_id: UUID) -> list[Event]:
    """Every event so far, in order."""
    pages = _pages(db, session_id, MOST_EVENTS)
    return [event_from(row) async for page in pages for row in page]


async def records_of(
    db: AsyncConnection, session_id: UUID, until: int
) -> tuple[list[bytes], str | None]:
    """The events up to sequence ``until`` as the hash chain takes them, and the last one's time.

    Each is canonical JSON: thousands of them are a fraction of their size as objects.
    """
    records: list[bytes] = []
    last = None
    async for page in _pages(db, session_id, until):
        records += await asyncio.to_thread(_encoded, page)
        last = moment(page[-1]["at"])
    return records, last


async def head_of(db: AsyncConnection, session_id: UUID, start: bytes) -> bytes:
    """The head of the chain over all events, from its ``start``."""
    async for page in _pages(db, session_id, MOST_EVENTS):
        start = await asyncio.to_thread(chain.chain_head, start, map(record_from, page))
    return start


def _encoded(rows: list[dict[str, Any]]) -> list[bytes]:
    return [canonical_json(record_from(row)) for row in rows]


async def _pages(
    db: AsyncConnection, session_id: UUID, until: int
) -> AsyncIterator[list[dict[str, Any]]]:
    """The ledger's rows up to sequence ``until``, read in pages to keep other requests going.

    Events are only ever added, so that pages read one after the other are one ledger.
    """
    raw = raw_connection(db)
    after = 0
    while after < until:
        params = {"session_id": session_id, "after": after, "until": min(after + PAGE, until)}
        cursor = await raw.cursor(row_factory=dict_row).execute(_PAGE, params)
        rows = await cursor.fetchall()
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        after += PAGE


RECORD = """
        session_id, project_id, pool_id, name, revision, lifecycle, lease_seconds, created_at,
        ledger_head, contradictions, origin, owner, tags, active_at,
        archived_at IS NOT NULL AS archived, planned_labels, seconds_per_label"""
"""The columns of a session's row that its status document is made with: `SessionRecord` has all."""

# Sent together, the two statements end with a message that turns PostgreSQL's own limit for idle
# transactions off: a process that then hung would keep the row for ever. Since version 17 the whole
# transaction can be limited; it gets the time of one statement.
_LOCK = f"""
    SELECT CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN
            set_config('transaction_timeout', current_setting('statement_timeout'), true)
        END AS limited, sequence, {RECORD}
    FROM sessions WHERE session_id = %(session_id)s AND project_id = %(project_id)s FOR UPDATE
    """  # noqa: S608 -- our own words
_ROW = """
    SELECT pool_id, sequence, revision, lifecycle, created_at, ledger_head, status
    FROM sessions WHERE session_id = %(session_id)s AND project_id = %(project_id)s
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
           NULL::float8 AS loss, NULL::float8[] AS losses, NULL::jsonb AS detail,
           NULL::text AS worker
    UNION ALL
    SELECT -1, expires_at, NULL, round, NULL, NULL, NULL, NULL, NULL, NULL,
           jsonb_build_array(since, keys, passed, beside, runs), worker
    FROM leases WHERE session_id = %(session_id)s
    UNION ALL
    (SELECT -2, at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
     FROM events WHERE session_id = %(session_id)s ORDER BY sequence DESC LIMIT 1)
    UNION ALL
    (SELECT kind, at, sequence, round, item, q, strata_q, seen, loss, losses, detail, NULL
     FROM events WHERE session_id = %(session_id)s AND sequence > %(after)s
     ORDER BY sequence LIMIT %(most)s)
    ORDER BY 3
    """
_PAGE = """
    SELECT kind, sequence, round, item, q, strata_q, seen, loss, losses, detail, at
    FROM events
    WHERE session_id = %(session_id)s AND sequence > %(after)s AND sequence <= %(until)s
    ORDER BY sequence
    """
