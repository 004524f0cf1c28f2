"""The items left: what their losses may still sum to."""

from dataclasses import dataclass, field
from typing import Self

from celeus.core.interval import Interval
from celeus.core.pools.bounds import Bounds
from celeus.core.sampling.sums import RunningSum


@dataclass(slots=True)
class Remainder:
    """What the losses of the items left may sum to, given bounds of their own or none.

    ``rise`` and ``drop`` are by how much their bounds lie above the lower end of the scale and
    below the upper one, in sum; without bounds they are 0.
    """

    scale: Interval
    items: int
    bounds: Bounds | None = None
    rise: RunningSum = field(default_factory=lambda: RunningSum(0.0))
    drop: RunningSum = field(default_factory=lambda: RunningSum(0.0))

    @classmethod
    def of(cls, scale: Interval, items: int, bounds: Bounds | None) -> Self:
        """All items but the known ones, of which there are ``items``."""
        if bounds is None:
            return cls(scale, items)
        left = ~bounds.known
        rise = RunningSum.of(bounds.lower[left] - scale.lower)
        drop = RunningSum.of(bounds.upper[left] - scale.upper)
        return cls(scale, items, bounds, rise, drop)

    def limits(self, item: int) -> Interval:
        """Where the loss of an item lies."""
        return self.scale if self.bounds is None else self.bounds.of(item)

    def take(self, item: int) -> None:
        """One item less."""
        self.items -= 1
        if self.bounds is not None:
            own = self.bounds.of(item)
            self.rise.add(self.scale.lower - own.lower)
            self.drop.add(self.scale.upper - own.upper)

    @property
    def lower(self) -> float:
        """The least sum."""
        return self.items * self.scale.lower + self.rise.value

    @property
    def upper(self) -> float:
        """The largest sum."""
        return self.items * self.scale.upper + self.drop.value
