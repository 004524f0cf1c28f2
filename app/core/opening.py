"""From a policy to its parts: who draws, what guesses, who bets."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.core.cells import Cells
from app.core.folding import Fold, Game
from app.core.guesses import CalibratedGuesses, FixedGuesses
from app.core.paired import PairGame
from app.core.plan import Plan
from app.core.pooled import PoolGame
from app.core.proposals import Mixture, Proposal, Stratified, draw_orders
from app.core.strata import Strata, one_stratum, strata_of
from app.core.surrogates import Scores

Floats = NDArray[np.float64]


class Opening(Protocol):
    """The proposal of a session, and how to start its fold (anew after an amendment)."""

    @property
    def proposal(self) -> Proposal:
        """Who may be drawn next."""

    def fold(self) -> Fold:
        """The fold before its first round."""


@dataclass(frozen=True, slots=True)
class Published:
    """Scores mixed with uniform draws, surrogates as they came, wealth on cells."""

    plan: Plan
    proposal: Mixture
    surrogate: Floats

    def fold(self) -> Fold:
        """The fold before its first round."""
        guesses = FixedGuesses(self.plan, self.surrogate, self.proposal)
        return Fold(guesses, game_of(self.plan, guesses.left))


@dataclass(frozen=True, slots=True)
class Grouped:
    """Strata, surrogates recalibrated in each, bets that aim at an amount of information."""

    plan: Plan
    proposal: Stratified
    strata: Strata

    def fold(self) -> Fold:
        """The fold before its first round."""
        guesses = CalibratedGuesses(self.plan, self.strata)
        return Fold(guesses, game_of(self.plan, guesses.left))


def game_of(plan: Plan, surrogates: float) -> Game:
    """Who bets, before the first round; ``surrogates`` is the sum over the whole pool."""
    start = surrogates / plan.items
    if not plan.policy.has_goal:
        return Cells(plan, start)
    return PairGame(plan, start) if plan.bound.kind == "pairs" else PoolGame(plan, start)


def opening(plan: Plan, scores: Scores, seed: bytes) -> Opening:
    """The parts of ``plan`` before the first draw. O(N log N)."""
    policy = plan.policy
    if policy.has_goal:
        strata = strata_of(scores, plan.scale) if policy.uses_scores else one_stratum(plan.items)
        return Grouped(plan, Stratified(strata, seed, policy.beta), strata)
    surrogate, weight = scores.surrogate, scores.weight
    if not policy.uses_scores:
        surrogate = np.full(plan.items, plan.lower)
        weight = np.zeros(plan.items)
    return Published(plan, Mixture(weight, draw_orders(weight, seed), policy.beta), surrogate)
