"""What a surrogate is worth: the same numbers by another way, enumeration, and real runs."""

from dataclasses import asdict
from itertools import permutations
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.insights.efficiency import FEWEST_LABELS, Padding, savings
from celeus.core.insights.surrogate import SurrogateDiagnostics, diagnose
from celeus.core.insights.weights import JudgedRounds, refit
from celeus.core.interval import Interval
from celeus.core.ledger import Amendment
from celeus.core.plans.plan import Claim, Plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.strata import strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.predictors import CalibratedPredictor
from celeus.core.sessions.state import State
from celeus.study.engine.simulation import Truth, seed_of, simulate
from tests.core.worlds import Walk, open_walk, zero_one_truth

Floats = NDArray[np.float64]
SHARP = policy_named("sharp")


def judged_of(state: State, lower: float = 0.0, width: float = 1.0) -> JudgedRounds:
    """The folded rounds of a state with their losses on the unit scale."""
    rounds = [one for one in state.rounds[: state.folded] if isinstance(one.loss, float)]
    return JudgedRounds(
        items=state.items,
        folded=state.folded,
        round=np.array([one.draw.round for one in rounds], dtype=np.int64),
        item=np.array([one.draw.item for one in rounds], dtype=np.int64),
        basis=np.array([state.rounds.basis[one.draw.round - 1] for one in rounds], dtype=np.int64),
        q=np.array([one.draw.q for one in rounds]),
        loss=(np.array([one.loss for one in rounds], dtype=np.float64) - lower) / width,
    )


def worth_of(walk: Walk, width: float = 0.2) -> SurrogateDiagnostics:
    scale = walk.plan.scale
    judged = judged_of(walk.state, scale.lower, scale.width)
    return diagnose(walk.plan, walk.truth.scores, judged, width)


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


def test_hindsight_finds_the_surrogates_that_every_signal_was_told() -> None:
    walk = eventful(zero_one_truth(300))
    state, predictor = walk.state, walk.state.fold.predictor
    assert isinstance(predictor, CalibratedPredictor)
    judged = judged_of(state)
    fit = refit(strata_of(walk.truth.scores, walk.plan.scale), judged)
    used = [state.points[round_ - 1].plus.surrogate for round_ in judged.round]
    assert len(judged.round) < state.folded
    np.testing.assert_allclose(fit.used, used, rtol=1e-12)
    np.testing.assert_allclose(fit.mean, predictor.means, rtol=1e-12)
    np.testing.assert_allclose(fit.moment, predictor.residual_moments, rtol=1e-12)


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
            4, drawn, np.arange(1, drawn + 1), items, np.arange(drawn), np.array(q), value[items]
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
    assert found.savings is not None
    assert found.savings.uniform_labels == 120


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
    small, large = worth_of(one), worth_of(other, 1.0)
    assert small.savings is not None
    assert large.savings is not None
    # Scaling moves the last digits, and which of them depends on the processor.
    assert asdict(large.savings) == pytest.approx(asdict(small.savings), rel=1e-9)
    assert large.correlation == pytest.approx(small.correlation)
    for part, wider in zip(small.curve, large.curve, strict=True):
        assert (part.items, part.labels) == (wider.items, wider.labels)
        for name in ("least", "largest", "surrogate", "used", "loss", "low", "high"):
            value, wanted = getattr(wider, name), getattr(part, name)
            assert (value is None) == (wanted is None)
            assert wanted is None or value == pytest.approx(5.0 * wanted - 2.0)


@pytest.mark.parametrize("kind", ["good", "biased"])
def test_the_labels_promised_to_uniform_draws_are_those_they_take(
    kind: Literal["good", "biased"],
) -> None:
    truth, claim = told(kind, 1500), Claim("pool", precision=0.08)
    promised, taken = [], []
    for run in range(6):
        seed = seed_of(7, run)
        _, state = simulate(truth, SHARP, claim, seed)
        plain, _ = simulate(truth, policy_named("uniform"), claim, seed)
        found = diagnose(_plan(truth, claim), truth.scores, judged_of(state), 0.08).savings
        assert found is not None
        assert found.low <= found.uniform_labels <= found.high
        assert found.labels == state.folded
        promised.append(found.uniform_labels)
        taken.append(plain.labels)
    assert np.median(promised) == pytest.approx(np.median(taken), rel=0.12)


def test_a_useless_surrogate_is_told_to_save_nothing() -> None:
    truth, claim = told("useless", 1500), Claim("pool", precision=0.12)
    _, state = simulate(truth, SHARP, claim, seed_of(7, 0))
    found = diagnose(_plan(truth, claim), truth.scores, judged_of(state), 0.12)
    assert found.savings is not None
    assert found.savings.uniform_labels <= 1.02 * found.savings.labels
    assert found.savings.residual_variance >= 0.95 * found.savings.loss_variance
    assert found.correlation == pytest.approx(0.0, abs=0.15)


@pytest.mark.parametrize("name", ["celeus", "no_surrogate", "evalue", "uniform"])
def test_every_policy_can_be_asked(name: str) -> None:
    truth = told("good", 400)
    walk = open_walk(truth, policy_named(name), Claim("pool", precision=0.2))
    assert worth_of(walk).savings is None
    walk.go(150)
    found = worth_of(walk)
    assert found.savings is not None
    assert (found.strata == ()) == (name != "uniform")
    saved = found.savings.uniform_labels - found.savings.labels
    assert (saved > 15) if name == "celeus" else (abs(saved) <= 3)


def test_few_labels_and_labels_all_alike_promise_nothing() -> None:
    truth = Truth(np.zeros(100), told("good", 100).scores)
    walk = open_walk(truth, SHARP, Claim("pool", precision=0.2))
    empty = worth_of(walk)
    assert (empty.labels, empty.loss, empty.correlation) == (0, None, None)
    assert all(part.loss is None and part.labels == 0 for part in empty.curve)
    walk.go(FEWEST_LABELS + 5)
    alike = worth_of(walk)
    assert alike.savings is None
    assert alike.loss == 0.0
    few = judged_of(walk.state)
    assert savings(few, np.zeros(few.loss.size), Padding()) is None


def _plan(truth: Truth, claim: Claim) -> Plan:
    plan = open_walk(truth, SHARP, claim).plan
    assert plan.scale == Interval(0.0, 1.0)
    return plan
