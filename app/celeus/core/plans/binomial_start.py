"""The exact start of pairs (v, r) for losses of 0 and 1, and its plan.

Notation as in ``plans.pair_plan``. Of N iid losses of 0 and 1 with mean r, X are 1: X is binomial.
A pair may start with log stake min(0, log A + kappa (v - r)), where A is the largest number with

    E min(1, A e^(kappa (X / N - r))) <= level / 2

The left side grows with X, hence with r: what holds at r holds for every smaller risk. That takes
whole losses; a graded loss may pile its mass where min(1, .) is not convex.

With g = log E e^(kappa (X / N - r)) and X' binomial with the odds of r times e^(kappa / N), the
mean is, for A at which c is the first X that counts 1,

    A e^g P(X' < c) + P(X >= c)

a concave function of A made of straight lines. So Newton's steps from the start without min(1, .)
rise to the largest A, each from a number that may be had to a larger one, without a sum over X.
The width that a pair needs, when its z-test runs to standard error s, is largest where
phi(z1) / Phi(-z1) = kappa s, and there

    reach(s, kappa) = s z1 + (log Phi(-z1) - log A) / kappa

sigma*(r) is the largest s that some kappa lets reach D - h / 2, sought at a few r and a few z1;
kappa(r) is the one that reaches least there.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.special import beta_cdf, expit, log_normal_cdf, logit, normal_quantile

Floats = NDArray[np.float64]

NODES = 45
"""Number of risks where sigma* and kappa are computed, denser near 0 and 1; linear in between."""
BISECTIONS = 14
LEAST_SIGMA = 0.1
LEAST_Z, LARGEST_Z, STEPS_OF_Z = -0.1, 1.4, 13
"""Range and number of the z1 tried, as multiples of the normal quantile at 1 - level / 2."""
LARGEST_TILT = 50.0
"""Largest kappa / N, a tilt of the log odds; larger ones change nothing but digits."""
TINY = 1e-290
ROUNDING = 1e-9
"""Share of the level kept back for the rounding of the incomplete beta function."""


def log_scale(items: int, level: float, kappa: Floats, risk: Floats) -> Floats:
    """Return log A for every ``kappa`` and ``risk``; the two broadcast."""
    kappa, risk = np.broadcast_arrays(kappa, risk)
    shape, kappa, risk = kappa.shape, kappa.ravel(), risk.ravel()
    tilt = kappa / items
    growth = items * np.log1p(risk * np.expm1(tilt)) - kappa * risk
    untilted = expit(-logit(risk) - tilt)
    allowed = level / 2.0 * (1.0 - ROUNDING)
    scale = math.log(allowed) - growth
    first = _first(items, kappa, risk, scale)
    moving = np.flatnonzero((first > 0.0) & (first <= items))
    while moving.size:
        rows = _Rows(*(column[moving] for column in (kappa, risk, growth, untilted, first)))
        # A never decreases; the step is NaN where rounding lifts the line above ``allowed``.
        scale[moving] = np.fmax(scale[moving], rows.newton_step(items, allowed))
        first[moving] = _first(items, rows.kappa, rows.risk, scale[moving])
        moving = moving[(first[moving] < rows.first) & (first[moving] > 0.0)]
    return scale.reshape(shape)


class _Rows(NamedTuple):
    """Rows whose A may be larger; ``first`` is the first X that counts 1, at most ``items``."""

    kappa: Floats
    risk: Floats
    growth: Floats
    untilted: Floats
    first: Floats

    def newton_step(self, items: int, allowed: float) -> Floats:
        """Return the log A at which the line through the present one reaches ``allowed``.

        -inf where the line's slope underflows: kappa is then far above any that a plan uses.
        """
        rest = items - self.first + 1.0
        above, below = beta_cdf(
            np.stack([self.first, rest]),
            np.stack([rest, self.first]),
            np.stack([self.risk, self.untilted]),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.log(allowed - above) - np.log(below) - self.growth
        return np.asarray(np.where(below > TINY, step, -np.inf))


def _first(items: int, kappa: Floats, risk: Floats, scale: Floats) -> Floats:
    """Return the first X at which A e^(kappa (X / N - r)) is 1, items + 1 if there is none."""
    first = np.ceil(items * (risk - scale / kappa))
    return np.clip(first, 0.0, items + 1.0)


def sigma_and_kappa(
    items: int, level: float, goal: tuple[float, float], risk: Floats
) -> tuple[Floats, Floats]:
    """Return sigma* and kappa of every ``risk``; ``goal`` is D and the width D - h / 2 to reach."""
    place = np.arcsin(np.sqrt(risk)) * (2.0 * (NODES - 1) / math.pi)
    below = np.minimum(np.floor(place).astype(np.intp), NODES - 2)
    node, place_of = np.unique(np.concatenate([below, below + 1]), return_inverse=True)
    node_risk = np.sin(node * (math.pi / (2.0 * (NODES - 1)))) ** 2
    node_sigma, node_ratio = _sigma_and_ratio(items, level, goal, node_risk)
    left, right = place_of[: risk.size], place_of[risk.size :]
    share = (risk - node_risk[left]) / (node_risk[right] - node_risk[left])
    sigma = node_sigma[left] + share * (node_sigma[right] - node_sigma[left])
    ratio = node_ratio[left] + share * (node_ratio[right] - node_ratio[left])
    return sigma, np.minimum(ratio / sigma, LARGEST_TILT * items)


def _sigma_and_ratio(
    items: int, level: float, goal: tuple[float, float], risk: Floats
) -> tuple[Floats, Floats]:
    """Return sigma* and kappa sigma* of every ``risk``, without interpolation."""
    half, width = goal
    quantile = normal_quantile(1.0 - level / 2.0)
    z1 = quantile * np.linspace(LEAST_Z, LARGEST_Z, STEPS_OF_Z)
    log_tail = log_normal_cdf(-z1)
    ratio = np.exp(-0.5 * z1 * z1 - log_tail) / math.sqrt(2.0 * math.pi)

    def reach(sigma: Floats) -> Floats:
        s = sigma[:, None]
        kappa = np.minimum(ratio / s, LARGEST_TILT * items)
        return np.asarray(
            s * z1 + (log_tail - log_scale(items, level, kappa, risk[:, None])) / kappa
        )

    inside = np.full(risk.shape, LEAST_SIGMA * half)
    outside = np.full(risk.shape, half / quantile)
    for _ in range(BISECTIONS):
        midpoint = (inside + outside) / 2.0
        within = reach(midpoint).min(axis=1) <= width
        inside = np.where(within, midpoint, inside)
        outside = np.where(within, outside, midpoint)
    return inside, ratio[reach(inside).argmin(axis=1)]
