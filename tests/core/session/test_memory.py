"""What a state keeps of a round: numbers in arrays, not objects."""

import gc
import tracemalloc

import pytest

from celeus.core.ledger import Draw, Unjudgeable
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import StoppingRule
from celeus.core.session.rounds import PENDING, Rounds
from tests.core.worlds import open_walk, zero_one_truth

ROUNDS = 600
MOST_BYTES = 500


@pytest.mark.parametrize(
    ("policy", "claim"),
    [
        ("celeus", Claim(precision=0.05)),
        ("sharp", Claim(precision=0.02)),
        ("sharp", Claim(target="population", precision=0.03)),
    ],
)
def test_a_kept_round_takes_few_bytes(policy: str, claim: Claim) -> None:
    walk = open_walk(zero_one_truth(5_000, seed=3), policy_named(policy), claim)
    tracemalloc.start()
    try:
        walk.go(ROUNDS // 4)
        walk.events.clear()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        walk.go(ROUNDS)
        walk.events.clear()
        gc.collect()  # tuples that wait to be used again are none of a round's
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert walk.state.folded == ROUNDS + ROUNDS // 4
    assert (after - before) / ROUNDS <= MOST_BYTES


def test_rounds_give_back_what_was_put_in() -> None:
    rule, finer = StoppingRule(0.1, 10), StoppingRule(0.05, 10)
    rounds = Rounds()
    draws = [Draw(1, 7, 0.25, 0), Draw(2, 0, 1 / 3, 1), Draw(3, 2, 1e-9, 5)]
    for draw, one in zip(draws, (rule, rule, finer), strict=True):
        rounds.append(draw, one)
    rounds.judge(0, -0.5, 4)
    rounds.judge(1, None, 6)
    rounds.correct(0, 0.1)
    assert [one.draw for one in rounds] == draws
    assert [one.rule for one in rounds] == [rule, rule, finer]
    assert [one.loss for one in rounds] == [0.1, None, PENDING]
    assert [one.answer for one in rounds] == [-0.5, None, PENDING]
    assert [one.answered_at for one in rounds] == [4, 6, 0]
    assert (rounds.unjudgeable(3), rounds[-1].draw) == (1, draws[2])
    assert [one.draw for one in rounds[1:]] == draws[1:], "a part keeps the numbers of its rounds"
    with pytest.raises(IndexError):
        rounds[3]


def test_points_after_an_unjudgeable_round_keep_both_completions() -> None:
    walk = open_walk(zero_one_truth(60, seed=3), policy_named("sharp"), Claim(precision=0.3))
    walk.go(5)
    walk.draw(1)
    walk.enter(Unjudgeable(6))
    walk.go(5)
    points = walk.state.question.points
    assert [one.plus == one.minus for one in points] == [True] * 5 + [False] * 6
    for start, stop in ((0, 4), (3, 8), (7, 11)):
        assert list(points[start:stop]) == list(points)[start:stop]
