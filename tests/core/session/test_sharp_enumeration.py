"""The strongest claim about pairs, over every pool and every sequence of draws.

The stake of a true pair (pool risk, population risk) never grows in the mean.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from celeus.core.betting.population_target import PairSequence
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.population_bounds import PopulationBound
from celeus.core.pools.surrogates import Scores
from celeus.core.session.session import begin_mean
from celeus.simulation.sessions import Truth
from tests.core.worlds import SEED, Walk, after, coming

SHARP = policy_named("sharp")


def pools(risk: float, items: int) -> list[tuple[float, np.ndarray]]:
    """Every 0-1 pool of iid losses of mean ``risk`` with its probability."""
    found = []
    for losses in itertools.product((0.0, 1.0), repeat=items):
        ones = sum(losses)
        chance = risk**ones * (1.0 - risk) ** (items - ones)
        found.append((chance, np.array(losses)))
    return found


def pair_stake(confidence_sequence: PairSequence, pool_risk: float, row: int) -> float:
    """Least stake over the cell of ``row`` that holds the pool risk; 0 if it is out."""
    side = confidence_sequence._sides[0]
    edge = side._edge
    cells = side.cells
    assert cells is not None
    here = np.flatnonzero((cells.row == row) & (edge[cells.cell] <= pool_risk))
    here = here[pool_risk <= edge[cells.cell[here] + 1]]
    if not here.size:
        return 0.0
    one = here[0]
    return float(np.exp(min(cells.below[one], cells.above[one])))


ITEMS = 4


def continued(walk: Walk, pool_risk: float, row: int) -> float:
    """Mean over every sequence of draws to exhaustion of the pair's last stake."""
    confidence_sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(confidence_sequence, PairSequence)
    if not walk.left():
        return pair_stake(confidence_sequence, pool_risk, row)
    total = 0.0
    for draw in coming(walk):
        total += draw.q * continued(after(walk, draw), pool_risk, row)
    return total


def paired(loss: np.ndarray) -> Walk:
    """A session whose pairs bet from round 1 and lose none, for a level that nothing reaches."""
    scores = Scores(np.array([0.0, 0.5, 0.5, 1.0]), np.zeros(ITEMS), None)
    pool = Truth(loss, scores)
    plan = make_plan(Claim("pool", 1e-9, 0.5), pool.facts, SHARP, "")
    # A precision wider than the scale lets every row carry the cells of every pool risk.
    bound = PopulationBound("pairs", 1e-10)
    wide = replace(plan, target="population", bound=bound, precision=10.0, cell=0.05)
    return Walk(pool, wide, begin_mean(wide, scores, SEED))


@pytest.mark.parametrize("risk", [0.3, 0.55])
def test_over_pools_and_draws_a_true_pair_ends_below_its_start(risk: float) -> None:
    """Exact expectation over every pool of four items and every order of drawing it."""
    expected = level = 0.0
    for chance, loss in pools(risk, ITEMS):
        walk = paired(loss)
        confidence_sequence = walk.state.question.fold.confidence_sequence
        assert isinstance(confidence_sequence, PairSequence)
        level = walk.plan.alpha1
        expected += chance * continued(
            walk, float(loss.mean()), math.ceil(risk * confidence_sequence._steps)
        )
    assert 0.01 * level < expected <= level / 2.0 * (1.0 + 1e-9)
