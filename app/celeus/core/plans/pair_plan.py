"""The plan of the pairs (v, r), fixed at opening: starting stakes and information goals.

The starting stake is the evidence that the pool itself is about the population
(docs/evidence/method.md#7-target-population-pairs).

Notation, on the unit scale: R_N pool risk, r population risk, N items, D half the precision, h the
step of the lattice, level two-sided, z' the normal quantile at 1 - level / 2, phi, Phi the normal
density and distribution. For N iid losses in [0, 1] of mean r

    E exp(kappa R_N) <= (1 - r + r e^(kappa / N))^N

so a pair may start with the log stake  log(level / 2) + kappa v - N log(1 - r + r e^(kappa / N)):
at v = R_N its mean over pools is at most level / 2. For every r the plan takes

    tau^2    r (1 - r) / N                     h0 = phi(z') / (level / 2),  L' = log(2 / level)
    kappa(s) h0 / sqrt(s^2 + h0^2 tau^2 / (2 L'))
    reach(s) s z1 + (log Phi(-z1) + L' + kappa^2 tau^2 / 2) / kappa,   phi(z1) / Phi(-z1) = kappa s
    sigma*   the s with reach(s) = D - h / 2, at least 0.1 D           kappa = kappa(sigma*)
    I*       1 / sigma*^2

Any kappa and goal are valid; these make variances add in quadrature. For losses of 0 and 1 there is
a larger start with a plan of its own (``plans.binomial_start``).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.plans.binomial_start import log_scale, sigma_and_kappa
from celeus.core.special import log_normal_cdf, normal_quantile

Floats = NDArray[np.float64]

LEAST_SIGMA = 0.1
WIDEST_SIGMA = 10.0
BISECTIONS = 44
PAIRS_PER_PRECISION = 80
NARROWEST_BISECTIONS = 20
WHOLE = 1e-9
MILLS_STEP = 1e-3
MILLS_LOWEST = -12.0


class PairStarts(NamedTuple):
    """Numbers of some population risks r that are fixed before any label.

    ``log_stake`` is that of the pair (0, r); that of (v, r) is kappa v more.
    """

    sigma: Floats
    kappa: Floats
    log_stake: Floats


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Pool size, level and lattice of a session whose population risk is certified by pairs.

    ``exact`` uses the larger start that only losses of 0 and 1 allow.
    """

    items: int
    level: float
    steps: int
    exact: bool = False

    def risks(self) -> Floats:
        """Return the lattice of r and of v, shape [steps + 1]."""
        return np.arange(self.steps + 1) / self.steps

    def sigma(self, risk: Floats, half: float) -> Floats:
        """Return sigma* of every population risk, for a half-width D = ``half``."""
        if self.exact:
            return self._exact(risk, half)[0]
        least = np.full(risk.shape, LEAST_SIGMA * half)
        inside, outside = least.copy(), np.full(risk.shape, WIDEST_SIGMA * half)
        width = half - 0.5 / self.steps
        for _ in range(BISECTIONS):
            midpoint = (inside + outside) / 2.0
            within = self._required_width(midpoint, risk) <= width
            inside = np.where(within, midpoint, inside)
            outside = np.where(within, outside, midpoint)
        return inside

    @lru_cache(maxsize=16)  # noqa: B019 -- a plan is numbers, and the cache is small
    def lattice_starts(self, half: float) -> PairStarts:
        """Return the ``starts`` of the whole lattice, read-only: sides and replays share them."""
        starts = self.starts(half, self.risks())
        for column in starts:
            column.flags.writeable = False
        return starts

    def starts(self, half: float, risk: Floats) -> PairStarts:
        """Return sigma*, kappa and stakes at population risks, of a session opened for ``half``."""
        if self.exact:
            sigma, kappa = self._exact(risk, half)
            scale = log_scale(self.items, self.level, kappa, risk)
            return PairStarts(sigma, kappa, scale - kappa * risk)
        sigma = self.sigma(risk, half)
        kappa = self.kappa(sigma, risk)
        return PairStarts(sigma, kappa, self.start(kappa, risk))

    def kappa(self, sigma: Floats, risk: Floats) -> Floats:
        """Return kappa, the weight of the pool's own evidence, at s = ``sigma``."""
        h0, log_level = self._constants()
        tau2 = risk * (1.0 - risk) / self.items
        return np.asarray(h0 / np.sqrt(sigma**2 + h0 * h0 * tau2 / (2.0 * log_level)))

    def start(self, kappa: Floats, risk: Floats) -> Floats:
        """Return the log stake of the pair (0, r) before any label; that of (v, r) adds kappa v."""
        moment = self.items * np.log1p(risk * np.expm1(kappa / self.items))
        return np.asarray(math.log(self.level / 2.0) - moment)

    def reached(self, half: float, width: float, risk: float) -> bool:
        """Return whether a wholly judged pool of risk 0 or 1/2 reaches ``width``.

        The session was opened for D = ``half``.
        """
        # The row that must be out: at risk 0 all of the width lies above, at 1/2 half of it.
        share = width if risk == 0.0 else width / 2.0
        away = math.floor(share * self.steps + WHOLE) / self.steps
        mirrored = np.array([max(1.0 - risk - away, 0.0)])
        _, kappa, log_stake = self.starts(half, mirrored)
        return bool((log_stake + kappa * (1.0 - risk))[0] >= 0.0)

    def _exact(self, risk: Floats, half: float) -> tuple[Floats, Floats]:
        width = half - 0.5 / self.steps
        return sigma_and_kappa(self.items, self.level, (half, width), risk)

    def _required_width(self, sigma: Floats, risk: Floats) -> Floats:
        _, log_level = self._constants()
        kappa = self.kappa(sigma, risk)
        tau2 = risk * (1.0 - risk) / self.items
        z1 = _inverse_mills_argument(kappa * sigma, self.level)
        log_term = log_normal_cdf(-z1) + log_level + kappa * kappa * tau2 / 2.0
        return np.asarray(sigma * z1 + log_term / kappa)

    def _constants(self) -> tuple[float, float]:
        """Return h0 and L'."""
        z = normal_quantile(1.0 - self.level / 2.0)
        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return density / (self.level / 2.0), math.log(2.0 / self.level)


