"""The interval of a sample that is all judged: for the mean of the population it was drawn from.

Losses are x_1 ... x_n in [0, 1], drawn independently from one population with the mean m. Before
each of them stakes are fixed by those before it, for the n that there are,

    lambda_t = sqrt(2 log(2 / alpha) / (n s_(t-1)))
    s_t      = (1/4 + sum of (x_i - mean_i)^2 for i <= t) / (t + 1)

with mean_i = (1/2 + x_1 + ... + x_i) / (i + 1). The wealths

    prod_t (1 + min(lambda_t, 1/(2m)) (x_t - m))
    prod_t (1 - min(lambda_t, 1/(2(1-m))) (x_t - m))

are martingales from 1 at the true m, and so each ever reaches 2 / alpha with a chance of at most
alpha / 2 (Ville). The first falls in m, the second rises: the interval ends where the largest
wealth on the way reaches it (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
variables by betting", section 4, for a sample of known size, looked at once).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_HALVINGS = 60


def stakes(losses: Floats, alpha: float) -> Floats:
    """The stakes lambda_t of losses on the unit scale, each fixed by those before it."""
    size = losses.size
    count = np.arange(1, size + 1)
    mean = (0.5 + np.cumsum(losses)) / (count + 1)
    spread = (0.25 + np.cumsum((losses - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    found: Floats = np.sqrt(2.0 * np.log(2.0 / alpha) / (size * before))
    return found


def log_wealth(losses: Floats, stakes_: Floats, mean: float) -> Floats:
    """The logarithm of the wealth against a mean of at most ``mean``, above 0, after each loss."""
    bets = np.minimum(stakes_, 0.5 / mean)
    found: Floats = np.log1p(bets * (losses - mean)).cumsum()
    return found


def whole_sample_interval(
    losses: Floats, lower: float, upper: float, alpha: float
) -> tuple[float, float]:
    """Ends of the interval for the mean of a population, of losses on the scale given.

    Their order must not depend on them. Holds with a chance of at least 1 - ``alpha``, once. The
    mean of the sample is never outside.
    """
    unit = (losses - lower) / (upper - lower)
    bets, mean = stakes(unit, alpha), float(unit.mean())
    low = min(_least(unit, bets, alpha), mean)
    high = max(1.0 - _least(1.0 - unit, bets, alpha), mean)
    return lower + (upper - lower) * low, lower + (upper - lower) * high


def _least(losses: Floats, bets: Floats, alpha: float) -> float:
    """The least mean that the wealth against smaller ones does not exclude."""
    goal = np.log(2.0 / alpha)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if log_wealth(losses, bets, middle).max() >= goal:
            low = middle
        else:
            high = middle
    return low
