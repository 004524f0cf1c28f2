"""A correction folded beforehand leaves what folding it in its place leaves."""

import copy

import pytest

from celeus.core.ledger import Amendment
from celeus.core.plans.plan import Claim, Plan
from celeus.core.plans.policies import policy_named
from celeus.core.session import correction
from celeus.core.session.correction import Checkpoints, Refold, catch_up, correct
from celeus.core.session.fold import Fold, OpenRound
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session
from tests.core.worlds import Walk, open_walk, zero_one_truth

POLICIES = ["celeus", "evalue", "sharp", "uniform"]
CLAIMS = [Claim(precision=0.3), Claim(target="population", precision=0.3)]
REPEATED = Claim("runs", precision=0.3, budget=1_000, repeats=True)
CASES = [
    *(
        pytest.param(name, claim, id=f"{name} {claim.target}")
        for name in POLICIES
        for claim in CLAIMS
    ),
    *(pytest.param(name, REPEATED, id=f"{name} repeated") for name in ("sharp", "uniform")),
]


def refold(state: Session[Mean], event: Amendment, step: int = 13) -> Refold:
    """What is folded of ``state`` now, folded with the correction in a few steps."""
    ready = Refold(state, event, Checkpoints())
    while (part := ready.coming(state, step)).order:
        ready.follow(part)
    return ready


def told(state: Session[Mean]) -> object:
    """Everything that may be read off a state, and its next draw."""
    return (
        state.sequence,
        state.question.interval,
        state.question.estimate,
        state.stop_reason,
        str(state.propose()),
        list(state.question.points),
    )


@pytest.mark.parametrize(("policy", "claim"), CASES)
@pytest.mark.parametrize("loss", [1.0, None])
def test_it_leaves_what_folding_in_place_leaves(
    policy: str, claim: Claim, loss: float | None
) -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named(policy), claim)
    walk.go(40)
    event = Amendment(7, loss)
    before = told(walk.state)
    ready = refold(walk.state, event)
    assert told(walk.state) == before, "the state goes on as if nothing had been folded"
    # Meanwhile others judge, draw, and judge out of order.
    walk.go(5)
    walk.draw(3)
    walk.judge([47])
    other = copy.deepcopy(walk.state)
    assert told(correct(walk.state, event, ready, Checkpoints())) == told(other.apply(event))


def test_a_fold_made_before_another_correction_is_not_taken() -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named("sharp"), CLAIMS[0])
    walk.go(40)
    event = Amendment(7, 1.0)
    ready = refold(walk.state, event)
    wrong = 1.0 - float(walk.truth.loss[walk.state.rounds[2].draw.item])
    walk.enter(Amendment(3, wrong))
    other = copy.deepcopy(walk.state)
    assert told(correct(walk.state, event, ready, Checkpoints())) == told(other.apply(event))


@pytest.mark.parametrize(("policy", "claim"), CASES)
def test_a_correction_behind_an_open_round_is_as_if_judged_so(policy: str, claim: Claim) -> None:
    """Draws were made with what it said before: a bet rests on it though it is not folded."""
    walk = open_walk(zero_one_truth(120, seed=3), policy_named(policy), claim)
    walk.go(40)
    walk.draw(3)
    walk.judge([42])
    walk.draw(2)
    walk.judge([43, 44])
    event = Amendment(42, 1.0 - float(walk.truth.loss[walk.state.rounds[41].draw.item]))
    ready = refold(walk.state, event)
    other = copy.deepcopy(walk.state)
    one = Walk(walk.truth, walk.plan, correct(walk.state, event, ready, Checkpoints()))
    two = Walk(walk.truth, walk.plan, other.apply(event))
    for each in (one, two):
        each.judge([41, 45])
        each.go(5)
    assert told(one.state) == told(two.state)


