"""Provisional intervals: what they count, and that they are never narrower than the final one."""

from itertools import pairwise, product

import numpy as np
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.session.mean import Provisional
from study.pools.made_up import world
from tests.core.worlds import Walk, open_walk, zero_one_truth

CLAIMS = {
    "precision": Claim(precision=0.2),
    "no precision": Claim(),
    "questions": Claim(questions=(Question("at_most", 0.4),)),
    "population": Claim("population", precision=0.35),
    "graded population": Claim("population", precision=0.35, population_bound="pairs"),
}
SLACK = 1e-12


def provisional(walk: Walk) -> Provisional | None:
    return walk.state.question.provisional(walk.state.rounds)


def stalled(claim: Claim, policy: str, seed: int) -> tuple[Walk, list[Provisional]]:
    """A session of up to three open draws, judged in random order, and every provisional interval.

    At the end all draws are judged.
    """
    chance, found = np.random.default_rng(seed), list[Provisional]()
    walk = open_walk(zero_one_truth(120, seed=seed), policy_named(policy), claim, bytes([seed]))
    waiting: list[int] = []
    while walk.state.drawn < 90:
        waiting += [draw.round for draw in walk.draw(int(chance.integers(1, 3)))]
        while len(waiting) > chance.integers(1, 4):
            walk.judge([waiting.pop(int(chance.integers(len(waiting))))])
            shown = provisional(walk)
            found += [] if shown is None else [shown]
    walk.judge(waiting)
    return walk, found


@pytest.mark.parametrize(
    ("policy", "claim"), [*product(["sharp"], CLAIMS), *product(["celeus"], ["precision"])]
)
def test_the_interval_is_never_wider_later_than_it_was_shown(policy: str, claim: str) -> None:
    narrower = 0
    for seed in range(6):
        walk, found = stalled(CLAIMS[claim], policy, seed)
        points = walk.state.question.points
        for shown in found:
            final = points[shown.round - 1].interval
            assert shown.interval.lower <= final.lower + SLACK
            assert final.upper - SLACK <= shown.interval.upper
        narrower += sum(one.interval.width > two.interval.width for one, two in pairwise(found))
    assert narrower > 10


def test_without_open_draws_it_is_the_interval() -> None:
    walk = open_walk(zero_one_truth(120), policy_named("sharp"), CLAIMS["precision"])
    walk.go(20)
    assert provisional(walk) is None
    walk.draw(3)
    assert provisional(walk) is None
    walk.judge([22])
    shown = provisional(walk)
    assert shown is not None
    assert (shown.open, shown.round) == (1, 22)
    before = walk.state.question.interval
    walk.judge([21])
    assert provisional(walk) is None
    assert shown.interval.width <= before.width


def test_one_draw_that_nobody_answers_costs_few_labels() -> None:
    """Of a session of some 200 labels, the 60th draw stays open."""
    truth, claim = world("syn-good"), Claim(precision=0.1)
    labels, undisturbed = [], []
    for seed in range(4):
        walk = open_walk(truth, policy_named("sharp"), claim, bytes([seed]))
        while walk.state.stop_reason is None:
            walk.go(1)
        undisturbed.append(walk.state.folded)
        walk = open_walk(truth, policy_named("sharp"), claim, bytes([seed]))
        walk.go(59)
        walk.draw()
        shown = None
        while shown is None or shown.interval.width > 0.1:
            for draw in walk.draw(5):
                walk.judge([draw.round])
            shown = provisional(walk)
            assert walk.state.drawn < 600
        labels.append(walk.state.observed)
    assert sum(labels) <= 1.25 * sum(undisturbed)
