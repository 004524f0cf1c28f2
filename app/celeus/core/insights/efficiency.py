"""Efficiency: labels saved against simple random sampling without a surrogate.

An estimate, for looking at; nothing certified rests on it. Notation, on the unit scale: N items,
n left before a round, f = n / N, q the probability of the item drawn, l its loss, r = l - m with
the surrogate m that its signal used, u the weight of a round (``weights``), D half the
precision.

    V(l)   variance of l over the pool, by u             what a label by uniform draws leaves open
    V(r)   variance of r over the pool, by u             the same with the surrogate plugged in
    V(X)   variance of X = r / (n q) over rounds, by 1/f^2     the surrogate plugged in, draws by q
    s2     f^2 V + (D/3) f p                             variance of a signal with its padding
    I      sum of 1 / s2 over rounds                     information (``eprocess.bets``)

p is the distance from the centre to the end of a signal's range, in units of f: for uniform draws
without surrogate the mean loss on one side and its complement on the other, for strata the largest
m_k / (n q_k) and (1 - m_k) / (n q_k). Policies without a goal have no padding: D = 0.

The answer is the number of uniform draws whose I, with V(l), is that of the session's rounds with
V(X): the mean of the two sides. Checked against runs of the policy ``uniform`` on the same pools it
is within 10 %; for nearly perfect surrogates it promises up to 40 % too many, since it does not
know that a session has to learn first how good they are.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.insights.weights import Fit, JudgedRounds
from celeus.core.pools.strata import Strata

Floats = NDArray[np.float64]

FEWEST_LABELS = 30
"""With fewer a variance is too uncertain to report."""
DECILE = 1.2815515655446004
"""Normal quantile of 90 %: savings have their 10 and 90 %, as forecasts do."""


@dataclass(frozen=True, slots=True)
class Padding:
    """D, and p of the session's two sides; all 0 where bets have no goal."""

    half: float = 0.0
    plus: float = 0.0
    minus: float = 0.0


@dataclass(frozen=True, slots=True)
class Savings:
    """``labels`` gave the information that uniform draws give with ``uniform_labels``.

    ``low`` and ``high`` are the 10 and 90 % of that number; the variances are V(l), V(r) and V(X)
    on the unit scale.
    """

    labels: int
    uniform_labels: int
    low: int
    high: int
    loss_variance: float
    residual_variance: float
    signal_variance: float


def savings(judged: JudgedRounds, surrogates: Floats, padding: Padding) -> Savings | None:
    """What was saved; None while labels are too few or all alike. O(N)."""
    labels = judged.loss.size
    if labels < FEWEST_LABELS:
        return None
    weight, items_left = judged.weight, judged.left.astype(np.float64)
    residual = judged.loss - surrogates
    loss, of_loss = _variance(judged.loss, weight)
    plugged, _ = _variance(residual, weight)
    signal, of_signal = _variance(
        residual / (items_left * judged.q), (judged.items / items_left) ** 2
    )
    if loss <= 0.0 or signal <= 0.0:
        return None
    influence = of_loss / loss - of_signal / signal
    error = DECILE * math.sqrt(float(influence @ influence)) / labels
    mean = float(np.average(judged.loss, weights=weight))
    uniform_labels = [
        _uniform_labels(judged, padding, mean, (signal, loss * math.exp(step)))
        for step in (0.0, -error, error)
    ]
    return Savings(
        labels, uniform_labels[0], uniform_labels[1], uniform_labels[2], loss, plugged, signal
    )


def padding_of(strata: Strata, judged: JudgedRounds, fit: Fit, beta: float, half: float) -> Padding:
    """The padding of the draw that follows the last folded round, for draws by strata."""
    draws = np.bincount(strata.code[judged.item], minlength=strata.count)
    items_left = np.maximum(strata.size - draws, 0)
    if not items_left.any():
        items_left = strata.size
    root = np.sqrt(fit.moment)
    chance = (1.0 - beta) * root * items_left.sum() / (items_left @ root) + beta
    mask = items_left > 0
    plus, minus = ((end / chance)[mask].max() for end in (fit.mean, 1.0 - fit.mean))
    return Padding(half, float(plus), float(minus))


def _uniform_labels(
    judged: JudgedRounds, padding: Padding, mean: float, variances: tuple[float, float]
) -> int:
    """Uniform draws with the information of the session's; ``variances`` are V(X) and V(l)."""
    signal, loss = variances
    session = judged.left / judged.items
    uniform = np.arange(judged.items, 0, -1) / judged.items
    third = padding.half / 3.0
    labels = 0
    for own, other in ((padding.plus, mean), (padding.minus, 1.0 - mean)):
        gathered = (1.0 / (session**2 * signal + third * session * own)).sum()
        running = np.cumsum(1.0 / (uniform**2 * loss + third * uniform * other))
        labels += min(int(np.searchsorted(running, gathered)) + 1, judged.items)
    return round(labels / 2)


def _variance(value: Floats, weight: Floats) -> tuple[float, Floats]:
    """Weighted variance, and the influence of every value on it."""
    share = weight / weight.mean()
    square = (value - np.average(value, weights=weight)) ** 2
    variance = float(np.mean(share * square))
    return variance, np.asarray(share * (square - variance))
