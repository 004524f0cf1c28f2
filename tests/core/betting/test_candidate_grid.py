"""Stakes that lie where the questions are: together they never exceed alpha."""

import copy
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from celeus.core.betting.bets import Information, goals_for
from celeus.core.betting.candidate_grid import (
    FINEST_GOAL,
    ONE_SIDED_SHARE,
    CandidateGrid,
    Lattice,
    LatticeSide,
    Threshold,
    ThresholdDesign,
    even_candidates,
)
from celeus.core.betting.moments import Prediction, SideSignal
from celeus.core.betting.pool_target import LatticeSequence, half_width, threshold_design
from celeus.core.betting.population_target import PairSequence
from celeus.core.interval import Interval
from celeus.core.ledger import Change
from celeus.core.plans.claim import Target
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.population_bounds import PopulationBound
from celeus.core.plans.stopping import Question, rounding
from tests.core.worlds import open_walk, zero_one_truth
from tests.nightly import NIGHTLY

SLACK = 4e-15
SHARP = policy_named("sharp")


def above(candidates: CandidateGrid, steps: int, risk: float) -> float:
    """Share of the first candidate above ``risk``: without it no end gets beyond the risk."""
    at = np.flatnonzero(candidates.grid / steps > risk + SLACK)
    return float(candidates.share[at[0]]) if at.size else 0.0


thresholds = st.lists(
    st.one_of(st.floats(0.001, 0.999), st.integers(1, 199).map(lambda at: at / 200)),
    min_size=1,
    max_size=5,
    unique_by=lambda at: round(at, 7),
)


@given(thresholds=thresholds, data=st.data(), steps=st.sampled_from([10, 200, 1999]))
@settings(max_examples=300 if NIGHTLY else 100)
def test_what_both_sides_may_lose_is_never_more_than_alpha(
    thresholds: list[float], data: st.DataObject, steps: int
) -> None:
    kinds = st.sampled_from([(True,), (False,), (True, False)])
    chosen = [(at, data.draw(kinds)) for at in thresholds]
    design = ThresholdDesign(
        tuple(Threshold(at, one) for at, both in chosen for one in both), 1000, SLACK
    )
    plus, minus = design.candidates(steps)
    anywhere = st.one_of(
        st.floats(0.0, 1.0),
        st.sampled_from(thresholds),
        st.integers(0, steps).map(lambda step: step / steps),
    )
    for candidates in (plus, minus):
        assert (np.diff(candidates.grid) > 0.0).all()
        assert (np.diff(candidates.share) <= 0.0).all()
    for _ in range(20):
        risk = data.draw(anywhere)
        # Within a rounding of a threshold a risk counts as on it.
        risk = next((at for at in thresholds if abs(at - risk) <= 3.0 * SLACK), risk)
        assert above(plus, steps, risk) + above(minus, steps, 1.0 - risk) <= 1.0 + 1e-12
        here = [both for at, both in chosen if at == risk]
        # A risk on the threshold itself: "above" and "below" may both be wrong, "here" is not.
        wrong = sum(above(side, steps, at) for side, at in ((plus, risk), (minus, 1.0 - risk)))
        assert not here or wrong <= 1.0 + 1e-12


@pytest.mark.parametrize("at_most", [True, False])
def test_of_a_single_threshold_each_side_has_nearly_all_of_alpha(at_most: bool) -> None:  # noqa: FBT001 -- a parameter of a test
    design = ThresholdDesign((Threshold(0.123456, at_most),), 1000, SLACK)
    plus, minus = design.candidates(2000)
    for candidates, at in ((plus, 0.123456), (minus, 1.0 - 0.123456)):
        here = np.argmin(np.abs(candidates.grid / 2000 - at))
        assert candidates.grid[here] / 2000 == pytest.approx(at, abs=4.0 * SLACK)
        assert (candidates.share[: here + 1] == ONE_SIDED_SHARE).all()
        assert candidates.share[here + 1 :] == pytest.approx(1.0 - ONE_SIDED_SHARE)
        assert candidates.grid.size == 2002


def test_between_two_thresholds_both_sides_share_alpha() -> None:
    design = ThresholdDesign(
        (Threshold(0.25, at_most=True), Threshold(0.65, at_most=False)), 1000, SLACK
    )
    plus, minus = design.candidates(10)
    assert plus.grid == pytest.approx([0, 1, 2, 2.5, 3, 4, 5, 6, 6.5, 7, 8, 9, 10])
    assert minus.grid == pytest.approx([0, 1, 2, 3, 3.5, 4, 5, 6, 7, 7.5, 8, 9, 10])
    assert plus.share == pytest.approx([0.9] * 4 + [0.5] * 5 + [0.1] * 4)
    assert minus.share == pytest.approx([0.9] * 5 + [0.5] * 5 + [0.1] * 3)


