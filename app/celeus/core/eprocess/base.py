"""Confidence sequences: what a round gives them, and what they say of the risk after it.

A confidence sequence is a running interval that holds the risk in all rounds at once with
probability 1 - alpha. Here it comes from e-processes: wealth that bets against candidate risks
(docs/evidence/method.md#3-stakes-and-villes-inequality).
"""

from typing import NamedTuple, Protocol

from celeus.core.eprocess.signals import Range
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

    ``basis`` is how many rounds its bets rest on: those folded when it was drawn; ``reach`` are the
    ranges of the two signals with every round after these at its worst, so that all of it is fixed
    at the draw. ``precision`` is the one in force at the draw. ``surrogates_left`` and ``variance``
    are known before the loss (see ``Point``); the variance is NaN where the policy predicts none.
    ``last`` says that pool or budget leave no further round.
    """

    draw: Draw
    basis: int
    reach: tuple[Range, Range]
    precision: float | None
    last: bool
    surrogates_left: float
    variance: float
    plus: CompletionSignal
    minus: CompletionSignal


class Outlook(NamedTuple):
    """How far a sequence with an information goal is from it, on the unit scale.

    ``goal`` is I* and ``accrued`` I, of the side that has less; ``half`` is D, half the width that
    I* is for. ``information`` is the same without padding, the sum of 1/s2; ``ratio`` says by how
    much signals scatter more than predicted (docs/evidence/method.md#5-the-bet).
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
        """No candidate is left; the last interval stays."""

    @property
    def estimate(self) -> float:
        """Point estimate, the midpoint of the two completions' estimates."""

    @property
    def rounds_to_replay(self) -> int:
        """Past rounds that the coming one may have to bet on again."""

    def replays_soon(self, precision: float | None, *, last: bool) -> bool:
        """Whether a round drawn at ``precision`` is likely to have all past ones bet on again."""

    def bets_per_round(self, precision: float | None) -> int:
        """Bets of a round drawn at ``precision``, one a candidate and goal; the time it takes."""

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
    def rounds_to_replay(self) -> int:
        """None: every round is bet on once."""
        return 0

    def replays_soon(self, precision: float | None, *, last: bool) -> bool:
        """Never."""
        del precision, last
        return False

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self._intersection.emptied

    def cut(self, hull: Interval | None, limits: Interval) -> bool:
        """Intersect with the candidates' hull and the logical limits; true when that narrows it."""
        changed = self._intersection.narrow(hull, limits)
        if changed:
            plan = self._plan
            self.interval = plan.bound.widen(self.pool_interval, plan.items, plan.scale)
        return changed
