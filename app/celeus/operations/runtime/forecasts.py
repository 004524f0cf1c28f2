"""Forecasts of labels left, made outside every lock in a process of low priority."""

import asyncio
import json
import logging
import pickle
import sys
from collections import OrderedDict
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.core.forecast import forecast_of, snapshot
from app.core.surrogates import scores
from app.errors import Refusal
from app.operations.continuing import Job
from app.operations.hot import Warm
from app.operations.status import announce
from app.store.cache import Cache
from app.store.database import Database

FEWEST_CONTINUATIONS = 10
MOST_REMEMBERED = 1024
REST = 4.0
"""Rests after a forecast, in times it took: forecasts get a fifth of one processor at most."""
PATIENCE_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class Forecasts:
    """At most one forecast at a time in this process, each session's ``every`` rounds apart."""

    def __init__(self, database: Database, cache: Cache, every: int) -> None:
        self._database = database
        self._cache = cache
        self._every = every
        self._attempts: OrderedDict[UUID, int] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._rested_at = 0.0

    def consider(self, session_id: UUID, warm: Warm, known: dict[str, Any] | None) -> None:
        """Begin a forecast when one is due and none is under way; never waits.

        The caller holds the session: its state is copied before this returns.
        """
        state = warm.state
        if self._every == 0 or not state.stopping.aims or state.stop_reason is not None:
            return
        last = max(self._attempts.get(session_id, 0), 0 if known is None else known["round"])
        if 0 <= state.folded - last < self._every:
            return
        busy = self._task is not None and not self._task.done()
        if busy or asyncio.get_running_loop().time() < self._rested_at:
            return
        if not any(isinstance(judged.loss, float) for judged in state.rounds):
            # Losses are continued from those seen: of unjudgeable rounds alone nothing follows.
            return
        # A forecast that does not get ready in time is not tried again at the next label.
        self._attempts[session_id] = state.folded
        self._attempts.move_to_end(session_id)
        while len(self._attempts) > MOST_REMEMBERED:
            self._attempts.popitem(last=False)
        kept, round_ = snapshot(state), state.folded
        self._task = asyncio.create_task(self._make(session_id, warm, kept, round_))

    async def close(self) -> None:
        """Give up what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _make(self, session_id: UUID, warm: Warm, kept: bytes, round_: int) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        job = await asyncio.to_thread(_packed, warm, kept)
        labels = await _continued(job)
        self._rested_at = clock() + REST * (clock() - began)
        if len(labels) < FEWEST_CONTINUATIONS:
            _logger.info("no forecast of %s: %d futures in time", session_id, len(labels))
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
            row = kept.one_or_none()
        if row is not None:
            await announce(self._cache, row.project_id, session_id, row.status)


def _packed(warm: Warm, kept: bytes) -> bytes:
    surrogate = scores(warm.pool, warm.plan.strategy).surrogate
    return pickle.dumps(Job(warm.plan, kept, surrogate), protocol=pickle.HIGHEST_PROTOCOL)


async def _continued(job: bytes) -> list[int]:
    """Run the job in a process of its own; killed when it is late or nobody waits any more."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.operations.continuing"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # A Ctrl-C is for the server, which then ends this process
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer, _ = await process.communicate(job)
    except TimeoutError:
        return []
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        _logger.warning("the process of a forecast ended with %d", process.returncode)
        return []
    labels: list[int] = json.loads(answer)
    return labels


_KEEP = text(
    """
    UPDATE sessions SET forecast = CAST(:forecast AS jsonb),
        status = jsonb_set(status, '{forecast}', CAST(:forecast AS jsonb))
    WHERE session_id = :session_id AND lifecycle <> 'closed'
    RETURNING project_id, status
    """
)
