"""Judgements as events of OpenTelemetry, by the names of its conventions for generative AI."""

from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from tests.factories import drawn, judged, known_pool, observed, opened
from tests.pairs import pair
from tests.tabled import sheet

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
