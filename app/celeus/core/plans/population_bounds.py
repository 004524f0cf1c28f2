"""From pool risk to population risk.

Notation: R_N pool risk, R population risk, N items drawn iid from the population, losses in
[L, U]. An interval M for R_N that holds at every moment is widened by a bound on |R_N - R| that
fails with probability at most alpha2; both hold at once with probability 1 - alpha1 - alpha2.

    hoeffding        (U - L) sqrt(log(2 / alpha2) / (2 N)) to each side
    kl               R with N kl(R_N, R) <= log(2 / alpha2), on the unit scale; never wider
                     than hoeffding
    clopper_pearson  exact for 0-1 losses: N R_N is a whole number
    margin           a half-width given by the user for a dependent pool, with its assumption
    pairs            no widening: the bets speak of the population themselves (``plans.pair_plan``);
                     alpha2 is the level of the loose interval for the pool risk they rest on
    exact_pairs      the same with the larger start of 0-1 losses (``plans.binomial_start``)
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from celeus.core.interval import Interval
from celeus.core.plain import Plain
from celeus.core.special import beta_quantile

BoundKind = Literal["none", "hoeffding", "kl", "clopper_pearson", "margin", "pairs", "exact_pairs"]

BISECTIONS = 60
WHOLE = 1e-9
LIMITS_KEPT = 1024
"""Number of limits remembered: a label mostly moves one end of the interval, and not far."""


@dataclass(frozen=True, slots=True)
class PopulationBound(Plain):
    """The step from an interval for the pool risk to one for the target.

    ``kind`` "none" leaves the interval unchanged (target ``pool``); ``half_width`` and
    ``assumption`` belong to ``margin`` only.
    """

    kind: BoundKind
    alpha2: float = 0.0
    half_width: float = 0.0
    assumption: str = ""

    @property
    def paired(self) -> bool:
        """True if bets are on the population risk itself, with ``alpha2`` for a loose interval."""
        return self.kind in {"pairs", "exact_pairs"}

    @property
    def exact(self) -> bool:
        """True if pairs start with the larger stakes that losses of 0 and 1 allow."""
        return self.kind == "exact_pairs"

    def widen(self, pool: Interval, items: int, scale: Interval) -> Interval:
        """Return the interval for the target from one for the pool risk, cut to the scale."""
        if self.kind == "none":
            return pool
        if self.paired:
            return scale
        if self.kind == "margin":
            half = self.half_width
        elif self.kind == "hoeffding":
            half = scale.width * math.sqrt(math.log(2.0 / self.alpha2) / (2.0 * items))
        else:
            return self._widen_unit(pool, items, scale)
        return Interval(pool.lower - half, pool.upper + half).cut(scale)

    def _widen_unit(self, pool: Interval, items: int, scale: Interval) -> Interval:
        below = min(max((pool.lower - scale.lower) / scale.width, 0.0), 1.0)
        above = min(max((pool.upper - scale.lower) / scale.width, 0.0), 1.0)
        if self.kind == "kl":
            budget = math.log(2.0 / self.alpha2) / items
            ends = 1.0 - _kl_upper(1.0 - below, budget), _kl_upper(above, budget)
        else:
            ends = (
                _binomial_lower(math.ceil(items * below - WHOLE), items, self.alpha2 / 2.0),
                _binomial_upper(math.floor(items * above + WHOLE), items, self.alpha2 / 2.0),
            )
        return Interval(
            scale.lower + scale.width * ends[0], scale.lower + scale.width * ends[1]
        ).cut(scale)

    def narrowest(self, items: int, scale: Interval) -> float:
        """Return the smallest width of any pool risk, reached at an end of the scale."""
        end = Interval(scale.lower, scale.lower)
        return self.widen(end, items, scale).width

    def at_centre(self, items: int, scale: Interval) -> float:
        """Return the width after judging the whole pool, for a risk in the middle of the scale."""
        midpoint = scale.lower + scale.width / 2.0
        return self.widen(Interval(midpoint, midpoint), items, scale).width


def _kl(p: float, r: float) -> float:
    """Return the relative entropy kl(p, r) of Bernoulli distributions."""
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / r)
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - r))
    return value


def _kl_upper(p: float, budget: float) -> float:
    """Return the largest r in [p, 1] with kl(p, r) <= budget, rounded outwards."""
    inside, outside = p, 1.0
    for _ in range(BISECTIONS):
        midpoint = (inside + outside) / 2.0
        if midpoint >= 1.0 or _kl(p, midpoint) > budget:
            outside = midpoint
        else:
            inside = midpoint
    return outside


@lru_cache(maxsize=LIMITS_KEPT)
def _binomial_upper(count: int, items: int, level: float) -> float:
    """Return the Clopper-Pearson upper limit, where P(X <= ``count``) = ``level``."""
    if count >= items:
        return 1.0
    return beta_quantile(count + 1.0, float(items - count), 1.0 - level)


@lru_cache(maxsize=LIMITS_KEPT)
def _binomial_lower(count: int, items: int, level: float) -> float:
    """Return the Clopper-Pearson lower limit, where P(X >= ``count``) = ``level``."""
    if count <= 0:
        return 0.0
    return beta_quantile(float(count), items - count + 1.0, level)
