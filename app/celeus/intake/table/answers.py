"""Answers about a file as a request has them, and as options of its readers."""

from collections.abc import Mapping
from typing import Any

from celeus.errors import InvalidValue
from celeus.intake.rows import Options
from celeus.intake.table.numbers import by_column, ends_of, spelled

NAMES = ("metric", "filter", "better", "scale", "missing", "repeats", "rows", "answer")
"""The questions that are answered by their name; `mapping` answers for all columns."""
_WAYS = {"higher": True, "lower": False}


def options_of(answers: Mapping[str, Any], mapping: Mapping[str, str] | None = None) -> Options:
    """The options that these answers are.

    ``better`` and ``scale`` are lists of `higher`, `lower` or `1 to 5`, also for one column as
    `COLUMN=higher`. Refuses what is no answer.
    """
    ways = by_column(answers.get("better") or (), "better")
    for name, way in ways.items():
        if way not in _WAYS:
            given = f"{name}={way}" if name else way
            raise _refused("better", "higher or lower, or COLUMN=higher", given)
    scales = {}
    for name, text in by_column(answers.get("scale") or (), "scale").items():
        ends = ends_of(text)
        if ends is None:
            rule = "the least and the greatest score, such as 1 to 5"
            raise _refused("scale", rule, f"{name}={text}" if name else text)
        scales[name] = ends
    return Options(
        metric=answers.get("metric"),
        filter=answers.get("filter"),
        higher=_WAYS.get(ways.get("", "")),
        scale=scales.get("", (0.0, 1.0)),
        missing=tuple(answers.get("missing") or ()),
        roles=mapping,
        answer=answers.get("answer"),
        directions={name: _WAYS[way] for name, way in ways.items() if name},
        scales=scales,
        repeats=answers.get("repeats"),
        rows=answers.get("rows"),
    )


def answers_of(options: Options) -> dict[str, Any]:
    """The answers that these options are, without a mapping; what is not answered is left out."""
    ways = {"": options.higher} | dict(options.directions)
    better = [
        f"{name}={'higher' if way else 'lower'}".removeprefix("=")
        for name, way in ways.items()
        if way is not None
    ]
    scale = [f"{name}={spelled(ends)}".removeprefix("=") for name, ends in options.scales.items()]
    found = {
        "metric": options.metric,
        "filter": options.filter,
        "better": better,
        "scale": scale,
        "missing": [*options.missing],
        "repeats": options.repeats,
        "rows": options.rows,
        "answer": options.answer,
    }
    return {name: answer for name, answer in found.items() if answer}


def _refused(name: str, rule: str, value: str) -> InvalidValue:
    return InvalidValue(f"{name} must be {rule}.", field=name, rule=rule, value=value)
