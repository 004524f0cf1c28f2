"""A correction folded beforehand leaves what folding it in its place leaves."""

import copy

import pytest

from app.core.correcting import corrected, refold
from app.core.ledger import Amendment
from app.core.plan import Claim
from app.core.policies import policy_named
from app.core.session import State, apply, propose
from tests.core.worlds import Walk, open_walk, zero_one_truth

POLICIES = ["celeus", "evalue", "sharp", "uniform"]
CLAIMS = [Claim(precision=0.3), Claim(target="population", precision=0.3)]


def told(walk: Walk, state: State) -> object:
    """Everything that may be read off a state, and its next draw."""
    return (
        state.sequence,
        state.interval,
        state.estimate,
        state.stop_reason,
        str(propose(walk.plan, state)),
        str(state.points),
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("claim", CLAIMS, ids=["pool", "population"])
@pytest.mark.parametrize("loss", [1.0, None])
def test_it_leaves_what_folding_in_place_leaves(
    policy: str, claim: Claim, loss: float | None
) -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named(policy), claim)
    walk.go(40)
    event = Amendment(7, loss)
    before = told(walk, walk.state)
    ready = refold(walk.plan, walk.state, event)
    assert told(walk, walk.state) == before, "the state goes on as if nothing had been folded"
    # Meanwhile others judge, draw, and judge out of order.
    walk.go(5)
    walk.draw(3)
    walk.judge([47])
    other = copy.deepcopy(walk.state)
    assert told(walk, corrected(walk.plan, walk.state, event, ready)) == told(
        walk, apply(walk.plan, other, event)
    )


def test_a_fold_made_before_another_correction_is_not_taken() -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named("sharp"), CLAIMS[0])
    walk.go(40)
    event = Amendment(7, 1.0)
    ready = refold(walk.plan, walk.state, event)
    wrong = 1.0 - float(walk.truth.loss[walk.state.rounds[2].draw.item])
    walk.enter(Amendment(3, wrong))
    other = copy.deepcopy(walk.state)
    assert told(walk, corrected(walk.plan, walk.state, event, ready)) == told(
        walk, apply(walk.plan, other, event)
    )


def test_a_correction_of_a_round_not_folded_yet_folds_nothing_anew() -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named("sharp"), CLAIMS[0])
    walk.go(40)
    walk.draw(2)
    walk.judge([42])
    fold = walk.state.fold
    assert corrected(walk.plan, walk.state, Amendment(42, 1.0), None).fold is fold
