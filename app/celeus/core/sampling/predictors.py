"""Predictors: surrogate, range and variance of a draw, fixed at opening or recalibrated.

Everything is predictable, computed from the rounds that were judged at the draw; a round's loss is
a parameter of ``record`` only.
"""

import copy
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Extremes, Range, exact_range, floor_range, global_range
from celeus.core.history import NEVER, Timing
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan
from celeus.core.pools.strata import Strata
from celeus.core.sampling.calibration import Calibration
from celeus.core.sampling.proposals import (
    KNOWN,
    LEAST_MOMENT,
    NO_RESIDUALS,
    MixtureProposal,
    Reach,
    Residuals,
)
from celeus.core.sampling.remainder import StrataLeft
from celeus.core.sampling.sums import RunningSum

Floats = NDArray[np.float64]

DIFFERENCE_MOMENT = 0.05
"""Second moment of a difference on the unit scale if it is not known which answers are equal."""


class Predictor(Protocol):
    """Surrogates after the folded prefix; all values on the loss scale.

    Between ``recall`` and ``record`` they are those of the coming round, fixed at its draw.
    """

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not yet folded."""

    def residuals(self, half: float) -> Residuals:
        """Return the residuals to draw by, for bets that aim at half-width ``half``."""

    def recall(self, timing: Timing) -> None:
        """Use, for the coming round, the fit from the rounds judged at its draw."""

    def after(self, coming: Iterable[tuple[Draw, float | None, Timing]]) -> Self:
        """Return the predictor after all rounds judged by now; ``coming`` are those not folded."""

    def surrogate(self, draw: Draw) -> float:
        """Return the surrogate of the drawn item."""

    def signal_range(self, draw: Draw, plug_in: float) -> Range:
        """Return the range of the draw's signal."""

    def variance(self, draw: Draw) -> float:
        """Return the predicted variance of the draw's signal on the unit scale."""

    def record(self, draw: Draw, loss: float | None, timing: Timing) -> None:
        """Record a folded round; ``loss`` is None if it is unjudgeable."""


