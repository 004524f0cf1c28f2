"""A pool of items that nobody has answered yet is guessed by the models that have."""

import pytest

from celeus.errors import InvalidValue
from celeus.intake.joining import guessed
from celeus.intake.rows import Row

ITEMS = [Row(id=f"q{at}", model="", loss=None, check=str(at)) for at in range(4)]


def row(at: int, loss: float, check: str | None = None, model: str = "old") -> Row:
    return Row(id=f"q{at}", model=model, loss=loss, check=str(at) if check is None else check)


def test_every_item_has_a_guess_where_any_has() -> None:
    # A model's verdict is tempered by the mean of all, which is that of an item without one
    joined = guessed(ITEMS, [row(0, 1.0), row(1, 0.0), row(2, 0.0), row(9, 1.0)])
    third = 1 / 3
    assert [item.name for item in joined.items] == ["q0", "q1", "q2", "q3"]
    assert [item.guess for item in joined.items] == pytest.approx(
        [(1 + third) / 2, third / 2, third / 2, third]
    )
    assert (joined.models, joined.unguessed) == (("old",), 1)


def test_without_logs_there_are_no_guesses() -> None:
    assert [item.guess for item in guessed(ITEMS, []).items] == [None] * 4


def test_logs_of_other_items_are_refused() -> None:
    with pytest.raises(InvalidValue, match="the logs are of other items: none of them is q0"):
        guessed(ITEMS, [row(9, 1.0)])
    said = "item q1 is not the same in the data set and in the log of old: the logs are of two"
    with pytest.raises(InvalidValue, match=said):
        guessed(ITEMS, [row(1, 1.0, check="another")])
