"""Calibration: surrogates refitted to the labels seen so far, stratum by stratum.

See docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal.

Notation, on the unit scale: x_k mean surrogate of stratum k, c_k its labels judged so far, l a
loss, m the surrogate that its signal used, n items left before the draw, q its probability.

    line   a + b x through the points (x, l), each weighted by 1 / (n q), ridge of 3 towards
           a = 1/4, b = 1/2: the slope 1/2 through (1/2, 1/2)
    g_k    the line at x_k, cut to [0.005, 0.995]
    u_k    (16 g_k + sum of l in k) / (16 + c_k), within the bounds stated of its losses
    m_k    u_k cut to [lo, hi], see ``Narrowing``              surrogate of every item left in k
    e_k    m' (1 - m'),  m' = 1/2 + (u_k - 1/2) c / (c + 1/2),  c all labels judged, u_k here cut to
           [0.04, 0.96]
    d      sum of l (1 - l), how far losses lie from the ends of the scale; 0 for differences
    g      d / (3 + d + sum of (l - m)^2)
    f      (3 (1 - g) + sum of (l - m)^2) / (3 + sum of e, each as it was before its label)
    v_k    (40 f e_k + sum of (l - m)^2 in k) / (40 + c_k)     residual second moment

Where a prior second moment e is given, it stands for all e_k, and 40 e for 3.

Where m is the mean of l, that of l (1 - l) + (l - m)^2 is m (1 - m): g estimates by how much less
graded losses scatter than losses of 0 and 1, for which it is 0.

The ridge and m' insure against a poor surrogate: before there are labels it is believed by half,
and the strata are taken to scatter alike.

Both are functions of judged labels, so a signal keeps the pool risk as its mean whatever they
say; how well they fit decides only how fast the interval narrows. Unjudgeable rounds are not here.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RIDGE = 3.0
RIDGE_INTERCEPT = 0.25
RIDGE_SLOPE = 0.5
LINE_LABELS = 16.0
"""Number of labels of a stratum that the line counts as."""
LEAST_SURROGATE = 0.005
SPREAD_LABELS = 40.0
PRIOR_SPREAD = 3.0
TEMPERING_LABELS = 0.5
"""Number of labels at which the spread that follows from the surrogates is believed by half."""
LEAST_MEAN = 0.04
LEAST_MOMENT = 1e-12
"""Least second moment, for square roots and quotients; far below the shrunken moments."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Surrogate and residual second moment of every stratum: m_k and v_k."""

    mean: Floats
    moment: Floats


NO_FIT = Fit(np.empty(0), np.empty(0))
"""The fit of what has no strata."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The cut of surrogates that is worth the narrower range of the signals.

    With ``share`` p_k of the items in stratum k and ``half`` D, half the precision of their mean on
    the unit scale, the levels

        sum of p_k max(u_k - hi, 0)  =  sum of p_k max(lo - u_k, 0)  =  D / 6

    make the variance that the cut adds, sum of p_k (u_k - m_k)^2, and the padding of both sides'
    bets for the range, (D / 3) (max m_k - min m_k) of uniform draws, least in sum. Where lo >= hi
    the least is at one m_k for all, the mean of u_k.
    """

    share: Floats
    half: float

    @classmethod
    def of(cls, left: Floats, half: float | None, items: int) -> Self | None:
        """Return the cut where half the precision over ``items`` is ``half`` on the unit scale.

        ``left`` items of each stratum may be drawn: where losses are known, the others decide a
        part of the risk alone. None without a precision, and where there is nothing to cut.
        """
        drawn = float(left.sum())
        if half is None or left.size == 1 or not drawn:
            return None
        return cls(left / drawn, half * items / drawn)

    def cut(self, surrogate: Floats) -> Floats:
        """Return the surrogates cut to [lo, hi]."""
        order = surrogate.argsort()
        level, share = surrogate[order], self.share[order]
        items, sums = share.cumsum(), (share * level).cumsum()
        mean, most = sums[-1], self.half / 6.0
        # Both at every level: the sum of what is missing below, and of what is above
        below = level * items - sums
        above = below + mean - level
        if most >= min(below[-1], above[0]):
            return np.full(surrogate.size, mean)
        lowest = np.interp(most, below, level)
        highest = np.interp(-most, -above, level)
        if lowest >= highest:
            return np.full(surrogate.size, mean)
        return np.minimum(np.maximum(surrogate, lowest), highest)


