"""The confidence sequence of policies with a goal, target pool.

See docs/evidence/method.md#6-target-pool.
"""

from celeus.core.betting.base import (
    Accrued,
    BettingRound,
    Halves,
    Outlook,
    PoolRiskSequence,
)
from celeus.core.betting.bets import GOALS_WITHOUT_PRECISION
from celeus.core.betting.candidate_grid import Lattice, Threshold, ThresholdDesign
from celeus.core.betting.moments import Frame, Prediction, TwoSidedMoments, frames
from celeus.core.betting.signals import Range
from celeus.core.interval import Interval
from celeus.core.plans.plan import Plan, lattice_steps
from celeus.core.plans.stopping import rounding

LEAST_SHARE = 0.1
"""Least half-width of the goal for the pool risk, in units of half the precision."""


class LatticeSequence(PoolRiskSequence):
    """A lattice for the pool risk, widened to the target by the plan's bound.

    ``_lattices`` are all lattices that bet, each by itself; ``_lattice`` gives the interval.
    """

    __slots__ = ("_frame", "_lattice", "_lattices", "_moments", "_precision")

    def __init__(self, plan: Plan, start: float) -> None:
        super().__init__(plan)
        self._frame: Frame = frames(plan.scale)[0]
        self._moments = TwoSidedMoments(plan.scale, start)
        self._precision = plan.precision
        steps = round(plan.scale.width / plan.cell)
        half = half_width(plan, plan.precision)
        self._lattice = Lattice(steps, plan.alpha1, half, design=threshold_design(plan))
        self._lattices = [self._lattice]

    @property
    def estimate(self) -> float:
        """Midpoint of the two completions' centres."""
        return self._moments.estimate

    def predict(self, reach: tuple[Range, Range], variance: float) -> tuple[Prediction, Prediction]:
        """Return predictions of both signals of the next draw."""
        return self._moments.predict(reach, variance)

    def halves(self, precision: float | None) -> tuple[Halves, ...]:
        """Return the half-widths of the bets of a round drawn at ``precision``, by lattice."""
        half = half_width(self._plan, precision)
        return tuple(lattice.halves(half) for lattice in self._lattices)

    def outlook(self, accrued: tuple[Accrued, ...]) -> Outlook:
        """Return the information needed and accrued; with several goals, that of the widest."""
        goal, least = self._lattice.goal, min(sums[0] for sums in accrued[0])
        moments = self._moments
        return Outlook(goal.information, least, goal.half, moments.information, moments.ratio)

    def bets_per_round(self, precision: float | None) -> int:
        """Return the bets of a round drawn at ``precision``, one per candidate and goal."""
        goals = GOALS_WITHOUT_PRECISION if precision is None else 1
        return self._lattice.bets_per_round(lattice_steps(self._plan, precision), goals=goals)

    def update(self, betting_round: BettingRound) -> None:
        """Bet on the round, then record its signals."""
        inputs = betting_round.inputs
        if inputs.precision != self._precision:
            self._precision = inputs.precision
            steps = lattice_steps(self._plan, inputs.precision)
            for lattice in self._lattices:
                lattice.retarget(half_width(self._plan, inputs.precision), steps)
        predicted, signals = inputs.predicted, self._moments.signals(betting_round)
        for lattice, accrued in zip(self._lattices, inputs.accrued, strict=True):
            lattice.update(predicted, accrued, signals)
        self._moments.record(predicted, signals, inputs.variance)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the candidates not rejected and with the logical limits."""
        del last
        if self.cut(lattice_interval(self._lattice, self._frame), limits):
            restrict(self._lattice, self._frame, self.pool_interval)


def lattice_interval(lattice: Lattice, frame: Frame) -> Interval | None:
    """Return a lattice's interval on the loss scale, or None when no candidate is left."""
    hull = lattice.hull
    return None if hull is None else Interval(frame.value(hull[0]), frame.value(hull[1]))


def restrict(lattice: Lattice, frame: Frame, interval: Interval) -> None:
    """Drop a lattice's candidates outside ``interval``, except the nearest beyond each end."""
    lattice.restrict(frame.unit(interval.lower), frame.unit(interval.upper))


def threshold_design(plan: Plan) -> ThresholdDesign | None:
    """Return candidates and stakes for the plan's questions; None without any.

    Also None with a precision, which needs the whole interval, and with a bound that widens: then
    the pool risks that decide a threshold of the target are not at that threshold.
    """
    if not plan.asks or plan.precision is not None or plan.bound.kind != "none":
        return None
    frame = frames(plan.scale)[0]
    slack = rounding(plan.scale) / plan.scale.width
    # What ends a session bounds how fine a goal is worth having
    items, draws = (plan.budget,) * 2 if plan.repeats else (plan.items, plan.drawable)
    if plan.decide is not None:
        zero, margin = frame.unit(0.0), plan.decide / plan.scale.width
        ends = {zero - margin, zero}, {zero, zero + margin}
        sides = tuple(Threshold(end, at_most) for at_most in (False, True) for end in ends[at_most])
        return ThresholdDesign(sides, items, slack, draws, strict=False)
    thresholds = tuple(
        Threshold(frame.unit(question.threshold), question.side == "at_most")
        for question in plan.questions
    )
    return ThresholdDesign(thresholds, items, slack, draws)


def half_width(plan: Plan, precision: float | None) -> float | None:
    """Return D: half the precision on the unit scale, less the width of the step to the target."""
    if precision is None:
        return None
    half = precision / 2.0
    reduced = half - plan.bound.at_centre(plan.items, plan.scale) / 2.0
    return max(reduced, LEAST_SHARE * half) / plan.scale.width
