"""What a judged session leaves to the rows of a new version, row by row."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from celeus.core.pools.losses import LossScale
from celeus.core.pools.rows.earlier import EarlierRound, OldItem, loss_of
from tests.core.earlier import BASIS, PAIR, TEXT, carried, earlier_of, judged_as, rows_of

PROBABILITIES = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]


def with_probabilities(table: list[list[float]]) -> list[dict[str, Any]]:
    return [
        {"id": f"q{at}", "payload": "why?", "target_probs": one} for at, one in enumerate(table)
    ]


@pytest.mark.parametrize(
    ("scale", "known"),
    [
        # Of 0-1 losses the most probable class is the answer; cross-entropies take all of them.
        (LossScale.of("zero_one"), [True, True, False]),
        (LossScale.of("cross_entropy", upper=4.0), [True, False, False]),
    ],
)
def test_an_unchanged_answer_is_what_the_loss_takes(scale: LossScale, known: list[bool]) -> None:
    old = with_probabilities(PROBABILITIES)
    judged = [EarlierRound(at + 1, at, 1.0, None) for at in range(3)]
    earlier = earlier_of(old, judged, scale=scale)
    new = with_probabilities([PROBABILITIES[0], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3]])
    rows = carried(earlier, old, new).rows
    assert ["known" in row for row in rows if isinstance(row, dict)] == known


def test_a_label_gives_a_cross_entropy_of_other_probabilities() -> None:
    old = with_probabilities(PROBABILITIES)
    scale = LossScale.of("cross_entropy", upper=4.0)
    earlier = earlier_of(old, [EarlierRound(1, 2, 0.9, 2)], scale=scale)
    made = carried(earlier, old, with_probabilities(PROBABILITIES[::-1]))
    assert made.rows[2] == with_probabilities(PROBABILITIES[::-1])[2] | {
        "known": {"label": 2, "reason": BASIS.true_label}
    }
    assert (made.labels, made.rounds) == ({2: 2}, {2: 1})


@pytest.mark.parametrize(
    "row",
    [
        {"id": "q0", "payload": {"question": float("nan")}, "prediction": 1},
        {"id": "q0", "payload": {"question": 0}, "prediction": True},
        {"id": "q0", "payload": {"question": 0}, "prediction": 10**400},
        {"id": "q0", "payload": ["question"], "prediction": 1},
        {"id": "q0", "surrogates": 1},
        {"id": 7},
        "q0",
        None,
    ],
)
def test_rows_of_no_form_are_left_to_their_own_faults(row: object) -> None:
    old = rows_of([1, 2])
    earlier = earlier_of(old, judged_as([0, 1], [1, 2], [0, 1], labels=False))
    made = carried(earlier, old, [row])  # type: ignore[list-item]
    assert made.faults == []
    assert len(made.rows) == 1
    assert not isinstance(made.rows[0], dict) or "known" not in made.rows[0]


def test_a_comparison_gets_guesses_of_both_losses_or_of_their_difference() -> None:
    old = rows_of([1, 2, 3], texts=True)
    judged = judged_as([1, 1, 1], [1, 2, 3], [0, 1], labels=False)
    earlier = earlier_of(old, judged, TEXT, systems=PAIR)
    bare = carried(earlier, old, rows_of([0, 0, 0], texts=True, side="b")).rows
    assert [row["surrogate"] for row in bare if isinstance(row, dict)] == [-0.5, 0.5, 0.0]
    rows = rows_of([0, 0, 0], texts=True, side="b")
    for row in rows:
        row["b"]["surrogate"] = 0.25
    both = carried(earlier, old, rows).rows
    assert [row["a"]["surrogate"] for row in both if isinstance(row, dict)] == [0.0, 1.0, 0.5]
    assert [row["a"]["answer"] for row in both if isinstance(row, dict)] == [
        "option 1",
        "option 2",
        "option 3",
    ]


def test_what_a_judge_said_of_two_gives_the_loss_of_each() -> None:
    assert loss_of({"label": 3}, "a", "b", 3) == 0.0
    assert loss_of({"loss_a": 1, "loss_b": 0}, "b", "a", -1) == 0.0
    sides = {"loss_left": 1, "loss_right": 0}
    assert [loss_of(sides, side, "b", -1) for side in ("a", "b")] == [0.0, 1.0]
    assert loss_of({"preference": "left"}, "a", "a", -1) is None


def test_an_item_of_two_systems_is_taken_apart() -> None:
    whole = {"payload": "why?", "b": {"answer": "so", "payload": {"trace": "t"}}}
    basis = BASIS.__class__(**(BASIS.to_dict() | {"system": "b"}))
    assert OldItem.of(4, whole, basis) == OldItem(4, "why?", "so", {"trace": "t"})
    assert OldItem.of(4, None, basis) == OldItem(4, None, None, None)
    assert OldItem.of(4, {"question": 1, "answer": "so"}, TEXT) == OldItem(4, {"question": 1}, "so")
    assert np.isnan(earlier_of(rows_of([1, 2]), [EarlierRound(1, 0, 1.0, 0)]).loss[1])


def test_an_answer_that_was_judged_with_more_beside_it_is_judged_anew() -> None:
    old = rows_of([1], texts=True)
    earlier = earlier_of(old, judged_as([1], [1], [0], labels=False), TEXT)
    question = {name: one for name, one in old[0]["payload"].items() if name != TEXT.answer}
    for shown, known in ((None, True), ({"trace": "t"}, False)):
        item = OldItem(0, question, old[0]["payload"][TEXT.answer], shown)
        made = earlier.carry([1], [dict(old[0])], {old[0]["id"]: item})
        assert [isinstance(row, dict) and "known" in row for row in made.rows] == [known]


def test_rounds_are_looked_through_a_few_times_however_many_rows_there_are() -> None:
    class Counted(list[EarlierRound]):
        passes = 0

        def __iter__(self) -> Iterator[EarlierRound]:
            self.passes += 1
            return super().__iter__()

    old = rows_of([1] * 40)
    judged = Counted(judged_as([1] * 40, [1] * 40, range(40), labels=True))
    carried(earlier_of(old, judged), old, rows_of([2] * 40))
    assert judged.passes < 10
