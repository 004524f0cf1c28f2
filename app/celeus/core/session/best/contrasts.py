"""Contrasts: what the labels say of the difference of every two systems.

Notation, for a pair of systems i and o, losses on the unit scale: e = (l_i - l_o) / 2 the half
difference of an item, N items, J those not drawn before the round. Only an item whose two answers
differ has an e that is not 0: in stratum k, c_k such items have been judged, rem_k are left.

    g      sum of e / (20 + labels)                                    over all that were judged
    m_k    (16 g + sum of e in k) / (16 + c_k)                         surrogate of e
    f      (3 + sum of (e - m)^2) / (3 + sum of (1/4 - m^2))
    v_k    (40 f (1/4 - m_k^2) + sum of (e - m)^2 in k) / (40 + c_k)
    P      (sum of e seen + sum of rem_k m_k) / N,  e of a draw counted at its worst -1/2 or 1/2
    w      sum of rem_k max(v_k, 0.001) / (N^2 q_k)
    S      P + (e - m_k) / (N q) where the two answers differ, else P

The mean of S over the draw is the mean of e over the pool, since an item with the same answers adds
nothing, whatever its probability. Where answers are not given, 0.05 stands for 1/4 - m^2 and 2 for
3. What is said of a round comes from ``forecast`` when it is drawn, all but P, which takes the
losses of the rounds drawn before and is known once they are folded.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from celeus.core.betting.moments import LEAST_RATIO, PRIOR_ROUNDS
from celeus.core.betting.signals import Range, check
from celeus.core.pools.strata import Strata
from celeus.core.sampling.calibration import LEAST_MEAN, LINE_LABELS, PRIOR_SPREAD, SPREAD_LABELS
from celeus.core.sampling.predictors import DIFFERENCE_MOMENT
from celeus.core.sampling.proposals import LEAST_MOMENT
from celeus.core.session.best.candidates import Candidates, Floats, Indices, Mask, Pairs

OVERALL_LABELS = 20.0
"""The mean of a pair is shrunk to 0 as by that many labels."""
MOST = 0.5
"""Largest half difference."""
CERTAIN = 1e-15
"""A signal of less variance has no items left that could move it."""


class Signals(NamedTuple):
    """The signals of a round by pair, and the ends of their ranges; shape [pairs].

    ``low`` and ``high`` are the least and the largest that they may be: the same, unless this round
    or one before it is counted at its worst.
    """

    low: Floats
    high: Floats
    lower: Floats
    upper: Floats


class Forecast(NamedTuple):
    """The coming signals of some pairs, as their draw fixes them; shape [pairs].

    ``rest`` is the sum of rem_k m_k, ``variance`` is w, ``centre`` is mu, and ``ratio`` says how
    much more past signals scattered. ``least`` and ``most`` are those of S - P, ``lower`` and
    ``upper`` those of S, whatever the losses of rounds not folded. Of the item drawn ``differ``
    says whether its answers do, ``mean`` is m_k, and ``reach`` is N q.
    """

    pairs: Pairs
    rest: Floats
    variance: Floats
    centre: Floats
    ratio: Floats
    least: Floats
    most: Floats
    lower: Floats
    upper: Floats
    differ: Mask
    mean: Floats
    reach: float

    def signals(self, totals: "Totals", losses: Floats | None) -> Signals:
        """The signals, given the losses of the k systems, once all rounds before are folded.

        Without losses they are those of the worst ones, for each direction of a pair. Raises
        RangeLeft unless every one lies in its range, up to rounding.
        """
        worst = MOST * totals.at_worst[self.pairs.place]
        plug_in = [totals.plug_in(self.pairs.place, self.rest + end) for end in (-worst, worst)]
        if losses is None:
            residuals = [(end - self.mean) / self.reach for end in (-MOST, MOST)]
        else:
            residuals = [(self.pairs.half(losses) - self.mean) / self.reach] * 2
        low, high = (
            part + np.where(self.differ, residual, 0.0)
            for part, residual in zip(plug_in, residuals, strict=True)
        )
        lower, upper = plug_in[0] + self.least, plug_in[1] + self.most
        slack = 1e-9 * (1.0 + np.abs(low) + upper - lower)
        outside = (low < lower - slack) | (high > upper + slack)
        for pair in np.flatnonzero(outside):
            for end in (low, high):
                check(float(end[pair]), Range(float(lower[pair]), float(upper[pair])))
        return Signals(low, high, lower, upper)


@dataclass(slots=True)
class Totals:
    """Sums over the folded labels, of all pairs of k systems: shape [pairs of k].

    ``observed`` sums e, and ``at_worst`` counts the items counted at their worst instead; the
    others are those of ``betting.moments``.
    """

    items: int
    observed: Floats
    at_worst: Floats
    weighted: Floats
    precision: Floats
    deviation: Floats
    rounds: Floats

    @classmethod
    def of(cls, items: int, pairs: int) -> Self:
        """Before the first label."""
        return cls(items, *np.zeros((6, pairs)))

    def plug_in(self, place: Indices, rest: Floats) -> Floats:
        """P of some pairs, with what is expected of the other items in the sum."""
        return np.asarray((self.observed[place] + rest) / self.items)

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

    ``mean`` is m, ``moment`` is v, ``left`` is rem; ``unknown`` counts the items whose losses are
    not folded, drawn or not: shape [pairs].
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
        "unknown",
    )

    def __init__(self, candidates: Candidates, pairs: Pairs, strata: Strata) -> None:
        self._candidates = candidates
        self.pairs = pairs
        self.strata = strata
        self.left = candidates.differing(pairs, strata.code, strata.count)
        self.unknown = self.left.sum(axis=1)
        self._labels, self._sums, self._squares = np.zeros((3, *self.left.shape))
        self._fit()

    def forecast(self, totals: Totals, item: int, q: Floats) -> Forecast:
        """The coming signals, of ``item`` drawn with the probabilities ``q`` of the strata."""
        items, place, left, mean = totals.items, self.pairs.place, self.left, self.mean
        rest, reach, present = (left * mean).sum(axis=1), items * q, left > 0.0
        plug_in, open_ = totals.plug_in(place, rest), self.unknown - left.sum(axis=1)
        least = np.where(present, (-MOST - mean) / reach, 0.0).min(axis=1)
        most = np.where(present, (MOST - mean) / reach, 0.0).max(axis=1)
        stratum = int(self.strata.code[item])
        return Forecast(
            self.pairs,
            rest,
            (left * np.maximum(self.moment, LEAST_MOMENT)) @ (1.0 / (items * reach)),
            *totals.moments(place, plug_in),
            least,
            most,
            lower=plug_in + least - MOST * open_ / items,
            upper=plug_in + most + MOST * open_ / items,
            differ=self._candidates.differ(np.array([item]), self.pairs)[0],
            mean=mean[:, stratum].copy(),
            reach=float(reach[stratum]),
        )

    def limits(self, totals: Totals) -> tuple[Floats, Floats]:
        """Return bounds of the mean half difference of every pair, whatever is not known."""
        unknown = MOST * self.unknown
        return totals.plug_in(self.pairs.place, -unknown), totals.plug_in(self.pairs.place, unknown)

    def take(self, items: Indices) -> None:
        """Drawn items are left no longer."""
        code = self.strata.code[items]
        for stratum in np.unique(code[code >= 0]):
            self.left[:, stratum] -= self._candidates.differ(
                items[code == stratum], self.pairs
            ).sum(axis=0)

    def record(self, items: Indices, losses: Floats) -> None:
        """Record folded items; ``losses`` are those of the k systems, [items, k]."""
        differ = self._candidates.differ(items, self.pairs)
        half = np.where(differ, self.pairs.half(losses), 0.0)
        code = self.strata.code[items]
        for stratum in np.unique(code[code >= 0]):
            here = code == stratum
            labels = differ[here].sum(axis=0)
            self.unknown -= labels
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
