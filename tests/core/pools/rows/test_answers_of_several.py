"""Rows of several systems: which answers are the same, and what a judge's words come to."""

import numpy as np
import pytest

from celeus.core.pools.comparison import stated_losses
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.rows.answers import all_same, assemble_lineup, composed_of_all
from celeus.core.pools.rows.validation import Shape
from celeus.core.pools.systems import Lineup, systems_from
from celeus.errors import InvalidValue, LossOutsideScale

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
