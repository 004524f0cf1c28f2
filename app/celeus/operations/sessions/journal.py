"""One session's ledger: lock it, catch up with it, append to it.

Every writing operation on a session goes through ``locked``: it holds the session's slot, loads
its state outside the transaction, locks the row, folds what other processes wrote meanwhile, and
appends everything the operation did in one statement. Round trips to PostgreSQL: begin, lock and
look together, append, commit. These statements go past SQLAlchemy, straight to the driver: it can
send two at once, and an observation is mostly the price of sending statements.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import KINDS, chain_head, chain_next
from celeus.core.insights.status import session_state
from celeus.core.ledger import (
    Amendment,
    Event,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)
from celeus.core.session.correction import Checkpoints, FoldAhead, Refold, advance, catch_up
from celeus.core.session.panel import Ratings
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession, begin_session, plan_from_values
from celeus.errors import Busy, Refusal, SessionArchived, SessionClosed
from celeus.operations.pools.pools import load_pool
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.runtime.session_record import SessionRecord, status_document
from celeus.operations.runtime.state_cache import CachedSession, CacheSlot
from celeus.operations.sessions.blinding import RoundNumbers
from celeus.operations.sessions.event_rows import Entry, event_from, record_from
from celeus.operations.sessions.ledger import (
    Holder,
    Lease,
    events_of,
    locked_rows,
    opening_row,
    rows_since,
)
from celeus.operations.webhooks.outbox import ReportedState
from celeus.timings import DONE, FOLDED, timed

T = TypeVar("T")
R = TypeVar("R", bound=Refusal)

ROUNDS_FOLDED_INLINE = 20
BETS_INLINE = 100_000
"""Rounds folded where every other request of the process waits for them, and the bets of them all,
which take about 5 ms; more take a thread."""
ROUNDS_FOLDED_LOCKED = 2_000
"""Events read and folded while the session is locked; of more, a part at a time before it is."""
BETS_LOCKED = 10_000_000
"""Bets folded while the session is locked, about half a second: tables place thousands a round."""
ATTEMPTS = 3
MOST_PASSED = 16
"""Most holders remembered as having passed a draw on; earlier ones may get it again."""
BESIDE = "beside"
"""Member of a judgement's detail: key and worker of the others that held its draw, as JSON."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The judgement's place in the ledger; ``replayed`` if it was there before.

    ``duplicate`` if another judge's was there before, which counts instead.
    """

    round: int
    sequence: int
    replayed: bool
    duplicate: bool = False


@dataclass(slots=True)
class Journal:
    """A locked session: its state, its leases, and what this transaction appends to it.

    Several callers may append in turn (`take_over`). The present one has ``key_id`` and ``blind``,
    ``labelled`` are the rounds that it gave a label for (of a panel each of its raters),
    ``item_indices`` the items that it is to be sent, ``turns`` those of draws handed out to it
    where the same is asked again, and ``wait`` the seconds until it may ask again, where it gets
    none until the oldest draw is judged. ``reported`` is what webhooks know of it, ``judged`` are
    the rounds that all of them judged, ``wanted`` the items of each of those before, and
    ``tallies`` their labels by key. Events are appended ``at`` the time ``now``, or at the time of
    the ledger's last event where the database's clock was set back since.
    """

    project_id: UUID
    key_id: str | None
    blind: bool
    session_id: UUID
    pool_id: UUID
    slot: CacheSlot
    session: CachedSession
    record: SessionRecord
    lifecycle: str
    revision: int
    now: datetime
    at: datetime
    leases: dict[int, Lease]
    folded_before: int
    head: bytes
    seconds_per_label: float | None
    reported: ReportedState = field(default_factory=ReportedState)
    contradictions: Sequence[Mapping[str, Any]] = ()
    entries: list[Entry] = field(default_factory=list)
    new_leases: list[Lease] = field(default_factory=list)
    judged: list[int] = field(default_factory=list)
    labelled: list[int] = field(default_factory=list)
    turns: dict[int, int] = field(default_factory=dict)
    wait: float | None = None
    item_indices: list[int] = field(default_factory=list)
    wanted: list[list[int]] = field(default_factory=list)
    tallies: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def ratings(self) -> Ratings | None:
        """The ratings of the session's panel; None if it has no panel."""
        return self.state.question.ratings

    @property
    def plan(self) -> AnyPlan:
        """The frozen choices of the session."""
        return self.session.plan

    @property
    def state(self) -> AnySession:
        """The session after the last event, appended ones included."""
        return self.session.state

    def append(
        self,
        event: Event,
        detail: dict[str, Any] | None = None,
        ready: Refold | FoldAhead | None = None,
    ) -> Entry:
        """Apply an event to the state and queue it for writing, with the caller's key.

        ``ready`` spares a correction its fold, or judgements theirs.
        """
        if self.key_id is not None:
            detail = (detail or {}) | {"key": self.key_id}
        if isinstance(event, Observation | JointObservation | Unjudgeable):
            detail = self._beside(event.round, detail)
        self.slot.ahead = True
        self._tally(event)
        if isinstance(event, Amendment) and self.state.refolds(event):
            self.folded_before = min(self.folded_before, event.round - 1)
        advance(self.state, event, self.session.checkpoints, ready)
        entry = Entry(self.state.sequence, event, self.at, detail)
        self.entries.append(entry)
        self.head = self.session.head = chain_next(self.head, entry.record)
        if isinstance(event, Amendment):
            self.revision += 1
        if isinstance(event, Observation | JointObservation | Unjudgeable):
            self.judged.append(event.round)
            self.leases.pop(event.round, None)
        return entry

    def _beside(self, round_: int, detail: dict[str, Any] | None) -> dict[str, Any] | None:
        """The detail of a judgement, with the other holders of its round, who are notified.

        A blind key is one person's, whatever they call their windows.
        """
        lease, judge = self.leases.get(round_), (self.key, (detail or {}).get("worker"))
        holders = [] if lease is None else lease.holders(self.now)
        same = self.key if self.blind else None
        others = [holder for holder in holders if holder != judge and holder[0] != same]
        if not others:
            return detail
        return (detail or {}) | {BESIDE: canonical_json(others).decode()}

    def _tally(self, event: Event) -> None:
        """Note a label, before it is applied: a correction is none."""
        ratings = self.state.question.ratings
        if isinstance(event, Rating):
            first = ratings is not None and not ratings.has_rated(
                event.round, event.rater, event.turn
            )
            if first:
                self.labelled.append(event.round)
        elif ratings is None and isinstance(event, Observation | JointObservation | Unjudgeable):
            self.labelled.append(event.round)

    def take_over(self, context: Context) -> None:
        """Let another caller append; what the one before did is kept for writing."""
        self.settle()
        self.key_id, self.blind = context.key_id, context.blind
        self.turns, self.wait = {}, None

    def settle(self) -> None:
        """Keep for writing what the present caller did."""
        if self.item_indices:
            self.wanted.append(self.item_indices)
        if self.labelled and self.key_id is not None:
            before, _ = self.tallies.get(self.key_id, (0, 0))
            self.tallies[self.key_id] = (before + len(self.labelled), self.labelled[-1])
        self.item_indices, self.labelled = [], []

    async def step(self, rounds: int, append: Callable[[], T]) -> T:
        """Call ``append``, whose events draw or fold ``rounds`` rounds, and return what it returns.

        Many rounds are folded in a thread, which continues even if this task is cancelled.
        """
        with timed("fold"):
            if is_short(self.state, rounds):
                return append()
            self.slot.ahead = True
            return await in_thread(append)

    @property
    def key(self) -> str:
        """The caller's key as leases name it."""
        return self.key_id or ""

    def lease(self, round_: int, worker: str, seconds: int | None = None) -> Lease:
        """Lease the draw of ``round_`` to ``worker`` of the caller's key from now on.

        For ``seconds``, but no longer than the session's leases. Who else holds it still does.
        """
        keys: list[str] = []
        since, passed, beside, runs = self.now, [], None, 0
        if round_ in self.leases:
            before = self.leases[round_]
            keys, passed, runs = before.keys, before.passed, before.runs
            if (self.key, worker) in before.ends:
                since = before.since
            for holder in before.holders(self.now):
                if holder != (self.key, worker):
                    beside = (*holder, before.ends[holder].isoformat())
        most = self.record.lease_seconds
        until = self.now + timedelta(seconds=most if seconds is None else min(seconds, most))
        keys = [key for key in keys if key != self.key] + [self.key]
        lease = Lease(round_, worker, until, since, keys, passed, beside, runs)
        self.leases[round_] = lease
        self.new_leases.append(lease)
        return lease

    def release(self, round_: int, holders: Collection[Holder], *, passed: bool = False) -> None:
        """End the leases of ``holders`` on ``round_`` now; who ``passed`` it on is remembered."""
        lease = self.leases[round_]
        by = lease.passed
        if passed:
            kept = [holder for holder in by if tuple(holder) not in holders]
            by = [*kept, *([*holder] for holder in holders)][-MOST_PASSED:]
        ended = replace(lease, passed=by)
        if lease.holder in holders:
            ended.expires_at = self.now
        if lease.beside is not None and lease.beside[:2] in holders:
            ended.beside = (*lease.beside[:2], self.now.isoformat())
        self.leases[round_] = ended
        self.new_leases.append(ended)

    def shown(self, round_: int) -> int:
        """The number of a round as the caller knows it."""
        return RoundNumbers(self.session.seed).shown(round_) if self.blind else round_

    def refusal(self, kind: type[R], round_: int, fault: str, rule: str) -> R:
        """Return a refusal of a round for its ``fault``, under the number that the caller knows."""
        number = self.shown(round_)
        return kind(f"round {number} {fault}", field="round", rule=rule, value=number)

    def round_of(self, shown: int) -> int:
        """The round that the caller knows by this number."""
        return RoundNumbers(self.session.seed).round_of(shown) if self.blind else shown

    def tally(self) -> None:
        """Count for the process what is now committed."""
        for entry in self.entries:
            DONE[KINDS[type(entry.event)]] += 1
        DONE[FOLDED] += self.state.folded - self.folded_before

    @property
    def standing_leases(self) -> list[Lease]:
        """The last new lease of each round that is still unjudged."""
        rounds = dict.fromkeys(lease.round for lease in self.new_leases)
        return [self.leases[round_] for round_ in rounds if round_ in self.leases]

    @property
    def changed(self) -> bool:
        """Return whether there is something to write."""
        return bool(self.entries or self.new_leases)

    def status(self) -> dict[str, Any]:
        """The status document as of now."""
        record = replace(
            self.record,
            lifecycle=self.lifecycle,
            revision=self.revision,
            ledger_head=self.head,
            contradictions=self.contradictions,
            active_at=minute(self.now) if self.entries else self.record.active_at,
            seconds_per_label=self.seconds_per_label,
        )
        return status_document(record, self.state, self.session.pool)


