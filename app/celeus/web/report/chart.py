"""A chart of the interval by labels: the numbers of an SVG, which a template writes out.

Places are in the units of the SVG's view box, from its upper left corner.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from celeus.operations.insights.report import Point

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 48
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
class Chart:
    """Coordinates that the template draws; ``around``: the ends of the band around 0."""

    band: str
    middle: str
    across: Sequence[Tick]
    up: Sequence[Tick]
    levels: Sequence[Mark]
    moments: Sequence[Mark]
    around: tuple[float, float] | None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True)
class ChartData:
    """Data of a chart: scores, marks on the score's scale, and a band of ``margin`` around 0.

    Numbers on the axis have their point moved by ``shift`` places.
    """

    points: Sequence[Point]
    lower: float
    upper: float
    levels: Sequence[Mark] = ()
    moments: Sequence[Mark] = ()
    margin: float = 0.0
    shift: int = 0


def chart(data: ChartData) -> Chart:
    """Return the chart of the data; before the first label the interval is the whole scale."""
    points = [Point(0, math.nan, data.lower, data.upper), *data.points]
    last = max(points[-1].round, 1)
    low, high = _span(data, points)

    def across(round_: float) -> float:
        return LEFT + (WIDTH - RIGHT - LEFT) * round_ / last

    def up(loss: float) -> float:
        # Coordinates far outside are shortened; a viewer cuts at the picture's edges.
        share = min(max((loss - low) / (high - low), -1.0), 2.0)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share

    ends = [f"{across(point.round):.2f},{up(point.upper):.2f}" for point in points]
    ends += [f"{across(point.round):.2f},{up(point.lower):.2f}" for point in reversed(points)]
    middle = [f"{across(point.round):.2f},{up(point.estimate):.2f}" for point in points[1:]]
    return Chart(
        band="M" + "L".join(ends) + "Z",
        middle="M" + "L".join(middle) if middle else "",
        across=[Tick(across(number), f"{number:g}") for number in nice(0, last, whole=True)],
        up=[Tick(up(number), _label(number * 10**data.shift)) for number in nice(low, high)],
        levels=[replace(mark, at=up(mark.at)) for mark in data.levels if low <= mark.at <= high],
        around=(up(data.margin), up(-data.margin)) if data.margin else None,
        moments=[replace(mark, at=across(mark.at)) for mark in data.moments],
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


def thin(points: Sequence[Point], rows: int) -> list[Point]:
    """Return about ``rows`` of the points, the last one among them."""
    step = max(1, -(-len(points) // rows))
    return [*reversed(points[::-1][::step])]
