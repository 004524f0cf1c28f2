"""The request that is being answered: its id, in the answer and in every line logged for it."""

import logging
import re
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import uuid4

from opentelemetry.trace import format_trace_id, get_current_span
from starlette.types import Scope

from celeus.timings import Timings

HEADER = "X-Request-ID"
NONE = "-"
"""Stands in lines that are logged for no request."""

_NAME = HEADER.lower().encode()
_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
"""As the recommendation Trace Context of the W3C writes it."""
_SESSION = re.compile(r"ses_[0-9a-f]{32}")


@dataclass(slots=True)
class Exchange:
    """One request and what became of it; an answer that never begins is a failure of ours."""

    scope: Scope
    id: str
    timings: Timings = field(default_factory=Timings)
    status: int = 500
    streamed: bool = False

    @property
    def key_id(self) -> str | None:
        """The caller's key, once the door has let it in."""
        caller = self.scope.get("state", {}).get("caller")
        return None if caller is None else str(caller.key_id)

    @property
    def session_id(self) -> str | None:
        """The session that the address names, once the route is known."""
        named = self.scope.get("path_params", {}).get("session_id")
        return named if isinstance(named, str) and _SESSION.fullmatch(named) else None

    @property
    def route(self) -> str | None:
        """The pattern of its address; None where there is no route, or the door was shut."""
        return getattr(self.scope.get("route"), "path", None)


_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


def begin_exchange(scope: Scope) -> Exchange:
    """The exchange that begins with a request, and that all of this task belongs to from now on.

    It is never taken back: the server logs what escapes from here in the same task, afterwards.
    """
    exchange = Exchange(scope, _id_of(scope))
    exchange.timings.begin()
    _current.set(exchange)
    return exchange


def _id_of(scope: Scope) -> str:
    """The caller's own id where it is well-formed, else that of the trace, else a new one."""
    given = traced = None
    for name, value in scope["headers"]:
        if name == _NAME:
            # Of several none is the caller's word
            given = value if given is None else b""
        elif name == b"traceparent":
            traced = value if traced is None else b""
    if given is not None and _WELL_FORMED.fullmatch(given):
        return bytes(given).decode()
    span = get_current_span().get_span_context()
    if span.is_valid:
        return format_trace_id(span.trace_id)
    found = _TRACEPARENT.fullmatch(traced) if traced is not None else None
    return uuid4().hex if found is None else found[1].decode()


def request_id() -> str:
    """The id of the request that is being answered."""
    exchange = _current.get()
    return NONE if exchange is None else exchange.id


class WithRequest(logging.Filter):
    """Gives every record the `request_id` it is logged for, and the exchange."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, with its request."""
        record.exchange = exchange = _current.get()
        record.request_id = NONE if exchange is None else exchange.id
        return True
