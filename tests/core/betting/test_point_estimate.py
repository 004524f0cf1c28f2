"""LURE is unbiased at every fixed number of rounds."""

import math
from itertools import permutations

import numpy as np
import pytest

from celeus.core.betting.published import Lure
from tests.core.worlds import mixture

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
