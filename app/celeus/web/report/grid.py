"""Claims as one grid of groups by metrics, on the session's page and in its report."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode

from celeus.core.insights.figures import Figures, count
from celeus.core.insights.sentences import is_wide
from celeus.core.interval import Interval
from celeus.units import PERCENT, PERCENT_SIGN

Claims = Sequence[Mapping[str, Any]]
Order = Literal["plan", "doubt", "score", "name"]

ORDERS: Final[dict[Order, str]] = {
    "plan": "as planned",
    "doubt": "most in doubt first",
    "score": "best first",
    "name": "by name",
}
LEAST: Final = 0.8
"""Smallest width of a bar, in percent of its scale."""
TONES: Final = 5
_ALL = "All items"


class Head(NamedTuple):
    """A metric: its name, what is measured, and whether a high score is better."""

    metric: str
    measured: str
    higher: bool


class Cell(NamedTuple):
    """A claim: its interval and estimate in figures, and its bar in percent of the scale.

    ``tone`` goes from 0, the worst end of the scale, to TONES - 1; ``part`` is the query of its
    items.
    """

    metric: str
    ends: str
    estimate: str | None
    notes: str
    bar: tuple[float, float]
    at: float
    tone: int
    wide: bool
    part: str


class Line(NamedTuple):
    """The claims about all items or a group, one or none for every metric."""

    name: str
    added: str
    cells: list[Cell | None]


class Part(NamedTuple):
    """The lines of a group column; without a title that about all items."""

    title: str | None
    lines: list[Line]


class Grid(NamedTuple):
    """The claims of a session."""

    heads: list[Head]
    parts: list[Part]


def claims_grid(claims: Claims, order: Order = "plan") -> Grid:
    """Return the grid of a session's claims, with its lines in one of ORDERS."""
    firsts = {claim["metric"]: claim for claim in reversed(claims)}
    metrics = list(dict.fromkeys(claim["metric"] for claim in claims))
    heads = [_head(firsts[metric]) for metric in metrics]
    parts = []
    for column in dict.fromkeys(claim["column"] for claim in claims):
        lines: dict[tuple[str, int | None], list[Mapping[str, Any]]] = {}
        for claim in claims:
            if claim["column"] == column:
                lines.setdefault((claim["value"] or _ALL, claim["added"]), []).append(claim)
        ordered = sorted(lines.items(), key=lambda line: _rank(line[0][0], line[1], order))
        parts.append(Part(column, [_line(*key, line, metrics) for key, line in ordered]))
    return Grid(heads, parts)


def _rank(name: str, claims: Claims, order: Order) -> tuple[float, str]:
    if order == "doubt":
        return -max(_share(claim) for claim in claims), ""
    if order == "score":
        return -sum(map(_goodness, claims)) / len(claims), ""
    return 0.0, name if order == "name" else ""


def _head(claim: Mapping[str, Any]) -> Head:
    score, scale = claim["score"], claim["scale"]
    unit = "in percent" if score["unit"] == "share" else f"{scale['lower']:g} to {scale['upper']:g}"
    name = "" if score["name"] == claim["metric"] else f"{score['name']}, "
    return Head(claim["metric"], name + unit, score["better"] == "higher")


def _line(name: str, added: int | None, claims: Claims, metrics: Sequence[str]) -> Line:
    cells = {claim["metric"]: _cell(claim) for claim in claims}
    later = "" if added is None else f"added after {count(added)} label{'s' * (added != 1)}"
    return Line(name, later, [cells.get(metric) for metric in metrics])


def _cell(claim: Mapping[str, Any]) -> Cell:
    score, scale = claim["score"], Interval(**claim["scale"])
    share = score["unit"] == "share"
    figures = Figures(scale, score["upper"] - score["lower"], PERCENT if share else 0)
    sign = PERCENT_SIGN if share else ""
    *bar, at = places(Interval(score["lower"], score["upper"]), score["estimate"], scale)
    estimate = f"{figures.nearest(score['estimate'])}{sign}"
    part = {name: claim[name] for name in ("column", "value") if claim[name] is not None}
    return Cell(
        metric=claim["metric"],
        ends=f"{figures.below(score['lower'])} – {figures.above(score['upper'])}{sign}",
        estimate=estimate if claim["rounds"]["in_interval"] or claim["known"] else None,
        notes=_notes(claim),
        bar=(bar[0], bar[1]),
        at=at,
        tone=min(int(TONES * _goodness(claim)), TONES - 1),
        wide=is_wide(claim["lower"], claim["upper"], Interval(**claim["scale"])),
        part=urlencode(part),
    )


def places(interval: Interval, estimate: float, scale: Interval) -> tuple[float, float, float]:
    """Return start and width of a bar and the place of the estimate, in percent of the scale."""
    start, end, at = (
        100.0 * (value - scale.lower) / scale.width
        for value in (interval.lower, interval.upper, estimate)
    )
    width = max(end - start, LEAST)
    return min(start, 100.0 - width), width, at


def _share(claim: Mapping[str, Any]) -> float:
    """Return the width of the interval as a share of its scale."""
    scale = claim["scale"]
    return float((claim["upper"] - claim["lower"]) / (scale["upper"] - scale["lower"]))


def _goodness(claim: Mapping[str, Any]) -> float:
    """Return where the estimate lies on its scale: 1 at the best end, 0 at the worst."""
    scale = claim["scale"]
    return float((scale["upper"] - claim["estimate"]) / (scale["upper"] - scale["lower"]))


def _notes(claim: Mapping[str, Any]) -> str:
    """Return how many items are judged, and what is asked of the claim with its answers."""
    judged, drawable = claim["rounds"]["judged"], claim["items"] - claim["known"]
    notes = [f"{count(judged)} of {count(drawable)} judged"]
    if claim["whole"]:
        notes.append("judged whole")
    if claim["met"] is not None:
        notes.append("target met" if claim["met"] else "target not met yet")
    notes += [
        f"mean loss {answer['side'].replace('_', ' ')} {answer['threshold']:g}: {answer['answer']}"
        for answer in claim["answers"]
    ]
    return "; ".join(notes)
