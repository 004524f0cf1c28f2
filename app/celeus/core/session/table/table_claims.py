"""A claim about a mean loss among others: an ordinary fold, in rounds of its own.

A claim bets in the rounds that fall into its cells, after that is known: with the probability of
the item among these cells, what it sees is a session on its own items. So the fold, the lattice,
the two completions and the logical limits are those of ``session.fold``.
"""

import math
from abc import ABC, abstractmethod
from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import BettingRound, ConfidenceSequence, Outlook, PoolRiskSequence
from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.betting.signals import Extremes, Range, exact_range
from celeus.core.interval import Interval
from celeus.core.ledger import Draw
from celeus.core.multiplicity.evidence import EvidenceSequence
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import Decisions, Question, all_decided, rounding
from celeus.core.plans.table_plan import TableClaim
from celeus.core.sampling.calibration import Fit
from celeus.core.sampling.predictors import Expectation, Label, Predictor
from celeus.core.sampling.proposals import LEAST_MOMENT
from celeus.core.session.fold import Fold
from celeus.core.session.table.table_cells import Cells, Fits, TableAtDraw

Indices = NDArray[np.intp]


class ClaimState(ABC):
    """A claim after some rounds, with the ``plan`` of a session about it alone.

    ``metric`` is its place among what claims are about, ``cells`` are those of its part; ``rounds``
    are those that fell into it, by the table's count.
    """

    __slots__ = ("cells", "claim", "metric", "plan", "rounds")

    def __init__(self, claim: TableClaim, plan: Plan, metric: int, cells: Indices) -> None:
        self.claim = claim
        self.plan = plan
        self.metric = metric
        self.cells = cells
        self.rounds = array("i")

    @property
    @abstractmethod
    def interval(self) -> Interval:
        """Interval for the risk of the claim."""

    @property
    @abstractmethod
    def estimate(self) -> float:
        """Point estimate, within the interval."""

    @property
    @abstractmethod
    def decisions(self) -> Decisions:
        """The answers to its questions, each with the claim's own round."""

    @property
    @abstractmethod
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""

    @property
    @abstractmethod
    def bets(self) -> int:
        """Bets that folding the claim's next round may place."""

    @property
    @abstractmethod
    def left(self) -> int:
        """Items of the claim that are not folded."""

    @property
    def met(self) -> bool:
        """It has what was asked for, or nothing is left to judge."""
        claim = self.claim
        if not self.left:
            return True
        precise = claim.precision is None or self.interval.width <= claim.precision
        decided = not claim.questions or all_decided(self.decisions)
        return precise and decided and not claim.whole

    @abstractmethod
    def draw(self, draw: Draw, known: TableAtDraw) -> None:
        """Fix the bets on a draw that falls into the claim."""

    @abstractmethod
    def judge(self, round_: int, loss: float | None) -> None:
        """Learn from a judgement for later draws; ``loss`` is None when nobody could tell it."""

    @abstractmethod
    def fold_next(self, round_: int) -> None:
        """Fold ``round_``, the oldest drawn; one without a judgement at its worst."""


Floats = NDArray[np.float64]


class Drawn(NamedTuple):
    """A draw of the table, and the places of the claims betting on it.

    ``fits`` are those it was made with, ``weight`` is 1 / (n q), n the items left before it.
    """

    draw: Draw
    fits: Fits
    weight: float
    claims: tuple[int, ...]


