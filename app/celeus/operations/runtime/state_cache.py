"""Cache of session states and pools, so that a request folds only new events.

A state belongs to the one who holds its slot. The slot's lock serialises a session's writers
within the process before they take a database connection; the row lock serialises processes.
Whatever happens to a transaction that did not provably commit, its state is dropped: the ledger
is the truth and the next holder rebuilds from it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakValueDictionary

from celeus.core.pools.pool import Pool
from celeus.core.session.correction import Checkpoints, FoldAhead, mean_session
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession
from celeus.errors import Busy
from celeus.operations.runtime.memory_limits import nbytes
from celeus.timings import timed

EVENTS_BETWEEN_COUNTS = 64
BYTES_OF_A_BET = 8
"""Its stake; what else there is of a candidate is counted with the rest."""


@dataclass(slots=True)
class CachedSession:
    """A session as of ``state.sequence``: plan, pool, state, seed, and the head of its hash chain.

    ``head`` is that of the ledger's chain then; None until the ledger has been seen under its lock.
    ``checkpoints`` are those of the state's fold; ``beside`` is a fold that may take its place, and
    who makes it.
    """

    plan: AnyPlan
    pool: Pool
    state: AnySession
    seed: bytes = field(repr=False)
    head: bytes | None = None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    beside: tuple[FoldAhead, asyncio.Task[None]] | None = field(default=None, repr=False)
    _bytes: int = 0
    _copies: dict[int, int] = field(default_factory=dict, repr=False)
    _counted_at: int = -EVENTS_BETWEEN_COUNTS

    @property
    def nbytes(self) -> int:
        """Bytes of state and checkpoints, recounted every EVENTS_BETWEEN_COUNTS events.

        A change of precision may make a state a hundred times larger at once: its bets are known.
        """
        if self.state.sequence - self._counted_at >= EVENTS_BETWEEN_COUNTS:
            self._bytes = nbytes(self.state) + self._bytes_of_copies()
            self._counted_at = self.state.sequence
        return max(self._bytes, BYTES_OF_A_BET * self.state.bets_per_round)

    def _bytes_of_copies(self) -> int:
        """Bytes of the checkpoints, of which no more than one is counted at a time.

        To count all of them takes longer than the loop may be held: they never change, and those
        not counted yet are taken for as large as the largest.
        """
        copies = {id(fold): fold for _, fold in self.checkpoints.copies}
        self._copies = {name: size for name, size in self._copies.items() if name in copies}
        new = next((name for name in reversed(copies) if name not in self._copies), None)
        if new is not None:
            mean = mean_session(self.state)
            engine = None if mean is None else mean.question.engine
            self._copies[new] = nbytes(copies[new], engine)
        largest = max(self._copies.values(), default=0)
        return sum(self._copies.values()) + (len(copies) - len(self._copies)) * largest


@dataclass(slots=True)
class CacheSlot:
    """The cache slot of one session; ``session`` is None when its state must be rebuilt.

    ``ahead`` from the moment the state holds, or is about to hold, what is not known to be
    committed, until it is. ``size`` are the bytes of the session that was ``counted``, at the
    precision and sequence it had then.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: CachedSession | None = None
    ahead: bool = False
    holders: int = 0
    size: int = 0
    counted: tuple[CachedSession, float | None, int] | None = None


