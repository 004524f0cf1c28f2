"""Predictors: surrogate, range and variance of a draw, fixed at opening or recalibrated.

Everything is predictable, computed from the rounds that were folded at the draw; a round's loss is
a parameter of ``record`` only.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Extremes, Range, exact_range, floor_range, global_range
from celeus.core.history import History
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan
from celeus.core.pools.strata import Strata
from celeus.core.sampling.calibration import NO_FIT, Calibration, Fit
from celeus.core.sampling.proposals import KNOWN, LEAST_MOMENT, MixtureProposal
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

    @property
    def fit(self) -> Fit:
        """The fit to all folded rounds, on the unit scale; empty without strata."""

    def recall(self, basis: int) -> None:
        """Use, for the coming round, the fit from its first ``basis`` rounds."""

    def surrogate(self, draw: Draw) -> float:
        """Return the surrogate of the drawn item."""

    def signal_range(self, draw: Draw, plug_in: float) -> Range:
        """Return the range of the draw's signal."""

    def variance(self, draw: Draw) -> float:
        """Return the predicted variance of the draw's signal on the unit scale."""

    def record(self, draw: Draw, loss: float | None) -> None:
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

    @property
    def fit(self) -> Fit:
        """Empty: draws depend on scores alone."""
        return NO_FIT

    def recall(self, basis: int) -> None:
        """Do nothing: these surrogates are not refitted."""

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

    def record(self, draw: Draw, loss: float | None) -> None:
        """Remove the item from those left; its loss changes no surrogate."""
        del loss
        self._rounds += 1
        self._left.add(-self.surrogate(draw))


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
        "_fits",
        "_items",
        "_left",
        "_lower",
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
        self._fits = History(self._fit)
        # An exact range does not use the extreme surrogates.
        self._extremes = Extremes(plan.items, plan.lower, plan.upper, plan.lower, plan.upper)

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not yet folded."""
        left = self._left.weight
        sums = left.sum(), left @ self._fit.mean
        return float(self._lower * sums[0] + self._width * sums[1])

    @property
    def fit(self) -> Fit:
        """The fit to all folded rounds."""
        return self._calibration.fit

    def recall(self, basis: int) -> None:
        """Use, for the coming round, the fit from its first ``basis`` rounds."""
        self._fit = self._fits.after(basis)

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

    def record(self, draw: Draw, loss: float | None) -> None:
        """Remove the item from its stratum; a loss updates the fit."""
        stratum = int(self._strata.code[draw.item])
        if loss is not None:
            unit = (loss - self._lower) / self._width
            item_weight = self._strata.weight_of(draw.item)
            weight = item_weight / (float(self._left.weight.sum()) * draw.q)
            self._calibration.record(stratum, unit, float(self._fit.mean[stratum]), weight)
        self._left.take(draw.item)
        self._fit = self._calibration.fit
        self._fits.append(self._fit)


def _strata_q(draw: Draw) -> Floats:
    if draw.strata_q is None:
        message = f"the draw of round {draw.round} came without the probabilities of its strata"
        raise ValueError(message)
    return draw.strata_q
