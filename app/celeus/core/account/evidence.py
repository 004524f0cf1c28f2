"""Wealth that goes on after a rejection, and the intervals that it gives at any level.

An ordinary lattice drops a candidate for good at the level of its plan. Here it stays and goes on
betting, so that its stake at this moment is alpha times an e-value, whatever level is asked for
later: at level a a candidate is out while its stake is at least alpha / a. Nothing of it is kept
from earlier moments, since the largest e-value so far is none
(docs/evidence/method.md#19-the-account-of-alpha).
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from celeus.core.eprocess.bets import Goal
from celeus.core.eprocess.lattice import WHOLE, CandidateGrid, Lattice, LatticeSide
from celeus.core.eprocess.pool_target import (
    LatticeSequence,
    half_width,
    restrict,
    threshold_design,
)
from celeus.core.interval import Interval
from celeus.core.mills import STAKE_FACTOR, inverse_mills
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import Question, rounding

Floats = NDArray[np.float64]

LEAST_LEVEL = 1e-100
FIRST = math.log(0.5 / STAKE_FACTOR)
"""The log stake W up to which W times the inverse Mills ratio grows."""
LEAST_RATIO = 0.6
"""The least ratio that larger stakes bet with: less would keep what is won at the plan's level and
win nothing for lower ones."""
STEPS = 256


@cache
def _sizes() -> tuple[Floats, Floats]:
    """Log stakes from FIRST on, and the log stakes whose inverse Mills ratio they bet with.

    The ratio falls no faster than 1 / W, down to the least one. Then a stake after a round never
    falls in the stake before it, and whoever skips a round gains nothing by it later.
    """
    log_stake = np.linspace(FIRST, 0.0, STEPS)
    ratio = inverse_mills(log_stake.copy())
    beyond = np.linspace(0.0, math.log(ratio[0] / LEAST_RATIO), STEPS)
    wanted = ratio[0] * np.exp(-beyond)
    return FIRST + beyond, np.interp(wanted, ratio[::-1], log_stake[::-1])


class OpenSide(LatticeSide):
    """A side that drops no candidate for its stake, only for what logic says."""

    __slots__ = ("_start",)

    def __init__(
        self, steps: int, level: float, goals: list[Goal], candidates: CandidateGrid | None = None
    ) -> None:
        super().__init__(steps, level, goals, candidates)
        self._start: Floats = self._total

    @property
    def _played(self) -> Floats:
        return np.where(self._stake <= FIRST, self._stake, np.interp(self._stake, *_sizes()))

    @property
    def _total(self) -> Floats:
        return np.asarray(np.logaddexp.reduce(self._stake, axis=0))

    def bound_at(self, least: float) -> float | None:
        """Lower bound where log stakes of at least ``least`` reject; None when none stands."""
        standing = np.flatnonzero(self._total < least)
        if not standing.size:
            return None
        first = int(self._standing[standing[0]])
        return float(self._grid[max(first - 1, 0)]) / self._steps

    def log_wealth(self, value: float) -> float:
        """Log e-value against "the risk is at most ``value``", in this side's frame.

        Infinite where logic rules that out, minus infinity where it says so.
        """
        at = int(np.searchsorted(self._grid, value * self._steps - WHOLE))
        place = int(np.searchsorted(self._standing, at))
        if place == self._standing.size:
            return -math.inf
        if self._standing[place] != at:
            return math.inf
        return float(np.logaddexp.reduce(self._stake[:, place]) - self._start[place])

    def _drop_rejected(self) -> None:
        """Nothing: the stake of now is what counts."""

    def _take(self, which: NDArray[np.intp] | slice) -> None:
        super()._take(which)
        self._start = self._start[which]


class OpenLattice(Lattice):
    """A lattice of open sides."""

    __slots__ = ()

    side = OpenSide
    sides: list[OpenSide]  # type: ignore[assignment]

    def hull_at(self, least: float) -> tuple[float, float] | None:
        """The interval where log stakes of at least ``least`` reject; None when none is left."""
        lower, mirrored = (side.bound_at(least) for side in self.sides)
        if lower is None or mirrored is None or lower > 1.0 - mirrored:
            return None
        return lower, 1.0 - mirrored


class EvidenceSequence(LatticeSequence):
    """The confidence sequence of the plan, and evidence for any other level, target pool.

    What the plan's own interval says is the same to the last digit as without the evidence.
    """

    __slots__ = ("_limits", "_open")

    def __init__(self, plan: Plan, start: float) -> None:
        super().__init__(plan, start)
        steps = round(plan.scale.width / plan.cell)
        half = half_width(plan, plan.precision)
        self._open = OpenLattice(steps, plan.alpha1, half, design=threshold_design(plan))
        self._lattices = [self._lattice, self._open]
        self._limits = plan.scale

    @staticmethod
    def serves(plan: Plan) -> bool:
        """The plan's claim is one that evidence is kept for."""
        return plan.policy.has_goal and plan.bound.kind == "none"

    def bets_per_round(self, precision: float | None) -> int:
        """Bets of a round: those of the interval, and as many for evidence at any other level."""
        return 2 * super().bets_per_round(precision)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the candidates not rejected and with the logical limits."""
        super().narrow(limits, last=last)
        self._limits = limits
        restrict(self._open, self._frame, limits)

    def interval_at(self, level: float) -> Interval:
        """The interval of this moment at ``level``, or half of it and so on until one is left."""
        while level > LEAST_LEVEL:
            hull = self._open.hull_at(math.log(self._plan.alpha1 / level))
            if hull is not None:
                interval = Interval(self._frame.value(hull[0]), self._frame.value(hull[1]))
                if interval.meets(self._limits):
                    return interval.cut(self._limits)
            level /= 2.0
        return self._limits

    def log_evidence(self, question: Question) -> float:
        """Log e-value of this moment against "the answer yes is wrong"."""
        slack = rounding(self._plan.scale)
        answer = question.answer(self._limits, slack)
        if answer != "undecided":
            return math.inf if answer == "yes" else -math.inf
        value = self._frame.unit(question.threshold)
        below, above = self._open.sides
        if question.side == "at_least":
            return below.log_wealth(value)
        return above.log_wealth(1.0 - value)