def minute(time: datetime) -> datetime:
    """The minute of a time."""
    return time.replace(second=0, microsecond=0)


def must_be_open(journal: Journal) -> None:
    """Refuse a session that is closed."""
    if journal.lifecycle == "closed":
        raise SessionClosed(
            "the session is closed for good",
            field="session_id",
            rule="an open session",
            value=f"ses_{journal.session_id.hex}",
        )


def must_take_labels(journal: Journal) -> None:
    """Refuse a session that is closed or archived."""
    must_be_open(journal)
    must_not_be_archived(journal)


def hands_out(journal: Journal, count: int) -> bool:
    """Return True if the session leases draws: new ones only while it is active.

    With a ``count`` of 0 a holder renews the draws it has, until the session is closed.
    """
    state = session_state(journal.lifecycle, journal.state.stop_reason)
    held = not count and state != "closed"
    return not journal.record.archived and (state == "active" or held)


def must_not_be_archived(journal: Journal) -> None:
    """Refuse a session that is archived."""
    if journal.record.archived:
        raise SessionArchived(
            "The session is archived: it takes no draws and no labels.",
            field="session_id",
            rule="a session that is not archived; PATCH it with `archived: false`",
            value=f"ses_{journal.session_id.hex}",
        )


def is_short(state: AnySession, rounds: int) -> bool:
    """Return whether so many rounds may be folded where every other request waits for them."""
    return rounds <= ROUNDS_FOLDED_INLINE and rounds * state.bets_per_round <= BETS_INLINE


