"""Stream a session's news: woken by the cache, or polling once a second."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from celeus.errors import Busy, Unavailable
from celeus.operations.access.authentication import still_admitted
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.history import news
from celeus.operations.sessions.sessions import get_version

LOOK_SECONDS = 1.0
MOST_POINTS = 2_000


@dataclass(frozen=True, slots=True)
class News:
    """Status document and new trajectory points; ``reset`` means they replace earlier ones."""

    session: dict[str, Any]
    points: Sequence[dict[str, Any]]
    reset: bool


async def follow(
    context: Context, session_id: UUID, position: tuple[int, int | None]
) -> AsyncIterator[News]:
    """News after ``position`` (sequence and revision last seen), until the session is closed.

    It also ends when the caller's key is no longer valid.
    No transaction is open while it waits, and a database that does not answer is asked again.
    Without Redis it looks at the database once a second.
    """
    sequence, revision = position
    version = None
    async with context.wakes.subscribe(session_id.hex) as woken:
        while True:
            woken.clear()
            latest_news = None
            try:
                if not await still_admitted(context):
                    return
                latest = await get_version(context, session_id)
                if latest != version:
                    latest_news = await news(context, session_id, sequence, revision, MOST_POINTS)
            except (Unavailable, Busy):
                # What holds up the database holds up the news, and does not end the stream.
                await asyncio.sleep(LOOK_SECONDS)
                continue
            if latest_news is not None:
                version = latest
                document, points = latest_news
                reset = revision != document["revision"]
                sequence, revision = document["sequence"], document["revision"]
                yield News(document, points, reset)
                if document["state"] == "closed":
                    return
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await woken.wait()
            except TimeoutError:
                continue
