"""Traces and metrics as a collector of OpenTelemetry gets them, over OTLP, from a real server."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from celeus.api.watch.spans import MOST_SUMMARY, database_of, summary
from celeus.operations.insights.session_lists import STATES
from celeus.operations.sessions.append import _APPEND
from tests.factories import drawn, judged, known_pool, observed, opened
from tests.keys import ADMIN, bearer
from tests.pairs import pair
from tests.receivers import until
from tests.servers import Service, await_ready, free_port, running_services
from tests.tabled import sheet

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
REQUEST = "POST /v1/sessions/{session_id}/observe"
AT_ONCE = {"OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_METRIC_EXPORT_INTERVAL": "300"}


@dataclass
class Collector:
    """What a collector was sent, as OTLP over HTTP."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)
    session: str = ""

    def take(self, path: str, body: bytes) -> None:
        """Read what came."""
        self.bodies.append(body)
        if path == "/v1/traces":
            for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.services.add(attributes(sent.resource)["service.name"])
                self.spans += [span for scope in sent.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics |= {
                    metric.name: metric
                    for scope in resource.scope_metrics
                    for metric in scope.metrics
                }

    def named(self, trace: str) -> dict[str, Span]:
        """The spans of a trace by their names."""
        return {span.name: span for span in self.spans if span.trace_id.hex() == trace}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on loopback, until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        collector.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def attributes(of: Any) -> dict[str, Any]:  # noqa: ANN401 - any message that has some
    """The attributes of a span or resource."""
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in of.attributes
    }


@pytest.fixture
async def collector(database_url: str) -> AsyncIterator[Collector]:
    """What was sent of a label with a trace of its caller's, and of a link to a report."""
    with collecting() as collector:
        environment = AT_ONCE | {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_SERVICE_NAME": "it",
        }
        with running_services(1, database_url, environment=environment) as (service,):
            async with httpx.AsyncClient(base_url=service.url, headers=bearer()) as client:
                pool = await known_pool(client)
                collector.session = await opened(client, pool)
                (draw,) = (await drawn(client, collector.session))["draws"]
                client.headers["traceparent"] = f"00-{TRACE}-{PARENT}-01"
                answer = await client.get("/s/secret-of-a-link")
                assert answer.headers["X-Request-ID"] == TRACE
                await judged(client, collector.session, pool, draw, next=1)

                async def sent() -> Collector:
                    return collector

                wanted = {"celeus.sessions", "celeus.session_fold", "http.server.request.duration"}
                await until(
                    sent,
                    lambda telemetry: (
                        REQUEST in telemetry.named(TRACE) and wanted <= set(telemetry.metrics)
                    ),
                )
        yield collector


async def test_a_collector_gets_spans_and_metrics_of_a_label_and_no_secrets(
    collector: Collector,
) -> None:
    has_the_spans(collector)
    has_metrics(collector)
    everything = b"".join(collector.bodies)
    assert ADMIN.split("_")[2].encode() not in everything
    assert b"secret-of-a-link" not in everything


def has_the_spans(collector: Collector) -> None:
    spans = collector.named(TRACE)
    request = spans.pop(REQUEST)
    assert request.kind == Span.SPAN_KIND_SERVER
    assert request.parent_span_id.hex() == PARENT
    assert (
        attributes(request).items()
        >= {
            "http.request.method": "POST",
            "http.route": "/v1/sessions/{session_id}/observe",
            "http.response.status_code": 200,
            "celeus.session.id": collector.session,
            "celeus.key.id": ADMIN.split("_")[1],
            "celeus.request.id": TRACE,
        }.items()
    )
    assert {"celeus.lock", "celeus.fold", "COMMIT"} <= set(spans)
    (append,) = [span for name, span in spans.items() if "INSERT events" in name]
    assert append.kind == Span.SPAN_KIND_CLIENT
    assert attributes(append)["db.system.name"] == "postgresql"
    assert attributes(append)["db.query.summary"] == append.name
    for span in spans.values():
        assert span.parent_span_id == request.span_id, span.name
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        # Two clocks, which are not read at the same moment
        assert span.start_time_unix_nano >= request.start_time_unix_nano - 10_000_000


def has_metrics(collector: Collector) -> None:
    states = collector.metrics["celeus.sessions"].gauge.data_points
    assert {attributes(point)["state"] for point in states} == set(STATES)
    fold = collector.metrics["celeus.session_fold"]
    assert fold.unit == "s"
    assert sum(point.count for point in fold.histogram.data_points) >= 1
    assert collector.services == {"it"}