def is_replay(state: AnySession, judged: Collection[int], rounds: int) -> bool:
    """Return whether judging these rounds probably folds more rounds than a lock may wait for.

    It folds ``rounds`` of them for certain.
    """
    return rounds > ROUNDS_FOLDED_LOCKED and state.replays_soon(judged)


@asynccontextmanager
async def locked(
    context: Context, session_id: UUID
) -> AsyncIterator[tuple[Journal, AsyncConnection]]:
    """The session's journal under its row lock; committed when the block ends without an error."""
    async with context.states.hold(session_id) as slot:
        attempts, journal = 0, None
        while attempts < ATTEMPTS:
            slot.session = slot.session or await rebuild(context, session_id)
            after = slot.session.state.sequence
            async with context.transaction() as db:
                with timed("lock"):
                    row, rows = await locked_rows(
                        db, context.project_id, session_id, after, ROUNDS_FOLDED_LOCKED
                    )
                news = await _news(slot.session, row, rows)
                if news is not None and not news.more and not _long(slot.session, news):
                    await _catch_up(slot, news)
                    journal = _journal(context, session_id, slot, row, rows)
                    yield journal, db
            if journal is not None:
                journal.tally()
                return
            attempts += await _advance(slot, news)
        raise Busy("the session's ledger changed during the request; try again")


