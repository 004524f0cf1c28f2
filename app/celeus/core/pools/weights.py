"""Weights: how much each item counts, fixed with the pool (docs/evidence/method.md#16-weights).

The weight of an item may be its traffic, its money, or how often another population has its like.
What is claimed is then the weighted mean loss, sum of w l over sum of w. Only the ratios of weights
matter; in all formulas they are relative, their mean over the pool being 1.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_WEIGHT = 1e-15
LARGEST_WEIGHT = 1e15
"""Beyond these, sums of weights run out of floats, and JSON readers out of digits."""
LARGEST_RATIO = 1e9
ROUNDING = 1e-9
WEIGHT_RULE = f"a number from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}; leave out what counts nothing"


@dataclass(frozen=True, slots=True)
class Weights:
    """What a plan states of its pool's weights: their mean, least and largest.

    ``effective_items`` is how many items of one weight would say as much: W^2 over the sum of w^2.
    """

    mean: float
    least: float
    largest: float
    effective_items: float

    @classmethod
    def of(cls, weight: Floats) -> Self:
        """The facts of some weights."""
        total = math.fsum(weight)
        effective = 1.0 / math.fsum(np.square(weight / total))
        return cls(total / weight.size, float(weight.min()), float(weight.max()), effective)

    @property
    def least_share(self) -> float:
        """The least weight over the mean one."""
        return self.least / self.mean

    @property
    def within_ratio(self) -> bool:
        """The largest weight is at most LARGEST_RATIO times the least, up to rounding."""
        return self.largest <= LARGEST_RATIO * self.least * (1.0 + ROUNDING)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The facts whose ``to_dict`` gave ``values``; a database makes 2.0 a whole number."""
        return cls(**{name: float(value) for name, value in values.items()})


def relative(weight: Floats) -> Floats:
    """The weights with a mean of 1."""
    return np.asarray(weight * (weight.size / math.fsum(weight)))
