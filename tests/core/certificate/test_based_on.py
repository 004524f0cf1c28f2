"""Certificates of a new version on a judged pool: what they say, and what is found out."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim, Plan
from celeus.core.pools.loss_bounds import Basis
from tests.core.certifying import World, corrected, opened, restated, where_of
from tests.core.earlier import BASIS, PAIR, TEXT, based_pool, earlier_of, judged_as, rows_of

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


def forged(world: World, name: str, change: dict[int, float]) -> World:
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
    lie = forged(world, name, {item: value})
    difference = verify(certified(lie), lie.evidence).difference
    assert difference is not None
    assert where in f"{difference.where} {difference.claimed}"
    assert rule is None or difference.found == rule


def test_a_label_beside_no_known_loss_is_found() -> None:
    world = world_of()
    unknown = int(np.flatnonzero(world.pool.columns["known"] == 0)[0])
    lie = forged(world, "label", {unknown: 2})
    difference = verify(certified(lie), lie.evidence).difference
    assert difference is not None
    assert difference.found == "a loss that follows from it"


def test_an_unchanged_answer_that_no_round_judged_is_found() -> None:
    world = world_of(TEXT)
    item = int(np.flatnonzero(world.pool.columns["known"])[0])
    lie = forged(world, "round", {item: 0})
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
    lie = forged(world, "loss_lower", {item: -world.losses[item] or 1.0})
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
