"""The plan: frozen, readable again, and refused where nothing could be certified."""

import hashlib
import json
import math
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
import rfc8785

from celeus.core.interval import Interval
from celeus.core.plans.plan import (
    Claim,
    Plan,
    PoolFacts,
    cell_width,
    check_precision,
    make_plan,
    precision_warning,
)
from celeus.core.plans.policies import Policy, policy_named
from celeus.core.plans.population_bounds import PopulationBound
from celeus.core.plans.stopping import Question
from celeus.core.plans.subject import Subject
from celeus.core.plans.success import Success
from celeus.core.pools.loss_bounds import Basis, KnownLosses
from celeus.core.pools.score import Score
from celeus.core.pools.weights import Weights
from celeus.errors import InvalidValue, UnreachablePrecision

FACTS = PoolFacts("digest", 2000, 0.0, 1.0, whole_losses=True)
GRADED = PoolFacts("digest", 2000, -1.0, 3.0, whole_losses=False)
CELEUS = policy_named("celeus")


def plan(claim: Claim | None = None, facts: PoolFacts = FACTS) -> Plan:
    return make_plan(claim or Claim(), facts, CELEUS, "commitment")


def population(**values: Any) -> Claim:  # noqa: ANN401 -- one type per field of Claim
    return Claim(target="population", **values)


