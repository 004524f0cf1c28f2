"""Engines: the proposal, predictor and confidence sequence that a policy uses."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import ConfidenceSequence
from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.betting.population_target import PairSequence
from celeus.core.betting.published import CellSequence
from celeus.core.plans.plan import Plan
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.pools.strata import (
    DIFFERENCE_BINS,
    MOST_BINS,
    Strata,
    Substrata,
    strata_of,
    substrata_of,
)
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.predictors import CalibratedPredictor, FixedPredictor, Predictor
from celeus.core.sampling.proposals import (
    MixtureProposal,
    Proposal,
    StratifiedProposal,
    draw_orders,
    shares_adapt,
)
from celeus.core.sampling.repeats import RepeatsPredictor, RepeatsProposal
from celeus.core.session.fold import Fold
from celeus.core.session.points import Points

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Engine:
    """The proposal of a session, and how to start its fold (anew after an amendment).

    ``adaptive``: draws depend on the losses judged before. ``predictor`` makes the predictor before
    the first round; ``fixed`` are its parts that never change, which copies of a fold share.
    """

    plan: Plan
    proposal: Proposal
    adaptive: bool
    predictor: Callable[[], Predictor]
    bounds: Bounds | None = None
    item_weight: Floats | None = None
    fixed: tuple[object, ...] = ()

    def fold(self) -> Fold:
        """The fold before its first round."""
        plan = self.plan

        def confidence_sequence(start: float) -> ConfidenceSequence:
            if not plan.policy.has_goal:
                return CellSequence(plan, start)
            return PairSequence(plan, start) if plan.bound.paired else LatticeSequence(plan, start)

        return Fold.before(
            plan, self.predictor(), confidence_sequence, self.bounds, self.item_weight
        )


def strata_for(plan: Plan, scores: Scores) -> Strata:
    """The strata of a session whose policy has any. O(N log N)."""
    return strata_of(
        scores,
        plan.scale,
        by_scores=plan.policy.uses_scores,
        audit=plan.audit,
        most_bins=DIFFERENCE_BINS if plan.difference else MOST_BINS,
    )


def substrata_for(plan: Plan, scores: Scores, strata: Strata) -> Substrata | None:
    """The substrata of a session whose policy has strata; None without several columns."""
    columns = scores.columns
    weighed = plan.policy.uses_scores and not plan.repeats
    if columns is None or columns.shape[1] < 2 or not weighed:
        return None
    return substrata_of(strata, columns, plan.scale)


def predictor_of(plan: Plan, strata: Strata, substrata: Substrata | None) -> Predictor:
    """The predictor of a policy with strata, before the first round."""
    if plan.repeats:
        return RepeatsPredictor(plan, strata)
    return CalibratedPredictor(plan, strata, substrata)


def engine_of(plan: Plan, scores: Scores, seed: bytes) -> Engine:
    """The engine of ``plan`` before the first draw. O(N log N)."""
    policy, bounds = plan.policy, None if plan.audit else scores.bounds
    if policy.has_goal:
        strata = strata_for(plan, scores)
        substrata = substrata_for(plan, scores, strata)
        proposal: Proposal
        if plan.repeats:
            proposal, adaptive = RepeatsProposal(plan.items), True
        else:
            proposal = StratifiedProposal(strata, seed, policy.beta, plan.half)
            adaptive = shares_adapt(plan.beta, strata.count)
        return Engine(
            plan,
            proposal,
            adaptive,
            partial(predictor_of, plan, strata, substrata),
            bounds,
            scores.item_weight,
            (strata,) if substrata is None else (strata, substrata, substrata.strata),
        )
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
    predictor = partial(FixedPredictor, plan, surrogate, proposal)
    return Engine(
        plan, proposal, adaptive=False, predictor=predictor, bounds=bounds, fixed=(surrogate,)
    )


def copied_fold(engine: Engine, fold: Fold, points: Points, *shared: object) -> Fold:
    """A copy of the fold with other points; what never changes belongs to the engine."""
    parts = (engine.plan, engine.proposal, engine.bounds, engine.item_weight)
    memo: dict[int, object] = {id(part): part for part in (*parts, *engine.fixed, *shared)}
    return copy.deepcopy(fold, memo | {id(fold.points): points})
