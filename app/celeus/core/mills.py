"""The inverse Mills ratio of a stake: the factor of a bet with an information goal.

    inverse_mills(p) = phi(Phi^-1(p)) / p          (docs/evidence/method.md#5-the-bet)

with phi, Phi the normal density and distribution. It is read from a table in the log stake, with
straight lines between its entries, because it is needed for every candidate in every round; any
predictable number would be valid in its place.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from celeus.core.special import normal_quantiles

Floats = NDArray[np.float64]

STAKE_FACTOR = 0.9
"""Factor of the stake that keeps the bet of a nearly rejected candidate from vanishing."""
STEPS = 64
LOWEST_LOG_STAKE = 700


@cache
def _table() -> tuple[Floats, Floats]:
    """Return the ratio at log stakes 0, -1/STEPS, -2/STEPS, ..., and its first differences."""
    log_p = math.log(STAKE_FACTOR) - np.arange(LOWEST_LOG_STAKE * STEPS + 2) / STEPS
    z = normal_quantiles(log_p)
    value = np.exp(-0.5 * z * z - log_p) / math.sqrt(2.0 * math.pi)
    return value[:-1], np.diff(value)


def inverse_mills(log_stake: Floats) -> Floats:
    """Return the ratio at p = 0.9 min(1, e^lp) for every log stake lp; below -700 as at -700."""
    value, increase = _table()
    depth = log_stake * -float(STEPS)
    np.maximum(depth, 0.0, out=depth)
    np.minimum(depth, float(LOWEST_LOG_STAKE * STEPS), out=depth)
    whole = np.floor(depth)
    depth -= whole
    index = whole.astype(np.intp)
    depth *= increase.take(index)
    depth += value.take(index)
    return depth
