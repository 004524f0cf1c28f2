"""Deliver what is in the outbox: every process takes what is due, one message of a webhook at once.

A message is delivered at least once, in no order that is promised: `webhook-id` tells one that
comes again, `sequence` which of two is newer. Whoever takes a message puts off its next attempt by
a lease in the same statement, so that a killed worker's messages are due again by themselves. What
is refused is tried for a bit more than a day, in the intervals that Standard Webhooks recommends.
"""

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.exc import SQLAlchemyError

from celeus.errors import Refusal
from celeus.operations.sessions.event_rows import moment
from celeus.operations.sessions.ledger import with_kinds
from celeus.operations.webhooks.addresses import Guard
from celeus.operations.webhooks.messages import body, headers, message
from celeus.operations.webhooks.outbox import Message, enqueue
from celeus.operations.webhooks.sending import SECONDS, Outcome, Sender
from celeus.settings import Settings
from celeus.store.database import Database

AT_ONCE = 64
"""Messages under way in a process, each to another webhook."""
AT_ONCE_OF_PROJECT = 8
"""Most messages of one project among those: some places stay for the others."""
LEASE_SECONDS = 2 * SECONDS
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 1.0
SWEEP_SECONDS = 60.0
PRUNE_SECONDS = 3_600.0
WAITS = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
"""Seconds after each attempt but the last: a bit more than a day together."""
JITTER = 0.2
KEPT_DAYS = 30
KEPT_OF_WEBHOOK = 500
"""Messages of a webhook that are kept once they are delivered or given up."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DueMessage:
    """A message that this process is to send, and where to."""

    delivery_id: UUID
    webhook_id: UUID
    url: str
    format: str
    keys: tuple[bytes, ...]
    event: str
    data: Mapping[str, Any]
    created_at: datetime
    attempts: int

    @classmethod
    def of(cls, row: RowMapping) -> "DueMessage":
        """Return the delivery in a row."""
        fields = {name: row[name] for name in cls.__dataclass_fields__ if name != "keys"}
        keys = (row["secret"], row["former_secret"])
        return cls(**fields, keys=tuple(bytes(key) for key in keys if key is not None))


class Deliveries:
    """The messages that this process delivers, until `close`."""

    def __init__(
        self, database: Database, sender: Sender, address: str, stalled_seconds: float
    ) -> None:
        self._database = database
        self.sender = sender
        self.address = address
        self._stalled_seconds = stalled_seconds
        self._under_way: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._sweep_at = 0.0
        self._prune_at = 0.0
        self._failing = False
        self._closing = False

    @classmethod
    def of(cls, database: Database, settings: Settings) -> Self:
        """Return the deliveries of a process with these settings; none are sent before `begin`."""
        guard = Guard.of(settings.webhook_internal, plain=settings.webhook_http)
        return cls(
            database, Sender(guard), settings.address, 3_600 * settings.webhook_stalled_hours
        )

    def begin(self) -> None:
        """Look for what is due from now on; never waits."""
        self._loop = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Give up what is under way: it is due again when its lease is over."""
        loop = [] if self._loop is None else [self._loop]
        self._closing = True
        self._news.set()
        if loop:
            # Cancelled in the middle, a transaction costs its connection
            await asyncio.wait(loop, timeout=PATIENCE_SECONDS)
        tasks = [*self._under_way, *loop]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def send(self, taken: DueMessage) -> Outcome:
        """Send a message that was taken, signed now."""
        content = message(taken.event, taken.created_at, taken.data, self.address)
        sent = body(content, taken.format)
        signed = headers(taken.delivery_id, int(time.time()), sent, taken.keys)
        return await self.sender.send(taken.url, sent, signed)

    async def _run(self) -> None:
        while not self._closing:
            try:
                self._news.clear()
                taken = await self._take()
                await self._sweep()
                self._failing = False
            except (Refusal, SQLAlchemyError, OSError) as error:
                # The database is away, or of another version: said once, and tried again
                if not self._failing:
                    _logger.warning("webhooks wait: %s", type(error).__name__)
                self._failing, taken = True, 0
            except Exception:
                # Whatever is wrong with one message, the others must not wait for a restart
                if not self._failing:
                    _logger.exception("webhooks wait")
                self._failing, taken = True, 0
            if not taken and not self._closing:
                try:
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._news.wait()
                except TimeoutError:
                    continue

    async def _take(self) -> int:
        """Begin to send what is due; how many messages."""
        free = AT_ONCE - len(self._under_way)
        if not free:
            return 0
        async with self._database.transaction() as db:
            params = {"most": free, "lease": LEASE_SECONDS, "share": AT_ONCE_OF_PROJECT}
            rows = (await db.execute(_TAKE, params)).mappings().all()
        for row in rows:
            task = asyncio.create_task(self._deliver(DueMessage.of(row)))
            self._under_way.add(task)
            task.add_done_callback(self._end)
        return len(rows)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._news.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("a delivery failed", exc_info=error)

    async def _deliver(self, taken: DueMessage) -> None:
        outcome = await self.send(taken)
        try:
            await self.settle(taken, outcome)
        except Refusal as refusal:
            _logger.warning("delivery msg_%s not noted: %s", taken.delivery_id.hex, refusal)

    async def settle(self, taken: DueMessage, outcome: Outcome, *, again: bool = True) -> None:
        """Note what came of an attempt, and when to try ``again``."""
        more = again and not outcome.gone and taken.attempts <= len(WAITS)
        wait = WAITS[taken.attempts - 1] * random.uniform(1, 1 + JITTER) if more else 0.0  # noqa: S311
        params = {
            "delivery_id": taken.delivery_id,
            "webhook_id": taken.webhook_id,
            "attempts": taken.attempts,
            "delivered": outcome.delivered,
            "more": more,
            "wait": max(wait, outcome.retry_after or 0.0),
            "status": outcome.status,
            "answer": outcome.answer,
            "note": outcome.note,
            "gone": outcome.gone,
            "again": again,
        }
        async with self._database.transaction() as db:
            await db.execute(_SETTLE, params)

    async def _sweep(self) -> None:
        """Tell of sessions that stand still, and delete what is old, now and then."""
        now = time.monotonic()
        if now < self._sweep_at:
            return
        self._sweep_at = now + min(SWEEP_SECONDS, self._stalled_seconds / 4)
        async with self._database.transaction() as db:
            for row in (await db.execute(_STALLED, {"seconds": self._stalled_seconds})).all():
                news: list[Message] = [("session.stalled", {"since": moment(row.since)})]
                await enqueue(db, row.project_id, row.session_id, news, row.status)
        if now >= self._prune_at:
            async with self._database.transaction() as db:
                await db.execute(_PRUNE, {"days": KEPT_DAYS, "most": KEPT_OF_WEBHOOK})
            self._prune_at = now + PRUNE_SECONDS


