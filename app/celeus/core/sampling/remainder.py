"""The items left: their weight, and bounds of the sum of their losses.

Weights are floats, and a sum of floats is not exactly 0 after all terms are subtracted. So the end
is detected by counting items, and weights are summed only before it.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.pools.strata import Strata
from celeus.core.sampling.sums import RunningSum

Floats = NDArray[np.float64]


class StrataLeft:
    """Number of items left in every stratum, or the sum of their weights."""

    __slots__ = ("_count", "_strata", "_sums", "weight")

    def __init__(self, strata: Strata) -> None:
        self._strata = strata
        self._count = strata.size.copy()
        self._sums: list[RunningSum] = []
        self.weight: Floats = strata.size.astype(np.float64)
        if strata.item_weight is not None:
            code, weight = strata.code, strata.item_weight
            self._sums = [RunningSum.of(weight[code == k]) for k in range(strata.count)]
            self.weight[:] = [left.value for left in self._sums]

    def take(self, item: int) -> None:
        """Remove an item from its stratum."""
        stratum = int(self._strata.code[item])
        self._count[stratum] -= 1
        if not self._sums:
            self.weight[stratum] -= 1.0
            return
        left = self._sums[stratum]
        left.add(-self._strata.weight_of(item))
        self.weight[stratum] = left.value if self._count[stratum] else 0.0


@dataclass(slots=True)
class Remainder:
    """Bounds of the sum of the losses of the items left.

    ``items`` are left, with a total ``weight``. ``rise`` and ``drop`` are the sums of their bounds
    less the lower end of the scale and less the upper one; without bounds they are 0. Every sum is
    weighted if items have ``item_weight``.
    """

    scale: Interval
    items: int
    weight: RunningSum
    bounds: Bounds | None = None
    item_weight: Floats | None = None
    rise: RunningSum = field(default_factory=lambda: RunningSum(0.0))
    drop: RunningSum = field(default_factory=lambda: RunningSum(0.0))

    @classmethod
    def of(
        cls, scale: Interval, items: int, bounds: Bounds | None, item_weight: Floats | None = None
    ) -> Self:
        """Return the remainder before the first draw: ``items`` items whose loss is not known."""
        if bounds is None:
            weight = RunningSum(float(items)) if item_weight is None else RunningSum.of(item_weight)
            return cls(scale, items, weight, None, item_weight)
        left = ~bounds.known
        rise, drop = bounds.lower[left] - scale.lower, bounds.upper[left] - scale.upper
        weight = RunningSum(float(items))
        if item_weight is not None:
            left_weight = item_weight[left]
            rise, drop, weight = rise * left_weight, drop * left_weight, RunningSum.of(left_weight)
        sums = RunningSum.of(rise), RunningSum.of(drop)
        return cls(scale, items, weight, bounds, item_weight, *sums)

    def weight_of(self, item: int) -> float:
        """Return the weight of an item, 1 if all count the same."""
        return 1.0 if self.item_weight is None else float(self.item_weight[item])

    def kept(self, item: int) -> float:
        """Return the weight with which an item's loss is known once it is judged: all of it."""
        return self.weight_of(item)

    def limits(self, item: int) -> Interval:
        """Return the bounds of an item's loss."""
        return self.scale if self.bounds is None else self.bounds.of(item)

    def take(self, item: int) -> None:
        """Remove an item."""
        weight = self.weight_of(item)
        self.items -= 1
        self.weight.add(-weight)
        if self.bounds is not None:
            limits = self.bounds.of(item)
            self.rise.add(weight * (self.scale.lower - limits.lower))
            self.drop.add(weight * (self.scale.upper - limits.upper))
        if not self.items and self.item_weight is not None:
            self.weight, self.rise, self.drop = RunningSum(0.0), RunningSum(0.0), RunningSum(0.0)

    @property
    def lower(self) -> float:
        """Least sum of the losses left."""
        return self.weight.value * self.scale.lower + self.rise.value

    @property
    def upper(self) -> float:
        """Largest sum of the losses left."""
        return self.weight.value * self.scale.upper + self.drop.value


class AllItems(Remainder):
    """The items where any may be run again: a loss seen says nothing of the mean over all runs."""

    def kept(self, item: int) -> float:
        """Return 0: the next run of an item may end otherwise."""
        del item
        return 0.0

    def take(self, item: int) -> None:
        """Leave the item to later rounds."""
