"""Certificates of sessions in which some losses are known: what they say, and what is found out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.read import header_digest
from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from tests.core.certifying import (
    Case,
    World,
    corrected,
    forged,
    known_world,
    opened,
    restated,
    where_of,
)

Document = dict[str, Any]


def judged(world: World, policy: str = "sharp", **claim: Any) -> Case:  # noqa: ANN401
    return corrected(opened(world, policy, Claim(precision=world.pool.scale.width / 10.0, **claim)))


@pytest.mark.parametrize("policy", ["sharp", "uniform", "celeus"])
def test_known_losses_are_named_and_the_certificate_verifies(policy: str) -> None:
    world = known_world()
    data = judged(world, policy).certificate()
    document = json.loads(data)
    assert document["plan"]["known"]["reasons"] == {"same answer": 50, "judged before": 50}
    (assumption,) = [
        one for one in document["claim"]["assumptions"] if one["code"] == "known_losses"
    ]
    assert "100 of 200 items" in assumption["text"]
    assert "judged before (50), same answer (50)" in assumption["text"]
    assert verify(data).valid
    report = verify(data, world.evidence, items=world.lines)
    assert report.valid
    assert {"draws", "probabilities", "surrogates", "rounds", "claim"} <= set(report.checked)


@pytest.mark.parametrize("policy", ["sharp", "celeus"])
def test_bounds_of_single_losses_verify_with_the_pool_only(policy: str) -> None:
    world = known_world(bounded=True)
    data = judged(world, policy).certificate()
    report = verify(data, world.evidence)
    assert report.valid
    assert "claim" in report.checked
    without = verify(data)
    assert "claim" not in without.checked
    assert without.line.startswith(
        "cannot be checked: the pool is missing, expected its columns, as"
    )


def test_an_audit_rests_on_no_known_losses() -> None:
    world = known_world()
    data = judged(world, audit=True).certificate()
    document = json.loads(data)
    assert document["plan"]["audit"] is True
    codes = [one["code"] for one in document["claim"]["assumptions"]]
    assert "known_losses" not in codes
    assert verify(data, world.evidence).valid
    assert verify(data).valid


def stated(change: Document) -> Callable[[Document], None]:
    """Another statement of what was known."""
    return lambda body: body["plan"]["known"].update(change)


@pytest.mark.parametrize(
    "change",
    [
        {"total": 60.0},
        {"reasons": {"exact match": 50, "same answer": 50}},
        {"reasons": {"same answer": 60, "judged before": 40}},
    ],
)
def test_forged_facts_are_found_with_the_pool(change: Document) -> None:
    world = known_world()
    data = forged(judged(world).certificate(), stated(change))
    assert where_of(verify(data, world.evidence)).startswith("plan.known")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"items": 101}, "plan.known.reasons"),
        ({"items": 300}, "plan.known.items"),
        ({"total": 101.0}, "plan.known.total"),
        ({"bounded": -1}, "plan.known.bounded"),
        ({"reasons": {"same answer": 0}}, "plan.known.reasons"),
    ],
)
def test_facts_that_cannot_be_are_found_without_it(change: Document, where: str) -> None:
    data = forged(judged(known_world()).certificate(), stated(change))
    assert where in where_of(verify(data))


@pytest.mark.parametrize("policy", ["sharp", "celeus"])
def test_a_known_item_that_was_drawn_is_found(policy: str) -> None:
    """Without its seed an interim certificate shows no order of draws: any item could be next."""
    world = known_world()
    body: Document = json.loads(judged(world, policy).certificate())
    known = int(np.flatnonzero(world.pool.columns["known"])[0])
    at = next(at for at, one in enumerate(body["ledger"]) if one["kind"] == "draw")
    body["ledger"][at]["item"] = known
    difference = verify(restated(body), world.evidence).difference
    assert difference is not None
    assert difference.where == f"ledger[{at}].item"
    assert difference.found == "an item whose loss is not known"


@pytest.mark.parametrize("missing", [("known",), ("loss_lower", "loss_upper")])
def test_columns_of_what_is_known_come_together_and_with_the_plan(missing: tuple[str, ...]) -> None:
    body: Document = json.loads(judged(known_world()).certificate())
    columns = body["pool"]["columns"]
    body["pool"]["columns"] = [one for one in columns if one["name"] not in missing]
    assert where_of(verify(restated(body))) == "pool.columns"


def test_a_plan_that_keeps_known_losses_to_itself_is_found() -> None:
    body: Document = json.loads(judged(known_world()).certificate())
    del body["plan"]["known"]
    difference = verify(restated(body)).difference
    assert difference is not None
    assert (difference.where, difference.found) == ("pool.columns", "nothing known")


def test_a_loss_outside_the_bounds_of_its_item_is_found() -> None:
    world = known_world(bounded=True)
    body: Document = json.loads(judged(world).certificate())
    bounds = world.pool.bounds
    assert bounds is not None
    drawn = {one["round"]: one["item"] for one in body["ledger"] if one["kind"] == "draw"}
    lowest = world.pool.scale.lower
    at, least = next(
        (at, float(bounds.lower[drawn[one["round"]]]))
        for at, one in enumerate(body["ledger"])
        if one["kind"] == "observation" and bounds.lower[drawn[one["round"]]] > lowest
    )
    body["ledger"][at]["loss"] = (lowest + least) / 2
    assert where_of(verify(restated(body), world.evidence)) == f"ledger[{at}].loss"


def test_forged_known_items_are_found() -> None:
    """The pool that is downloaded holds what the certificate's digest names, or it is found out."""
    world = known_world()
    data = judged(world).certificate()
    columns = {name: column.copy() for name, column in world.pool.columns.items()}
    item = int(np.flatnonzero(columns["known"] == 0)[0])
    columns["loss_lower"][item] = columns["loss_upper"][item]
    columns["known"][item] = 1
    evidence = Evidence(columns, (), world.pool.items_digest, world.pool.reasons)
    assert where_of(verify(data, evidence)).startswith("pool.columns")


