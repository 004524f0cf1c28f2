"""Labels by precision of a plan: read off its curve, and drawn as the numbers of an SVG.

Places are in percent of the picture's width and height; both axes are logarithmic, finer to the
right.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from celeus.api.insights.planning import PlannedPoint, PolicyPlanOut
from celeus.web.report.chart import Tick
from celeus.web.wording import short

_MARKS: Final = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
"""Round precisions between the points of a curve that may be chosen, in each decade."""
_TICKS: Final = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))
_FEW: Final = 3
_NEAR: Final = 1e-9
_ROOM: Final = 1.15
_UNITS: Final = (("hours", 3600), ("minutes", 60), ("seconds", 1))


class Labels(NamedTuple):
    """Labels at a precision; ``simulated`` where they are not read off between two points."""

    median: float
    low: float
    high: float
    reached: float
    runs: int
    simulated: bool


class Spot(NamedTuple):
    """A strip of the picture in which a precision is chosen."""

    start: float
    width: float
    precision: float


class Mark(NamedTuple):
    """The chosen precision, and what it takes."""

    x: float
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Places that the template draws; ``lines`` are the medians by policy, the chosen one first."""

    band: str
    lines: Sequence[tuple[str, str]]
    across: Sequence[Tick]
    labels: Sequence[Tick]
    unit: str
    times: Sequence[Tick]
    spots: Sequence[Spot]
    mark: Mark | None

    def step(self, precision: float) -> int:
        """Return which of the precisions that may be chosen is the nearest."""
        off = [abs(math.log(spot.precision / precision)) for spot in self.spots]
        return off.index(min(off))


def points_of(plan: PolicyPlanOut) -> list[PlannedPoint]:
    """Return the points of a policy from coarse to fine; none where it stops at its answers."""
    return [point for point in plan.curve if point.precision is not None]


def labels_of(point: PlannedPoint) -> Labels:
    """Return the labels of a point of a curve."""
    labels = point.labels
    return Labels(
        labels.median, labels.low, labels.high, point.reached, point.runs, not point.extrapolated
    )


def labels_at(plan: PolicyPlanOut, precision: float) -> Labels | None:
    """Return labels on the straight line between two points; None beside the curve."""
    points = [(point.precision or 0.0, labels_of(point)) for point in points_of(plan)]
    after = next(
        (index for index, (width, _) in enumerate(points) if width <= precision * (1 + _NEAR)), None
    )
    if after is None or precision > points[0][0] * (1 + _NEAR):
        return None
    width, fine = points[after]
    if abs(width / precision - 1) < _NEAR:
        return fine
    before, coarse = points[after - 1]
    part = math.log(before / precision) / math.log(before / width)

    def between(start: float, end: float) -> float:
        # No label is next to one on such a scale
        return round(math.exp((1 - part) * math.log(max(start, 1)) + part * math.log(max(end, 1))))

    return Labels(
        between(coarse.median, fine.median),
        between(coarse.low, fine.low),
        between(coarse.high, fine.high),
        min(coarse.reached, fine.reached),
        min(coarse.runs, fine.runs),
        simulated=False,
    )


def curve_of(plans: Sequence[PolicyPlanOut], precision: float, seconds: float) -> Curve:
    """Return the curves of policies, the chosen one first, with a precision marked.

    ``seconds`` are those that a label takes.
    """
    widths = [point.precision or 0.0 for point in points_of(plans[0])]
    read = [[labels_at(plan, width) for width in widths] for plan in plans]
    known = [labels for line in read for labels in line if labels is not None]
    most = max(labels.high for labels in known) * _ROOM
    least = max(min(labels.low for labels in known), 1.0) / _ROOM

    def across(width: float) -> float:
        return 100.0 * math.log(widths[0] / width) / math.log(widths[0] / widths[-1])

    def up(labels: float) -> float:
        return 100.0 * math.log(most / max(labels, least)) / math.log(most / least)

    def path(numbers: Iterable[float | None], places: Sequence[float]) -> str:
        drawn = (
            f"{across(width):.2f},{up(number):.2f}"
            for width, number in zip(places, numbers, strict=True)
            if number is not None
        )
        return "M" + "L".join(drawn)

    chosen = [labels for labels in read[0] if labels is not None]
    ends = [labels.high for labels in chosen] + [labels.low for labels in reversed(chosen)]
    found = labels_at(plans[0], precision)
    steps = sorted({*widths, *_round(widths[-1], widths[0], [_MARKS])}, reverse=True)
    unit, scale = next((unit for unit in _UNITS if seconds * max(ends) >= 2 * unit[1]), _UNITS[-1])
    pace = seconds / scale
    edges = [0.0, *((across(start) + across(end)) / 2 for start, end in pairwise(steps)), 100.0]
    return Curve(
        band=path(ends, widths + widths[::-1]) + "Z",
        lines=[
            (plan.policy, path((labels and labels.median for labels in line), widths))
            for plan, line in zip(plans, read, strict=True)
        ],
        across=[Tick(across(width), short(width)) for width in _round(widths[-1], widths[0])],
        labels=[Tick(up(labels), _brief(labels)) for labels in _round(least, most)],
        unit=unit,
        times=[Tick(up(t / pace), _brief(t)) for t in _round(least * pace, most * pace)],
        spots=[Spot(a, b - a, step) for (a, b), step in zip(pairwise(edges), steps, strict=True)],
        mark=None
        if found is None
        else Mark(across(precision), up(found.low), up(found.median), up(found.high)),
    )


def _brief(value: float) -> str:
    """Return a number in little room: thousands by a k."""
    return f"{short(value / 1000)}k" if value >= 1000 else short(value)


def _round(least: float, most: float, choices: Sequence[Sequence[float]] = _TICKS) -> list[float]:
    """Return round numbers of this range, as many as a short axis has room for."""
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    found: list[float] = []
    for marks in choices:
        numbers = [float(f"{mark}e{decade}") for decade in decades for mark in marks]
        found = [number for number in numbers if least <= number <= most]
        if len(found) >= _FEW:
            break
    return found
