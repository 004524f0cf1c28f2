"""Forecasts of labels left, made outside every lock in a process of low priority."""

import asyncio
import json
import logging
import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text

from app.core.forecast import continuations, forecast_of, snapshot
from app.core.plan import Plan
from app.core.surrogates import scores
from app.errors import Refusal
from app.operations.hot import Warm
from app.operations.status import announce
from app.store.cache import Cache
from app.store.database import Database

CONTINUATIONS = 100
FEWEST_CONTINUATIONS = 20
LONGEST_SECONDS = 10.0
NICENESS = 10

_logger = logging.getLogger(__name__)


class Forecasts:
    """At most one forecast at a time in this process, each session's ``every`` rounds apart."""

    def __init__(self, database: Database, cache: Cache, every: int) -> None:
        self._database = database
        self._cache = cache
        self._every = every
        self._executor: ProcessPoolExecutor | None = None
        self._task: asyncio.Task[None] | None = None

    def consider(self, session_id: UUID, warm: Warm, known: dict[str, Any] | None) -> None:
        """Begin a forecast when one is due and none is under way; never waits.

        The caller holds the session: its state is copied before this returns.
        """
        state = warm.state
        last = 0 if known is None else known["round"]
        due = self._every > 0 and state.folded - last >= self._every
        if not due or state.stopping.precision is None or state.stop_reason is not None:
            return
        if self._task is not None and not self._task.done():
            return
        kept, round_ = snapshot(state), state.folded
        self._task = asyncio.create_task(self._make(session_id, warm, kept, round_))

    async def close(self) -> None:
        """Give up what is under way and end the process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._executor is not None:
            await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)

    async def _make(self, session_id: UUID, warm: Warm, kept: bytes, round_: int) -> None:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                1, multiprocessing.get_context("spawn"), initializer=_begin
            )
        known = await asyncio.to_thread(scores, warm.pool, warm.plan.strategy)
        loop = asyncio.get_running_loop()
        try:
            labels = await loop.run_in_executor(
                self._executor, simulated, warm.plan, kept, known.surrogate
            )
        except BrokenProcessPool:
            # Killed from outside: the next forecast starts another process.
            self._executor = None
            return
        if len(labels) < FEWEST_CONTINUATIONS:
            return
        try:
            await self._keep(session_id, asdict(forecast_of(round_, labels)))
        except Refusal as refusal:
            # A convenience that could not be kept: the next one comes in `every` rounds.
            _logger.warning("forecast not kept: %s", refusal)

    async def _keep(self, session_id: UUID, forecast: dict[str, Any]) -> None:
        async with self._database.transaction() as db:
            kept = await db.execute(
                _KEEP, {"session_id": session_id, "forecast": json.dumps(forecast)}
            )
            document = kept.scalar_one_or_none()
        if document is not None:
            await announce(self._cache, session_id, document)


def _begin() -> None:
    """Give way to everybody else, and end with the server, also when that is killed."""
    os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def simulated(plan: Plan, kept: bytes, surrogate: NDArray[np.float64]) -> list[int]:
    """Labels left in up to CONTINUATIONS futures, as many as LONGEST_SECONDS allow."""
    deadline = time.monotonic() + LONGEST_SECONDS
    seed = plan.digest.encode()
    labels: list[int] = []
    for left in continuations(plan, kept, surrogate, seed):
        labels.append(left)
        if len(labels) == CONTINUATIONS or time.monotonic() > deadline:
            break
    return labels


_KEEP = text(
    """
    UPDATE sessions SET forecast = CAST(:forecast AS jsonb),
        status = jsonb_set(status, '{forecast}', CAST(:forecast AS jsonb))
    WHERE session_id = :session_id AND lifecycle <> 'closed'
    RETURNING status
    """
)
