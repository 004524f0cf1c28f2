"""One session's ledger: lock it, catch up with it, append to it.

Every writing operation on a session goes through ``locked``: it holds the session's slot, warms
its state outside the transaction, locks the row, folds what other processes wrote meanwhile, and
appends everything the operation did in one statement. Round trips to PostgreSQL: begin, lock,
look, append, commit.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from sqlalchemy import RowMapping, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.ledger import Amendment, Change, Draw, Event, Observation, Unjudgeable
from app.core.plan import Plan, plan_from
from app.core.session import State, apply, begin, replay
from app.core.surrogates import scores
from app.errors import SessionNotFound
from app.operations.hot import Slot, Warm
from app.operations.pools import load_pool
from app.operations.rooms import Rooms
from app.operations.status import Known, status_document

KINDS: dict[type, int] = {Draw: 1, Observation: 2, Unjudgeable: 3, Amendment: 4, Change: 5}
ROUNDS_FOLDED_INLINE = 200


@dataclass(slots=True)
class Lease:
    """Who holds a draw that nobody has judged, and until when (the database's clock)."""

    round: int
    worker: str
    expires_at: datetime


@dataclass(slots=True)
class Entry:
    """An event with what the core does not need: who, why, and the label behind a loss."""

    sequence: int
    event: Event
    detail: dict[str, Any] | None = None


@dataclass(slots=True)
class Journal:
    """A locked session: its state, its leases, and what this transaction appends to it."""

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
        """Apply an event to the state and have it written."""
        self.slot.ahead = True
        self.warm.state = apply(self.plan, self.state, event)
        entry = Entry(self.state.sequence, event, detail)
        self.entries.append(entry)
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
            session_id=self.session_id,
            pool_id=self.pool_id,
            lifecycle=self.lifecycle,
            revision=self.revision,
            lease_seconds=self.lease_seconds,
            forecast=self.forecast,
            created_at=self.created_at,
        )
        return status_document(known, self.plan, self.state)


_LOCK = text(
    """
    SELECT pool_id, sequence, revision, lifecycle, lease_seconds, forecast, created_at
    FROM sessions WHERE session_id = :session_id FOR UPDATE
    """
)
_PEEK = text("SELECT pool_id, plan, seed FROM sessions WHERE session_id = :session_id")
_LOOK = text(
    """
    SELECT 0 AS kind, clock_timestamp() AS at, NULL::int AS sequence, NULL::int AS round,
           NULL::int AS item, NULL::float8 AS q, NULL::bytea AS strata_q, NULL::int AS seen,
           NULL::float8 AS loss, NULL::jsonb AS detail, NULL::text AS worker
    UNION ALL
    SELECT -1, expires_at, NULL, round, NULL, NULL, NULL, NULL, NULL, NULL, worker
    FROM leases WHERE session_id = :session_id
    UNION ALL
    SELECT kind, at, sequence, round, item, q, strata_q, seen, loss, detail, NULL
    FROM events WHERE session_id = :session_id AND sequence > :after
    ORDER BY 3
    """
)
_EVENTS = text(
    """
    SELECT kind, sequence, round, item, q, strata_q, seen, loss, detail
    FROM events WHERE session_id = :session_id AND sequence > :after ORDER BY sequence
    """
)
_APPEND = text(
    """
    WITH appended AS (
        INSERT INTO events
            (session_id, sequence, kind, round, item, q, strata_q, seen, loss, detail)
        SELECT :session_id, * FROM unnest(
            CAST(:sequences AS int[]), CAST(:kinds AS smallint[]), CAST(:rounds AS int[]),
            CAST(:items AS int[]), CAST(:qs AS float8[]), CAST(:strata_qs AS bytea[]),
            CAST(:seens AS int[]), CAST(:losses AS float8[]), CAST(:details AS jsonb[]))
    ), folded AS (
        INSERT INTO trajectory
            (session_id, revision, round, sequence, estimate, lower, upper)
        SELECT :session_id, :revision, point.round, :sequence,
               point.estimate, point.lower, point.upper
        FROM unnest(CAST(:point_rounds AS int[]), CAST(:estimates AS float8[]),
                    CAST(:lowers AS float8[]), CAST(:uppers AS float8[]))
             AS point(round, estimate, lower, upper)
    ), outdated AS (
        DELETE FROM trajectory WHERE session_id = :session_id AND revision < :revision
    ), returned AS (
        DELETE FROM leases WHERE session_id = :session_id AND round = ANY(CAST(:judged AS int[]))
    ), granted AS (
        INSERT INTO leases (session_id, round, worker, expires_at)
        SELECT :session_id, * FROM unnest(
            CAST(:lease_rounds AS int[]), CAST(:workers AS text[]),
            CAST(:expiries AS timestamptz[]))
        ON CONFLICT (session_id, round)
        DO UPDATE SET worker = excluded.worker, expires_at = excluded.expires_at
    ), kept AS (
        UPDATE sessions SET sequence = :sequence, revision = :revision, lifecycle = :lifecycle,
            state = :state, precision = :precision, budget = :budget, drawn = :drawn,
            status = CAST(:status AS jsonb), updated_at = :now
        WHERE session_id = :session_id
    )
    SELECT index, id, payload FROM items
    WHERE pool_id = :pool_id AND index = ANY(CAST(:wanted AS int[]))
    """
)


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
) -> dict[int, RowMapping]:
    """Append what the operation did, ``status`` being the document after it.

    Returns the wanted items by index (id and payload).
    """
    state = journal.state
    points = state.points[journal.folded_before :]
    rows = await db.execute(
        _APPEND,
        {
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
            "status": orjson.dumps(status).decode(),
            "point_rounds": [point.round for point in points],
            "estimates": [point.estimate for point in points],
            "lowers": [point.interval.lower for point in points],
            "uppers": [point.interval.upper for point in points],
            "judged": journal.judged,
            "lease_rounds": [lease.round for lease in journal.leased],
            "workers": [lease.worker for lease in journal.leased],
            "expiries": [lease.expires_at for lease in journal.leased],
            "wanted": journal.wanted,
            **_columns(journal.entries),
        },
    )
    return {row["index"]: row for row in rows.mappings()}


