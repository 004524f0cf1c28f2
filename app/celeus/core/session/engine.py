"""Engines: the proposal, predictor and confidence sequence that a policy uses."""

import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import ConfidenceSequence
from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.betting.population_target import PairSequence
from celeus.core.betting.published import CellSequence
from celeus.core.plans.plan import Plan
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.pools.strata import DIFFERENCE_BINS, MOST_BINS, Strata, strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.predictors import CalibratedPredictor, FixedPredictor, Predictor
from celeus.core.sampling.proposals import (
    MixtureProposal,
    Proposal,
    StratifiedProposal,
    draw_orders,
    shares_adapt,
)
from celeus.core.session.fold import Fold
from celeus.core.session.points import Points

Floats = NDArray[np.float64]


class Engine(Protocol):
    """The proposal of a session, and how to start its fold (anew after an amendment)."""

    @property
    def proposal(self) -> Proposal:
        """The proposal: which item is drawn next, and with which probability."""

    @property
    def adaptive(self) -> bool:
        """Whether draws depend on the losses judged before."""

    def fold(self) -> Fold:
        """The fold before its first round."""


@dataclass(frozen=True, slots=True)
class PublishedEngine:
    """Scores mixed with uniform draws, surrogates as they came, wealth on cells."""

    plan: Plan
    proposal: MixtureProposal
    surrogate: Floats
    bounds: Bounds | None = None

    @property
    def adaptive(self) -> bool:
        """False: the scores are fixed before the first draw."""
        return False

    def fold(self) -> Fold:
        """The fold before its first round."""
        predictor = FixedPredictor(self.plan, self.surrogate, self.proposal)
        return first_fold(self.plan, predictor, self.bounds)


@dataclass(frozen=True, slots=True)
class StratifiedEngine:
    """Strata, surrogates recalibrated in each, bets with an information goal."""

    plan: Plan
    proposal: StratifiedProposal
    strata: Strata
    bounds: Bounds | None = None
    item_weight: Floats | None = None

    @property
    def adaptive(self) -> bool:
        """Whether draws depend on the losses judged before: only shares between strata do."""
        return shares_adapt(self.plan.beta, self.strata.count)

    def fold(self) -> Fold:
        """The fold before its first round."""
        predictor = CalibratedPredictor(self.plan, self.strata)
        return first_fold(self.plan, predictor, self.bounds, self.item_weight)


def first_fold(
    plan: Plan,
    predictor: Predictor,
    bounds: Bounds | None = None,
    item_weight: Floats | None = None,
) -> Fold:
    """The fold of ``plan`` before round 1."""

    def confidence_sequence(start: float) -> ConfidenceSequence:
        if not plan.policy.has_goal:
            return CellSequence(plan, start)
        return PairSequence(plan, start) if plan.bound.paired else LatticeSequence(plan, start)

    return Fold.before(plan, predictor, confidence_sequence, bounds, item_weight)


def strata_for(plan: Plan, scores: Scores) -> Strata:
    """The strata of a session whose policy has any. O(N log N)."""
    return strata_of(
        scores,
        plan.scale,
        by_scores=plan.policy.uses_scores,
        audit=plan.audit,
        most_bins=DIFFERENCE_BINS if plan.difference else MOST_BINS,
    )


def engine_of(plan: Plan, scores: Scores, seed: bytes) -> Engine:
    """The engine of ``plan`` before the first draw. O(N log N)."""
    policy, bounds = plan.policy, None if plan.audit else scores.bounds
    if policy.has_goal:
        strata = strata_for(plan, scores)
        stratified = StratifiedProposal(strata, seed, policy.beta, plan.half)
        return StratifiedEngine(plan, stratified, strata, bounds, scores.item_weight)
    surrogate, weight = scores.surrogate, scores.weight
    if not policy.uses_scores:
        surrogate = np.full(plan.items, plan.lower)
        weight = np.zeros(plan.items)
    known = None
    if bounds is not None:
        known = bounds.known
        weight = np.where(known, 0.0, weight)
        surrogate = np.clip(surrogate, bounds.lower, bounds.upper)
    proposal = MixtureProposal(weight, draw_orders(weight, seed), policy.beta, known)
    return PublishedEngine(plan, proposal, surrogate, bounds)


def copied_fold(engine: Engine, fold: Fold, points: Points, *shared: object) -> Fold:
    """A copy of the fold with other points; what never changes belongs to the engine."""
    parts = (getattr(engine, name) for name in getattr(engine, "__slots__", ()))
    memo: dict[int, object] = {id(part): part for part in (*parts, *shared)}
    return copy.deepcopy(fold, memo | {id(fold.points): points})
