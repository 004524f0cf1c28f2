"""Folding: from drawn rounds and their losses to a narrower interval.

Draws and judgements are taken in by the order of the ledger, rounds are folded in the order of
their draws: taking them by arrival would let easy items in first and bias the signal. Two
completions are kept: an unjudgeable item has the smallest loss in the ``plus`` one and the largest
in the ``minus`` one.

Everything but the stakes that a bet depends on is fixed at the draw, in an ``OpenRound``, by code
that has not seen its loss: surrogates and information come from all rounds judged by then, centre
and scatter of the signals from those folded by then, and the range that caps the bet takes the
rounds then open at their worst. So whoever has seen items of later draws moves no bet on them by
what he does with an earlier round (docs/evidence/method.md#8-rounds-that-nobody-can-judge).

Every policy shares this: the predictor gives a round's surrogate and range, the confidence sequence
bets on the two signals and keeps the interval.
"""

import math
import sys
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import (
    BetInputs,
    BettingRound,
    CompletionSignal,
    ConfidenceSequence,
    Outlook,
)
from celeus.core.betting.bets import Information
from celeus.core.betting.signals import check, signal
from celeus.core.interval import Interval
from celeus.core.ledger import Draw
from celeus.core.pause import pause
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import Decisions, Verdict, rounding, undecided
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.sampling.predictors import Expectation, Predictor
from celeus.core.sampling.remainder import AllItems, Remainder
from celeus.core.sampling.sums import RunningSum
from celeus.core.session.points import Point, Points
from celeus.core.session.rounds import Rounds