def _columns(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    def each(name: str) -> list[Any]:
        return [getattr(entry.event, name, None) for entry in entries]

    return {
        "sequences": [entry.sequence for entry in entries],
        "kinds": [KINDS[type(entry.event)] for entry in entries],
        "rounds": each("round"),
        "items": each("item"),
        "qs": each("q"),
        "strata_qs": [None if q is None else q.tobytes() for q in each("strata_q")],
        "seens": each("seen"),
        "losses": each("loss"),
        "details": [
            None if entry.detail is None else orjson.dumps(entry.detail).decode()
            for entry in entries
        ],
    }


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
            return Change(row["detail"]["precision"], row["detail"]["budget"])


async def _rebuild(rooms: Rooms, session_id: UUID) -> Warm:
    """Plan, pool and ledger as they are now, folded in a thread: long work, no lock held."""
    async with rooms.transaction() as db:
        row = await _one(db, _PEEK, session_id)
        events = await _events(db, session_id, after=0)
        pool = rooms.hot.pool(row["pool_id"])
        if pool is None:
            pool = await load_pool(db, row["pool_id"])
            rooms.hot.keep_pool(row["pool_id"], pool)
    plan = plan_from(row["plan"])
    loaded = pool

    def fold() -> State:
        state = begin(plan, scores(loaded, plan.strategy), bytes(row["seed"]))
        return replay(plan, state, events)

    return Warm(plan, loaded, await asyncio.to_thread(fold))


async def _lock(rooms: Rooms, db: AsyncConnection, session_id: UUID, slot: Slot) -> Journal:
    row = await _one(db, _LOCK, session_id)
    warm = slot.warm
    if warm is None or warm.state.sequence > row["sequence"]:
        # The slot ran ahead of a database restored to an earlier moment: only the ledger counts.
        warm = slot.warm = await _rebuild(rooms, session_id)
    looked = (
        await db.execute(_LOOK, {"session_id": session_id, "after": warm.state.sequence})
    ).mappings()
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
    )


async def _inline_or_thread(size: int, work: Callable[[], object]) -> None:
    """A long fold would hold up every other request of the process; a short one is cheaper here."""
    if size > ROUNDS_FOLDED_INLINE:
        await asyncio.to_thread(work)
    elif size:
        work()


async def _one(db: AsyncConnection, statement: TextClause, session_id: UUID) -> RowMapping:
    row = (await db.execute(statement, {"session_id": session_id})).mappings().one_or_none()
    if row is None:
        raise SessionNotFound(
            f"no session ses_{session_id.hex}", field="session_id", value=f"ses_{session_id.hex}"
        )
    return row


async def _events(db: AsyncConnection, session_id: UUID, after: int) -> list[Event]:
    rows = await db.execute(_EVENTS, {"session_id": session_id, "after": after})
    return [event_from(row) for row in rows.mappings()]
