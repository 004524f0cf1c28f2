"""A chart of the interval by labels: the numbers of an SVG, which a template writes out.

Places are in percent of the picture's width and height, from its upper left corner.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise

from celeus.core.insights.figures import count
from celeus.operations.sessions.history import Point

TICKS = 6
CUT_AFTER = 0.12
"""First share of the labels, whose wide intervals may extend beyond the picture."""
MARGIN = 0.08


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis and its number."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A straight line across the picture: its place, the kind that sets its look, its name."""

    at: float
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The interval after a round in figures; ``sentence`` is all of them in words."""

    round: int
    estimate: str
    lower: str
    upper: str
    width: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Spot:
    """A strip of the picture around a point, which leads to its label: its start and width."""

    start: float
    width: float
    row: Row


@dataclass(frozen=True, slots=True)
class Chart:
    """Places that the template draws; ``around``: start and height of the band around 0."""

    band: str
    middle: str
    across: Sequence[Tick]
    up: Sequence[Tick]
    levels: Sequence[Mark]
    moments: Sequence[Mark]
    around: tuple[float, float] | None
    spots: Sequence[Spot]


@dataclass(frozen=True, slots=True)
class ChartData:
    """Data of a chart: scores, marks on the score's scale, and a band of ``margin`` around 0.

    The axis goes to round ``last`` at least. Its numbers have their point moved by ``shift``
    places, and ``sign`` behind them. ``whole`` shows the whole scale.
    """

    points: Sequence[Point]
    lower: float
    upper: float
    levels: Sequence[Mark] = ()
    moments: Sequence[Mark] = ()
    margin: float = 0.0
    shift: int = 0
    sign: str = ""
    last: int = 1
    whole: bool = False


def chart(data: ChartData, rows: Sequence[Row] = ()) -> Chart:
    """Return the chart of the data; before the first label the interval is the whole scale.

    Each of the ``rows`` has a spot.
    """
    points = [Point(0, math.nan, data.lower, data.upper), *data.points]
    last = max(points[-1].round, data.last)
    low, high = (data.lower, data.upper) if data.whole else _span(data, points)

    def across(round_: float) -> float:
        return 100.0 * round_ / last

    def up(score: float) -> float:
        # Coordinates far outside are shortened; a viewer cuts at the picture's edges.
        share = min(max((score - low) / (high - low), -1.0), 2.0)
        return 100.0 * (1.0 - share)

    ends = [f"{across(point.round):.2f},{up(point.upper):.2f}" for point in points]
    ends += [f"{across(point.round):.2f},{up(point.lower):.2f}" for point in reversed(points)]
    middle = [f"{across(point.round):.2f},{up(point.estimate):.2f}" for point in points[1:]]
    edges = [0.0, *(across((a.round + b.round) / 2) for a, b in pairwise(rows)), 100.0]
    return Chart(
        band="M" + "L".join(ends) + "Z",
        middle="M" + "L".join(middle) if middle else "",
        across=[Tick(across(number), count(int(number))) for number in nice(0, last, whole=True)],
        up=[
            Tick(up(value), _label(value * 10**data.shift) + data.sign) for value in nice(low, high)
        ],
        levels=[replace(mark, at=up(mark.at)) for mark in data.levels if low <= mark.at <= high],
        around=(up(data.margin), up(-data.margin) - up(data.margin)) if data.margin else None,
        moments=[replace(mark, at=across(mark.at)) for mark in data.moments],
        spots=[Spot(a, b - a, row) for (a, b), row in zip(pairwise(edges), rows, strict=False)],
    )


def nice(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return round numbers from ``low`` to ``high``, about TICKS of them."""
    rough = Decimal(repr((high - low) / TICKS))
    power = Decimal(10) ** rough.adjusted()
    step = next(factor * power for factor in map(Decimal, (1, 2, 5, 10)) if factor * power >= rough)
    if whole:
        step = max(step, Decimal(1))
    first, last = math.ceil(Decimal(repr(low)) / step), math.floor(Decimal(repr(high)) / step)
    return [float(number * step) for number in range(first, last + 1)]


def _span(data: ChartData, points: Sequence[Point]) -> tuple[float, float]:
    """Return the range to show: all intervals but the first wide ones, and the levels."""
    begin = CUT_AFTER * points[-1].round
    visible = [point for point in points if point.round >= begin] or [points[-1]]
    levels = [mark.at for mark in data.levels]
    levels += [-data.margin, data.margin] if data.margin else []
    low = min([point.lower for point in visible] + levels)
    high = max([point.upper for point in visible] + levels)
    room = MARGIN * (high - low) or MARGIN * (data.upper - data.lower)
    low, high = max(data.lower, low - room), min(data.upper, high + room)
    return (low, high) if low < high else (data.lower, data.upper)


def _label(number: float) -> str:
    return f"{number:.6g}".replace("-", "\N{MINUS SIGN}")