CLAIMS = {
    "pool": Claim(precision=0.1),
    "no precision": Claim(budget=100),
    "hoeffding": population(precision=0.1),
    "kl": population(population_bound="kl", alpha2=0.005),
    "clopper_pearson": population(population_bound="clopper_pearson"),
    "margin": population(margin=0.01, margin_assumption="documents in order, mixing"),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_plan_survives_the_way_through_json(claim: Claim) -> None:
    made = plan(claim)
    again = Plan.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert again.digest == made.digest


def test_the_digest_does_not_ask_how_a_database_writes_a_number() -> None:
    """PostgreSQL's jsonb writes 1e15 as a whole number."""
    facts = PoolFacts("digest", 2000, -1e15, 1e15, whole_losses=False)
    huge = plan(population(margin=1e300, margin_assumption="none at all"), facts=facts)
    values = json.loads(json.dumps(huge.to_dict()))
    values["lower"], values["upper"] = -(10**15), 10**15
    values["bound"]["half_width"] = 10**300
    assert Plan.from_dict(values).digest == huge.digest


def test_the_digest_is_taken_over_rfc_8785() -> None:
    facts = PoolFacts("digest", 2000, -1e-05, 1e-05, whole_losses=False)
    tiny = plan(Claim(alpha=1e-05), facts=facts)
    assert tiny.digest == hashlib.sha256(rfc8785.dumps(tiny.to_dict())).hexdigest()
    assert b'"alpha":0.00001,' in rfc8785.dumps(tiny.to_dict())


OTHER: dict[str, Any] = {
    "pool_digest": "other",
    "items": 1999,
    "lower": -0.5,
    "upper": 2.0,
    "target": "population",
    "strategy": "A",
    "alpha": 0.06,
    "alpha1": 0.04,
    "precision": 0.2,
    "budget": 1000,
    "cell": 0.01,
    "commitment": "other",
    "method_version": "celeus-0",
    "questions": (Question("at_most", 0.3),),
    "fixed": True,
    "known": KnownLosses(2, 1.0, {"exact match": 2}),
    "audit": True,
    "difference": True,
    "decide": 0.01,
    "systems": {"a": "one", "b": "two"},
    "based_on": Basis("ses_1", "00", "11", None, "no"),
    "weights": Weights(2.0, 1.0, 9.0, 1500.0),
    "score": Score("accuracy", "higher", "number"),
    "raters": "pairs",
    "protocol": "consensus",
    "panel": ("ann", "ben"),
    "repeats": True,
    "success": Success("all", 4),
    "subject": (Subject("model", "sha256", "ab" * 32),),
}
OTHER_POLICY: dict[str, Any] = {
    "name": "other",
    "uses_scores": False,
    "beta": 0.3,
    "range": "exact",
    "fraction": "common",
    "recentred": False,
    "theta": 0.4,
    "c": 0.6,
}
OTHER_BOUND: dict[str, Any] = {
    "kind": "kl",
    "alpha2": 0.01,
    "half_width": 0.1,
    "assumption": "other",
}


def test_the_digest_changes_with_every_single_field() -> None:
    made = plan()
    # Without questions there is nothing to wait for, and no member that says so.
    names = {field.name for field in fields(Plan)} - {"policy", "bound", "stop_when_decided"}
    assert names == set(OTHER)
    assert {field.name for field in fields(Policy)} == set(OTHER_POLICY)
    assert {field.name for field in fields(PopulationBound)} == set(OTHER_BOUND)
    digests = {made.digest}
    for name, value in OTHER.items():
        digests.add(replace(made, **{name: value}).digest)
    for name, value in OTHER_POLICY.items():
        digests.add(replace(made, policy=replace(made.policy, **{name: value})).digest)
    for name, value in OTHER_BOUND.items():
        digests.add(replace(made, bound=replace(made.bound, **{name: value})).digest)
    assert len(digests) == 1 + len(OTHER) + len(OTHER_POLICY) + len(OTHER_BOUND)


def test_alpha_is_split_for_the_population_and_whole_for_the_pool() -> None:
    assert (plan().alpha1, plan().bound.kind) == (0.05, "none")
    half = plan(population())
    assert (half.alpha1, half.bound) == (0.025, PopulationBound("hoeffding", 0.025))
    uneven = plan(population(alpha2=0.01))
    assert uneven.alpha1 == pytest.approx(0.04)
    margin = plan(CLAIMS["margin"])
    assert (margin.alpha1, margin.bound.alpha2, margin.bound.half_width) == (0.025, 0.025, 0.01)
    sure = plan(replace(CLAIMS["margin"], alpha2=0.0))
    assert (sure.alpha1, sure.bound.alpha2) == (0.05, 0.0)


def test_cells_are_a_hundredth_of_the_precision_or_a_part_of_the_scale() -> None:
    assert plan(Claim(precision=0.1)).cell == pytest.approx(0.001)
    assert plan(facts=GRADED).cell == pytest.approx(4.0 / 2000)
    assert cell_width(0.5, Interval(-1.0, 3.0)) == 0.005


def test_the_whole_pool_is_the_default_budget() -> None:
    assert plan().budget == 2000


@pytest.mark.parametrize(
    ("claim", "field"),
    [
        (Claim(alpha=0.0), "alpha"),
        (Claim(alpha=1.0), "alpha"),
        (Claim(alpha=-0.05), "alpha"),
        (Claim(alpha=math.nan), "alpha"),
        (Claim(alpha=math.inf), "alpha"),
        (Claim(target="universe"), "target"),  # type: ignore[arg-type]
        (Claim(precision=0.0), "precision"),
        (Claim(precision=-1.0), "precision"),
        (Claim(precision=1.0), "precision"),
        (Claim(precision=math.nan), "precision"),
        (Claim(precision=math.inf), "precision"),
        (Claim(precision=1e-9), "precision"),
        (Claim(budget=0), "budget"),
        (Claim(budget=2001), "budget"),
        (Claim(population_bound="kl"), "population_bound"),
        (Claim(alpha2=0.01), "alpha2"),
        (Claim(margin=0.01), "margin"),
        (population(alpha2=0.05), "alpha2"),
        (population(alpha2=0.0), "alpha2"),
        (population(alpha2=math.nan), "alpha2"),
        (population(population_bound="guess"), "population_bound"),
        (population(population_bound="kl", margin=0.1), "margin"),
        (population(population_bound="margin"), "margin"),
        (population(margin=-0.1, margin_assumption="mixing"), "margin"),
        (population(margin=math.inf, margin_assumption="mixing"), "margin"),
        (population(margin=math.nan, margin_assumption="mixing"), "margin"),
        (population(margin=0.1), "margin_assumption"),
        (population(margin=0.1, margin_assumption="  "), "margin_assumption"),
        (population(margin=0.1, margin_assumption="mixing", alpha2=0.05), "alpha2"),
    ],
)
def test_a_claim_that_cannot_be_is_refused_by_field_rule_and_value(
    claim: Claim, field: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan(claim)
    assert caught.value.field == field
    assert caught.value.rule
    assert caught.value.value is asdict(claim)[field]
    assert field in str(caught.value)


def test_clopper_pearson_is_for_zero_one_losses_only() -> None:
    with pytest.raises(InvalidValue) as caught:
        plan(population(population_bound="clopper_pearson"), GRADED)
    assert caught.value.field == "population_bound"


@pytest.mark.parametrize("bound", ["hoeffding", "kl", "clopper_pearson"])
def test_a_precision_no_risk_could_reach_is_refused_with_the_smallest_width(bound: str) -> None:
    facts = PoolFacts("digest", 50, 0.0, 1.0, whole_losses=True)
    with pytest.raises(UnreachablePrecision) as caught:
        plan(population(population_bound=bound, precision=0.05), facts)
    smallest = caught.value.more["smallest_reachable"]
    assert isinstance(smallest, float)
    assert caught.value.field == "precision"
    assert caught.value.value == 0.05
    assert f"{smallest:.6g}" in str(caught.value)
    plan(population(population_bound=bound, precision=smallest * 1.001), facts)
    with pytest.raises(UnreachablePrecision):
        plan(population(population_bound=bound, precision=smallest * 0.999), facts)


def test_a_margin_wider_than_the_precision_is_refused() -> None:
    with pytest.raises(UnreachablePrecision):
        plan(population(margin=0.2, margin_assumption="mixing", precision=0.1))


def test_the_pool_reaches_every_precision() -> None:
    facts = PoolFacts("digest", 3, 0.0, 1.0, whole_losses=True)
    assert plan(Claim(precision=5e-4), facts).precision == 5e-4


def test_a_later_precision_is_held_to_the_same_rules() -> None:
    opened = plan(population(precision=0.5))
    check_precision(opened, None)
    check_precision(opened, 0.2)
    with pytest.raises(UnreachablePrecision):
        check_precision(opened, 0.01)
    with pytest.raises(InvalidValue):
        check_precision(opened, 2.0)


def test_a_warning_says_when_a_risk_of_one_half_could_not_reach_the_precision() -> None:
    assert precision_warning(plan(), 0.01) is None
    assert precision_warning(plan(population()), None) is None
    assert precision_warning(plan(population()), 0.5) is None
    warned = precision_warning(plan(population(population_bound="kl")), 0.02)
    assert warned is not None
    assert "0.02" in warned


@pytest.mark.parametrize(
    ("claim", "rule"),
    [
        (Claim(alpha=5e-324, precision=0.2), "at least 1e-12, and at least 1e-12 away from 1"),
        (Claim(alpha=1.0 - 2.0**-53), "at least 1e-12, and at least 1e-12 away from 1"),
        (
            Claim("population", 1e-17, precision=0.2),
            "at least 1e-12, and at least 1e-12 away from 1",
        ),
    ],
)
def test_an_alpha_that_a_float_cannot_tell_from_0_or_1_is_refused(claim: Claim, rule: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        make_plan(claim, FACTS, policy_named("sharp"), "commitment")
    assert (refused.value.field, refused.value.rule) == ("alpha", rule)


@pytest.mark.parametrize("seen", ["yes", "no", "unknown"])
def test_a_population_is_claimed_of_versions_whose_makers_saw_no_labels(seen: Any) -> None:  # noqa: ANN401
    facts = replace(FACTS, based_on=Basis(f"ses_{1:032}", "0" * 64, "1" * 64, None, seen))
    pool = make_plan(Claim(), facts, policy_named("sharp"), "c")
    assert Plan.from_dict(pool.to_dict()) == pool
    if seen == "no":
        made = make_plan(Claim(target="population"), facts, policy_named("sharp"), "c")
        assert made.based_on == facts.based_on
        return
    with pytest.raises(InvalidValue) as refused:
        make_plan(Claim(target="population"), facts, policy_named("sharp"), "c")
    assert refused.value.field == "target"
