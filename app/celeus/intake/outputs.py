"""Logs of evaluation tools as sheets: an output a row, its own score the guess of its loss."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from celeus.errors import InvalidValue
from celeus.intake.formats.registry import read, sniff
from celeus.intake.joining import each_output, rows_of
from celeus.intake.reducers import EACH
from celeus.intake.rows import Log, Options
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import Known, Sheet, refused

_LOWER = frozenset(
    {"perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "brier_score", "ter"}
)
"""Metrics of lm-eval that are better the lower they are."""


def form_of(source: Source) -> str | None:
    """Return the name of the tool that wrote a log; None if it is no log."""
    try:
        found = sniff(source)
    except InvalidValue:
        return None
    return None if found == "table" else found


def sheet_of(form: str, source: Source, options: Options) -> Sheet:
    """The outputs of a log; refuses one that is not whole, or whose metric has to be chosen."""
    read_as = [f"a log of {form}"]
    if form == "lm-eval":
        options, more = _chosen(source, options)
        read_as += more
    logs = _read(form, source, replace(options, reducer=EACH))
    joined = each_output(rows_of(logs))
    rows = []
    for item in joined.items:
        row, answer = item.shown, item.shown.answer
        if answer is None and row.prediction is not None and row.prediction < len(row.choices):
            answer = row.choices[row.prediction]
        rows.append(
            {
                "id": item.name,
                "question": row.question,
                "choices": list(row.choices) or None,
                "reference": row.reference,
                "answer": answer,
                "loss": item.guess,
                "group": row.group,
                "model": row.model,
            }
        )
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    roles = {name: {"loss": "surrogate", "model": "hidden"}.get(name, name) for name in names}
    kept = [{name: row[name] for name in names} for row in rows]
    return Sheet(form, lambda: _numbered(kept), tuple(read_as), Known(roles))


def _numbered(rows: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(rows, 1)


def _read(form: str, source: Source, options: Options) -> list[Log]:
    """The log; where it does not say which score is better, the higher one is."""
    try:
        return read(form, [source], options)
    except InvalidValue as refusal:
        if refusal.field != "metric" or options.higher is not None:
            raise _told(refusal) from refusal
    try:
        return read(form, [source], replace(options, higher=True))
    except InvalidValue as refusal:
        raise _told(refusal) from refusal


def _told(refusal: InvalidValue) -> InvalidValue:
    """The refusal in the words of an upload: options of the command are members of the query."""
    field = refusal.field if refusal.field in {"metric", "filter"} else "body"
    rule = f"one of its own, as `{field}`" if field != "body" else "a whole log of a finished run"
    return refused(refusal.detail.replace("--", ""), rule, None, field)


def _chosen(source: Source, options: Options) -> tuple[Options, list[str]]:
    """The first filter and metric of a log of lm-eval, where none is asked for."""
    filters: dict[str, None] = {}
    metrics: list[str] = []
    for _, line in source.lines():
        filters.setdefault(str(line.get("filter", "none")))
        metrics = metrics or list(line.get("metrics") or ())
    read_as = []
    if options.filter is None and len(filters) > 1:
        options = replace(options, filter=next(iter(filters)))
        read_as.append(f"filter {options.filter}, of {', '.join(filters)}")
    if options.metric is None and len(metrics) > 1:
        options = replace(options, metric=metrics[0])
        read_as.append(f"metric {options.metric}, of {', '.join(metrics)}")
    metric = options.metric or next(iter(metrics), "")
    if metric in _LOWER:
        options = replace(options, higher=False)
    return options, read_as
