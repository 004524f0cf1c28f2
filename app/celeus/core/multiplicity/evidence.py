"""Wealth that continues after a rejection, and the intervals it gives at any level.

An ordinary lattice drops a candidate for good at the level of its plan. Here it stays and keeps
betting, so that its current stake is alpha times an e-value, for any level asked for later: at
level a a candidate is rejected while its stake is at least alpha / a. Only the current stake
counts, since the largest e-value so far is not an e-value
(docs/evidence/method.md#19-the-account-of-alpha).

With a precision a candidate has several stakes, since levels asked for later are mostly below the
plan's alpha. Stake j has the share b of the start and aims at the level alpha / d:

    b, d    0.4, 1    0.4, 3    0.2, 20
    bets    those of ``betting.bets`` with W_j / (b d) for the stake W_j, the information goal of
            alpha, and D z(alpha / d) / z(alpha) for D, z(a) the normal quantile at 1 - a / 2

The evidence is their sum: a mixture of martingales with weights fixed beforehand.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import Halves
from celeus.core.betting.bets import Goal
from celeus.core.betting.candidate_grid import WHOLE, CandidateGrid, Lattice, LatticeSide
from celeus.core.betting.pool_target import (
    LatticeSequence,
    half_width,
    restrict,
    threshold_design,
)
from celeus.core.interval import Interval
from celeus.core.mills import STAKE_FACTOR, inverse_mills
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import Question, rounding
from celeus.core.special import normal_quantile

Floats = NDArray[np.float64]

AIMS = ((0.4, 1.0), (0.4, 3.0), (0.2, 20.0))
"""b and d of every stake of a candidate."""
LEAST_LEVEL = 1e-100
FIRST = math.log(0.5 / STAKE_FACTOR)
"""The log stake W up to which W times the inverse Mills ratio grows."""
LEAST_RATIO = 0.6
"""Least ratio that larger stakes bet with. A smaller one would keep the gains at the plan's level
and gain nothing at lower levels."""
STEPS = 256


@cache
def _sizes() -> tuple[Floats, Floats]:
    """Return log stakes from FIRST on, and the log stakes whose inverse Mills ratio they bet with.

    The ratio falls no faster than 1 / W, down to the least one. So a stake after a round never
    decreases in the stake before it, and skipping a round gives no advantage later.
    """
    log_stake = np.linspace(FIRST, 0.0, STEPS)
    ratio = inverse_mills(log_stake.copy())
    beyond = np.linspace(0.0, math.log(ratio[0] / LEAST_RATIO), STEPS)
    wanted = ratio[0] * np.exp(-beyond)
    return FIRST + beyond, np.interp(wanted, ratio[::-1], log_stake[::-1])


class OpenSide(LatticeSide):
    """A side that keeps every candidate its logical limits allow, whatever its stake."""

    __slots__ = ("_start",)

    def __init__(
        self, steps: int, level: float, goals: list[Goal], candidates: CandidateGrid | None = None
    ) -> None:
        super().__init__(steps, level, goals, candidates)
        self._start: Floats = self._total

    @property
    def _played(self) -> Floats:
        stake = self._stake - np.log([[goal.unit] for goal in self._goals])
        return np.where(stake <= FIRST, stake, np.interp(stake, *_sizes()))

    @property
    def _total(self) -> Floats:
        return np.asarray(np.logaddexp.reduce(self._stake, axis=0))

    def bound_at(self, least: float) -> float | None:
        """Return the lower bound where log stakes of at least ``least`` reject, or None.

        None means that all candidates are rejected.
        """
        standing = np.flatnonzero(self._total < least)
        if not standing.size:
            return None
        first = int(self._standing[standing[0]])
        return float(self._grid[max(first - 1, 0)]) / self._steps

    def log_wealth(self, value: float) -> float:
        """Return the log e-value against "the risk is at most ``value``", in this side's frame.

        Infinite where the logical limits exclude it, minus infinity where they imply it.
        """
        index = int(np.searchsorted(self._grid, value * self._steps - WHOLE))
        place = int(np.searchsorted(self._standing, index))
        if place == self._standing.size:
            return -math.inf
        if self._standing[place] != index:
            return math.inf
        return float(np.logaddexp.reduce(self._stake[:, place]) - self._start[place])

    def _drop_rejected(self) -> None:
        """Drop nothing: only the current stake counts."""

    def _take(self, which: NDArray[np.intp] | slice) -> None:
        super()._take(which)
        self._start = self._start[which]


class OpenLattice(Lattice):
    """A lattice of open sides."""

    __slots__ = ()

    side = OpenSide
    sides: list[OpenSide]  # type: ignore[assignment]

    def halves(self, half: float | None) -> Halves:
        """Return the half-widths of the goals: with a precision one for every aim."""
        if half is None:
            return super().halves(half)
        quantiles = {d: normal_quantile(1.0 - self._level / (2.0 * d)) for _, d in AIMS}
        return tuple(half * quantiles[d] / quantiles[1.0] for _, d in AIMS)

    def _goals(self, half: float | None) -> list[Goal]:
        goals = super()._goals(half)
        if half is None:
            return goals
        return [
            Goal(width, goals[0].information, share=b, unit=b * d)
            for width, (b, d) in zip(self.halves(half), AIMS, strict=True)
        ]

    def hull_at(self, least: float) -> tuple[float, float] | None:
        """Return the interval where log stakes of at least ``least`` reject; None if empty."""
        lower, mirrored = (side.bound_at(least) for side in self.sides)
        if lower is None or mirrored is None or lower > 1.0 - mirrored:
            return None
        return lower, 1.0 - mirrored


class EvidenceSequence(LatticeSequence):
    """The plan's confidence sequence, target pool, with evidence for any other level.

    The plan's own interval is the same to the last digit as without the evidence.
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
        """Return whether evidence can be kept for the plan's claim."""
        return plan.policy.has_goal and plan.bound.kind == "none"

    def bets_per_round(self, precision: float | None) -> int:
        """Return the bets of a round: those of the interval, and those for the evidence."""
        aims = 1 if precision is None else len(AIMS)
        return (1 + aims) * super().bets_per_round(precision)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the candidates not rejected and with the logical limits."""
        super().narrow(limits, last=last)
        self._limits = limits
        restrict(self._open, self._frame, limits)

    def interval_at(self, level: float) -> Interval:
        """Return the current interval at ``level``, or halve it until the interval is not empty."""
        while level > LEAST_LEVEL:
            hull = self._open.hull_at(math.log(self._plan.alpha1 / level))
            if hull is not None:
                interval = Interval(self._frame.value(hull[0]), self._frame.value(hull[1]))
                if interval.meets(self._limits):
                    return interval.cut(self._limits)
            level /= 2.0
        return self._limits

    def log_evidence(self, question: Question) -> float:
        """Return the current log e-value against "the answer yes is wrong"."""
        slack = rounding(self._plan.scale)
        answer = question.answer(self._limits, slack)
        if answer != "undecided":
            return math.inf if answer == "yes" else -math.inf
        value = self._frame.unit(question.threshold)
        below, above = self._open.sides
        if question.side == "at_least":
            return below.log_wealth(value)
        return above.log_wealth(1.0 - value)
