"""Named configurations, and what they refuse."""

import math
from typing import Any

import pytest

from celeus.core.plans.policies import DEFAULT_POLICY, POLICIES, SIMULATION_ONLY, policy_named
from celeus.errors import InvalidValue


def test_the_published_constants_are_the_defaults() -> None:
    celeus = policy_named("celeus")
    assert (celeus.beta, celeus.theta, celeus.c, celeus.range) == (0.4, 0.5, 0.5, "floor")
    assert policy_named("no_surrogate").beta == policy_named("evalue").beta == 1.0
    assert policy_named("evalue").recentred, "the authors' form is an option, never the default"


def test_policies_of_studies_are_never_the_default() -> None:
    assert frozenset({"no_surrogate", "evalue", "oracle"}) == SIMULATION_ONLY
    assert DEFAULT_POLICY in POLICIES
    assert DEFAULT_POLICY not in SIMULATION_ONLY


def test_a_parameter_replaces_its_default_and_shows_in_the_plan() -> None:
    assert policy_named("celeus", beta=0.2).to_dict()["beta"] == 0.2


@pytest.mark.parametrize(
    ("name", "parameters", "field"),
    [
        ("celeste", {}, "policy"),
        ("celeus", {"gamma": 1.0}, "gamma"),
        ("celeus", {"recentred": False}, "recentred"),
        ("celeus", {"uses_scores": False}, "uses_scores"),
        ("no_surrogate", {"beta": 0.5}, "beta"),
        ("evalue", {"range": "exact"}, "range"),
        ("celeus", {"beta": 0.0}, "beta"),
        ("celeus", {"beta": 9e-4}, "beta"),
        ("celeus", {"beta": -0.1}, "beta"),
        ("celeus", {"beta": 1.01}, "beta"),
        ("celeus", {"beta": math.nan}, "beta"),
        ("celeus", {"theta": 0.0}, "theta"),
        ("celeus", {"theta": 1.0}, "theta"),
        ("celeus", {"c": 0.0}, "c"),
        ("celeus", {"c": 1e-17}, "c"),
        ("celeus", {"c": math.inf}, "c"),
        ("celeus", {"range": "widest"}, "range"),
    ],
)
def test_what_no_policy_can_be_is_refused_by_field_rule_and_value(
    name: str, parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        policy_named(name, **parameters)
    refusal = caught.value
    assert refusal.field == field
    assert refusal.rule
    expected = name if field == "policy" else parameters[field]
    assert refusal.value is expected
    assert field in str(refusal)
