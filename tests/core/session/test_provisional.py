"""What is out with open draws at their worst is out once they are judged, whatever is said."""

from itertools import pairwise, takewhile

import numpy as np
import pytest

from celeus.core.betting.population_target import PairSequence
from celeus.core.interval import Interval
from celeus.core.ledger import Change, Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.session import provisional as module
from celeus.core.session.provisional import WaitingRounds, provisional
from tests.core.worlds import Walk, open_walk, zero_one_truth
from tests.nightly import NIGHTLY

KINDS = {
    "pool": ("sharp", Claim("pool", 0.3, 0.15)),
    "without precision": ("sharp", Claim("pool", 0.3)),
    "question": ("sharp", Claim("pool", 0.3, questions=(Question("at_most", 0.35),))),
    "population": ("sharp", Claim("population", 0.3, 0.35)),
    "celeus": ("celeus", Claim("pool", 0.3, 0.2)),
    "evalue": ("evalue", Claim("pool", 0.3, 0.2)),
}
SEEDS = 40 if NIGHTLY else 4


def lies_within(pair: tuple[Interval, Interval]) -> bool:
    """Return whether the second interval lies within the first."""
    before, now = pair
    return before.lower - 1e-12 <= now.lower <= now.upper <= before.upper + 1e-12


def stalling(walk: Walk, chance: np.random.Generator, most: int) -> list[tuple[int, float, float]]:
    """A random session of draws ahead; its provisional intervals by round, and all is judged."""
    shown: list[tuple[int, float, float]] = []
    open_: list[int] = []
    while walk.state.folded < walk.truth.loss.size:
        if walk.state.can_draw and len(open_) < most and chance.random() < 0.6:
            open_.append(walk.draw()[0].round)
        elif open_:
            round_ = open_.pop(int(chance.integers(len(open_)) if chance.random() < 0.8 else 0))
            walk.judge([round_])
        if chance.random() < 0.02:
            walk.enter(Change(float(chance.choice([0.35, 0.4, 0.5])), walk.truth.loss.size))
        found = provisional(walk.state)
        if found is not None:
            assert found.open == sum(one <= found.rounds for one in open_)
            shown.append((found.rounds, found.interval.lower, found.interval.upper))
    return shown


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_is_never_wider_once_the_open_draws_are_judged(kind: str) -> None:
    policy, claim = KINDS[kind]
    narrower = 0
    for seed in range(SEEDS):
        chance = np.random.default_rng([seed, 8])
        walk = open_walk(zero_one_truth(60, seed=seed), policy_named(policy), claim)
        shown = stalling(walk, chance, int(chance.choice([2, 5, 9])))
        intervals = [point.interval for point in walk.state.question.points]
        nested = 1 + sum(1 for _ in takewhile(lies_within, pairwise(intervals)))
        # What loses the truth, as three in ten sessions may, can end with nothing left
        assert nested == len(intervals) or walk.state.question.fold.emptied
        for rounds, lower, upper in shown:
            if rounds > nested:
                continue
            full = intervals[rounds - 1]
            assert lower - 1e-12 <= full.lower <= full.upper <= upper + 1e-12
        narrower += len(shown)
    assert narrower > 20 * SEEDS


def test_it_is_narrower_than_the_interval_that_waits() -> None:
    walk = open_walk(zero_one_truth(2000), policy_named("sharp"), Claim("pool", 0.05, 0.1))
    walk.go(100)
    before = walk.state.question.interval
    assert provisional(walk.state) is None
    walk.draw(1)
    assert provisional(walk.state) is None
    walk.go(100)
    walk.draw(2)
    assert walk.state.question.interval == before
    found = provisional(walk.state)
    assert found is not None
    assert (found.rounds, found.open) == (201, 1)
    assert found.interval.width < 0.8 * before.width
    answers: list[Event] = [Observation(101, 0.0), Observation(101, 1.0), Unjudgeable(101)]
    for answer in answers:
        branch = walk.branch()
        branch.enter(answer)
        own = branch.state.question.interval
        assert found.interval.lower <= own.lower <= own.upper <= found.interval.upper
    assert branch.state.question.interval == found.interval, "as if nobody could judge it"


def test_the_session_goes_on_while_it_is_folded() -> None:
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), Claim("pool", 0.05, 0.1))
    walk.draw(1)
    walk.go(20)
    found = provisional(walk.state)
    waiting = WaitingRounds.of(walk.state)
    walk.judge([1])
    walk.go(10)
    assert waiting is not None
    assert waiting.provisional() == found
    assert found is not None
    assert (found.rounds, found.open, found.waiting) == (21, 1, 20)


def test_its_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROUNDS", 10)
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), Claim("pool", 0.05, 0.1))
    walk.draw(1)
    walk.go(9)
    assert provisional(walk.state) is not None
    walk.go(1)
    assert provisional(walk.state) is None


def test_a_round_that_nobody_could_judge_counts_like_an_open_one() -> None:
    """A cell of pairs with both edges at a stake of 1 stays while the loss might leave it in."""
    walk = open_walk(zero_one_truth(120), policy_named("sharp"), KINDS["population"][1])
    walk.draw()
    walk.enter(Unjudgeable(1))
    sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(sequence, PairSequence)
    both = 0
    while walk.state.can_draw:
        walk.go(1)
        for side in sequence._sides:
            if side.cells is not None:
                stakes = np.minimum(side.cells.below, side.cells.above)
                both += int(np.count_nonzero((stakes >= 0.0) & (stakes < np.inf)))
    assert both
