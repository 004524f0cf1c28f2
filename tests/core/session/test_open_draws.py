"""What a bet depends on is fixed at its draw: no later answer moves it, nor its own."""

import copy

import numpy as np
import pytest

from celeus.core.betting.bets import padded
from celeus.core.ledger import Amendment, Change, Observation, Unjudgeable
from celeus.core.plain import Mismatch
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.session.correction import Checkpoints, FoldAhead, advance
from celeus.core.session.fold import OpenRound
from celeus.core.session.session import begin_mean
from tests.core.worlds import SEED, Walk, open_walk, zero_one_truth

CLAIMS = {
    "pool": Claim("pool", 0.05, 0.2),
    "without precision": Claim("pool", 0.05),
    "population": Claim("population", 0.05, 0.3),
}
POLICIES = ["sharp", "uniform", "celeus", "evalue"]


def open_rounds(walk: Walk) -> dict[int, OpenRound]:
    return dict(walk.state.question.fold.knowledge.open)


def stalled(policy: str, claim: Claim) -> Walk:
    """Draws 11 and 14 stay open while others behind them are judged, one of them by nobody."""
    walk = open_walk(zero_one_truth(200), policy_named(policy), claim)
    walk.go(10)
    walk.draw(4)
    walk.judge([13, 12])
    walk.draw(2)
    walk.enter(Unjudgeable(15))
    walk.draw(1)
    walk.judge([17])
    return walk


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_record_of_a_draw_is_the_same_whatever_is_said_later(policy: str, claim: Claim) -> None:
    walk = stalled(policy, claim)
    made = open_rounds(walk)
    assert list(made) == [11, 12, 13, 14, 15, 16, 17]
    losses: list[float | None] = [0.0, 1.0, None]
    for front in losses:
        branch = walk.branch()
        branch.enter(Unjudgeable(16) if front is None else Observation(16, front))
        branch.enter(Change(0.1, 200))
        branch.go(3)
        assert {round_: open_rounds(branch)[round_] for round_ in made} == made
        again = begin_mean(walk.plan, walk.truth.scores, SEED).replay(branch.events)
        assert dict(again.question.fold.knowledge.open) == open_rounds(branch)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_losses_of_open_rounds_are_in_no_record(policy: str, claim: Claim) -> None:
    """The same sessions on two pools that differ in the open rounds alone draw and bet alike."""
    walk = stalled(policy, claim)
    items = [walk.state.rounds.item[round_ - 1] for round_ in (11, 14, 16)]
    other = copy.deepcopy(walk.truth)
    other.loss[items] = 1.0 - other.loss[items]
    twin = Walk(other, walk.plan, begin_mean(walk.plan, other.scores, SEED))
    twin.state = twin.state.replay(walk.events)
    for each in (walk, twin):
        each.go(2)
    assert open_rounds(twin) == open_rounds(walk)


def test_a_judgement_behind_an_open_round_moves_the_draws_after_it() -> None:
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), CLAIMS["pool"])
    walk.go(10)
    walk.draw(2)
    before = walk.state.propose()
    said, skipped = walk.branch(), walk.branch()
    said.judge([12])
    skipped.enter(Unjudgeable(12))
    assert said.state.folded == skipped.state.folded == 10
    q = [one.strata_q for one in (before, said.state.propose(), skipped.state.propose())]
    first, after, unmoved = (one for one in q if one is not None)
    assert not np.array_equal(after, first)
    assert np.array_equal(unmoved, first)
    for each in (said, skipped):
        each.draw(1)
    # Its information counts for both, before the round is folded.
    sums = [open_rounds(one)[13].inputs.accrued for one in (said, skipped)]
    assert sums[0] == sums[1] > open_rounds(said)[12].inputs.accrued


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_stalled_session_is_the_same_live_replayed_and_corrected(
    policy: str, claim: Claim
) -> None:
    walk = stalled(policy, claim)
    walk.enter(Change(0.15, 200))
    walk.go(4)
    walk.enter(Amendment(13, 1.0 - float(walk.truth.loss[walk.state.rounds.item[12]])))
    walk.go(2)
    walk.enter(Amendment(15, 1.0))
    walk.judge([14])
    walk.go(1)
    walk.judge([16, 11])
    walk.go(3)
    again = begin_mean(walk.plan, walk.truth.scores, SEED)
    for event in walk.events:
        again.enter(event)
    again.fold()
    assert again.question.points == walk.state.question.points
    assert str(again.propose()) == str(walk.state.propose())
    assert len(again.question.points) == walk.state.drawn


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_rounds_folded_beside_a_session_fit_whatever_was_drawn_and_judged_meanwhile(
    claim: Claim,
) -> None:
    walk = stalled("sharp", claim)
    losses = {round_: walk.truth.loss_of(walk.state.rounds.item[round_ - 1]) for round_ in (11, 14)}
    ahead = FoldAhead(walk.state, losses)
    ahead.follow()
    assert ahead.fold.last == 15
    walk.go(2)
    walk.judge([16])
    assert ahead.fits(walk.state, losses)
    for round_, loss in losses.items():
        walk.events.append(Observation(round_, loss))
        advance(walk.state, walk.events[-1], Checkpoints(), ahead)
    assert walk.state.question.fold is ahead.fold
    walk.go(3)
    again = begin_mean(walk.plan, walk.truth.scores, SEED).replay(walk.events)
    assert again.question.points == walk.state.question.points
    assert str(again.propose()) == str(walk.state.propose())


def test_the_runs_of_rounds_folded_beside_a_session_are_counted() -> None:
    truth = zero_one_truth(20)
    claim = Claim("runs", precision=0.3, success="all of 3")
    session = open_walk(truth, policy_named("sharp"), claim).state
    for _ in range(3):
        session.apply(session.propose())
    for round_ in (2, 3):
        session.apply(Observation(round_, 1.0, runs=round_ - 1))
    ahead = FoldAhead(session, {1: 1.0})
    ahead.follow()
    advance(session, Observation(1, 1.0, runs=3), Checkpoints(), ahead)
    assert (session.folded, session.runs) == (3, 6)
    with pytest.raises(Mismatch):
        session.apply(Amendment(2, 0.0))


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_with_one_draw_at_a_time_bets_rest_on_all_rounds_before(claim: Claim) -> None:
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), claim, hidden=(3, 90))
    halves, total = walk.state.question.fold.confidence_sequence.halves(claim.precision), 0.0
    for _ in range(60):
        walk.draw(1)
        ((round_, drawn),) = open_rounds(walk).items()
        plus, _ = drawn.inputs.predicted
        assert drawn.inputs.accrued[0][0][0] == total
        walk.judge([round_])
        point = walk.state.question.points[-1]
        assert drawn.inputs.reach == (point.plus.signal_range, point.minus.signal_range)
        total += 1.0 / padded(plus, halves[0][0])


def test_a_precision_finer_than_the_lattice_binds_the_next_draw() -> None:
    """The lattice is refined when that draw is folded, after its bets are fixed."""
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), CLAIMS["pool"])
    walk.go(5)
    walk.draw(1)
    walk.enter(Change(0.001, 200))
    walk.draw(1)
    walk.judge([7, 6])
    walk.go(3)
    assert walk.state.folded == 10
    again = begin_mean(walk.plan, walk.truth.scores, SEED).replay(walk.events)
    assert again.question.points == walk.state.question.points