class FixedPredictor:
    """Surrogates that stay as uploaded with the pool."""

    __slots__ = ("_extremes", "_left", "_plan", "_proposal", "_rounds", "_surrogate")

    def __init__(self, plan: Plan, surrogate: Floats, proposal: MixtureProposal) -> None:
        self._plan = plan
        self._surrogate = surrogate
        self._proposal = proposal
        self._rounds = 0
        left = surrogate[proposal.drawn_in != KNOWN]
        self._left = RunningSum.of(left)
        self._extremes = Extremes(
            plan.items, plan.lower, plan.upper, float(left.min()), float(left.max())
        )

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not yet folded."""
        return self._left.value

    def residuals(self, half: float) -> Residuals:
        """Return none: draws depend on scores alone."""
        del half
        return NO_RESIDUALS

    def recall(self, timing: Timing) -> None:
        """Do nothing: these surrogates are not refitted."""

    def after(self, coming: Iterable[tuple[Draw, float | None, Timing]]) -> Self:
        """Return the predictor itself: draws depend on no loss."""
        del coming
        return self

    def surrogate(self, draw: Draw) -> float:
        """Return the surrogate of the drawn item."""
        return float(self._surrogate[draw.item])

    def signal_range(self, draw: Draw, plug_in: float) -> Range:
        """Return the range of the kind that the policy names."""
        policy = self._plan.policy
        if policy.range == "global":
            return global_range(policy.beta, self._extremes)
        if policy.range == "exact":
            q = self._proposal.probabilities(draw.round)
            mask = q > 0.0
            return exact_range(plug_in, self._surrogate[mask], q[mask], self._extremes)
        items_left = self._plan.drawable - self._rounds
        return floor_range(plug_in, items_left, policy.beta, self._extremes)

    def variance(self, draw: Draw) -> float:
        """Return NaN: the published bets estimate the variance from the signals."""
        del draw
        return float("nan")

    def record(self, draw: Draw, loss: float | None, timing: Timing) -> None:
        """Remove the item from those left; its loss changes no surrogate."""
        del loss, timing
        self._rounds += 1
        self._left.add(-self.surrogate(draw))


LATEST = Timing(0, NEVER, NEVER)
"""The timing of a draw made now."""


class Label(NamedTuple):
    """The loss of a folded round as calibration takes it; ``arrival`` as in its timing."""

    arrival: int
    stratum: int
    loss: float
    surrogate: float
    weight: float


class CalibratedPredictor:
    """One surrogate for every item of a stratum, fitted to the labels known at the draw.

    Probabilities are those recorded at the draw; the items left are those before the draw, which
    for a draw made ahead of losses are the items not yet folded. Sums are by weight, where items
    have any.
    """

    __slots__ = (
        "_calibration",
        "_extremes",
        "_fit",
        "_items",
        "_left",
        "_lower",
        "_pending",
        "_strata",
        "_width",
    )

    def __init__(self, plan: Plan, strata: Strata) -> None:
        self._items = plan.items
        self._lower = plan.lower
        self._width = plan.scale.width
        self._strata = strata
        self._left = StrataLeft(strata)
        lower, upper = (
            (ends - plan.lower) / plan.scale.width for ends in (strata.lower, strata.upper)
        )
        # Unless equal answers are known, the two systems are taken to agree on most items.
        prior = DIFFERENCE_MOMENT if plan.difference and plan.known is None else None
        self._calibration = Calibration(strata.base, lower, upper, prior)
        self._fit = self._calibration.fit
        self._pending: list[Label] = []
        # An exact range does not use the extreme surrogates.
        self._extremes = Extremes(plan.items, plan.lower, plan.upper, plan.lower, plan.upper)

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not yet folded."""
        left = self._left.weight
        sums = left.sum(), left @ self._fit.mean
        return float(self._lower * sums[0] + self._width * sums[1])

    def residuals(self, half: float) -> Residuals:
        """Return the residuals after all folded rounds, for bets that aim at ``half``."""
        mean, moment = self._calibration.fit
        lower, upper = self._calibration.lower, self._calibration.upper
        return Residuals(moment, Reach(mean - lower, upper - mean, half))

    @property
    def means(self) -> Floats:
        """Surrogate of every stratum, on the unit scale."""
        return self._calibration.fit.mean

    def recall(self, timing: Timing) -> None:
        """Use, for the coming round, the fit from the rounds judged at its draw."""
        self._learn(timing.arrived)

    def after(self, coming: Iterable[tuple[Draw, float | None, Timing]]) -> Self:
        """Return the predictor after all rounds judged by now; ``coming`` are those not folded."""
        rounds = list(coming)
        predictor = copy.deepcopy(self, {id(self._strata): self._strata}) if rounds else self
        for draw, loss, timing in rounds:
            predictor.recall(timing)
            predictor.record(draw, loss, timing)
        predictor.recall(LATEST)
        return predictor

    def _learn(self, arrived: int) -> None:
        """Record the losses that were among the first ``arrived`` to arrive, in that order."""
        while self._pending and self._pending[0].arrival <= arrived:
            label = heappop(self._pending)
            self._calibration.record(label.stratum, label.loss, label.surrogate, label.weight)
        self._fit = self._calibration.fit

    def surrogate(self, draw: Draw) -> float:
        """Return the surrogate of the drawn item's stratum."""
        return self._lower + self._width * float(self._fit.mean[self._strata.code[draw.item]])

    def signal_range(self, draw: Draw, plug_in: float) -> Range:
        """Return the exact range over strata with items left."""
        surrogate = self._lower + self._width * self._fit.mean
        q, ends = _strata_q(draw), (self._strata.lower, self._strata.upper)
        mask = self._left.weight > 0.0
        if not mask.all():
            surrogate, q, ends = surrogate[mask], q[mask], (ends[0][mask], ends[1][mask])
        return exact_range(plug_in, surrogate, q, self._extremes, ends)

    def variance(self, draw: Draw) -> float:
        """Return the sum over strata of rem_k max(v_k, 0.001) / (N^2 q_k)."""
        moment = np.maximum(self._fit.moment, LEAST_MOMENT)
        expected = self._left.weight @ (moment / _strata_q(draw))
        return float(expected) / (self._items * self._items)

    def record(self, draw: Draw, loss: float | None, timing: Timing) -> None:
        """Remove the item from its stratum; a loss updates the fit of draws made after it came."""
        stratum = int(self._strata.code[draw.item])
        if loss is not None:
            unit = (loss - self._lower) / self._width
            item_weight = self._strata.weight_of(draw.item)
            weight = item_weight / (float(self._left.weight.sum()) * draw.q)
            surrogate = float(self._fit.mean[stratum])
            label = Label(timing.arrival, stratum, unit, surrogate, weight)
            heappush(self._pending, label)
        self._left.take(draw.item)


def _strata_q(draw: Draw) -> Floats:
    if draw.strata_q is None:
        message = f"the draw of round {draw.round} came without the probabilities of its strata"
        raise ValueError(message)
    return draw.strata_q
