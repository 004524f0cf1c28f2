"""Repeated runs: items whose loss is chance, each of which any round may run again.

Every round draws from all items, and the loss of a run settles nothing: the plug-in part of the
signal is the mean of the surrogates m alone. They learn from the earlier runs of the item itself
(docs/evidence/method.md#24-repeated-runs).

Notation, on the unit scale: c runs of an item judged so far, s the sum of their losses, M the
calibrated mean of its stratum, learned from first runs only, l a loss, m the surrogate of its
signal.

    icc    clip((5 + sum of (l - M) (s / c - M) / max(M (1 - M), 0.04)) / (10 + terms), 0.05, 0.9)
           over the runs of items that had runs before
    c0     1 / icc - 1
    m      (c0 M + s) / (c0 + c)
    f      (10 + sum of (l - m)^2) / (10 + sum of m (1 - m))
    v      f m' (1 - m'),  m' = m cut to [0.04, 0.96] before an item's first run, else [0.01, 0.99]
    q      (1 - beta) sqrt(v) / (sum of sqrt(v)) + beta / N

Items with the same stratum, c and s have the same m and q: they make a class, and a round costs
O(classes). Any m and q fixed before the run keep the mean of the signal.

Where an earlier loss was corrected since a draw, m follows from the loss as it is now and q is the
one recorded. Only that of the item drawn is recorded: for the range of the signal the q of every
item counts as beta / N, below which no q is.
"""

from array import array
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Extremes, exact_range
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan
from celeus.core.pools.strata import Strata
from celeus.core.sampling.calibration import Calibration, Fit
from celeus.core.sampling.predictors import Expectation, Label, Predictor
from celeus.core.sampling.proposals import LEAST_MOMENT, Items, ProposedDraw

Floats = NDArray[np.float64]

PRIOR_LIKENESS, PRIOR_TERMS = 5.0, 10.0
"""Sum and number of terms that stand for what is not known of the likeness of an item's runs."""
LEAST_VARIANCE = 0.04
LEAST_ICC, LARGEST_ICC = 0.05, 0.9
PRIOR_SCATTER = 10.0
LEAST_FIRST, LEAST_LATER = 0.04, 0.01
"""Least distance of m from the ends of the scale, for v, before and after an item's first run."""


class ItemClass(NamedTuple):
    """The past that all items of a class share."""

    stratum: int
    runs: int
    total: float


class ItemClasses:
    """The items by their past; ``size`` counts those of every class, 0 where its place is free."""

    __slots__ = (
        "_free",
        "_members",
        "_place",
        "_where",
        "code",
        "runs",
        "size",
        "stratum",
        "total",
    )

    def __init__(self, strata: Strata) -> None:
        count = strata.count
        self.stratum = np.arange(count)
        self.runs: Floats = np.zeros(count)
        self.total: Floats = np.zeros(count)
        self.size: Floats = strata.size.astype(np.float64)
        self.code: Items = strata.code.astype(np.int32)
        self._members = [array("i", np.flatnonzero(self.code == k)) for k in range(count)]
        self._place: Items = np.zeros(self.code.size, dtype=np.int32)
        for members in self._members:
            self._place[members] = np.arange(len(members))
        self._where = {ItemClass(k, 0, 0.0): k for k in range(count)}
        self._free: list[int] = [k for k in range(count) if not self._members[k]]

    def past(self, item: int) -> ItemClass:
        """Return what is known of an item's runs."""
        k = int(self.code[item])
        return ItemClass(int(self.stratum[k]), int(self.runs[k]), float(self.total[k]))

    def member(self, k: int, place: int) -> int:
        """Return the item at a place of a class; places change as runs are judged."""
        return self._members[k][place]

    def add(self, item: int, loss: float) -> None:
        """Move an item to the class of its past with one more run of this loss."""
        before = self.past(item)
        self._leave(item, before)
        past = ItemClass(before.stratum, before.runs + 1, before.total + loss)
        k = self._where.get(past)
        if k is None:
            k = self._begin(past)
        self.code[item], self._place[item] = k, len(self._members[k])
        self._members[k].append(item)
        self.size[k] += 1.0

    def _leave(self, item: int, past: ItemClass) -> None:
        k, place = int(self.code[item]), int(self._place[item])
        members = self._members[k]
        last = members.pop()
        if last != item:
            members[place], self._place[last] = last, place
        self.size[k] -= 1.0
        if not members:
            del self._where[past]
            self._free.append(k)

    def _begin(self, past: ItemClass) -> int:
        if not self._free:
            size = self.size.size
            self._free = list(range(2 * size - 1, size - 1, -1))
            for name in ("runs", "total", "size"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(size)]))
            self.stratum = np.concatenate([self.stratum, np.zeros(size, dtype=np.int64)])
            self._members += [array("i") for _ in range(size)]
        k = self._free.pop()
        self._where[past] = k
        self.stratum[k], self.runs[k], self.total[k] = past
        return k


@dataclass(frozen=True, slots=True)
class RunsFit(Fit):
    """m and v of every class, and the probability q of each of its items."""

    q: Floats
    classes: ItemClasses


