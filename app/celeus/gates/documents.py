"""Read the status of a session, or of one of its claims, that has a single interval."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celeus.client.calls import SESSIONS
from celeus.client.exchange import Flow, get
from celeus.client.refusals import Unreachable
from celeus.client.service import plain
from celeus.errors import InvalidValue

MOST_WHOLE = 2**53
SHARP = "sharp"
"""Policy of a session of many claims, whose status names none."""


@dataclass(frozen=True, slots=True)
class Part:
    """The claim of a table that is asked: a metric, of all items or of one group."""

    metric: str
    column: str = ""
    value: str | None = None


def part_of(metric: str | None, group: str | None) -> Part | None:
    """The claim of a metric, of all items or of a group given as COLUMN=VALUE."""
    if metric is None:
        if group is not None:
            raise InvalidValue("--group needs --metric", field="--group", rule="with --metric")
        return None
    if group is None:
        return Part(metric)
    column, is_one, value = group.partition("=")
    if not is_one or not column:
        rule = "COLUMN=VALUE"
        raise InvalidValue(f"--group must be {rule}", field="--group", rule=rule, value=group)
    return Part(metric, column, value)


def document(url: str, session: str, part: Part | None = None) -> Flow[dict[str, Any]]:
    """Return the status of a session of the service at ``url``.

    Of a table, one claim takes the place of the single one, and ``claim``
    names it; of others it is None. ``labels`` are those in the interval.
    """
    status = yield from get(f"{SESSIONS}/{session}")
    # The claim is read later, so that it is final where the session was
    claim = None if part is None else (yield from _claim(status, session, part))
    return _checked(status if claim is None else claim, url, session)


def _claim(status: object, session: str, part: Part) -> Flow[dict[str, Any]]:
    if not isinstance(status, dict) or not isinstance(status.get("table"), dict):
        message = f"{session} makes one claim, which has no --metric"
        raise InvalidValue(message, field="--metric", rule="left out")
    path = f"{SESSIONS}/{session}/claims"
    found = yield from get(path, metric=part.metric, column=part.column)
    rows = found.get("data") if isinstance(found, dict) else None
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("value") == part.value:
            numbers = {
                name: row.get(name) for name in ("lower", "upper", "estimate", "score", "scale")
            }
            words = {"decisions": row.get("answers"), "sentence": row.get("sentence")}
            level = status.get("alpha") if row.get("level") is None else row["level"]
            names = {"metric": part.metric, "column": part.column or None, "value": part.value}
            more = {"alpha": level, "claim": names, "policy": SHARP, "table": None}
            rounds = row.get("rounds")
            labels = rounds.get("in_interval") if isinstance(rounds, dict) else None
            return status | numbers | words | more | {"labels": labels}
    message = f"{session} has no group {part.value} in {part.column}"
    raise InvalidValue(message, field="--group", rule="COLUMN=VALUE of the session")


def _checked(answer: object, url: str, asked: str) -> dict[str, Any]:
    session = (
        {"claim": None, "labels": answer.get("round")} | answer if isinstance(answer, dict) else {}
    )
    several = {
        "best": "seeks the best of several systems",
        "table": "makes a table of claims (name one by --metric)",
    }
    kind = next((member for member in several if isinstance(session.get(member), dict)), None)
    if kind is not None and session.get("id") == asked:
        message = f"{asked} {several[kind]}: there is no single interval to ask"
        raise InvalidValue(message, field="session", rule="a session on one system, or on two")
    if not _fits(session, SESSION) or session["id"] != asked:
        raise Unreachable(f"{url} answers with something that is not {asked}")
    return session


def _is_word(text: object) -> bool:
    return isinstance(text, str) and plain(text) == text


def _is_number(value: object) -> bool:
    """Return True for a finite float and an integer within its range; booleans do not count."""
    return type(value) in (float, int) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST_WHOLE


def _fits(value: object, form: Any) -> bool:  # noqa: ANN401 -- a form of any kind
    """Return True if a stranger's value has the form; whatever has two ends has them in order.

    A dictionary holds the forms of members, a list that of its elements, a set what is allowed. A
    type is one of its instances, a function tells by itself.
    """
    match form:
        case dict():
            return (
                isinstance(value, dict)
                and all(name in value and _fits(value[name], part) for name, part in form.items())
                and ("lower" not in form or value["lower"] <= value["upper"])
            )
        case list():
            return isinstance(value, list) and all(_fits(element, form[0]) for element in value)
        case frozenset():
            return isinstance(value, str) and value in form
        case type():
            return isinstance(value, form)
    return bool(form(value))


def _or_none(form: object) -> Callable[[object], bool]:
    return lambda value: value is None or _fits(value, form)


ENDS = {"lower": _is_number, "upper": _is_number}
ROUND = {"round": _or_none(_is_whole)}
DECISION = {
    "side": frozenset({"at_most", "at_least"}),
    "threshold": _is_number,
    "answer": frozenset({"yes", "no", "undecided"}),
}
VERDICT = {
    "margin": lambda value: _is_number(value) and value >= 0,
    "answer": frozenset({"a_at_least_as_good", "b_at_least_as_good", "equivalent", "undecided"}),
}
SESSION: dict[str, object] = {
    **dict.fromkeys(("id", "target", "state", "policy", "method_version"), _is_word),
    **dict.fromkeys(("round", "revision", "changes", "labels"), _is_whole),
    **ENDS,
    "estimate": _is_number,
    "alpha": lambda value: _is_number(value) and 0 < value < 1,
    "fixed": bool,
    "decisions": [DECISION | ROUND],
    "verdict": _or_none(VERDICT | ROUND),
    "systems": _or_none({"a": str, "b": str}),
    "scale": lambda value: _fits(value, ENDS) and value["lower"] < value["upper"],
    "score": {"name": str, "unit": str, "estimate": _is_number, **ENDS},
    "sentence": str,
    "origin": object,
}
"""The members read of a session, with their types."""