@asynccontextmanager
async def unlocked(
    context: Context, session_id: UUID
) -> AsyncIterator[tuple[CachedSession, dict[str, Any]]]:
    """The session's state as its ledger is now, and its row, for who only reads: no row lock.

    Within the process nobody else has the state meanwhile; others may write to the ledger.
    """
    async with context.states.hold(session_id) as slot:
        attempts = 0
        while attempts < ATTEMPTS:
            slot.session = slot.session or await rebuild(context, session_id)
            async with context.transaction() as db:
                await one_snapshot(db)
                after = slot.session.state.sequence
                row, rows = await rows_since(
                    db, context.project_id, session_id, after, ROUNDS_FOLDED_LOCKED
                )
            news = await _news(slot.session, row, rows)
            if news is not None and not news.more:
                await _catch_up(slot, news)
                yield slot.session, row
                return
            attempts += await _advance(slot, news)
        raise Busy("the session's ledger changed during the request; try again")


async def rebuild(context: Context, session_id: UUID) -> CachedSession:
    """Rebuild a session from plan, pool and ledger in a thread; holds no lock."""
    async with context.transaction() as db:
        await one_snapshot(db)
        row = await opening_row(db, context.project_id, session_id)
        events = await events_of(db, session_id)
        pool = context.states.pool(context.project_id, row["pool_id"])
        if pool is None:
            pool = await load_pool(db, context.project_id, row["pool_id"])
            context.states.keep_pool(context.project_id, row["pool_id"], pool)
    plan = plan_from_values(row["plan"])
    whole_pool = pool

    checkpoints = Checkpoints()

    def fold() -> AnySession:
        state = begin_session(plan, whole_pool, bytes(row["seed"]))
        return catch_up(state, events, checkpoints)

    with timed("fold"):
        state = await in_thread(fold)
    return CachedSession(plan, whole_pool, state, bytes(row["seed"]), checkpoints=checkpoints)


