"""With known losses and bounds of others the mean signal is the pool risk, over every next draw.

And the interval loses the risk in no more than alpha of many sessions.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth, ever_missed, seed_of
from tests.claims.sessions import credible
from tests.core.session.test_known import (
    EXACT,
    KNOWN_ITEMS,
    POLICIES,
    Floats,
    after,
    coming,
    truth,
)
from tests.core.worlds import Walk, open_walk
from tests.nightly import NIGHTLY

SCALES = {"unit scale": (0.0, 1.0), "scale below zero": (-3.0, 5.0)}


def completions(walk: Walk) -> tuple[Floats, Floats]:
    """Losses where nobody can judge: the ends of each item's own bounds."""
    bounds, hidden = walk.truth.scores.bounds, list(walk.hidden)
    assert bounds is not None
    low, high = walk.truth.loss.copy(), walk.truth.loss.copy()
    low[hidden], high[hidden] = bounds.lower[hidden], bounds.upper[hidden]
    return low, high


def draws_ahead(walk: Walk) -> None:
    walk.go(1)
    walk.draw(2)


STAGES: dict[str, Callable[[Walk], None]] = {
    "untouched": lambda _: None,
    "midway": lambda walk: walk.go(3),
    "draws ahead": draws_ahead,
    "last item": lambda walk: walk.go(5),
}


@pytest.mark.parametrize("bounded", [False, True], ids=["known alone", "bounds too"])
@pytest.mark.parametrize("hidden", [(), (1, 4)], ids=["all judged", "two unjudgeable"])
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_mean_signal_is_the_pool_risk(
    policy: str,
    stage: str,
    scale: tuple[float, float],
    hidden: tuple[int, ...],
    bounded: bool,  # noqa: FBT001 -- a parameter of a test
) -> None:
    width = scale[1] - scale[0]
    claim = Claim("pool", 0.05, 0.2 * width)
    walk = open_walk(truth(scale, bounded=bounded), POLICIES[policy], claim, hidden=hidden)
    STAGES[stage](walk)
    draws = coming(walk)
    assert {draw.item for draw in draws}.isdisjoint(KNOWN_ITEMS)
    assert math.fsum(draw.q for draw in draws) == pytest.approx(1.0, abs=EXACT)
    means = [0.0, 0.0]
    for draw in draws:
        point = after(walk, draw).state.question.points[-1]
        means[0] += draw.q * point.plus.signal
        means[1] += draw.q * point.minus.signal
        assert point.plus.signal_range.lower <= point.plus.signal + EXACT * width
        assert point.minus.signal <= point.minus.signal_range.upper + EXACT * width
    low, high = completions(walk)
    assert means[0] == pytest.approx(low.mean(), abs=10 * EXACT * width)
    assert means[1] == pytest.approx(high.mean(), abs=10 * EXACT * width)


@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize("kind", ["known", "bounds"])
def test_the_interval_holds_the_risk(kind: str, target: str) -> None:
    missed = 0
    sessions = 400 if NIGHTLY else 24
    for number in range(sessions):
        chance = np.random.default_rng([number, 12])
        items = 150
        surrogate = chance.random(items)
        loss = (chance.random(items) < 0.6 * surrogate).astype(np.float64)
        lower, upper = np.zeros(items), np.ones(items)
        if kind == "known":
            known = chance.random(items) < 0.4
            lower[known] = upper[known] = loss[known]
        else:
            loss = 0.5 * loss + 0.25 * chance.integers(0, 3, items)
            lower = np.where(loss >= 0.5, 0.5 * chance.integers(0, 2, items), 0.0)
            upper = np.where(loss <= 0.75, 1.0 - 0.25 * chance.integers(0, 2, items), 1.0)
        world = Truth(loss, Scores(surrogate, np.zeros(items), lower=lower, upper=upper))
        seed = seed_of(number, 12)
        claim = Claim(target, 0.05, 0.1 if target == "pool" else 0.3)  # type: ignore[arg-type]
        plan = make_plan(claim, world.facts, policy_named("sharp"), commitment(seed))
        state = begin_mean(plan, world.scores, seed)
        for _ in judge_rounds(state, world.loss_of, past_stop=target == "pool"):
            pass
        risk = float(loss.mean()) if target == "pool" else (0.3 if kind == "known" else 0.4)
        missed += ever_missed(state, risk)
    assert credible(missed, sessions)
