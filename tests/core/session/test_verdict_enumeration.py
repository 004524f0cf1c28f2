"""No verdict and no interval is ever wrong with more than alpha.

Over every order of drawing small pools, with truths at 0, at both margins and one item beside them.
"""

import itertools

import numpy as np
import pytest

from celeus.core.ledger import Change
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.stopping import Question
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth, ever_missed, seed_of
from tests.claims.sessions import credible
from tests.core.session.test_verdict import SHARP, pair
from tests.core.worlds import Walk, after, alike, coming, open_walk
from tests.nightly import NIGHTLY

ALPHA = 0.6
SLACK = 1e-12


def is_wrong(answer: str, mean: float, margin: float) -> bool:
    return {
        "a_at_least_as_good": mean > SLACK,
        "b_at_least_as_good": mean < -SLACK,
        "equivalent": abs(mean) > margin + SLACK,
        "undecided": False,
    }[answer]


def chance_of_a_wrong_word(walk: Walk, mean: float, margin: float) -> tuple[float, float]:
    """Probabilities that the verdict, and that anything, is ever wrong, over all draws to come."""
    verdict = walk.state.question.verdict
    assert verdict is not None
    if is_wrong(verdict.answer, mean, margin):
        return 1.0, 1.0
    lost = 0.0
    if walk.state.question.points:
        interval = walk.state.question.interval
        lost = float(not interval.lower - SLACK <= mean <= interval.upper + SLACK)
    if not walk.left():
        return 0.0, lost
    wrong = anything = 0.0
    for chance, draw in alike(walk, coming(walk)):
        one, other = chance_of_a_wrong_word(after(walk, draw), mean, margin)
        wrong += chance * one
        anything += chance * other
    return wrong, max(lost, anything)


# Means of 0, of one item, of two and of three on either side; the margin is one item or two.
POOLS = [
    [1.0, -1.0, 1.0, -1.0, 0.0],
    [1.0, 1.0, -1.0, 0.0, 0.0],
    [1.0, 1.0, 0.0, 0.0, 0.0],
    [1.0, 1.0, 1.0, 0.0, 0.0],
]


@pytest.mark.parametrize(
    ("sign", "margin", "known"),
    [
        (1.0, 0, 0),
        (1.0, 1, 0),
        pytest.param(1.0, 2, 0, marks=pytest.mark.nightly),
        pytest.param(-1.0, 1, 0, marks=pytest.mark.nightly),
        (-1.0, 2, 2),
    ],
)
def test_no_word_is_wrong_more_often_than_alpha_over_every_draw(
    sign: float, margin: int, known: int
) -> None:
    felt = 0.0
    for difference in POOLS:
        truth = pair([sign * one for one in difference], known)
        width = margin / truth.loss.size
        walk = open_walk(truth, SHARP, Claim(alpha=ALPHA, decide=width))
        mean = float(truth.loss.mean())
        wrong, anything = chance_of_a_wrong_word(walk, mean, width)
        assert wrong <= anything <= ALPHA + 1e-9, difference
        felt = max(felt, wrong)
    assert felt > 0.02


def test_first_answers_at_the_border_are_wrong_in_at_most_alpha() -> None:
    """Means one item beside 0 and beside the margin, watched to exhaustion."""
    items, sessions, wrong, missed = 60, 400 if NIGHTLY else 12, 0, 0
    for number, ones in itertools.product(range(sessions), (1, 7)):
        chance = np.random.default_rng([number, 14])
        difference = np.zeros(items)
        mixed = chance.permutation(items)
        difference[mixed[: 12 + ones]] = 1.0
        difference[mixed[12 + ones : 24 + ones]] = -1.0
        margin = 6 / items
        truth = Truth(difference, Scores(np.zeros(items), np.zeros(items)), -1, 1, difference=True)
        seed = seed_of(number, 14)
        plan = make_plan(Claim(decide=margin), truth.facts, SHARP, commitment(seed))
        state = begin_mean(plan, truth.scores, seed)
        for _ in judge_rounds(state, truth.loss_of, past_stop=True):
            pass
        assert state.question.verdict is not None
        wrong += is_wrong(state.question.verdict.answer, ones / items, margin)
        missed += ever_missed(state, ones / items)
    assert wrong <= missed
    assert credible(missed, 2 * sessions)


def chance_of_a_false_no(walk: Walk, change: float | None) -> float:
    """Over every draw, with a change of precision at the first "yes"."""
    answers = [one.answer for one in walk.state.question.decisions]
    if "no" in answers:
        return 1.0
    if not walk.left():
        return 0.0
    if change is not None and "yes" in answers:
        walk = walk.branch()
        walk.enter(Change(change, walk.state.stopping.budget, None))
        change = None
    return sum(
        chance * chance_of_a_false_no(after(walk, draw), change)
        for chance, draw in alike(walk, coming(walk))
    )


@pytest.mark.parametrize("items", [4, 6, 8])
def test_a_threshold_asked_from_both_sides_keeps_alpha_through_a_finer_lattice(items: int) -> None:
    """The strict candidate beside a threshold took over the threshold's stake: always wrong."""
    loss = np.repeat([1.0, 0.0], items // 2)
    truth = Truth(loss, Scores(np.full(items, 0.5), np.zeros(items)))
    sides = (Question("at_most", 0.5), Question("at_least", 0.5))
    claim = Claim(alpha=0.8, questions=sides, stop_when_decided=False)
    chance = chance_of_a_false_no(open_walk(truth, SHARP, claim), 0.05)
    assert chance <= 0.8 + 1e-9
