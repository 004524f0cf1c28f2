"""The special functions agree with SciPy's, in the middle and far out."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from celeus.core.special import (
    beta_cdf,
    beta_quantile,
    expit,
    log_normal_cdf,
    logit,
    normal_quantile,
    normal_quantiles,
)

TAILS = np.concatenate([np.logspace(-300.0, -1.0, 900), np.linspace(0.1, 0.9, 201)])
PROBABILITIES = np.concatenate([TAILS, 1.0 - np.logspace(-15.0, -1.0, 100)])
SIZES = (1, 2, 7, 100, 5_000, 100_000)
SHARES = (0.0, 1e-3, 0.02, 0.3, 0.5, 0.9, 0.999, 1.0)


def counts(items: int) -> list[int]:
    return sorted({min(max(round(share * items), 1), items) for share in SHARES})


def test_normal_quantiles() -> None:
    found = [normal_quantile(p) for p in PROBABILITIES.tolist()]
    assert_allclose(found, special.ndtri(PROBABILITIES), rtol=2e-15, atol=1e-16)
    assert [normal_quantile(p) for p in (0.0, 1.0)] == [-math.inf, math.inf]


def test_normal_quantiles_of_log_probabilities() -> None:
    log_p = -np.concatenate([np.linspace(0.1, 5.0, 500), np.linspace(5.0, 700.5, 500)])
    assert_allclose(normal_quantiles(log_p), special.ndtri_exp(log_p), rtol=4e-15, atol=1e-15)


def test_log_of_the_normal_distribution() -> None:
    x = np.linspace(-37.0, 12.0, 1961)
    assert_allclose(log_normal_cdf(x), special.log_ndtr(x), rtol=1e-14)


def test_log_odds() -> None:
    p = PROBABILITIES
    assert_allclose(logit(p), special.logit(p), rtol=1e-14, atol=1e-15)
    x = np.linspace(-800.0, 800.0, 1601)
    assert_allclose(expit(x), special.expit(x), rtol=1e-14)
    assert logit(np.float64(0.0)) == -math.inf
    assert expit(-math.inf) == 0.0


@pytest.mark.parametrize("items", SIZES)
def test_the_incomplete_beta_function(items: int) -> None:
    """Where it does not underflow; SciPy's own error grows with the number of items."""
    a = np.array(counts(items), dtype=np.float64)[:, None]
    b = items - a + 1.0
    spread = np.sqrt(a * b / (items + 1.0) ** 3)
    inside = np.clip(a / (items + 1.0) + spread * np.linspace(-25.0, 25.0, 101), 1e-12, 1 - 1e-9)
    a, b, x = np.broadcast_arrays(a, b, np.hstack([0.0 * a, inside, 1.0 + 0.0 * a]))
    found, expected = beta_cdf(a, b, x), special.betainc(a, b, x)
    tolerance = 1e-12 if items <= 5_000 else 1e-11
    assert_allclose(found, expected, rtol=tolerance, atol=1e-280)


@pytest.mark.parametrize("items", SIZES)
@pytest.mark.parametrize("p", [1e-30, 1e-9, 0.0125, 0.5, 0.975, 1.0 - 1e-9])
def test_beta_quantiles_of_counts(items: int, p: float) -> None:
    for count in counts(items):
        a, b = float(count), items - count + 1.0
        assert_allclose(beta_quantile(a, b, p), special.betaincinv(a, b, p), rtol=1e-12)


def test_beta_quantiles_of_many_items_have_their_probability() -> None:
    """SciPy's own are here off by a millionth."""
    a = np.array([1.0, 30.0, 5e4, 3e6, 9e6])
    b = 1e7 + 1.0 - a
    for p in (1e-9, 0.0125, 0.5, 0.9875):
        x = np.array([beta_quantile(*shape, p) for shape in zip(a, b, strict=True)])
        assert_allclose(beta_cdf(a, b, x), p, rtol=1e-11)


def test_beta_quantiles_of_losses_between_the_ends() -> None:
    for mean in (1e-7, 0.003, 0.2, 0.5, 0.77, 0.9999):
        shape = 2.0 * mean, 2.0 * (1.0 - mean)
        for p in np.linspace(0.0, 1.0, 41).tolist():
            found, expected = beta_quantile(*shape, p), special.betaincinv(*shape, p)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_beta_quantiles_of_whole_numbers() -> None:
    assert beta_quantile(2, 1, 0.25) == pytest.approx(0.5)
