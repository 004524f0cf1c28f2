"""Numbers of other kinds that a judge returns, and a best system whose texts decide nothing."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import celeus

IDS = [f"item-{number}" for number in range(4)]
ITEMS = [{"id": name, "payload": {"name": name}} for name in IDS]


def test_a_decimal_is_a_number(tmp_path: Path) -> None:
    """Money and marks are often decimals."""
    session = celeus.certify(
        ITEMS, lambda _: Decimal("0.25"), loss=(0, 1), budget="all", file=tmp_path / "run"
    )
    assert session.status().lower == session.status().upper == 0.25


@pytest.mark.parametrize(
    "value",
    [
        *(10**400, Decimal("NaN"), Decimal("sNaN"), Decimal("1e999")),
        *(float("nan"), np.array([1.0, 0.0]), {1.0}, 1j),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_numbers_that_no_float_holds_are_refused(tmp_path: Path, value: object) -> None:
    """They are refused by a sentence, not by an exception of arithmetic."""
    with pytest.raises(celeus.Refusal, match=r"a loss of 'item-.' must be a finite number"):
        celeus.certify(ITEMS, lambda _: value, budget="all", file=tmp_path / "run")


def test_true_is_no_grade(tmp_path: Path) -> None:
    """On a scale from 1 to 5 it would be the worst grade."""
    with pytest.raises(celeus.Refusal, match="a number from 1 to 5, and is True"):
        celeus.certify(
            ITEMS,
            lambda _: True,
            loss=(1, 5),
            score=("grade", "higher"),
            budget="all",
            file=tmp_path / "run",
        )


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (True, "is True: is it right or wrong. Return a loss as a number from 1 to 5"),
        (None, "returned nothing for .*: return a loss as a number from 1 to 5, or call"),
        ("good", "must be a loss as a number from 1 to 5, and is 'good'"),
    ],
)
def test_what_is_no_loss_is_refused_with_the_ends_of_the_scale(
    tmp_path: Path, returned: object, says: str
) -> None:
    with pytest.raises(celeus.Refusal, match=says):
        celeus.certify(ITEMS, lambda _: returned, loss=(1, 5), budget="all", file=tmp_path / "run")


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (True, "is True: which is better. Return left, tie or right"),
        (None, "returned nothing for .*: return left, tie or right, or call"),
        ("good", "must be left, tie or right"),
    ],
)
def test_what_is_no_preference_is_refused_with_the_words_of_one(
    tmp_path: Path, returned: object, says: str
) -> None:
    one, two = dict.fromkeys(IDS, "yes"), dict.fromkeys(IDS, "no")
    with pytest.raises(celeus.Refusal, match=says) as refusal:
        celeus.compare(one, two, lambda _: returned, budget="all", file=tmp_path / "run")
    assert "0.0" not in refusal.value.detail


def test_a_metric_that_is_none_is_refused_as_none_alone(tmp_path: Path) -> None:
    metrics: dict[str, str | tuple[float, float]] = {"exact": "zero_one", "grade": (1, 5)}
    with pytest.raises(celeus.Refusal, match="judge returned nothing for the exact of 'item-"):
        celeus.certify(
            ITEMS,
            lambda _: {"exact": None, "grade": 2.0},
            metrics=metrics,
            precision=0.1,
            file=tmp_path / "run",
        )


def test_an_async_judge_is_refused_with_what_takes_one(tmp_path: Path) -> None:
    async def judge(_: object) -> float:
        return 0.0

    class Judge:
        async def __call__(self, _: object) -> float:
            return 0.0

    for given in (judge, Judge()):
        with pytest.raises(celeus.Refusal, match=r"celeus\.AsyncClient.* or a plain function"):
            celeus.certify(ITEMS, given, budget="all", file=tmp_path / "run")


@pytest.mark.parametrize("normalisation", [None, "exact"])
def test_equal_texts_are_assumed_equal_only_where_they_decide(
    tmp_path: Path, normalisation: str | None
) -> None:
    """Without a normalisation equal answers are judged apart, and nothing is assumed of them."""
    systems = {
        "one": dict.fromkeys(IDS, "yes"),
        "two": dict(zip(IDS, ("yes", "yes", "no", "no"), strict=True)),
        "three": dict.fromkeys(IDS, "no"),
    }
    session = celeus.best(
        systems,
        lambda turn: [float(answer.answer == "no") for answer in turn.answers],
        normalisation=normalisation,
        budget="all",
        file=tmp_path / "run",
    )
    session.close()
    assumed = b"same_answers" in session.certificate()
    assert assumed == (normalisation is not None)


def test_a_tie_is_listed_without_a_grade(tmp_path: Path) -> None:
    words = ("left", "tie", "right", "both_bad")
    one, two = dict.fromkeys(IDS, "yes"), dict.fromkeys(IDS, "no")
    session = celeus.compare(
        one, two, lambda turn: words[turn.index], budget="all", file=tmp_path / "run"
    )
    grades = {label.index: label.grade for label in session.labels()}
    assert grades == {0: 1, 1: None, 2: 1, 3: None}
