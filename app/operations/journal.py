"""One session's ledger: lock it, catch up with it, append to it.

Every writing operation on a session goes through ``locked``: it holds the session's slot, warms
its state outside the transaction, locks the row, folds what other processes wrote meanwhile, and
appends everything the operation did in one statement. Round trips to PostgreSQL: begin, lock and
look together, append, commit. These statements go past SQLAlchemy, straight to the driver: it can
send two at once, and an observation is mostly the price of sending statements.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.chain import chain_next
from app.core.ledger import Amendment, Event, Observation, Unjudgeable
from app.core.plan import Plan, plan_from
from app.core.session import State, apply, begin, replay
from app.core.surrogates import scores
from app.operations.chunks import raw_connection
from app.operations.hot import Slot, Warm
from app.operations.ledger import (
    Entry,
    Lease,
    event_from,
    events_of,
    locked_rows,
    opening_row,
    row_of,
)
from app.operations.pools import load_pool
from app.operations.rooms import Rooms
from app.operations.status import Known, status_document

ROUNDS_FOLDED_INLINE = 200


@dataclass(slots=True)
class Journal:
    """A locked session: its state, its leases, and what this transaction appends to it."""

    project_id: UUID
    key_id: str | None
    session_id: UUID
    pool_id: UUID
    slot: Slot
    warm: Warm
    lifecycle: str
    revision: int
    lease_seconds: int
    forecast: dict[str, Any] | None
    created_at: datetime
    now: datetime
    leases: dict[int, Lease]
    folded_before: int
    head: bytes | None
    entries: list[Entry] = field(default_factory=list)
    leased: list[Lease] = field(default_factory=list)
    judged: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)

    @property
    def plan(self) -> Plan:
        """The frozen choices of the session."""
        return self.warm.plan

    @property
    def state(self) -> State:
        """The session after the last event, appended ones included."""
        return self.warm.state

    def append(self, event: Event, detail: dict[str, Any] | None = None) -> Entry:
        """Apply an event to the state and have it written, with the key it came by."""
        if self.key_id is not None:
            detail = (detail or {}) | {"key": self.key_id}
        self.slot.ahead = True
        self.warm.state = apply(self.plan, self.state, event)
        entry = Entry(self.state.sequence, event, self.now, detail)
        self.entries.append(entry)
        if self.head is not None:
            self.head = chain_next(self.head, entry.record)
        if isinstance(event, Amendment):
            self.revision += 1
            self.folded_before = 0
        if isinstance(event, Observation | Unjudgeable):
            self.judged.append(event.round)
            self.leases.pop(event.round, None)
        return entry

    def lease(self, round_: int, worker: str) -> Lease:
        """Hand the draw of ``round_`` to ``worker`` from now on."""
        granted = Lease(round_, worker, self.now + timedelta(seconds=self.lease_seconds))
        self.leases[round_] = granted
        self.leased.append(granted)
        return granted

    @property
    def changed(self) -> bool:
        """There is something to write."""
        return bool(self.entries or self.leased)

    def status(self) -> dict[str, Any]:
        """The document GET returns, as of now."""
        known = Known(
            project_id=self.project_id,
            session_id=self.session_id,
            pool_id=self.pool_id,
            lifecycle=self.lifecycle,
            revision=self.revision,
            lease_seconds=self.lease_seconds,
            forecast=self.forecast,
            created_at=self.created_at,
            ledger_head=self.head,
        )
        return status_document(known, self.plan, self.state)


@asynccontextmanager
async def locked(rooms: Rooms, session_id: UUID) -> AsyncIterator[tuple[Journal, AsyncConnection]]:
    """The session's journal under its row lock; committed when the block ends without an error."""
    async with rooms.hot.hold(session_id) as slot:
        if slot.warm is None:
            slot.warm = await _rebuild(rooms, session_id)
        async with rooms.transaction() as db:
            yield await _lock(rooms, db, session_id, slot), db


async def write(
    db: AsyncConnection, journal: Journal, status: dict[str, Any]
) -> dict[int, dict[str, Any]]:
    """Append what the operation did, ``status`` being the document after it.

    Returns the wanted items by index (id and payload).
    """
    state = journal.state
    points = state.points[journal.folded_before :]
    raw = await raw_connection(db)
    cursor = await raw.cursor(row_factory=dict_row).execute(
        _APPEND,
        {
            "project_id": journal.project_id,
            "session_id": journal.session_id,
            "pool_id": journal.pool_id,
            "now": journal.now,
            "sequence": state.sequence,
            "revision": journal.revision,
            "lifecycle": journal.lifecycle,
            "state": status["state"],
            "precision": state.stopping.precision,
            "budget": state.stopping.budget,
            "drawn": state.drawn,
            "head": journal.head,
            "status": _json(status),
            "entries": _json([row_of(entry) for entry in journal.entries]),
            "points": _json(
                [
                    {
                        "round": point.round,
                        "estimate": point.estimate,
                        "lower": point.interval.lower,
                        "upper": point.interval.upper,
                    }
                    for point in points
                ]
            ),
            "leases": _json(journal.leased),
            "judged": journal.judged,
            "wanted": journal.wanted,
        },
    )
    return {row["index"]: row for row in await cursor.fetchall()}


