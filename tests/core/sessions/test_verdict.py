"""A verdict on two systems: read off one interval at one alpha, without a split.

Over every order of drawing small pools, with truths at 0, at both margins and one item beside them,
no answer and no interval is ever wrong with more than alpha; and the stakes that make it so are
those of docs/method.md#6-target-pool.
"""

import itertools

import numpy as np
import pytest

from celeus.core.eprocess.lattice import Threshold, ThresholdDesign
from celeus.core.eprocess.pool_target import threshold_design
from celeus.core.interval import Interval
from celeus.core.ledger import Change, Draw
from celeus.core.plans.plan import Claim, make_plan, plan_from
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question, Verdict
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.sessions.state import begin, rounds
from celeus.errors import InvalidValue
from celeus.study.engine.simulation import Truth, ever_missed, seed_of
from tests.core.sessions.test_known import after, coming
from tests.core.worlds import SEED, Walk, open_walk

SHARP = policy_named("sharp")
ALPHA = 0.6
SLACK = 1e-12
ITEMS = 5


def pair(difference: list[float], known: int = 0) -> Truth:
    """Differences of two systems, of which the last ``known`` are 0 and known."""
    loss = np.array([*difference, *[0.0] * known])
    lower, upper = np.full(loss.size, -1.0), np.ones(loss.size)
    if known:
        lower[-known:] = upper[-known:] = 0.0
    guess = np.where(np.arange(loss.size) % 2, 0.5, -0.5)
    bounds = {"lower": lower, "upper": upper} if known else {}
    return Truth(loss, Scores(guess, np.zeros(loss.size), **bounds), -1.0, 1.0, difference=True)


def is_wrong(answer: str, mean: float, margin: float) -> bool:
    return {
        "a_at_least_as_good": mean > SLACK,
        "b_at_least_as_good": mean < -SLACK,
        "equivalent": abs(mean) > margin + SLACK,
        "undecided": False,
    }[answer]


def chance_of_a_wrong_word(walk: Walk, mean: float, margin: float) -> tuple[float, float]:
    """Probabilities that the verdict, and that anything, is ever wrong, over all draws to come."""
    verdict = walk.state.verdict
    assert verdict is not None
    if is_wrong(verdict.answer, mean, margin):
        return 1.0, 1.0
    lost = 0.0
    if walk.state.points:
        interval = walk.state.interval
        lost = float(not interval.lower - SLACK <= mean <= interval.upper + SLACK)
    if not walk.left():
        return 0.0, lost
    wrong = anything = 0.0
    for draw in coming(walk):
        one, other = chance_of_a_wrong_word(after(walk, draw), mean, margin)
        wrong += draw.q * one
        anything += draw.q * other
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
    [(1.0, 0, 0), (1.0, 1, 0), (1.0, 2, 0), (-1.0, 1, 0), (-1.0, 2, 2)],
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


def test_stakes_of_a_verdict_are_split_at_zero_alone() -> None:
    plan = open_walk(pair([0.0] * 400), SHARP, Claim(decide=0.1)).plan
    design = threshold_design(plan)
    assert design is not None
    plus, minus = design.candidates(10)
    assert plus.grid / 10 == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1]
    )
    assert plus.share == pytest.approx([0.9] * 7 + [0.1] * 6)
    assert minus.share == pytest.approx([0.9] * 7 + [0.1] * 6)


def test_a_threshold_asked_from_both_sides_keeps_nine_tenths_for_each_yes() -> None:
    asked = tuple(Threshold(0.35, at_most) for at_most in (True, False))
    plus, minus = ThresholdDesign(asked, 1000, 1e-15).candidates(10)
    for candidates in (plus, minus):
        assert candidates.grid.size == 13
        here = int(np.searchsorted(candidates.grid, 3.49 if candidates is plus else 6.49))
        assert candidates.share[here : here + 2] == pytest.approx([0.9, 0.5])
        assert (np.diff(candidates.share) <= 0).all()
    old = ThresholdDesign(asked, 1000, 1e-15, split=True).candidates(10)[0]
    assert old.grid.size == 12
    assert sorted(set(old.share)) == pytest.approx([0.1, 0.5, 0.9])


def test_sessions_of_celeus_1_keep_the_stakes_they_were_opened_with() -> None:
    questions = (Question("at_most", 0.25), Question("at_least", 0.25))
    truth = Truth(np.zeros(9), Scores(np.full(9, 0.5), np.zeros(9)))
    plan = make_plan(Claim(questions=questions), truth.facts, SHARP, commitment(SEED))
    old = plan_from(plan.to_dict() | {"method_version": "celeus-1"})
    designs = [threshold_design(one) for one in (plan, old)]
    assert [one is not None and one.split for one in designs] == [False, True]


