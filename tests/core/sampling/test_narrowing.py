"""Surrogates cut to the levels where less scatter is not worth the wider range."""

import numpy as np
import pytest

from celeus.core.sampling.calibration import Narrowing

HALF = 0.05


def cost(before: np.ndarray, after: np.ndarray, share: np.ndarray) -> float:
    """The variance that a cut adds, and the padding for the range that it leaves."""
    added = float(share @ (before - after) ** 2)
    return added + HALF / 3.0 * float(after.max() - after.min())


@pytest.mark.parametrize("spread", [0.002, 0.05, 0.3])
def test_no_surrogates_cost_less_than_those_cut(spread: float) -> None:
    chance = np.random.default_rng(1)
    for _ in range(20):
        share = chance.dirichlet(np.full(8, 2.0))
        surrogate = np.clip(0.4 + spread * chance.standard_normal(8), 0.005, 0.995)
        cut = Narrowing(share, HALF).cut(surrogate)
        least = cost(surrogate, cut, share)
        assert least <= cost(surrogate, surrogate, share) + 1e-12
        for step in (0.03, 0.003, 0.0003):
            other = cut + step * chance.standard_normal((100, 8))
            assert min(cost(surrogate, row, share) for row in other) >= least - 1e-12


def test_surrogates_that_hardly_differ_become_their_mean() -> None:
    share = np.array([0.5, 0.3, 0.2])
    surrogate = np.array([0.30, 0.31, 0.29])
    assert Narrowing(share, HALF).cut(surrogate) == pytest.approx(np.full(3, share @ surrogate))


def test_surrogates_that_tell_items_apart_stay_but_for_the_ends() -> None:
    share = np.full(4, 0.25)
    cut = Narrowing(share, HALF).cut(np.array([0.9, 0.1, 0.4, 0.6]))
    assert cut == pytest.approx([0.9 - HALF / 1.5, 0.1 + HALF / 1.5, 0.4, 0.6])