def pair_steps(precision: float) -> int:
    """Return the number of steps of the lattice of r and v over the unit scale."""
    return math.ceil(PAIRS_PER_PRECISION / precision - WHOLE)


@lru_cache(maxsize=1024)
def narrowest(  # noqa: PLR0913 -- a session, and what is asked of it
    items: int,
    level: float,
    precision: float,
    risk: float,
    opened: float | None = None,
    *,
    exact: bool = False,
) -> float:
    """Return the smallest precision, from ``precision`` up, that a wholly judged pool reaches.

    ``risk`` is the pool's risk, 0 or 1/2. ``opened`` is the precision of the opening if the pairs
    keep their starting stakes; ``exact`` is that of the ``PairPlan``.
    """

    def reached(width: float) -> bool:
        first = opened or width
        return PairPlan(items, level, pair_steps(first), exact).reached(first / 2.0, width, risk)

    if reached(precision):
        return precision
    inside, outside = 1.0, precision
    for _ in range(NARROWEST_BISECTIONS):
        midpoint = math.sqrt(inside * outside)
        if reached(midpoint):
            inside = midpoint
        else:
            outside = midpoint
    return inside


def _inverse_mills_argument(ratio: Floats, level: float) -> Floats:
    """Return z with phi(z) / Phi(-z) = ratio, from a table that ends at the ratio of ``level``."""
    return np.asarray(np.interp(np.log(ratio), *_inverse_mills_table(level)))


@lru_cache(maxsize=16)
def _inverse_mills_table(level: float) -> tuple[Floats, Floats]:
    """Return log(phi(z) / Phi(-z)) and z, ascending."""
    highest = normal_quantile(1.0 - level / 2.0) + 2.0 * MILLS_STEP
    z = np.arange(MILLS_LOWEST, highest, MILLS_STEP)
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - log_normal_cdf(-z), z
