"""The signal of a draw and the range it had to lie in.

Notation: N items, J those not drawn before round t (n of them), ``s`` surrogates, ``q``
probabilities, losses in [L, U].

    plug-in  P = (sum of observed losses + sum over J of s_j) / N
    signal   S = P + (l - s) / (N q)                              CELEUS, Eq. 1

The mean of S over the draw is the pool risk, whatever the surrogate (CELEUS, Thm. 3). A range is
fixed before the draw and S cannot leave it:

    exact    P + min (L - s_j) / (N q_j)  to  P + max (U - s_j) / (N q_j)   over J, with the
             bounds of the single losses for L and U where some are stated
    floor    the same with q_j >= beta / n and the extreme surrogates of the whole pool
    global   L, U widened by (U - L) (1 - q_min) / (N q_min), q_min = beta / N     CELEUS, Rem. 4

The floor is beta/n while n items are left, not beta/N: a range with beta/N is not one after the
first round.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]


class RangeLeft(ArithmeticError):
    """A signal lay outside the range fixed before its draw: the range was wrong."""


class Range(NamedTuple):
    """Range of the signal of the coming draw: ``lower <= S <= upper``."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Upper less lower end; positive."""
        return self.upper - self.lower


@dataclass(frozen=True, slots=True)
class Extremes:
    """Scale and extreme surrogates of a whole pool, from which a range is computed in O(1)."""

    items: int
    lower: float
    upper: float
    least_surrogate: float
    largest_surrogate: float


def signal(plug_in: float, residual: float, items: int, q: float) -> float:
    """Return the signal of a draw with residual ``l - s`` and probability ``q`` (CELEUS, Eq. 1)."""
    return plug_in + residual / (items * q)


def floor_range(plug_in: float, items_left: int, beta: float, pool: Extremes) -> Range:
    """Return the range that follows from the floor ``q >= beta / left`` alone."""
    reach = items_left / (pool.items * beta)
    return Range(
        lower=plug_in + (pool.lower - pool.largest_surrogate) * reach,
        upper=plug_in + (pool.upper - pool.least_surrogate) * reach,
    )


def global_range(beta: float, pool: Extremes) -> Range:
    """Return one range for every round (CELEUS, Rem. 4)."""
    q_min = beta / pool.items
    slack = (pool.upper - pool.lower) * (1.0 - q_min) / (pool.items * q_min)
    return Range(lower=pool.lower - slack, upper=pool.upper + slack)


def exact_range(
    plug_in: float, surrogate: Floats, q: Floats, pool: Extremes, ends: Ends | None = None
) -> Range:
    """Return the tightest range; ``surrogate`` and ``q`` are those of the items left.

    ``ends`` are the bounds of their losses, if narrower than the scale.
    """
    lower, upper = (pool.lower, pool.upper) if ends is None else ends
    reach = pool.items * q
    return Range(
        lower=plug_in + float(((lower - surrogate) / reach).min()),
        upper=plug_in + float(((upper - surrogate) / reach).max()),
    )


def check(value: float, signal_range: Range) -> None:
    """Raise RangeLeft unless ``value`` lies in ``signal_range``, up to rounding."""
    slack = 1e-9 * (1.0 + abs(value) + signal_range.width)
    if not signal_range.lower - slack <= value <= signal_range.upper + slack:
        message = f"signal {value!r} outside [{signal_range.lower!r}, {signal_range.upper!r}]"
        raise RangeLeft(message)
