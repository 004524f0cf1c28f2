"""With weights the mean signal is the weighted mean loss, over every next draw.

Beside known losses and bounds, with draws ahead of losses, whatever nobody can judge; and the stake
of a true candidate never grows in the mean, though the weights differ by a factor of a million.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.weights import relative
from celeus.simulation.sessions import Truth
from tests.core.session.test_known import EXACT, coming, truth
from tests.core.session.test_known import after as judged_after
from tests.core.session.test_sharp_enumeration import stake
from tests.core.worlds import Floats, Walk, open_walk

SCALES = {"unit scale": (0.0, 1.0), "scale below zero": (-3.0, 5.0)}
WEIGHT = np.array([2.0, 1e3, 0.5, 1.0, 7.0, 1e-3, 3.0, 40.0, 0.2])
STATED = ("nothing", "known", "bounds", "known but audited")


def weighted(scale: tuple[float, float], stated: str) -> Truth:
    """Nine items with the losses of ``test_known``, whatever is stated of them."""
    made = truth(scale, bounded=stated == "bounds")
    scores, item_weight = made.scores, relative(WEIGHT)
    ends = {} if stated == "nothing" else {"lower": scores.lower, "upper": scores.upper}
    return Truth(
        made.loss,
        Scores(scores.surrogate, scores.weight, **ends, item_weight=item_weight),  # type: ignore[arg-type]
        *scale,
    )


def mean(walk: Walk, losses: Floats) -> float:
    return float(np.average(losses, weights=walk.truth.scores.item_weight))


def completions(walk: Walk) -> tuple[Floats, Floats]:
    """Losses where nobody can judge: the ends of each item's own bounds, or of the scale."""
    bounds, hidden = walk.truth.scores.bounds, list(walk.hidden)
    if bounds is None or walk.plan.audit:
        return walk.completions()
    low, high = walk.truth.loss.copy(), walk.truth.loss.copy()
    low[hidden], high[hidden] = bounds.lower[hidden], bounds.upper[hidden]
    return low, high


def draws_ahead(walk: Walk) -> None:
    walk.go(1)
    walk.draw(2)


def losses_out_of_order(walk: Walk) -> None:
    walk.draw(4)
    walk.judge([3, 1])


STAGES: dict[str, Callable[[Walk], None]] = {
    "untouched": lambda _: None,
    "midway": lambda walk: walk.go(3),
    "draws ahead": draws_ahead,
    "losses out of order": losses_out_of_order,
    "last item": lambda walk: walk.go(len(walk.left()) - 1),
}


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("hidden", [(), (1, 4)], ids=["all judged", "two unjudgeable"])
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("policy", ["sharp", "uniform"])
def test_the_mean_signal_is_the_weighted_mean_loss(
    policy: str, stage: str, scale: tuple[float, float], hidden: tuple[int, ...], stated: str
) -> None:
    width = scale[1] - scale[0]
    claim = Claim("pool", 0.05, 0.2 * width, audit="audited" in stated)
    walk = open_walk(weighted(scale, stated), policy_named(policy), claim, hidden=hidden)
    STAGES[stage](walk)
    draws = coming(walk)
    assert math.fsum(draw.q for draw in draws) == pytest.approx(1.0, abs=EXACT)
    means = [0.0, 0.0]
    ranges = set()
    for draw in draws:
        point = judged_after(walk, draw).state.question.points[-1]
        means[0] += draw.q * point.plus.signal
        means[1] += draw.q * point.minus.signal
        slack = EXACT * (width + point.plus.signal_range.width)
        assert point.plus.signal_range.lower <= point.plus.signal + slack
        assert point.minus.signal <= point.minus.signal_range.upper + slack
        ranges.add((point.plus.signal_range, point.minus.signal_range))
    assert len(ranges) == 1
    low, high = completions(walk)
    assert means[0] == pytest.approx(mean(walk, low), abs=10 * EXACT * width)
    assert means[1] == pytest.approx(mean(walk, high), abs=10 * EXACT * width)


def test_the_range_does_not_see_heavy_items() -> None:
    """The weight cancels in the signal: an item of any weight moves it as far as its stratum."""
    walk = open_walk(weighted((0.0, 1.0), "nothing"), policy_named("uniform"), Claim(precision=0.2))
    walk.go(1)
    point = walk.state.question.points[-1]
    assert point.plus.signal_range.width <= 1.0 + EXACT


@pytest.mark.parametrize("hidden", [(), (1, 4)], ids=["all judged", "two unjudgeable"])
@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("stated", STATED)
def test_the_stake_of_a_candidate_above_the_risk_falls_in_the_mean(
    stated: str, ahead: int, hidden: tuple[int, ...]
) -> None:
    # With so small an alpha no candidate is rejected: what is looked at is the stake itself.
    claim = Claim("pool", 1e-9, 0.2, audit="audited" in stated)
    walk = open_walk(weighted((0.0, 1.0), stated), policy_named("sharp"), claim, hidden=hidden)
    risk = mean(walk, completions(walk)[0])
    while len(walk.left()) >= ahead:
        # Bets of draws ahead are fixed: fold all of them but the last, then look over that one.
        walk.draw(ahead - 1)
        branches = [(draw.q, judged_after(walk, draw)) for draw in coming(walk)]
        if ahead > 1:
            walk.judge()
        before = stake(walk, risk)
        assert sum(q * stake(one, risk) for q, one in branches) <= before * (1.0 + 1e-9)
        if ahead == 1:
            walk.go(1)
