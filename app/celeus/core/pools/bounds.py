"""Bounds of single losses, and losses that are known before the first draw.

See docs/method.md#14-known-losses. An item may come with bounds of its own within the scale; where
both are the same its loss is known. What is stated is an assumption and no surrogate: nothing that
is judged later would show that it was wrong.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.errors import LossOutsideScale

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Where the loss of every item lies, shape [N], on the loss scale."""

    lower: Floats
    upper: Floats

    @property
    def known(self) -> Mask:
        """The items whose loss is known."""
        return np.asarray(self.lower == self.upper)

    def of(self, item: int) -> Interval:
        """Where the loss of an item lies."""
        return Interval(float(self.lower[item]), float(self.upper[item]))

    def check(self, item: int, loss: float) -> None:
        """Refuse a loss that the item was stated not to have."""
        own = self.of(item)
        if not own.lower <= loss <= own.upper:
            raise LossOutsideScale(
                "The loss is not within the bounds that were stated of this item; open a session"
                " with `audit`, or a pool without them.",
                field="loss",
                rule=f"a number from {own.lower:g} to {own.upper:g}",
                value=loss,
            )


@dataclass(frozen=True, slots=True)
class KnownLosses:
    """What a plan states of its pool's bounds: the losses known, their sum, and why they are.

    ``reasons`` counts items by reason; ``bounded`` is how many more have bounds of their own. In
    the sum a loss counts by its item's weight over the mean one.
    """

    items: int
    total: float
    reasons: Mapping[str, int]
    bounded: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "items": self.items,
            "total": self.total,
            "reasons": dict(self.reasons),
            "bounded": self.bounded,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The facts whose ``to_dict`` gave ``values``."""
        return cls(**(values | {"total": float(values["total"])}))

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        scale: Interval,
        reasons: Mapping[str, int],
        item_weight: Floats | None = None,
    ) -> Self:
        """The facts of some bounds; ``reasons`` counts the known items by reason."""
        known = bounds.known
        losses = bounds.lower if item_weight is None else bounds.lower * item_weight
        whole = (bounds.lower == scale.lower) & (bounds.upper == scale.upper)
        return cls(
            int(known.sum()),
            math.fsum(losses[known]),
            reasons,
            int((~known & ~whole).sum()),
        )
