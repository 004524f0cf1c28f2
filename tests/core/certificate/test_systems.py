"""Certificates of two systems: they name both, and what is forged about sides is found out."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.api.pools.items import archive_of
from celeus.core.certificate.pool_checks import items_digest
from celeus.core.certificate.verify import verify
from celeus.core.insights.figures import Figures
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim
from celeus.core.pools.score import win_rate
from celeus.core.pools.systems import Systems
from celeus.errors import InvalidValue
from celeus.operations.certificates.npz import read_archive
from tests.core.certifying import (
    Case,
    World,
    corrected,
    drop,
    forged,
    known_world,
    opened,
    paired_world,
    put,
    where_of,
)

Document = dict[str, Any]


def judged(world: World, **claim: Any) -> Case:  # noqa: ANN401
    return corrected(opened(world, "sharp", Claim(precision=0.2, decide=0.05, **claim)))


def test_the_certificate_names_both_and_verifies() -> None:
    world = paired_world()
    data = judged(world).certificate()
    document = json.loads(data)
    assert document["pool"]["systems"]["a"] == "one"
    assert document["plan"]["systems"] == document["claim"]["systems"] == {"a": "one", "b": "two"}
    same = int((world.pool.columns["same"] == 1).sum())
    assert document["plan"]["known"]["reasons"] == {"same answer (whitespace)": same}
    bare = verify(data)
    assert bare.valid, bare.line
    assert "sides" in bare.checked
    won = win_rate(Interval(**document["claim"]["interval"]))
    figures = Figures(Interval(0.0, 1.0), won.width, 2)
    assert bare.sentence is not None
    assert f"{figures.below(won.lower)} to {figures.above(won.upper)}" in bare.sentence
    report = verify(data, world.evidence, items=world.lines)
    assert report.valid, report.line
    assert {"sides", "labels", "items", "draws", "claim"} <= set(report.checked)


def test_an_interim_certificate_cannot_show_how_sides_were_drawn() -> None:
    report = verify(judged(paired_world()).certificate(final=False))
    assert report.valid, report.line
    assert "seed" in report.unchecked["sides"]


def test_an_audit_draws_what_has_one_answer_too() -> None:
    world = paired_world()
    report = verify(judged(world, audit=True).certificate(), world.evidence)
    assert report.valid, report.line


def _first(body: Document, kind: str) -> Document:
    return next(one for one in body["ledger"] if one["kind"] == kind)


def _turn(body: Document) -> None:
    """A draw shown the other way round, and its judge's word turned with it."""
    draw = _first(body, "draw")
    draw["detail"]["left"] = "b" if draw["detail"]["left"] == "a" else "a"
    detail = _first(body, "observation")["detail"]
    detail["preference"] = {"left": "right", "right": "left", "tie": "tie"}[detail["preference"]]


def _exchange(body: Document) -> None:
    for place in (body["pool"], body["plan"], body["claim"]):
        place["systems"] |= {"a": "two", "b": "one"}


@pytest.mark.parametrize(
    ("systems", "where"),
    [
        ({"loss": {"kind": "bounded", "lower": -1e15, "upper": 1e15}}, "pool.loss.upper"),
        ({"loss": {"kind": "bounded", "lower": 1.0, "upper": 0.0}}, "pool.loss.upper"),
        ({"loss": {"kind": "zero_one", "lower": 0.0, "upper": 5.0}}, "pool.loss.upper"),
        ({"loss": {"kind": "preference", "lower": 0.0, "upper": 2.0}}, "pool.loss.lower"),
        ({"loss": {"kind": "squared", "lower": 0.0, "upper": 1.0}}, "pool.systems.loss.kind"),
        ({"loss": "zero_one"}, "pool.systems.loss"),
        ({"b": "one"}, "pool.systems.b"),
        ({"a": 1.0}, "pool.systems.a"),
        ({"c": "three"}, "pool.systems.c"),
        ({"normalisation": "stemmed"}, "pool.systems.normalisation"),
    ],
)
def test_systems_that_no_pool_has_are_found(systems: Document, where: str) -> None:
    def change(body: Document) -> None:
        body["pool"]["systems"] |= systems

    assert where_of(verify(forged(judged(paired_world()).certificate(), change))) == where


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '{"a": "x"}', '{"a": "one", "b": "two", "loss": 1}', "[" * 100_000]
)
def test_an_archive_with_other_systems_is_refused(text: str) -> None:
    world = paired_world()
    with archive_of(world.pool) as whole:
        arrays = dict(np.load(whole))
    loss = '"loss": {"kind": "bounded", "lower": 0, "upper": 1' + "0" * 400 + "}"
    for systems in (text, '{"a": "x", "b": "y", ' + loss + ', "normalisation": "exact"}'):
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays | {"systems": np.array(systems)})
        with pytest.raises(InvalidValue, match="not usable"):
            read_archive(file)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_turn, "the left of round 1"),
        (drop("ledger[0].detail.left"), "ledger[0].detail.left"),
        (drop("ledger[1].detail.preference"), "ledger[1].detail"),
        (put("claim.systems.a", to="three"), "claim.systems.a"),
        (put("plan.systems.a", to="three"), "plan.systems.a"),
    ],
)
def test_forged_sides_and_names_are_found_without_the_pool(
    change: Callable[[Document], None], where: str
) -> None:
    assert where_of(verify(forged(judged(paired_world()).certificate(), change))) == where


