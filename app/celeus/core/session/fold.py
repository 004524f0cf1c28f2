"""Folding one round: from a recorded draw and its loss to a narrower interval.

Rounds are folded in draw order, whenever their losses arrive: taking them by arrival would let
easy items in first and bias the signal. Round t is folded from rounds before it only, with
the probability recorded at its draw. Two completions are kept: an unjudgeable item has the
smallest loss in the ``plus`` one and the largest in the ``minus`` one.

What a bet depends on is fixed at the draw: surrogates and information are those of the rounds
judged then, centre and scatter of the signals those of the rounds folded then, and the range that
caps it takes the rounds then open at their worst. So whoever
has seen items of later draws moves no bet on them by what he does with an earlier round
(docs/evidence/method.md#8-rounds-that-nobody-can-judge).

Every policy shares this: the predictor gives a round's surrogate and range, the confidence sequence
bets on the two signals and keeps the interval.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import BettingRound, CompletionSignal, ConfidenceSequence
from celeus.core.betting.signals import Range, check, signal
from celeus.core.history import JudgedSum, Timing
from celeus.core.interval import Interval
from celeus.core.ledger import Draw
from celeus.core.pause import pause
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import Decisions, Verdict, rounding, undecided
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.sampling.predictors import Predictor
from celeus.core.sampling.proposals import Residuals
from celeus.core.sampling.remainder import Remainder
from celeus.core.sampling.sums import RunningSum
from celeus.core.session.points import Point, Points


class RoundOutcome(NamedTuple):
    """A round ready to fold; ``loss`` is None when no judge could tell it.

    ``precision`` and ``budget`` are those in force when the round was drawn.
    """

    draw: Draw
    loss: float | None
    precision: float | None
    budget: int
    timing: Timing


@dataclass(slots=True)
class Fold:
    """The folded prefix of a session: everything the interval depends on.

    ``least`` and ``largest`` are the sums of losses of the two completions, known ones included;
    they lose no digits, since on a scale far from 0 many small errors would move the logical
    limits. With weights every loss counts by that of its item. ``remainder`` is what the others may
    sum to. ``fall`` and ``rise`` are how far below and above those counted the losses of the rounds
    may lie.
    ``decisions`` and ``verdict`` are those after the last folded round; in round 0 for what the
    known losses answer alone.
    """

    predictor: Predictor
    confidence_sequence: ConfidenceSequence
    remainder: Remainder
    least: RunningSum
    largest: RunningSum
    fall: JudgedSum = field(default_factory=JudgedSum)
    rise: JudgedSum = field(default_factory=JudgedSum)
    points: Points = field(default_factory=Points)
    decisions: Decisions = ()
    verdict: Verdict | None = None

    @classmethod
    def before(  # noqa: PLR0913, PLR0917 -- a fold, and what it may take over
        cls,
        plan: Plan,
        predictor: Predictor,
        sequence_of: Callable[[float], ConfidenceSequence],
        bounds: Bounds | None,
        item_weight: NDArray[np.float64] | None = None,
        seen: Self | None = None,
    ) -> Self:
        """The fold before its first round; ``sequence_of`` takes the plug-in part then.

        What ``seen``, another fold of the same items, has observed is observed here from the start.
        """
        if seen is None:
            known = 0.0 if plan.believed is None else plan.believed.total
            remainder = Remainder.of(plan.scale, plan.drawable, bounds, item_weight)
            one, other = RunningSum(known), RunningSum(known)
        else:
            one, other = deepcopy(seen.least), deepcopy(seen.largest)
            remainder, known = deepcopy(seen.remainder), (one.value + other.value) / 2.0
        confidence_sequence = sequence_of((known + predictor.surrogates_left) / plan.items)
        fold = cls(predictor, confidence_sequence, remainder, one, other)
        fold.verdict = None if plan.decide is None else Verdict(plan.decide)
        if plan.believed is not None or seen is not None:
            confidence_sequence.narrow(fold.limits(plan.items), last=False)
        fold.answer(plan)
        return fold

    def answer(self, plan: Plan) -> None:
        """Answer what the interval decides by now: known losses alone may, before any round."""
        if not plan.asks:
            return
        slack, decisions = rounding(plan.scale), self.decisions or undecided(plan.questions)
        self.decisions = tuple(one.after(self.rounds, self.interval, slack) for one in decisions)
        if self.verdict is not None:
            self.verdict = self.verdict.after(self.rounds, self.interval, slack)

    def limits(self, items: int) -> Interval:
        """Where the risk of the pool of ``items`` must lie, given the losses seen."""
        return Interval(
            (self.least.value + self.remainder.lower) / items,
            (self.largest.value + self.remainder.upper) / items,
        )

    @property
    def rounds(self) -> int:
        """Number of rounds folded."""
        return len(self.points)

    @property
    def interval(self) -> Interval:
        """Interval for the target."""
        return self.confidence_sequence.interval

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""
        return self.confidence_sequence.pool_interval

    def residuals(self, coming: Iterable[RoundOutcome] = ()) -> Residuals:
        """Residuals of the items left, by which the next one is drawn.

        ``coming`` are the rounds that are drawn and not folded.
        """
        labels = ((outcome.draw, outcome.loss, outcome.timing) for outcome in coming)
        return self.predictor.after(labels).residuals(self.confidence_sequence.half)

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self.confidence_sequence.emptied

    @property
    def estimate(self) -> float:
        """The confidence sequence's estimate, clipped into the interval."""
        interval = self.confidence_sequence.interval
        return min(max(self.confidence_sequence.estimate, interval.lower), interval.upper)