class OpenRound(NamedTuple):
    """A drawn round that is not folded: what was predicted of it, and what its bets depend on.

    Made at its draw and never changed. ``weight`` is that of its item, and ``kept`` the one with
    which its loss stays in the plug-in part of later rounds; ``limits`` are the bounds of its loss,
    ``budget`` is the one in force.
    """

    draw: Draw
    weight: float
    kept: float
    limits: Interval
    budget: int
    expected: Expectation
    inputs: BetInputs

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the round itself: no part of it changes."""
        return self


@dataclass(slots=True)
class Knowledge:
    """All that is known at the next draw, judgements behind open rounds included.

    ``low`` and ``high`` are the sums of losses of the rounds drawn, the known ones included, with
    every open round at its worst. ``precision`` is that of the last draw. ``open`` are the rounds
    that are not folded, by number, and ``losses`` those of them that are judged. ``entries`` counts
    the draws and judgements taken in. ``corrected`` is the sequence of the latest correction of any
    of these judgements: draws made before it have probabilities that rest on another loss.
    """

    predictor: Predictor
    information: Information
    low: RunningSum
    high: RunningSum
    precision: float | None
    open: OrderedDict[int, OpenRound] = field(default_factory=OrderedDict)
    losses: dict[int, float | None] = field(default_factory=dict)
    entries: int = 0
    corrected: int = 0


@dataclass(slots=True)
class Fold:
    """A session's folded rounds, on which its interval rests, and what is known at the next draw.

    ``least`` and ``largest`` are the sums of losses of the two completions, known ones included;
    they lose no digits, since on a scale far from 0 many small errors would move the logical
    limits. With weights every loss counts by that of its item. ``remainder`` is what the others may
    sum to. ``last`` is the number of the last folded round.
    ``decisions`` and ``verdict`` are those after it; before the first one those that the known
    losses give alone.
    """

    knowledge: Knowledge
    confidence_sequence: ConfidenceSequence
    remainder: Remainder
    least: RunningSum
    largest: RunningSum
    points: Points = field(default_factory=Points)
    decisions: Decisions = ()
    verdict: Verdict | None = None
    last: int = 0

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
            items_left = AllItems if plan.repeats else Remainder
            remainder = items_left.of(plan.scale, plan.drawable, bounds, item_weight)
            least, largest = RunningSum(known), RunningSum(known)
        else:
            least, largest = deepcopy(seen.least), deepcopy(seen.largest)
            remainder, known = deepcopy(seen.remainder), (least.value + largest.value) / 2.0
        confidence_sequence = sequence_of((known + predictor.surrogates_left) / plan.items)
        information = Information(confidence_sequence.halves(plan.precision))
        sums = deepcopy(least), deepcopy(largest)
        knowledge = Knowledge(predictor, information, *sums, plan.precision)
        fold = cls(knowledge, confidence_sequence, remainder, least, largest)
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
        self.decisions = tuple(
            decision.after(self.rounds, self.interval, slack) for decision in decisions
        )
        if self.verdict is not None:
            self.verdict = self.verdict.after(self.rounds, self.interval, slack)

    def limits(self, items: int) -> Interval:
        """Return the interval of possible risks of the pool of ``items``, given the losses seen."""
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

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self.confidence_sequence.emptied

    @property
    def estimate(self) -> float:
        """The confidence sequence's estimate, clipped into the interval."""
        interval = self.confidence_sequence.interval
        return min(max(self.confidence_sequence.estimate, interval.lower), interval.upper)

    @property
    def predictor(self) -> Predictor:
        """Surrogates and residuals of the items not drawn, from all rounds judged."""
        return self.knowledge.predictor

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not folded."""
        for coming in self.knowledge.open.values():
            return coming.expected.surrogates_left
        return self.predictor.surrogates_left

    @property
    def outlook(self) -> Outlook | None:
        """Information that the interval lacks; None without a goal."""
        return self.confidence_sequence.outlook(self.knowledge.information.accrued)

    @property
    def ready(self) -> bool:
        """The round to be folded next is drawn and judged."""
        known = self.knowledge
        return bool(known.losses) and next(iter(known.open)) in known.losses

    def follow(self, plan: Plan, rounds: Rounds, most: int = sys.maxsize, start: int = 0) -> None:
        """Take in the draws and judgements of ``rounds``, and fold at most ``most`` rounds.

        ``start`` entries of the ledger come before those of ``rounds``.
        """
        known, order = self.knowledge, rounds.order
        while True:
            while self.ready:
                if not most:
                    return
                self.fold_next(plan)
                most -= 1
            entry = known.entries - start
            if entry == len(order):
                return
            place = abs(order[entry]) - rounds.first
            if order[entry] > 0:
                rule = rounds.rule_of(place)
                self.draw(plan, rounds.draw(place), rule.precision, rule.budget)
            else:
                self.judge(-order[entry], rounds.losses(place)[0], rounds.corrected[place])
            known.entries += 1

    def draw(self, plan: Plan, draw: Draw, precision: float | None, budget: int) -> None:
        """Fix what the bets on the next draw depend on. O(strata)."""
        known, sequence = self.knowledge, self.confidence_sequence
        # Without open rounds the sums are those of the fold, to the last digit.
        low, high = (known.low, known.high) if known.open else (self.least, self.largest)
        if precision != known.precision:
            known.precision = precision
            known.information.aim(sequence.halves(precision))
        expected = known.predictor.expect(draw, corrected=draw.seen < known.corrected)
        left, variance = expected.surrogates_left, expected.variance
        reach = (
            expected.signal_range((low.value + left) / plan.items),
            expected.signal_range((high.value + left) / plan.items),
        )
        predicted, accrued = sequence.predict(reach, variance), known.information.accrued
        inputs = BetInputs(reach, variance, precision, predicted, accrued)
        weight, limits = self.remainder.weight_of(draw.item), self.remainder.limits(draw.item)
        kept = self.remainder.kept(draw.item)
        known.low.add(kept * limits.lower)
        known.high.add(kept * limits.upper)
        drawn = replace(draw, strata_q=None)
        known.open[draw.round] = OpenRound(drawn, weight, kept, limits, budget, expected, inputs)

    def judge(self, round_: int, loss: float | None, corrected: int = 0) -> None:
        """Learn from a judgement; ``loss`` is None if nobody could tell it. O(strata).

        ``corrected`` is the sequence of its last correction, 0 without one.
        """
        known = self.knowledge
        known.corrected = max(known.corrected, corrected)
        judged = known.open[round_]
        if loss is not None:
            known.low.add(judged.kept * (loss - judged.limits.lower))
            known.high.add(judged.kept * (loss - judged.limits.upper))
            if judged.expected.label is not None:
                known.predictor.learn(judged.expected.label, loss)
        if known.information.accrued:
            known.information.add(judged.inputs.predicted)
        known.losses[round_] = loss

    def fold_next(self, plan: Plan) -> None:
        """Fold the next round, as judged by nobody if it is not judged.

        One that was folded beside is only let go.
        """
        round_, coming = self.knowledge.open.popitem(last=False)
        loss = self.knowledge.losses.pop(round_, None)
        if round_ > self.last:
            self.fold_round(plan, coming, loss)

    def settle(self, plan: Plan) -> None:
        """Fold all that is drawn, open rounds as judged by nobody; nothing is drawn after it."""
        known = self.knowledge
        for round_, coming in known.open.items():
            self.fold_round(plan, coming, known.losses.get(round_))

    def fold_round(self, plan: Plan, coming: OpenRound, loss: float | None) -> None:
        """Fold a round as if its loss were this one. Touches nothing that is known at a draw."""
        pause()
        if loss is None:
            self.confidence_sequence.count_unjudged()
        number = self.rounds + 1
        last = number >= min(plan.most_draws, coming.budget)
        betting_round = self._betting_round(plan, coming, loss, last=last)
        self.confidence_sequence.update(betting_round)
        self.least.add(coming.kept * betting_round.plus.loss)
        self.largest.add(coming.kept * betting_round.minus.loss)
        self.remainder.take(coming.draw.item)
        self.confidence_sequence.narrow(self.limits(plan.items), last=last)
        variance = coming.expected.variance
        self.points.append(
            Point(
                number,
                self.estimate,
                self.interval,
                coming.expected.surrogates_left,
                None if math.isnan(variance) else variance,
                betting_round.plus,
                betting_round.minus,
            )
        )
        self.last = coming.draw.round
        self.answer(plan)

    def _betting_round(
        self, plan: Plan, coming: OpenRound, judged: float | None, *, last: bool
    ) -> BettingRound:
        expected, predictor = coming.expected, self.predictor
        surrogate = expected.surrogate
        sides: list[CompletionSignal] = []
        limits = coming.limits
        for observed, fill in ((self.least, limits.lower), (self.largest, limits.upper)):
            plug_in = (observed.value + expected.surrogates_left) / plan.items
            loss = fill if judged is None else judged
            if sides and plug_in == sides[0].plug_in:
                if loss == sides[0].loss:
                    sides.append(sides[0])
                    continue
                signal_range = sides[0].signal_range
            else:
                signal_range = predictor.signal_range(coming.draw, expected, plug_in)
            value = signal(plug_in, coming.weight * (loss - surrogate), plan.items, coming.draw.q)
            check(value, signal_range)
            sides.append(CompletionSignal(plug_in, signal_range, surrogate, loss, value))
        return BettingRound(coming.draw, coming.inputs, last, *sides)
