"""LURE weights of the folded rounds, and the calibration of all rounds at once.

Notation: N items, t rounds folded; round m drew its item with probability q among n = N - m + 1.

    u = 1 + (N - t) / (N - m) (1 / (n q) - 1)        weight of a round, u = 1 when m = N

Items are drawn with unequal probabilities, so plain means of what was drawn would speak of what is
drawn often. The mean of u f over rounds is unbiased for the pool's mean of any f fixed beforehand,
and exact once the pool is exhausted (Farquhar et al. 2021; ``betting.point_estimate``). Nothing
certified rests on this module.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.strata import NOWHERE, Strata
from celeus.core.sampling.calibration import LEAST_SURROGATE, LINE_LABELS, Line

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRounds:
    """The folded rounds that have a loss, in order: arrays of one length.

    ``loss`` is on the unit scale, 0 for the smallest loss and 1 for the largest. ``folded`` is the
    last folded round, judged or not. ``drawn`` are the items of all folded rounds, also of those
    that nobody could judge.
    """

    items: int
    folded: int
    round: Counts
    item: Counts
    q: Floats
    loss: Floats
    drawn: Counts

    @property
    def left(self) -> Counts:
        """Items left before every round: n."""
        return self.items - self.round + 1

    @property
    def weight(self) -> Floats:
        """Weight of every round: u, never negative."""
        after = np.maximum(self.items - self.round, 1)
        share = (self.items - self.folded) / after
        u = 1.0 + share * (1.0 / (self.left * self.q) - 1.0)
        return np.asarray(np.where(self.round < self.items, u, 1.0))


def refit(strata: Strata, judged: JudgedRounds) -> Floats:
    """The surrogate that ``calibration`` has for every stratum after the last round, at once.

    On the unit scale; O(t).
    """
    stratum = strata.code[judged.item].astype(np.int64)
    x, loss, weight = strata.base[stratum], judged.loss, 1.0 / (judged.left * judged.q)
    if strata.item_weight is not None:
        taken = np.append(0.0, np.cumsum(strata.item_weight[judged.drawn]))
        left = float(strata.item_weight[strata.code != NOWHERE].sum()) - taken[judged.round - 1]
        weight = strata.item_weight[judged.item] / (left * judged.q)
    line = Line()
    line.weight += float(weight.sum())
    line.x += float(weight @ x)
    line.xx += float(weight @ (x * x))
    line.y += float(weight @ loss)
    line.xy += float(weight @ (x * loss))
    labels, losses = (
        np.bincount(stratum, weights=numbers, minlength=strata.count)
        for numbers in (np.ones(loss.size), loss)
    )
    guess = np.clip(line.at(strata.base), LEAST_SURROGATE, 1.0 - LEAST_SURROGATE)
    return np.asarray((LINE_LABELS * guess + losses) / (LINE_LABELS + labels))
