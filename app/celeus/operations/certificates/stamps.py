"""Ask a timestamping service (RFC 3161) for stamps of openings, behind the answers to them.

A stamp is a witness more and never a condition: where none comes, the session goes on without, and
the log says why. A start of the service asks again for sessions in which nothing was drawn yet.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Final
from uuid import UUID

import httpx2
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder
from sqlalchemy import text

from celeus.core.certificate.chain import chain_start, opening
from celeus.core.certificate.stamps import LARGEST_STAMP, NotAStamp, stamp_of
from celeus.errors import Refusal
from celeus.store.database import Database

SECONDS = 20.0
"""From the request to the end of its answer."""
MOST_AT_ONCE = 4
MOST_WAITING = 1000
MOST_RESUMED = 100
_FORMS: Final = {
    "Content-Type": "application/timestamp-query",
    "Accept": "application/timestamp-reply",
}

_logger = logging.getLogger(__name__)


class Stamps:
    """Requests for stamps under way in this process; none without a ``url``."""

    def __init__(self, database: Database, url: str | None) -> None:
        self._database = database
        self._url = url
        self._gate = asyncio.Semaphore(MOST_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, session_id: UUID, plan_digest: bytes) -> None:
        """Have the opening of this session stamped; never waits."""
        if self._url is None:
            return
        if len(self._tasks) >= MOST_WAITING:
            _logger.warning("no time stamp of ses_%s: too many wait for one", session_id.hex)
            return
        self._begin(self._stamped(session_id, plan_digest, self._url))

    def resume(self) -> None:
        """Ask again for sessions that have no stamp and no draws; never waits."""
        if self._url is not None:
            self._begin(self._resume())

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("a time stamp failed", exc_info=error)

    async def _resume(self) -> None:
        try:
            async with self._database.transaction() as db:
                rows = (await db.execute(_UNSTAMPED, {"most": MOST_RESUMED})).all()
        except Refusal as refusal:
            _logger.warning("no time stamps of earlier sessions: %s", refusal)
            return
        for row in rows:
            self.ask(row.session_id, bytes(row.plan_digest))

    async def _stamped(self, session_id: UUID, plan_digest: bytes, url: str) -> None:
        message = opening(session_id.bytes, plan_digest)
        try:
            async with self._gate, asyncio.timeout(SECONDS):
                stamp = await _asked(url, message)
            start = chain_start(session_id.bytes, plan_digest)
            await asyncio.to_thread(stamp_of, stamp, start)
            async with self._database.transaction() as db:
                await db.execute(_KEEP, {"session_id": session_id, "stamp": stamp})
        except TimeoutError:
            _logger.warning("no time stamp of ses_%s: none in %g s", session_id.hex, SECONDS)
        except (httpx2.HTTPError, httpx2.InvalidURL, NotAStamp, Refusal) as error:
            reason = str(error) or type(error).__name__
            _logger.warning("no time stamp of ses_%s: %s", session_id.hex, reason)


async def _asked(url: str, message: bytes) -> bytes:
    """The answer to a request for a stamp of SHA-256 of the message."""
    request = TimestampRequestBuilder(message, HashAlgorithm.SHA256).build().as_bytes()
    answer = b""
    async with (
        httpx2.AsyncClient(timeout=SECONDS) as http,
        http.stream("POST", url, content=request, headers=_FORMS) as response,
    ):
        response.raise_for_status()
        async for part in response.aiter_bytes():
            answer += part
            if len(answer) > LARGEST_STAMP:
                raise NotAStamp(f"an answer of more than {LARGEST_STAMP} bytes")
    return answer


# Not of a closed session: its certificate, once issued, stays as it is.
_KEEP = text(
    """
    UPDATE sessions SET stamp = :stamp
    WHERE session_id = :session_id AND stamp IS NULL AND lifecycle <> 'closed'
    """
)
_UNSTAMPED = text(
    """
    SELECT session_id, plan_digest FROM sessions
    WHERE stamp IS NULL AND drawn = 0 AND lifecycle <> 'closed'
    ORDER BY session_id DESC LIMIT :most
    """
)
