"""What a comparison says is true to the word, and to the figures it rounds outwards."""

from typing import Any

import pytest

from celeus.core.pools.losses import LossScale
from celeus.core.pools.systems import Systems
from celeus.web.report.verdict import Contrast


def contrast(kind: str = "zero_one", upper: float | None = None) -> Contrast:
    lower = 0.0 if kind == "bounded" else None
    systems = Systems.of(("old", "new"), (kind, lower, upper), "exact")
    found = Contrast.of(systems.scale, systems)
    assert found is not None
    return found


def status(lower: float, upper: float, estimate: float, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    told: dict[str, Any] = {"lower": lower, "upper": upper, "estimate": estimate, "alpha": 0.05}
    told |= {"scale": {"lower": -1.0, "upper": 1.0}, "items": 100, "known": 40, "state": "active"}
    told |= {"rounds": {"in_interval": 30}, "verdict": None}
    return told | others


def asked(answer: str, margin: float = 0.02) -> dict[str, Any]:
    return {"verdict": {"margin": margin, "answer": answer, "round": 30}}


SURE = ", 95\N{NARROW NO-BREAK SPACE}% sure at every moment."


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            status(0.0081, 0.0538, 0.0311, **asked("b_at_least_as_good")),
            f"new makes 3.1 points fewer errors than old (0.8 to 5.4){SURE}",
        ),
        (
            status(-0.0538, -0.0081, -0.0311, **asked("a_at_least_as_good")),
            f"old makes 3.1 points fewer errors than new (0.8 to 5.4){SURE}",
        ),
        (
            status(0.0, 0.0538, 0.0311, **asked("b_at_least_as_good")),
            f"new makes at most as many errors as old: 0.0 to 5.4 points fewer{SURE}",
        ),
        (
            status(-1e-13, 0.0538, 0.0311, **asked("b_at_least_as_good")),
            f"new makes at most as many errors as old: 0.0 to 5.4 points fewer{SURE}",
        ),
        (
            status(-0.012, 0.0171, 0.0, **asked("equivalent")),
            (
                "old and new are equivalent: their error rates differ by at most 2 points. new"
                f" makes between 1.2 points more and 1.8 points fewer errors than old{SURE}"
            ),
        ),
        (
            status(-0.0121, 0.0538, 0.02, **asked("undecided")),
            (
                "Undecided so far. new makes between 1.3 points more and 5.4 points fewer errors"
                f" than old{SURE}"
            ),
        ),
        (
            status(-0.0121, 0.0538, 0.02, state="closed", **asked("undecided")),
            (
                "Undecided. new makes between 1.3 points more and 5.4 points fewer errors"
                f" than old{SURE}"
            ),
        ),
        (
            status(-0.6, 0.6, 0.0, rounds={"in_interval": 0}, **asked("undecided")),
            (
                "Nothing is judged yet: new makes between 60 points more and 60 points fewer errors"
                " than old."
            ),
        ),
        (
            status(0.05, 0.05, 0.05, rounds={"in_interval": 60}, **asked("b_at_least_as_good")),
            "new makes 5.00 points fewer errors than old; every item is judged or known.",
        ),
        (
            status(0.0081, 0.0538, 0.0311, effective_items=12.5),
            f"new makes 3.1 points fewer errors than old (0.8 to 5.4), counted by weight{SURE}",
        ),
        (
            status(0.0, 0.0, 0.0, rounds={"in_interval": 60}),
            "old and new make equally many errors; every item is judged or known.",
        ),
    ],
)
def test_errors_are_told_in_points(told: dict[str, Any], sentence: str) -> None:
    assert contrast().sentence(told) == sentence


@pytest.mark.parametrize(
    ("kind", "upper", "sentence"),
    [
        (
            "preference",
            None,
            "new is preferred on 12.4 points more of the items than old (3.0 to 21.4)",
        ),
        ("preference", 2.0, "new is 0.124 grades better than old on average (0.030 to 0.214)"),
        ("bounded", 2.0, "new has a mean loss 0.124 lower than old (0.030 to 0.214)"),
    ],
)
def test_other_judgements_are_told_in_their_own_words(
    kind: str, upper: float | None, sentence: str
) -> None:
    said = contrast(kind, upper).sentence(status(0.03, 0.2137, 0.1243))
    assert said == f"{sentence}{SURE}"


def test_systems_without_names_are_a_and_b() -> None:
    assert Contrast.of(LossScale.of("zero_one"), None) is None
    unnamed = Contrast.of(LossScale.of("difference"), None)
    assert unnamed is not None
    assert unnamed.sentence(status(0.03, 0.2137, 0.1243)).startswith("B has a mean loss")
