"""Fractions straight from their formulas, and stakes that can never lose everything."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.betting.published_bets import (
    Bet,
    CommonVariance,
    OwnVariance,
    Stakes,
    expected_growth,
    expected_path,
    fraction_above,
    fraction_below,
)

ALPHA1 = 0.025
CANDIDATES = np.array([0.1, 0.35, 0.8])
ROUNDS = [(0.4, Bet(-1.0, 3.0)), (0.2, Bet(-0.9, 2.5)), (1.3, Bet(-0.5, 2.0))]


@pytest.mark.parametrize("origin", [0.0, 0.7, -5.0])
def test_every_candidate_estimates_the_variance_about_its_own_centre(origin: float) -> None:
    bettor = OwnVariance(origin)
    deviations = np.full(3, 0.25)
    for round_, (value, bet) in enumerate(ROUNDS, start=1):
        variance = deviations / round_
        expected = np.sqrt(
            2.0 * math.log(2.0 / ALPHA1) / (variance * round_ * math.log(round_ + 1.0))
        )
        assert bettor.past.fraction(CANDIDATES, ALPHA1, round_) == pytest.approx(expected)
        bettor.record(value, bet)
        deviations += ((value - bet.offset) / bet.scale - bet.centre(CANDIDATES)) ** 2


def test_evalue_has_one_variance_for_all_candidates() -> None:
    bettor = CommonVariance()
    total = deviation = 0.0
    for round_, (value, bet) in enumerate(ROUNDS, start=1):
        variance = max((0.25 + deviation) / round_, 1e-6)
        expected = math.sqrt(
            2.0 * math.log(2.0 / ALPHA1) / (variance * round_ * math.log(round_ + 1.0))
        )
        assert bettor.past.fraction(CANDIDATES, ALPHA1, round_) == pytest.approx(expected)
        bettor.record(value, bet)
        scaled = (value - bet.offset) / bet.scale
        total += scaled
        deviation += (scaled - (0.5 + total) / (round_ + 1.0)) ** 2


def test_the_variance_keeps_its_digits_far_from_zero() -> None:
    near, far = OwnVariance(0.0), OwnVariance(1e6)
    for value, bet in ROUNDS * 100:
        near.record(value, bet)
        far.record(value + 1e6, Bet(bet.offset + 1e6, bet.scale))
    assert far.past.fraction(CANDIDATES + 1e6, ALPHA1, 301) == pytest.approx(
        near.past.fraction(CANDIDATES, ALPHA1, 301), rel=1e-8
    )


@given(
    st.floats(0.0, 1e9),
    st.floats(1e-12, 1e6),
    st.floats(0.01, 10.0),
    st.sampled_from([0.0, 0.3, 1.0, 1.0 + 1e-9, -1e-9]),
)
def test_no_stake_can_lose_everything(fraction: float, centre: float, c: float, x: float) -> None:
    """For every number in [0, 1], rounding included, and every centre a cell may still have."""
    centres = np.array([centre])
    assert (1.0 + fraction_above(fraction, centres, c) * (x - centres) > 0.0).all()
    mirrored = 1.0 - centres
    assert (1.0 - fraction_below(fraction, mirrored, c) * (x - mirrored) > 0.0).all()


@pytest.mark.parametrize("bettor", [OwnVariance(0.4), CommonVariance()])
def test_what_numbers_scatter_is_the_sum_that_fractions_rest_on(
    bettor: OwnVariance | CommonVariance,
) -> None:
    scaled = []
    for value, bet in ROUNDS:
        bettor.record(value, bet)
        scaled.append((value - bet.offset) / bet.scale)
    if isinstance(bettor, OwnVariance):
        about = [float(bet.centre(np.array([0.35]))[0]) for _, bet in ROUNDS]
    else:
        about = [(0.5 + sum(scaled[: at + 1])) / (at + 2.0) for at in range(3)]
    expected = sum((one - mean) ** 2 for one, mean in zip(scaled, about, strict=True))
    assert bettor.scatter(0.35) == pytest.approx(expected)


def growth(risk: float, away: float, rounds: float) -> tuple[float, float]:
    """What a round adds in the mean, from both outcomes of a loss of 0 or 1; the fraction."""
    sums = (risk * (1.0 - risk) + away * away) * rounds + 0.25
    fraction = math.sqrt(2.0 * math.log(2.0 / ALPHA1) / (sums * math.log(rounds + 1.0)))
    candidate = np.array([max(risk - away, 0.0)])
    fraction = float(fraction_above(fraction, candidate, 0.5)[0])
    won, lost = (math.log(1.0 + fraction * (loss - risk + away)) for loss in (1.0, 0.0))
    return risk * won + (1.0 - risk) * lost, fraction


@pytest.mark.parametrize("rounds", [20.0, 400.0])
@pytest.mark.parametrize("away", [0.05, 0.2])
@pytest.mark.parametrize("risk", [0.1, 0.5])
def test_the_growth_expected_is_that_of_losses_of_0_and_1(
    risk: float, away: float, rounds: float
) -> None:
    variance = risk * (1.0 - risk)
    past = variance + away * away + 0.25 / rounds
    past *= rounds * math.log(rounds + 1.0) / (2.0 * math.log(2.0 / ALPHA1))
    found = expected_growth(risk, variance, away, past, 0.5)
    assert found == pytest.approx(growth(risk, away, rounds))


@pytest.mark.parametrize("needed", [0.5, 3.0])
@pytest.mark.parametrize("rounds", [1, 60, 700])
def test_the_path_is_the_sum_of_the_growth_of_its_rounds(rounds: int, needed: float) -> None:
    """Of a pool that is used up on the way: distances grow as its items go."""
    risk, away, drawable = 0.3, 0.08, 900
    wealth = gained = scattered = 0.0
    round_ = rounds
    while wealth < needed and round_ < drawable:
        round_ += 1
        apart = away * (drawable + 0.5) / (drawable + 0.5 - round_)
        variance = risk * (1.0 - risk)
        past = away * away + variance + 0.25 / round_
        past *= round_ * math.log(round_ + 1.0) / (2.0 * math.log(2.0 / ALPHA1))
        brought, fraction = expected_growth(risk, variance, apart, past, 0.5)
        wealth += brought
        gained += fraction * apart
        scattered += fraction**2 * variance
    stakes = Stakes(ALPHA1, 0.5, own_variance=True, drawable=drawable)
    found = expected_path(risk, risk * (1.0 - risk), away, needed, rounds, stakes)
    assert found.rounds == pytest.approx(round_ - rounds, rel=0.2, abs=2.0)
    assert found.gained == pytest.approx(gained, rel=0.15)
    assert found.scattered == pytest.approx(scattered, rel=0.2)