@pytest.mark.parametrize("policy", ["celeus", "sharp"])
def test_a_fold_of_a_state_that_was_rebuilt_since_is_not_taken(policy: str) -> None:
    """It reads who was drawn from the state it was begun on, which learns of no draw any more."""
    exact = policy_named(policy, range="exact") if policy == "celeus" else policy_named(policy)
    walk = open_walk(zero_one_truth(120, seed=3), exact, CLAIMS[0])
    walk.go(40)
    event = Amendment(7, 1.0)
    ready = refold(walk.state, event)
    begun = open_walk(zero_one_truth(120, seed=3), exact, CLAIMS[0])
    rebuilt = begun.state.replay(walk.events)
    other = copy.deepcopy(rebuilt)
    one = Walk(walk.truth, walk.plan, correct(rebuilt, event, ready, Checkpoints()))
    two = Walk(walk.truth, walk.plan, other.apply(event))
    for each in (one, two):
        each.go(20)
    assert told(one.state) == told(two.state)


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds folded since, in their order; copies are ten rounds apart, eight at most."""
    monkeypatch.setattr(correction, "ROUNDS_BETWEEN_COPIES", 10)
    monkeypatch.setattr(correction, "MOST_COPIES", 8)
    rounds: list[int] = []

    fold_round = Fold.fold_round

    def noted(self: Fold, plan: Plan, coming: OpenRound, loss: float | None) -> None:
        rounds.append(coming.draw.round)
        fold_round(self, plan, coming, loss)

    monkeypatch.setattr(Fold, "fold_round", noted)
    return rounds


def noted(walk: Walk, rounds: int) -> Checkpoints:
    """The checkpoints of a session judged one round after the other, one of them unjudgeable."""
    checkpoints = Checkpoints()
    for round_ in range(1, rounds + 1):
        walk.go(1)
        checkpoints.note(walk.state.question.engine, walk.state.question.fold)
        if round_ == rounds // 2:
            walk.enter(Amendment(round_, None))
            checkpoints.forget(walk.state.rounds, round_)
    return checkpoints


@pytest.mark.parametrize(("policy", "claim"), CASES)
@pytest.mark.parametrize("round_", [3, 27, 38, 60])
def test_a_correction_folds_what_lies_behind_the_checkpoint_before_it(
    folds: list[int], policy: str, claim: Claim, round_: int
) -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named(policy), claim)
    checkpoints = noted(walk, 60)
    assert checkpoints.rounds == [10, 20, 31, 41, 51]
    first = 1 + max([0, *(rounds for rounds in checkpoints.rounds if rounds < round_)])
    event = Amendment(round_, 1.0 - float(walk.state.rounds.loss[round_ - 1]))
    expected = told(copy.deepcopy(walk.state).apply(event))
    ready = Refold(walk.state, event, checkpoints)
    folds.clear()
    while (part := ready.coming(walk.state, 7)).order:
        ready.follow(part)
    assert folds == list(range(first, 61))
    folds.clear()
    in_place = copy.deepcopy((walk.state, checkpoints))
    assert told(correct(in_place[0], event, None, in_place[1])) == expected
    assert folds == list(range(first, 61))
    folds.clear()
    behind = copy.deepcopy((walk.state, checkpoints))
    assert told(catch_up(behind[0], [event], behind[1])) == expected
    assert folds == list(range(first, 61))
    folds.clear()
    state = correct(walk.state, event, ready, checkpoints)
    assert (told(state), folds) == (expected, [])
    # What was copied on the way serves the next correction.
    assert max(checkpoints.rounds) > 50 or round_ > 51
    again = Amendment(59, 0.0)
    expected = told(copy.deepcopy(state).apply(again))
    folds.clear()
    assert told(correct(state, again, None, checkpoints)) == expected
    assert len(folds) <= 20


def test_corrections_that_others_wrote_leave_no_checkpoint_with_what_was_said_before(
    folds: list[int],
) -> None:
    """The later of two rounds was judged first, and behind an open one when the copy was made."""
    walk = open_walk(zero_one_truth(120, seed=3), policy_named("sharp"), CLAIMS[0])
    walk.go(9)
    walk.draw(3)
    walk.judge([12, 10])
    checkpoints = Checkpoints()
    checkpoints.note(walk.state.question.engine, walk.state.question.fold)
    assert checkpoints.rounds == [10]
    walk.judge([11])
    events = [Amendment(one, 1.0 - float(walk.state.rounds.loss[one - 1])) for one in (11, 12)]
    expected = told(copy.deepcopy(walk.state).replay(events))
    folds.clear()
    assert told(catch_up(walk.state, events, checkpoints)) == expected
    assert folds == list(range(1, 13))


def test_of_many_checkpoints_every_second_is_dropped_but_for_the_last(folds: list[int]) -> None:
    walk = open_walk(zero_one_truth(300, seed=3), policy_named("sharp"), CLAIMS[0])
    checkpoints = Checkpoints()
    for _ in range(20):
        walk.go(10)
        checkpoints.note(walk.state.question.engine, walk.state.question.fold)
        assert checkpoints.rounds[-1] == walk.state.folded
    assert len(checkpoints.rounds) <= 8
    assert folds


@pytest.mark.usefixtures("folds")
@pytest.mark.parametrize(("items", "most"), [(100, 8), (200, 5), (2_000, 3)])
def test_copies_of_repeated_runs_hold_so_many_items_in_all(
    monkeypatch: pytest.MonkeyPatch, items: int, most: int
) -> None:
    monkeypatch.setattr(correction, "ITEMS_IN_COPIES", 1_000)
    monkeypatch.setattr(correction, "LEAST_COPIES", 3)
    walk = open_walk(zero_one_truth(items, seed=3), policy_named("sharp"), REPEATED)
    checkpoints = noted(walk, 160)
    longest = len(checkpoints.rounds)
    for _ in range(16):
        walk.go(10)
        checkpoints.note(walk.state.question.engine, walk.state.question.fold)
        longest = max(longest, len(checkpoints.rounds))
    assert longest == most


def test_a_correction_that_leaves_the_loss_folds_nothing(folds: list[int]) -> None:
    walk = open_walk(zero_one_truth(120, seed=3), policy_named("celeus"), CLAIMS[0])
    checkpoints = noted(walk, 60)
    event = Amendment(5, float(walk.state.rounds.loss[4]))
    before, copies = walk.state.question.interval, checkpoints.rounds
    folds.clear()
    state = correct(walk.state, event, None, checkpoints)
    state = catch_up(state, [event], checkpoints)
    assert (folds, checkpoints.rounds) == ([], copies)
    assert (state.question.interval, state.corrections) == (before, 3)
