"""The two-order draw has the law it records, at O(1) a draw and whatever the scores."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from celeus.core.pools.strata import Strata
from celeus.core.randomness import uniforms
from celeus.core.sampling.calibration import Fit
from celeus.core.sampling.proposals import StratifiedProposal, draw_orders
from celeus.core.sampling.sums import RunningSum
from tests.core.worlds import mixture
from tests.nightly import NIGHTLY

LEVEL = 1e-3


def sequence_probability(weight: list[float], beta: float, order: tuple[int, ...]) -> float:
    """Probability of drawing these items in this order, straight from the definition."""
    left = set(range(len(weight)))
    probability = 1.0
    for item in order:
        total = math.fsum(weight[j] for j in left)
        uniform = 1.0 / len(left)
        share = weight[item] / total if total > 0.0 else uniform
        probability *= (1.0 - beta) * share + beta * uniform
        left.remove(item)
    return probability


@pytest.mark.parametrize(
    ("weight", "beta"),
    [
        ([1.0, 2.0, 0.0, 5.0], 0.4),
        ([1.0, 0.0, 0.0, 0.0], 0.4),
        ([0.0, 0.0, 0.0, 0.0], 0.4),
        ([0.3, 0.3, 1e-17, 0.3], 0.1),
        ([1.0, 2.0, 3.0, 4.0], 1.0),
    ],
)
def test_sequences_of_draws_come_as_often_as_their_probabilities_say(
    weight: list[float], beta: float
) -> None:
    trials = 6000 if NIGHTLY else 2000
    seen: Counter[tuple[int, ...]] = Counter()
    for trial in range(trials):
        seed = trial.to_bytes(4, "big")
        proposal = mixture(weight, seed, beta)
        coins = uniforms(seed, "coin", 3)
        drawn: list[int] = []
        for round_, coin in enumerate(coins, start=1):
            item, _ = proposal.draw(float(coin))
            proposal.take(item, round_)
            drawn.append(item)
        seen[tuple(drawn)] += 1
    statistic, classes = 0.0, 0
    for order in permutations(range(4), 3):
        expected = trials * sequence_probability(weight, beta, order)
        if expected < 5.0:
            assert seen[order] < 40
            continue
        statistic += (seen[order] - expected) ** 2 / expected
        classes += 1
    assert statistic < chi2.ppf(1.0 - LEVEL, classes - 1)


def test_the_second_draw_has_its_law_whichever_order_gave_the_first() -> None:
    """Memorylessness: what the other order took says nothing about what comes next."""
    weight, beta, trials = [1.0, 2.0, 0.0, 5.0], 0.4, 12_000 if NIGHTLY else 4000
    seen: Counter[tuple[bool, int, int]] = Counter()
    for trial in range(trials):
        seed = trial.to_bytes(4, "little") + b"pair"
        proposal = mixture(weight, seed, beta)
        coins = uniforms(seed, "coin", 2)
        first, _ = proposal.draw(float(coins[0]))
        proposal.take(first, 1)
        second, _ = proposal.draw(float(coins[1]))
        seen[bool(coins[0] >= beta), first, second] += 1
    statistic, classes = 0.0, 0
    for weighted in (True, False):
        for first, second in permutations(range(4), 2):
            by_coin = (1.0 - beta) * weight[first] / math.fsum(weight) if weighted else beta / 4.0
            both = sequence_probability(weight, beta, (first, second))
            expected = trials * by_coin * both / sequence_probability(weight, beta, (first,))
            if expected == 0.0:
                assert seen[weighted, first, second] == 0
                continue
            statistic += (seen[weighted, first, second] - expected) ** 2 / expected
            classes += 1
    assert statistic < chi2.ppf(1.0 - LEVEL, classes - 1)


weights = st.lists(
    st.one_of(
        st.just(0.0),
        st.floats(1e-3, 1.0),
        st.sampled_from([1e-17, 1e-30, 1e-300, 5e-324]),
    ),
    min_size=1,
    max_size=30,
)


@given(weights, st.floats(0.01, 1.0), st.binary(max_size=8))
def test_every_item_is_drawn_once_with_probabilities_that_add_up(
    weight: list[float], beta: float, seed: bytes
) -> None:
    proposal = mixture(weight, seed, beta)
    coins = uniforms(seed, "coin", len(weight))
    for round_, coin in enumerate(coins, start=1):
        left = np.flatnonzero(proposal.drawn_in == 0)
        each = [proposal.probability(int(item)) for item in left]
        assert math.fsum(each) == pytest.approx(1.0, abs=1e-12)
        assert min(each) >= beta / left.size * (1.0 - 1e-12)
        assert proposal.probabilities()[left] == pytest.approx(each, rel=1e-9)
        assert proposal.probabilities().sum() == pytest.approx(1.0, abs=1e-12)
        item, q = proposal.draw(float(coin))
        assert (item, q) == proposal.draw(float(coin)), "asking again gives the same"
        assert q == proposal.probability(item)
        proposal.take(item, round_)
    assert proposal.left == 0
    assert sorted(proposal.drawn_in.tolist()) == list(range(1, len(weight) + 1))


@given(weights)
def test_the_probabilities_of_an_earlier_round_can_still_be_told(weight: list[float]) -> None:
    proposal = mixture(weight)
    told = []
    for round_, coin in enumerate(uniforms(b"seed", "coin", len(weight)), start=1):
        told.append(proposal.probabilities().tolist())
        proposal.take(proposal.draw(float(coin))[0], round_)
    for round_, before in enumerate(told, start=1):
        assert proposal.probabilities(round_).tolist() == before


def test_scores_are_not_drawn_by_once_the_positive_ones_are_gone() -> None:
    proposal = mixture([0.1, 0.2, 0.3, 0.0, 0.0])
    for round_, item in enumerate((0, 1, 2), start=1):
        proposal.take(item, round_)
    assert proposal.probability(3) == proposal.probability(4) == 0.5
    assert proposal.draw(0.999)[1] == 0.5


def test_items_without_a_score_stand_in_the_uniform_order_only() -> None:
    orders = draw_orders(np.array([0.5, 0.0, 0.2]), b"seed")
    assert sorted(orders.by_weight.tolist()) == [0, 2]
    assert sorted(orders.uniform.tolist()) == [0, 1, 2]


def test_the_running_sum_keeps_what_a_float_would_lose() -> None:
    terms = np.array([1.0, 1e-17, 1e-25, 1e8])
    total = RunningSum.of(terms)
    total.add(-1e8)
    total.add(-1.0)
    assert total.value == pytest.approx(1e-17 + 1e-25, rel=1e-7, abs=0.0)
    # Whichever of the two is larger.
    other = RunningSum.of(np.array([1.0]))
    for term in (1e-17, 1e8, -1e8, -1.0):
        other.add(term)
    assert other.value == pytest.approx(1e-17, rel=1e-7, abs=0.0)


def test_a_draw_costs_the_same_in_a_large_pool() -> None:
    """Walking the orders touches every item at most twice in a whole session."""
    items = 3000
    proposal = mixture(np.linspace(0.0, 1.0, items).tolist())
    for round_, coin in enumerate(uniforms(b"seed", "coin", items), start=1):
        proposal.take(proposal.draw(float(coin))[0], round_)
    assert proposal._walked[False] < items
    assert proposal._walked[True] < items


@pytest.mark.parametrize(
    ("beta", "half", "share"),
    [
        (0.5, None, 0.5),
        (0.5, 0.0, 0.5),
        (0.5, 0.13, 0.65),
        (0.5, 0.2, 0.8),
        (0.5, 5.0, 0.8),
        (0.9, 0.0, 0.9),
    ],
)
def test_draws_are_the_more_uniform_the_more_their_range_counts(
    beta: float, half: float | None, share: float
) -> None:
    """Two strata of ten items, the losses of one of which scatter far more."""
    code, size = np.repeat(np.array([0, 1], dtype=np.int16), 10), np.array([10, 10])
    strata = Strata(code, size, np.array([0.5, 0.5]), np.zeros(2), np.ones(2))
    fit = Fit(np.array([0.5, 0.5]), np.array([0.25, 0.01]))
    q = StratifiedProposal(strata, b"seed", beta, half).strata_q(fit)
    assert q == pytest.approx((1.0 - share) * np.array([0.5, 0.1]) / 6.0 + share / 20.0)
    assert 10.0 * q.sum() == pytest.approx(1.0)
