"""Follow a session: woken by the cache, or by looking once a second."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.errors import Busy, RateLimited, Unavailable
from app.operations.admission import still_admitted
from app.operations.history import news
from app.operations.rooms import Rooms
from app.operations.sessions import get_version

LOOK_SECONDS = 1.0
MOST_POINTS = 2_000
MOST_OF_A_KEY = 64
"""Streams at once, in one process: each looks at the database again and again."""
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class News:
    """The session and the trajectory since the last news; ``reset`` replaces what came before."""

    session: dict[str, Any]
    points: Sequence[dict[str, Any]]
    reset: bool


@contextmanager
def place(rooms: Rooms) -> Iterator[None]:
    """One of the streams that the holder of a key may have at once; refused beyond them."""
    name = rooms.key_id or ""
    if rooms.streaming[name] >= MOST_OF_A_KEY:
        raise RateLimited(
            "There are too many streams of this key.",
            rule=f"at most {MOST_OF_A_KEY} at once",
            retry_after=RETRY_SECONDS,
        )
    rooms.streaming[name] += 1
    try:
        yield
    finally:
        rooms.streaming[name] -= 1
        if rooms.streaming[name] == 0:
            del rooms.streaming[name]


async def follow(
    rooms: Rooms, session_id: UUID, position: tuple[int, int | None]
) -> AsyncIterator[News]:
    """News after ``position`` (sequence and revision last seen), until the session is closed.

    It ends too when the key it was asked with works no longer.
    No transaction is open while it waits, and a database that does not answer is asked again.
    Without Redis it looks at the database once a second.
    """
    sequence, revision = position
    version = None
    async with rooms.wakes.subscribe(session_id.hex) as woken:
        while True:
            woken.clear()
            found = None
            try:
                if not await still_admitted(rooms):
                    return
                latest = await get_version(rooms, session_id)
                if latest != version:
                    found = await news(rooms, session_id, sequence, revision, MOST_POINTS)
            except (Unavailable, Busy):
                # What holds up the database holds up the news, and does not end the stream.
                await asyncio.sleep(LOOK_SECONDS)
                continue
            if found is not None:
                version = latest
                document, points = found
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
