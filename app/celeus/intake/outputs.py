"""Logs of evaluation tools as sheets: an output a row, its own score the guess of its loss."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats.registry import read, sniff
from celeus.intake.joining import each_output, rows_of
from celeus.intake.reducers import EACH
from celeus.intake.rows import Log, Options
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import Known, Sheet, refused


def form_of(source: Source) -> str | None:
    """Return the name of the tool that wrote a log; None if it is no log."""
    try:
        found = sniff(source)
    except InvalidValue:
        return None
    return None if found == "table" else found


def sheet_of(form: str, source: Source, options: Options) -> Sheet:
    """The outputs of a log; refuses one that is not whole, or whose metric has to be chosen."""
    logs = _read(form, source, replace(options, reducer=EACH))
    # Options of the command are members of the query here
    notes = (line.replace("--", "") for log in logs for line in log.notes)
    read_as = [f"a log of {form}", *notes]
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
    if all(row["answer"] is None for row in rows):
        read_as.append("it holds no answers: a judge sees no more than the id and what was asked")
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    roles = {name: {"loss": "surrogate", "model": "hidden"}.get(name, name) for name in names}
    kept = [{name: row[name] for name in names} for row in rows]
    return Sheet(form, lambda: _numbered(kept), tuple(read_as), Known(roles, scale=(0.0, 1.0)))


def _numbered(rows: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(rows, 1)


def _read(form: str, source: Source, options: Options) -> list[Log]:
    try:
        return read(form, [source], options)
    except NeedsAnswer:
        raise
    except InvalidValue as refusal:
        raise _of_upload(refusal) from refusal


def _of_upload(refusal: InvalidValue) -> InvalidValue:
    """The refusal in the words of an upload: options of the command are members of the query."""
    field = refusal.field if refusal.field in {"metric", "filter"} else "body"
    rule = f"one of its own, as `{field}`" if field != "body" else "a whole log of a finished run"
    return refused(refusal.detail.replace("--", ""), rule, None, field)
