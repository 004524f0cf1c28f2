"""With known losses, or bounds, the interval loses the risk in no more than alpha of sessions."""

import numpy as np
import pytest

from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth, ever_missed, seed_of
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY


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
