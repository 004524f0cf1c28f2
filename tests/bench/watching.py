"""What it costs a label cycle to be watched: its id, counts, times and line in the log.

Processor time of requests that do nothing else, less that of the same without being watched. The
cycle itself takes milliseconds, and varies by more than all of this.
"""

import asyncio
import logging
import os
import time
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celeus.api.watch.metrics import Metrics
from celeus.api.watch.middleware import LOGGER, Watch
from celeus.api.watch.requests import WithRequest
from celeus.commands.service.logs import BackgroundHandler, JsonLines, ShortTarget
from celeus.settings import Settings
from celeus.timings import timed
from tests.bench.results import Goal, Line

TIMED = Goal.most(20, "µs")
REPEATS = 200


class Route:
    """As the scope has the route of a label."""

    path = "/v1/sessions/{session_id}/observe"


HEADERS = [
    (b"host", b"bench"),
    (b"authorization", b"Bearer ce_0"),
    (b"content-type", b"application/json"),
    (b"content-length", b"70"),
]


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer to a label."""
    del receive
    scope["route"] = Route
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"{}"})


async def timed_and_answered(scope: Scope, receive: Receive, send: Send) -> None:
    """The same, with the parts that a label has."""
    with timed("lock"):
        pass
    with timed("lock"):
        for _ in range(2):
            with timed("statement", ""):
                pass
    with timed("fold"):
        pass
    with timed("statement", ""):
        pass
    with timed("commit"):
        pass
    await answered(scope, receive, send)


def watch_lines(*, quick: bool) -> list[Line]:
    """Microseconds a request, without its line in the log and with it."""
    repeats = 20 if quick else REPEATS
    bare = asyncio.run(_microseconds(answered, repeats))
    watched = Watch(timed_and_answered, Metrics(), Settings())
    logger = logging.getLogger(LOGGER)
    logger.setLevel(logging.WARNING)
    silent = asyncio.run(_microseconds(watched, repeats))
    with Path(os.devnull).open("w") as nowhere:
        handler = BackgroundHandler(nowhere)
        handler.setFormatter(JsonLines())
        for one in (WithRequest(), ShortTarget()):
            handler.addFilter(one)
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.INFO)
        logged = asyncio.run(_microseconds(watched, repeats))
        logger.removeHandler(handler)
    least = min(bare)
    return [
        Line("id, counts, times of a label", [one - least for one in silent], "µs", TIMED),
        Line("… and its line in the log, as JSON", [one - least for one in logged], "µs"),
    ]


async def _microseconds(app: ASGIApp, repeats: int, requests: int = 200) -> list[float]:
    """Processor time of a request, again and again."""

    async def unheard(_: Message) -> None:
        """Take what is sent."""

    async def heard() -> Message:
        return {"type": "http.request", "body": b""}

    found = []
    for _ in range(repeats):
        began = time.process_time()
        for _ in range(requests):
            scope: Scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/sessions/ses_0/observe",
                "query_string": b"",
                "http_version": "1.1",
                "headers": HEADERS,
                "client": ("127.0.0.1", 1),
            }
            await app(scope, heard, unheard)
        found.append((time.process_time() - began) / requests * 1e6)
    return found