def fold_round(plan: Plan, fold: Fold, outcome: RoundOutcome) -> Fold:
    """Fold the next round. Consumes ``fold`` and returns it."""
    pause()
    draw = outcome.draw
    round_ = fold.rounds + 1
    betting_round = _betting_round(
        plan, fold, outcome, last=round_ >= min(plan.drawable, outcome.budget)
    )
    fold.confidence_sequence.update(betting_round)
    fold.predictor.record(draw, outcome.loss, outcome.timing)
    weight, limits = fold.remainder.weight_of(draw.item), fold.remainder.limits(draw.item)
    least, largest = betting_round.plus.loss, betting_round.minus.loss
    fold.least.add(weight * least)
    fold.largest.add(weight * largest)
    fold.fall.append(weight * (limits.lower - least), outcome.timing)
    fold.rise.append(weight * (limits.upper - largest), outcome.timing)
    fold.remainder.take(draw.item)
    fold.confidence_sequence.narrow(fold.limits(plan.items), last=betting_round.last)
    variance = None if math.isnan(betting_round.variance) else betting_round.variance
    fold.points.append(
        Point(
            round_,
            fold.estimate,
            fold.interval,
            betting_round.surrogates_left,
            variance,
            betting_round.plus,
            betting_round.minus,
        )
    )
    fold.answer(plan)
    return fold


def _betting_round(plan: Plan, fold: Fold, outcome: RoundOutcome, *, last: bool) -> BettingRound:
    draw, predictor, timing = outcome.draw, fold.predictor, outcome.timing
    predictor.recall(timing)
    surrogate, surrogates_left = predictor.surrogate(draw), predictor.surrogates_left
    sides: list[CompletionSignal] = []
    own, weight = fold.remainder.limits(draw.item), fold.remainder.weight_of(draw.item)
    for observed, fill in ((fold.least, own.lower), (fold.largest, own.upper)):
        plug_in = (observed.value + surrogates_left) / plan.items
        loss = fill if outcome.loss is None else outcome.loss
        if sides and plug_in == sides[0].plug_in:
            if loss == sides[0].loss:
                sides.append(sides[0])
                continue
            signal_range = sides[0].signal_range
        else:
            signal_range = predictor.signal_range(draw, plug_in)
        value = signal(plug_in, weight * (loss - surrogate), plan.items, draw.q)
        check(value, signal_range)
        sides.append(CompletionSignal(plug_in, signal_range, surrogate, loss, value))
    return BettingRound(
        draw=draw,
        timing=timing,
        reach=_reach(plan, fold, timing, sides),
        precision=outcome.precision,
        last=last,
        surrogates_left=surrogates_left,
        variance=predictor.variance(draw),
        plus=sides[0],
        minus=sides[1],
    )


def _reach(
    plan: Plan, fold: Fold, timing: Timing, sides: Sequence[CompletionSignal]
) -> tuple[Range, Range]:
    """The ranges of both signals with the rounds open at the draw at their worst."""
    plus, minus = (side.signal_range for side in sides)
    fall, rise = fold.fall.open(timing) / plan.items, fold.rise.open(timing) / plan.items
    if plan.policy.range == "global":
        # No loss moves a global range.
        return plus, minus
    return (
        Range(plus.lower + fall, plus.upper + fall),
        Range(minus.lower + rise, minus.upper + rise),
    )