def test_a_known_loss_without_a_reason_is_found() -> None:
    """An issuer who names the forged pool by its digest still has to give every reason."""
    honest = known_world()
    columns = {name: column.copy() for name, column in honest.pool.columns.items()}
    item = int(np.flatnonzero(columns["known"] == 0)[0])
    columns["loss_lower"][item] = columns["loss_upper"][item] = 1.0
    world = World(replace(honest.pool, columns=columns), honest.losses)
    assert header_digest(world.pool.header()) == world.pool.digest
    difference = verify(judged(world).certificate(), world.evidence).difference
    assert difference is not None


def test_a_pool_without_known_losses_has_no_member_that_says_so() -> None:
    assert "reasons" in known_world().pool.header()
    assert "reasons" not in replace(known_world().pool, reasons=()).header()


@pytest.mark.parametrize(
    ("claim", "bound"), [({"target": "population"}, "exact_pairs"), ({}, "none")]
)
@pytest.mark.parametrize(("halves", "where"), [(2, "pool.columns"), (1, "plan.known.total")])
def test_a_known_loss_of_a_half_is_refused_where_losses_are_0_or_1(
    claim: dict[str, Any], bound: str, halves: int, where: str
) -> None:
    """`exact_pairs` rests on it. Two halves leave a whole sum, so that only the pool shows them."""
    world = known_world()
    columns = dict(world.pool.columns)
    items = np.flatnonzero(columns["known"])[:halves]
    for name in ("loss_lower", "loss_upper"):
        columns[name] = columns[name].copy()
        columns[name][items] = 0.5
    world = replace(world, pool=replace(world.pool, columns=columns))
    data = judged(world, **claim).certificate()
    assert json.loads(data)["plan"]["bound"]["kind"] == bound
    assert where_of(verify(data, world.evidence)) == where
    assert verify(data).valid is (halves == 2)
