"""LURE weights of the folded rounds, and the calibration of all rounds at once.

Notation: N items, t rounds folded; round m drew its item with probability q among n = N - m + 1.

    u = 1 + (N - t) / (N - m) (1 / (n q) - 1)        weight of a round, u = 1 when m = N

Items are drawn with unequal probabilities, so plain means of what was drawn would speak of what is
drawn often. The mean of u f over rounds is unbiased for the pool's mean of any f fixed beforehand,
and exact once the pool is exhausted (Farquhar et al. 2021; ``eprocess.lure``). Nothing certified
rests on this module.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.strata import Strata
from celeus.core.sampling.calibration import (
    LEAST_MEAN,
    LEAST_MOMENT,
    LEAST_SURROGATE,
    LINE_LABELS,
    PRIOR_SPREAD,
    RIDGE,
    SPREAD_LABELS,
)

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRounds:
    """The folded rounds that have a loss, in order: arrays of one length.

    ``loss`` is on the unit scale, 0 for the smallest loss and 1 for the largest. ``folded`` is the
    last folded round, judged or not, and ``basis`` that of every round's draw.
    """

    items: int
    folded: int
    round: Counts
    item: Counts
    basis: Counts
    q: Floats
    loss: Floats

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


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """``calibration`` after the last round, and ``used``: the surrogate each signal used."""

    used: Floats
    mean: Floats
    moment: Floats


def refit(strata: Strata, judged: JudgedRounds) -> Fit:
    """The fits of ``calibration`` for all rounds by running sums; the unit scale. O(t log t)."""
    stratum = strata.code[judged.item].astype(np.int64)
    x, loss, count = strata.base[stratum], judged.loss, strata.count
    weight = 1.0 / (judged.left * judged.q)
    columns = (weight, weight * x, weight * x * x, weight * loss, weight * x * loss)
    priors = (RIDGE, 0.0, RIDGE, 0.0, RIDGE)
    slope, intercept = _lines(
        [
            prior + np.concatenate(([0.0], np.cumsum(column)))
            for prior, column in zip(priors, columns, strict=True)
        ]
    )
    labels_before = np.searchsorted(judged.round, judged.basis, side="right")
    line = intercept[labels_before] + slope[labels_before] * x
    used = _shrunk(line, *_before(stratum, loss, labels_before))
    labels = np.bincount(stratum, minlength=count).astype(np.float64)
    losses: Floats = np.bincount(stratum, weights=loss, minlength=count).astype(np.float64)
    mean = _shrunk(intercept[-1] + slope[-1] * strata.base, labels, losses)
    squares = (loss - used) ** 2
    inner = np.clip(mean, LEAST_MEAN, 1.0 - LEAST_MEAN)
    factor = (squares.sum() + PRIOR_SPREAD) / ((used * (1.0 - used)).sum() + PRIOR_SPREAD)
    own = np.bincount(stratum, weights=squares, minlength=count)
    moment = (SPREAD_LABELS * factor * inner * (1.0 - inner) + own) / (SPREAD_LABELS + labels)
    return Fit(used, mean, np.maximum(moment, LEAST_MOMENT))


def _lines(sums: list[Floats]) -> tuple[Floats, Floats]:
    weight, x, xx, y, xy = sums
    slope = (weight * xy - x * y) / (weight * xx - x * x)
    return slope, (y - slope * x) / weight


def _before(stratum: Counts, loss: Floats, labels_before: Counts) -> tuple[Floats, Floats]:
    """Labels in the round's stratum among those known at its draw, and the sum of their losses."""
    order = np.argsort(stratum, kind="stable")
    # By stratum and label: where a stratum begins, and what was known of it.
    place = stratum[order] * (loss.size + 1) + order
    starts = np.searchsorted(place, stratum * (loss.size + 1))
    ends = np.searchsorted(place, stratum * (loss.size + 1) + labels_before)
    running = np.concatenate(([0.0], np.cumsum(loss[order])))
    return (ends - starts).astype(np.float64), running[ends] - running[starts]


def _shrunk(line: Floats, labels: Floats, losses: Floats) -> Floats:
    guess = np.clip(line, LEAST_SURROGATE, 1.0 - LEAST_SURROGATE)
    return np.asarray((LINE_LABELS * guess + losses) / (LINE_LABELS + labels))
