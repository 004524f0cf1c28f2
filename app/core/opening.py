"""From a policy's name to its parts: who draws, what guesses, who bets."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.core.cells import Cells
from app.core.folding import Fold
from app.core.guesses import CalibratedGuesses, FixedGuesses
from app.core.paired import PairGame
from app.core.plan import Plan
from app.core.pooled import PoolGame
from app.core.proposals import Mixture, Proposal, Stratified, draw_orders
from app.core.strata import one_stratum, strata_of
from app.core.surrogates import Scores


@dataclass(frozen=True, slots=True)
class Opening:
    """The proposal of a session, and how to start its fold (anew after an amendment)."""

    proposal: Proposal
    fold: Callable[[], Fold]


def opening(plan: Plan, scores: Scores, seed: bytes) -> Opening:
    """The parts of ``plan`` before the first draw. O(N log N)."""
    if plan.policy.has_goal:
        return _by_goal(plan, scores, seed)
    return _published(plan, scores, seed)


def _published(plan: Plan, scores: Scores, seed: bytes) -> Opening:
    surrogate, weight = scores.surrogate, scores.weight
    if not plan.policy.uses_scores:
        surrogate = np.full(plan.items, plan.lower)
        weight = np.zeros(plan.items)
    proposal = Mixture(weight, draw_orders(weight, seed), plan.policy.beta)

    def fold() -> Fold:
        guesses = FixedGuesses(plan, surrogate, proposal)
        return Fold(guesses, Cells(plan, guesses.left / plan.items))

    return Opening(proposal, fold)


def _by_goal(plan: Plan, scores: Scores, seed: bytes) -> Opening:
    strata = one_stratum(plan.items)
    if plan.policy.uses_scores:
        strata = strata_of(scores, plan.scale)

    def fold() -> Fold:
        guesses = CalibratedGuesses(plan, strata)
        game = PairGame if plan.bound.kind == "pairs" else PoolGame
        return Fold(guesses, game(plan, guesses.left / plan.items))

    return Opening(Stratified(strata, seed, plan.policy.beta), fold)
