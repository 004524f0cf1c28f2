"""Fixed-sample intervals looked at after every label: what evaluation tools do today.

Both are valid for one look at a number of labels fixed beforehand; here they are made after every
label, of items drawn uniformly without replacement, until one is narrow enough. The intervals of
all looks come from cumulative sums; shapes are [looks].

    Wilson   (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
    PPI++    lam m_u + mean(Y - lam F) +- z sqrt(lam^2 var(F_u) / u + var(Y - lam F) / n)
             lam = cov(Y, F) / ((1 + n / u) var(all F)), cut to [0, 1]

with Y the n losses seen, F their surrogates, F_u those of the u items not judged and m_u their
mean. Wilson: JASA 22 (1927), 209-212. PPI++: Angelopoulos, Duchi and Zrnic, arXiv 2311.01453, as
`ppi_mean_ci` of its authors' `ppi_py` computes it: variances and covariance divide by the count,
that of all surrogates by one less.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from celeus.core.insights.planning import uniform_draws

Floats = NDArray[np.float64]

FIRST_LOOK = 30
"""Labels before the first look: after one or two a sample variance may be 0."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The intervals of all looks, in order, and the labels each one had."""

    labels: NDArray[np.int64]
    lower: Floats
    upper: Floats

    def until(self, precision: float) -> "Looks":
        """The looks up to the first one that is narrow enough, or all."""
        narrow = np.flatnonzero(self.upper - self.lower <= precision)
        end = int(narrow[0]) + 1 if narrow.size else self.labels.size
        return Looks(self.labels[:end], self.lower[:end], self.upper[:end])

    def missed(self, risk: float) -> NDArray[np.bool_]:
        """Which of them do not hold ``risk``."""
        return np.asarray((risk < self.lower) | (risk > self.upper))


def wilson(loss: Floats, alpha: float, first: int = FIRST_LOOK) -> Looks:
    """Wilson's intervals for 0-1 losses in the order they are seen."""
    n = np.arange(1, loss.size + 1)
    lower, upper = wilson_ends(np.cumsum(loss), n, alpha)
    return _from(first, n, lower, upper)


def wilson_ends(count: Floats, n: NDArray[np.int64], alpha: float) -> tuple[Floats, Floats]:
    """Wilson's interval for ``count`` of ``n``."""
    z = float(ndtri(1.0 - alpha / 2.0))
    p, shrink = count / n, 1.0 + z * z / n
    centre = (p + z * z / (2.0 * n)) / shrink
    half = z * np.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n)) / shrink
    return np.asarray(centre - half), np.asarray(centre + half)


def ppi(loss: Floats, surrogate: Floats, alpha: float, first: int = FIRST_LOOK) -> Looks:
    """PPI++ intervals; ``loss`` and ``surrogate`` of the whole pool in the order of the draws."""
    items = loss.size
    n = np.arange(1, items)
    left = items - n
    y, f, of_left = _Moments.of(loss[:-1]), _Moments.of(surrogate[:-1]), _left(surrogate)
    covariance = np.cumsum((loss * surrogate)[:-1]) / n - y.mean * f.mean
    spread = float(np.var(surrogate, ddof=1))
    lam = np.zeros(n.size)
    if spread > 0.0:
        lam = np.clip(covariance / ((1.0 + n / left) * spread), 0.0, 1.0)
    residual = y.variance - 2.0 * lam * covariance + lam**2 * f.variance
    centre = lam * of_left.mean + y.mean - lam * f.mean
    variance = lam**2 * of_left.variance / left + np.maximum(residual, 0.0) / n
    half = float(ndtri(1.0 - alpha / 2.0)) * np.sqrt(variance)
    return _from(first, n, centre - half, centre + half)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Mean and variance of the first 1, 2, ... values."""

    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, values: Floats) -> "_Moments":
        n = np.arange(1, values.size + 1)
        mean = np.cumsum(values) / n
        return cls(mean, np.maximum(np.cumsum(values**2) / n - mean**2, 0.0))


def _left(values: Floats) -> _Moments:
    """Moments of what is left after 1, 2, ... values, while any is left."""
    backwards = _Moments.of(values[:0:-1])
    return _Moments(backwards.mean[::-1], backwards.variance[::-1])


def _from(first: int, n: NDArray[np.int64], lower: Floats, upper: Floats) -> Looks:
    start = min(first, n.size) - 1
    return Looks(n[start:], lower[start:], upper[start:])


def paired_test(loss: Floats, distance: float, alpha: float, power: float) -> int:
    """Uniform draws for a one-sided z-test of a mean known to lie ``distance`` from its border."""
    errors = float(ndtri(1.0 - alpha) + ndtri(power)) / distance
    return uniform_draws(float(loss.var()), loss.size, errors)
