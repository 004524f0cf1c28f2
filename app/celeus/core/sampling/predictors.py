"""Predictors: surrogate, range and variance of a draw, fixed at opening or recalibrated.

Everything that concerns a round is an ``Expectation`` made at its draw, from the labels judged by
then; its own loss is a parameter of ``learn`` only.

Several surrogate columns have weights fitted to the labels seen so far
(docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal).
Notation, on the unit scale: d_c deviations of the columns in substratum c of stratum k, m_k the
calibrated surrogate of k, l a loss, n items left before the draw, q its probability.

    w      regression of l - m_k on d_c, each label weighted by 1 / (n q), ridge of 3 towards 0
    h_c    m_k + w d_c, within the bounds stated of the losses, less m_k
    t      sum of (l - m_k) h_c / (1 + sum of h_c^2), cut to [0, 1]; m_k and h_c as of the draw
    m_c    m_k + t h_c                                   surrogate of every item left in c

So before there are labels all columns weigh the same. w alone would cost labels where columns say
nothing beside their mean; t is how well w predicted losses that it was not fitted to.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Extremes, Range, exact_range, floor_range, global_range
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan
from celeus.core.pools.strata import Strata, Substrata
from celeus.core.sampling.calibration import NO_FIT, Calibration, Fit, Narrowing
from celeus.core.sampling.proposals import KNOWN, LEAST_MOMENT, MixtureProposal
from celeus.core.sampling.remainder import StrataLeft
from celeus.core.sampling.sums import RunningSum

Floats = NDArray[np.float64]

RIDGE_WEIGHT = 3.0
PRIOR_SQUARES = 1.0


class Correction(NamedTuple):
    """The place of a substratum, and its m_k and h_c at a draw."""

    substratum: int
    mean: float
    height: float


class ColumnWeights:
    """Sums over the judged labels, and ``surrogate``: m_c of every substratum.

    ``mean`` is m_k of every stratum; ``lower`` and ``upper`` bound the losses of a substratum.
    """

    __slots__ = (
        "_bounds",
        "_height",
        "_matrix",
        "_mean",
        "_products",
        "_right",
        "_squares",
        "_substrata",
        "surrogate",
    )

    def __init__(self, substrata: Substrata, lower: Floats, upper: Floats, mean: Floats) -> None:
        columns = substrata.deviation.shape[1]
        self._substrata = substrata
        self._bounds = lower, upper
        self._matrix = RIDGE_WEIGHT * np.eye(columns)
        self._right = np.zeros(columns)
        self._products, self._squares = 0.0, PRIOR_SQUARES
        self._fit(mean)

    def correction(self, substratum: int) -> Correction:
        """Return the correction that the next draw from ``substratum`` is bet with."""
        mean, height = self._mean[substratum], self._height[substratum]
        return Correction(substratum, float(mean), float(height))

    def record(self, drawn: Correction, loss: float, weight: float, mean: Floats) -> None:
        """Record a judged round of weight 1 / (n q); ``mean`` is m_k with its loss."""
        deviation, residual = self._substrata.deviation[drawn.substratum], loss - drawn.mean
        self._matrix += weight * np.outer(deviation, deviation)
        self._right += weight * residual * deviation
        self._products += residual * drawn.height
        self._squares += drawn.height * drawn.height
        self._fit(mean)

    def _fit(self, mean: Floats) -> None:
        self._mean = mean[self._substrata.stratum]
        weights = np.linalg.solve(self._matrix, self._right)
        corrected = self._mean + self._substrata.deviation @ weights
        self._height = np.clip(corrected, *self._bounds) - self._mean
        trust = min(max(self._products / self._squares, 0.0), 1.0)
        self.surrogate: Floats = self._mean + trust * self._height


Counts = NDArray[np.int64]

DIFFERENCE_MOMENT = 0.05
"""Second moment of a difference on the unit scale if it is not known which answers are equal."""


class Label(NamedTuple):
    """The draw whose loss is learned from.

    ``surrogate`` is that of its signal, on the unit scale, ``weight`` is 1 / (n q), ``correction``
    what several columns changed of the surrogate.
    """

    item: int
    surrogate: float
    weight: float
    correction: Correction | None = None


class Expectation(NamedTuple):
    """The prediction of a draw, on the loss scale; fixed before its loss.

    ``surrogates_left`` is the sum of the surrogates of the items not drawn before it. Its signal
    lies in ``reach``, counted from the plug-in part if ``moves``. ``variance`` is the predicted one
    on the unit scale, NaN where the policy predicts none. ``label`` is None where nothing is
    learned from the loss.
    """

    surrogate: float
    surrogates_left: float
    reach: Range
    variance: float = float("nan")
    label: Label | None = None
    moves: bool = True

    def signal_range(self, plug_in: float) -> Range:
        """Return the range of the signal with this plug-in part."""
        if not self.moves:
            return self.reach
        return Range(plug_in + self.reach.lower, plug_in + self.reach.upper)


class Predictor(Protocol):
    """Surrogates of the items not drawn yet, from the labels judged so far."""

    __slots__ = ()

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not drawn."""

    @property
    def fit(self) -> Fit:
        """The fit to all labels judged so far, on the unit scale; empty without strata."""

    def expect(self, draw: Draw, *, corrected: bool = False) -> Expectation:
        """Return the prediction of the next draw, and remove its item from those left.

        ``corrected``: a loss that the draw's probabilities rest on was corrected since.
        """

    def signal_range(self, draw: Draw, expected: Expectation, plug_in: float) -> Range:
        """Return the range of a round's signal, once its plug-in part is known."""
        del draw
        return expected.signal_range(plug_in)

    def learn(self, label: Label, loss: float) -> None:
        """Refit the surrogates of later draws to the loss of a judged round."""


