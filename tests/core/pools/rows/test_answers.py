"""Rows with the answers of two systems, or of several."""

from typing import Any

import numpy as np
import pytest

from celeus.core.pools.comparison import stated_losses
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.rows.answers import (
    all_same,
    assemble_lineup,
    assemble_pairs,
    composed_of_all,
)
from celeus.core.pools.rows.assembly import Assembly
from celeus.core.pools.rows.validation import Shape
from celeus.core.pools.systems import Lineup, Systems, systems_from
from celeus.errors import InvalidValue, LossOutsideScale

CLASSES = Systems.of(("one", "two"), ("zero_one", None, None), "exact")
TEXTS = Systems.of(("one", "two"), ("preference", None, None), "whitespace")


def assembled(systems: Systems, *rows: object, shape: Shape | None = None) -> Assembly:
    return assemble_pairs(range(1, len(rows) + 1), rows, systems, shape)


def row(at: int, a: object, b: object, **more: object) -> dict[str, Any]:
    own = "prediction" if isinstance(a, int) else "answer"
    return {"id": str(at), "a": {own: a}, "b": {own: b}, **more}


def test_equal_classes_are_known_and_the_others_are_not() -> None:
    done = assembled(CLASSES, row(1, 3, 3), row(2, 3, 0), row(3, 1, 1))
    assert not done.faults
    assert done.batch.columns["prediction_a"].tolist() == [3, 3, 1]
    assert done.batch.columns["same"].tolist() == [1, 0, 1]
    assert done.batch.columns["loss_lower"].tolist() == [0.0, -1.0, 0.0]
    assert done.batch.columns["loss_upper"].tolist() == [0.0, 1.0, 0.0]
    assert done.batch.reasons == ["same answer", "", "same answer"]


def test_equal_texts_are_known_by_the_normalisation_of_the_pool() -> None:
    done = assembled(TEXTS, row(1, "a  b", "a b"), row(2, "A b", "a b"))
    assert done.batch.reasons == ["same answer (whitespace)", ""]
    assert done.batch.payloads == [
        b'{"a":{"answer":"a  b"},"b":{"answer":"a b"}}',
        b'{"a":{"answer":"A b"},"b":{"answer":"a b"}}',
    ]


def test_surrogates_of_both_give_the_difference_and_the_chance_of_one() -> None:
    rows = [row(1, 0, 1), row(2, 1, 2)]
    for one, (a, b) in zip(rows, ((0.25, 0.75), (0.5, 0.125)), strict=True):
        one["a"]["surrogate"], one["b"]["surrogate"] = a, b
    columns = assembled(CLASSES, *rows).batch.columns
    assert columns["surrogate.0"].tolist() == [-0.5, 0.375]
    # Of two classes one at most is right
    assert columns["change"].tolist() == [1.0, 1.0]
    texts = [row(1, "x", "y", surrogate=-0.5), row(2, "x", "z", surrogate=1)]
    assert assembled(TEXTS, *texts).batch.columns["surrogate.0"].tolist() == [-0.5, 1.0]


def test_a_known_label_gives_the_difference() -> None:
    known = {"label": 1, "reason": "judged before"}
    done = assembled(CLASSES, row(1, 1, 2, known=known), row(2, 2, 1, known=known))
    assert done.batch.columns["loss_lower"].tolist() == [-1.0, 1.0]
    assert done.batch.reasons == ["judged before"] * 2


def test_bad_rows_leave_the_good_ones_aligned() -> None:
    rows = [row(1, 1, 2), {"id": "2"}, row(3, 0, 0), row(3, 4, 5), "junk", row(5, 7, 6)]
    done = assembled(CLASSES, *rows)
    assert done.batch.lines == [1, 3, 6]
    assert done.batch.columns["prediction_b"].tolist() == [2, 0, 6]
    assert [(one.line, one.field) for one in done.faults] == [
        (2, "a"),
        (2, "b"),
        (4, "id"),
        (5, ""),
    ]


def test_later_uploads_carry_what_the_first_did() -> None:
    first = assembled(CLASSES, row(1, 1, 2))
    assert first.shape is not None
    columns = sorted(first.batch.columns)
    assert Shape.of_columns(columns, None) == first.shape
    later = assembled(CLASSES, row(2, "x", "y"), row(3, 1, 1), shape=first.shape)
    assert [(one.line, one.field) for one in later.faults] == [(1, "a.answer"), (1, "a.prediction")]
    assert later.batch.lines == [2]


