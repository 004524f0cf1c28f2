"""Metrics: for Prometheus in one registry per application, or in one folder for many processes.

Through OpenTelemetry a collector gets FastAPI's own metrics of requests, and ours of sessions.
"""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

from opentelemetry.metrics import get_meter_provider
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from celeus.api.watch.instruments import Count, Level, Seconds
from celeus.api.watch.requests import Exchange
from celeus.errors import Refusal
from celeus.operations.insights.session_counts import take_census
from celeus.operations.runtime.context import Context
from celeus.timings import DONE, FOLDED

UNMATCHED = "unmatched"
METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST"})
"""Those of routes; a client may send any word in their place."""
CENSUS_SECONDS = 60.0
SAMPLE_SECONDS = 5.0
"""Longest age of another process's numbers, in seconds."""
FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """The counts and times of one application.

    With PROMETHEUS_MULTIPROC_DIR set, the values of all processes sharing that folder are told.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._under_way = self._streams = 0
        self._requests = Counter(
            "celeus_http_requests_total",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "celeus_http_request_seconds",
            "Time until an answer was sent; streams are left out.",
            ("method", "route"),
            registry=self.registry,
        )
        # Looked up here in a tenth of the time that the library takes
        self._answered: dict[tuple[str, str, int], Counter] = {}
        self._took: dict[tuple[str, str], Histogram] = {}
        self._parts = _Parts(self.registry)
        self._process = _Process(self.registry)
        self._sessions = _Sessions(self.registry)

    def begin(self) -> None:
        """Count a request that begins."""
        self._under_way += 1

    def stream(self) -> None:
        """Count a request as a stream from here on."""
        self._under_way -= 1
        self._streams += 1

    def end(self, exchange: Exchange, seconds: float) -> None:
        """Count a request that is over, by the route's pattern and never by its ids."""
        route, method = exchange.route or UNMATCHED, exchange.scope["method"]
        if route == UNMATCHED or method not in METHODS:
            method = "ANY"
        answer, asked = (method, route, exchange.status), (method, route)
        if answer not in self._answered:
            self._answered[answer] = self._requests.labels(method, route, str(exchange.status))
        self._answered[answer].inc()
        if exchange.streamed:
            self._streams -= 1
        else:
            self._under_way -= 1
            if asked not in self._took:
                self._took[asked] = self._seconds.labels(method, route)
            self._took[asked].observe(seconds)
        self._parts.observe(exchange)

    async def rendered(self, context: Context) -> bytes:
        """All metrics in Prometheus' text format."""
        self._sample(context)
        await self._sessions.look(context)
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        _forget_the_dead(Path(os.environ[FOLDER]))
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    async def keep(self, context: Context) -> None:
        """Keep what others are told of this process new, for ever."""
        while True:
            self._sample(context)
            if type(get_meter_provider()).__module__.startswith("opentelemetry.sdk"):
                await self._sessions.look(context)
            await asyncio.sleep(SAMPLE_SECONDS)

    def _sample(self, context: Context) -> None:
        self._process.in_flight.set(self._under_way)
        self._process.streams.set(self._streams)
        self._process.queue.set(context.states.waiting + context.groups.waiting)
        self._process.admission.set(context.admission.waiting)
        self._process.running.set(context.background.running)
        self._process.waiting.set(context.background.waiting)
        self._process.warm.set(len(context.states))
        for kind, count in DONE.items():
            if kind == FOLDED:
                self._process.folded.reach(count)
            else:
                self._process.events.reach(count, kind)


class _Parts:
    """The parts of the time that requests take."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.lock = Seconds("session_lock", "Wait of a request for its session.", registry)
        self.fold = Seconds(
            "session_fold", "Rounds folded and draws proposed, of a request.", registry
        )
        self.database = Seconds(
            "database", "Statements and commits of a request, but for the lock.", registry
        )

    def observe(self, exchange: Exchange) -> None:
        seconds = exchange.timings.seconds
        if "lock" in seconds:
            self.lock.observe(seconds["lock"])
        if "fold" in seconds:
            self.fold.observe(seconds["fold"])
        if "statement" in seconds or "commit" in seconds:
            self.database.observe(seconds.get("statement", 0.0) + seconds.get("commit", 0.0))


class _Process:
    """The numbers every process has of itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.in_flight = Level(
            "http_requests_in_flight", "Requests under way; streams are left out.", registry
        )
        self.streams = Level("http_streams_open", "Streams that are open.", registry)
        self.queue = Level(
            "session_queue", "Requests that wait for a session another one holds.", registry
        )
        self.admission = Level(
            "database_queue", "Requests that wait for a place at the database.", registry
        )
        self.running = Level(
            "background_processes",
            "Plans, verifications and files in processes.",
            registry,
        )
        self.waiting = Level(
            "background_queue", "Requests that wait for a process to work for them.", registry
        )
        self.warm = Level("sessions_warm", "Sessions whose state is in memory.", registry)
        self.events = Count("events", "Events committed.", registry, "kind")
        self.folded = Count("rounds_folded", "Rounds folded and committed.", registry)


class _Sessions:
    """The database's counts of all sessions; it is asked once in `CENSUS_SECONDS`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.states = Level(
            "sessions", "Sessions by state, up to 100000.", registry, "state", shared=True
        )
        self.recent = Level(
            "sessions_recent",
            "Sessions with an event within a day, up to 1000.",
            registry,
            shared=True,
        )
        self.draws = Level(
            "draws_out", "Draws without judgement of recent sessions.", registry, shared=True
        )
        self.waiting = Level(
            "labels_waiting",
            "Judgements of recent sessions that wait for earlier ones to be folded.",
            registry,
            shared=True,
        )
        self.oldest = Level(
            "oldest_draw_seconds",
            "Age of the oldest draw without judgement of recent sessions.",
            registry,
            shared=True,
        )
        self._due = 0.0

    async def look(self, context: Context) -> None:
        """Look again if it is time to; where the database does not answer nothing changes."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + CENSUS_SECONDS
        with suppress(Refusal):
            found = await take_census(context)
            for state, count in found.states.items():
                self.states.set(count, state)
            self.recent.set(found.recent)
            self.draws.set(found.draws_out)
            self.waiting.set(found.waiting)
            self.oldest.set(found.oldest_draw_seconds)


def _forget_the_dead(folder: Path) -> None:
    """Have nothing added up of what processes knew of themselves that are no more."""
    for path in folder.glob("gauge_live*_*.db"):
        number = path.stem.rpartition("_")[2]
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            mark_process_dead(int(number))  # type: ignore[no-untyped-call]
        except PermissionError:
            continue
