"""The curve of labels by precision: what it supposes, what it adds to sessions simulated."""

import json
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest

from celeus.core.insights.curve import (
    LEFT_OPEN,
    MOST_CORRELATED,
    Point,
    PoolHypothesis,
    points,
    suggested,
    widths,
)
from celeus.core.insights.planning import Assumption, SimulationOutcome, assumption_of
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth, seed_of, simulate
from tests.nightly import NIGHTLY, by_day

UNIT = Interval(0.0, 1.0)
ITEMS = 2000
RUNS = 16


def scores_of(surrogate: np.ndarray) -> Scores:
    return Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None)


def ladder(precisions: list[float], items: int = ITEMS, policy: str = "sharp") -> list[Plan]:
    facts = PoolFacts("f" * 64, items, 0.0, 1.0, whole_losses=True)
    return [
        make_plan(Claim("pool", 0.05, width), facts, policy_named(policy), "0" * 64)
        for width in precisions
    ]


def assumed(surrogate: np.ndarray, risk: float | None = None) -> Assumption:
    return assumption_of(scores_of(surrogate), UNIT, whole=True, has_surrogate=True, risk=risk)


def simulated(
    surrogate: np.ndarray, plans: list[Plan], runs: int, *, told: bool = False
) -> dict[tuple[int, int], SimulationOutcome]:
    supposed = PoolHypothesis.of(assumed(surrogate), risk_given=told)
    found = {}
    for at, plan in enumerate(plans):
        for run in range(runs):
            outcome = list(supposed.case(plan, scores_of(surrogate), run).run(run, 0))[-1]
            assert isinstance(outcome, SimulationOutcome)
            found[at, run] = outcome
    return found


def soft(items: int = ITEMS) -> np.ndarray:
    return np.random.default_rng(3).beta(0.4, 1.2, items)


def hard(items: int = ITEMS) -> np.ndarray:
    return (np.random.default_rng(4).random(items) < 0.3).astype(float)


def test_widths_go_by_halves_from_half_the_scale_through_what_is_asked() -> None:
    assert widths(0.05, UNIT) == [0.4, 0.2, 0.1, 0.05, 0.025, 0.0125]
    assert widths(0.01, UNIT) == [0.32, 0.16, 0.08, 0.04, 0.02, 0.01, 0.005]
    assert widths(0.25, Interval(0.0, 5.0))[:3] == [2.0, 1.0, 0.5]
    assert widths(0.9, UNIT)[0] == 0.9


def test_a_curve_is_the_same_for_the_same_seed_and_rises_with_the_precision() -> None:
    plans = ladder([0.4, 0.2, 0.1])
    first, again = (points(plans, 0.0, simulated(soft(), plans, 4)) for _ in range(2))
    assert first == again
    for share in ("low", "median", "high"):
        labels = [getattr(one.labels, share) for one in first]
        assert labels == sorted(labels)
    assert [one.runs for one in first] == [4, 4, 4]


@pytest.mark.parametrize(
    ("made", "worth", "log_odds"),
    [
        (soft, 0.4, -0.8),
        (hard, 0.75, 0.8),
        *by_day(0, [(soft, 0.6, 0.0), (soft, 0.75, 0.8), (hard, 0.4, -0.8), (hard, 0.6, 0.0)]),
    ],
)
def test_the_range_holds_what_sessions_take_when_surrogates_are_worse_than_they_say(
    made: Callable[[], np.ndarray], worth: float, log_odds: float
) -> None:
    surrogate = made()
    plans = ladder([0.12])
    [point] = points(plans, 0.0, simulated(surrogate, plans, RUNS))
    mean = surrogate.mean()
    odds = mean / (1.0 - mean) * np.exp(log_odds)
    level = odds / (1.0 + odds)
    chance = np.clip(level + worth * (surrogate - mean), 0.01, 0.99)
    losses = (np.random.default_rng(8).random(ITEMS) < chance).astype(float)
    truth = Truth(losses, scores_of(surrogate))
    claim = Claim("pool", 0.05, 0.12)
    policy = policy_named("sharp")
    taken = [simulate(truth, policy, claim, seed_of(5, run))[0].labels for run in range(8)]
    assert point.labels.low <= np.median(taken) <= point.labels.high