def _journal(
    context: Context,
    session_id: UUID,
    slot: CacheSlot,
    row: dict[str, Any],
    rows: list[dict[str, Any]],
) -> Journal:
    """The journal of a locked session whose state has every event of the ledger."""
    session = slot.session
    if session is None:
        message = "a journal needs a state"
        raise ValueError(message)
    record = SessionRecord.of(row)
    now = last = record.created_at
    leases: dict[int, Lease] = {}
    for event in rows:
        if event["kind"] == 0:
            now = event["at"]
        elif event["kind"] == -2:
            last = event["at"]
        elif event["kind"] == -1:
            since, keys, passed, beside, runs = event["detail"]
            leases[event["round"]] = Lease(
                event["round"],
                event["worker"],
                event["at"],
                datetime.fromisoformat(since),
                keys,
                passed,
                beside and (*beside,),
                runs,
            )
    return Journal(
        project_id=context.project_id,
        key_id=context.key_id,
        blind=context.blind,
        session_id=session_id,
        pool_id=record.pool_id,
        slot=slot,
        session=session,
        record=record,
        lifecycle=record.lifecycle,
        revision=record.revision,
        now=now,
        at=max(now, last),
        leases=leases,
        folded_before=session.state.folded,
        head=record.ledger_head,
        seconds_per_label=record.seconds_per_label,
        reported=ReportedState.of(record.lifecycle, session.state),
        contradictions=record.contradictions,
    )


@dataclass(frozen=True, slots=True)
class _LaterEvents:
    """Events of other processes up to the chain's ``head``; ``more`` if there are later ones."""

    missed: list[Event]
    head: bytes | None
    more: bool


async def _news(
    session: CachedSession, row: dict[str, Any], rows: list[dict[str, Any]]
) -> _LaterEvents | None:
    """Return the events after the state's last one; None if the ledger does not continue the state.

    After a restore it may be shorter, or have grown again with other events than those.
    """
    news = [event for event in rows if event["kind"] > 0]
    more = session.state.sequence + len(news) < row["sequence"]
    if session.state.sequence > row["sequence"]:
        return None
    missed = [event_from(event) for event in news]
    if session.head is None:
        return _LaterEvents(missed, None if more else row["ledger_head"], more)
    if len(news) > ROUNDS_FOLDED_INLINE:
        head = await in_thread(chain_head, session.head, map(record_from, news))
    else:
        head = chain_head(session.head, map(record_from, news))
    return _LaterEvents(missed, head, more) if more or head == row["ledger_head"] else None


def _long(session: CachedSession, news: _LaterEvents) -> bool:
    """Return whether folding the news takes longer than others may wait for the row."""
    if not news.missed:
        return False
    judged = {
        event.round
        for event in news.missed
        if isinstance(event, Observation | JointObservation | Unjudgeable)
    }
    bets = len(judged) * session.state.bets_per_round
    many = len(judged) > ROUNDS_FOLDED_INLINE and bets > BETS_LOCKED
    return many or is_replay(session.state, judged, session.state.rounds_to_fold(judged))


async def _advance(slot: CacheSlot, news: _LaterEvents | None) -> int:
    """Catch up with a part of many events; forget a state that its ledger no longer continues.

    How many attempts that was: a part is none, since there are only so many.
    """
    if news is None:
        # The database was restored to an earlier moment: only the ledger counts.
        slot.session = None
        return 1
    await _catch_up(slot, news)
    # Nothing where there should be more: the ledger has a gap
    return 0 if news.missed else 1


async def _catch_up(slot: CacheSlot, news: _LaterEvents) -> None:
    """Fold what other processes wrote.

    A long fold would hold up every other request of the process; a short one is cheaper here.
    """
    session = slot.session
    if session is None:
        return
    session.head, missed = news.head, news.missed
    if not missed:
        return
    slot.ahead = True
    state, checkpoints = session.state, session.checkpoints
    correction = any(isinstance(event, Amendment) for event in missed)
    with timed("fold"):
        if is_short(state, len(missed)) and not correction:
            catch_up(state, missed, checkpoints)
        else:
            await in_thread(lambda: catch_up(state, missed, checkpoints))
    slot.ahead = False
