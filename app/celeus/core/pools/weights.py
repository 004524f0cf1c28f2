"""Weights: how much each item counts, fixed with the pool (docs/evidence/method.md#16-weights).

The weight of an item may be its traffic, its money, or how often another population has its like.
The claim is then about the weighted mean loss, sum of w l over sum of w. Only the ratios of weights
matter; in all formulas they are relative, with a mean over the pool of 1.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.plain import Plain, number

Floats = NDArray[np.float64]

LEAST_WEIGHT = 1e-15
LARGEST_WEIGHT = 1e15
"""Largest weight; ``LEAST_WEIGHT`` is the least. Sums and JSON readers lose digits beyond them."""
LARGEST_RATIO = 1e9
ROUNDING = 1e-9
WEIGHT_RULE = f"a number from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}; leave out what counts nothing"

Weight = Annotated[float, partial(number, lowest=LEAST_WEIGHT)]


@dataclass(frozen=True, slots=True)
class Weights(Plain):
    """Facts about its pool's weights that a plan states: their mean, least and largest.

    ``effective_items`` is the number of items of equal weight with the same information: W^2 over
    the sum of w^2.
    """

    mean: Weight
    least: Weight
    largest: Weight
    effective_items: Weight

    @classmethod
    def of(cls, weight: Floats) -> Self:
        """Return the facts of these weights."""
        total = math.fsum(weight)
        effective = 1.0 / math.fsum(np.square(weight / total))
        return cls(total / weight.size, float(weight.min()), float(weight.max()), effective)

    @property
    def least_share(self) -> float:
        """Least weight over the mean weight."""
        return self.least / self.mean

    @property
    def within_ratio(self) -> bool:
        """True if the largest weight is at most LARGEST_RATIO times the least, up to rounding."""
        return self.largest <= LARGEST_RATIO * self.least * (1.0 + ROUNDING)


def relative(weight: Floats) -> Floats:
    """Return the weights scaled to a mean of 1."""
    return np.asarray(weight * (weight.size / math.fsum(weight)))
