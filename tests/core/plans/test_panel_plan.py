"""Whose judgements losses are: stated in the plan, and one rater by chance refused by name."""

import pytest

from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.errors import InvalidValue

FACTS = PoolFacts("digest", 500, 0.0, 1.0, whole_losses=True)


def planned(**claim: object) -> Plan:
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
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.digest != planned().digest
    assert "raters" not in planned().to_dict()


def test_a_plan_names_its_panel() -> None:
    panel = ("ann", "ben", "cid")
    plan = planned(raters="assigned", protocol="two_then_third", panel=panel)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.to_dict()["panel"] == list(panel)
    turned = planned(raters="assigned", protocol="two_then_third", panel=panel[::-1])
    assert plan.digest != turned.digest
    assert {"protocol", "panel"}.isdisjoint(planned(raters="assigned").to_dict())


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
        planned(raters="assigned", protocol=protocol, panel=panel)
    assert refused.value.field == field