def test_hard_guesses_are_never_taken_as_certain() -> None:
    surrogate = hard()
    supposed = PoolHypothesis.of(assumed(surrogate), risk_given=False)
    [plan] = ladder([0.2])
    for run in range(RUNS):
        mean = supposed.case(plan, scores_of(surrogate), run).assumption.mean
        level = mean.mean()
        assert mean.min() > 0.5 * LEFT_OPEN * level
        assert mean.max() < 1.0 - 0.5 * LEFT_OPEN * (1.0 - level)
        correlation = mean.std() / np.sqrt(level * (1.0 - level))
        assert correlation < MOST_CORRELATED + 0.03


def test_a_mean_loss_that_is_given_is_not_shifted() -> None:
    surrogate = soft()
    [plan] = ladder([0.2])
    told, free = (
        PoolHypothesis.of(assumed(surrogate, 0.1), risk_given=told) for told in (True, False)
    )
    levels = [
        [one.case(plan, scores_of(surrogate), run).assumption.mean.mean() for run in range(RUNS)]
        for one in (told, free)
    ]
    assert np.ptp(levels[0]) < 0.02
    assert min(levels[1]) < 0.06
    assert max(levels[1]) > 0.2


def test_where_no_surrogate_tells_items_apart_every_run_supposes_the_same() -> None:
    [plan] = ladder([0.2])
    even = np.full(ITEMS, 0.3)
    supposed = PoolHypothesis.of(assumed(even), risk_given=False)
    for run in range(3):
        assert set(supposed.case(plan, scores_of(even), run).assumption.mean) == {0.3}


def test_what_was_not_simulated_is_extrapolated_and_says_so() -> None:
    plans = ladder([0.2, 0.1, 0.05, 0.025])
    outcomes = {(0, run): SimulationOutcome(100, reached=True, width=0.2) for run in range(3)}
    outcomes[1, 0] = SimulationOutcome(300, reached=True, width=0.1)
    found = points(plans, 0.0, outcomes)
    assert [one.runs for one in found] == [3, 1, 0, 0]
    assert [one.extrapolated for one in found] == [False, False, True, True]
    # The one run simulated at both took 300 and not 348: one in five believes that of the others.
    assert found[1].labels.low == 300
    assert found[1].labels.high == pytest.approx(348 * (300 / 348) ** 0.2, abs=1)
    left = 4.0 * (1.0 / found[2].labels.median - 1.0 / ITEMS)
    assert left == pytest.approx(1.0 / found[1].labels.median - 1.0 / ITEMS, rel=0.02)


@pytest.mark.parametrize(
    ("policy", "mean"),
    [("sharp", 0.03), ("uniform", 0.25), *by_day(0, [("sharp", 0.25), ("uniform", 0.03)])],
)
def test_what_is_drawn_out_of_coarse_sessions_is_near_what_fine_ones_take(
    policy: str, mean: float
) -> None:
    """By the square of the width it would be 1.3 times as much, and up to twice where rare."""
    items, runs = 20_000, 6 if NIGHTLY else 4
    surrogate = np.random.default_rng(5).beta(0.5, 0.5 / mean - 0.5, items)
    plans = ladder([0.24, 0.12, 0.06, 0.03], items, policy)
    supposed = PoolHypothesis.of(assumed(surrogate), risk_given=False)
    off = []
    for run in range(runs):
        coarse, fine = (
            list(supposed.case(plans[at], scores_of(surrogate), run).run(run, 0))[-1]
            for at in (0, 3)
        )
        assert isinstance(coarse, SimulationOutcome)
        assert isinstance(fine, SimulationOutcome)
        found = points(plans, 0.0, {(0, 0): coarse})[-1]
        assert found.extrapolated
        off.append(np.log(found.labels.median / fine.labels))
    assert abs(np.mean(off)) < 0.25


def test_an_outcome_survives_its_way_through_a_process() -> None:
    [plan] = ladder([0.2])
    supposed = PoolHypothesis.of(assumed(soft()), risk_given=False)
    *_, end = supposed.case(plan, scores_of(soft()), 0).run(0, 0)
    assert isinstance(end, SimulationOutcome)
    assert end.finer is not None
    assert SimulationOutcome.of(json.loads(json.dumps(astuple(end)))) == end


