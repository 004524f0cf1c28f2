"""Engines: the proposal, predictor and confidence sequence that a policy uses."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from celeus.core.eprocess.base import ConfidenceSequence
from celeus.core.eprocess.pool_target import LatticeSequence
from celeus.core.eprocess.population_target import PairSequence
from celeus.core.eprocess.published import CellSequence
from celeus.core.plans.plan import Plan
from celeus.core.pools.strata import Strata, one_stratum, strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.predictors import CalibratedPredictor, FixedPredictor
from celeus.core.sampling.proposals import (
    MixtureProposal,
    Proposal,
    StratifiedProposal,
    draw_orders,
)
from celeus.core.sessions.fold import Fold

Floats = NDArray[np.float64]


class Engine(Protocol):
    """The proposal of a session, and how to start its fold (anew after an amendment)."""

    @property
    def proposal(self) -> Proposal:
        """The proposal: which item is drawn next, and with which probability."""

    def fold(self) -> Fold:
        """The fold before its first round."""


@dataclass(frozen=True, slots=True)
class PublishedEngine:
    """Scores mixed with uniform draws, surrogates as they came, wealth on cells."""

    plan: Plan
    proposal: MixtureProposal
    surrogate: Floats

    def fold(self) -> Fold:
        """The fold before its first round."""
        predictor = FixedPredictor(self.plan, self.surrogate, self.proposal)
        return Fold(predictor, confidence_sequence_of(self.plan, predictor.surrogates_left))


@dataclass(frozen=True, slots=True)
class StratifiedEngine:
    """Strata, surrogates recalibrated in each, bets with an information goal."""

    plan: Plan
    proposal: StratifiedProposal
    strata: Strata

    def fold(self) -> Fold:
        """The fold before its first round."""
        predictor = CalibratedPredictor(self.plan, self.strata)
        return Fold(predictor, confidence_sequence_of(self.plan, predictor.surrogates_left))


def confidence_sequence_of(plan: Plan, surrogates: float) -> ConfidenceSequence:
    """The plan's confidence sequence before round 1; ``surrogates`` is the sum over the pool."""
    start = surrogates / plan.items
    if not plan.policy.has_goal:
        return CellSequence(plan, start)
    return PairSequence(plan, start) if plan.bound.kind == "pairs" else LatticeSequence(plan, start)


def engine_of(plan: Plan, scores: Scores, seed: bytes) -> Engine:
    """The engine of ``plan`` before the first draw. O(N log N)."""
    policy = plan.policy
    if policy.has_goal:
        strata = strata_of(scores, plan.scale) if policy.uses_scores else one_stratum(plan.items)
        return StratifiedEngine(plan, StratifiedProposal(strata, seed, policy.beta), strata)
    surrogate, weight = scores.surrogate, scores.weight
    if not policy.uses_scores:
        surrogate = np.full(plan.items, plan.lower)
        weight = np.zeros(plan.items)
    return PublishedEngine(
        plan, MixtureProposal(weight, draw_orders(weight, seed), policy.beta), surrogate
    )
