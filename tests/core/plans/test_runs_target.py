"""Claims about all runs of a system: what they rest on, and what they refuse."""

from dataclasses import replace

import pytest

from celeus.core.plans.claim import Claim, PoolFacts
from celeus.core.plans.plan import MOST_RUNS, Plan, check_budget, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.loss_bounds import KnownLosses
from celeus.errors import InvalidValue

FACTS = PoolFacts("runs", 200, 0.0, 1.0, whole_losses=True)
RUNS = Claim(target="runs", precision=0.2)


AGAIN = replace(RUNS, repeats=True)


def planned(claim: Claim, facts: PoolFacts = FACTS, policy: str = "sharp") -> Plan:
    return make_plan(claim, facts, policy_named(policy), "commitment")


def test_chances_that_differ_by_item_take_the_start_for_graded_losses() -> None:
    """The exact start is that of equal chances."""
    assert planned(RUNS).bound.kind == "pairs"
    assert planned(replace(RUNS, target="population")).bound.kind == "exact_pairs"


@pytest.mark.parametrize(
    ("claim", "facts", "field"),
    [
        (replace(RUNS, population_bound="exact_pairs"), FACTS, "population_bound"),
        (replace(RUNS, margin=0.1, margin_assumption="a reason"), FACTS, "population_bound"),
        (replace(RUNS, raters="assigned"), FACTS, "raters"),
        (RUNS, replace(FACTS, known=KnownLosses(3, 1.0, {"stated": 3})), "target"),
        (replace(RUNS, target="tasks"), FACTS, "target"),  # type: ignore[arg-type]
    ],
)
def test_what_holds_of_one_run_alone_is_refused(claim: Claim, facts: PoolFacts, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        planned(claim, facts)
    assert refused.value.field == field


def test_known_losses_are_run_again_under_audit() -> None:
    facts = replace(FACTS, known=KnownLosses(3, 1.0, {"stated": 3}))
    assert planned(replace(RUNS, audit=True), facts).drawable == FACTS.items


def test_items_that_are_run_again_need_no_step_to_other_runs_and_a_budget_of_runs() -> None:
    plan = planned(replace(AGAIN, success="any of 3"))
    assert plan.bound.kind == "none"
    assert plan.budget == 193, "twice (z / width)^2"
    assert planned(replace(AGAIN, budget=4 * FACTS.items)).most_draws >= 4 * FACTS.items
    assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("claim", "facts", "field"),
    [
        (replace(AGAIN, precision=None), FACTS, "budget"),
        (replace(AGAIN, budget=10**7), FACTS, "budget"),
        (replace(AGAIN, population_bound="kl"), FACTS, "population_bound"),
        (replace(AGAIN, target="pool"), FACTS, "repeats"),
        (AGAIN, replace(FACTS, lower=-1.0, difference=True), "repeats"),
        (replace(RUNS, target="pool", success="all of 4"), FACTS, "success"),
        (replace(RUNS, success="all of 4"), replace(FACTS, whole_losses=False), "success"),
        (replace(RUNS, success="all of 101"), FACTS, "success"),
    ],
)
def test_what_repeats_cannot_have_is_refused(claim: Claim, facts: PoolFacts, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        planned(claim, facts)
    assert refused.value.field == field


def test_published_policies_run_every_item_once() -> None:
    with pytest.raises(InvalidValue, match="run again"):
        planned(AGAIN, policy="celeus")


def test_a_budget_is_refused_by_what_it_counts() -> None:
    with pytest.raises(InvalidValue, match="1000000 items of the pool"):
        check_budget(MOST_RUNS + 1, MOST_RUNS)
    with pytest.raises(InvalidValue, match="at most 1000000 draws"):
        check_budget(MOST_RUNS + 1, MOST_RUNS, repeats=True)
