"""Stakes at the thresholds, over every possible draw: no answer is wrong too often."""

import numpy as np
import pytest

from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth
from tests.core.worlds import Walk, after, alike, coming, open_walk

SHARP = policy_named("sharp")
ITEMS = 5
ALPHA = 0.6


def chance_of_a_wrong_word(walk: Walk, risk: float) -> float:
    """Exact probability, over all draws to come, that an answer or an interval is ever wrong."""
    if walk.state.question.points:
        interval, slack = walk.state.question.interval, 1e-12
        if not interval.lower - slack <= risk <= interval.upper + slack:
            return 1.0
        for decision in walk.state.question.decisions:
            right = decision.question.answer(type(interval)(risk, risk), slack)
            if decision.answer not in {"undecided", right}:
                return 1.0
    if not walk.left():
        return 0.0
    return float(
        sum(
            chance * chance_of_a_wrong_word(after(walk, draw), risk)
            for chance, draw in alike(walk, coming(walk))
        )
    )


@pytest.mark.parametrize("side", ["at_most", "at_least"])
@pytest.mark.parametrize("wrong", [1, 2, 4])
def test_no_word_is_wrong_more_often_than_alpha_over_every_draw(side: str, wrong: int) -> None:
    """Summed over every order of drawing a pool of five items, at an alpha that is felt."""
    loss = np.zeros(ITEMS)
    loss[:wrong] = 1.0
    surrogate = np.array([0.1, 0.9, 0.1, 0.9, 0.1])
    risk = wrong / ITEMS
    worst = 0.0
    for threshold in {risk, risk - 0.05, risk + 0.05}:
        question = Question("at_most" if side == "at_most" else "at_least", threshold)
        walk = open_walk(
            Truth(loss, Scores(surrogate, np.zeros(ITEMS), None)),
            SHARP,
            Claim(alpha=ALPHA, questions=(question,)),
        )
        worst = max(worst, chance_of_a_wrong_word(walk, risk))
    assert 0.2 < worst <= ALPHA


def test_the_stake_of_a_threshold_the_risk_respects_falls_in_the_mean() -> None:
    """Over every draw, for the threshold at the risk itself: both of its gamblers play fair."""
    loss = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    surrogate = np.array([0.9, 0.1, 0.5, 0.5, 0.1, 0.9])
    truth = Truth(loss, Scores(surrogate, np.zeros(6), None))
    claim = Claim(alpha=1e-9, questions=(Question("at_most", 2.0 / 6.0),))
    walk = open_walk(truth, SHARP, claim)

    def stakes(walk: Walk) -> list[float]:
        game = walk.state.question.fold.confidence_sequence
        assert isinstance(game, LatticeSequence)
        found = []
        for ladder, end in zip(game._lattice.sides, (2.0 / 6.0, 4.0 / 6.0), strict=True):
            at = int(np.argmin(np.abs(ladder._value - end)))
            found.append(float(np.exp(ladder._stake[:, at]).sum()))
        return found

    while walk.left():
        before = stakes(walk)
        means = np.zeros(2)
        for draw in coming(walk):
            means += draw.q * np.array(stakes(after(walk, draw)))
        assert (means <= np.array(before) * (1.0 + 1e-9)).all()
        walk.go(1)
