"""Certificates of weighted means: what they say, and that a forged weight is found."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.certificate.document import signed
from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from tests.core.certifying import (
    KEY,
    Case,
    World,
    corrected,
    opened,
    restated,
    weighted_world,
    where_of,
    zero_one_world,
)

Document = dict[str, Any]


def judged(world: World, policy: str = "sharp") -> Case:
    return corrected(opened(world, policy, Claim(precision=0.1)))


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
@pytest.mark.parametrize("final", [True, False])
def test_a_weighted_mean_verifies_with_its_pool(policy: str, *, final: bool) -> None:
    world = weighted_world()
    data = judged(world, policy).certificate(final=final)
    document = json.loads(data)
    weight = world.pool.columns["weight"]
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert document["claim"]["effective_items"] == pytest.approx(effective)
    report = verify(data, world.evidence, items=world.lines)
    assert report.valid, report.difference
    assert {"probabilities", "surrogates", "rounds", "claim"} <= set(report.checked)


def test_without_its_pool_it_is_not_verified() -> None:
    data = judged(weighted_world()).certificate()
    assert verify(data).line.startswith(
        "cannot be checked: the pool is missing, expected its columns, as"
    )


def other_weight(world: World) -> dict[str, Any]:
    """The pool's columns, where one item counts a little more."""
    columns = {name: column.copy() for name, column in world.pool.columns.items()}
    item = int(np.argsort(columns["weight"])[columns["weight"].size // 2])
    columns["weight"][item] *= 1.01
    return columns


def test_a_forged_weight_is_found_by_the_digest() -> None:
    world = weighted_world()
    evidence = replace(world.evidence, columns=other_weight(world))
    assert where_of(verify(judged(world).certificate(), evidence)).startswith("pool.columns")


def test_a_forged_weight_is_found_when_the_issuer_names_it_by_its_digest() -> None:
    """Plan and header say what the forged column says: the session is then another one."""
    honest = weighted_world()
    forged = World(replace(honest.pool, columns=other_weight(honest)), honest.losses)
    body: Document = json.loads(judged(honest).certificate())
    body["pool"] = forged.pool.header()
    assert forged.pool.weights is not None
    body["plan"]["weights"] = forged.pool.weights.to_dict()
    assert forged.pool.known is not None
    body["plan"]["known"] = forged.pool.known.to_dict()
    assert where_of(verify(restated(body), forged.evidence)).startswith(
        ("ledger", "rounds", "surrogates")
    )


@pytest.mark.parametrize("name", ["mean", "least", "largest", "effective_items"])
def test_forged_facts_are_found(name: str) -> None:
    world = weighted_world()
    body: Document = json.loads(judged(world).certificate())
    body["plan"]["weights"][name] *= 1.0 + 1e-6
    assert where_of(verify(restated(body), world.evidence)) == f"plan.weights.{name}"


@pytest.mark.parametrize("change", [{"least": 0.0}, {"least": -1.0}, {"least": 1e-9}, {"more": 1}])
def test_facts_that_cannot_be_are_found(change: dict[str, float]) -> None:
    world = weighted_world()
    body: Document = json.loads(judged(world).certificate())
    body["plan"]["weights"] |= change
    body.pop("signature")
    assert where_of(verify(signed(body, KEY), world.evidence)).startswith(
        ("plan.weight", "plan.weights")
    )


def test_a_plan_that_keeps_weights_to_itself_is_found() -> None:
    body: Document = json.loads(judged(weighted_world()).certificate())
    del body["plan"]["weights"]
    assert where_of(verify(restated(body))) == "whether pool.columns hold a weight"


def test_a_pool_without_weights_says_nothing_of_them() -> None:
    document = json.loads(judged(zero_one_world()).certificate())
    assert "weights" not in document["plan"]
    assert "effective_items" not in document["claim"]