def test_goals_of_questions_are_those_of_the_share_that_one_side_has() -> None:
    design = ThresholdDesign((Threshold(0.1, at_most=True),), 10**6, SLACK)
    for alpha, strong in ((0.05, 0.09), (0.9, 0.95)):
        for side in Lattice(2000, alpha, None, design=design).sides:
            for goal, half in zip(side._goals, (0.1, 0.05, 0.025), strict=False):
                z = norm.ppf(1.0 - strong / 2.0)
                assert goal.half == half
                assert goal.information == pytest.approx((z / (half - 0.00025)) ** 2)


def test_a_threshold_on_the_lattice_takes_the_place_of_its_candidate() -> None:
    plus, minus = ThresholdDesign((Threshold(0.1, at_most=True),), 1000, SLACK).candidates(2000)
    assert plus.grid.size == minus.grid.size == 2001
    assert plus.grid[200] == pytest.approx(200.0)
    assert plus.grid[200] / 2000 > 0.1 + SLACK
    assert minus.grid[1800] / 2000 == pytest.approx(0.9, abs=1e-15)


def test_goals_that_a_small_pool_cannot_reach_are_left_out() -> None:
    for items, count in ((4, 1), (100, 2), (500, 3), (2000, 4), (10_000, 5), (10**6, 6)):
        found = ThresholdDesign((Threshold(0.1, at_most=True),), items, SLACK).goals(0.0005, 0.05)
        assert len(found) == count
        assert all(goal.half >= FINEST_GOAL / items**0.5 for goal in found[1:])


def test_goals_stand_for_every_alpha() -> None:
    for alpha in (1e-300, 0.05, 0.6, 0.999):
        found = ThresholdDesign((Threshold(0.1, at_most=True),), 1000, SLACK).goals(0.0005, alpha)
        assert all(goal.information > 0.0 for goal in found)


def test_stakes_follow_the_questions_only_where_nothing_else_is_asked_for() -> None:
    def wanted(claim: Claim, policy: str = "sharp") -> bool:
        plan = open_walk(zero_one_truth(3000), policy_named(policy), claim).plan
        return threshold_design(plan) is not None

    asking = (Question("at_most", 0.2),)
    assert wanted(Claim(questions=asking))
    assert wanted(Claim(questions=asking), "uniform")
    assert not wanted(Claim())
    assert not wanted(Claim(precision=0.1, questions=asking))
    assert not wanted(Claim("population", questions=asking))


def test_thresholds_lie_on_the_unit_scale() -> None:
    asked = Claim(questions=(Question("at_most", 0.2), Question("at_least", 0.5)))
    plan = open_walk(zero_one_truth(300), SHARP, asked).plan
    wide = replace(plan, lower=-0.2, upper=1.8)
    design = threshold_design(wide)
    assert design is not None
    assert [one.at for one in design.thresholds] == pytest.approx([0.2, 0.35])
    assert [one.at_most for one in design.thresholds] == [True, False]
    assert design.items == 300
    assert design.slack == pytest.approx(rounding(wide.scale) / 2.0, rel=1e-9, abs=0.0)


def test_a_rejected_threshold_decides_at_once() -> None:
    """No step of the lattice is lost on either side."""
    design = ThresholdDesign((Threshold(0.2513, at_most=True),), 1000, SLACK)
    for side, end in ((0, 0.2513), (1, 1.0 - 0.2513)):
        lattice_side = Lattice(400, 0.05, None, design=design).sides[side]
        place = int(np.argmin(np.abs(lattice_side._value - end)))
        lattice_side._stake[:, : place + 1] = 1.0
        lattice_side._drop_rejected()
        assert lattice_side.lower_bound is not None
        strict = 2.0 * SLACK if side == 0 else 0.0
        assert lattice_side.lower_bound == pytest.approx(end + strict, abs=0.5 * SLACK)


def test_a_finer_lattice_keeps_the_thresholds_and_their_stakes() -> None:
    design = ThresholdDesign(
        (Threshold(0.2345, at_most=True), Threshold(0.5, at_most=False)), 1000, SLACK
    )
    lattice = Lattice(400, 0.05, None, design=design)
    for side in lattice.sides:
        side._stake = np.tile(-1.0 - side._grid, (len(side._goals), 1))
    before = [copy.deepcopy(side) for side in lattice.sides]
    lattice.retarget(0.02, 1000)
    for old, new in zip(before, lattice.sides, strict=True):
        assert new._grid.size == 1000 + 1 + 1
        values = old._grid / 400
        for at, value in enumerate(new._grid / 1000):
            heir = int(np.flatnonzero(values >= value - 1e-12)[0])
            total = np.logaddexp.reduce(old._stake[:, heir])
            assert new._stake[0, at] == pytest.approx(float(total))


