"""Whose judgements losses are: stated in the plan, and one rater by chance refused by name."""

import pytest

from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan, plan_from
from celeus.core.plans.policies import policy_named
from celeus.errors import InvalidValue

FACTS = PoolFacts("digest", 500, 0.0, 1.0, whole_losses=True)


def planned(**claim: str | None) -> Plan:
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
        planned(raters=raters, target=target)
    assert (refused.value.field, refused.value.value) == ("raters", raters)


@pytest.mark.parametrize("raters", ["pairs", "assigned"])
def test_a_plan_says_whose_judgements_losses_are(raters: str) -> None:
    plan = planned(raters=raters)
    assert plan_from(plan.to_dict()) == plan
    assert plan.digest != planned().digest
    assert "raters" not in planned().to_dict()
