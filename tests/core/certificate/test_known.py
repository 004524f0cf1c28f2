"""Certificates of sessions in which some losses are known: what they say, and what is found out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.read import header_digest
from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim, Plan
from celeus.core.pools.loss_bounds import Basis
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
from tests.core.earlier import BASIS, PAIR, TEXT, based_pool, earlier_of, judged_as, rows_of

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


ITEMS, JUDGED = 150, range(0, 150, 2)


def world_of(basis: Basis = BASIS, *, pair: bool = False) -> World:
    """A new version, most of whose answers are the old ones."""
    chance = np.random.default_rng(6)
    truth = chance.integers(0, 4, ITEMS).tolist()
    old = np.where(chance.random(ITEMS) < 0.6, truth, chance.integers(0, 4, ITEMS)).tolist()
    new = np.where(chance.random(ITEMS) < 0.6, old, chance.integers(0, 4, ITEMS)).tolist()
    texts = basis.answer is not None
    rows = rows_of(old, texts=texts)
    judged = judged_as(truth, old, JUDGED, labels=not texts)
    earlier = earlier_of(rows, judged, basis, systems=PAIR if pair else None)
    fresh = rows_of(new, texts=texts, side="b" if pair else None)
    losses = [
        np.not_equal(given, truth).astype(np.float64) for given in ((old, new) if pair else (new,))
    ]
    pool = based_pool(earlier, rows, fresh)
    return World(pool, losses[0] - losses[1] if pair else losses[0])


def certified(world: World, **claim: Any) -> bytes:  # noqa: ANN401
    return corrected(opened(world, "sharp", Claim(precision=0.1, **claim))).certificate()


def forged_basis(world: World, name: str, change: dict[int, float]) -> World:
    """The same pool with another column; its losses are what the columns say."""
    columns: dict[str, NDArray[Any]] = dict(world.pool.columns)
    column = columns[name].copy()
    for at, value in change.items():
        column[at] = value
    columns[name] = column
    if name == "loss_lower":
        columns["loss_upper"] = np.where(columns["known"] > 0, column, columns["loss_upper"])
    return World(replace(world.pool, columns=columns), world.losses)


@pytest.mark.parametrize("basis", [BASIS, TEXT])
def test_a_certificate_names_the_session_and_whether_labels_were_seen(basis: Basis) -> None:
    world = world_of(basis)
    data = certified(world)
    assert verify(data).valid
    report = verify(data, world.evidence)
    assert report.valid, report.line
    assert report.claim is not None
    told = {one["code"]: one["text"] for one in report.claim["assumptions"]}
    assert basis.session in told["earlier_judgements"]
    assert (str(basis.certificate) in told["earlier_judgements"]) == (basis.certificate is not None)
    assert told["labels_seen"].startswith("Whether the makers of the new version saw labels")
    plan = Plan.from_dict(json.loads(data)["plan"])
    assert plan.based_on == basis
    assert (json.loads(data)["pool"]["based_on"]) == basis.to_dict()


def test_an_audit_rests_on_no_earlier_judgement() -> None:
    report = verify(certified(world_of(), audit=True), world_of().evidence)
    assert report.valid, report.line
    assert report.claim is not None
    codes = [one["code"] for one in report.claim["assumptions"]]
    assert "earlier_judgements" not in codes
    assert "labels_seen" in codes


@pytest.mark.parametrize(
    ("name", "where", "rule"),
    [
        ("loss_lower", "pool.columns.loss_lower, item", None),
        ("label", "what is carried over to item", "a true label"),
        ("round", "a round there twice", "one item a round"),
    ],
)
def test_forged_losses_of_true_labels_are_found_with_the_pool(
    name: str, where: str, rule: str | None
) -> None:
    world = world_of()
    item = int(np.flatnonzero(world.pool.columns["known"])[3])
    value = {"loss_lower": 1.0 - world.losses[item], "label": -1, "round": 1}[name]
    lie = forged_basis(world, name, {item: value})
    difference = verify(certified(lie), lie.evidence).difference
    assert difference is not None
    assert where in f"{difference.where} {difference.claimed}"
    assert rule is None or difference.found == rule


def test_a_label_beside_no_known_loss_is_found() -> None:
    world = world_of()
    unknown = int(np.flatnonzero(world.pool.columns["known"] == 0)[0])
    lie = forged_basis(world, "label", {unknown: 2})
    difference = verify(certified(lie), lie.evidence).difference
    assert difference is not None
    assert difference.found == "a loss that follows from it"


def test_an_unchanged_answer_that_no_round_judged_is_found() -> None:
    world = world_of(TEXT)
    item = int(np.flatnonzero(world.pool.columns["known"])[0])
    lie = forged_basis(world, "round", {item: 0})
    difference = verify(certified(lie), lie.evidence).difference
    assert difference is not None
    assert difference.found == "the round that judged it"


def test_pairs_with_the_old_version_verify_and_their_forgeries_do_not() -> None:
    world = world_of(pair=True)
    # Its differences are judged as losses of both sides elsewhere: here nothing is drawn.
    case = opened(world, "sharp", Claim(decide=0.05))
    data = case.certificate()
    assert verify(data, world.evidence).valid
    known = np.flatnonzero(world.pool.columns["label"] >= 0)
    item = int(known[world.pool.columns["same"][known] == 0][0])
    lie = forged_basis(world, "loss_lower", {item: -world.losses[item] or 1.0})
    difference = verify(opened(lie, "sharp", Claim(decide=0.05)).certificate(), lie.evidence)
    assert difference.difference is not None
    assert difference.difference.where == f"pool.columns.loss_lower, item {item}"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"session": "ses_1"}, "pool.based_on.session"),
        ({"labels_seen": "perhaps"}, "pool.based_on.labels_seen"),
        ({"certificate": "00"}, "pool.based_on.certificate"),
        ({"more": 1}, "pool.based_on"),
        (None, "plan"),
    ],
)
def test_a_header_that_no_service_writes_is_found(
    change: dict[str, Any] | None, where: str
) -> None:
    body: dict[str, Any] = json.loads(certified(world_of()))
    if change is None:
        del body["pool"]["based_on"]
    else:
        body["pool"]["based_on"] |= change
    assert where_of(verify(restated(body))).startswith(where)


def test_columns_of_a_session_without_one_are_found() -> None:
    world = world_of()
    bare = World(replace(world.pool, based_on=None), world.losses)
    difference = verify(certified(bare), bare.evidence).difference
    assert difference is not None
    assert difference.where == "pool.columns"
    assert difference.claimed == "round, label"


def test_classes_of_two_systems_that_the_pool_does_not_name_are_found() -> None:
    world = world_of()
    columns = dict(world.pool.columns)
    columns["prediction_a"] = columns["prediction"]
    lie = World(replace(world.pool, columns=columns), world.losses)
    data = opened(lie, "sharp").certificate()
    difference = verify(data, lie.evidence).difference
    assert difference is not None
    assert (difference.where, difference.claimed) == ("pool.columns", "prediction_a")


@pytest.mark.parametrize("based", [True, False])
def test_a_reason_that_names_another_session_is_found(based: Any) -> None:  # noqa: ANN401
    world = world_of()
    other = f"true label (ses_{'6' * 32})"
    columns = dict(world.pool.columns)
    if not based:
        columns = {name: one for name, one in columns.items() if name not in {"round", "label"}}
    lie = replace(world.pool, reasons=(other,), columns=columns)
    lie = lie if based else replace(lie, based_on=None)
    data = opened(World(lie, world.losses), "sharp").certificate()
    difference = verify(data, World(lie, world.losses).evidence).difference
    assert difference is not None
    assert (difference.where, difference.claimed) == ("pool.reasons", other)
