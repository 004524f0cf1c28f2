"""The strongest claims about policies with a goal, over every possible draw.

The signal's mean is exactly the pool risk, whatever the labels have made of the surrogates, and
the stake of a true candidate never grows in the mean: of a pool candidate over the draws, and of
a pair (pool risk, population risk) over the pools too.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.betting.population_target import PairSequence
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.population_bounds import PopulationBound
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.proposals import StratifiedProposal
from celeus.core.session.rounds import PENDING
from celeus.core.session.session import begin_mean
from celeus.simulation.sessions import Truth
from tests.core.worlds import SEED, Walk, open_walk

EXACT = 1e-12
SHARP = policy_named("sharp")
SCALES = {"unit scale": (0.0, 1.0), "scale below zero": (-3.0, 5.0)}
HIDDEN: dict[str, tuple[int, ...]] = {"all judged": (), "two unjudgeable": (1, 4)}
PRECISE = 0.2


def truth(lower: float, upper: float, items: int = 8) -> Truth:
    chance = np.random.default_rng(3)
    unit = np.append([0.0, 1.0], chance.random(items - 2))
    votes = chance.integers(0, 3, items) / 2.0
    proxy = chance.integers(0, 2, items).astype(np.float64)
    width = upper - lower
    scores = Scores(lower + width * votes, np.zeros(items), lower + width * proxy)
    return Truth(lower + width * unit, scores, lower, upper)


def opened(scale: tuple[float, float], hidden: tuple[int, ...] = (), policy: str = "sharp") -> Walk:
    claim = Claim("pool", 0.05, PRECISE * (scale[1] - scale[0]))
    return open_walk(truth(*scale), policy_named(policy), claim, hidden=hidden)


def coming(walk: Walk) -> list[Draw]:
    """Every draw that may come next."""
    proposal = walk.state.question.proposal
    assert isinstance(proposal, StratifiedProposal)
    q = proposal.strata_q(walk.state.question.fold.predictor.fit)
    round_, code = walk.state.drawn + 1, proposal._strata.code
    return [Draw(round_, item, float(q[code[item]]), 0, q) for item in walk.left()]


def after(walk: Walk, draw: Draw) -> Walk:
    branch = walk.branch()
    branch.enter(draw)
    rounds = branch.state.rounds
    branch.judge([one.draw.round for one in rounds if one.loss is PENDING])
    return branch


def losses_out_of_order(walk: Walk) -> None:
    walk.draw(4)
    walk.judge([3, 1])


def draws_ahead(walk: Walk) -> None:
    walk.go(1)
    walk.draw(3)


def judged_behind_open_rounds(walk: Walk) -> None:
    """Later draws are made with what the judgements behind the open front said."""
    walk.draw(2)
    walk.judge([2])
    walk.draw(2)
    walk.judge([4])
    walk.draw(1)
    walk.judge([5])


STAGES: dict[str, Callable[[Walk], None]] = {
    "untouched": lambda _: None,
    "midway": lambda walk: walk.go(3),
    "draws ahead": draws_ahead,
    "losses out of order": losses_out_of_order,
    "judged behind open rounds": judged_behind_open_rounds,
    "near exhaustion": lambda walk: walk.go(6),
    "last item": lambda walk: walk.go(7),
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("policy", ["sharp", "uniform"])
def test_the_mean_signal_is_the_pool_risk(
    policy: str, stage: str, scale: tuple[float, float], hidden: tuple[int, ...]
) -> None:
    walk = opened(scale, hidden, policy)
    STAGES[stage](walk)
    low, high = walk.completions()
    means = [0.0, 0.0]
    draws = coming(walk)
    assert math.fsum(draw.q for draw in draws) == pytest.approx(1.0, abs=EXACT)
    ends: dict[str, list[float]] = {"lower": [], "upper": []}
    possible: dict[str, list[float]] = {"lower": [], "upper": []}
    for draw in draws:
        point = after(walk, draw).state.question.points[-1]
        means[0] += draw.q * point.plus.signal
        means[1] += draw.q * point.minus.signal
        assert point.plus.signal_range.lower <= point.plus.signal + EXACT
        assert point.minus.signal <= point.minus.signal_range.upper + EXACT
        ends["lower"].append(point.plus.signal_range.lower)
        ends["upper"].append(point.plus.signal_range.upper)
        for end, loss in zip(possible, scale, strict=True):
            residual = loss - point.plus.surrogate
            possible[end].append(point.plus.plug_in + residual / (walk.plan.items * draw.q))
    width = scale[1] - scale[0]
    assert means[0] == pytest.approx(low.mean(), abs=EXACT * width * 10)
    assert means[1] == pytest.approx(high.mean(), abs=EXACT * width * 10)
    # Fixed before the draw: the same whatever is drawn.
    assert np.ptp(ends["lower"]) == 0.0
    assert np.ptp(ends["upper"]) == 0.0
    # And no wider than the losses of the items left can make the signal.
    assert ends["lower"][0] == pytest.approx(min(possible["lower"]), abs=EXACT * width * 10)
    assert ends["upper"][0] == pytest.approx(max(possible["upper"]), abs=EXACT * width * 10)


def stake(walk: Walk, risk: float) -> float:
    """Sum of the + stakes of the lowest candidate at or above ``risk``, over its start."""
    confidence_sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(confidence_sequence, LatticeSequence)
    lattice_side = confidence_sequence._lattice.sides[0]
    unit = (risk - walk.plan.lower) / walk.plan.scale.width
    at = int(np.flatnonzero(lattice_side._value >= unit)[0])
    return float(np.exp(lattice_side._stake[:, at]).sum())


@pytest.mark.parametrize("precision", [0.2, None])
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_the_stake_of_a_candidate_above_the_risk_falls_in_the_mean(
    scale: tuple[float, float], hidden: tuple[int, ...], precision: float | None
) -> None:
    width = scale[1] - scale[0]
    # With so small an alpha no candidate is rejected: what is looked at is the stake itself.
    claim = Claim("pool", 1e-9, None if precision is None else precision * width)
    walk = open_walk(truth(*scale), SHARP, claim, hidden=hidden)
    risk = float(walk.completions()[0].mean())
    while walk.left():
        before = stake(walk, risk)
        mean = sum(draw.q * stake(after(walk, draw), risk) for draw in coming(walk))
        assert mean <= before * (1.0 + 1e-9)
        walk.go(1)


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