class FixedPredictor(Predictor):
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
        """Sum of the surrogates of the items not drawn."""
        return self._left.value

    @property
    def fit(self) -> Fit:
        """Empty: draws depend on scores alone."""
        return NO_FIT

    def surrogate(self, item: int) -> float:
        """Return the surrogate of an item."""
        return float(self._surrogate[item])

    def expect(self, draw: Draw, *, corrected: bool = False) -> Expectation:
        """Return the prediction of the next draw, with a range of the kind the policy names."""
        del corrected  # Probabilities follow from scores alone
        surrogate, left = self.surrogate(draw.item), self._left.value
        moves = self._plan.policy.range != "global"
        expected = Expectation(surrogate, left, self._reach(draw), moves=moves)
        self._rounds += 1
        self._left.add(-surrogate)
        return expected

    def _reach(self, draw: Draw) -> Range:
        policy = self._plan.policy
        if policy.range == "global":
            return global_range(policy.beta, self._extremes)
        if policy.range == "exact":
            q = self._proposal.probabilities(draw.round)
            mask = q > 0.0
            return exact_range(0.0, self._surrogate[mask], q[mask], self._extremes)
        items_left = self._plan.drawable - self._rounds
        return floor_range(0.0, items_left, policy.beta, self._extremes)

    def learn(self, label: Label, loss: float) -> None:
        """Do nothing: these surrogates are not refitted."""


