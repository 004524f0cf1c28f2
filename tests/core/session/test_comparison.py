"""Sessions on the difference of two systems: priors, sides, and how often a side won.

Sides look at no loss, and sampling looks at no side.
"""

from dataclasses import replace

import numpy as np
import pytest

from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.comparison import surrogate_columns
from celeus.core.pools.surrogates import Scores, scores
from celeus.core.randomness import commitment, uniforms
from celeus.core.sampling.calibration import Calibration
from celeus.core.sampling.predictors import DIFFERENCE_MOMENT
from celeus.core.session.presentation_order import Sides
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth
from tests.core.certifying import SEED, World, paired_world
from tests.core.worlds import open_walk

ITEMS = 9


def pair(*, answers: bool, surrogates: bool) -> Truth:
    """Differences of two graded losses, of which some answers are the same."""
    chance = np.random.default_rng(7)
    a, b = chance.random(ITEMS), chance.random(ITEMS)
    same = np.arange(ITEMS) % 3 == 0
    b[same] = a[same]
    known = Scores(np.zeros(ITEMS), np.zeros(ITEMS))
    if surrogates:
        columns = surrogate_columns(
            chance.random(ITEMS), chance.random(ITEMS), Interval(0.0, 1.0), exclusive=False
        )
        known = Scores(columns["surrogate.0"], np.zeros(ITEMS), change=columns["change"])
    if answers:
        ends = (np.where(same, 0.0, end) for end in (-1.0, 1.0))
        known = replace(known, lower=next(ends), upper=next(ends))
    return Truth(a - b, known, -1.0, 1.0, difference=True, reason="same answer")


def test_what_is_not_known_to_agree_is_expected_to() -> None:
    """The prior of section 4 is that of losses at the ends, five times too large here."""
    for answers, expected in ((False, DIFFERENCE_MOMENT), (True, 0.25)):
        walk = open_walk(pair(answers=answers, surrogates=False), policy_named("sharp"))
        moments = walk.state.question.fold.predictor.fit.moment
        assert moments == pytest.approx([expected])


def test_the_prior_second_moment_is_outvoted_by_labels() -> None:
    base, ends = np.array([0.5]), (np.zeros(1), np.ones(1))
    one = Calibration(base, *ends, prior=0.05, difference=True)
    residuals = [0.5, -0.5, 0.0, 0.5]
    squares = 0.0
    for residual in residuals:
        surrogate = float(one.fit.mean[0])
        one.record(0, min(max(surrogate + residual, 0.0), 1.0), surrogate, 1.0)
        squares += (min(max(surrogate + residual, 0.0), 1.0) - surrogate) ** 2
    factor = (2.0 + squares) / (2.0 + 0.05 * len(residuals))
    expected = (40.0 * factor * 0.05 + squares) / (40.0 + len(residuals))
    assert one.fit.moment[0] == pytest.approx(expected)


def truth_of(world: World) -> Truth:
    """The pool as the enumeration takes it."""
    return Truth(
        world.losses,
        scores(world.pool),
        world.pool.scale.lower,
        world.pool.scale.upper,
        difference=True,
        reason="same answer (whitespace)",
    )


def test_sides_are_a_stream_of_their_own() -> None:
    made = Sides(SEED)
    expected = ["a" if one < 0.5 else "b" for one in uniforms(SEED, "side", 2000)]
    assert [made.left(round_) for round_ in range(1, 2001)] == expected
    # Whatever was asked for before
    assert Sides(SEED).left(1777) == expected[1776]
    for purpose in ("coin", "uniform", "weight"):
        other = uniforms(SEED, purpose, 2000) < 0.5
        agree = np.mean(other == (np.array(expected) == "a"))
        assert 0.45 < agree < 0.55
    assert 0.45 < np.mean(np.array(expected) == "a") < 0.55


def test_naming_the_systems_changes_no_draw() -> None:
    world = paired_world()
    facts = replace(truth_of(world).facts, digest=world.pool.digest)
    courses = []
    for systems in (None, {"a": "one", "b": "two"}, {"a": "two", "b": "one"}):
        named = replace(facts, systems=systems)
        plan = make_plan(Claim(precision=0.2), named, policy_named("sharp"), commitment(SEED))
        state = begin_mean(plan, scores(world.pool), SEED)
        draws = [
            (draw.item, draw.q)
            for draw in judge_rounds(state, lambda item: float(world.losses[item]))
        ]
        courses.append((draws, state.question.interval))
        assert (state.question.sides is None) == (systems is None)
    assert courses[0] == courses[1] == courses[2]


def test_how_often_a_side_won_is_counted_over_what_was_judged() -> None:
    world = paired_world()
    facts = replace(truth_of(world).facts, systems={"a": "one", "b": "two"})
    plan = make_plan(Claim(precision=0.2), facts, policy_named("sharp"), commitment(SEED))
    state = begin_mean(plan, scores(world.pool), SEED)
    expected = {"left": 0, "tie": 0, "right": 0}
    assert state.question.sides is not None
    for draw in judge_rounds(state, lambda item: float(world.losses[item])):
        turned = world.losses[draw.item] * (
            1 if state.question.sides.left(draw.round) == "a" else -1
        )
        expected[{-1: "left", 0: "tie", 1: "right"}[int(turned)]] += 1
        assert state.question.sides.preferred(state.rounds) == expected
