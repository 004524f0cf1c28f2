"""Every request gets an id, is counted and timed, and has its line in the log."""

import logging
import time
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celeus.api.watch.metrics import Metrics
from celeus.api.watch.requests import HEADER, Exchange, begin_exchange
from celeus.api.watch.spans import database_of, name_caller, tell_parts
from celeus.settings import Settings

LOGGER = "celeus.requests"
REST = "rest"
"""Name of a request's time outside its parts: checks, documents, waits for the client, other
requests of the process."""

_logger = logging.getLogger(LOGGER)


class Watch:
    """Watch over requests; those slower than the settings say are warned of, with their parts."""

    def __init__(self, app: ASGIApp, metrics: Metrics, settings: Settings) -> None:
        self.app = app
        self._metrics = metrics
        self._slow = settings.slow_request_seconds
        self._database = database_of(settings.database_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; its answer carries the id."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = begin_exchange(scope)
        self._metrics.begin()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = exchange.id
                name_caller(exchange)
                # Such an answer lasts as long as somebody listens
                if headers.get("content-type", "").startswith("text/event-stream"):
                    exchange.streamed = True
                    self._metrics.stream()
                    _log(exchange, logging.INFO, None)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - exchange.timings.began
            self._metrics.end(exchange, seconds)
            tell_parts(exchange, self._database)
            if not exchange.streamed:
                slow = 0 < self._slow <= seconds
                _log(exchange, logging.WARNING if slow else logging.INFO, seconds, parts=slow)


def _log(exchange: Exchange, level: int, seconds: float | None, *, parts: bool = False) -> None:
    """Have it logged, ``seconds`` if it is over, with its ``parts`` if they are wanted."""
    if not _logger.isEnabledFor(level):
        return
    scope = exchange.scope
    took = ""
    milliseconds: dict[str, float] = {}
    if seconds is not None:
        took = f" in {1000 * seconds:.0f} ms"
        if parts:
            milliseconds = _parts(exchange, seconds)
            took += ": " + ", ".join(f"{part} {ms:.0f}" for part, ms in milliseconds.items())
    _logger.log(
        level,
        '%s - "%s %s HTTP/%s" %d',
        ":".join(map(str, scope.get("client") or ())),
        scope["method"],
        _target(scope),
        scope["http_version"],
        exchange.status,
        extra={"seconds": seconds, "took": took, "parts": milliseconds},
    )


def _target(scope: Scope) -> str:
    """Return the target of the request as it came, its query in ASCII."""
    query = scope["query_string"].decode("ascii", "backslashreplace")
    path = quote(scope["path"])
    return f"{path}?{query}" if query else path


def _parts(exchange: Exchange, seconds: float) -> dict[str, float]:
    """The milliseconds of each part, which make up the whole with the rest."""
    known = exchange.timings.seconds
    parts = {**known, REST: max(0.0, seconds - sum(known.values()))}
    return {part: round(1000 * took, 1) for part, took in parts.items()}
