"""The spans of a request's parts, below the one that FastAPI makes of it, and judgements as events.

They are made afterwards, of the times that were noted: the parts themselves know of no traces.
"""

import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.trace import SpanKind
from opentelemetry.util.types import AttributeValue
from starlette.types import Scope

from celeus.api.watch.requests import Exchange
from celeus.core.session.outcome import Loss
from celeus.timings import Span

MOST_SUMMARY = 255
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked for by machines, again and again."""

_tracer = trace.get_tracer("celeus")
_CHANGE = re.compile(r"\b(INSERT) INTO (\w+)|\b(DELETE) FROM (\w+)|\b(UPDATE) (?!SET\b)(\w+)")
_READ = re.compile(r"\bFROM (\w+)\b(?!\()")


def untraced(scope: Scope) -> bool:
    """Return whether FastAPI makes no span: for probes, and addresses that are secret."""
    path: str = scope.get("path", "")
    return path in UNTRACED or path.startswith("/s/")


def name_caller(exchange: Exchange) -> None:
    """Say on the request's span whose it is, where there is one."""
    span = trace.get_current_span()
    if span.is_recording():
        attributes = {"celeus.request.id": exchange.id}
        if exchange.key_id is not None:
            attributes["celeus.key.id"] = exchange.key_id
        if exchange.session_id is not None:
            attributes["celeus.session.id"] = exchange.session_id
        span.set_attributes(attributes)


def tell_parts(exchange: Exchange, database: dict[str, AttributeValue]) -> None:
    """Make the spans of the parts, where the request has one that is kept.

    Names and attributes are OpenTelemetry's semantic conventions for databases, ``database`` what
    they say of ours.
    """
    if not trace.get_current_span().get_span_context().trace_flags.sampled:
        return
    # Nanoseconds of the world's clock at the zero of our own
    zero = time.time_ns() - round(time.perf_counter() * 1e9)
    for part in exchange.timings.spans:
        name, attributes = _described(part)
        kind = SpanKind.INTERNAL
        if attributes:
            kind, attributes = SpanKind.CLIENT, attributes | database
        began, ended = (zero + round(moment * 1e9) for moment in (part.began, part.ended))
        _tracer.start_span(name, kind=kind, attributes=attributes, start_time=began).end(ended)


def tell_judgements(session: Mapping[str, Any], judged: Mapping[int, Loss]) -> None:
    """Add an event to the request's span for every score of a judged round, where it is kept.

    Names are OpenTelemetry's semantic conventions for generative AI. There is no payload in it, nor
    words of a judge. Sessions whose judgements are no scores have none: those that compare two
    systems, seek the best of several, or check a judge.
    """
    span = trace.get_current_span()
    if not span.is_recording():
        return
    metrics = _metrics(session)
    for round_, loss in judged.items():
        losses = loss if isinstance(loss, tuple) else (loss,) * len(metrics)
        for metric, metric_loss in zip(metrics, losses, strict=True):
            score, scale = metric["score"], metric["scale"]
            attributes: dict[str, AttributeValue] = {"gen_ai.evaluation.name": score["name"]}
            if metric_loss is None:
                attributes["gen_ai.evaluation.score.label"] = "unjudgeable"
            else:
                turned = scale["lower"] + scale["upper"] - metric_loss
                value = metric_loss if score["better"] == "lower" else turned
                attributes["gen_ai.evaluation.score.value"] = value
            span.add_event("gen_ai.evaluation.result", attributes | {"celeus.round": round_})


def _metrics(session: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The scores of a judgement, with their scales; none where a judgement is no score."""
    table = session["table"]
    if table is not None:
        return [] if table["check"] is not None else list(table["metrics"])
    return [] if session["score"] is None or session["systems"] is not None else [session]


def database_of(url: str | None) -> dict[str, AttributeValue]:
    """Return what spans say of the database at an address; never user or password."""
    attributes: dict[str, AttributeValue] = {"db.system.name": "postgresql"}
    parts = urlsplit(url or "")
    if parts.path.strip("/"):
        attributes["db.namespace"] = parts.path.strip("/")
    if parts.hostname:
        attributes |= {"server.address": parts.hostname, "server.port": parts.port or 5432}
    return attributes


def _described(part: Span) -> tuple[str, dict[str, AttributeValue]]:
    if part.part == "commit":
        return "COMMIT", {"db.operation.name": "COMMIT"}
    if part.part == "statement":
        name = summary(part.statement or "")
        return name, {"db.query.summary": name}
    return f"celeus.{part.part}", {}


@lru_cache(maxsize=1024)
def summary(statement: str) -> str:
    """Return what a statement does to which tables (`db.query.summary`), without values."""
    changes = [" ".join(filter(None, found)) for found in _CHANGE.findall(statement)]
    if not changes:
        verb = (statement.split(maxsplit=1) or ["statement"])[0].upper()
        verb = "SELECT" if verb == "WITH" else verb
        changes = [" ".join([verb, *dict.fromkeys(_READ.findall(statement))])]
    return " ".join(changes)[:MOST_SUMMARY]
