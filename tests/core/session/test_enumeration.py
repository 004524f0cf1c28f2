"""The strongest claims: over every possible draw, the signal's mean is exactly the pool risk.

An item that nobody can judge has the smallest loss on the ``plus`` side and the largest on the
``minus`` side: the means are the risks of the two completions.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from celeus.core.betting.published import CellSequence
from celeus.core.betting.signals import Range
from celeus.core.ledger import Draw, Observation, Unjudgeable
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import Policy, policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.session.points import Point
from celeus.simulation.sessions import Truth
from tests.core.worlds import CONFIGURATIONS, Walk, open_walk, small_truth

EXACT = 1e-12

Prepare = Callable[[Walk], None]


def untouched(walk: Walk) -> None:
    del walk


def midway(walk: Walk) -> None:
    walk.go(3)


def draws_ahead_of_losses(walk: Walk) -> None:
    walk.go(1)
    walk.draw(3)


def losses_out_of_order(walk: Walk) -> None:
    walk.draw(4)
    walk.judge([3, 1])


def near_exhaustion(walk: Walk) -> None:
    walk.go(5)


def last_item(walk: Walk) -> None:
    walk.go(6)


def positive_scores_run_out(walk: Walk) -> None:
    positive = np.flatnonzero(walk.mixture.weight > 0.0)
    for item in positive[: walk.plan.items - 1]:
        q = walk.mixture.probability(int(item))
        walk.enter(Draw(walk.state.drawn + 1, int(item), q, walk.state.sequence))
    walk.judge()


def one_tiny_score_left(walk: Walk) -> None:
    weight = walk.mixture.weight
    for item in np.flatnonzero(weight > 1e-9)[: walk.plan.items - 1]:
        q = walk.mixture.probability(int(item))
        walk.enter(Draw(walk.state.drawn + 1, int(item), q, walk.state.sequence))


STAGES: dict[str, Prepare] = {
    prepare.__name__: prepare
    for prepare in (
        untouched,
        midway,
        draws_ahead_of_losses,
        losses_out_of_order,
        near_exhaustion,
        last_item,
        positive_scores_run_out,
        one_tiny_score_left,
    )
}

TRUTHS = {
    "unit scale": small_truth(),
    "other scale": small_truth(lower=-1.0, upper=2.0, seed=2),
    "far from zero": small_truth(lower=1e4, upper=1e4 + 1.0, seed=3),
    "zero scores": Truth(
        small_truth().loss, Scores(small_truth().scores.surrogate, np.zeros(7), None)
    ),
}
HIDDEN = {"all judged": (), "two unjudgeable": (2, 5)}


def every_next_round(walk: Walk) -> list[tuple[float, Point]]:
    """Each possible coming draw with its probability, and the point after folding it."""
    found = []
    for item in walk.left():
        branch = walk.branch()
        q = branch.mixture.probability(item)
        branch.enter(Draw(branch.state.drawn + 1, item, q, branch.state.sequence))
        unjudged = [one.draw.round for one in branch.state.rounds if one.answered_at == 0]
        branch.judge(unjudged)
        assert branch.state.folded == branch.state.drawn
        found.append((q, branch.state.question.points[-1]))
    return found


@pytest.mark.parametrize("policy", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_the_mean_signal_over_every_draw_is_the_pool_risk(policy: Policy) -> None:
    for case in product(STAGES.values(), TRUTHS.values(), HIDDEN.values()):
        assert_signal_is_risk(policy, *case)


def assert_signal_is_risk(
    policy: Policy, stage: Prepare, truth: Truth, hidden: tuple[int, ...]
) -> None:
    walk = open_walk(truth, policy, hidden=hidden)
    stage(walk)
    rounds = every_next_round(walk)
    assert math.fsum(q for q, _ in rounds) == pytest.approx(1.0, abs=EXACT)
    low, high = walk.completions()
    scale = max(1.0, abs(truth.upper), abs(truth.lower))
    plus = math.fsum(q * point.plus.signal for q, point in rounds)
    minus = math.fsum(q * point.minus.signal for q, point in rounds)
    assert plus == pytest.approx(math.fsum(low) / low.size, abs=EXACT * scale)
    assert minus == pytest.approx(math.fsum(high) / high.size, abs=EXACT * scale)


@pytest.mark.parametrize("policy", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_no_item_and_no_loss_takes_the_signal_out_of_its_range(policy: Policy) -> None:
    for case in product(STAGES.values(), TRUTHS.values()):
        assert_signal_is_in_range(policy, *case)


def assert_signal_is_in_range(policy: Policy, stage: Prepare, truth: Truth) -> None:
    walk = open_walk(truth, policy)
    stage(walk)
    walk.judge([one.draw.round for one in walk.state.rounds if one.answered_at == 0])
    ranges: set[Range] = set()
    for item in walk.left():
        q = walk.mixture.probability(item)
        for judged in (truth.lower, truth.upper, None):
            branch = walk.branch()
            coming = branch.state.drawn + 1
            branch.enter(Draw(coming, item, q, branch.state.sequence))
            branch.enter(Unjudgeable(coming) if judged is None else Observation(coming, judged))
            point = branch.state.question.points[-1]
            ranges.add(point.plus.signal_range)
            for seen in (point.plus, point.minus):
                slack = 1e-9 * (1.0 + abs(seen.signal))
                assert (
                    seen.signal_range.lower - slack
                    <= seen.signal
                    <= seen.signal_range.upper + slack
                )
    # Neither the item nor its loss had a say in the range.
    assert len(ranges) <= 1


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_an_exact_range_is_reached_at_both_ends_and_lies_in_the_others(stage: Prepare) -> None:
    ends = {}
    for kind in ("exact", "floor", "global"):
        name = "celeus" if kind == "floor" else f"celeus {kind}"
        walk = open_walk(small_truth(), CONFIGURATIONS[name])
        stage(walk)
        walk.judge([one.draw.round for one in walk.state.rounds if one.answered_at == 0])
        signals, possible = [], None
        for item in walk.left():
            for loss in (0.0, 1.0):
                branch = walk.branch()
                coming = branch.state.drawn + 1
                q = branch.mixture.probability(item)
                branch.enter(Draw(coming, item, q, 0))
                branch.enter(Observation(coming, loss))
                possible = branch.state.question.points[-1].plus.signal_range
                signals.append(branch.state.question.points[-1].plus.signal)
        assert possible is not None
        ends[kind] = possible
        if kind == "exact":
            assert possible.lower == pytest.approx(min(signals), abs=EXACT * possible.width)
            assert possible.upper == pytest.approx(max(signals), abs=EXACT * possible.width)
    for wider in ("floor", "global"):
        assert ends[wider].lower <= ends["exact"].lower + EXACT
        assert ends[wider].upper >= ends["exact"].upper - EXACT


def mixed_wealth(walk: Walk, risk: float) -> float | None:
    """Mixture wealth of the cell that holds ``risk``, None when it is out."""
    confidence_sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(confidence_sequence, CellSequence)
    wealth = confidence_sequence.wealth
    holding = (wealth._lower <= risk) & (risk <= wealth._upper)
    if not holding.any():
        return None
    at = int(np.flatnonzero(holding)[0])
    theta = walk.plan.policy.theta
    return float(theta * np.exp(wealth._above[at]) + (1.0 - theta) * np.exp(wealth._below[at]))


SUPERMARTINGALES = [name for name in CONFIGURATIONS if name != "evalue authors"]


@pytest.mark.parametrize("name", SUPERMARTINGALES)
def test_wealth_of_the_cell_that_holds_the_risk_falls_in_the_mean(name: str) -> None:
    for case in product(TRUTHS.values(), HIDDEN.values()):
        assert_wealth_falls(name, *case)


def assert_wealth_falls(name: str, truth: Truth, hidden: tuple[int, ...]) -> None:
    # With so small an alpha no cell is rejected: what is looked at is wealth itself.
    claim = Claim(alpha=1e-9, precision=0.02 * (truth.upper - truth.lower))
    walk = open_walk(truth, CONFIGURATIONS[name], claim, hidden=hidden)
    low, high = walk.completions()
    risks = (
        math.fsum(low) / low.size,
        math.fsum(truth.loss) / low.size,
        math.fsum(high) / low.size,
    )
    while walk.left():
        branches = []
        for item in walk.left():
            branch = walk.branch()
            q = branch.mixture.probability(item)
            branch.enter(Draw(branch.state.drawn + 1, item, q, 0))
            branch.judge()
            branches.append((q, branch))
        for risk in risks:
            before = mixed_wealth(walk, risk)
            assert before is not None
            mean = 0.0
            for q, branch in branches:
                after = mixed_wealth(branch, risk)
                assert after is not None
                mean += q * after
            assert mean <= before * (1.0 + 1e-9)
        walk.go(1)


def test_the_authors_form_of_evalue_is_no_supermartingale() -> None:
    """It ignores that items are drawn without replacement; and so the test above can fail."""
    loss = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    truth = Truth(loss, Scores(np.zeros(6), np.zeros(6), None))
    policy = policy_named("evalue", recentred=False, theta=0.01)
    walk = open_walk(truth, policy, Claim(alpha=1e-9))
    for number, item in enumerate((0, 1, 2), start=1):
        walk.enter(Draw(number, item, walk.mixture.probability(item), 0))
    walk.judge()
    before = mixed_wealth(walk, 0.5)
    mean = 0.0
    for item in walk.left():
        branch = walk.branch()
        branch.enter(Draw(4, item, 1.0 / 3.0, 0))
        branch.judge()
        after = mixed_wealth(branch, 0.5)
        assert after is not None
        mean += after / 3.0
    assert before is not None
    assert mean > before * 1.01
