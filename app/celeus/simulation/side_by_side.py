"""Two systems whose logs have a score for every item: their difference, without any sampling."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np

from celeus.core.betting.whole_sample import whole_sample_interval
from celeus.core.insights.figures import Figures
from celeus.core.interval import Interval
from celeus.core.plans.stopping import rounding
from celeus.intake.joining import Pair, Pairing, compare
from celeus.intake.rows import Row

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
        """Which of a and b is better on these items, and by how much."""
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
