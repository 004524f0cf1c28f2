"""Which claims may be shown, and which tests are rejected, against all that could be said."""

import itertools
import math
from collections.abc import Iterable
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from celeus.core.betting.candidate_grid import Lattice
from celeus.core.betting.moments import Prediction, SideSignal
from celeus.core.insights.evidence_levels import intervals
from celeus.core.multiplicity.evidence import OpenLattice
from celeus.core.multiplicity.promises import promises
from celeus.core.multiplicity.selection import (
    Closure,
    alpha_left,
    least_rank,
    opened_level,
    proposed_level,
    shown_level,
    step_up,
)
from celeus.core.plans.claim import Claim
from celeus.core.plans.policies import policy_named
from celeus.errors import InvalidValue
from tests.core.worlds import open_walk, zero_one_truth

ALPHA = 0.05


def by_all_sets(evidence: list[float], out: set[int], alpha: float) -> set[int]:
    """Closed testing as it is defined: over every set of tests that are not rejected."""
    left = [at for at in range(len(evidence)) if at not in out]
    rejected = set()
    for one in left:
        others = [at for at in left if at != one]
        sets = itertools.chain.from_iterable(
            itertools.combinations(others, size) for size in range(len(others) + 1)
        )
        if all(
            (evidence[one] + sum(evidence[at] for at in more)) / (1 + len(more)) >= 1.0 / alpha
            for more in sets
        ):
            rejected.add(one)
    return rejected


def test_closed_testing_is_that_over_every_set_of_tests() -> None:
    chance = np.random.default_rng(5)
    counted = 0
    for _ in range(200):
        closure = Closure(ALPHA)
        out: set[int] = set()
        for round_ in range(1, 4):
            evidence = np.exp(chance.normal(2.0, 2.0, 5))
            out |= by_all_sets(evidence.tolist(), out, ALPHA)
            closure.update(np.log(evidence), round_)
            assert set(closure.at) == out
        counted += len(out)
    assert counted > 100


def test_a_test_stays_rejected_and_keeps_its_round() -> None:
    closure = Closure(ALPHA)
    closure.update(np.array([math.inf, -math.inf]), 3)
    closure.update(np.array([-math.inf, math.log(19.0)]), 4)
    closure.update(np.array([-math.inf, math.log(21.0)]), 5)
    assert closure.at == {0: 3, 1: 5}


def test_one_test_with_all_the_evidence_waits_for_those_without() -> None:
    closure = Closure(ALPHA)
    evidence = np.log([39.0, 1e-9])
    closure.update(evidence, 1)
    assert not closure.at
    closure.update(np.log([41.0, 1e-9]), 2)
    assert closure.at == {0: 2}


@pytest.mark.parametrize(
    ("ranks", "shown"),
    [
        ([None, None], []),
        ([1, None, None], [0]),
        ([2, None, None], []),
        ([2, 2, None], [0, 1]),
        ([3, 3, 3, None], [0, 1, 2]),
        ([4, 1, 4, None], [1]),
    ],
)
def test_the_most_that_stand_where_so_many_are_shown(
    ranks: list[int | None], shown: list[int]
) -> None:
    assert step_up(ranks) == shown


@pytest.mark.parametrize("least", [1, 2, 7, 10])
def test_the_least_number_shown_with_which_a_claim_stands(least: int) -> None:
    assert least_rank(lambda shown: shown >= least, 10) == least
    assert least_rank(lambda _: False, 10) is None


@pytest.mark.parametrize("shown", [0, 21])
def test_more_claims_than_there_are_cannot_be_shown(shown: int) -> None:
    assert shown_level(ALPHA, 5, 20) == ALPHA / 4
    with pytest.raises(InvalidValue) as refused:
        shown_level(ALPHA, shown, 20)
    assert (refused.value.field, refused.value.value) == ("shown", shown)


def test_every_account_says_what_holds_in_plain_words() -> None:
    said = {kind: promises(kind, ALPHA, 12) for kind in ("each", "together", "selected", "closed")}
    assert len(set(said.values())) == 4
    assert "K of the 12 claims" in said["selected"].picked
    assert "at most 5 % of those shown are false" in said["selected"].picked
    assert "All 12 intervals hold at once" in said["together"].all
    assert "none of the answers yes is false" in said["closed"].all
    assert "95 %" in said["each"].one


def test_claims_opened_until_one_is_shown_keep_the_level() -> None:
    """A fair bet of all there is, towards the level of the place, reaches it as often as it may."""

    def misled(levels: Iterable[float]) -> float:
        return 1.0 - math.prod(1.0 - level for level in levels)

    assert misled(opened_level(0.1, 1, place) for place in range(1, 10_000)) <= 0.1
    # At the level of as many as are open, five are enough for twice the level
    assert misled(shown_level(0.1, 1, count) for count in range(1, 6)) > 0.21


