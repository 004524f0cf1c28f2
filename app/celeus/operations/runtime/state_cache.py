"""States kept warm, so that a request folds only what is new.

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

from app.core.plan import Plan
from app.core.pool import Pool
from app.core.session import State
from app.errors import Busy


@dataclass(slots=True)
class Warm:
    """A session as of ``state.sequence``: everything a step needs.

    ``head`` is that of the ledger's chain then; None until the ledger has been seen under its lock.
    """

    plan: Plan
    pool: Pool
    state: State
    head: bytes | None = None


@dataclass(slots=True)
class Slot:
    """The place of one session; ``warm`` is None when its state must be rebuilt.

    ``ahead`` from the moment the state holds, or is about to hold, what is not known to be
    committed, until it is.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    warm: Warm | None = None
    ahead: bool = False
    holders: int = 0
    counted: int = 0


class HotStates:
    """A bounded, least-recently-used set of session states and pools.

    ``items`` bounds the sum of the pool sizes over the states kept, since a state holds arrays as
    long as its pool; ``pool_bytes`` the numbers of the pools kept, but for the one used last.
    """

    def __init__(
        self,
        sessions: int,
        pools: int,
        *,
        items: int = 50_000_000,
        pool_bytes: int = 2 << 30,
        patience_seconds: float = 5.0,
    ) -> None:
        self._patience = patience_seconds
        self._sessions = sessions
        self._items = items
        self._slots: OrderedDict[UUID, Slot] = OrderedDict()
        self._counted = 0
        self._most_pools = pools
        self._most_bytes = pool_bytes
        self._pool_bytes = 0
        self._pools: OrderedDict[tuple[UUID, UUID], Pool] = OrderedDict()

    @asynccontextmanager
    async def hold(self, session_id: UUID) -> AsyncIterator[Slot]:
        """The session's slot, alone in this process; refused when others hold it for too long.

        Left by an error while the state is ahead of the ledger, the state is forgotten; a refusal
        that came before anything was appended costs nothing.
        """
        slot = self._slots.setdefault(session_id, Slot())
        self._slots.move_to_end(session_id)
        slot.holders += 1
        try:
            await self._locked(slot)
            try:
                yield slot
            except BaseException:
                if slot.ahead:
                    slot.warm = None
                raise
            finally:
                slot.ahead = False
                slot.lock.release()
        finally:
            slot.holders -= 1
            self._count(slot)
            if slot.warm is None and slot.holders == 0:
                # Nobody's session, or one to be rebuilt anyway: it must not push out a warm one.
                self._slots.pop(session_id, None)
            self._evict()

    def pool(self, project_id: UUID, pool_id: UUID) -> Pool | None:
        """A sealed pool of this project loaded before, or None."""
        known = self._pools.get((project_id, pool_id))
        if known is not None:
            self._pools.move_to_end((project_id, pool_id))
        return known

    def keep_pool(self, project_id: UUID, pool_id: UUID, pool: Pool) -> None:
        """Keep a sealed pool for the next session on it."""
        replaced = self._pools.pop((project_id, pool_id), None)
        self._pools[project_id, pool_id] = pool
        self._pool_bytes += _bytes(pool) - (0 if replaced is None else _bytes(replaced))
        while len(self._pools) > self._most_pools or (
            self._pool_bytes > self._most_bytes and len(self._pools) > 1
        ):
            _, forgotten = self._pools.popitem(last=False)
            self._pool_bytes -= _bytes(forgotten)

    def __len__(self) -> int:
        return sum(slot.warm is not None for slot in self._slots.values())

    async def _locked(self, slot: Slot) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await slot.lock.acquire()
        except TimeoutError as error:
            raise Busy("other requests to this session have not ended yet; try again") from error

    def _count(self, slot: Slot) -> None:
        """Have the running total agree with what the slot holds now."""
        items = 0 if slot.warm is None else slot.warm.pool.items
        self._counted += items - slot.counted
        slot.counted = items

    def _evict(self) -> None:
        """Forget the longest unused, never one that somebody holds or waits for."""
        if len(self._slots) <= self._sessions and self._counted <= self._items:
            return
        for key in list(self._slots):
            if len(self._slots) <= self._sessions and self._counted <= self._items:
                return
            if self._slots[key].holders == 0:
                self._counted -= self._slots.pop(key).counted


def _bytes(pool: Pool) -> int:
    return sum(column.nbytes for column in pool.columns.values())