@pytest.mark.parametrize(
    ("interval", "margin", "answer"),
    [
        ((-0.3, 0.0), 0.1, "a_at_least_as_good"),
        ((0.0, 0.3), 0.1, "b_at_least_as_good"),
        ((-0.1, 0.1), 0.1, "equivalent"),
        ((-0.1, 0.11), 0.1, "undecided"),
        ((0.0, 0.0), 0.0, "a_at_least_as_good"),
        ((-1e-9, 1e-9), 0.0, "undecided"),
        ((0.05, 0.1), 0.1, "b_at_least_as_good"),
    ],
)
def test_the_verdict_is_read_off_the_interval(
    interval: tuple[float, float], margin: float, answer: str
) -> None:
    verdict = Verdict(margin).after(7, Interval(*interval), 0.0)
    assert verdict.answer == answer
    assert verdict.round == (None if answer == "undecided" else 7)
    assert verdict.after(8, Interval(-1.0, 1.0), 0.0) is verdict or answer == "undecided"
    assert not verdict.contradicted(Interval(*interval), 0.0)


def test_the_first_answer_stops_the_session_and_stays() -> None:
    walk = open_walk(pair([1.0] * 30 + [0.0] * 10), SHARP, Claim(decide=0.1))
    while walk.state.stop_reason is None:
        walk.go(1)
    assert walk.state.stop_reason == "decided"
    assert walk.state.verdict is not None
    assert walk.state.verdict.answer == "b_at_least_as_good"
    given = walk.state.verdict
    walk.go(3)
    assert walk.state.verdict == given
    assert walk.plan.to_dict()["decide"] == 0.1
    assert plan_from(walk.plan.to_dict()) == walk.plan


@pytest.mark.parametrize(
    ("claim", "field"),
    [
        (Claim(decide=0.01), "decide.margin"),
        (Claim(decide=-0.1), "decide.margin"),
        (Claim(decide=1.0), "decide.margin"),
        (Claim(decide=float("nan")), "decide.margin"),
    ],
)
def test_a_margin_below_one_item_is_refused(claim: Claim, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        open_walk(pair([0.0] * 40), SHARP, claim)
    assert refused.value.field == field
    assert open_walk(pair([0.0] * 40), SHARP, Claim(decide=1 / 40)).plan.decide == 1 / 40


def test_only_a_difference_is_decided() -> None:
    bounded = Truth(np.zeros(9), Scores(np.zeros(9), np.zeros(9)), -1.0, 1.0)
    with pytest.raises(InvalidValue) as refused:
        open_walk(bounded, SHARP, Claim(decide=0.0))
    assert refused.value.field == "decide"
    with pytest.raises(InvalidValue):
        open_walk(bounded, SHARP, Claim(stop_when_decided=True))


@pytest.mark.parametrize("policy", ["uniform", "celeus", "no_surrogate", "evalue"])
def test_every_policy_decides(policy: str) -> None:
    walk = open_walk(pair([-1.0] * 25 + [0.0] * 10, 5), policy_named(policy), Claim(decide=0.1))
    while walk.state.stop_reason is None:
        walk.go(1)
    assert walk.state.verdict is not None
    assert walk.state.verdict.answer == "a_at_least_as_good"


def test_first_answers_at_the_border_are_wrong_in_at_most_alpha() -> None:
    """Means one item beside 0 and beside the margin, watched to exhaustion."""
    items, sessions, wrong, missed = 60, 40, 0, 0
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
        state = begin(plan, truth.scores, seed)
        for _ in rounds(plan, state, truth.loss_of, past_stop=True):
            pass
        assert state.verdict is not None
        wrong += is_wrong(state.verdict.answer, ones / items, margin)
        missed += ever_missed(state, ones / items)
    assert wrong <= missed <= 11


def chance_of_a_false_no(walk: Walk, change: float | None) -> float:
    """Over every draw, with a change of precision at the first "yes"."""
    answers = [one.answer for one in walk.state.decisions]
    if "no" in answers:
        return 1.0
    if not walk.left():
        return 0.0
    if change is not None and "yes" in answers:
        walk = walk.branch()
        walk.enter(Change(change, walk.state.stopping.budget, None))
        change = None
    chance: dict[float, float] = {}
    first: dict[float, Draw] = {}
    for draw in coming(walk):
        loss = float(walk.truth.loss[draw.item])
        first.setdefault(loss, draw)
        chance[loss] = chance.get(loss, 0.0) + draw.q
    return sum(
        share * chance_of_a_false_no(after(walk, first[loss]), change)
        for loss, share in chance.items()
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
