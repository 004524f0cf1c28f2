"""A forecast starts from the rounds of its session and leaves the session alone."""

from itertools import islice

import numpy as np
import pytest

from celeus.core.insights.forecast import Losses, continuations, resumed
from celeus.core.ledger import Amendment, Change
from celeus.core.plans.claim import Claim, Target
from celeus.core.plans.plan import plan_from
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.weights import relative
from celeus.core.sessions.rounds import Rounds
from celeus.study.engine.simulation import Truth
from tests.core.worlds import Walk, open_walk, zero_one_truth

POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue")


def walked(policy: str, claim: Claim) -> Walk:
    """A session with a correction, a change, rounds nobody can judge and some that wait."""
    walk = open_walk(zero_one_truth(300), policy_named(policy), claim, hidden=range(0, 300, 9))
    walk.go(30)
    walk.enter(Amendment(3, 1.0))
    walk.enter(Change(precision=0.4, budget=200))
    walk.go(20)
    walk.draw(6)
    walk.judge([52, 53, 55])
    return walk


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("target", ["pool", "population"])
def test_the_state_is_resumed_to_the_last_bit_without_its_seed(policy: str, target: Target) -> None:
    walk = walked(policy, Claim(target))
    state, scores = walk.state, walk.truth.scores
    kept = state.rounds[:]
    rounds = Rounds.from_columns(kept.columns, kept.strata, kept.rules)
    assert rounds == state.rounds
    plan = plan_from(walk.plan.to_dict())
    again = resumed(plan, Scores(**scores.arrays), rounds, state.stopping)
    assert again.interval == state.interval
    assert again.estimate == state.estimate
    assert again.counts == state.counts
    assert again.stopping == state.stopping
    assert (
        again.fold.predictor.residual_moments.tolist()
        == state.fold.predictor.residual_moments.tolist()
    )


def test_a_future_leaves_the_state_as_it_was() -> None:
    walk = walked("sharp", Claim(precision=0.3))
    before = (walk.state.interval, walk.state.counts, walk.state.rounds[:])
    futures = continuations(walk.plan, walk.state, walk.truth.scores, b"seed")
    first = list(islice((left for left in futures if left is not None), 5))
    assert (walk.state.interval, walk.state.counts, walk.state.rounds) == before
    futures = continuations(walk.plan, walk.state, walk.truth.scores, b"seed")
    assert list(islice((left for left in futures if left is not None), 5)) == first


def test_losses_of_heavy_items_stand_for_as_much_as_they_weigh() -> None:
    """Heavy items are all wrong, light ones right: drawn by weight, half of the weight is each."""
    heavy = np.arange(2000) % 5 == 0
    weight = relative(np.where(heavy, 4.0, 1.0))
    scores = Scores(np.full(2000, 0.5), np.ones(2000), item_weight=weight)
    walk = open_walk(Truth(heavy.astype(np.float64), scores), policy_named("sharp"))
    walk.go(150)
    walk.draw(3)
    losses = Losses(scores, walk.state, b"seed")
    told = np.mean([losses.of_item(item) for item in range(2000)])
    assert told == pytest.approx(0.5, abs=0.12)