class CalibratedPredictor(Predictor):
    """One surrogate for every item of a stratum, fitted to the labels judged so far.

    Of several columns it is one for every item of a substratum. Probabilities are those recorded at
    the draw. Sums are by weight, where items have any.
    """

    __slots__ = (
        "_calibration",
        "_columns",
        "_extremes",
        "_items",
        "_left",
        "_lower",
        "_parts",
        "_parts_left",
        "_strata",
        "_stratum",
        "_width",
    )

    def __init__(self, plan: Plan, strata: Strata, substrata: Substrata | None = None) -> None:
        self._items = plan.items
        self._lower = plan.lower
        self._width = plan.scale.width
        self._strata = strata
        self._left = StrataLeft(strata)
        lower, upper = self._unit(strata)
        # Unless equal answers are known, the two systems are taken to agree on most items.
        prior = DIFFERENCE_MOMENT if plan.difference and plan.known is None else None
        narrowing = Narrowing.of(self._left.weight, plan.half, plan.items)
        self._calibration = Calibration(
            strata.base, lower, upper, prior, plan.difference, narrowing
        )
        # An exact range does not use the extreme surrogates.
        self._extremes = Extremes(plan.items, plan.lower, plan.upper, plan.lower, plan.upper)
        self._parts, self._parts_left = strata, self._left
        self._stratum: slice | Counts = slice(None)
        self._columns: ColumnWeights | None = None
        if substrata is not None:
            self._parts, self._stratum = substrata.strata, substrata.stratum
            self._parts_left = StrataLeft(self._parts)
            self._columns = ColumnWeights(substrata, *self._unit(self._parts), self.fit.mean)

    def _unit(self, strata: Strata) -> tuple[Floats, Floats]:
        """Return the bounds of the losses of every stratum on the unit scale."""
        lower, upper = strata.lower - self._lower, strata.upper - self._lower
        return lower / self._width, upper / self._width

    @property
    def _surrogate(self) -> Floats:
        """Surrogate of an item of every substratum, or stratum, on the unit scale."""
        return self.fit.mean if self._columns is None else self._columns.surrogate

    @property
    def surrogates_left(self) -> float:
        """Sum of the surrogates of the items not drawn."""
        left = self._parts_left.weight
        sums = left.sum(), left @ self._surrogate
        return float(self._lower * sums[0] + self._width * sums[1])

    @property
    def fit(self) -> Fit:
        """The fit to all labels judged so far."""
        return self._calibration.fit

    def expect(self, draw: Draw, *, corrected: bool = False) -> Expectation:
        """Return the prediction of the next draw, by the labels judged so far."""
        del corrected  # The draw has the probabilities of all strata
        part = int(self._parts.code[draw.item])
        surrogate = float(self._surrogate[part])
        weight = self._strata.weight_of(draw.item) / (float(self._left.weight.sum()) * draw.q)
        correction = None if self._columns is None else self._columns.correction(part)
        expected = Expectation(
            surrogate=self._lower + self._width * surrogate,
            surrogates_left=self.surrogates_left,
            reach=self._reach(draw),
            variance=self._variance(draw),
            label=Label(draw.item, surrogate, weight, correction),
        )
        self._left.take(draw.item)
        if self._columns is not None:
            self._parts_left.take(draw.item)
        return expected

    def _reach(self, draw: Draw) -> Range:
        """Return the exact range over strata with items left, less the plug-in part."""
        surrogate = self._lower + self._width * self._surrogate
        q, ends = _strata_q(draw)[self._stratum], (self._parts.lower, self._parts.upper)
        mask = self._parts_left.weight > 0.0
        if not mask.all():
            surrogate, q, ends = surrogate[mask], q[mask], (ends[0][mask], ends[1][mask])
        return exact_range(0.0, surrogate, q, self._extremes, ends)

    def _variance(self, draw: Draw) -> float:
        """Return the sum over strata of rem_k max(v_k, 0.001) / (N^2 q_k)."""
        moment = np.maximum(self.fit.moment, LEAST_MOMENT)
        expected = self._left.weight @ (moment / _strata_q(draw))
        return float(expected) / (self._items * self._items)

    def learn(self, label: Label, loss: float) -> None:
        """Refit the strata to the loss of a judged round."""
        unit = (loss - self._lower) / self._width
        stratum = int(self._strata.code[label.item])
        self._calibration.record(stratum, unit, label.surrogate, label.weight)
        if self._columns is not None and label.correction is not None:
            self._columns.record(label.correction, unit, label.weight, self.fit.mean)


def _strata_q(draw: Draw) -> Floats:
    if draw.strata_q is None:
        message = f"the draw of round {draw.round} came without the probabilities of its strata"
        raise ValueError(message)
    return draw.strata_q