# What another process has taken meanwhile no longer fits once its row is locked
_TAKE = text(
    """
    WITH waiting AS MATERIALIZED (
        SELECT w.webhook_id, w.busy_until > now() AS busy,
            row_number() OVER (PARTITION BY w.project_id
                ORDER BY w.busy_until > now() DESC NULLS LAST, d.next_attempt_at) AS place
        FROM webhooks w LEFT JOIN LATERAL (
            SELECT d.next_attempt_at FROM deliveries d
            WHERE d.webhook_id = w.webhook_id
              AND d.state = 'pending' AND d.next_attempt_at <= now()
            ORDER BY d.next_attempt_at LIMIT 1
        ) AS d ON true
        WHERE w.busy_until > now() OR (w.disabled_at IS NULL AND d.next_attempt_at IS NOT NULL)
    ), due AS (
        SELECT w.webhook_id FROM webhooks w JOIN waiting USING (webhook_id)
        WHERE waiting.place <= :share AND waiting.busy IS NOT TRUE
          AND w.disabled_at IS NULL AND (w.busy_until IS NULL OR w.busy_until <= now())
        ORDER BY waiting.place LIMIT :most FOR NO KEY UPDATE OF w SKIP LOCKED
    ), chosen AS (
        SELECT (SELECT d.delivery_id FROM deliveries d WHERE d.webhook_id = due.webhook_id
                AND d.state = 'pending' AND d.next_attempt_at <= now()
                ORDER BY d.next_attempt_at, d.created_at LIMIT 1) AS delivery_id
        FROM due
    ), taken AS (
        UPDATE deliveries d SET attempts = attempts + 1, attempted_at = now(),
            next_attempt_at = now() + CAST(:lease AS float8) * interval '1 second'
        FROM chosen WHERE d.delivery_id = chosen.delivery_id
          AND d.state = 'pending' AND d.next_attempt_at <= now()
        RETURNING d.*
    ), busy AS (
        UPDATE webhooks w SET busy_until = now() + CAST(:lease AS float8) * interval '1 second'
        FROM taken WHERE w.webhook_id = taken.webhook_id
        RETURNING w.webhook_id, w.url, w.format, w.secret,
            CASE WHEN w.former_until > now() THEN w.former_secret END AS former_secret
    )
    SELECT taken.delivery_id, taken.event, taken.data, taken.created_at, taken.attempts, busy.*
    FROM taken JOIN busy USING (webhook_id)
    """
)
# A webhook is given up with a message of which all attempts failed while nothing else came through
_SETTLE = text(
    """
    WITH settled AS (
        UPDATE deliveries SET
            state = CASE WHEN :delivered THEN 'delivered' WHEN :more THEN 'pending'
                ELSE 'failed' END,
            next_attempt_at = CASE WHEN NOT :delivered AND :more
                THEN now() + CAST(:wait AS float8) * interval '1 second' END,
            status = :status, answer = :answer, note = :note
        WHERE delivery_id = :delivery_id AND attempts = :attempts AND state = 'pending'
        RETURNING created_at
    )
    UPDATE webhooks w SET busy_until = CASE WHEN NOT :again THEN w.busy_until END,
        failing_since = CASE WHEN :delivered THEN NULL
            ELSE coalesce(w.failing_since, now()) END,
        disabled_at = CASE WHEN :gone OR (:again AND NOT :more AND NOT :delivered
            AND w.failing_since < now() - interval '1 day') THEN coalesce(w.disabled_at, now())
            ELSE w.disabled_at END,
        note = CASE WHEN :gone THEN 'The receiver answered 410: it wants no more messages.'
            WHEN :again AND NOT :more AND NOT :delivered
                AND w.failing_since < now() - interval '1 day'
            THEN 'Nothing could be delivered for more than a day.' ELSE w.note END
    WHERE w.webhook_id = :webhook_id
    """
)
# Draws are no sign of life: a page that lies open makes some. Once in a quiet time; one process at
# a time.
_STALLED = with_kinds(
    """
    WITH turn AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(5150, 1) AS mine
    ), waiting AS (
        SELECT DISTINCT s.session_id, s.stall_told FROM webhooks w
            JOIN sessions s ON s.project_id = w.project_id
                AND (w.session_id IS NULL OR s.session_id = w.session_id)
        WHERE (SELECT mine FROM turn) AND w.disabled_at IS NULL AND w.events ? 'session.stalled'
          AND s.state = 'active' AND s.archived_at IS NULL
          AND s.created_at < now() - CAST(:seconds AS float8) * interval '1 second'
    ), quiet AS (
        SELECT session_id, coalesce(last.sequence, 0) AS sequence, last.at
        FROM waiting LEFT JOIN LATERAL (
            SELECT e.sequence, e.at FROM events e
            WHERE e.session_id = waiting.session_id AND e.kind <> :draw
            ORDER BY e.sequence DESC LIMIT 1
        ) AS last ON true
        WHERE (last.at IS NULL OR last.at < now() - CAST(:seconds AS float8) * interval '1 second')
          AND stall_told IS DISTINCT FROM coalesce(last.sequence, 0)
        LIMIT 100
    ), told AS (
        UPDATE sessions s SET stall_told = quiet.sequence FROM quiet
        WHERE s.session_id = quiet.session_id AND s.state = 'active'
          AND s.stall_told IS DISTINCT FROM quiet.sequence
        RETURNING s.session_id, s.project_id, s.status, coalesce(quiet.at, s.created_at) AS since
    )
    SELECT * FROM told
    """
)
_PRUNE = text(
    """
    DELETE FROM deliveries WHERE delivery_id IN (
        SELECT delivery_id FROM (
            SELECT delivery_id, state, created_at,
                row_number() OVER (PARTITION BY webhook_id ORDER BY created_at DESC) AS place
            FROM deliveries
        ) AS one
        WHERE created_at < now() - :days * interval '1 day'
           OR (state <> 'pending' AND place > :most)
    )
    """
)
