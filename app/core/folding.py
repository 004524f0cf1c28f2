"""Folding one round: from a recorded draw and its loss to a narrower interval.

Rounds are folded in draw order, whenever their losses arrive: taking them by arrival would let
fast (easy) items in first and bias the signal. Round t is folded from rounds before it only, with
the probability recorded at its draw. Two completions are kept: an unjudgeable item has the
smallest loss in the ``plus`` one and the largest in the ``minus`` one (METHOD 8).
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.betting import Bet, Bettor, CommonVariance, OwnVariance
from app.core.eprocess import Interval, Side, Wealth
from app.core.estimators import Lure
from app.core.plan import Plan, cell_width
from app.core.proposals import Mixture, RunningSum
from app.core.signals import (
    Extremes,
    Range,
    check,
    exact_range,
    floor_range,
    global_range,
    signal,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one completion saw in a round: plug-in part, range and signal."""

    plug_in: float
    possible: Range
    signal: float


@dataclass(frozen=True, slots=True)
class Point:
    """The answer after a folded round."""

    round: int
    estimate: float
    interval: Interval
    plus: Seen
    minus: Seen


@dataclass(slots=True)
class Completion:
    """Running sums of one completion of the pool."""

    fill: float
    bettor: Bettor
    lure: Lure
    observed: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A round ready to fold; ``loss`` is None when no judge could tell it.

    ``precision`` is the one in force when the round was drawn.
    """

    round: int
    item: int
    q: float
    loss: float | None
    precision: float | None


@dataclass(slots=True)
class Fold:
    """The folded prefix of a session: everything the interval depends on."""

    extremes: Extremes
    wealth: Wealth
    plus: Completion
    minus: Completion
    surrogate_left: RunningSum
    pool_interval: Interval
    interval: Interval
    cell: float
    emptied: bool = False
    points: list[Point] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Number of rounds folded."""
        return len(self.points)

    @property
    def estimate(self) -> float:
        """LURE's midpoint of the two completions, clipped into the interval."""
        middle = (self.plus.lure.value + self.minus.lure.value) / 2.0
        return min(max(middle, self.interval.lower), self.interval.upper)


def begin_fold(plan: Plan, surrogate: Floats) -> Fold:
    """The fold before its first round."""
    scale = plan.scale
    total = math.fsum(surrogate)
    completions = [
        Completion(
            fill=fill,
            bettor=OwnVariance(scale.lower) if plan.policy.fraction == "own" else CommonVariance(),
            lure=Lure(plan.items, total / plan.items),
        )
        for fill in (scale.lower, scale.upper)
    ]
    return Fold(
        extremes=Extremes(
            plan.items, scale.lower, scale.upper, float(surrogate.min()), float(surrogate.max())
        ),
        wealth=Wealth(scale, plan.cell, plan.alpha1, theta=plan.policy.theta, c=plan.policy.c),
        plus=completions[0],
        minus=completions[1],
        surrogate_left=RunningSum(total),
        pool_interval=scale,
        interval=plan.bound.widen(scale, plan.items, scale),
        cell=plan.cell,
    )


def fold_round(
    plan: Plan, fold: Fold, surrogate: Floats, proposal: Mixture, outcome: Outcome
) -> Fold:
    """Fold the next round. Consumes ``fold`` and returns it."""
    _refine(plan, fold, outcome.precision)
    guess = float(surrogate[outcome.item])
    known = [_before(plan, fold, side, surrogate, proposal) for side in (fold.plus, fold.minus)]
    seen = [
        _after(plan, side, before, guess, outcome)
        for side, before in zip((fold.plus, fold.minus), known, strict=True)
    ]
    sides = [
        Side(side.bettor, _bet(plan, one.possible), _value(plan, side, one, outcome))
        for side, one in zip((fold.plus, fold.minus), seen, strict=True)
    ]
    fold.wealth.bet(outcome.round, *sides)
    for side, played in zip((fold.plus, fold.minus), sides, strict=True):
        loss = side.fill if outcome.loss is None else outcome.loss
        side.bettor.record(played.value, played.bet)
        side.lure.record(loss - guess, outcome.q)
        side.observed += loss
    fold.surrogate_left.add(-guess)
    _narrow(plan, fold, outcome.round)
    fold.points.append(Point(outcome.round, fold.estimate, fold.interval, *seen))
    return fold


def _refine(plan: Plan, fold: Fold, precision: float | None) -> None:
    """Split the cells when the round was drawn under a finer precision than theirs."""
    if precision == plan.precision:
        return
    cell = cell_width(precision, plan.scale)
    if cell < fold.cell:
        fold.wealth.split(cell)
        fold.cell = cell


def _before(
    plan: Plan, fold: Fold, side: Completion, surrogate: Floats, proposal: Mixture
) -> tuple[float, Range]:
    """Plug-in part and range of the coming round: no loss of it is a parameter here."""
    plug_in = (side.observed + fold.surrogate_left.value) / plan.items
    if plan.policy.range == "global":
        return plug_in, global_range(plan.policy.beta, fold.extremes)
    coming = fold.rounds + 1
    if plan.policy.range == "exact":
        q = proposal.probabilities(coming)
        here = q > 0.0
        return plug_in, exact_range(plug_in, surrogate[here], q[here], fold.extremes)
    left = plan.items - fold.rounds
    return plug_in, floor_range(plug_in, left, plan.policy.beta, fold.extremes)


def _after(
    plan: Plan, side: Completion, before: tuple[float, Range], guess: float, outcome: Outcome
) -> Seen:
    plug_in, possible = before
    loss = side.fill if outcome.loss is None else outcome.loss
    value = signal(plug_in, loss - guess, plan.items, outcome.q)
    check(value, possible)
    return Seen(plug_in, possible, value)


def _bet(plan: Plan, possible: Range) -> Bet:
    if not plan.policy.recentred:
        return Bet(plan.lower, plan.scale.width)
    return Bet(possible.lower, possible.width)


def _value(plan: Plan, side: Completion, seen: Seen, outcome: Outcome) -> float:
    """What is bet on: the signal, or in the authors' form of ``evalue`` the raw loss."""
    if plan.policy.recentred:
        return seen.signal
    return side.fill if outcome.loss is None else outcome.loss


def _narrow(plan: Plan, fold: Fold, folded: int) -> None:
    """Intersect with the cells still standing and with the logical limits."""
    left = plan.items - folded
    limits = Interval(
        (fold.plus.observed + left * plan.lower) / plan.items,
        (fold.minus.observed + left * plan.upper) / plan.items,
    )
    hull = fold.wealth.hull
    pool = fold.pool_interval
    if hull is None or not hull.meets(limits):
        # An event of probability at most alpha, or limits narrower than a cell.
        fold.emptied = True
    else:
        pool = pool.cut(hull)
    pool = pool.cut(limits)
    if pool != fold.pool_interval:
        fold.pool_interval = pool
        fold.interval = plan.bound.widen(pool, plan.items, plan.scale)