class StateCache:
    """LRU cache of session states and pools, bounded by number and bytes.

    ``state_bytes`` bounds the arrays of the states kept, ``pool_bytes`` those of the pools, both
    but for the one used last.
    """

    def __init__(
        self,
        sessions: int,
        pools: int,
        *,
        state_bytes: int = 1 << 30,
        pool_bytes: int = 2 << 30,
        patience_seconds: float = 5.0,
    ) -> None:
        self._patience = patience_seconds
        self._sessions = sessions
        self._most_state_bytes = state_bytes
        self._slots: OrderedDict[UUID, CacheSlot] = OrderedDict()
        self._turns: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._state_bytes = 0
        self._most_pools = pools
        self._most_pool_bytes = pool_bytes
        self._pool_bytes = 0
        self._pools: OrderedDict[tuple[UUID, UUID], Pool] = OrderedDict()

    @asynccontextmanager
    async def hold(self, session_id: UUID) -> AsyncIterator[CacheSlot]:
        """Hold the session's slot exclusively in this process; refuses after waiting too long.

        Left by an error while the state is ahead of the ledger, the state is forgotten; a refusal
        that came before anything was appended costs nothing.
        """
        slot = self._slots.setdefault(session_id, CacheSlot())
        self._slots.move_to_end(session_id)
        slot.holders += 1
        try:
            await self._acquire(slot.lock)
            try:
                yield slot
            except BaseException:
                if slot.ahead:
                    slot.session = None
                raise
            finally:
                slot.ahead = False
                slot.lock.release()
        finally:
            slot.holders -= 1
            self._count(slot)
            if slot.session is None and slot.holders == 0:
                # An unknown session, or one to be rebuilt anyway, must not evict a cached one.
                self._slots.pop(session_id, None)
            self._evict()

    @asynccontextmanager
    async def turn(self, session_id: UUID) -> AsyncIterator[None]:
        """One correction of a session at a time; labels continue meanwhile."""
        lock = self._turns.setdefault(session_id, asyncio.Lock())
        await self._acquire(lock)
        try:
            yield
        finally:
            lock.release()

    def pool(self, project_id: UUID, pool_id: UUID) -> Pool | None:
        """The cached pool of this project, or None."""
        pool = self._pools.get((project_id, pool_id))
        if pool is not None:
            self._pools.move_to_end((project_id, pool_id))
        return pool

    def keep_pool(self, project_id: UUID, pool_id: UUID, pool: Pool) -> None:
        """Cache a sealed pool for the next session on it."""
        previous = self._pools.pop((project_id, pool_id), None)
        self._pools[project_id, pool_id] = pool
        self._pool_bytes += _bytes(pool) - (0 if previous is None else _bytes(previous))
        while len(self._pools) > self._most_pools or (
            self._pool_bytes > self._most_pool_bytes and len(self._pools) > 1
        ):
            _, evicted = self._pools.popitem(last=False)
            self._pool_bytes -= _bytes(evicted)

    def forget_pool(self, project_id: UUID, pool_id: UUID) -> None:
        """Drop a pool that is deleted; other processes drop theirs when it is not used."""
        pool = self._pools.pop((project_id, pool_id), None)
        if pool is not None:
            self._pool_bytes -= _bytes(pool)

    def __len__(self) -> int:
        return sum(slot.session is not None for slot in self._slots.values())

    @property
    def waiting(self) -> int:
        """Requests waiting for a session that another request of this process holds."""
        return sum(slot.holders - 1 for slot in self._slots.values() if slot.holders)

    async def _acquire(self, lock: asyncio.Lock) -> None:
        try:
            with timed("lock"):
                async with asyncio.timeout(self._patience):
                    await lock.acquire()
        except TimeoutError as error:
            raise Busy("other requests to this session have not ended yet; try again") from error

    def _count(self, slot: CacheSlot) -> None:
        """Update the running total to the slot's size, counted when it has grown by an eighth.

        To count a table of claims looks at all of its objects, and every other request waits.
        """
        session, size = slot.session, 0
        if session is not None:
            precision, sequence = session.state.stopping.precision, session.state.sequence
            known, wanted, counted_at = slot.counted or (None, None, 0)
            same = known is session and wanted == precision
            if same and counted_at <= sequence <= counted_at + counted_at // 8:
                return
            slot.counted, size = (session, precision, sequence), session.nbytes
        else:
            slot.counted = None
        self._state_bytes += size - slot.size
        slot.size = size

    def _evict(self) -> None:
        """Evict least recently used slots, never one that is held or waited for."""
        if not self._crowded():
            return
        for key in list(self._slots):
            if self._slots[key].holders == 0:
                self._state_bytes -= self._slots.pop(key).size
                if not self._crowded():
                    return

    def _crowded(self) -> bool:
        full = self._state_bytes > self._most_state_bytes and len(self._slots) > 1
        return full or len(self._slots) > self._sessions


def _bytes(pool: Pool) -> int:
    return sum(column.nbytes for column in pool.columns.values())
