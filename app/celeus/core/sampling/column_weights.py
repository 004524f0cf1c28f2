"""Weights of several surrogate columns, fitted to the labels seen so far.

See docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal.

Notation, on the unit scale: d_c deviations of the columns in substratum c of stratum k, m_k the
calibrated surrogate of k, l a loss, n items left before the draw, q its probability.

    w      regression of l - m_k on d_c, each label weighted by 1 / (n q), ridge of 3 towards 0
    h_c    m_k + w d_c, within the bounds stated of the losses, less m_k
    t      sum of (l - m_k) h_c / (1 + sum of h_c^2), cut to [0, 1]; m_k and h_c as of the draw
    m_c    m_k + t h_c                                   surrogate of every item left in c

So before there are labels all columns weigh the same. w alone would cost labels where columns say
nothing beside their mean; t is how well w predicted losses that it was not fitted to.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.substrata import Substrata

Floats = NDArray[np.float64]

RIDGE_WEIGHT = 3.0
PRIOR_SQUARES = 1.0


class Correction(NamedTuple):
    """The place of a substratum, and its m_k and h_c at a draw."""

    substratum: int
    mean: float
    height: float


class ColumnWeights:
    """Sums over the judged labels, and ``surrogate``: m_c of every substratum.

    ``mean`` is m_k of every stratum; ``lower`` and ``upper`` bound the losses of a substratum.
    """

    __slots__ = (
        "_bounds",
        "_height",
        "_matrix",
        "_mean",
        "_products",
        "_right",
        "_squares",
        "_substrata",
        "surrogate",
    )

    def __init__(self, substrata: Substrata, lower: Floats, upper: Floats, mean: Floats) -> None:
        columns = substrata.deviation.shape[1]
        self._substrata = substrata
        self._bounds = lower, upper
        self._matrix = RIDGE_WEIGHT * np.eye(columns)
        self._right = np.zeros(columns)
        self._products, self._squares = 0.0, PRIOR_SQUARES
        self._fit(mean)

    def correction(self, substratum: int) -> Correction:
        """Return the correction that the next draw from ``substratum`` is bet with."""
        mean, height = self._mean[substratum], self._height[substratum]
        return Correction(substratum, float(mean), float(height))

    def record(self, drawn: Correction, loss: float, weight: float, mean: Floats) -> None:
        """Record a judged round of weight 1 / (n q); ``mean`` is m_k with its loss."""
        deviation, residual = self._substrata.deviation[drawn.substratum], loss - drawn.mean
        self._matrix += weight * np.outer(deviation, deviation)
        self._right += weight * residual * deviation
        self._products += residual * drawn.height
        self._squares += drawn.height * drawn.height
        self._fit(mean)

    def _fit(self, mean: Floats) -> None:
        self._mean = mean[self._substrata.stratum]
        weights = np.linalg.solve(self._matrix, self._right)
        corrected = self._mean + self._substrata.deviation @ weights
        self._height = np.clip(corrected, *self._bounds) - self._mean
        trust = min(max(self._products / self._squares, 0.0), 1.0)
        self.surrogate: Floats = self._mean + trust * self._height
