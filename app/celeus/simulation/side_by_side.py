"""Two systems whose logs have a score for every item: their difference, without any sampling.

The interval of a sample that is all judged is for the mean of the population it was drawn from.

Losses are x_1 ... x_n in [0, 1], drawn independently from one population with the mean m. Before
each of them stakes are fixed by those before it, for the n that there are,

    lambda_t = sqrt(2 log(2 / alpha) / (n s_(t-1)))
    s_t      = (1/4 + sum of (x_i - mean_i)^2 for i <= t) / (t + 1)

with mean_i = (1/2 + x_1 + ... + x_i) / (i + 1). The wealths

    prod_t (1 + min(lambda_t, 1/(2m)) (x_t - m))
    prod_t (1 - min(lambda_t, 1/(2(1-m))) (x_t - m))

are martingales from 1 at the true m, and so each ever reaches 2 / alpha with a chance of at most
alpha / 2 (Ville). The first falls in m, the second rises: the interval ends where the largest
wealth on the way reaches it (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
variables by betting", section 4, for a sample of known size, looked at once).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.insights.figures import Figures
from celeus.core.interval import Interval
from celeus.core.plans.stopping import rounding
from celeus.intake.joining import Pair, Pairing, compare
from celeus.intake.rows import Row

Floats = NDArray[np.float64]
_HALVINGS = 60


def stakes(losses: Floats, alpha: float) -> Floats:
    """The stakes lambda_t of losses on the unit scale, each fixed by those before it."""
    size = losses.size
    count = np.arange(1, size + 1)
    mean = (0.5 + np.cumsum(losses)) / (count + 1)
    spread = (0.25 + np.cumsum((losses - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    found: Floats = np.sqrt(2.0 * np.log(2.0 / alpha) / (size * before))
    return found


def log_wealth(losses: Floats, stakes_: Floats, mean: float) -> Floats:
    """The logarithm of the wealth against a mean of at most ``mean``, above 0, after each loss."""
    bets = np.minimum(stakes_, 0.5 / mean)
    found: Floats = np.log1p(bets * (losses - mean)).cumsum()
    return found


def whole_sample_interval(
    losses: Floats, lower: float, upper: float, alpha: float
) -> tuple[float, float]:
    """Ends of the interval for the mean of a population, of losses on the scale given.

    Their order must not depend on them. Holds with a chance of at least 1 - ``alpha``, once. The
    mean of the sample is never outside.
    """
    unit = (losses - lower) / (upper - lower)
    bets, mean = stakes(unit, alpha), float(unit.mean())
    low = min(_least(unit, bets, alpha), mean)
    high = max(1.0 - _least(1.0 - unit, bets, alpha), mean)
    return lower + (upper - lower) * low, lower + (upper - lower) * high


def _least(losses: Floats, bets: Floats, alpha: float) -> float:
    """The least mean that the wealth against smaller ones does not exclude."""
    goal = np.log(2.0 / alpha)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if log_wealth(losses, bets, middle).max() >= goal:
            low = middle
        else:
            high = middle
    return low


Answer = Literal["yes", "no", "undecided"]

DIFFERENCES = (-1.0, 1.0)
ALPHA = 0.05
RIGHT = {
    (0.0, 0.0): "both",
    (0.0, 1.0): "only_a",
    (1.0, 0.0): "only_b",
    (1.0, 1.0): "neither",
}
"""The losses of both systems by who was right."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The mean loss of a less that of b on some items: above 0 b is better.

    ``mean`` is exact for these items, and 0 where only rounding parts it from 0. ``ends`` are those
    of the interval for the mean difference in a population from which the items were drawn
    independently, which holds with probability 1 - `ALPHA`, looked at once; None where they have
    different weights.
    """

    items: int
    mean: float
    ends: tuple[float, float] | None

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Self:
        """The difference on these pairs, in an order that does not depend on their losses."""
        values = np.array([pair.difference for pair in pairs])
        weights = [pair.weight for pair in pairs]
        mean = float(np.average(values, weights=weights))
        if abs(mean) <= rounding(Interval(*DIFFERENCES)):
            mean = 0.0
        if len({*weights}) > 1:
            return cls(values.size, mean, None)
        order = np.argsort([hashlib.sha256(pair.a.id.encode()).hexdigest() for pair in pairs])
        ends = whole_sample_interval(values[order], *DIFFERENCES, ALPHA)
        return cls(values.size, mean, ends)

    @property
    def better(self) -> str:
        """The better of a and b on these items, and its lead."""
        if not self.mean:
            return "neither is better"
        return f"{'b' if self.mean > 0 else 'a'} is better by {abs(self.mean):.4g}"

    @property
    def span(self) -> str:
        """The interval for the population in figures, rounded outwards, and how sure it is."""
        lower, upper = self.ends or DIFFERENCES
        figures = Figures(Interval(*DIFFERENCES), upper - lower)
        sure = f"{100 * (1 - ALPHA):g} %, looked at once"
        return f"{figures.below(lower)} to {figures.above(upper)} ({sure})"

    @property
    def lines(self) -> list[str]:
        """The difference on these items, and in a population, in sentences."""
        lines = [f"on these items {self.better}: exact, since all of them are scored"]
        if self.ends is not None:
            where = "of a population from which they were drawn at random"
            lines.append(f"{where}, loss of a less that of b: {self.span}")
        return lines

    def may_replace(self, margin: float) -> Answer:
        """True if b is worse than a by at most ``margin`` in the population."""
        lower, upper = self.ends or DIFFERENCES
        return "yes" if lower >= -margin else "no" if upper < -margin else "undecided"

    def equivalent(self, margin: float) -> Answer:
        """True if neither is better by more than ``margin`` in the population."""
        lower, upper = self.ends or DIFFERENCES
        if -margin <= lower and upper <= margin:
            return "yes"
        return "no" if lower > margin or upper < -margin else "undecided"


@dataclass(frozen=True)
class SideBySide:
    """Two systems on the items that both answered and that have a score of both."""

    pairing: Pairing

    @classmethod
    def of(cls, rows: Sequence[Row], a: str, b: str) -> Self:
        """Two systems of these rows; their scores are compared, so an answer may be missing."""
        if any(row.answer_text is None for row in rows):
            rows = [replace(row, answer=None, prediction=None) for row in rows]
        return cls(compare(rows, a, b))

    @cached_property
    def whole(self) -> Paired:
        """The difference on all items."""
        return Paired.of(self.pairing.judged)

    @cached_property
    def groups(self) -> dict[str, Paired]:
        """The difference by group, where there are several."""
        groups: dict[str, list[Pair]] = {}
        for pair in self.pairing.judged:
            if pair.a.group is not None:
                groups.setdefault(pair.a.group, []).append(pair)
        if len(groups) == 1:
            return {}
        return {name: Paired.of(pairs) for name, pairs in sorted(groups.items())}

    @cached_property
    def right(self) -> dict[str, list[str]]:
        """Ids of items by who was right (McNemar's table); empty where a loss is not 0 or 1."""
        found: dict[str, list[str]] = {name: [] for name in RIGHT.values()}
        for pair in self.pairing.judged:
            losses = float(pair.loss[0] or 0.0), float(pair.loss[1] or 0.0)
            if losses not in RIGHT:
                return {}
            found[RIGHT[losses]].append(pair.a.id)
        return found

    @property
    def unscored(self) -> int:
        """Items that both answered and that lack a score of one."""
        return len(self.pairing.pairs) - self.whole.items

    def mean_loss(self, side: int) -> float:
        """The mean loss of a (side 0) or b on these items."""
        pairs = self.pairing.judged
        losses = [pair.loss[side] or 0.0 for pair in pairs]
        return float(np.average(losses, weights=[pair.weight for pair in pairs]))
