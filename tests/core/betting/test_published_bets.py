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
