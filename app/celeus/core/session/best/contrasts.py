"""Contrasts: what the labels say of the difference of every two systems.

Notation, for a pair of systems i and o, losses on the unit scale: e = (l_i - l_o) / 2 the half
difference of an item, N items, J those not drawn before the round. Only an item whose two answers
differ has an e that is not 0: in stratum k, c_k such items have been judged, rem_k are left.

    g      sum of e / (20 + labels)                                    over all that were judged
    m_k    (16 g + sum of e in k) / (16 + c_k)                         surrogate of e
    f      (3 + sum of (e - m)^2) / (3 + sum of (1/4 - m^2))
    v_k    (40 f (1/4 - m_k^2) + sum of (e - m)^2 in k) / (40 + c_k)
    P      (sum of e seen + sum of rem_k m_k) / N
    w      sum of rem_k max(v_k, 0.001) / (N^2 q_k)
    S      P + (e - m_k) / (N q) where the two answers differ, else P

The mean of S over the draw is the mean of e over the pool, since an item with the same answers adds
nothing, whatever its probability. Where answers are not given, 0.05 stands for 1/4 - m^2 and 2 for
3. What is said of a round before its loss comes from ``forecast``, which sees no loss of it.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from celeus.core.betting.moments import LEAST_RATIO, PRIOR_ROUNDS
from celeus.core.pools.strata import Strata
from celeus.core.sampling.calibration import LEAST_MEAN, LINE_LABELS, PRIOR_SPREAD, SPREAD_LABELS
from celeus.core.sampling.predictors import DIFFERENCE_MOMENT
from celeus.core.sampling.proposals import LEAST_MOMENT
from celeus.core.session.best.candidates import Candidates, Floats, Indices, Pairs

OVERALL_LABELS = 20.0
"""The mean of a pair is shrunk to 0 as by that many labels."""
MOST = 0.5
"""Largest half difference."""
CERTAIN = 1e-15
"""A signal of less variance has no items left that could move it."""


class Forecast(NamedTuple):
    """The coming signals of some pairs, before the loss; shapes [pairs] and [pairs, K].

    ``variance`` is w, ``centre`` is mu, ``ratio`` says how much more past signals scattered.
    ``mean`` is m, ``left`` is rem, and ``reach`` is N q of every stratum.
    """

    pairs: Pairs
    plug_in: Floats
    variance: Floats
    centre: Floats
    ratio: Floats
    mean: Floats
    left: Floats
    reach: Floats

    def ends(self, rows: Indices, sign: Floats) -> tuple[Floats, Floats]:
        """Where the signals of some pairs must lie, each with its sign."""
        mean, present = sign[:, None] * self.mean[rows], self.left[rows] > 0.0
        lower = np.where(present, (-MOST - mean) / self.reach, 0.0).min(axis=1)
        upper = np.where(present, (MOST - mean) / self.reach, 0.0).max(axis=1)
        middle = sign * self.plug_in[rows]
        return middle + lower, middle + upper


@dataclass(slots=True)
class Totals:
    """Sums over all labels, of all pairs of k systems, whatever the strata: shape [pairs of k].

    ``observed`` sums e, the others are those of ``betting.moments``.
    """

    observed: Floats
    weighted: Floats
    precision: Floats
    deviation: Floats
    rounds: Floats

    @classmethod
    def of(cls, pairs: int) -> Self:
        """Before the first label."""
        return cls(*np.zeros((5, pairs)))

    def moments(self, place: Indices, start: Floats) -> tuple[Floats, Floats]:
        """Mu and ratio of some pairs; mu is ``start`` before a pair's first signal."""
        precision = self.precision[place]
        seen = precision > 0.0
        centre = np.where(seen, self.weighted[place] / np.where(seen, precision, 1.0), start)
        ratio = (PRIOR_ROUNDS + self.deviation[place]) / (PRIOR_ROUNDS + self.rounds[place])
        return np.clip(centre, -MOST, MOST), np.maximum(ratio, LEAST_RATIO)

    def record(self, forecast: Forecast, signal: Floats) -> None:
        """Record the signals of a round, one a pair of its forecast."""
        kept = forecast.variance > CERTAIN
        place, variance = forecast.pairs.place[kept], forecast.variance[kept]
        self.weighted[place] += signal[kept] / variance
        self.precision[place] += 1.0 / variance
        self.deviation[place] += (signal[kept] - forecast.centre[kept]) ** 2 / variance
        self.rounds[place] += 1.0


