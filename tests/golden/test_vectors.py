"""The fold agrees with values computed slowly and directly from the method's formulas.

The draws are given, so agreement does not depend on a random generator.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from celeus.core.ledger import Draw, Observation, Unjudgeable
from celeus.core.plans.plan import Plan
from celeus.core.plans.policies import POLICIES
from celeus.core.plans.population_bounds import PopulationBound
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.proposals import MixtureProposal
from celeus.core.session.mean import Mean
from celeus.core.session.points import Point
from celeus.core.session.session import Session, begin_mean

VECTORS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("vectors.json").read_text()
)
AGREEMENT = 1e-9


def plan_of(case: dict[str, Any]) -> Plan:
    names = ("beta", "range", "theta", "c")
    policy = replace(POLICIES[case["policy"]], **{name: case[name] for name in names})
    if case["policy"] == "evalue":
        policy = replace(policy, recentred=case["recentred"])
    return Plan(
        pool_digest="",
        items=case["items"],
        lower=case["lower"],
        upper=case["upper"],
        policy=policy,
        target="pool" if case["alpha2"] == 0 else "population",
        strategy=None,
        alpha=case["alpha1"] + case["alpha2"],
        alpha1=case["alpha1"],
        bound=PopulationBound(case["population_bound"], case["alpha2"]),
        precision=None,
        budget=case["items"],
        cell=case["cell"],
        commitment="",
    )


def begin_case(case: dict[str, Any], plan: Plan) -> Session[Mean]:
    surrogate = np.array(case["surrogate"], dtype=np.float64)
    weight = np.array(case["weight"], dtype=np.float64)
    return begin_mean(plan, Scores(surrogate, weight, None), b"the draws are given")


def answers(state: Session[Mean], point: Point) -> Iterator[tuple[str, Any]]:
    """What the fold says, under the names of the reference file."""
    pool, interval = state.question.fold.pool_interval, point.interval
    yield "pool_interval", [pool.lower, pool.upper]
    yield "interval", [interval.lower, interval.upper]
    yield "estimate", point.estimate
    yield "plug_in", point.plus.plug_in
    yield "signal", point.plus.signal
    yield "range", [point.plus.signal_range.lower, point.plus.signal_range.upper]
    yield "signals", [point.plus.signal, point.minus.signal]


def test_all_reference_cases_are_here() -> None:
    assert len(VECTORS) == 12


@pytest.mark.parametrize("name", VECTORS)
def test_the_fold_agrees_on_every_round(name: str) -> None:
    case = VECTORS[name]
    plan = plan_of(case)
    state = begin_case(case, plan)
    assert len(case["draws"]) == len(case["expected"])
    for number, (drawn, expected) in enumerate(
        zip(case["draws"], case["expected"], strict=True), start=1
    ):
        state = state.apply(Draw(number, drawn["item"], drawn["q"], state.sequence))
        loss = drawn["loss"]
        judged = Unjudgeable(number) if loss is None else Observation(number, loss)
        state = state.apply(judged)
        given = dict(answers(state, state.question.points[-1]))
        compared = [value for value in given if value in expected]
        assert {"pool_interval", "interval"} <= set(compared)
        for value in compared:
            assert given[value] == pytest.approx(expected[value], abs=AGREEMENT), (number, value)


@pytest.mark.parametrize("name", VECTORS)
def test_the_recorded_probabilities_are_those_of_the_proposal(name: str) -> None:
    case = VECTORS[name]
    proposal = begin_case(case, plan_of(case)).question.proposal
    assert isinstance(proposal, MixtureProposal)
    for number, drawn in enumerate(case["draws"], start=1):
        q = proposal.probability(drawn["item"])
        assert q == pytest.approx(drawn["q"], rel=AGREEMENT), number
        proposal.take(drawn["item"], number)
