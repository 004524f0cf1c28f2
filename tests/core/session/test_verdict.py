"""A verdict on two systems: read off one interval at one alpha, without a split.

The stakes that make it so are those of docs/evidence/method.md#6-target-pool.
"""

import numpy as np
import pytest

from celeus.core.betting.candidate_grid import Threshold, ThresholdDesign
from celeus.core.betting.pool_target import threshold_design
from celeus.core.interval import Interval
from celeus.core.plans.claim import Target
from celeus.core.plans.plan import Claim, Plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question, Verdict
from celeus.core.pools.surrogates import Scores
from celeus.errors import InvalidValue
from celeus.simulation.sessions import Truth
from tests.core.worlds import open_walk

SHARP = policy_named("sharp")


def pair(difference: list[float], known: int = 0) -> Truth:
    """Differences of two systems, of which the last ``known`` are 0 and known."""
    loss = np.array([*difference, *[0.0] * known])
    lower, upper = np.full(loss.size, -1.0), np.ones(loss.size)
    if known:
        lower[-known:] = upper[-known:] = 0.0
    guess = np.where(np.arange(loss.size) % 2, 0.5, -0.5)
    bounds = {"lower": lower, "upper": upper} if known else {}
    return Truth(loss, Scores(guess, np.zeros(loss.size), **bounds), -1.0, 1.0, difference=True)


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
    assert walk.state.question.verdict is not None
    assert walk.state.question.verdict.answer == "b_at_least_as_good"
    given = walk.state.question.verdict
    walk.go(3)
    assert walk.state.question.verdict == given
    assert walk.plan.to_dict()["decide"] == 0.1
    assert Plan.from_dict(walk.plan.to_dict()) == walk.plan


@pytest.mark.parametrize("target", ["pool", "population"])
def test_known_zeros_alone_may_answer_before_the_first_label(target: Target) -> None:
    walk = open_walk(pair([1.0, -1.0], 198), SHARP, Claim(target=target, decide=0.02))
    verdict = walk.state.question.verdict
    assert verdict is not None
    if target == "population":
        assert (verdict.answer, walk.state.stop_reason) == ("undecided", None)
        return
    assert (verdict.answer, verdict.round) == ("equivalent", 0)
    assert walk.state.stop_reason == "decided"
    walk.go(2)
    assert walk.state.question.verdict == verdict


def test_questions_are_answered_by_bounds_before_the_first_label() -> None:
    loss = np.zeros(50)
    upper = np.full(50, 0.2)
    truth = Truth(loss, Scores(loss, loss, lower=loss, upper=upper), 0.0, 1.0)
    asked = (Question("at_most", 0.5), Question("at_most", 0.1))
    first, second = open_walk(truth, SHARP, Claim(questions=asked)).state.question.decisions
    assert (first.answer, first.round) == ("yes", 0)
    assert (second.answer, second.round) == ("undecided", None)


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
    assert walk.state.question.verdict is not None
    assert walk.state.question.verdict.answer == "a_at_least_as_good"
