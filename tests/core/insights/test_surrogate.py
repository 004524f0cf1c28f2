"""What a surrogate is worth: the same numbers by another way, enumeration, and real runs."""

from dataclasses import replace
from itertools import permutations
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.insights.surrogate import JudgedRounds, SurrogateDiagnostics, diagnose, refit
from celeus.core.ledger import Amendment
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.strata import strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.weights import relative
from celeus.core.sampling.calibration import Narrowing
from celeus.core.sampling.predictors import CalibratedPredictor
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session
from celeus.simulation.sessions import Truth, seed_of, simulate
from tests.core.worlds import Walk, open_walk, zero_one_truth

Floats = NDArray[np.float64]
SHARP = policy_named("sharp")


def judged_of(state: Session[Mean], lower: float = 0.0, width: float = 1.0) -> JudgedRounds:
    """The folded rounds of a state with their losses on the unit scale."""
    rounds = [one for one in state.rounds[: state.folded] if isinstance(one.loss, float)]
    return JudgedRounds(
        items=state.plan.drawable,
        folded=state.folded,
        round=np.array([one.draw.round for one in rounds], dtype=np.int64),
        item=np.array([one.draw.item for one in rounds], dtype=np.int64),
        q=np.array([one.draw.q for one in rounds]),
        loss=(np.array([one.loss for one in rounds], dtype=np.float64) - lower) / width,
        drawn=np.array(state.rounds.item[: state.folded], dtype=np.int64),
    )


def worth_of(walk: Walk) -> SurrogateDiagnostics:
    scale = walk.plan.scale
    judged = judged_of(walk.state, scale.lower, scale.width)
    return diagnose(walk.plan, walk.truth.scores, judged)


def scored(surrogate: Floats) -> Scores:
    return Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None)


def told(kind: Literal["good", "useless", "biased"], items: int) -> Truth:
    """0-1 losses of which the surrogate knows much, nothing, or much and too high."""
    rng = np.random.default_rng(1)
    surrogate = rng.beta(0.4, 1.2, items)
    chance = {"good": surrogate, "useless": np.full(items, 0.3), "biased": 0.4 * surrogate}[kind]
    return Truth((rng.random(items) < chance).astype(np.float64), scored(surrogate))


def eventful(truth: Truth) -> Walk:
    walk = open_walk(truth, SHARP, Claim("pool", precision=0.2), hidden=(3, 50, 111))
    walk.go(60)
    walk.draw(5)
    walk.judge([65, 62, 63, 61, 64])
    walk.enter(Amendment(7, 1.0 - float(truth.loss[walk.state.rounds[6].draw.item])))
    walk.enter(Amendment(30, None))
    walk.go(40)
    return walk


def weighted(truth: Truth) -> Truth:
    """The same pool with items of very different weights."""
    weight = relative(np.random.default_rng(3).lognormal(0.0, 1.5, truth.loss.size))
    return replace(truth, scores=replace(truth.scores, item_weight=weight))


@pytest.mark.parametrize("truth", [zero_one_truth(300), weighted(zero_one_truth(300))])
def test_hindsight_finds_the_surrogates_that_bets_use_now(truth: Truth) -> None:
    walk = eventful(truth)
    state, predictor = walk.state, walk.state.question.fold.predictor
    assert isinstance(predictor, CalibratedPredictor)
    judged = judged_of(state)
    assert len(judged.round) < state.folded
    strata = strata_of(walk.truth.scores, walk.plan.scale)
    share = np.bincount(strata.code, weights=strata.item_weight, minlength=strata.count)
    assert walk.plan.half is not None
    narrowing = Narrowing(share / share.sum(), walk.plan.half)
    found = narrowing.cut(refit(strata, judged))
    np.testing.assert_allclose(found, predictor.fit.mean, rtol=1e-12)