def test_exchanged_names_are_found_with_the_pool() -> None:
    world = paired_world()
    data = forged(judged(world).certificate(), _exchange)
    assert verify(data).valid
    assert where_of(verify(data, world.evidence)) == "pool.systems.a"


def test_a_word_that_says_another_loss_is_found() -> None:
    def turn(body: Document) -> None:
        detail = _first(body, "observation")["detail"]
        detail["preference"] = "tie" if detail["preference"] != "tie" else "left"

    world = paired_world()
    assert (
        where_of(verify(forged(judged(world).certificate(), turn), world.evidence))
        == "ledger[1].loss"
    )


@pytest.mark.parametrize("beside", [{"label": 1}, {"loss_left": 0.0, "loss_right": 1.0}])
def test_words_that_say_two_things_are_found(beside: Document) -> None:
    def add(body: Document) -> None:
        _first(body, "observation")["detail"] |= beside

    world = paired_world()
    assert (
        where_of(verify(forged(judged(world).certificate(), add), world.evidence))
        == "ledger[1].detail.preference"
    )


def test_items_forged_to_have_one_answer_are_found() -> None:
    """An issuer who names the forged pool by its digest still cannot make two texts one."""
    honest = paired_world()
    columns = {name: column.copy() for name, column in honest.pool.columns.items()}
    item = int(np.flatnonzero((columns["same"] == 0) & (honest.losses > 0.0))[0])
    columns["loss_lower"][item] = columns["loss_upper"][item] = 0.0
    columns["known"][item] = 1
    world = World(replace(honest.pool, columns=columns), honest.losses, honest.rows)
    assert where_of(verify(judged(world).certificate(), world.evidence)) == "pool.columns.known"
    columns["same"][item] = 1
    world = World(replace(honest.pool, columns=dict(columns)), honest.losses, honest.rows)
    data = judged(world).certificate()
    assert verify(data, world.evidence).valid
    assert where_of(verify(data, world.evidence, items=world.lines)) == "pool.columns.same"


def test_one_answer_forged_to_have_a_difference_is_found() -> None:
    """The same answer is no reason for any other difference than 0."""
    honest = paired_world()
    columns = {name: column.copy() for name, column in honest.pool.columns.items()}
    item = int(np.flatnonzero(columns["same"] == 1)[0])
    columns["loss_lower"][item] = columns["loss_upper"][item] = -1.0
    world = World(replace(honest.pool, columns=columns), honest.losses, honest.rows)
    assert (
        where_of(verify(judged(world).certificate(), world.evidence, items=world.lines))
        == "pool.columns.loss_lower"
    )


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        ("preference", ("prediction_a",)),
        ("preference", ("prediction_b",)),
        ("preference", ("prediction_a", "prediction_b")),
        ("zero_one", ("prediction_a", "prediction_b")),
    ],
)
def test_classes_forged_beside_texts_are_found(kind: str, added: tuple[str, ...]) -> None:
    """Classes would say what is the same answer in the place of the texts that judges saw."""
    honest = paired_world()
    assert honest.pool.systems is not None
    systems = Systems.of(("one", "two"), (kind, None, None), honest.pool.systems.normalisation)
    same = honest.pool.columns["same"] == 1
    number = np.arange(same.size, dtype="<i4")
    made = {"prediction_a": number, "prediction_b": np.where(same, number, -1).astype("<i4")}
    columns = dict(honest.pool.columns) | {name: made[name] for name in added}
    reasons = (systems.reason(classes=kind == "zero_one"),)
    forged_pool = replace(honest.pool, columns=columns, named=systems, reasons=reasons)
    world = World(forged_pool, honest.losses, honest.rows)
    case = opened(world, "sharp", Claim(precision=0.2))
    assert where_of(verify(case.certificate(), world.evidence, items=world.lines)) == "pool.columns"


def test_another_reason_for_the_same_answer_is_found() -> None:
    honest = paired_world()
    pool = replace(honest.pool, reasons=("same answer (exact)",))
    world = World(pool, honest.losses, honest.rows)
    assert where_of(verify(judged(world).certificate(), world.evidence)) == "pool.reasons"


def test_equal_texts_that_decide_nothing_are_not_known() -> None:
    honest = paired_world()
    assert honest.pool.systems is not None
    systems = replace(honest.pool.systems, normalisation=None)
    pool = replace(honest.pool, named=systems, reasons=(systems.reason(classes=False),))
    world = World(pool, honest.losses, honest.rows)
    assert where_of(verify(judged(world).certificate(), world.evidence)) == "pool.columns.same"


def test_items_are_as_many_as_the_pool_says() -> None:
    world = paired_world()
    few = world.lines[:1]
    pool = replace(world.pool, items_digest=bytes.fromhex(items_digest(few, world.pool.systems)))
    data = judged(World(pool, world.losses, world.rows)).certificate()
    assert where_of(verify(data, items=few)) == "pool.items"


def test_an_answer_changed_afterwards_is_found() -> None:
    world = paired_world()
    data = judged(world).certificate()
    rows = list(world.rows)
    rows[7] = rows[7] | {"a": {"answer": "a better one"}}
    assert (
        where_of(verify(data, items=replace(world, rows=tuple(rows)).lines)) == "pool.items_digest"
    )


def test_pools_of_one_system_say_nothing_of_systems() -> None:
    document = json.loads(opened(known_world()).certificate())
    for place in (document["pool"], document["plan"], document["claim"]):
        assert "systems" not in place