class RepeatsPredictor(Predictor):
    """Surrogates of all items, fitted to the runs judged so far; no item is ever used up."""

    __slots__ = (
        "_beta",
        "_calibration",
        "_classes",
        "_extremes",
        "_fit",
        "_likeness",
        "_lower",
        "_scatter",
        "_spread",
        "_terms",
        "_width",
    )

    def __init__(self, plan: Plan, strata: Strata) -> None:
        self._beta = plan.beta
        self._lower, self._width = plan.lower, plan.scale.width
        self._extremes = Extremes(plan.items, plan.lower, plan.upper, plan.lower, plan.upper)
        ends = np.zeros(strata.count), np.ones(strata.count)
        self._calibration = Calibration(strata.base, *ends)
        self._classes = ItemClasses(strata)
        self._likeness, self._terms = PRIOR_LIKENESS, PRIOR_TERMS
        self._scatter = self._spread = PRIOR_SCATTER
        self._fit = self._fitted()

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of all items."""
        mean = float(self._classes.size @ self._fit.mean)
        return self._lower * self._extremes.items + self._width * mean

    @property
    def fit(self) -> RunsFit:
        """The fit to all runs judged so far."""
        return self._fit

    def expect(self, draw: Draw, *, corrected: bool = False) -> Expectation:
        """Return the prediction of the next draw, by the runs judged so far."""
        fit, size, items = self._fit, self._classes.size, self._extremes.items
        mean = float(fit.mean[self._classes.code[draw.item]])
        held = size > 0.0
        surrogate = self._lower + self._width * fit.mean[held]
        moment = np.maximum(fit.moment, LEAST_MOMENT)
        q = fit.q[held]
        if corrected:
            q = np.full(q.size, self._beta / items)
        return Expectation(
            surrogate=self._lower + self._width * mean,
            surrogates_left=self.surrogates_left,
            reach=exact_range(0.0, surrogate, q, self._extremes),
            variance=float(size @ (moment / fit.q)) / (items * items),
            label=Label(draw.item, mean, 1.0 / (items * draw.q)),
        )

    def learn(self, label: Label, loss: float) -> None:
        """Refit the surrogates to the loss of a judged run."""
        unit = (loss - self._lower) / self._width
        self._scatter += (unit - label.surrogate) ** 2
        self._spread += label.surrogate * (1.0 - label.surrogate)
        past = self._classes.past(label.item)
        if past.runs:
            mean = float(self._calibration.fit.mean[past.stratum])
            covered = (unit - mean) * (past.total / past.runs - mean)
            self._likeness += covered / max(mean * (1.0 - mean), LEAST_VARIANCE)
            self._terms += 1.0
        else:
            self._calibration.record(past.stratum, unit, label.surrogate, label.weight)
        self._classes.add(label.item, unit)
        self._fit = self._fitted()

    def _fitted(self) -> RunsFit:
        classes = self._classes
        icc = min(max(self._likeness / self._terms, LEAST_ICC), LARGEST_ICC)
        first = 1.0 / icc - 1.0
        strata = self._calibration.fit.mean[classes.stratum]
        mean = (first * strata + classes.total) / (first + classes.runs)
        least = np.where(classes.runs > 0.0, LEAST_LATER, LEAST_FIRST)
        inner = np.minimum(np.maximum(mean, least), 1.0 - least)
        moment = self._scatter / self._spread * inner * (1.0 - inner)
        root = np.sqrt(moment)
        doubt = (1.0 - self._beta) / float(classes.size @ root)
        return RunsFit(mean, moment, doubt * root + self._beta / self._extremes.items, classes)


class RepeatsProposal:
    """Draws from all items: the coin chooses a class and an item in it. Nothing is used up."""

    __slots__ = ("drawn_in",)

    def __init__(self, items: int) -> None:
        self.drawn_in: Items = np.zeros(items, dtype=np.int32)

    def choose(self, coin: float, fit: Fit) -> ProposedDraw:
        """Return the next item and its probability."""
        fit = _runs_fit(fit)
        size = fit.classes.size
        reach = np.cumsum(size * fit.q)
        goal = coin * float(reach[-1])
        k = int(np.searchsorted(reach, goal, side="right"))
        if k == size.size or not size[k]:
            # Rounding put the coin on the very end of the scale
            k = int(np.flatnonzero(size)[-1])
        before = float(reach[k - 1]) if k else 0.0
        place = int((goal - before) / float(fit.q[k]))
        item = fit.classes.member(k, min(max(place, 0), int(size[k]) - 1))
        return ProposedDraw(item, float(fit.q[k]))

    def chance(self, item: int, fit: Fit) -> ProposedDraw:
        """Return an item with the probability that it would be drawn with now."""
        fit = _runs_fit(fit)
        return ProposedDraw(item, float(fit.q[fit.classes.code[item]]))

    def take(self, item: int, round_: int) -> None:
        """Leave the item to later rounds."""


def _runs_fit(fit: Fit) -> RunsFit:
    if not isinstance(fit, RunsFit):
        raise TypeError(fit)
    return fit
