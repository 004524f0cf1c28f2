"""Cells tile the scale, leave for good, and hand their wealth to their parts."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.betting.base import WealthLost
from celeus.core.betting.published import Lure, SideBet, Wealth
from celeus.core.betting.published_bets import (
    Bet,
    CommonVariance,
    OwnVariance,
    fraction_above,
    fraction_below,
)
from celeus.core.betting.signals import (
    Extremes,
    Range,
    RangeLeft,
    check,
    exact_range,
    floor_range,
    global_range,
    signal,
)
from celeus.core.interval import Interval
from tests.core.worlds import mixture

UNIT = Interval(0.0, 1.0)


def wealth(cell: float = 0.1, alpha1: float = 0.05, span: Interval = UNIT) -> Wealth:
    return Wealth(span, cell, alpha1, theta=0.5, c=0.5)


def state_of(found: Wealth) -> list[list[float]]:
    return [part.tolist() for part in (found._lower, found._upper, found._above, found._below)]


def side_bet(bettor: OwnVariance, bet: Bet, value: float) -> SideBet:
    return SideBet(bettor.past, bet, bet, value)


def play(found: Wealth, values: list[float], bet: Bet | None = None, start: int = 1) -> None:
    bettor = OwnVariance(0.0)
    for round_, value in enumerate(values, start):
        side = side_bet(bettor, bet or Bet(0.0, 1.0), value)
        found.bet(round_, side, side)
        bettor.record(value, side.bet)


@given(st.floats(-5.0, 5.0), st.floats(0.1, 9.0), st.floats(0.003, 20.0))
def test_cells_tile_the_scale_without_gap_or_overlap(
    lower: float, width: float, cell: float
) -> None:
    span = Interval(lower, lower + width)
    found = wealth(cell, span=span)
    assert found.hull == span
    assert np.array_equal(found._lower[1:], found._upper[:-1])
    widths = found._upper - found._lower
    assert (widths > 0.0).all()
    assert widths.max() <= cell * (1.0 + 1e-6)


def test_one_rounds_wealth_is_that_of_the_formula_at_the_edges_of_the_cell() -> None:
    found = wealth()
    play(found, [0.9])
    for at, (lower, upper) in enumerate(zip(found._lower, found._upper, strict=True)):
        lam = math.sqrt(2.0 * math.log(2.0 / 0.05) / (0.25 * math.log(2.0)))
        above = 1.0 + min(lam, 1.0 / (upper + 0.5)) * (0.9 - upper)
        below = 1.0 - min(lam, 1.0 / (1.0 - lower + 0.5)) * (0.9 - lower)
        assert found._above[at] == pytest.approx(math.log(above))
        assert found._below[at] == pytest.approx(math.log(below))


def test_the_hull_only_narrows() -> None:
    found, hulls = wealth(0.01), []
    chance = np.random.default_rng(2)
    for round_ in range(1, 200):
        play(found, [float(chance.random() < 0.3)], start=round_)
        hulls.append(found.hull)
    for before, after in pairwise(hulls):
        assert before is not None
        assert after is not None
        assert before.lower <= after.lower
        assert after.upper <= before.upper


def test_one_memory_for_both_sides_bets_to_the_last_digit_like_two_alike() -> None:
    chance = np.random.default_rng(3)
    one, two = wealth(0.003), wealth(0.003)
    shared, plus, minus = OwnVariance(0.0), OwnVariance(0.0), OwnVariance(0.0)
    for round_ in range(1, 400):
        bet, value = Bet(-0.4, 1.9), float(chance.random() ** 2)
        if round_ == 150:
            for found in (one, two):
                found.split(0.001)
        if round_ == 200:
            # A gap between cells: they share their edges no longer.
            for found in (one, two):
                found._keep(np.arange(found._lower.size) != found._lower.size // 2)
        same = side_bet(shared, bet, value)
        one.bet(round_, same, same)
        above, below = (side_bet(bettor, bet, value) for bettor in (plus, minus))
        two.bet(round_, above, below)
        for bettor in (shared, plus, minus):
            bettor.record(value, bet)
        assert state_of(one) == state_of(two)
    assert 2 < one._lower.size < 200


def test_a_cell_beside_the_range_of_a_round_is_out() -> None:
    found = wealth()
    play(found, [0.45], Bet(0.35, 0.2))
    hull = found.hull
    assert hull is not None
    assert (hull.lower, hull.upper) == pytest.approx((0.3, 0.6))


def test_a_cell_that_touches_the_range_in_half_its_width_below_stays_silent() -> None:
    """Its centre is -c: the cap of its stake does not exist, and is not computed."""
    found = wealth(0.25)
    play(found, [0.9], Bet(0.5, 0.5))
    assert found.hull == Interval(0.5, 1.0)


def test_no_candidate_left_leaves_no_hull_and_goes_on() -> None:
    found = wealth(0.5)
    play(found, [0.0] * 40, Bet(0.0, 1.0))
    play(found, [1.0] * 40, Bet(0.9, 0.1), start=41)
    assert found.hull is None
    play(found, [0.5], start=81)
    found.split(0.01)
    assert found.hull is None


def test_a_lost_wealth_is_an_error_and_never_clipped() -> None:
    with pytest.raises(WealthLost, match="round 1"):
        play(wealth(), [3.0])


@pytest.mark.parametrize(("cell", "parts"), [(0.1, 1), (0.05, 2), (0.034, 3), (0.5, 1)])
def test_parts_of_a_split_cell_tile_it_and_inherit_its_wealth(cell: float, parts: int) -> None:
    found = wealth(alpha1=1e-9)
    play(found, [0.2, 0.4])
    edges, above, below = found._lower.copy(), found._above.copy(), found._below.copy()
    hull = found.hull
    found.split(cell)
    assert found.hull == hull
    assert found._lower[::parts] == pytest.approx(edges)
    assert np.array_equal(found._lower[1:], found._upper[:-1])
    assert np.array_equal(found._above, np.repeat(above, parts))
    assert np.array_equal(found._below, np.repeat(below, parts))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Interval(0.0, 1.0), Interval(0.4, 0.6)),
        (Interval(0.5, 1.0), Interval(0.5, 0.6)),
        (Interval(0.0, 0.45), Interval(0.4, 0.45)),
        (Interval(0.7, 0.9), Interval(0.7, 0.7)),
        (Interval(0.1, 0.2), Interval(0.2, 0.2)),
    ],
)
def test_cutting_keeps_what_is_inside_or_else_the_nearest_end(
    limits: Interval, expected: Interval
) -> None:
    assert Interval(0.4, 0.6).cut(limits) == expected


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


POOL = Extremes(items=10, lower=-1.0, upper=3.0, least_surrogate=0.0, largest_surrogate=2.0)


def test_the_signal_is_the_plug_in_part_and_the_residual_over_n_q() -> None:
    assert signal(0.5, -0.25, 10, 0.05) == 0.5 - 0.25 / 0.5


def test_the_floor_range_takes_the_floor_of_the_items_left() -> None:
    found = floor_range(0.5, 5, 0.4, POOL)
    assert found.lower == pytest.approx(0.5 + (-1.0 - 2.0) * 5 / (10 * 0.4))
    assert found.upper == pytest.approx(0.5 + (3.0 - 0.0) * 5 / (10 * 0.4))


def test_the_global_range_is_that_of_the_paper() -> None:
    found = global_range(0.4, POOL)
    q_min = 0.4 / 10
    assert found.lower == pytest.approx(-1.0 - 4.0 * (1.0 - q_min) / (10 * q_min))
    assert found.upper == pytest.approx(3.0 + 4.0 * (1.0 - q_min) / (10 * q_min))


def test_the_exact_range_is_that_of_the_extreme_items() -> None:
    found = exact_range(0.5, np.array([0.0, 2.0]), np.array([0.25, 0.75]), POOL)
    assert found == Range(0.5 + min(-1.0 / 2.5, -3.0 / 7.5), 0.5 + max(3.0 / 2.5, 1.0 / 7.5))


@pytest.mark.parametrize("value", [-0.001, 1.001, 7.0])
def test_a_signal_outside_its_range_is_an_error_and_never_clipped(value: float) -> None:
    with pytest.raises(RangeLeft, match="outside"):
        check(value, Range(0.0, 1.0))


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0, 1.0 + 1e-12])
def test_rounding_at_the_ends_of_the_range_is_forgiven(value: float) -> None:
    check(value, Range(0.0, 1.0))


LOSS = [0.0, 1.0, 0.25, 0.5]
SURROGATE = [0.9, 0.1, 0.6, 0.5]


@pytest.mark.parametrize("weight", [[1.0, 2.0, 0.0, 5.0], [0.0] * 4])
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_the_mean_estimate_over_every_sequence_is_the_pool_risk(
    weight: list[float], rounds: int
) -> None:
    mean = 0.0
    for order in permutations(range(4), rounds):
        proposal = mixture(weight)
        lure = Lure(4, math.fsum(SURROGATE) / 4.0)
        probability = 1.0
        for round_, item in enumerate(order, start=1):
            q = proposal.probability(item)
            probability *= q
            lure.record(LOSS[item] - SURROGATE[item], q)
            proposal.take(item, round_)
        mean += probability * lure.value
    assert mean == pytest.approx(math.fsum(LOSS) / 4.0, abs=1e-12)


def test_the_running_sums_give_the_published_formula() -> None:
    chance = np.random.default_rng(5)
    residuals, q = chance.normal(size=6), chance.random(6)
    items = 9
    lure = Lure(items, 0.3)
    assert lure.value == 0.3
    for t in range(1, 7):
        lure.record(residuals[t - 1], q[t - 1])
        total = 0.0
        for m in range(1, t + 1):
            level = 1.0 / ((items - m + 1) * q[m - 1]) - 1.0
            total += (1.0 + (items - t) / (items - m) * level) * residuals[m - 1]
        assert lure.value == pytest.approx(0.3 + total / t)


def test_a_fully_judged_pool_has_its_own_mean() -> None:
    lure = Lure(2, 0.5)
    lure.record(0.5, 0.7)
    lure.record(-0.5, 1.0)
    assert lure.value == pytest.approx(0.5)
