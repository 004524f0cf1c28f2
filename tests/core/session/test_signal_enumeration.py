"""The strongest claims about a signal and its stakes, over every possible draw.

The mean of the signal is exactly the pool risk, by weight where items have any, whatever the labels
have made of the surrogates, what is known or bounded, what is judged later and what nobody can
judge. The stake of a true candidate never grows in the mean. `test_enumeration` says the same of
every published policy.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.plans.plan import Claim
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.weights import relative
from celeus.core.sampling.predictors import CalibratedPredictor
from celeus.simulation.sessions import Truth
from tests.core.certifying import paired_world
from tests.core.session.test_comparison import pair, truth_of
from tests.core.session.test_known import POLICIES, truth
from tests.core.worlds import EXACT, STAGES, Floats, Walk, after, coming, open_walk

FEWEST = 5
"""Items that the longest of the stages draws."""
WEIGHT = np.array([2.0, 1e3, 0.5, 1.0, 7.0, 1e-3, 3.0, 40.0, 0.2])


def graded(lower: float, upper: float, items: int = 8) -> Truth:
    """Losses anywhere, with votes and a proxy of them."""
    chance = np.random.default_rng(3)
    unit = np.append([0.0, 1.0], chance.random(items - 2))
    votes = chance.integers(0, 3, items) / 2.0
    proxy = chance.integers(0, 2, items).astype(np.float64)
    width = upper - lower
    made = Scores(lower + width * votes, np.zeros(items), lower + width * proxy)
    return Truth(lower + width * unit, made, lower, upper)


def weighted(lower: float, upper: float, *, known: bool = True, bounded: bool = False) -> Truth:
    """Nine items whose weights differ by a factor of a million, whatever is stated of them."""
    made = truth((lower, upper), bounded=bounded)
    ends = (made.scores.lower, made.scores.upper) if known else (None, None)
    columns = Scores(
        made.scores.surrogate,
        made.scores.weight,
        lower=ends[0],
        upper=ends[1],
        item_weight=relative(WEIGHT),
    )
    return Truth(made.loss, columns, lower, upper)


def several(plain: Truth) -> Truth:
    """The same items with a good surrogate column, the same upside down, and one of no worth.

    Their mean is that of every item, so that all are in one stratum.
    """
    unit = (plain.loss - plain.lower) / (plain.upper - plain.lower)
    good = np.round(64.0 * unit) / 64.0
    columns = np.stack((good, 1.0 - good, np.full(good.size, 0.5)), axis=1)
    columns = plain.lower + (plain.upper - plain.lower) * columns
    scores = replace(plain.scores, surrogate=columns.mean(axis=1), columns=columns, proxy=None)
    return replace(plain, scores=scores)


POOLS: dict[str, Callable[[], Truth]] = {
    "graded": lambda: graded(0.0, 1.0),
    "graded, several columns": lambda: several(graded(0.0, 1.0)),
    "graded, below zero": lambda: graded(-3.0, 5.0),
    "known": lambda: truth((0.0, 1.0)),
    "known, below zero": lambda: truth((-3.0, 5.0)),
    "bounded": lambda: truth((0.0, 1.0), bounded=True),
    "bounded, below zero": lambda: truth((-3.0, 5.0), bounded=True),
    "weighted": lambda: weighted(0.0, 1.0, known=False),
    "weighted, known, below zero": lambda: weighted(-3.0, 5.0),
    "weighted, several columns, known, below zero": lambda: several(weighted(-3.0, 5.0)),
    "weighted, bounded": lambda: weighted(0.0, 1.0, bounded=True),
    "weighted, known but audited": lambda: weighted(0.0, 1.0),
    "difference": lambda: pair(answers=False, surrogates=False),
    "difference, answers": lambda: pair(answers=True, surrogates=False),
    "difference, surrogates": lambda: pair(answers=False, surrogates=True),
    "difference, both": lambda: pair(answers=True, surrogates=True),
    "sealed comparison": lambda: truth_of(paired_world(items=9, seed=8)),
}
SOME = ("sharp", "uniform", "celeus", "evalue")
POLICIES_OF: dict[str, Iterable[str]] = {
    "known": POLICIES,
    "bounded": SOME,
    "bounded, below zero": POLICIES,
    "graded, several columns": ["sharp"],
    "weighted, several columns, known, below zero": ["sharp"],
    "difference, both": SOME,
    "sealed comparison": SOME,
}
"""Pools that are tried with published policies, too, which draw without weights."""
SEVERAL = [
    (name, policy) for name in POOLS for policy in POLICIES_OF.get(name, ("sharp", "uniform"))
]
PRECISE = Claim(precision=0.2)
HIDDEN = {"all judged": (), "two unjudgeable": (1, 4)}


def begun(name: str, policy: str, hidden: tuple[int, ...], claim: Claim = PRECISE) -> Walk:
    """A session on one of the pools; the precision is a share of its scale."""
    made = POOLS[name]()
    width = None if claim.precision is None else claim.precision * (made.upper - made.lower)
    claim = replace(claim, precision=width, audit="audited" in name)
    return open_walk(made, POLICIES[policy], claim, hidden=hidden)


def mean(walk: Walk, losses: Floats) -> float:
    return float(np.average(losses, weights=walk.truth.scores.item_weight))


@pytest.mark.parametrize(("name", "policy"), SEVERAL)
def test_the_mean_signal_is_the_pool_risk(name: str, policy: str) -> None:
    for case in product(STAGES, HIDDEN.values()):
        assert_signal_is_risk(name, policy, *case)


def assert_signal_is_risk(name: str, policy: str, stage: str, hidden: tuple[int, ...]) -> None:
    walk = begun(name, policy, hidden)
    bounds = None if walk.plan.audit else walk.truth.scores.bounds
    known = set() if bounds is None else set(np.flatnonzero(bounds.known).tolist())
    if walk.plan.drawable > FEWEST or stage != "judged behind open rounds":
        STAGES[stage](walk)
    draws, width = coming(walk), walk.plan.scale.width
    assert {draw.item for draw in draws}.isdisjoint(known)
    assert math.fsum(draw.q for draw in draws) == pytest.approx(1.0, abs=EXACT)
    means, ranges = [0.0, 0.0], set()
    for draw in draws:
        point = after(walk, draw).state.question.points[-1]
        means[0] += draw.q * point.plus.signal
        means[1] += draw.q * point.minus.signal
        slack = EXACT * (width + point.plus.signal_range.width)
        assert point.plus.signal_range.lower <= point.plus.signal + slack
        assert point.minus.signal <= point.minus.signal_range.upper + slack
        ranges.add((point.plus.signal_range, point.minus.signal_range))
    # Fixed before the draw: the same whatever is drawn
    assert len(ranges) == 1
    low, high = walk.completions()
    assert means[0] == pytest.approx(mean(walk, low), abs=10 * EXACT * width)
    assert means[1] == pytest.approx(mean(walk, high), abs=10 * EXACT * width)


def test_columns_are_weighed_anew_from_draw_to_draw() -> None:
    """What the enumerations go over is not the plain mean of the columns."""
    walk = begun("graded, several columns", "sharp", ())
    surrogates = []
    while walk.left():
        predictor = walk.state.question.fold.predictor
        assert isinstance(predictor, CalibratedPredictor)
        surrogates.append(predictor._surrogate)
        walk.go(1)
    spreads = [float(np.ptp(surrogate)) for surrogate in surrogates]
    assert spreads[:2] == [0.0, 0.0]
    assert len(set(spreads)) > len(spreads) / 2, spreads


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["graded", "graded, below zero"])
def test_a_range_is_no_wider_than_the_losses_of_the_items_left_can_make_the_signal(
    name: str, stage: str
) -> None:
    walk = begun(name, "sharp", ())
    STAGES[stage](walk)
    possible: list[list[float]] = [[], []]
    for draw in coming(walk):
        signal = after(walk, draw).state.question.points[-1].plus
        for ends, loss in zip(possible, (walk.plan.lower, walk.plan.upper), strict=True):
            residual = (loss - signal.surrogate) / (walk.plan.items * draw.q)
            ends.append(signal.plug_in + residual)
    slack = 10 * EXACT * walk.plan.scale.width
    assert signal.signal_range.lower == pytest.approx(min(possible[0]), abs=slack)
    assert signal.signal_range.upper == pytest.approx(max(possible[1]), abs=slack)


def test_the_range_does_not_see_heavy_items() -> None:
    """The weight cancels in the signal: an item of any weight moves it as far as its stratum."""
    walk = begun("weighted", "uniform", ())
    walk.go(1)
    point = walk.state.question.points[-1]
    assert point.plus.signal_range.width <= 1.0 + EXACT


def stake(walk: Walk, risk: float) -> float:
    """Sum of the + stakes of the lowest candidate at or above ``risk``, over its start."""
    confidence_sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(confidence_sequence, LatticeSequence)
    lattice_side = confidence_sequence._lattice.sides[0]
    unit = (risk - walk.plan.lower) / walk.plan.scale.width
    place = int(np.flatnonzero(lattice_side._value >= unit)[0])
    return float(np.exp(lattice_side._stake[:, place]).sum())


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize(("precision", "ahead"), [(0.2, 1), (None, 1), (0.2, 3)])
@pytest.mark.parametrize(
    "name", [name for name in POOLS if name.startswith(("graded", "weighted"))]
)
def test_the_stake_of_a_candidate_above_the_risk_falls_in_the_mean(
    name: str, precision: float | None, ahead: int, hidden: tuple[int, ...]
) -> None:
    # With so small an alpha no candidate is rejected: what is looked at is the stake itself.
    walk = begun(name, "sharp", hidden, Claim(alpha=1e-9, precision=precision))
    risk = mean(walk, walk.completions()[0])
    while len(walk.left()) >= ahead:
        # Bets of draws ahead are fixed: fold all of them but the last, then look over that one.
        walk.draw(ahead - 1)
        branches = [(draw.q, after(walk, draw)) for draw in coming(walk)]
        if ahead > 1:
            walk.judge()
        before = stake(walk, risk)
        assert sum(q * stake(branch, risk) for q, branch in branches) <= before * (1.0 + 1e-9)
        if ahead == 1:
            walk.go(1)
