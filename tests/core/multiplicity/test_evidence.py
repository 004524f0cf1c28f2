"""Evidence for levels asked later, where a session has a precision."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from celeus.core.betting.candidate_grid import Lattice
from celeus.core.betting.moments import Prediction, SideSignal
from celeus.core.insights.evidence_levels import intervals
from celeus.core.multiplicity.evidence import OpenLattice
from celeus.core.plans.claim import Claim
from celeus.core.plans.policies import policy_named
from tests.core.worlds import open_walk, zero_one_truth

ALPHA = 0.05


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
