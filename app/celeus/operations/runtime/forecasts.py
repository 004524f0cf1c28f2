"""Forecasts of labels left, made outside every lock in a process of low priority."""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import text

from celeus.core.insights.forecast import MOST_TIMES, Forecast, forecast_of, pace
from celeus.core.insights.lines import progress
from celeus.core.plans.stopping import StoppingRule
from celeus.core.pools.surrogates import scores
from celeus.core.sessions.either import risk_plan
from celeus.core.sessions.rounds import Rounds
from celeus.core.sessions.state import State
from celeus.errors import Refusal
from celeus.operations.runtime.forecast_worker import job_of
from celeus.operations.runtime.state_cache import CachedSession
from celeus.operations.runtime.status import announce
from celeus.operations.runtime.workers import Bounds, Frame, gather
from celeus.operations.sessions.ledger import with_kinds
from celeus.store.cache import Cache
from celeus.store.database import Database

FEWEST_CONTINUATIONS = 10
MOST_REMEMBERED = 1024
REST = 4.0
"""Rests after a forecast, in times it took: forecasts get a fifth of one processor at most."""
MODULE = "celeus.operations.runtime.forecast_worker"
BOUNDS = Bounds(seconds=180.0, processor_seconds=120.0, niceness=19)
"""Replaying 40 000 rounds takes most of a minute."""

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

    def consider(
        self, session_id: UUID, session: CachedSession, known: dict[str, Any] | None
    ) -> None:
        """Begin a forecast when one is due and none is under way; never waits.

        The caller holds the session: its rounds are copied before this returns.
        """
        state = session.state
        if not isinstance(state, State):
            return
        if self._every == 0 or not state.stopping.can_stop_early or state.stop_reason is not None:
            return
        last = max(self._attempts.get(session_id, 0), 0 if known is None else known["round"])
        if 0 <= state.folded - last < self._every:
            return
        busy = self._task is not None and not self._task.done()
        if busy or asyncio.get_running_loop().time() < self._rested_at:
            return
        if state.observed == state.rounds.unjudgeable(state.drawn):
            # Losses are continued from those seen: of unjudgeable rounds alone nothing follows.
            return
        # A forecast that does not get ready in time is not tried again at the next label.
        self._attempts[session_id] = state.folded
        self._attempts.move_to_end(session_id)
        while len(self._attempts) > MOST_REMEMBERED:
            self._attempts.popitem(last=False)
        job = partial(_job, session, state.rounds[:], state.stopping)
        self._task = asyncio.create_task(self._make(session_id, job, state.folded))
        self._task.add_done_callback(_report)

    async def close(self) -> None:
        """Give up what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _make(self, session_id: UUID, job: Callable[[], Frame], round_: int) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        frames, failure = await gather(MODULE, job, BOUNDS)
        self._rested_at = clock() + REST * (clock() - began)
        if failure is not None:
            _logger.warning("no forecast of %s: %s", session_id, failure)
            return
        labels = frames[0].values["labels"]
        if len(labels) < FEWEST_CONTINUATIONS:
            _logger.info("no forecast of %s: %d futures in time", session_id, len(labels))
            return
        try:
            await self._keep(session_id, forecast_of(round_, labels))
        except Refusal as refusal:
            # A convenience that could not be kept: the next one comes in `every` rounds.
            _logger.warning("forecast not kept: %s", refusal)

    async def _keep(self, session_id: UUID, forecast: Forecast) -> None:
        async with self._database.transaction() as db:
            row = (await db.execute(_OPEN, {"session_id": session_id})).one_or_none()
            if row is None:
                return
            times = await db.execute(_TIMES, {"session_id": session_id, "most": MOST_TIMES})
            known = asdict(replace(forecast, seconds_per_label=pace(list(times.scalars()))))
            document = row.status | {"forecast": known}
            words = document.get("words")
            if words is not None:
                told = progress(document, words["labels"])
                document["words"] = words | {"progress": told}
            kept = {"forecast": json.dumps(known), "status": json.dumps(document)}
            await db.execute(_KEEP, {"session_id": session_id} | kept)
        await announce(self._cache, row.project_id, session_id, document)


def _job(session: CachedSession, rounds: Rounds, stopping: StoppingRule) -> Frame:
    plan = risk_plan(session.plan)
    return job_of(plan, scores(session.pool, plan.strategy), rounds, stopping)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("a forecast failed", exc_info=error)


_OPEN = text(
    """
    SELECT project_id, status FROM sessions
    WHERE session_id = :session_id AND lifecycle <> 'closed'
      AND status->>'stop_reason' IS NULL
    FOR UPDATE
    """
)
_TIMES = with_kinds(
    """
    SELECT CAST(extract(epoch FROM at) AS double precision) FROM events
    WHERE session_id = :session_id AND kind IN (:observation, :unjudgeable)
    ORDER BY sequence DESC LIMIT :most
    """
)
_KEEP = text(
    """
    UPDATE sessions SET forecast = CAST(:forecast AS jsonb), status = CAST(:status AS jsonb)
    WHERE session_id = :session_id
    """
)
