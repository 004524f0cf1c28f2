"""Two systems on one pool: what is known of the difference of their losses without a label.

Notation: loss in [L, U], s_A, s_B surrogates of the two losses on the unit scale.

    d       loss of A less loss of B, in [L - U, U - L]; below 0 A is better
    x       s_A - s_B                                            surrogate of d
    e       chance that d is not 0
            (1 - s_A) + (1 - s_B)          where at most one of two different answers can be right
            s_A (1 - s_B) + s_B (1 - s_A)  else

Items to which both gave the same answer have d = 0 for certain. That is a known loss, and most of
what a comparison saves.
"""

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale

Floats = NDArray[np.float64]

SAME_ANSWER = "same answer"
"""Reason why the difference of two equal answers is known."""


def difference_scale(scale: LossScale) -> LossScale:
    """Where the difference of two losses lies."""
    return LossScale.of("difference", upper=scale.upper - scale.lower)


def surrogate_columns(
    a: Floats, b: Floats, scale: Interval, *, exclusive: bool
) -> dict[str, Floats]:
    """Surrogate of the difference and chance of one, as a pool's columns, from those of the losses.

    ``exclusive`` says that of two different answers at most one is right.
    """
    unit_a, unit_b = ((one - scale.lower) / scale.width for one in (a, b))
    change = unit_a * (1.0 - unit_b) + unit_b * (1.0 - unit_a)
    if exclusive:
        change = np.clip(2.0 - unit_a - unit_b, 0.0, 1.0)
    return {"surrogate.0": a - b, "change": change}
