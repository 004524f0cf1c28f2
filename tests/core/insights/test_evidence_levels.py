"""A session is resumed from its rounds, without its seed, to be bet on again at other levels."""

import pytest

from celeus.core.insights.evidence_levels import intervals, resumed
from celeus.core.ledger import Amendment, Change
from celeus.core.plans.claim import Claim, Target
from celeus.core.plans.plan import Plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.session.rounds import Rounds
from tests.core.worlds import Walk, open_walk, zero_one_truth

POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue")


def walked(policy: str, claim: Claim) -> Walk:
    """A session with a correction, a change, rounds nobody can judge and some that wait."""
    walk = open_walk(zero_one_truth(300), policy_named(policy), claim, hidden=range(0, 300, 9))
    walk.go(30)
    walk.enter(Amendment(3, 1.0))
    walk.enter(Change(precision=0.3, budget=200))
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
    plan = Plan.from_dict(walk.plan.to_dict())
    again = resumed(plan, Scores(**scores.arrays), rounds, state.stopping)
    assert again.question.interval == state.question.interval
    assert again.question.estimate == state.question.estimate
    assert again.counts == state.counts
    assert again.stopping == state.stopping
    assert (
        again.question.fold.predictor.fit.moment.tolist()
        == state.question.fold.predictor.fit.moment.tolist()
    )


def test_runs_of_items_that_are_run_again_are_bet_on_again() -> None:
    claim = Claim("runs", precision=0.2, budget=200, repeats=True)
    walk = open_walk(zero_one_truth(8), policy_named("sharp"), claim)
    walk.go(120)
    state, scores = walk.state, walk.truth.scores
    assert resumed(walk.plan, scores, state.rounds[:], state.stopping).counts == state.counts
    narrow, wide = intervals(walk.plan, scores, state.rounds[:], [0.05, 0.001])
    assert narrow.lower == pytest.approx(state.question.interval.lower, abs=0.02)
    assert wide.lower <= narrow.lower < narrow.upper <= wide.upper
