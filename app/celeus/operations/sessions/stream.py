"""Stream a session's news: woken by the cache, or polling once a second.

News of one version after one position are the same for everybody: they are read and encoded once,
in this process, for all its streams.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson

from celeus.errors import Busy, SessionNotFound, Unavailable
from celeus.operations.access.authentication import still_admitted
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.process_cache import StreamMessage
from celeus.operations.sessions.history import news
from celeus.operations.sessions.sessions import get_session

LOOK_SECONDS = 1.0
RESET_SECONDS = 1.0
"""Between two resets of a stream: a label may be corrected as often as one likes."""
MOST_POINTS = 2_000
POINTS_INLINE = 100


async def follow(
    context: Context,
    session_id: UUID,
    position: tuple[int, int | None],
    quiet_seconds: float = math.inf,
) -> AsyncGenerator[StreamMessage, None]:
    """News after ``position`` (sequence and revision last seen), until the session is closed.

    Messages without data say that after ``quiet_seconds`` nothing was new, by a look just taken.
    It also ends when the caller's key is no longer valid, or the session deleted. All points again
    are sent once in ``RESET_SECONDS``, and when the session is closed.
    No transaction is open while it waits, and a database that does not answer is asked again.
    Without Redis it looks at the database once a second.
    """
    version = latest_sent = None
    reset_at, sent_at = -RESET_SECONDS, 0.0
    async with context.waiters.subscribe(session_id.hex) as woken:
        while True:
            woken.clear()
            latest_news = None
            try:
                if (found := await _standing(context, session_id)) is None:
                    return
                body, latest = found
                if latest != version:
                    status = orjson.loads(body)
                    due = time.monotonic() >= reset_at + RESET_SECONDS or _ended(status)
                    if due or position[1] == status["revision"]:
                        latest_news = await _shared(context, session_id, status, latest, position)
            except (Unavailable, Busy, SessionNotFound):
                # What holds up the database holds up the news, and does not end the stream.
                await asyncio.sleep(LOOK_SECONDS)
                continue
            if latest_news is not None:
                version, position = latest, latest_news.position
                latest_sent, sent_at = latest_news, time.monotonic()
                reset_at = time.monotonic() if latest_news.reset else reset_at
                yield latest_news
                if latest_news.last:
                    return
            elif latest_sent is not None and time.monotonic() >= sent_at + quiet_seconds:
                sent_at = time.monotonic()
                yield replace(latest_sent, data="", reset=False)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await woken.wait()


async def _standing(context: Context, session_id: UUID) -> tuple[bytes, str] | None:
    """The status document and its version; None for who may not see it any more, or if deleted."""
    if not await still_admitted(context):
        return None
    try:
        return await get_session(context, session_id)
    except SessionNotFound:
        return None


async def _shared(
    context: Context,
    session_id: UUID,
    status: dict[str, Any],
    version: str,
    position: tuple[int, int | None],
) -> StreamMessage:
    """The news of this version, read and encoded by the first stream that asks."""
    sequence, revision = position
    since = None if revision is None or revision != status["revision"] else (sequence, revision)
    # A database restored from a backup may have had another ledger of this length.
    version = f"{version}.{status['ledger_head']}"
    key = (session_id, since)
    made = context.news.known(key, version)
    if made is None:
        async with context.gates.news:
            made = context.news.known(key, version)
            if made is None:
                made = await _read(context, session_id, since)
                context.news.keep(key, version, made, len(made.data))
    return made


async def _read(context: Context, session_id: UUID, since: tuple[int, int] | None) -> StreamMessage:
    document, rows, reset = await news(context, session_id, since, MOST_POINTS)

    def encoded() -> str:
        points = [dict(row) for row in rows]
        return orjson.dumps({"session": document, "points": points, "reset": reset}).decode()

    data = encoded() if len(rows) <= POINTS_INLINE else await asyncio.to_thread(encoded)
    return StreamMessage(
        data, (document["sequence"], document["revision"]), reset, _ended(document)
    )


def _ended(document: dict[str, Any]) -> bool:
    return bool(document["state"] == "closed")