def test_the_share_of_false_ones_shown_is_at_most_the_level_whatever_is_shown() -> None:
    """Enumerated: which of four claims are true, how the others bet, and what then comes of it."""
    alpha, places = 0.4, range(1, 5)
    worst = 0.0
    for false in itertools.chain.from_iterable(
        itertools.combinations(places, size) for size in places
    ):
        for aims in itertools.product(places, repeat=len(false)):
            chances = list(map(partial(opened_level, alpha), aims, false))
            mean = 0.0
            for won in itertools.product((False, True), repeat=len(false)):
                evidence = {place: math.inf for place in places if place not in false}
                weight = 1.0
                for place, chance, wins in zip(false, chances, won, strict=True):
                    weight *= chance if wins else 1.0 - chance
                    evidence[place] = 1.0 / chance if wins else 0.0
                mean += weight * _largest_share(evidence, set(false), alpha)
            worst = max(worst, mean)
    assert 0.7 * alpha < worst <= alpha


def _largest_share(evidence: dict[int, float], false: set[int], alpha: float) -> float:
    """The largest share of false ones among claims that may be shown together."""
    largest = 0.0
    for shown in range(1, len(evidence) + 1):
        standing = {
            place
            for place, one in evidence.items()
            if one * opened_level(alpha, shown, place) >= 1.0 - 1e-12
        }
        if len(standing) >= shown:
            largest = max(largest, min(len(standing & false), shown) / shown)
    return largest


def most_likely_false(alpha: float, failed: int, tests: int) -> float:
    """The largest chance that any strategy has to have a true test rejected in so many tests.

    A true test is rejected with the probability of its level; a false one may always be, or never.
    """
    if not tests:
        return 0.0
    level = proposed_level(alpha, failed)
    again = most_likely_false(alpha, failed + 1, tests - 1)
    return max(level + (1.0 - level) * again, again, most_likely_false(alpha, failed, tests - 1))


def test_no_strategy_has_a_true_test_of_an_endless_series_rejected_beyond_alpha() -> None:
    chances = [most_likely_false(ALPHA, 0, tests) for tests in range(12)]
    assert chances == sorted(chances)
    assert 0.8 * ALPHA < chances[-1] <= ALPHA
    spent = math.fsum(proposed_level(ALPHA, failed) for failed in range(1000))
    assert spent + alpha_left(ALPHA, 1000) == pytest.approx(ALPHA)


def test_a_candidate_starts_with_three_stakes_that_aim_at_lower_levels() -> None:
    lattice = OpenLattice(100, ALPHA, 0.1)
    z = [norm.ppf(1.0 - ALPHA / (2.0 * d)) for d in (1.0, 3.0, 20.0)]
    side, plain = lattice.sides[0], Lattice(100, ALPHA, 0.1).sides[0]
    for goal, b, d, quantile in zip(side._goals, (0.4, 0.4, 0.2), (1.0, 3.0, 20.0), z, strict=True):
        assert goal.half == pytest.approx(0.1 * quantile / z[0])
        assert goal.information == plain._goals[0].information
        assert (goal.share, goal.unit) == pytest.approx((b, b * d))
    assert np.exp(side._stake[:, 7]) == pytest.approx(ALPHA / 2.0 * np.array([0.4, 0.4, 0.2]))
    assert side.log_wealth(0.5) == pytest.approx(0.0)
    side.update(Prediction(0.0, 0.5, 0.02), (0.0,) * 3, SideSignal(0.6, 0.0))
    played = side._stake[:, 50] - np.log([0.4, 1.2, 4.0])
    assert side._played[:, 50] == pytest.approx(played)


def test_a_precision_given_later_divides_the_stakes_again() -> None:
    lattice = OpenLattice(2000, ALPHA, None)
    side = lattice.sides[0]
    side.update(Prediction(0.0, 0.5, 0.02), (0.0,) * 6, SideSignal(0.6, 0.0))
    before = side._total
    lattice.retarget(0.05, 2000)
    assert side._total == pytest.approx(before)
    assert side._stake[:, 9] - before[9] == pytest.approx(np.log([0.4, 0.4, 0.2]))


def test_lower_levels_asked_later_cost_little_width() -> None:
    """With one stake a candidate widths at alpha / 5 are half as much again as at alpha."""
    widths = []
    for seed in range(6):
        claim = Claim(precision=0.1)
        walk = open_walk(zero_one_truth(1000), policy_named("sharp"), claim, bytes([seed]))
        while walk.state.stop_reason is None:
            walk.go(1)
        levels = [ALPHA / 5, ALPHA]
        shown = intervals(walk.plan, walk.truth.scores, walk.state.rounds, levels)
        widths.append([shown[0].width, shown[-1].width])
    fifth, whole = np.median(widths, axis=0)
    assert math.isclose(whole, 0.1, rel_tol=0.3)
    assert fifth <= 1.35 * whole