@dataclass(slots=True)
class Line:
    """Sums of the weighted straight line, the ridge included."""

    weight: float = RIDGE
    x: float = 0.0
    xx: float = RIDGE
    y: float = RIDGE * RIDGE_INTERCEPT
    xy: float = RIDGE * RIDGE_SLOPE

    def add(self, x: float, y: float, weight: float) -> None:
        """Add a point."""
        self.weight += weight
        self.x += weight * x
        self.xx += weight * x * x
        self.y += weight * y
        self.xy += weight * x * y

    def at(self, x: Floats) -> Floats:
        """Return the height of the line at ``x``."""
        determinant = self.weight * self.xx - self.x * self.x
        slope = (self.weight * self.xy - self.x * self.y) / determinant
        intercept = (self.y - slope * self.x) / self.weight
        return intercept + slope * x


@dataclass(slots=True)
class Calibration:
    """Sums of the judged labels of every stratum, and the fit; ``base`` holds x_k.

    ``lower`` and ``upper`` are bounds of the losses of a stratum, ``prior`` is the second moment of
    residuals expected before any label (default: that of losses at the ends of the scale),
    ``difference`` says that losses are differences of two systems, and ``spread`` is e_k. Without
    ``narrowing`` m_k is u_k.
    """

    base: Floats
    lower: Floats
    upper: Floats
    prior: float | None = None
    difference: bool = False
    narrowing: Narrowing | None = None
    line: Line = field(default_factory=Line)
    labels: Floats = field(init=False)
    losses: Floats = field(init=False)
    squares: Floats = field(init=False)
    all_squares: float = 0.0
    all_spread: float = 0.0
    from_ends: float = 0.0
    fit: Fit = field(init=False)
    spread: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.labels = np.zeros(self.base.size)
        self.losses = np.zeros(self.base.size)
        self.squares = np.zeros(self.base.size)
        self.fit = self._fitted()

    def record(
        self, stratum: int, loss: float, surrogate: float, weight: float, offset: float = 0.0
    ) -> None:
        """Record a judged round of weight 1 / (n q); ``surrogate`` is the one its signal used.

        ``offset`` is the expected difference of its kind of item from the others; line and mean
        use the loss less the offset.
        """
        square = (loss - surrogate) ** 2
        self.line.add(float(self.base[stratum]), loss - offset, weight)
        self.labels[stratum] += 1.0
        self.losses[stratum] += loss - offset
        self.squares[stratum] += square
        self.all_squares += square
        self.all_spread += float(self.spread[stratum])
        if not self.difference:
            self.from_ends += loss * (1.0 - loss)
        self.fit = self._fitted()

    def _fitted(self) -> Fit:
        line = self.line.at(self.base)
        np.maximum(line, LEAST_SURROGATE, out=line)
        np.minimum(line, 1.0 - LEAST_SURROGATE, out=line)
        mean = (LINE_LABELS * line + self.losses) / (LINE_LABELS + self.labels)
        mean = np.minimum(np.maximum(mean, self.lower), self.upper)
        self.spread = self._expected_spread(mean)
        weight = PRIOR_SPREAD if self.prior is None else SPREAD_LABELS * self.prior
        graded = self.from_ends / (PRIOR_SPREAD + self.from_ends + self.all_squares)
        factor = (self.all_squares + weight * (1.0 - graded)) / (self.all_spread + weight)
        prior = SPREAD_LABELS * factor * self.spread
        moment = np.maximum((prior + self.squares) / (SPREAD_LABELS + self.labels), LEAST_MOMENT)
        if self.narrowing is not None:
            cut = self.narrowing.cut(mean)
            mean = np.minimum(np.maximum(cut, self.lower), self.upper)
        return Fit(mean, moment)

    def _expected_spread(self, mean: Floats) -> Floats:
        """Return e_k: the second moment that losses at the ends of the scale would have."""
        if self.prior is not None:
            return np.full(mean.size, self.prior)
        inner = np.minimum(np.maximum(mean, LEAST_MEAN), 1.0 - LEAST_MEAN)
        labels = float(self.labels.sum())
        tempered = 0.5 + (inner - 0.5) * (labels / (labels + TEMPERING_LABELS))
        return np.asarray(tempered * (1.0 - tempered))
