"""Metrics: for Prometheus in one registry per application, or in one folder for many processes.

Through OpenTelemetry a collector gets FastAPI's own metrics of requests, and ours of sessions.
"""

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from opentelemetry import metrics as opentelemetry
from opentelemetry.metrics import CallbackOptions, Observation, get_meter_provider
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from celeus.api.watch.requests import Exchange
from celeus.errors import Refusal
from celeus.operations.insights.session_lists import take_census
from celeus.operations.runtime.context import Context
from celeus.timings import DONE, FOLDED

UNMATCHED = "unmatched"
METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST"})
"""Those of routes; a client may send any word in their place."""
CENSUS_SECONDS = 60.0
SAMPLE_SECONDS = 5.0
"""Longest age of another process's numbers, in seconds."""
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PARTS = {
    "session_lock": (("lock",), "Wait of a request for its session."),
    "session_fold": (("fold",), "Rounds folded and draws proposed, of a request."),
    "database": (
        ("statement", "commit"),
        "Statements and commits of a request, but for the lock.",
    ),
}
"""The histograms of a request's parts: the timings that each adds up, and what it is."""
OF_PROCESS = {
    "http_requests_in_flight": "Requests under way; streams are left out.",
    "http_streams_open": "Streams that are open.",
    "session_queue": "Requests that wait for a session another one holds.",
    "database_queue": "Requests that wait for a place at the database.",
    "background_processes": "Plans, verifications and files in processes.",
    "background_queue": "Requests that wait for a process to work for them.",
    "sessions_warm": "Sessions whose state is in memory.",
}
"""The levels that every process has of itself."""
OF_SESSIONS = {
    "sessions_recent": "Sessions with an event within a day, up to 1000.",
    "draws_out": "Draws without judgement of recent sessions.",
    "labels_waiting": "Judgements of recent sessions that wait for earlier ones to be folded.",
    "oldest_draw_seconds": "Age of the oldest draw without judgement of recent sessions.",
}
"""The levels of the database's recent sessions, which is asked once in `CENSUS_SECONDS`."""

_meter = opentelemetry.get_meter("celeus")


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
        self._parts = {
            parts: _Seconds(name, about, self.registry) for name, (parts, about) in PARTS.items()
        }
        self._levels = {
            name: _Level(name, about, self.registry) for name, about in OF_PROCESS.items()
        }
        self._events = _Count("events", "Events committed.", self.registry, "kind")
        self._folded = _Count("rounds_folded", "Rounds folded and committed.", self.registry)
        states = "Sessions by state, up to 100000."
        self._states = _Level("sessions", states, self.registry, "state", shared=True)
        self._levels |= {
            name: _Level(name, about, self.registry, shared=True)
            for name, about in OF_SESSIONS.items()
        }
        self._census_due = 0.0

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
        took = exchange.timings.seconds
        for parts, histogram in self._parts.items():
            if not took.keys().isdisjoint(parts):
                histogram.observe(sum(took.get(part, 0.0) for part in parts))

    async def rendered(self, context: Context) -> bytes:
        """All metrics in Prometheus' text format."""
        self._sample(context)
        await self._take_census(context)
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
                await self._take_census(context)
            await asyncio.sleep(SAMPLE_SECONDS)

    def _sample(self, context: Context) -> None:
        self._set(
            http_requests_in_flight=self._under_way,
            http_streams_open=self._streams,
            session_queue=context.states.waiting + context.groups.waiting,
            database_queue=context.admission.waiting,
            background_processes=context.background.running,
            background_queue=context.background.waiting,
            sessions_warm=len(context.states),
        )
        for kind, count in DONE.items():
            if kind == FOLDED:
                self._folded.reach(count)
            else:
                self._events.reach(count, kind)

    async def _take_census(self, context: Context) -> None:
        """Count sessions if it is time to; where the database does not answer nothing changes."""
        now = time.monotonic()
        if now < self._census_due:
            return
        self._census_due = now + CENSUS_SECONDS
        with suppress(Refusal):
            found = await take_census(context)
            for state, count in found.states.items():
                self._states.set(count, state)
            self._set(
                sessions_recent=found.recent,
                draws_out=found.draws_out,
                labels_waiting=found.waiting,
                oldest_draw_seconds=found.oldest_draw_seconds,
            )

    def _set(self, **levels: float) -> None:
        for name, level in levels.items():
            self._levels[name].set(level)


class _Seconds:
    """A histogram of seconds, for Prometheus and OpenTelemetry, as all below."""

    def __init__(self, name: str, about: str, registry: CollectorRegistry) -> None:
        self._scraped = Histogram(
            f"celeus_{name}_seconds", about, registry=registry, buckets=BUCKETS
        )
        self._sent = _meter.create_histogram(
            f"celeus.{name}", "s", about, explicit_bucket_boundaries_advisory=BUCKETS
        )

    def observe(self, seconds: float) -> None:
        """Count one more."""
        self._scraped.observe(seconds)
        self._sent.record(seconds)


class _Count:
    """A number that only grows, by the values of ``label`` if there is one."""

    def __init__(
        self, name: str, about: str, registry: CollectorRegistry, label: str | None = None
    ) -> None:
        self._label = label
        self._scraped = Counter(
            f"celeus_{name}_total", about, [label] if label else [], registry=registry
        )
        self._reached: dict[str | None, int] = {}
        _meter.create_observable_counter(f"celeus.{name}", [self._observe], description=about)

    def reach(self, count: int, value: str | None = None) -> None:
        """Count on to what the process has counted for itself."""
        scraped = self._scraped if value is None else self._scraped.labels(value)
        scraped.inc(count - self._reached.get(value, 0))
        self._reached[value] = count

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        return _observations(self._label, self._reached)


class _Level:
    """A number that rises and falls, by the values of ``label`` if there is one.

    Of several processes the values are added up, or with ``shared`` the last one is told.
    """

    def __init__(
        self,
        name: str,
        about: str,
        registry: CollectorRegistry,
        label: str | None = None,
        *,
        shared: bool = False,
    ) -> None:
        mode: Literal["livesum", "mostrecent"] = "mostrecent" if shared else "livesum"
        self._label = label
        self._scraped = Gauge(
            f"celeus_{name}",
            about,
            [label] if label else [],
            registry=registry,
            multiprocess_mode=mode,
        )
        self._seen: dict[str | None, float] = {}
        _meter.create_observable_gauge(f"celeus.{name}", [self._observe], description=about)

    def set(self, level: float, value: str | None = None) -> None:
        """Set what was seen."""
        (self._scraped if value is None else self._scraped.labels(value)).set(level)
        self._seen[value] = level

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        return _observations(self._label, self._seen)


def _observations(label: str | None, levels: Mapping[str | None, float]) -> list[Observation]:
    """Each level with what it is of; from another thread than the one that sets them."""
    return [
        Observation(level, {label: value} if label and value else None)
        for value, level in list(levels.items())
    ]


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
