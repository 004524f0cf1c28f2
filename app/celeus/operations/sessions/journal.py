"""One session's ledger: lock it, catch up with it, append to it.

Every writing operation on a session goes through ``locked``: it holds the session's slot, warms
its state outside the transaction, locks the row, folds what other processes wrote meanwhile, and
appends everything the operation did in one statement. Round trips to PostgreSQL: begin, lock and
look together, append, commit. These statements go past SQLAlchemy, straight to the driver: it can
send two at once, and an observation is mostly the price of sending statements.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.chain import chain_head, chain_next
from app.core.correcting import Refold, corrected
from app.core.ledger import Amendment, Event, Observation, Unjudgeable
from app.core.plan import Plan, plan_from
from app.core.session import State, apply, begin, replay
from app.core.surrogates import scores
from app.errors import Busy
from app.operations.hot import Slot, Warm
from app.operations.ledger import (
    Entry,
    Lease,
    event_from,
    events_of,
    locked_rows,
    opening_row,
    record_from,
)
from app.operations.pools import load_pool
from app.operations.rooms import Rooms
from app.operations.status import Known, status_document

ROUNDS_FOLDED_INLINE = 200
ROUNDS_FOLDED_LOCKED = 2_000
"""Events folded while the session is locked; of more, only those that come meanwhile."""
ATTEMPTS = 3


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
    name: str | None
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

    def append(
        self, event: Event, detail: dict[str, Any] | None = None, ready: Refold | None = None
    ) -> Entry:
        """Apply an event to the state and have it written, with the key it came by.

        ``ready`` spares a correction its fold.
        """
        if self.key_id is not None:
            detail = (detail or {}) | {"key": self.key_id}
        self.slot.ahead = True
        if isinstance(event, Amendment):
            self.warm.state = corrected(self.plan, self.state, event, ready)
        else:
            self.warm.state = apply(self.plan, self.state, event)
        entry = Entry(self.state.sequence, event, self.now, detail)
        self.entries.append(entry)
        if self.head is not None:
            self.head = self.warm.head = chain_next(self.head, entry.record)
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
            name=self.name,
        )
        return status_document(known, self.plan, self.state)


@asynccontextmanager
async def locked(rooms: Rooms, session_id: UUID) -> AsyncIterator[tuple[Journal, AsyncConnection]]:
    """The session's journal under its row lock; committed when the block ends without an error."""
    async with rooms.hot.hold(session_id) as slot:
        for attempt in range(ATTEMPTS):
            slot.warm = slot.warm or await rebuild(rooms, session_id)
            async with rooms.transaction() as db:
                row, looked = await locked_rows(
                    db, rooms.project_id, session_id, slot.warm.state.sequence
                )
                news = [seen for seen in looked if seen["kind"] > 0]
                missed = [event_from(seen) for seen in news]
                restored = not await _continued(slot.warm, news, row)
                long = len(missed) > ROUNDS_FOLDED_LOCKED and attempt < ATTEMPTS - 1
                if not restored and not long:
                    await _catch_up(slot, missed, row["ledger_head"])
                    yield _journal(rooms, session_id, slot, row, looked), db
                    return
            if restored:
                # The database was restored to an earlier moment: only the ledger counts.
                slot.warm = None
            else:
                await _catch_up(slot, missed, row["ledger_head"])
        raise Busy("the session's ledger is not what it was a moment ago; try again")


async def rebuild(rooms: Rooms, session_id: UUID) -> Warm:
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


def _journal(
    rooms: Rooms,
    session_id: UUID,
    slot: Slot,
    row: dict[str, Any],
    looked: list[dict[str, Any]],
) -> Journal:
    """The journal of a locked session whose state has every event of the ledger."""
    warm = slot.warm
    if warm is None:
        message = "a journal needs a state"
        raise ValueError(message)
    now = row["created_at"]
    leases: dict[int, Lease] = {}
    for seen in looked:
        if seen["kind"] == 0:
            now = seen["at"]
        elif seen["kind"] == -1:
            leases[seen["round"]] = Lease(seen["round"], seen["worker"], seen["at"])
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
        folded_before=warm.state.folded,
        head=row["ledger_head"],
        name=row["name"],
    )


async def _continued(warm: Warm, news: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    """Whether the ledger still begins with the events the state was folded from.

    After a restore it may be shorter, or have grown again with other events than those.
    """
    if warm.state.sequence > row["sequence"]:
        return False
    if warm.head is None or row["ledger_head"] is None:
        return True
    if len(news) > ROUNDS_FOLDED_INLINE:
        head = await asyncio.to_thread(chain_head, warm.head, map(record_from, news))
    else:
        head = chain_head(warm.head, map(record_from, news))
    return bool(head == row["ledger_head"])


async def _catch_up(slot: Slot, missed: list[Event], head: bytes | None) -> None:
    """Fold what other processes wrote, up to the chain's ``head``.

    A long fold would hold up every other request of the process; a short one is cheaper here.
    """
    warm = slot.warm
    if warm is None:
        return
    warm.head = head
    if not missed:
        return
    slot.ahead = True
    if len(missed) > ROUNDS_FOLDED_INLINE:
        await asyncio.to_thread(replay, warm.plan, warm.state, missed)
    else:
        replay(warm.plan, warm.state, missed)
    slot.ahead = False