@pytest.mark.parametrize(
    ("systems", "item", "fields"),
    [
        (CLASSES, {"a": {"prediction": 1}}, ["b"]),
        (CLASSES, {"a": {"prediction": 1}, "b": "x"}, ["b"]),
        (CLASSES, {"a": {"prediction": 1}, "b": {"answer": "x"}}, ["a.answer", "b.prediction"]),
        (CLASSES, {"a": {"prediction": -1}, "b": {"prediction": 1}}, ["a.prediction"]),
        (CLASSES, {"a": {"prediction": 1.0}, "b": {"prediction": 1}}, ["a.prediction"]),
        (CLASSES, row(1, 1, 2, prediction=1), ["prediction"]),
        (CLASSES, row(1, 1, 2, loss_lower=0.0), ["loss_lower"]),
        (CLASSES, row(1, 1, 2, known={"loss": 0, "reason": "same answer"}), ["known.reason"]),
        (CLASSES, row(1, 2, 2, known={"loss": 1, "reason": "why"}), ["known.loss"]),
        (CLASSES, row(1, 1, 2, known={"loss": 7, "reason": "why"}), ["known.loss"]),
        (CLASSES, row(1, 1, 2, known={"label": "x", "reason": "why"}), ["known.label"]),
        (CLASSES, row(1, 1, 2, known={"loss": 0.5, "reason": "why"}), ["known.loss"]),
        (CLASSES, row(1, 2, 2, known="junk"), ["known"]),
        (
            CLASSES,
            {"a": {"prediction": 1}, "b": {}, "known": {"label": 2, "reason": "why"}},
            ["known.label", "b.prediction"],
        ),
        (CLASSES, row(1, 2, 2, known={"loss": 0}), ["known.reason"]),
        (CLASSES, row(1, 2, 2, known={"loss": 0, "label": 2, "reason": "why"}), ["known"]),
        (TEXTS, row(1, "x", "y", known={"label": 1, "reason": "why"}), ["known.label"]),
        (TEXTS, row(1, 1, 2), ["a.prediction", "b.prediction"]),
        (TEXTS, {"a": {"answer": 1}, "b": {"answer": "1"}}, ["a.answer"]),
        (TEXTS, {"a": {"answer": "x", "rank": 1}, "b": {"answer": "y", "rank": 2}}, ["a.rank"] * 1),
        (TEXTS, row(1, "x", "y", payload=[1]), ["payload"]),
        (TEXTS, {"a": {"answer": "x", "payload": 1}, "b": {"answer": "y"}}, ["a.payload"]),
        (TEXTS, {"a": {"answer": "x\0"}, "b": {"answer": "y"}}, ["a.answer"]),
        (TEXTS, row(1, "x", "y", payload={"id": 2**60}), ["payload.id"]),
        (TEXTS, row(1, "x", "y", surrogate=2), ["surrogate"]),
        (
            TEXTS,
            {"a": {"answer": "x", "surrogate": 2}, "b": {"answer": "y", "surrogate": 0}},
            ["a.surrogate"],
        ),
        (
            TEXTS,
            {"a": {"surrogate": 1}, "b": {"surrogate": 0}, "surrogate": 0.5},
            ["surrogate"],
        ),
    ],
)
def test_what_is_wrong_is_named(systems: Systems, item: dict[str, Any], fields: list[str]) -> None:
    faults = assembled(systems, {"id": "1"} | item).faults
    named = [one.field for one in faults]
    assert set(fields) <= set(named), faults
    assert len(named) - len(fields) <= 1


def test_a_row_without_answers_is_one_too() -> None:
    done = assembled(TEXTS, {"id": "1", "payload": "which?", "a": {"payload": "l"}, "b": {}})
    assert not done.faults
    assert "same" not in done.batch.columns
    assert done.batch.payloads == [b'{"a":{"payload":"l"},"payload":"which?"}']
    assert np.isin(list(done.batch.columns), ["same", "known"]).sum() == 0


@pytest.mark.parametrize("field", ["answer", "payload"])
def test_a_text_that_cannot_be_kept_is_named_by_its_field(field: str) -> None:
    systems = Systems.of(("A", "B"), ("zero_one", None, None), "exact")
    good = {"answer": "one", "payload": "seen"}
    row = {"id": "x", "a": good, "b": good | {field: "a\0b"}}
    done = assemble_pairs([1], [row], systems, None)
    assert [one.field for one in done.faults] == [f"b.{field}"]


NAMES = ("x", "y", "z")


def lineup(kind: str = "zero_one") -> Lineup:
    return Lineup.of(NAMES, (kind, 0.0, 1.0), "exact")


