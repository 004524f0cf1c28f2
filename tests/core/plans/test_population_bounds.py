"""The step to the population against direct formulas, and its coverage by enumeration."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from celeus.core.interval import Interval
from celeus.core.plans.population_bounds import PopulationBound

UNIT = Interval(0.0, 1.0)
OTHER = Interval(-1.0, 3.0)
ALPHA2 = 0.02


def kl(p: float, r: float) -> float:
    terms = [(p, r), (1.0 - p, 1.0 - r)]
    return math.fsum(a * math.log(a / b) for a, b in terms if a > 0.0)


def test_the_pool_needs_no_bound() -> None:
    assert PopulationBound("none").widen(Interval(0.2, 0.3), 10, UNIT) == Interval(0.2, 0.3)


def test_hoeffding_widens_by_its_formula_on_every_scale() -> None:
    half = 4.0 * math.sqrt(math.log(2.0 / ALPHA2) / (2.0 * 500))
    found = PopulationBound("hoeffding", ALPHA2).widen(Interval(0.5, 1.0), 500, OTHER)
    assert found.lower == pytest.approx(0.5 - half)
    assert found.upper == pytest.approx(1.0 + half)


def test_a_margin_is_taken_at_its_word_and_cut_to_the_scale() -> None:
    bound = PopulationBound("margin", half_width=0.25, assumption="mixing")
    assert bound.widen(Interval(0.125, 0.5), 10, UNIT) == Interval(0.0, 0.75)


@pytest.mark.parametrize("ends", [(0.2, 0.35), (0.001, 0.5), (0.5, 0.999)])
def test_kl_ends_spend_exactly_the_budget(ends: tuple[float, float]) -> None:
    found = PopulationBound("kl", ALPHA2).widen(Interval(*ends), 400, UNIT)
    budget = math.log(2.0 / ALPHA2)
    assert 400 * kl(ends[0], found.lower) == pytest.approx(budget, rel=1e-6)
    assert 400 * kl(ends[1], found.upper) == pytest.approx(budget, rel=1e-6)


def test_kl_at_the_ends_of_the_scale_has_a_closed_form() -> None:
    found = PopulationBound("kl", ALPHA2).widen(UNIT, 400, UNIT)
    assert found == UNIT
    far = PopulationBound("kl", ALPHA2).widen(Interval(0.0, 0.0), 400, UNIT)
    assert far.lower == 0.0
    assert far.upper == pytest.approx(1.0 - (ALPHA2 / 2.0) ** (1.0 / 400))


@pytest.mark.parametrize("items", [1, 7, 100, 10_000])
def test_kl_is_never_wider_than_hoeffding(items: int) -> None:
    for lower in np.linspace(-1.0, 3.0, 41):
        pool = Interval(float(lower), min(float(lower) + 0.2, 3.0))
        sharp = PopulationBound("kl", ALPHA2).widen(pool, items, OTHER)
        blunt = PopulationBound("hoeffding", ALPHA2).widen(pool, items, OTHER)
        assert blunt.lower <= sharp.lower + 1e-9
        assert sharp.upper <= blunt.upper + 1e-9


@pytest.mark.parametrize("count", [0, 1, 13, 49, 50])
def test_clopper_pearson_is_the_exact_binomial_limit(count: int) -> None:
    pool = Interval(count / 50, count / 50)
    found = PopulationBound("clopper_pearson", ALPHA2).widen(pool, 50, UNIT)
    if count < 50:
        assert found.upper == pytest.approx(beta.ppf(1.0 - ALPHA2 / 2.0, count + 1, 50 - count))
        assert binom.cdf(count, 50, found.upper) == pytest.approx(ALPHA2 / 2.0)
    else:
        assert found.upper == 1.0
    if count > 0:
        assert found.lower == pytest.approx(beta.ppf(ALPHA2 / 2.0, count, 50 - count + 1))
        assert binom.sf(count - 1, 50, found.lower) == pytest.approx(ALPHA2 / 2.0)
    else:
        assert found.lower == 0.0


def test_clopper_pearson_counts_whole_losses_despite_rounding() -> None:
    bound = PopulationBound("clopper_pearson", ALPHA2)
    exact = bound.widen(Interval(0.3, 0.3), 10, UNIT)
    assert bound.widen(Interval(0.1 + 0.2, 0.3 - 1e-17), 10, UNIT) == exact
    assert bound.widen(Interval(0.21, 0.39), 10, UNIT) == exact


@pytest.mark.parametrize("kind", ["hoeffding", "kl", "clopper_pearson"])
@pytest.mark.parametrize("items", [1, 5, 30])
def test_over_every_pool_the_population_risk_is_lost_with_at_most_alpha2(
    kind: str, items: int
) -> None:
    bound = PopulationBound(kind, ALPHA2)  # type: ignore[arg-type]
    for risk in np.linspace(0.0, 1.0, 201):
        lost = 0.0
        for count in range(items + 1):
            pool = Interval(count / items, count / items)
            found = bound.widen(pool, items, UNIT)
            if not found.lower - 1e-12 <= risk <= found.upper + 1e-12:
                lost += float(binom.pmf(count, items, risk))
        assert lost <= ALPHA2 * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", ["hoeffding", "kl", "clopper_pearson"])
def test_the_narrowest_width_is_reached_at_an_end_of_the_scale_only(kind: str) -> None:
    bound = PopulationBound(kind, ALPHA2)  # type: ignore[arg-type]
    widths = [bound.widen(Interval(count / 40, count / 40), 40, UNIT).width for count in range(41)]
    assert bound.narrowest(40, UNIT) == pytest.approx(min(widths))
    assert bound.at_centre(40, UNIT) == pytest.approx(widths[20])
    assert bound.at_centre(40, UNIT) == pytest.approx(max(widths), rel=1e-3)


@pytest.mark.parametrize("kind", ["hoeffding", "kl", "clopper_pearson"])
def test_a_narrower_interval_for_the_pool_never_gives_a_wider_one(kind: str) -> None:
    bound = PopulationBound(kind, ALPHA2)  # type: ignore[arg-type]
    before = UNIT
    for step in range(50):
        after = bound.widen(Interval(0.004 * step, 1.0 - 0.006 * step), 120, UNIT)
        assert before.lower <= after.lower
        assert after.upper <= before.upper
        before = after
