"""Items that count differently: refusals, equal weights, exhaustion, what is left of a stratum."""

import json
import math
from typing import Any

import numpy as np
import pytest

from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.weights import relative
from celeus.core.randomness import commitment
from celeus.core.sampling.proposals import StratifiedProposal
from celeus.core.sampling.remainder import StrataLeft
from celeus.core.session.engine import copied_fold
from celeus.core.session.mean import Mean
from celeus.core.session.points import Points
from celeus.core.session.session import Session, begin_mean, judge_rounds
from celeus.errors import InvalidValue
from celeus.simulation.sessions import Truth
from tests.core.worlds import SEED, Floats

SHARP = policy_named("sharp")
CLAIM = Claim(precision=0.1)


def world(weight: Floats | None, **bounds: Any) -> Truth:  # noqa: ANN401 -- arrays of the scores
    chance = np.random.default_rng(4)
    items = 300 if weight is None else weight.size
    surrogate = chance.choice([0.1, 0.4, 0.8], items)
    loss = (chance.random(items) < surrogate).astype(np.float64)
    item_weight = None if weight is None else relative(weight)
    return Truth(loss, Scores(surrogate, np.zeros(items), item_weight=item_weight, **bounds))


def watched(truth: Truth, policy: str = "sharp") -> tuple[Plan, Session[Mean]]:
    """A session that went on until nothing was left to draw."""
    plan = make_plan(CLAIM, truth.facts, policy_named(policy), commitment(SEED))
    state = begin_mean(plan, truth.scores, SEED)
    for _ in judge_rounds(state, truth.loss_of, past_stop=True):
        pass
    return plan, state


HEAVY = np.random.default_rng(9).lognormal(0.0, 2.0, 300)


def test_equal_weights_are_none() -> None:
    one, other = (watched(world(weight))[1] for weight in (None, np.full(300, 3.0)))
    assert one.rounds == other.rounds
    assert one.question.points == other.question.points


def test_only_ratios_of_weights_matter() -> None:
    one, other = (watched(world(weight))[1] for weight in (HEAVY, 8.0 * HEAVY))
    assert one.question.points == other.question.points


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
def test_at_exhaustion_the_answer_is_the_weighted_mean(policy: str) -> None:
    truth = world(np.append(HEAVY[:-1], 1e-8 * HEAVY.max()))
    _, state = watched(truth, policy)
    assert state.stop_reason in {"target_reached", "exhausted"}
    for end in (
        state.question.interval.lower,
        state.question.interval.upper,
        state.question.estimate,
    ):
        assert end == pytest.approx(truth.risk, abs=1e-12)
    assert truth.risk != pytest.approx(truth.loss.mean(), abs=1e-3)


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_losses_that_are_all_the_same_leave_a_candidate(loss: float) -> None:
    truth = world(HEAVY)
    _, state = watched(Truth(np.full(300, loss), truth.scores))
    assert not state.question.fold.emptied
    assert state.question.interval.lower == pytest.approx(loss)


def test_known_losses_count_by_weight() -> None:
    plain = world(HEAVY)
    known = np.arange(300) % 3 == 0
    lower, upper = np.where(known, plain.loss, 0.0), np.where(known, plain.loss, 1.0)
    truth = world(HEAVY, lower=lower, upper=upper)
    plan, state = watched(truth)
    assert plan.known is not None
    expected = math.fsum(relative(HEAVY)[known] * truth.loss[known])
    assert plan.known.total == pytest.approx(expected)
    assert state.question.interval.lower == pytest.approx(truth.risk, abs=1e-12)


def test_a_plan_with_weights_survives_the_way_through_json() -> None:
    plan, _ = watched(world(HEAVY))
    assert plan.weights is not None
    assert plan.weights.effective_items == pytest.approx(HEAVY.sum() ** 2 / (HEAVY**2).sum())
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


REFUSED: dict[str, tuple[Claim, str, str, Floats]] = {
    "population": (Claim("population", precision=0.2), "sharp", "target", HEAVY),
    "published": (CLAIM, "celeus", "policy", HEAVY),
    "evalue": (CLAIM, "evalue", "policy", HEAVY),
    "ratio": (CLAIM, "sharp", "weight", np.append(HEAVY, 1.1e9 * HEAVY.min())),
}


@pytest.mark.parametrize(("claim", "policy", "field", "weight"), REFUSED.values(), ids=REFUSED)
def test_what_weights_do_not_go_with_is_refused(
    claim: Claim, policy: str, field: str, weight: Floats
) -> None:
    with pytest.raises(InvalidValue) as refusal:
        make_plan(claim, world(weight).facts, policy_named(policy), "")
    assert refusal.value.field == field


def test_copies_of_a_fold_share_the_weights() -> None:
    """A correction keeps dozens of copies, and a pool may have a million items."""
    _, state = watched(world(HEAVY))
    copied = copied_fold(state.question.engine, state.question.fold, Points())
    assert copied.remainder.item_weight is state.question.fold.remainder.item_weight
    assert copied.remainder.weight is not state.question.fold.remainder.weight


def test_a_stratum_is_empty_by_count() -> None:
    weight = np.array([1e8, 1.0, 0.2, 0.3, 1e8 / 3.0])
    scores = Scores(np.full(5, 0.5), np.zeros(5), item_weight=relative(weight))
    plan = make_plan(CLAIM, Truth(np.zeros(5), scores).facts, SHARP, "")
    proposal = begin_mean(plan, scores, SEED).question.proposal
    assert isinstance(proposal, StratifiedProposal)
    left = StrataLeft(proposal._strata)
    for at, item in enumerate([0, 4, 1, 3]):
        left.take(item)
        rest = math.fsum(np.delete(relative(weight), [0, 4, 1, 3][: at + 1]))
        assert left.weight.sum() == pytest.approx(rest, rel=1e-9)
    left.take(2)
    assert left.weight.tolist() == [0.0]