def classes() -> Pool:
    columns = {"predictions": np.array([[1, 2, 1], [0, 0, 0]], dtype="<i4")}
    return Pool(2, LossScale.of("zero_one"), columns, (), CHAIN_START, (), lineup())


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [("exact", [0, 1, 2, 3]), ("whitespace", [0, 0, 2, 3]), ("casefold", [0, 0, 0, 3])],
)
def test_a_code_is_the_first_system_with_the_same_text(
    normalisation: str, expected: list[int]
) -> None:
    made = Lineup.of(("a1", "a2", "a3", "a4"), ("zero_one", None, None), normalisation)
    assert made.codes(["4 km", " 4  km", "4 KM", "5 km"]) == expected


def test_a_lineup_survives_its_dictionary() -> None:
    assert systems_from(lineup("bounded").to_dict()) == lineup("bounded")


def test_known_are_the_items_that_all_answer_the_same() -> None:
    codes = classes().codes
    assert codes is not None
    assert all_same(codes).tolist() == [False, True]


def test_a_label_gives_the_losses_of_all() -> None:
    assert stated_losses(classes(), lineup(), 0, {"label": 1}, None) == (0.0, 1.0, 0.0)
    assert stated_losses(classes(), lineup(), 0, {"losses": {"x": 0, "y": 1, "z": 0}}, None) == (
        0.0,
        1.0,
        0.0,
    )


def test_losses_of_the_answers_shown_go_to_all_that_gave_them() -> None:
    pool = Pool(1, LossScale.of("zero_one"), {}, (), CHAIN_START, (), lineup())
    assert stated_losses(pool, lineup(), 0, {"losses": [1, 0]}, [(1,), (0, 2)]) == (0.0, 1.0, 0.0)
    with pytest.raises(InvalidValue, match="every answer") as refused:
        stated_losses(pool, lineup(), 0, {"losses": [1, 0, 1]}, [(1,), (0, 2)])
    assert refused.value.value == 3
    with pytest.raises(LossOutsideScale):
        stated_losses(pool, lineup(), 0, {"losses": [1, 0.5]}, [(1,), (0, 2)])
    with pytest.raises(InvalidValue, match="no `label`"):
        stated_losses(pool, lineup(), 0, {"label": 1}, [(1,), (0, 2)])


def test_answers_may_be_left_out_of_all_items_and_of_none() -> None:
    bare = [{"id": "a"}, {"id": "b", "payload": "b?"}]
    done = assemble_lineup([1, 2], bare, lineup(), None)
    assert not done.faults
    assert done.batch.reasons == ["", ""]
    given = {"id": "c", "answers": {name: {"prediction": 1} for name in NAMES}}
    later = assemble_lineup([3], [given], lineup(), done.shape)
    assert {fault.field for fault in later.faults} == {
        f"answers.{name}.prediction" for name in NAMES
    }


def test_what_a_judge_sees_is_bound_by_the_payload_of_the_item() -> None:
    row = {
        "id": "a",
        "payload": "q",
        "answers": {
            "x": {"answer": "1", "surrogate": 0.5},
            "y": {"answer": "2", "payload": {"trace": "t"}},
            "z": {"prediction": 3},
        },
    }
    assert composed_of_all(row) == {
        "payload": "q",
        "answers": {"x": {"answer": "1"}, "y": {"answer": "2", "payload": {"trace": "t"}}},
    }


def test_the_shape_of_a_pool_is_read_off_its_columns() -> None:
    shape = Shape.of_columns(["answers", "known", "surrogates"], None)
    assert shape.carried == {"answer", "surrogate"}
    assert Shape.of_columns(["predictions", "known"], None).carried == {"prediction"}


def test_rows_that_are_no_objects_are_told_by_line() -> None:
    done = assemble_lineup([1, 2, 3], [[], "x", {"id": "a", "answers": {"w": {}}}], lineup(), None)
    assert [fault.line for fault in done.faults][:2] == [1, 2]
    assert "answers.w" in {fault.field for fault in done.faults}


def test_a_row_that_becomes_no_item_does_not_say_what_all_carry() -> None:
    rows = [
        {"id": "", "answers": {name: {"answer": "1", "surrogate": 0.5} for name in NAMES}},
        {"id": "b", "answers": {name: {"answer": "1"} for name in NAMES}},
    ]
    done = assemble_lineup([1, 2], rows, lineup(), None)
    assert [(fault.line, fault.field) for fault in done.faults] == [(1, "id")]
    assert done.batch.ids == ["b"]
