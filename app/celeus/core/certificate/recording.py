"""A fold without the pool, from the surrogates, ranges and variances that a certificate records.

The record takes the place of the pool in the same fold that the service runs. Any
surrogate and variance fixed before the draw keep the interval valid, and whether these were cannot
be seen from them alone; what can be seen is checked on the way: that a round's range holds the
signal for whatever loss the item might have had.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Range, RangeLeft, check, signal
from celeus.core.ledger import Draw
from celeus.core.plain import Mismatch
from celeus.core.plans.plan import Plan
from celeus.core.sampling.calibration import NO_FIT, Fit
from celeus.core.sampling.predictors import Expectation, Label, Predictor
from celeus.core.sampling.proposals import ProposedDraw, shares_adapt
from celeus.core.sampling.sums import RunningSum
from celeus.core.session.engine import Engine

Floats = NDArray[np.float64]
Items = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """The numbers fixed before the loss of every folded round; arrays have one number a round.

    ``sum`` is that of the surrogates of all items that may be drawn. ``variance`` is None where the
    policy predicts none, ``other`` holds the range of the second completion for rounds where its
    plug-in part is another one.
    """

    sum: float
    surrogate: Floats
    surrogates_left: Floats
    lower: Floats
    upper: Floats
    variance: Floats | None
    other: Mapping[int, Range]


class RecordedPredictor(Predictor):
    """Surrogates as recorded, by round; ``losses`` are those of the folded rounds.

    Of a round that is not folded nothing is recorded, and nothing depends on it.
    """

    __slots__ = ("_plan", "_plug_in", "_recorded")

    def __init__(self, plan: Plan, recorded: FoldRecord, losses: Sequence[float | None]) -> None:
        self._plan = plan
        self._recorded = recorded
        # Ranges are recorded whole, and a range less the plug-in part is what a draw fixes.
        self._plug_in: list[float] = []
        observed = RunningSum(0.0 if plan.believed is None else plan.believed.total)
        for left, loss in zip(recorded.surrogates_left.tolist(), losses, strict=True):
            self._plug_in.append((observed.value + left) / plan.items)
            if not plan.repeats:
                observed.add(plan.lower if loss is None else loss)

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of all items that may be drawn."""
        return self._recorded.sum

    @property
    def fit(self) -> Fit:
        """Empty: a record proposes no draws."""
        return NO_FIT

    def expect(self, draw: Draw, *, corrected: bool = False) -> Expectation:
        """The prediction of a draw, as recorded."""
        del corrected
        place, recorded = draw.round - 1, self._recorded
        if place >= len(self._plug_in):
            nothing = float("nan")
            return Expectation(nothing, recorded.sum, Range(nothing, nothing))
        moves = self._plan.policy.range != "global"
        plug_in = self._plug_in[place] if moves else 0.0
        variance = recorded.variance
        return Expectation(
            surrogate=float(recorded.surrogate[place]),
            surrogates_left=float(recorded.surrogates_left[place]),
            reach=Range(
                float(recorded.lower[place]) - plug_in, float(recorded.upper[place]) - plug_in
            ),
            variance=float("nan") if variance is None else float(variance[place]),
            moves=moves,
        )

    def signal_range(self, draw: Draw, expected: Expectation, plug_in: float) -> Range:
        """The recorded range; that of the second completion where its plug-in part is another."""
        index, recorded, plan = draw.round - 1, self._recorded, self._plan
        where = "rounds.range"
        recorded_range = Range(float(recorded.lower[index]), float(recorded.upper[index]))
        if plug_in != self._plug_in[index]:
            where = "rounds.other.range"
            second = recorded.other.get(draw.round)
            if second is None:
                raise Mismatch(f"rounds.other, round {draw.round}", None, "a second plug-in part")
            recorded_range = second
        for loss in (plan.lower, plan.upper):
            value = signal(plug_in, loss - expected.surrogate, plan.items, draw.q)
            try:
                check(value, recorded_range)
            except RangeLeft:
                place = f"{where}, round {draw.round}"
                claimed = f"{recorded_range.lower:.12g} to {recorded_range.upper:.12g}"
                rule = f"a range with {value:.12g}, the signal of a loss of {loss:g}"
                raise Mismatch(place, claimed, rule) from None
        return recorded_range

    def learn(self, label: Label, loss: float) -> None:
        """Nothing to do: every later draw is recorded too."""


@dataclass(slots=True)
class RecordedProposal:
    """The proposal of a record: it proposes no draw; with ``once`` no item may be drawn twice."""

    once: bool
    drawn_in: Items = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    _taken: set[int] = field(default_factory=set)

    def choose(self, coin: float, fit: Fit) -> ProposedDraw:
        """Not possible: the seed does not determine the draws without the pool."""
        raise NotImplementedError

    def chance(self, item: int, fit: Fit) -> ProposedDraw:
        """Not possible without the pool."""
        raise NotImplementedError

    def take(self, item: int, round_: int) -> None:
        """Item ``item`` is drawn in round ``round_``."""
        if self.once and item in self._taken:
            message = f"item {item} of round {round_} was drawn before"
            raise ValueError(message)
        self._taken.add(item)


def recorded_engine(
    plan: Plan, recorded: FoldRecord, losses: Sequence[float | None], strata: int
) -> Engine:
    """The engine of a session whose pool is not at hand; ``strata`` of its draws, 0 of none."""
    return Engine(
        plan,
        RecordedProposal(not plan.repeats),
        plan.repeats or shares_adapt(plan.beta, strata),
        partial(RecordedPredictor, plan, recorded, losses),
        fixed=(recorded,),
    )
