"""Stakes that lie where the questions are: together they never exceed alpha."""

import copy
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.asked import FINEST, STRONG, Asked, Mark, Rungs, even
from app.core.lattice import Lattice
from app.core.ledger import Change
from app.core.plan import Claim
from app.core.policies import policy_named
from app.core.pooled import PoolGame, asked_of
from app.core.stopping import Question, rounding
from app.core.surrogates import Scores
from app.study.simulation import Truth
from tests.core.test_sharp_enumeration import after, coming
from tests.core.worlds import Walk, open_walk, zero_one_truth

SLACK = 4e-15
SHARP = policy_named("sharp")


def above(rungs: Rungs, steps: int, risk: float) -> float:
    """Share of the first candidate above ``risk``: without it no end gets beyond the risk."""
    at = np.flatnonzero(rungs.grid / steps > risk + SLACK)
    return float(rungs.share[at[0]]) if at.size else 0.0


marks = st.lists(
    st.one_of(st.floats(0.001, 0.999), st.integers(1, 199).map(lambda at: at / 200)),
    min_size=1,
    max_size=5,
    unique_by=lambda at: round(at, 7),
)


@given(thresholds=marks, data=st.data(), steps=st.sampled_from([10, 200, 1999]))
@settings(max_examples=300)
def test_what_both_sides_may_lose_is_never_more_than_alpha(
    thresholds: list[float], data: st.DataObject, steps: int
) -> None:
    kinds = st.sampled_from([(True,), (False,), (True, False)])
    chosen = [(at, data.draw(kinds)) for at in thresholds]
    asked = Asked(tuple(Mark(at, one) for at, both in chosen for one in both), 1000, SLACK)
    plus, minus = asked.rungs(steps)
    anywhere = st.one_of(
        st.floats(0.0, 1.0),
        st.sampled_from(thresholds),
        st.integers(0, steps).map(lambda rung: rung / steps),
    )
    for rungs in (plus, minus):
        assert (np.diff(rungs.grid) > 0.0).all()
        assert (np.diff(rungs.share) <= 0.0).all()
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
    asked = Asked((Mark(0.123456, at_most),), 1000, SLACK)
    plus, minus = asked.rungs(2000)
    for rungs, at in ((plus, 0.123456), (minus, 1.0 - 0.123456)):
        here = np.argmin(np.abs(rungs.grid / 2000 - at))
        assert rungs.grid[here] / 2000 == pytest.approx(at, abs=4.0 * SLACK)
        assert (rungs.share[: here + 1] == STRONG).all()
        assert rungs.share[here + 1 :] == pytest.approx(1.0 - STRONG)
        assert rungs.grid.size == 2002


def test_a_threshold_on_the_lattice_takes_the_place_of_its_candidate() -> None:
    plus, minus = Asked((Mark(0.1, at_most=True),), 1000, SLACK).rungs(2000)
    assert plus.grid.size == minus.grid.size == 2001
    assert plus.grid[200] == pytest.approx(200.0)
    assert plus.grid[200] / 2000 > 0.1 + SLACK
    assert minus.grid[1800] / 2000 == pytest.approx(0.9, abs=1e-15)


def test_goals_that_a_small_pool_cannot_reach_are_left_out() -> None:
    for items, count in ((4, 1), (100, 2), (500, 3), (2000, 4), (10_000, 5), (10**6, 6)):
        found = Asked((Mark(0.1, at_most=True),), items, SLACK).goals(0.0005, 0.05)
        assert len(found) == count
        assert all(goal.half >= FINEST / items**0.5 for goal in found[1:])


def test_goals_stand_for_every_alpha() -> None:
    for alpha in (1e-300, 0.05, 0.6, 0.999):
        found = Asked((Mark(0.1, at_most=True),), 1000, SLACK).goals(0.0005, alpha)
        assert all(goal.information > 0.0 for goal in found)