def test_guesses_that_claim_to_be_certain_are_said_to_be_tempered() -> None:
    [plan] = ladder([0.2])
    found = PoolHypothesis.of(assumed(hard()), risk_given=False).tempered(
        plan, scores_of(hard()), RUNS
    )
    assert found is not None
    assert found.share == 1.0
    assert found.zeros is not None
    assert found.ones is not None
    for least, most in (found.zeros, found.ones):
        assert 0.0 < least < most < 1.0
    assert (
        PoolHypothesis.of(assumed(soft()), risk_given=False).tempered(plan, scores_of(soft()), 2)
        is None
    )


def test_what_ended_with_its_budget_its_answers_or_the_pool_ends_there_at_finer_widths_too() -> (
    None
):
    plans = ladder([0.2, 0.1])
    decided = SimulationOutcome(80, reached=True, width=0.3)
    spent = SimulationOutcome(150, reached=False, width=0.25)
    whole = SimulationOutcome(ITEMS, reached=True, width=0.0)
    found = points(plans, 0.0, {(0, 0): decided, (0, 1): spent, (0, 2): whole})
    assert found[1].labels == found[0].labels
    assert found[1].reached == pytest.approx(2.0 / 3.0)


def test_a_session_that_takes_no_label_at_a_coarse_width_has_a_curve_all_the_same() -> None:
    """Where most losses are known the interval begins narrower than that."""
    plans = ladder([0.2, 0.1, 0.05, 0.025])
    none = {(0, 0): SimulationOutcome(0, reached=True, width=0.1)}
    assert [one.labels.median for one in points(plans, 0.0, none)] == [0, 0, 4, 16]
    none[1, 0] = none[0, 0]
    some = none | {(2, 0): SimulationOutcome(12, reached=True, width=0.05)}
    assert [one.labels.median for one in points(plans, 0.0, some)][:3] == [0, 0, 12]


def test_below_the_width_that_is_left_nothing_is_reached() -> None:
    plans = ladder([0.2, 0.1])
    found = points(plans, 0.15, {(0, 0): SimulationOutcome(900, reached=True, width=0.2)})
    assert found[1] == Point(0.1, found[1].labels, 0.0, 0, extrapolated=True)
    assert found[1].labels.median == ITEMS


def test_without_a_session_there_is_no_curve() -> None:
    assert points(ladder([0.2]), 0.0, {}) == []


@pytest.mark.parametrize(
    ("mean", "items", "precision"),
    [(0.5, 5000, 0.1), (0.16, 5000, 0.05), (0.05, 20_000, 0.02), (0.97, 50_000, 0.01)],
)
def test_a_rate_gets_a_precision_by_what_is_expected_of_it(
    mean: float, items: int, precision: float
) -> None:
    surrogate = np.linspace(0.0, 2.0 * min(mean, 1.0 - mean), items)
    surrogate = surrogate if mean <= 0.5 else 1.0 - surrogate
    found = suggested(assumed(surrogate), UNIT, items)
    assert found.precision == precision
    assert f"{mean:.2g}" in found.reason


def test_a_grade_gets_a_precision_in_its_own_units_and_a_small_pool_a_coarser_one() -> None:
    grades = Interval(0.0, 5.0)
    surrogate = np.linspace(0.0, 5.0, 4000)
    graded = assumption_of(
        Scores(surrogate, surrogate, None), grades, whole=False, has_surrogate=True, risk=None
    )
    assert suggested(graded, grades, 4000).precision == 0.2
    coarse = suggested(assumed(soft(100)), UNIT, 100)
    assert coarse.precision > 0.1
    assert "most of the items" in coarse.reason


@pytest.mark.parametrize("all_the_same", [0.0, 0.3, 1.0])
def test_surrogates_that_are_all_the_same_suggest_what_none_would(all_the_same: float) -> None:
    found = suggested(assumed(np.full(300, all_the_same)), UNIT, 300)
    assert found.precision == 0.2