class ClaimPredictor(Predictor):
    """The surrogates of a claim's cells, as the table knows them at a draw."""

    __slots__ = ("_code", "_extremes", "_known", "_metric", "_plan", "_where")

    def __init__(
        self, plan: Plan, metric: int, where: Indices, cells: Cells, known: TableAtDraw
    ) -> None:
        self._plan = plan
        self._metric = metric
        self._where = where
        self._code = cells.strata.code
        self._known = known
        self._extremes = Extremes(plan.items, plan.lower, plan.upper, plan.lower, plan.upper)

    def among(self, draw: Draw, known: TableAtDraw) -> Draw:
        """The next draw with its probabilities among the claim's cells."""
        self._known = known
        q = draw.q_by_stratum
        if self._where.size == q.size:
            return draw
        q = q[self._where]
        share = float(self.left @ q)
        return Draw(draw.round, draw.item, draw.q / share, draw.seen, q / share)

    @property
    def left(self) -> Floats:
        """Items not drawn of every cell of the claim."""
        return self._known.left[self._where]

    @property
    def fit(self) -> Fit:
        """Surrogate and residual second moment of every cell of the claim, on the unit scale."""
        mean, moment = self._known.fits
        return Fit(mean[self._metric, self._where], moment[self._metric, self._where])

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not drawn."""
        return self._sum_left(self.left, self.fit.mean)

    def expect(self, draw: Draw, *, corrected: bool = False) -> Expectation:
        """Return the prediction of the next draw; the table counts its item."""
        del corrected  # A table takes none
        left, fit, q = self.left, self.fit, draw.q_by_stratum
        mean = float(self._known.fits.mean[self._metric, self._code[draw.item]])
        return Expectation(
            surrogate=self._plan.lower + self._plan.scale.width * mean,
            surrogates_left=self._sum_left(left, fit.mean),
            reach=self._reach(left, fit.mean, q),
            variance=self._variance(left, fit.moment, q),
        )

    def _sum_left(self, left: Floats, mean: Floats) -> float:
        """Return the sum of the surrogates of the items left, on the loss scale."""
        sums = left.sum(), left @ mean
        return float(self._plan.lower * sums[0] + self._plan.scale.width * sums[1])

    def _reach(self, left: Floats, mean: Floats, q: Floats) -> Range:
        """Return the exact range over cells with items left, less the plug-in part."""
        mask = left > 0.0
        surrogate = self._plan.lower + self._plan.scale.width * mean[mask]
        return exact_range(0.0, surrogate, q[mask], self._extremes)

    def _variance(self, left: Floats, moment: Floats, q: Floats) -> float:
        """Return the sum over cells of rem max(v, 0.001) / (N^2 q)."""
        items = self._plan.items
        return float(left @ (np.maximum(moment, LEAST_MOMENT) / q)) / (items * items)

    def learn(self, label: Label, loss: float) -> None:
        """Nothing to do: the table fits anew, once for all claims."""


class WholeSequence(PoolRiskSequence):
    """The interval of a group that is judged to its last item: the logical limits alone."""

    __slots__ = ()

    @property
    def estimate(self) -> float:
        """The middle of the interval."""
        return (self.interval.lower + self.interval.upper) / 2.0

    def bets_per_round(self, precision: float | None) -> int:
        """None."""
        del precision
        return 0

    def update(self, betting_round: BettingRound) -> None:
        """No bet."""

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the logical limits."""
        del last
        self.cut(limits, limits)


class MeanClaim(ClaimState):
    """A claim about a mean loss: an ordinary fold."""

    __slots__ = ("_before", "_predictor", "fold")

    def __init__(  # noqa: PLR0913, PLR0917 -- a claim, and what it shares with the others
        self,
        claim: TableClaim,
        plan: Plan,
        metric: int,
        where: Indices,
        cells: Cells,
        known: TableAtDraw,
        *,
        evidence: bool = False,
        seen: Fold | None = None,
    ) -> None:
        super().__init__(claim, plan, metric, where)
        self._predictor = ClaimPredictor(plan, metric, where, cells, known)

        def sequence(start: float) -> ConfidenceSequence:
            if claim.whole:
                return WholeSequence(plan)
            return EvidenceSequence(plan, start) if evidence else LatticeSequence(plan, start)

        self._before = 0 if seen is None else plan.drawable - seen.remainder.items
        self.fold = Fold.before(plan, self._predictor, sequence, None, seen=seen)

    def draw(self, draw: Draw, known: TableAtDraw) -> None:
        """Fix the bets on a draw that falls into the claim."""
        drawn = self._predictor.among(draw, known)
        self.fold.draw(self.plan, drawn, self.plan.precision, self.plan.drawable)

    def judge(self, round_: int, loss: float | None) -> None:
        """Learn from a judgement for later draws; ``loss`` is None when nobody could tell it."""
        self.fold.judge(round_, loss)

    def fold_next(self, round_: int) -> None:
        """Fold ``round_``, the oldest drawn; one without a judgement at its worst."""
        self.fold.fold_next(self.plan)
        self.rounds.append(round_)

    def interval_at(self, level: float) -> Interval:
        """The interval of this moment at a level chosen now, where evidence is kept."""
        sequence = self.fold.confidence_sequence
        if isinstance(sequence, EvidenceSequence):
            return sequence.interval_at(level)
        return self.interval

    def log_evidence(self, question: Question) -> float:
        """Log e-value of this moment against "the answer yes is wrong"."""
        sequence = self.fold.confidence_sequence
        if isinstance(sequence, EvidenceSequence):
            return sequence.log_evidence(question)
        yes = question.answer(self.interval, rounding(self.plan.scale)) == "yes"
        return math.inf if yes else -math.inf

    @property
    def decisions(self) -> Decisions:
        """The answers to its questions, each with the claim's own round."""
        return self.fold.decisions

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self.fold.emptied

    @property
    def interval(self) -> Interval:
        """Interval for the risk of the claim."""
        return self.fold.interval

    @property
    def estimate(self) -> float:
        """Point estimate."""
        return self.fold.estimate

    @property
    def bets(self) -> int:
        """Bets that folding the claim's next round may place."""
        return self.fold.confidence_sequence.bets_per_round(self.plan.precision)

    @property
    def left(self) -> int:
        """Items of the claim that are not folded."""
        return self.plan.drawable - self._before - self.fold.rounds

    @property
    def outlook(self) -> Outlook | None:
        """The information it lacks; None for a claim that bets on none."""
        return self.fold.outlook