def test_without_a_collector_nothing_is_prepared_to_be_sent() -> None:
    """What the Redis client loads of the SDK, where it is installed, sends nothing."""
    program = (
        "import sys, celeus.main; from celeus.settings import Settings;"
        "from opentelemetry import metrics, trace;"
        "celeus.main.create_app(Settings());"
        "sys.exit('opentelemetry.exporter' in sys.modules"
        " or 'sdk' in type(trace.get_tracer_provider()).__module__"
        " or 'sdk' in type(metrics.get_meter_provider()).__module__)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if one is PathFinder else one for one in sys.meta_path]
"""


def test_a_collector_without_the_extra_is_a_word_and_no_failure(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    port = free_port()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("CELEUS_")
    } | {
        "CELEUS_DATABASE_URL": database_url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "PYTHONPATH": str(tmp_path),
    }
    command = [sys.executable, "-m", "celeus.cli", "serve", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as written:
        process = subprocess.Popen(command, env=environment, stdout=written, stderr=written)
    try:
        await_ready(Service(f"http://127.0.0.1:{port}", process))
    finally:
        process.terminate()
        process.wait(60)
    assert "celeus: no traces are sent" in log.read_text()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a FROM pools JOIN x USING (y) WHERE b = 1", "SELECT pools"),
        ("SET LOCAL statement_timeout = 2000", "SET"),
        (
            "WITH x AS (INSERT INTO a TABLE y ON CONFLICT DO UPDATE SET b = 2) DELETE FROM d",
            "INSERT a DELETE d",
        ),
        ("WITH one AS (SELECT 1 FROM json_to_recordset(x)) SELECT * FROM one", "SELECT one"),
        ("", "STATEMENT"),
    ],
)
def test_a_statement_is_named_by_what_it_does_to_which_tables(
    statement: str, expected: str
) -> None:
    assert summary(statement) == expected


def test_the_statement_of_a_label_is_named_within_bounds() -> None:
    judgement = summary(_APPEND)
    assert judgement.startswith("INSERT events INSERT trajectory DELETE leases INSERT leases")
    assert len(judgement) <= MOST_SUMMARY


def test_a_database_is_named_without_who_opens_it() -> None:
    named = database_of("postgresql://me:secret@db.example:5433/celeus?sslmode=require")
    assert named == {
        "db.system.name": "postgresql",
        "db.namespace": "celeus",
        "server.address": "db.example",
        "server.port": 5433,
    }
    assert database_of(None) == {"db.system.name": "postgresql"}


NAME, VALUE, LABEL = (
    f"gen_ai.evaluation.{member}" for member in ("name", "score.value", "score.label")
)
ACCURACY = {"name": "accuracy", "better": "higher"}


class Spans:
    """What a tracer of ours has exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("test")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The attributes of all events, which have one name."""
        events = [event for span in self._exporter.get_finished_spans() for event in span.events]
        assert {event.name for event in events} <= {"gen_ai.evaluation.result"}
        return [dict(event.attributes or {}) for event in events]


@pytest.fixture
def spans() -> Spans:
    return Spans()


async def test_a_judgement_is_an_event_once_and_has_its_score(
    client: httpx.AsyncClient, spans: Spans
) -> None:
    pool = await known_pool(client, score=ACCURACY)
    session = await opened(client, pool)
    first, second = (await drawn(client, session, 2))["draws"]
    with spans.tracer.start_as_current_span("request"):
        await judged(client, session, pool, first)
        await judged(client, session, pool, first)
        await observed(client, session, second["round"], unjudgeable="it says what the item says")
    loss = pool.losses[first["item"]["index"]]
    assert spans.events == [
        {NAME: "accuracy", VALUE: 1.0 - loss, "celeus.round": first["round"]},
        {NAME: "accuracy", LABEL: "unjudgeable", "celeus.round": second["round"]},
    ]


async def test_every_metric_of_a_judgement_has_its_event(
    client: httpx.AsyncClient, spans: Spans
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    (draw,) = (await drawn(client, session))["draws"]
    item = draw["item"]["index"]
    with spans.tracer.start_as_current_span("request"):
        await observed(client, session, draw["round"], **pool.said(item))
    losses = pool.losses[item]
    found = {event[NAME]: event[VALUE] for event in spans.events}
    assert found == {"faithfulness": 1.0 - losses["faithful"], "mean loss": losses["stars"]}


async def test_a_difference_of_two_systems_is_no_value_of_their_score(
    client: httpx.AsyncClient, spans: Spans
) -> None:
    pool = await pair(client, "losses")
    session = await opened(client, pool)
    (draw,) = (await drawn(client, session))["draws"]
    with spans.tracer.start_as_current_span("request"):
        answer = await observed(client, session, draw["round"], losses={"left": 0.0, "right": 1.0})
    assert answer.status_code == 200, answer.text
    assert spans.events == []


async def test_without_a_span_nothing_is_told(client: httpx.AsyncClient, spans: Spans) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    (draw,) = (await drawn(client, session))["draws"]
    await judged(client, session, pool, draw)
    assert spans.events == []
