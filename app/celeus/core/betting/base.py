"""Confidence sequences: the rounds they bet on, and the protocol of their intervals.

A confidence sequence is a running interval that holds the risk in all rounds at once with
probability 1 - alpha. Here it comes from e-processes: wealth that bets against candidate risks
(docs/evidence/method.md#3-stakes-and-villes-inequality).
"""

import math
from typing import NamedTuple, Protocol

from celeus.core.betting.signals import Range
from celeus.core.history import Timing
from celeus.core.interval import Interval, RunningIntersection
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan


class WealthLost(ArithmeticError):
    """A wealth factor was not positive: the range of the round was wrong."""


class CompletionSignal(NamedTuple):
    """The signal of a round in one completion of the pool, and what it is computed from."""

    plug_in: float
    signal_range: Range
    surrogate: float
    loss: float
    signal: float


class BettingRound(NamedTuple):
    """A round to bet on: its draw, and its signal in both completions of the pool.

    ``timing`` says which rounds its bets use; ``reach`` are the ranges of the two signals with the
    rounds open at the draw at their worst, so that all of it is fixed at the draw. ``precision`` is
    the one in force at the draw. ``surrogates_left`` and ``variance`` are known before the loss
    (see ``Point``); the variance is NaN where the policy predicts none.
    ``last`` is true when pool or budget leave no further round.
    """

    draw: Draw
    timing: Timing
    reach: tuple[Range, Range]
    precision: float | None
    last: bool
    surrogates_left: float
    variance: float
    plus: CompletionSignal
    minus: CompletionSignal


class Outlook(NamedTuple):
    """Information that a sequence has and needs for its goal, on the unit scale.

    ``goal`` is I* and ``accrued`` I, of the side that has less; ``half`` is D, half the width that
    I* is for. ``information`` is I without padding, the sum of 1/s2; ``ratio`` is the scatter of
    signals over the predicted one (docs/evidence/method.md#5-the-bet).
    """

    goal: float
    accrued: float
    half: float
    information: float
    ratio: float


class ConfidenceSequence(Protocol):
    """A running interval for the target, from bets on the signals of both completions."""

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""

    @property
    def interval(self) -> Interval:
        """Interval for the target."""

    @property
    def emptied(self) -> bool:
        """True if no candidate is left; the last interval then stays."""

    @property
    def estimate(self) -> float:
        """Point estimate, the midpoint of the two completions' estimates."""

    @property
    def half(self) -> float:
        """Half the width that the bets aim at, on the unit scale; NaN if they have no goal."""

    def allow_open(self) -> None:
        """Reject from now on only what is also rejected once rounds without a loss have theirs."""

    @property
    def rounds_to_replay(self) -> int:
        """Number of past rounds that the coming one may have to bet on again."""

    def replays_soon(self, precision: float | None, *, last: bool) -> bool:
        """Return true if a round drawn at ``precision`` is likely to replay all past rounds."""

    def bets_per_round(self, precision: float | None) -> int:
        """Number of bets of a round drawn at ``precision``, one per candidate and goal."""

    def update(self, betting_round: BettingRound) -> None:
        """Bet on a round, with bets fixed at its draw."""

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the logical limits that the observed losses leave for the pool risk."""


class PoolRiskSequence:
    """A confidence sequence for the pool risk, widened to the target by the plan's bound."""

    __slots__ = ("_intersection", "_plan", "interval")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._intersection = RunningIntersection(plan.scale)
        self.interval = plan.bound.widen(plan.scale, plan.items, plan.scale)

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""
        return self._intersection.interval

    @property
    def half(self) -> float:
        """NaN: the bets have no goal."""
        return math.nan

    def allow_open(self) -> None:
        """Do nothing: a larger loss in place of a smaller one leaves no rejected candidate."""

    @property
    def rounds_to_replay(self) -> int:
        """Always 0: every round is bet on once."""
        return 0

    def replays_soon(self, precision: float | None, *, last: bool) -> bool:
        """Return false: every round is bet on once."""
        del precision, last
        return False

    @property
    def emptied(self) -> bool:
        """True if no candidate is left; the last interval then stays."""
        return self._intersection.emptied

    def cut(self, hull: Interval | None, limits: Interval) -> bool:
        """Intersect with the candidates' hull and the logical limits; return true if narrower."""
        changed = self._intersection.narrow(hull, limits)
        if changed:
            plan = self._plan
            self.interval = plan.bound.widen(self.pool_interval, plan.items, plan.scale)
        return changed