@pytest.mark.parametrize("drawn", [1, 2, 3, 4])
def test_weighted_means_are_unbiased_over_every_possible_draw(drawn: int) -> None:
    score, beta, value = np.array([0.1, 3.0, 0.5, 1.2]), 0.4, np.array([0.2, 0.9, 0.4, 0.7])
    expected = total = 0.0
    for order in permutations(range(4), drawn):
        left, chance, q = [0, 1, 2, 3], 1.0, []
        for item in order:
            q.append((1 - beta) * score[item] / score[left].sum() + beta / len(left))
            chance *= q[-1]
            left.remove(item)
        items = np.array(order)
        judged = JudgedRounds(
            4, drawn, np.arange(1, drawn + 1), items, np.array(q), value[items], items
        )
        assert (judged.weight >= 0.0).all()
        expected += chance * float(np.mean(judged.weight * judged.loss))
        total += chance
    assert total == pytest.approx(1.0)
    assert expected == pytest.approx(float(value.mean()))


def test_an_exhausted_pool_is_told_exactly() -> None:
    truth = zero_one_truth(120)
    walk = open_walk(truth, SHARP, Claim("pool", precision=0.2))
    walk.go(120)
    found = worth_of(walk)
    assert found.loss == pytest.approx(float(truth.loss.mean()))
    for parts in (found.curve, found.strata):
        assert sum(part.items for part in parts) == sum(part.labels for part in parts) == 120
        assert all(part.low == part.loss == part.high for part in parts)
    surrogate = truth.scores.surrogate
    for part in found.curve:
        here = (part.least <= surrogate) & (surrogate <= part.largest)
        assert int(here.sum()) == part.items
        assert part.surrogate == pytest.approx(float(surrogate[here].mean()))
        assert part.loss == pytest.approx(float(truth.loss[here].mean()))


def test_parts_are_told_on_the_scale_of_the_losses() -> None:
    unit = told("good", 400)
    wide = Truth(
        5.0 * unit.loss - 2.0,
        Scores(5.0 * unit.scores.surrogate - 2.0, unit.scores.weight, None),
        lower=-2.0,
        upper=3.0,
    )
    one = open_walk(unit, SHARP, Claim("pool", precision=0.2))
    other = open_walk(wide, SHARP, Claim("pool", precision=1.0))
    for walk in (one, other):
        walk.go(80)
    small, large = worth_of(one), worth_of(other)
    assert large.correlation == pytest.approx(small.correlation)
    for part, wider in zip(small.curve, large.curve, strict=True):
        assert (part.items, part.labels) == (wider.items, wider.labels)
        for name in ("least", "largest", "surrogate", "used", "loss", "low", "high"):
            value, wanted = getattr(wider, name), getattr(part, name)
            assert (value is None) == (wanted is None)
            assert wanted is None or value == pytest.approx(5.0 * wanted - 2.0)


@pytest.mark.parametrize("kind", ["good", "useless"])
def test_the_correlation_is_that_of_the_whole_pool(kind: Literal["good", "useless"]) -> None:
    truth = told(kind, 1500)
    _, state = simulate(truth, SHARP, Claim("pool", precision=0.12), seed_of(7, 0))
    plan = open_walk(truth, SHARP, Claim("pool", precision=0.12)).plan
    found = diagnose(plan, truth.scores, judged_of(state))
    whole = float(np.corrcoef(truth.scores.surrogate, truth.loss)[0, 1])
    assert found.correlation == pytest.approx(whole, abs=0.15)


@pytest.mark.parametrize("name", ["celeus", "no_surrogate", "evalue", "uniform"])
def test_every_policy_can_be_asked(name: str) -> None:
    truth = told("good", 400)
    walk = open_walk(truth, policy_named(name), Claim("pool", precision=0.2))
    walk.go(150)
    found = worth_of(walk)
    assert found.labels == 150
    assert (found.strata == ()) == (name != "uniform")


def test_without_labels_and_with_labels_all_alike_nothing_is_said_of_losses() -> None:
    truth = Truth(np.zeros(100), told("good", 100).scores)
    walk = open_walk(truth, SHARP, Claim("pool", precision=0.2))
    empty = worth_of(walk)
    assert (empty.labels, empty.loss, empty.correlation) == (0, None, None)
    assert all(part.loss is None and part.labels == 0 for part in empty.curve)
    walk.go(35)
    alike = worth_of(walk)
    assert (alike.labels, alike.loss, alike.correlation) == (35, 0.0, None)