def _json(value: object) -> str:
    """JSON for a statement: floats keep every digit on the way there."""
    return orjson.dumps(value).decode()


async def _rebuild(rooms: Rooms, session_id: UUID) -> Warm:
    """Plan, pool and ledger as they are now, folded in a thread: long work, no lock held."""
    async with rooms.transaction() as db:
        row = await opening_row(db, rooms.project_id, session_id)
        events = await events_of(db, session_id)
        pool = rooms.hot.pool(rooms.project_id, row["pool_id"])
        if pool is None:
            pool = await load_pool(db, rooms.project_id, row["pool_id"])
            rooms.hot.keep_pool(rooms.project_id, row["pool_id"], pool)
    plan = plan_from(row["plan"])
    loaded = pool

    def fold() -> State:
        state = begin(plan, scores(loaded, plan.strategy), bytes(row["seed"]))
        return replay(plan, state, events)

    return Warm(plan, loaded, await asyncio.to_thread(fold))


async def _lock(rooms: Rooms, db: AsyncConnection, session_id: UUID, slot: Slot) -> Journal:
    warm = slot.warm or await _rebuild(rooms, session_id)
    row, looked = await locked_rows(db, rooms.project_id, session_id, warm.state.sequence)
    if warm.state.sequence > row["sequence"]:
        # The slot ran ahead of a database restored to an earlier moment: only the ledger counts.
        warm = await _rebuild(rooms, session_id)
        row, looked = await locked_rows(db, rooms.project_id, session_id, warm.state.sequence)
    slot.warm = warm
    now = row["created_at"]
    leases: dict[int, Lease] = {}
    missed: list[Event] = []
    for seen in looked:
        if seen["kind"] == 0:
            now = seen["at"]
        elif seen["kind"] == -1:
            leases[seen["round"]] = Lease(seen["round"], seen["worker"], seen["at"])
        else:
            missed.append(event_from(seen))
    state = warm.state
    slot.ahead = bool(missed)
    await _inline_or_thread(len(missed), lambda: replay(warm.plan, state, missed))
    slot.ahead = False
    return Journal(
        project_id=rooms.project_id,
        key_id=rooms.key_id,
        session_id=session_id,
        pool_id=row["pool_id"],
        slot=slot,
        warm=warm,
        lifecycle=row["lifecycle"],
        revision=row["revision"],
        lease_seconds=row["lease_seconds"],
        forecast=row["forecast"],
        created_at=row["created_at"],
        now=now,
        leases=leases,
        folded_before=state.folded,
        head=row["ledger_head"],
    )


async def _inline_or_thread(size: int, work: Callable[[], object]) -> None:
    """A long fold would hold up every other request of the process; a short one is cheaper here."""
    if size > ROUNDS_FOLDED_INLINE:
        await asyncio.to_thread(work)
    elif size:
        work()


_APPEND = """
    WITH appended AS (
        INSERT INTO events
            (project_id, session_id, sequence, kind, round, item, q, strata_q, seen, loss, detail,
             at)
        SELECT %(project_id)s, %(session_id)s, entry.*
        FROM json_to_recordset(%(entries)s::json) AS entry(
            sequence int, kind smallint, round int, item int, q float8, strata_q bytea, seen int,
            loss float8, detail jsonb, at timestamptz)
    ), folded AS (
        INSERT INTO trajectory
            (project_id, session_id, revision, round, sequence, estimate, lower, upper)
        SELECT %(project_id)s, %(session_id)s, %(revision)s, point.round, %(sequence)s,
               point.estimate, point.lower, point.upper
        FROM json_to_recordset(%(points)s::json)
             AS point(round int, estimate float8, lower float8, upper float8)
    ), outdated AS (
        DELETE FROM trajectory
        WHERE session_id = %(session_id)s AND revision < %(revision)s
    ), returned AS (
        DELETE FROM leases WHERE session_id = %(session_id)s AND round = ANY(%(judged)s::int[])
    ), granted AS (
        INSERT INTO leases (project_id, session_id, round, worker, expires_at)
        SELECT %(project_id)s, %(session_id)s, lease.* FROM json_to_recordset(%(leases)s::json)
            AS lease(round int, worker text, expires_at timestamptz)
        ON CONFLICT (session_id, round)
        DO UPDATE SET worker = excluded.worker, expires_at = excluded.expires_at
    ), kept AS (
        UPDATE sessions SET sequence = %(sequence)s, revision = %(revision)s,
            lifecycle = %(lifecycle)s, state = %(state)s, precision = %(precision)s,
            budget = %(budget)s, drawn = %(drawn)s, status = %(status)s::jsonb,
            ledger_head = %(head)s, updated_at = %(now)s
        WHERE session_id = %(session_id)s
    )
    SELECT index, id, payload FROM items
    WHERE pool_id = %(pool_id)s AND index = ANY(%(wanted)s::int[])
    """
