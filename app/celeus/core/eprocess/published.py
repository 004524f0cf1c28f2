"""Wealth on cells: which candidates still stand, and the interval they leave.

Candidates are cells [v_k, v_k + h] that tile [L, U], the last one cut at U. Wealth+ of a cell runs
at its upper edge and wealth- at its lower edge, each with the fraction of that edge: for every v
in the cell 1 + lam (x - m(v)) is at least the factor used, so the cell's wealth is a
supermartingale whatever true value it holds, and rejecting a cell rejects all of it (Ville's
inequality; CELEUS, Eqs. 2-3 give the wealth of a point). A cell is out once

    theta wealth+ + (1 - theta) wealth- >= 1 / alpha1.

The two sides may see two completions of the pool (METHOD 8): the ``plus`` side a risk that is at
most the true one, the ``minus`` side one that is at least the true one.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.betting import Bet, Bettor, stake_above, stake_below

Floats = NDArray[np.float64]


class WealthLost(ArithmeticError):
    """A wealth factor was not positive: the range of the round was wrong."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of losses."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Upper less lower end."""
        return self.upper - self.lower

    def cut(self, limits: "Interval") -> "Interval":
        """The part inside ``limits``; an interval beside them shrinks to their nearest end."""
        if limits.lower <= self.lower and self.upper <= limits.upper:
            return self
        return Interval(
            lower=min(max(self.lower, limits.lower), limits.upper),
            upper=max(min(self.upper, limits.upper), limits.lower),
        )

    def meets(self, other: "Interval") -> bool:
        """The two share at least one point."""
        return self.lower <= other.upper and other.lower <= self.upper


@dataclass(slots=True)
class Standing:
    """The running intersection of an interval with what still stands."""

    interval: Interval
    emptied: bool = False

    def narrow(self, hull: Interval | None, limits: Interval) -> bool:
        """Cut by the hull of the candidates and by the logical limits; says whether it changed.

        When nothing stands within the limits, an event of probability at most alpha has happened
        or the limits are narrower than a cell: the last interval stays, cut by the limits alone.
        """
        before = self.interval
        if hull is None or not hull.meets(limits):
            self.emptied = True
        else:
            self.interval = self.interval.cut(hull)
        self.interval = self.interval.cut(limits)
        return self.interval is not before and self.interval != before


class Side(NamedTuple):
    """One completion's bettor with the bet of the coming round, and then its signal."""

    bettor: Bettor
    bet: Bet
    value: float

    @property
    def scaled(self) -> float:
        """The number bet on, in [0, 1]."""
        return (self.value - self.bet.offset) / self.bet.scale


class Edges(NamedTuple):
    """Some edges of cells as a bet sees them: their centres, and how fast to stake on them."""

    centre: Floats
    speed: Floats | float


class Wealth:
    """Log wealth of the cells still standing. Cells leave for good, and only leave or split."""

    __slots__ = (
        "_above",
        "_below",
        "_edges",
        "_hull",
        "_level",
        "_lower",
        "_softness",
        "_theta",
        "_upper",
    )

    def __init__(
        self, span: Interval, cell: float, alpha1: float, *, theta: float, c: float
    ) -> None:
        count = max(1, math.ceil(span.width / cell - 1e-9))
        edges: Floats = span.lower + cell * np.arange(count + 1, dtype=np.float64)
        edges[-1] = span.upper
        # Cells without a gap share their edges; None once one between others is out.
        self._edges: Floats | None = edges
        self._hull: Interval | None = None
        self._lower: Floats = edges[:-1]
        self._upper: Floats = edges[1:]
        self._above: Floats = np.zeros(count)
        self._below: Floats = np.zeros(count)
        self._level = alpha1
        self._theta = theta
        self._softness = c

    @property
    def hull(self) -> Interval | None:
        """Hull of the cells still standing, or None when none is."""
        if not self._lower.size:
            return None
        if self._hull is None:
            self._hull = Interval(float(self._lower[0]), float(self._upper[-1]))
        return self._hull

    def bet(self, round_: int, plus: Side, minus: Side) -> None:
        """Play round ``round_`` on every cell and drop those that are out."""
        if not self._lower.size:
            return
        up, low = self._stakes(round_, plus, minus)
        # Cells stand in ascending order, and so do their centres.
        if not (up.centre[0] > 0.0 and low.centre[-1] < 1.0):
            self._keep((up.centre > 0.0) & (low.centre < 1.0))
            if not self._lower.size:
                return
            up, low = self._stakes(round_, plus, minus)
        above = stake_above(up.speed, up.centre, self._softness)
        above *= plus.scaled - up.centre
        above += 1.0
        below = stake_below(low.speed, low.centre, self._softness)
        below *= low.centre - minus.scaled
        below += 1.0
        if not (above.min() > 0.0 and below.min() > 0.0):
            message = f"wealth factor not positive in round {round_}"
            raise WealthLost(message)
        self._above += np.log(above, out=above)
        self._below += np.log(below, out=below)
        self._drop_rejected()

    def _stakes(self, round_: int, plus: Side, minus: Side) -> tuple[Edges, Edges]:
        """Centres and speeds at the upper edges and at the lower ones."""
        if plus is not minus or self._edges is None:
            return self._at(self._upper, round_, plus), self._at(self._lower, round_, minus)
        both = self._at(self._edges, round_, plus)
        centre, speed = both.centre, both.speed
        if isinstance(speed, float):
            return Edges(centre[1:], speed), Edges(centre[:-1], speed)
        return Edges(centre[1:], speed[1:]), Edges(centre[:-1], speed[:-1])

    def _at(self, edge: Floats, round_: int, side: Side) -> Edges:
        return Edges(side.bet.centre(edge), side.bettor.speed(edge, self._level, round_))

    def split(self, cell: float) -> None:
        """Cut every standing cell into equal parts of at most ``cell``; parts inherit wealth."""
        if not self._lower.size:
            return
        widest = float((self._upper - self._lower).max())
        parts = math.ceil(widest / cell - 1e-9)
        if parts <= 1:
            return
        step = (self._upper - self._lower) / parts
        offsets = np.arange(parts)
        lower = (self._lower[:, None] + step[:, None] * offsets).ravel()
        upper = (self._lower[:, None] + step[:, None] * (offsets + 1)).ravel()
        upper[parts - 1 :: parts] = self._upper
        self._lower, self._upper = lower, upper
        self._edges = None
        if np.array_equal(lower[1:], upper[:-1]):
            self._edges = np.append(lower, upper[-1:])
        self._above = np.repeat(self._above, parts)
        self._below = np.repeat(self._below, parts)

    def _drop_rejected(self) -> None:
        mixed = math.log(self._theta) + self._above
        np.logaddexp(mixed, math.log1p(-self._theta) + self._below, out=mixed)
        least = -math.log(self._level)
        if not mixed.max() < least:
            self._keep(mixed < least)

    def _keep(self, standing: NDArray[np.bool_]) -> None:
        self._hull = None
        kept = np.flatnonzero(standing)
        if self._edges is not None and kept.size and kept[-1] - kept[0] == kept.size - 1:
            start, stop = int(kept[0]), int(kept[-1]) + 1
            self._edges = self._edges[start : stop + 1]
            self._lower, self._upper = self._edges[:-1], self._edges[1:]
            self._above, self._below = self._above[start:stop], self._below[start:stop]
            return
        self._edges = None
        self._lower, self._upper = self._lower[kept], self._upper[kept]
        self._above, self._below = self._above[kept], self._below[kept]
