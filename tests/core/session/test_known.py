"""Losses known before the first draw, and bounds of single losses.

They are observed at round 0: never drawn, in the plug-in part, the limits and the estimate. The
signal's mean stays the pool risk exactly, whatever policy, and with known losses alone the session
is the one on the other items, on a lattice that is wider by N / N_u.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.ledger import Draw
from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.sampling.proposals import KNOWN
from celeus.core.session.engine import strata_for
from celeus.errors import BoundContradicted, NothingToJudge, Refusal
from celeus.simulation.sessions import Truth
from tests.core.worlds import CONFIGURATIONS, SEED, after, coming, open_walk

EXACT = 1e-12
KNOWN_ITEMS = (0, 3, 7)
POLICIES = {name: one for name, one in CONFIGURATIONS.items() if one.recentred} | {
    "sharp": policy_named("sharp"),
    "uniform": policy_named("uniform"),
}
Floats = NDArray[np.float64]


def truth(
    scale: tuple[float, float], *, bounded: bool = False, items: int = 9, known: Iterable[int] = ()
) -> Truth:
    """Graded losses; of some the loss is known, of others bounds if ``bounded``."""
    chance, width = np.random.default_rng(5), scale[1] - scale[0]
    unit = np.append([0.0, 1.0], chance.random(items - 2))
    surrogate = scale[0] + width * chance.choice([0.0, 0.5, 1.0], items)
    weight = width * chance.random(items) ** 2
    loss = scale[0] + width * unit
    lower, upper = np.full(items, scale[0]), np.full(items, scale[1])
    if bounded:
        for item, (below, above) in {1: (0.5, 0.0), 2: (0.3, 0.2), 5: (0.3, 0.2)}.items():
            lower[item] = max(loss[item] - below * width, scale[0])
            upper[item] = min(loss[item] + above * width, scale[1])
    at = list(known) or list(KNOWN_ITEMS)
    lower[at] = upper[at] = loss[at]
    return Truth(loss, Scores(surrogate, weight, lower=lower, upper=upper), *scale)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_exhaustion_is_the_last_item_not_known_and_the_answer_is_exact(
    policy: str, *, bounded: bool
) -> None:
    walk = open_walk(truth((-3.0, 5.0), bounded=bounded), POLICIES[policy])
    assert walk.plan.drawable == walk.plan.budget == 6
    assert (walk.state.question.proposal.drawn_in == KNOWN).nonzero()[0].tolist() == list(
        KNOWN_ITEMS
    )
    before = walk.state.question.interval
    limits = walk.truth.scores.bounds
    assert limits is not None
    assert before.lower == pytest.approx(limits.lower.mean())
    assert before.upper == pytest.approx(limits.upper.mean())
    walk.go(6)
    risk = float(walk.truth.loss.mean())
    assert walk.state.stop_reason == "exhausted"
    assert walk.state.question.interval.lower == pytest.approx(risk, abs=1e-12)
    assert walk.state.question.interval.upper == pytest.approx(risk, abs=1e-12)
    assert walk.state.question.estimate == pytest.approx(risk, abs=1e-9)


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
def test_known_losses_are_the_same_as_a_session_on_the_others(policy: str) -> None:
    """The interval maps by v -> (known sum + N_u v) / N, precision and lattice with it."""
    chance = np.random.default_rng(8)
    items, known = 400, 100
    loss = (chance.random(items) < 0.4).astype(np.float64)
    surrogate = chance.choice([0.1, 0.3, 0.5, 0.9], items)
    lower, upper = np.zeros(items), np.ones(items)
    # At the end, so that the others keep their places in every random order.
    lower[-known:] = upper[-known:] = loss[-known:]
    whole = Truth(loss, Scores(surrogate, np.zeros(items), lower=lower, upper=upper))
    others = Truth(loss[:-known], Scores(surrogate[:-known], np.zeros(items - known)))
    precision, share = 0.12, items / (items - known)
    one = open_walk(whole, policy_named(policy), Claim(precision=precision))
    other = open_walk(others, policy_named(policy), Claim(precision=precision * share))
    left = items - known
    total = float(loss[-known:].sum())
    for _ in range(60):
        one.go(1)
        draw = one.events[-2]
        assert isinstance(draw, Draw)
        other.enter(draw)
        other.judge()
        mine, theirs = one.state.question.points[-1], other.state.question.points[-1]
        mapped = (total + left * theirs.plus.signal) / items
        assert mine.plus.signal == pytest.approx(mapped, abs=1e-9)
        assert mine.interval.lower == pytest.approx(
            (total + left * theirs.interval.lower) / items, abs=2e-3
        )
        assert mine.interval.upper == pytest.approx(
            (total + left * theirs.interval.upper) / items, abs=2e-3
        )


@pytest.mark.parametrize("policy", POLICIES)
def test_an_audit_believes_nothing(policy: str) -> None:
    claim = Claim(precision=0.2, audit=True)
    world = truth((0.0, 1.0), bounded=True)
    wrong = world.scores.lower
    assert wrong is not None
    # What was stated of item 3 is not so.
    lied = Truth(np.where(np.arange(9) == 3, 1.0 - world.loss, world.loss), world.scores)
    walk = open_walk(lied, POLICIES[policy], claim)
    assert walk.plan.drawable == 9
    means = sum(
        draw.q * after(walk, draw).state.question.points[-1].plus.signal for draw in coming(walk)
    )
    assert means == pytest.approx(lied.loss.mean(), abs=EXACT)
    walk.go(9)
    assert walk.state.question.interval.lower == pytest.approx(lied.loss.mean(), abs=EXACT)
    assert walk.plan.to_dict()["audit"] is True


def test_a_plan_says_what_was_known_and_why() -> None:
    world = truth((0.0, 1.0), bounded=True)
    plan = make_plan(Claim(), world.facts, policy_named("sharp"), commitment(SEED))
    stated = plan.to_dict()["known"]
    assert stated["items"] == 3
    assert stated["bounded"] == 3
    assert stated["reasons"] == {"known": 3}
    assert stated["total"] == pytest.approx(world.loss[list(KNOWN_ITEMS)].sum())
    assert Plan.from_dict(plan.to_dict()) == plan
    bare = make_plan(Claim(), replace(world.facts, known=None), plan.policy, commitment(SEED))
    assert not {"known", "audit"} & set(bare.to_dict())


def test_what_makes_no_sense_is_refused_by_name() -> None:
    world = truth((0.0, 1.0), known=range(9))
    with pytest.raises(NothingToJudge, match="exact"):
        open_walk(world, policy_named("sharp"))
    assert open_walk(world, policy_named("sharp"), Claim(audit=True)).plan.drawable == 9
    some = truth((0.0, 1.0))
    for claim, policy, field in (
        (Claim(budget=7), policy_named("sharp"), "budget"),
        (Claim(), policy_named("evalue", recentred=False), "policy"),
    ):
        with pytest.raises(Refusal) as refused:
            open_walk(some, policy, claim)
        assert refused.value.field == field
    plain = Truth(some.loss, Scores(some.scores.surrogate, some.scores.weight))
    with pytest.raises(Refusal, match="audit"):
        open_walk(plain, policy_named("sharp"), Claim(audit=True))
    bounds = truth((0.0, 1.0), bounded=True).scores.bounds
    assert bounds is not None
    bounds.check(2, bounds.of(2).upper)
    with pytest.raises(BoundContradicted):
        bounds.check(2, bounds.of(2).upper + 0.01)


def test_many_bounds_still_make_few_strata() -> None:
    chance, items = np.random.default_rng(1), 2000
    lower = chance.random(items) * 0.3
    upper = 1.0 - chance.random(items) * 0.3
    loss = lower + (upper - lower) * chance.random(items)
    scores = Scores(chance.random(items), np.zeros(items), lower=lower, upper=upper)
    walk = open_walk(Truth(loss, scores), policy_named("sharp"), Claim(precision=0.1))
    walk.go(50)
    strata = strata_for(walk.plan, scores)
    assert strata.count <= 40
    assert (strata.lower[strata.code] <= lower).all()
    assert (strata.upper[strata.code] >= upper).all()
