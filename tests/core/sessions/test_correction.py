"""A correction folded beforehand leaves what folding it in its place leaves."""

import copy

import pytest

from celeus.core.ledger import Amendment
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.sessions.correction import Refold, corrected
from celeus.core.sessions.state import State, apply, propose, replay
from tests.core.worlds import Walk, open_walk, zero_one_truth

POLICIES = ["celeus", "evalue", "sharp", "uniform"]
CLAIMS = [Claim(precision=0.3), Claim(target="population", precision=0.3)]


def refold(state: State, walk: Walk, event: Amendment, step: int = 13) -> Refold:
    """What is folded of ``state`` now, folded with the correction in a few steps."""
    ready = Refold(state.engine, event)
    while ready.folded < state.folded:
        stop = min(state.folded, ready.folded + step)
        ready.follow(walk.plan, state.rounds[ready.folded : stop])
    return ready


def told(walk: Walk, state: State) -> object:
    """Everything that may be read off a state, and its next draw."""
    return (
        state.sequence,
        state.interval,
        state.estimate,
        state.stop_reason,
        str(propose(walk.plan, state)),
        list(state.points),
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
    ready = refold(walk.state, walk, event)
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
    ready = refold(walk.state, walk, event)
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


@pytest.mark.parametrize("policy", ["celeus", "sharp"])
def test_a_fold_of_a_state_that_was_rebuilt_since_is_not_taken(policy: str) -> None:
    """It reads who was drawn from the state it was begun on, which learns of no draw any more."""
    exact = policy_named(policy, range="exact") if policy == "celeus" else policy_named(policy)
    walk = open_walk(zero_one_truth(120, seed=3), exact, CLAIMS[0])
    walk.go(40)
    event = Amendment(7, 1.0)
    ready = refold(walk.state, walk, event)
    begun = open_walk(zero_one_truth(120, seed=3), exact, CLAIMS[0])
    rebuilt = replay(begun.plan, begun.state, walk.events)
    other = copy.deepcopy(rebuilt)
    one = Walk(walk.truth, walk.plan, corrected(walk.plan, rebuilt, event, ready))
    two = Walk(walk.truth, walk.plan, apply(walk.plan, other, event))
    for each in (one, two):
        each.go(20)
    assert told(walk, one.state) == told(walk, two.state)
