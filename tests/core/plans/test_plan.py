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
    MOST_RUNS,
    Claim,
    Plan,
    PoolFacts,
    cell_width,
    check_budget,
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


def planned_panel(**claim: object) -> Plan:
    return make_plan(Claim(**claim), FACTS, policy_named("sharp"), "commitment")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("raters", "target", "why"),
    [
        ("random", "pool", "Whoever comes"),
        ("random", "population", "Whoever comes"),
        ("pairs", "population", "no independent draws"),
        ("many", "pool", "no such way"),
    ],
)
def test_what_an_interval_would_not_hold_is_refused_by_name(
    raters: str, target: str, why: str
) -> None:
    with pytest.raises(InvalidValue, match=why) as refused:
        planned_panel(raters=raters, target=target)
    assert (refused.value.field, refused.value.value) == ("raters", raters)


@pytest.mark.parametrize("raters", ["pairs", "assigned"])
def test_a_plan_says_whose_judgements_losses_are(raters: str) -> None:
    plan = planned_panel(raters=raters)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.digest != planned_panel().digest
    assert "raters" not in planned_panel().to_dict()


def test_a_plan_names_its_panel() -> None:
    panel = ("ann", "ben", "cid")
    plan = planned_panel(raters="assigned", protocol="two_then_third", panel=panel)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.to_dict()["panel"] == list(panel)
    turned = planned_panel(raters="assigned", protocol="two_then_third", panel=panel[::-1])
    assert plan.digest != turned.digest
    assert {"protocol", "panel"}.isdisjoint(planned_panel(raters="assigned").to_dict())


@pytest.mark.parametrize(
    ("protocol", "panel", "field", "why"),
    [
        ("two_then_third", (), "panel", "Who comes may depend on the item"),
        ("two_then_third", ("ann", "ben"), "panel", "Who comes"),
        ("consensus", ("ann",), "panel", "Who comes"),
        ("consensus", ("ann", "ann"), "panel", "each once"),
        ("consensus", tuple(map(str, range(51))), "panel", "at most 50"),
        ("vote", ("ann", "ben"), "protocol", "two_then_third or consensus"),
        (None, ("ann", "ben"), "protocol", "named where there is a panel"),
    ],
)
def test_a_panel_is_named_and_large_enough_for_its_protocol(
    protocol: str | None, panel: tuple[str, ...], field: str, why: str
) -> None:
    with pytest.raises(InvalidValue, match=why) as refused:
        planned_panel(raters="assigned", protocol=protocol, panel=panel)
    assert refused.value.field == field


RUN_FACTS = PoolFacts("runs", 200, 0.0, 1.0, whole_losses=True)
RUNS = Claim(target="runs", precision=0.2)
AGAIN = replace(RUNS, repeats=True)


def planned_runs(claim: Claim, facts: PoolFacts = RUN_FACTS, policy: str = "sharp") -> Plan:
    return make_plan(claim, facts, policy_named(policy), "commitment")


def test_chances_that_differ_by_item_take_the_start_for_graded_losses() -> None:
    """The exact start is that of equal chances."""
    assert planned_runs(RUNS).bound.kind == "pairs"
    assert planned_runs(replace(RUNS, target="population")).bound.kind == "exact_pairs"


@pytest.mark.parametrize(
    ("claim", "facts", "field"),
    [
        (replace(RUNS, population_bound="exact_pairs"), RUN_FACTS, "population_bound"),
        (
            replace(RUNS, margin=0.1, margin_assumption="a reason"),
            RUN_FACTS,
            "population_bound",
        ),
        (replace(RUNS, raters="assigned"), RUN_FACTS, "raters"),
        (RUNS, replace(RUN_FACTS, known=KnownLosses(3, 1.0, {"stated": 3})), "target"),
        (replace(RUNS, target="tasks"), RUN_FACTS, "target"),  # type: ignore[arg-type]
    ],
)
def test_what_holds_of_one_run_alone_is_refused(claim: Claim, facts: PoolFacts, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        planned_runs(claim, facts)
    assert refused.value.field == field


def test_known_losses_are_run_again_under_audit() -> None:
    facts = replace(RUN_FACTS, known=KnownLosses(3, 1.0, {"stated": 3}))
    assert planned_runs(replace(RUNS, audit=True), facts).drawable == RUN_FACTS.items


def test_items_that_are_run_again_need_no_step_to_other_runs_and_a_budget_of_runs() -> None:
    plan = planned_runs(replace(AGAIN, success="any of 3"))
    assert plan.bound.kind == "none"
    assert plan.budget == 193, "twice (z / width)^2"
    assert (
        planned_runs(replace(AGAIN, budget=4 * RUN_FACTS.items)).most_draws >= 4 * RUN_FACTS.items
    )
    assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("claim", "facts", "field"),
    [
        (replace(AGAIN, precision=None), RUN_FACTS, "budget"),
        (replace(AGAIN, budget=10**7), RUN_FACTS, "budget"),
        (replace(AGAIN, population_bound="kl"), RUN_FACTS, "population_bound"),
        (replace(AGAIN, target="pool"), RUN_FACTS, "repeats"),
        (AGAIN, replace(RUN_FACTS, lower=-1.0, difference=True), "repeats"),
        (replace(RUNS, target="pool", success="all of 4"), RUN_FACTS, "success"),
        (
            replace(RUNS, success="all of 4"),
            replace(RUN_FACTS, whole_losses=False),
            "success",
        ),
        (replace(RUNS, success="all of 101"), RUN_FACTS, "success"),
    ],
)
def test_what_repeats_cannot_have_is_refused(claim: Claim, facts: PoolFacts, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        planned_runs(claim, facts)
    assert refused.value.field == field


def test_published_policies_run_every_item_once() -> None:
    with pytest.raises(InvalidValue, match="run again"):
        planned_runs(AGAIN, policy="celeus")


def test_a_budget_is_refused_by_what_it_counts() -> None:
    with pytest.raises(InvalidValue, match="1000000 items of the pool"):
        check_budget(MOST_RUNS + 1, MOST_RUNS)
    with pytest.raises(InvalidValue, match="at most 1000000 draws"):
        check_budget(MOST_RUNS + 1, MOST_RUNS, repeats=True)
