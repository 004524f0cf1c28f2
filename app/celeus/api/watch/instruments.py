"""Instruments that tell Prometheus and OpenTelemetry the same."""

from collections.abc import Iterable, Mapping
from typing import Literal

from opentelemetry import metrics as opentelemetry
from opentelemetry.metrics import CallbackOptions, Observation
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_meter = opentelemetry.get_meter("celeus")


class Seconds:
    """A histogram of seconds."""

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


class Count:
    """A number that only grows, by the values of ``label`` if there is one."""

    def __init__(
        self, name: str, about: str, registry: CollectorRegistry, label: str | None = None
    ) -> None:
        self._label = label
        self._scraped = Counter(
            f"celeus_{name}_total", about, [label] if label else [], registry=registry
        )
        self._reached: dict[str | None, int] = {}
        _meter.create_observable_counter(f"celeus.{name}", [self._tell], description=about)

    def reach(self, count: int, value: str | None = None) -> None:
        """Count on to what the process has counted for itself."""
        scraped = self._scraped if value is None else self._scraped.labels(value)
        scraped.inc(count - self._reached.get(value, 0))
        self._reached[value] = count

    def _tell(self, _: CallbackOptions) -> Iterable[Observation]:
        return _observations(self._label, self._reached)


class Level:
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
        _meter.create_observable_gauge(f"celeus.{name}", [self._tell], description=about)

    def set(self, level: float, value: str | None = None) -> None:
        """Set what was seen."""
        (self._scraped if value is None else self._scraped.labels(value)).set(level)
        self._seen[value] = level

    def _tell(self, _: CallbackOptions) -> Iterable[Observation]:
        return _observations(self._label, self._seen)


def _observations(label: str | None, levels: Mapping[str | None, float]) -> list[Observation]:
    """Each level with what it is of; from another thread than the one that sets them."""
    return [
        Observation(level, {label: value} if label and value else None)
        for value, level in list(levels.items())
    ]
