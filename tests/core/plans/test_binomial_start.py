"""The exact start of 0-1 losses against sums over the binomial, for every row and smaller risk."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from celeus.core.plans.binomial_start import log_scale
from celeus.core.plans.pair_plan import PairPlan, narrowest, pair_steps
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.special import beta_cdf
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]

LEVEL = 0.0475
POOLS = [(1, 0.9), (2, 0.9), (5, 0.8), (12, 0.5), (40, 0.3), (40, 0.05)]
GRADED = PoolFacts("digest", 2000, 0.0, 1.0, whole_losses=False)
WHOLE = PoolFacts("digest", 2000, 0.0, 1.0, whole_losses=True)


def means(items: int, log_stake: Floats, kappa: Floats, risk: Floats) -> Floats:
    """Mean of the starting stake of every row, under every true risk; shape [risk, row]."""
    chance = binom.pmf(np.arange(items + 1), items, risk[:, None])
    pool_risk = np.arange(items + 1)[:, None] / items
    stake = np.exp(np.minimum(log_stake + kappa * pool_risk, 0.0))
    return np.asarray(chance @ stake)


@pytest.mark.parametrize("level", [LEVEL, 0.5, 1e-6])
@pytest.mark.parametrize(("items", "precision"), POOLS)
def test_under_every_risk_up_to_its_row_the_mean_start_is_at_most_half_the_level(
    items: int, precision: float, level: float
) -> None:
    plan = PairPlan(items, level, pair_steps(precision), exact=True)
    _, kappa, log_stake = plan.lattice_starts(precision / 2.0)
    risk = plan.risks()
    mean = means(items, log_stake, kappa, risk)
    assert np.tril(mean.T).max() <= level / 2.0 * (1.0 + 1e-12)
    # None of it is given away where the row itself is the truth.
    assert np.diagonal(mean).min() >= level / 2.0 * (1.0 - 1e-8)


@pytest.mark.parametrize("items", [1, 7, 300, 20_000])
def test_whatever_kappa_the_start_is_the_largest(items: int) -> None:
    kappa = np.array([0.3, 3.0, 30.0, 90.0])
    risk = np.array([0.0, 1e-4, 0.02, 0.3, 0.5, 0.97, 1.0])
    scale = log_scale(items, LEVEL, kappa, risk[:, None])
    assert scale.shape == (7, 4)
    for at, one in enumerate(risk):
        mean = means(items, scale[at] - kappa * one, kappa, np.array([one]))[0]
        assert mean == pytest.approx(LEVEL / 2.0, rel=1e-7)
        assert (mean <= LEVEL / 2.0 * (1.0 + 1e-12)).all()


def test_a_graded_loss_of_the_same_mean_would_break_it() -> None:
    kappa, risk = np.array(50.0), np.array(0.01)
    scale = float(log_scale(1, LEVEL, kappa, risk))
    # One item whose loss is just large enough for a stake of 1, and as often as its mean allows.
    loss = 0.01 - scale / 50.0
    assert 0.01 / loss > 2.0 * LEVEL


def test_a_kappa_beyond_all_plans_keeps_a_start_that_may_be_had() -> None:
    kappa, risk = np.array([5000.0]), np.array([0.7])
    scale = log_scale(100, LEVEL, kappa, risk)
    assert means(100, scale - kappa * risk, kappa, risk)[0, 0] <= LEVEL / 2.0


@pytest.mark.parametrize("items", [300, 2000, 5000])
@pytest.mark.parametrize("risk", [0.0, 0.3, 0.5])
def test_a_wholly_judged_pool_gets_narrower_than_by_the_exponential_start(
    items: int, risk: float
) -> None:
    exponential, exact = (narrowest(items, LEVEL, 5e-4, risk, exact=one) for one in (False, True))
    assert 0.65 * exponential < exact < 0.9 * exponential


@pytest.mark.parametrize("risk", [0.01, 0.26, 0.5])
def test_for_an_endless_pool_both_plans_agree(risk: float) -> None:
    at = np.array([risk])
    one, other = (
        PairPlan(10**9, LEVEL, 1600, exact=exact).starts(0.025, at) for exact in (False, True)
    )
    assert other.sigma == pytest.approx(one.sigma, rel=0.01)
    assert other.kappa == pytest.approx(one.kappa, rel=0.25)


def test_the_starts_of_a_million_items_take_a_few_steps_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[int] = []

    def counted(*of: Floats) -> Floats:
        rows.append(np.broadcast(*of).size)
        return beta_cdf(*of)

    monkeypatch.setattr("celeus.core.plans.binomial_start.beta_cdf", counted)
    precision = 0.0032
    plan = PairPlan(10**6, LEVEL, pair_steps(precision), exact=True)
    lattice = plan.lattice_starts(precision / 2.0).kappa.size
    # Twice a step: seven steps a row, and those of the plan at its few risks.
    assert sum(rows) < 14 * (lattice + 45 * 13 * 15)


def test_graded_losses_keep_the_exponential_start() -> None:
    sharp = policy_named("sharp")
    claim = Claim("population", precision=0.1)
    assert make_plan(claim, GRADED, sharp, "").bound.kind == "pairs"
    assert make_plan(claim, WHOLE, sharp, "").bound.kind == "exact_pairs"
    asked = Claim("population", precision=0.1, population_bound="exact_pairs")
    with pytest.raises(InvalidValue, match="pairs unless the loss is zero_one"):
        make_plan(asked, GRADED, sharp, "")
    older = Claim("population", precision=0.1, population_bound="pairs")
    assert make_plan(older, WHOLE, sharp, "").bound.kind == "pairs"
