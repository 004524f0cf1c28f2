"""Bias and variance: against enumeration on tiny pools, and to Monte Carlo error on small ones."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest

from celeus.core.betting.published import Lure
from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth
from study.engine.rows import Values
from study.tables.mechanism import (
    NAMES,
    mixture_session,
    next_draw,
    stratified_session,
)

BETA = 0.4
LOSS = np.array([1.0, 0.0, 1.0, 0.3])
SURROGATE = np.array([0.7, 0.2, 0.1, 0.5])
WEIGHT = np.array([0.2, 0.9, 0.1, 0.4])


def chances(left: list[int]) -> np.ndarray:
    """Probabilities of the items left (CELEUS, Assumption 2), 0 for the others."""
    q = np.zeros(LOSS.size)
    q[left] = (1.0 - BETA) * WEIGHT[left] / WEIGHT[left].sum() + BETA / len(left)
    return q


def small(items: int = 60) -> Truth:
    """A pool whose guided draws look for trouble: the unweighted means are far off."""
    chance = np.random.default_rng(9)
    doubt = chance.uniform(0.05, 0.95, items)
    loss = (chance.random(items) < doubt).astype(np.float64)
    return Truth(loss, Scores(0.3 * doubt, doubt**3, None))


def test_lure_is_the_formula_of_the_paper_term_by_term() -> None:
    order, items = (2, 0, 3), LOSS.size
    lure, left, terms = Lure(items, float(SURROGATE.mean())), list(range(items)), []
    for item in order:
        q = chances(left)[item]
        lure.record(LOSS[item] - SURROGATE[item], q)
        terms.append((LOSS[item] - SURROGATE[item], q))
        left.remove(item)
    total, rounds = 0.0, len(order)
    for m, (residual, q) in enumerate(terms, start=1):
        u = 1.0 + (items - rounds) / (items - m) * (1.0 / ((items - m + 1) * q) - 1.0)
        total += u * residual
    assert lure.value == pytest.approx(SURROGATE.mean() + total / rounds, abs=1e-12)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_over_all_orders_lure_is_unbiased_and_the_unweighted_means_are_not(rounds: int) -> None:
    mean = dict.fromkeys(("lure", "residuals", "losses"), 0.0)
    for order in permutations(range(LOSS.size), rounds):
        lure, left, chance = Lure(LOSS.size, float(SURROGATE.mean())), [0, 1, 2, 3], 1.0
        for item in order:
            q = chances(left)[item]
            lure.record(LOSS[item] - SURROGATE[item], q)
            chance *= q
            left.remove(item)
        drawn = list(order)
        mean["lure"] += chance * lure.value
        mean["losses"] += chance * LOSS[drawn].mean()
        mean["residuals"] += chance * (SURROGATE.mean() + (LOSS - SURROGATE)[drawn].mean())
    assert mean["lure"] == pytest.approx(LOSS.mean(), abs=1e-12)
    if rounds < LOSS.size:
        assert abs(mean["residuals"] - LOSS.mean()) > 0.01
        assert abs(mean["losses"] - LOSS.mean()) > 0.01


@pytest.mark.parametrize("drawn", [[], [1], [3, 0]])
def test_the_numbers_of_the_coming_draw_are_those_of_enumeration(drawn: list[int]) -> None:
    left = [item for item in range(LOSS.size) if item not in drawn]
    q, items = chances(left), LOSS.size
    plug_in = (LOSS[drawn].sum() + SURROGATE[left].sum()) / items
    signals = {i: plug_in + (LOSS[i] - SURROGATE[i]) / (items * q[i]) for i in left}
    risk = LOSS.mean()
    assert sum(q[i] * signals[i] for i in left) == pytest.approx(risk, abs=1e-12)
    variance, least, naive, unweighted = next_draw(q, LOSS, SURROGATE, plug_in)
    assert variance == pytest.approx(sum(q[i] * (signals[i] - risk) ** 2 for i in left))
    assert naive == pytest.approx(sum(q[i] * (LOSS[i] - risk) ** 2 for i in left))
    as_if = {i: plug_in + len(left) * (LOSS[i] - SURROGATE[i]) / items for i in left}
    assert unweighted == pytest.approx(sum(q[i] * (as_if[i] - risk) ** 2 for i in left))
    assert least <= variance


def test_the_least_variance_is_that_of_draws_by_the_true_residuals() -> None:
    residual = np.abs(LOSS - SURROGATE)
    variance, least, *_ = next_draw(residual / residual.sum(), LOSS, SURROGATE, SURROGATE.mean())
    assert variance == pytest.approx(least)


def errors(walk: partial[list[Values]], sessions: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean errors of the four estimates after 15 draws, and their standard errors."""
    last = [walk(f"{run}".encode(), (5, 15))[1] for run in range(sessions)]
    found = np.array([[one[name] for name in NAMES] for one in last])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(sessions)


def test_weighted_estimates_are_unbiased_to_simulation_error_and_others_are_not() -> None:
    mean, error = errors(partial(mixture_session, "guided", small()), 1500)
    found = dict(zip(NAMES, zip(mean, error, strict=True), strict=True))
    for name in ("lure", "signals"):
        assert abs(found[name][0]) < 4.0 * found[name][1]
    for name in ("residuals", "losses"):
        assert abs(found[name][0]) > 8.0 * found[name][1]


@pytest.mark.nightly
def test_the_signals_of_sharp_are_unbiased_to_simulation_error() -> None:
    mean, error = errors(partial(stratified_session, small()), 400)
    assert abs(mean[1]) < 4.0 * error[1]


def test_oracle_draws_have_less_variance_than_others_and_none_less_than_the_least() -> None:
    truth = small()
    first = {
        design: mixture_session(design, truth, b"one", (1,))[0]
        for design in ("plain", "uniform", "guided", "oracle")
    }
    variance = {design: one["variance"] for design, one in first.items()}
    assert variance["oracle"] < variance["uniform"] < variance["plain"]
    assert all(one["least"] <= one["variance"] for one in first.values())
    whole = mixture_session("guided", truth, b"one", (59,))[0]
    assert whole["variance"] == pytest.approx(0.0, abs=1e-12)
