"""The id of a request: in every answer, and in every line that is logged for it."""

import logging
import re
from contextvars import ContextVar
from uuid import uuid4

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
NONE = "-"
"""Stands in lines that are logged for no request."""

_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_current: ContextVar[str] = ContextVar("request_id", default=NONE)


class RequestIds:
    """Give every request an id: the caller's own where it is well-formed, else a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; its answer carries the id."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        name = HEADER.lower().encode()
        given = [value for header, value in scope["headers"] if header == name]
        well_formed = len(given) == 1 and _WELL_FORMED.fullmatch(given[0])
        own = given[0].decode() if well_formed else uuid4().hex
        # Never taken back: the server logs what escapes from here in the same task, afterwards.
        _current.set(own)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = own
            await send(message)

        await self.app(scope, receive, named)


def request_id() -> str:
    """The id of the request that is being answered."""
    return _current.get()


class WithRequestId(logging.Filter):
    """Gives every record the `request_id` it is logged for."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, with its request."""
        record.request_id = _current.get()
        return True
