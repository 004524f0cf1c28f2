"""Prometheus metrics: one registry per application, or one folder for many processes."""

import os
import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNMATCHED = "unmatched"


class Metrics:
    """Counters of one application.

    With PROMETHEUS_MULTIPROC_DIR set, the values of all processes sharing that folder are told.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "celeus_http_requests_total",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "celeus_http_request_seconds",
            "Time until an answer was sent; streams are left out.",
            ("method", "route"),
            registry=self.registry,
        )

    def rendered(self) -> bytes:
        """All metrics in Prometheus' text format."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


class Measured:
    """Count and time every request, by the route's pattern and never by its ids."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and note what became of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        # An answer that never begins is a failure of ours.
        status = 500
        streamed = False

        async def watched(message: Message) -> None:
            nonlocal status, streamed
            if message["type"] == "http.response.start":
                status = message["status"]
                media = dict(message.get("headers", ())).get(b"content-type", b"")
                # Such an answer lasts as long as somebody listens.
                streamed = media.startswith(b"text/event-stream")
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", UNMATCHED)
            method = scope["method"] if route != UNMATCHED else "ANY"
            self.metrics.requests.labels(method, route, str(status)).inc()
            if not streamed:
                self.metrics.seconds.labels(method, route).observe(time.perf_counter() - began)
