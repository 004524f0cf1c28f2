"""Confidence sequences: the rounds they bet on, and the protocol of their intervals.

A confidence sequence is a running interval that holds the risk in all rounds at once with
probability 1 - alpha. Here it comes from e-processes: wealth that bets against candidate risks
(docs/evidence/method.md#3-stakes-and-villes-inequality).
"""

from typing import Any, NamedTuple, Protocol

from celeus.core.betting.signals import Range
from celeus.core.interval import Interval, RunningIntersection
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan

Halves = tuple[float, ...]
"""Half-widths that a lattice bets at, on the unit scale."""
Accrued = tuple[tuple[float, ...], tuple[float, ...]]
"""Information of the plus and the minus side of a lattice, for each of its half-widths."""


class WealthLost(ArithmeticError):
    """A wealth factor was not positive: the range of the round was wrong."""


class CompletionSignal(NamedTuple):
    """The signal of a round in one completion of the pool, and what it is computed from."""

    plug_in: float
    signal_range: Range
    surrogate: float
    loss: float
    signal: float


class BetInputs(NamedTuple):
    """Everything but the stakes that the bets on a round depend on, fixed at its draw.

    ``reach`` are the ranges of the two signals with every open round at its worst, ``variance`` is
    the predicted one (NaN where the policy predicts none), ``precision`` the one in force.
    ``predicted`` is what the rounds folded by then say of the signal, for each side (see
    ``ConfidenceSequence.predict``); ``accrued`` is the information of all rounds judged by then,
    for each lattice.
    """

    reach: tuple[Range, Range]
    variance: float
    precision: float | None
    predicted: tuple[Any, Any]
    accrued: tuple[Accrued, ...]


class BettingRound(NamedTuple):
    """A round to bet on: its draw, the inputs of its bets, and its signal in both completions.

    ``last`` is true when pool or budget leave no further round.
    """

    draw: Draw
    inputs: BetInputs
    last: bool
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
    """A running interval for the target, from bets on the signals of both completions.

    The defaults are those of a sequence without goals that bets on every round once.
    """

    __slots__ = ()

    @property
    def interval(self) -> Interval:
        """Interval for the target."""

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""

    @property
    def emptied(self) -> bool:
        """True if no candidate is left; the last interval then stays."""

    @property
    def estimate(self) -> float:
        """Point estimate, the midpoint of the two completions' estimates."""

    def count_unjudged(self) -> None:
        """From now on some rounds have no loss: reject only what is rejected with any loss.

        Where a candidate is rejected with these at their worst, it is with any loss.
        """
        return

    @property
    def rounds_to_replay(self) -> int:
        """Number of past rounds that the coming one may have to bet on again."""
        return 0

    def replays_soon(self, precision: float | None, *, last: bool) -> bool:
        """Return true if a round drawn at ``precision`` is likely to replay all past rounds."""
        del precision, last
        return False

    def bets_per_round(self, precision: float | None) -> int:
        """Number of bets of a round drawn at ``precision``, one per candidate and goal."""

    def predict(self, reach: tuple[Range, Range], variance: float) -> tuple[Any, Any]:
        """Return the prediction of the next draw's signal by the folded rounds, for each side."""
        del reach, variance
        return None, None

    def halves(self, precision: float | None) -> tuple[Halves, ...]:
        """Half-widths of the bets of a round drawn at ``precision``, for each lattice.

        Empty without information goals, or where those before go on.
        """
        del precision
        return ()

    def outlook(self, accrued: tuple[Accrued, ...]) -> Outlook | None:
        """Information needed for the goal, and accrued; None without a goal."""
        del accrued
        return None

    def update(self, betting_round: BettingRound) -> None:
        """Bet on a round, with bets fixed at its draw."""

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the logical limits that the observed losses leave for the pool risk."""


class PoolRiskSequence(ConfidenceSequence):
    """A confidence sequence for the pool risk, widened to the target by the plan's bound."""

    __slots__ = ("_intersection", "_plan", "interval")
    interval: Interval

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._intersection = RunningIntersection(plan.scale)
        self.interval = plan.bound.widen(plan.scale, plan.items, plan.scale)

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""
        return self._intersection.interval

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