def test_stakes_follow_the_questions_only_where_nothing_else_is_asked_for() -> None:
    def wanted(claim: Claim, policy: str = "sharp") -> bool:
        plan = open_walk(zero_one_truth(3000), policy_named(policy), claim).plan
        return asked_of(plan) is not None

    asking = (Question("at_most", 0.2),)
    assert wanted(Claim(questions=asking))
    assert wanted(Claim(questions=asking), "uniform")
    assert not wanted(Claim())
    assert not wanted(Claim(precision=0.1, questions=asking))
    assert not wanted(Claim("population", questions=asking))


def test_a_rejected_threshold_decides_at_once() -> None:
    """No step of the lattice is lost on either side."""
    asked = Asked((Mark(0.2513, at_most=True),), 1000, SLACK)
    for side, end in ((0, 0.2513), (1, 1.0 - 0.2513)):
        ladder = Lattice(400, 0.05, None, asked=asked).sides[side]
        place = int(np.argmin(np.abs(ladder._value - end)))
        ladder._stake[:, : place + 1] = 1.0
        ladder._drop_rejected()
        assert ladder.floor is not None
        strict = 2.0 * SLACK if side == 0 else 0.0
        assert ladder.floor == pytest.approx(end + strict, abs=0.5 * SLACK)


def test_a_finer_lattice_keeps_the_thresholds_and_their_stakes() -> None:
    asked = Asked((Mark(0.2345, at_most=True), Mark(0.5, at_most=False)), 1000, SLACK)
    lattice = Lattice(400, 0.05, None, asked=asked)
    for side in lattice.sides:
        side._stake = np.tile(-1.0 - side._grid, (len(side._goals), 1))
    before = [copy.deepcopy(side) for side in lattice.sides]
    lattice.aim(0.02, 1000)
    for old, new in zip(before, lattice.sides, strict=True):
        assert new._grid.size == 1000 + 1 + 1
        values = old._grid / 400
        for at, value in enumerate(new._grid / 1000):
            heir = int(np.flatnonzero(values >= value - 1e-12)[0])
            total = np.logaddexp.reduce(old._stake[:, heir])
            assert new._stake[0, at] == pytest.approx(float(total))


def test_even_stakes_are_half_of_alpha() -> None:
    grid, share = even(4)
    assert list(grid) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert set(share) == {0.5}


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
            now = walk.state.interval
            assert lower - slack <= now.lower <= now.upper <= upper + slack
            lower, upper = now.lower, now.upper
    assert walk.state.interval.width <= slack


ITEMS = 5
ALPHA = 0.6


def chance_of_a_wrong_word(walk: Walk, risk: float) -> float:
    """Exact probability, over all draws to come, that an answer or an interval is ever wrong."""
    if walk.state.points:
        interval, slack = walk.state.interval, 1e-12
        if not interval.lower - slack <= risk <= interval.upper + slack:
            return 1.0
        for decision in walk.state.decisions:
            right = decision.question.answer(type(interval)(risk, risk), slack)
            if decision.answer not in {"undecided", right}:
                return 1.0
    if not walk.left():
        return 0.0
    return float(
        sum(draw.q * chance_of_a_wrong_word(after(walk, draw), risk) for draw in coming(walk))
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
    claim = Claim(alpha=1e-30, questions=(Question("at_most", 2.0 / 6.0),))
    walk = open_walk(truth, SHARP, claim)

    def stakes(walk: Walk) -> list[float]:
        game = walk.state.fold.game
        assert isinstance(game, PoolGame)
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


def test_permutations_of_the_questions_change_nothing() -> None:
    asked = (Question("at_most", 0.2), Question("at_least", 0.4), Question("at_most", 0.3))
    found = []
    for order in permutations(asked):
        walk = open_walk(zero_one_truth(80), SHARP, Claim(questions=order))
        walk.go(80)
        found.append([point.interval for point in walk.state.points])
    assert all(one == found[0] for one in found)