class Contrasts:
    """The contrasts of the pairs of some systems in given strata; shapes [pairs, K].

    ``mean`` is m, ``moment`` is v, ``left`` is rem.
    """

    __slots__ = (
        "_candidates",
        "_labels",
        "_squares",
        "_sums",
        "left",
        "mean",
        "moment",
        "pairs",
        "strata",
    )

    def __init__(self, candidates: Candidates, pairs: Pairs, strata: Strata) -> None:
        self._candidates = candidates
        self.pairs = pairs
        self.strata = strata
        self.left = candidates.differing(pairs, strata.code, strata.count)
        self._labels, self._sums, self._squares = np.zeros((3, *self.left.shape))
        self._fit()

    def forecast(self, totals: Totals, q: Floats) -> Forecast:
        """The coming signals, of an item drawn with the probabilities ``q`` of the strata."""
        items, place = self._candidates.items, self.pairs.place
        plug_in = (totals.observed[place] + (self.left * self.mean).sum(axis=1)) / items
        reach = items * q
        variance = (self.left * np.maximum(self.moment, LEAST_MOMENT)) @ (1.0 / (items * reach))
        # The fit's arrays are replaced and never changed; those of the items left are.
        left = self.left.copy()
        moments = totals.moments(place, plug_in)
        return Forecast(self.pairs, plug_in, variance, *moments, self.mean, left, reach)

    def signals(self, forecast: Forecast, item: int, losses: Floats) -> Floats:
        """The signals of all pairs at an item with these losses of the k systems."""
        stratum = int(self.strata.code[item])
        differ = self._candidates.differ(np.array([item]), self.pairs)[0]
        residual = self.pairs.half(losses) - forecast.mean[:, stratum]
        shift = np.where(differ, residual / forecast.reach[stratum], 0.0)
        return np.asarray(forecast.plug_in + shift)

    def limits(self, totals: Totals) -> tuple[Floats, Floats]:
        """Where the mean half difference of every pair lies, whatever the items left are."""
        observed, open_ = totals.observed[self.pairs.place], MOST * self.left.sum(axis=1)
        items = self._candidates.items
        return (observed - open_) / items, (observed + open_) / items

    def record(self, items: Indices, losses: Floats) -> None:
        """Judged items are left no longer; ``losses`` are those of the k systems, [items, k]."""
        differ = self._candidates.differ(items, self.pairs)
        half = np.where(differ, self.pairs.half(losses), 0.0)
        code = self.strata.code[items]
        for stratum in np.unique(code[code >= 0]):
            here = code == stratum
            labels = differ[here].sum(axis=0)
            self.left[:, stratum] -= labels
            self._labels[:, stratum] += labels
            self._sums[:, stratum] += half[here].sum(axis=0)
            self._squares[:, stratum] += np.square(half[here]).sum(axis=0)
        self._fit()

    def _fit(self) -> None:
        labels, sums = self._labels, self._sums
        overall = sums.sum(axis=1) / (OVERALL_LABELS + labels.sum(axis=1))
        mean = (LINE_LABELS * overall[:, None] + sums) / (LINE_LABELS + labels)
        squares = self._squares + mean * (labels * mean - 2.0 * sums)
        if self._candidates.answer is None:
            weight, inner = SPREAD_LABELS * DIFFERENCE_MOMENT, np.array([[DIFFERENCE_MOMENT]])
            spread = DIFFERENCE_MOMENT * labels
        else:
            weight, inner = PRIOR_SPREAD, np.square(mean)
            spread = labels * (0.25 - inner)
            inner = 0.25 - np.minimum(inner, (0.5 - LEAST_MEAN) ** 2)
        factor = (squares.sum(axis=1) + weight) / (spread.sum(axis=1) + weight)
        prior = SPREAD_LABELS * factor[:, None] * inner
        self.mean, self.moment = mean, (prior + squares) / (SPREAD_LABELS + labels)
