"""Read the status of a session, or of one of its claims, that has a single interval."""

import sys
from dataclasses import dataclass
from typing import Any

from celeus.client.calls import SESSIONS
from celeus.client.exchange import Flow, get
from celeus.client.refusals import Unreachable
from celeus.client.service import plain
from celeus.errors import InvalidValue

MOST_WHOLE = 2**53
TEXTS = ("id", "target", "state", "policy", "method_version")
NUMBERS = ("alpha", "lower", "upper", "estimate")
NULLABLE = frozenset({"verdict", "systems", "origin"})
WHOLE_NUMBERS = ("round", "revision", "changes", "labels")
SHARP = "sharp"
"""Policy of a session of many claims, whose status names none."""
ANSWERS = ("yes", "no", "undecided")
VERDICTS = ("a_at_least_as_good", "b_at_least_as_good", "equivalent", "undecided")


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

    Of a table, what one claim says stands in the place of what a single one would, and ``claim``
    names it; of others it is None. ``labels`` are those in the interval.
    """
    told = yield from get(f"{SESSIONS}/{session}")
    # The claim is read later, so that it is final where the session was
    claim = None if part is None else (yield from _claim(told, session, part))
    return _checked(told if claim is None else claim, url, session)


def _claim(told: object, session: str, part: Part) -> Flow[dict[str, Any]]:
    if not isinstance(told, dict) or not isinstance(told.get("table"), dict):
        message = f"{session} makes one claim, which has no --metric"
        raise InvalidValue(message, field="--metric", rule="left out")
    path = f"{SESSIONS}/{session}/claims"
    found = yield from get(path, metric=part.metric, column=part.column)
    rows = found.get("data") if isinstance(found, dict) else None
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("value") == part.value:
            own = {name: row.get(name) for name in ("lower", "upper", "estimate", "score", "scale")}
            said = {"decisions": row.get("answers"), "sentence": row.get("sentence")}
            level = told.get("alpha") if row.get("level") is None else row["level"]
            names = {"metric": part.metric, "column": part.column or None, "value": part.value}
            more = {"alpha": level, "claim": names, "policy": SHARP, "table": None}
            rounds = row.get("rounds")
            labels = rounds.get("in_interval") if isinstance(rounds, dict) else None
            return told | own | said | more | {"labels": labels}
    message = f"{session} has no group {part.value} in {part.column}"
    raise InvalidValue(message, field="--group", rule="COLUMN=VALUE of the session")


def _checked(told: object, url: str, asked: str) -> dict[str, Any]:
    session = {"claim": None, "labels": told.get("round")} | told if isinstance(told, dict) else {}
    several = {
        "best": "seeks the best of several systems",
        "table": "makes a table of claims (name one by --metric)",
    }
    kind = next((it for it in several if isinstance(session.get(it), dict)), None)
    if kind is not None and session.get("id") == asked:
        message = f"{asked} {several[kind]}: there is no single interval to ask"
        raise InvalidValue(message, field="session", rule="a session on one system, or on two")
    if not _is_session(session) or session["id"] != asked:
        raise Unreachable(f"{url} answers with something that is not {asked}")
    return session


def _is_session(document: dict[str, Any]) -> bool:
    """Return True if a document has the members read here, with values a session may have."""
    return (
        all(_is_word(document.get(name)) for name in TEXTS)
        and all(_is_number(document.get(name)) for name in NUMBERS)
        and all(_is_whole(document.get(name)) for name in WHOLE_NUMBERS)
        and document["lower"] <= document["upper"]
        and 0 < document["alpha"] < 1
        and document.keys() >= NULLABLE
        and isinstance(document.get("fixed"), bool)
        and isinstance(document.get("decisions"), list)
        and all(map(_is_decision, document["decisions"]))
        and _is_verdict(document["verdict"])
        and _are_systems(document["systems"])
        and _is_score(document.get("score"))
        and _is_scale(document.get("scale"))
        and isinstance(document.get("sentence"), str)
    )


def _is_word(text: object) -> bool:
    return isinstance(text, str) and plain(text) == text


def _is_number(value: object) -> bool:
    """Return True for a finite float and an integer within its range; booleans do not count."""
    return type(value) in (float, int) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST_WHOLE


def _is_decision(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.get("side") in ("at_most", "at_least")
        and _is_number(one.get("threshold"))
        and one.get("answer") in ANSWERS
        and (one.get("round") is None or _is_whole(one["round"]))
    )


def _is_verdict(one: object) -> bool:
    return one is None or (
        isinstance(one, dict)
        and _is_number(one.get("margin"))
        and one["margin"] >= 0
        and one.get("answer") in VERDICTS
        and (one.get("round") is None or _is_whole(one["round"]))
    )


def _are_systems(names: object) -> bool:
    return names is None or (
        isinstance(names, dict) and all(isinstance(names.get(side), str) for side in ("a", "b"))
    )


def _is_scale(ends: object) -> bool:
    return (
        isinstance(ends, dict)
        and all(_is_number(ends.get(name)) for name in ("lower", "upper"))
        and ends["lower"] < ends["upper"]
    )


def _is_score(one: object) -> bool:
    return (
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in ("name", "unit"))
        and all(_is_number(one.get(name)) for name in ("estimate", "lower", "upper"))
        and one["lower"] <= one["upper"]
    )