def test_a_new_goal_goes_on_with_what_the_nearest_old_one_has_accrued() -> None:
    information = Information((tuple(goal.half for goal in goals_for(None, 1.0 / 400, 0.05)),))
    sums = tuple(10.0 + at for at in range(6))
    information.accrued = ((sums, sums),)
    information.aim(())
    assert information.accrued == ((sums, sums),), "no goals: those before go on"
    information.aim(((0.036,),))
    # 0.036 is 1.39 times smaller than 0.05, and 1.44 times larger than 0.025.
    assert information.accrued == (((11.0,), (11.0,)),)


def test_the_goal_for_the_pool_is_half_the_precision_less_what_the_step_takes() -> None:
    plan = open_walk(zero_one_truth(300), SHARP, Claim(precision=0.2)).plan
    assert half_width(plan, None) is None
    assert half_width(plan, 0.2) == pytest.approx(0.1)
    margin = PopulationBound("margin", half_width=0.1, assumption="drift")
    wide = replace(plan, lower=-1.0, upper=3.0, bound=margin)
    assert wide.scale == Interval(-1.0, 3.0)
    assert half_width(wide, 1.0) == pytest.approx((0.5 - 0.1) / 4.0)
    assert half_width(wide, 0.22) == pytest.approx(0.1 * 0.11 / 4.0)


@pytest.mark.parametrize("target", ["pool", "population"])
def test_rounds_drawn_after_a_change_of_precision_bet_for_the_new_one(target: Target) -> None:
    walk = open_walk(zero_one_truth(300), SHARP, Claim(target, precision=0.4))
    walk.go(2)
    walk.enter(Change(precision=0.3, budget=300))
    walk.go(1)
    sequence = walk.state.question.fold.confidence_sequence
    if isinstance(sequence, LatticeSequence):
        lattice = sequence._lattice
    else:
        assert isinstance(sequence, PairSequence)
        assert sequence._half == pytest.approx(0.15)
        lattice = sequence._loose
    assert [[goal.half for goal in side._goals] for side in lattice.sides] == [[0.15], [0.15]]


def test_even_stakes_are_half_of_alpha() -> None:
    grid, share = even_candidates(4)
    assert list(grid) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert set(share) == {0.5}


@pytest.mark.parametrize("half", [0.1, None])
@pytest.mark.parametrize("asked", [False, True])
def test_the_stakes_of_all_goals_start_as_the_share_of_alpha(
    half: float | None,
    asked: bool,  # noqa: FBT001 -- a parameter of a test
) -> None:
    design = ThresholdDesign((Threshold(0.3, at_most=True),), 10**6, SLACK) if asked else None
    lattice = Lattice(400, 0.05, half, design=design)
    shares = [one.share for one in design.candidates(400)] if design else [np.full(401, 0.5)] * 2
    for side, share in zip(lattice.sides, shares, strict=True):
        assert len(side._goals) == (6 if half is None else 1)
        assert np.exp(side._stake).sum(axis=0) == pytest.approx(0.05 * share)


def test_candidates_below_the_range_of_a_judged_signal_are_out() -> None:
    side = LatticeSide(400, 0.05, goals_for(0.1, 1.0 / 400, 0.05))
    side.update(Prediction(0.1, 0.5, 0.2), (0.0,), SideSignal(0.5, floor=0.3))
    assert side._value[0] == 0.3
    assert side.lower_bound == pytest.approx(0.3 - 1.0 / 400)


@pytest.mark.parametrize("precision", [None, 0.03, 0.3])
def test_with_questions_too_the_interval_only_narrows_whatever_the_changes(
    precision: float | None,
) -> None:
    questions = (Question("at_most", 0.31), Question("at_least", 0.1))
    claim = Claim(questions=questions, stop_when_decided=False)
    walk = open_walk(zero_one_truth(300), SHARP, claim)
    lower, upper = 0.0, 1.0
    slack = rounding(walk.plan.scale)
    for changed in (precision, 0.1, None, 0.07, None):
        walk.enter(Change(changed, 300))
        for _ in range(60):
            walk.go(1)
            now = walk.state.question.interval
            assert lower - slack <= now.lower <= now.upper <= upper + slack
            lower, upper = now.lower, now.upper
    assert walk.state.question.interval.width <= slack


def test_permutations_of_the_questions_change_nothing() -> None:
    questions = (Question("at_most", 0.2), Question("at_least", 0.4), Question("at_most", 0.3))
    found = []
    for order in permutations(questions):
        walk = open_walk(zero_one_truth(80), SHARP, Claim(questions=order))
        walk.go(80)
        found.append([point.interval for point in walk.state.question.points])
    assert all(one == found[0] for one in found)
