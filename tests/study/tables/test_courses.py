"""One session with its width along the way."""

from dataclasses import replace

import numpy as np
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth, seed_of, simulate
from study.tables.courses import BUDGETS, REFUSED, policy_of, trajectory, width_at
from tests.study.tables.ended import ended


def made_up(items: int = 400, upper: float = 1.0) -> Truth:
    chance = np.random.default_rng(2)
    surrogate = chance.beta(0.6, 1.4, items)
    loss = (chance.random(items) < surrogate).astype(np.float64)
    weight = np.sqrt(surrogate * (1.0 - surrogate))
    return Truth(upper * loss, Scores(upper * surrogate, upper * weight, None), 0.0, upper)


def test_kept_widths_are_those_of_the_session() -> None:
    truth, seed = made_up(), seed_of("a", 0)
    found = trajectory(truth, policy_of("celeus"), Claim("pool", 0.05, 0.3), seed)
    run, state = simulate(truth, policy_of("celeus"), Claim("pool", 0.05, 0.3), seed)
    assert (found["labels"], found["stopped"]) == (run.labels, "target_reached")
    for budget, width in zip(BUDGETS, found["widths"], strict=False):
        assert width == pytest.approx(state.question.points[budget - 1].interval.width, abs=1e-6)
        assert width_at(found, budget) == pytest.approx(width)
    assert found["width"] == state.question.interval.width <= 0.3


def test_between_budgets_a_width_lies_between_theirs_and_after_the_stop_it_stays() -> None:
    found = ended(20, 0.1, widths=(0.8, 0.4))
    assert width_at(found, 8) == pytest.approx(0.8)
    assert 0.4 < width_at(found, 8.5) < 0.8
    assert 0.1 < width_at(found, 15) < 0.4
    assert width_at(found, 20) == width_at(found, 500) == 0.1


def test_a_wider_scale_changes_nothing_but_the_unit() -> None:
    claim, seed = Claim("pool", 0.05, 0.3), seed_of("b", 1)
    unit = trajectory(made_up(), policy_of("celeus"), claim, seed)
    wide = trajectory(made_up(upper=4.0), policy_of("celeus"), claim, seed)
    assert wide["labels"] == unit["labels"]
    assert wide["widths"] == pytest.approx(unit["widths"])


def test_for_the_population_every_session_has_a_pool_of_its_own() -> None:
    truth, claim = made_up(), Claim("population", 0.05, 0.4)
    exhausted = replace(claim, precision=None, alpha2=0.025)
    runs = [trajectory(truth, policy_of("evalue"), exhausted, seed_of("c", run)) for run in (0, 1)]
    assert all(one["stopped"] == "exhausted" for one in runs)
    assert runs[0]["widths"] != runs[1]["widths"]
    assert runs[0]["width"] > 0.1


def test_a_precision_out_of_reach_is_a_result() -> None:
    claim = Claim("population", 0.05, 0.01)
    found = trajectory(made_up(), policy_of("celeus"), claim, seed_of("d", 0))
    assert (found["stopped"], found["labels"], found["missed"]) == (REFUSED, 0, False)
