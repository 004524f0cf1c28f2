"""Fixed-sample intervals, against values worked out by other means."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from study.baselines import fixed_sample as peeked
from study.baselines.fixed_sample import Looks

Z = float(norm.ppf(0.975))
TINY = 1e-9


def test_wilsons_ends_are_where_the_score_test_turns() -> None:
    """The interval holds the p with |p̂ - p| <= z sqrt(p (1 - p) / n): solved, not by formula."""
    loss = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    found = peeked.wilson(loss, 0.05, first=1)
    for n in range(1, 8):
        seen = loss[:n].mean()

        def score(p: float, seen: float = seen, n: int = n) -> float:
            return float((seen - p) ** 2 - Z**2 * p * (1.0 - p) / n)

        lower = brentq(score, 0.0, seen - TINY) if seen > 0.0 else 0.0
        upper = brentq(score, seen + TINY, 1.0) if seen < 1.0 else 1.0
        assert found.lower[n - 1] == pytest.approx(lower, abs=1e-9)
        assert found.upper[n - 1] == pytest.approx(upper, abs=1e-9)


def by_definition(
    loss: np.ndarray, surrogate: np.ndarray, n: int, lam: float
) -> tuple[float, float]:
    """One PPI++ interval from samples, weighting the surrogates by ``lam``."""
    y, f, u = loss[:n], surrogate[:n], surrogate[n:]

    half = Z * float(np.sqrt(lam**2 * u.var() / u.size + (y - lam * f).var() / n))
    centre = float(lam * u.mean() + (y - lam * f).mean())
    return centre - half, centre + half


def sample(items: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(4)
    surrogate = chance.random(items)
    return (chance.random(items) < surrogate).astype(np.float64), surrogate


@pytest.mark.parametrize("n", [30, 77, 150, 199])
def test_ppi_is_the_interval_of_its_definition(n: int) -> None:
    loss, surrogate = sample(200)
    found = peeked.ppi(loss, surrogate, 0.05)
    y, f, u = loss[:n], surrogate[:n], surrogate[n:]
    covariance = np.cov(y, f, ddof=0)[0, 1]
    lam = covariance / ((1.0 + n / u.size) * surrogate.var(ddof=1))
    expected = by_definition(loss, surrogate, n, float(np.clip(lam, 0.0, 1.0)))
    at = int(np.flatnonzero(found.labels == n)[0])
    assert (found.lower[at], found.upper[at]) == pytest.approx(expected, abs=1e-12)


def test_the_tuned_weight_nearly_minimises_the_variance() -> None:
    loss, surrogate = sample(20_000)
    n = 4_000
    found = peeked.ppi(loss, surrogate, 0.05)
    at = n - peeked.FIRST_LOOK
    width = found.upper[at] - found.lower[at]
    tried = [by_definition(loss, surrogate, n, lam) for lam in np.linspace(0.0, 1.0, 201)]
    assert width == pytest.approx(min(upper - lower for lower, upper in tried), rel=2e-3)


def test_a_surrogate_that_says_nothing_leaves_the_classical_interval() -> None:
    loss, _ = sample(100)
    found = peeked.ppi(loss, np.full(100, 0.4), 0.05)
    y = loss[:50]
    half = Z * y.std() / np.sqrt(50)
    at = 50 - peeked.FIRST_LOOK
    assert (found.lower[at], found.upper[at]) == pytest.approx((y.mean() - half, y.mean() + half))


def test_looking_ends_at_the_first_narrow_interval() -> None:
    looks = Looks(np.arange(1, 5), np.array([0.0, 0.1, 0.2, 0.1]), np.array([1.0, 0.5, 0.4, 0.2]))
    assert looks.until(0.2).labels.tolist() == [1, 2, 3]
    assert looks.until(0.01).labels.tolist() == [1, 2, 3, 4]
    assert looks.missed(0.45).tolist() == [False, False, True, True]
