"""A session's answer in the few words of a badge, by its status.

Its interval is that of the session's sentence, rounded outwards in the same way: two ends, since
they need not lie at one distance from the estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from celeus.core.insights.figures import Figures, count, sure
from celeus.core.insights.sentences import is_settled, quantity_of
from celeus.core.interval import Interval
from celeus.units import PERCENT, PERCENT_SIGN, POINTS

Colour = Literal["green", "red", "blue", "grey"]
_NO_LABELS = "no labels yet"


@dataclass(frozen=True, slots=True)
class Badge:
    """The texts on the left and on the right, and the colour of the right side.

    Green: every question is answered yes; red: one is answered no; grey: there is nothing to say
    yet; blue: anything else.
    """

    label: str
    message: str
    colour: Colour


def badge_of(
    status: Mapping[str, Any], *, labels: int | None, names: tuple[str, str] | None
) -> Badge:
    """The badge of a status document.

    ``labels`` are those in its interval, None where nobody has counted, ``names`` the two systems
    of a comparison.
    """
    if status["best"] is not None:
        return _best(status)
    if status["table"] is not None:
        return _table(status)
    score = status["score"]
    label = _label(status, names)
    scale = Interval(status["scale"]["lower"], status["scale"]["upper"])
    if status["rounds"]["in_interval"] == 0 and not is_settled(status):
        decided = names is not None and (status["verdict"] or {}).get("round") == 0
        return Badge(label, _verdict(status, names) if decided else _NO_LABELS, "grey")
    figures = _figures(score, scale, settled=is_settled(status), points=names is not None)
    parts = [figures]
    if names is not None and status["verdict"] is not None:
        parts.insert(0, _verdict(status, names))
    if not is_settled(status):
        parts.append(sure(status["alpha"]))
    return Badge(label, _message(status, parts, labels), _colour(status))


def _message(status: Mapping[str, Any], parts: list[str], labels: int | None) -> str:
    if labels is not None:
        parts = [*parts, f"{count(labels)} label{'' if labels == 1 else 's'}"]
    if status.get("origin") is not None:
        parts.append("pushed")
    if status["state"] == "closed":
        parts.append("final")
    return ", ".join(parts)


def _label(status: Mapping[str, Any], names: tuple[str, str] | None) -> str:
    what = f"{names[0]} less {names[1]}" if names is not None else status["score"]["name"]
    return quantity_of(status, what).rstrip(",")


def _figures(score: Mapping[str, Any], scale: Interval, *, settled: bool, points: bool) -> str:
    share = score["unit"] == "share"
    sign = (POINTS if points else PERCENT_SIGN) if share else ""
    figures = Figures(scale, score["upper"] - score["lower"], PERCENT if share else 0)
    if settled:
        return f"exactly {figures.nearest(score['estimate'])}{sign}"
    low, high = figures.below(score["lower"]), figures.above(score["upper"])
    # A dash would be read as a minus
    dash = " to " if score["lower"] < 0.0 else "–"
    return f"{low}{dash}{high}{sign}"


def _verdict(status: Mapping[str, Any], names: tuple[str, str] | None) -> str:
    a, b = names or ("A", "B")
    return {
        "a_at_least_as_good": f"{a} at least as good",
        "b_at_least_as_good": f"{b} at least as good",
        "equivalent": "equivalent",
        "undecided": "undecided",
    }[status["verdict"]["answer"]]


def _colour(status: Mapping[str, Any]) -> Colour:
    answers = [decision["answer"] for decision in status["decisions"]]
    if "no" in answers:
        return "red"
    return "green" if answers and set(answers) == {"yes"} else "blue"


def _best(status: Mapping[str, Any]) -> Badge:
    best, certain = status["best"], sure(status["alpha"])
    label = f"best of {count(len(best['systems']))}"
    if best["winner"] is not None:
        return Badge(label, f"none better than {best['winner']}, {certain}", "blue")
    if status["rounds"]["in_interval"] == 0:
        return Badge(label, _NO_LABELS, "grey")
    if len(best["standing"]) == len(best["systems"]) and status["stop_reason"] != "exhausted":
        return Badge(label, "all still in", "blue")
    standing = count(len(best["standing"]))
    return Badge(label, f"none better than the best of {standing} still in, {certain}", "blue")


def _table(status: Mapping[str, Any]) -> Badge:
    table = status["table"]
    label = "claims"
    if status["rounds"]["in_interval"] == 0:
        return Badge(label, _NO_LABELS, "grey")
    if not table["wanted"]:
        return Badge(label, f"{count(table['claims'])} without a target", "blue")
    return Badge(label, f"{count(table['met'])} of {count(table['wanted'])} targets met", "blue")
