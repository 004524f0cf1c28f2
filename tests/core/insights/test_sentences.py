"""What a session says is true to the word, and to the figures it rounds outwards."""

from decimal import Decimal
from math import ulp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.insights.figures import Figures, sure
from celeus.core.insights.sentences import Contrast, sentence, table_sentence
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import Better, Score, declared_score, default_score
from celeus.core.pools.systems import Systems


def contrast(
    kind: str = "zero_one", upper: float | None = None, score: tuple[str, Better] | None = None
) -> Contrast:
    lower = 0.0 if kind == "bounded" else None
    systems = Systems.of(("old", "new"), (kind, lower, upper), "exact")
    declared = None if score is None else declared_score(*score, systems.scale, systems)
    found = Contrast.of(systems.scale, systems, declared)
    assert found is not None
    return found


def status(lower: float, upper: float, estimate: float, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    told: dict[str, Any] = {"lower": lower, "upper": upper, "estimate": estimate, "alpha": 0.05}
    told |= {"scale": {"lower": -1.0, "upper": 1.0}, "items": 100, "known": 40, "state": "active"}
    told |= {"rounds": {"in_interval": 30}, "verdict": None, "best": None}
    told |= {"effective_items": None, "target": "pool"}
    return told | others


def asked(answer: str, margin: float = 0.02) -> dict[str, Any]:
    return {"verdict": {"margin": margin, "answer": answer, "round": 30}}


SURE = ", valid at every look with 95\N{NARROW NO-BREAK SPACE}% confidence."


@pytest.mark.parametrize(
    ("told", "said"),
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
            status(-0.7, -0.05, -0.3, **asked("a_at_least_as_good")),
            f"old makes at most as many errors as new: 5 to 70 points fewer{SURE}",
        ),
        (
            status(0.0, 0.0, 0.0, rounds={"in_interval": 60}),
            "old and new make equally many errors; every item is judged or known.",
        ),
    ],
)
def test_errors_are_told_in_points(told: dict[str, Any], said: str) -> None:
    assert contrast().sentence(told) == said


@pytest.mark.parametrize(
    ("kind", "upper", "words"),
    [
        (
            "preference",
            None,
            (
                "new is preferred on 12.4 points more of the items than old (3.0 to 21.4); with"
                " ties as half new wins 56.2\u202f% (51.5 to 60.7)"
            ),
        ),
        ("preference", 2.0, "new is 0.124 grades better than old on average (0.030 to 0.214)"),
        ("bounded", 2.0, "new has a mean loss 0.124 lower than old (0.030 to 0.214)"),
    ],
)
def test_other_judgements_are_told_in_their_own_words(
    kind: str, upper: float | None, words: str
) -> None:
    said = contrast(kind, upper).sentence(status(0.03, 0.2137, 0.1243))
    assert said == f"{words}{SURE}"


@pytest.mark.parametrize(
    ("told", "won"),
    [
        (status(-0.2137, -0.03, -0.1243), "old wins 56.2\u202f% (51.5 to 60.7)" + SURE),
        (status(0.05, 0.7, 0.3), "new wins 52 to 85\u202f%" + SURE),
        (status(-0.1, 0.3, 0.1), "new wins 45 to 65\u202f%" + SURE),
        (status(0.0, 0.3, 0.1), "new wins 50.0 to 65.0\u202f%" + SURE),
        (
            status(0.05, 0.05, 0.05, rounds={"in_interval": 60}),
            "new wins 52.50\u202f%; every item is judged or known.",
        ),
    ],
)
def test_of_preferences_it_is_told_how_many_are_won(told: dict[str, Any], won: str) -> None:
    assert contrast("preference").sentence(told).endswith(f"; with ties as half {won}")


def test_systems_without_names_are_a_and_b() -> None:
    assert Contrast.of(LossScale.of("zero_one"), None, None) is None
    unnamed = Contrast.of(LossScale.of("difference"), None, None)
    assert unnamed is not None
    assert unnamed.sentence(status(0.03, 0.2137, 0.1243)).startswith("B has a mean loss")


HIGHER: tuple[str, Better] = ("accuracy", "higher")
LOWER: tuple[str, Better] = ("{name} of harm", "lower")


@pytest.mark.parametrize(
    ("score", "told", "said"),
    [
        (
            HIGHER,
            status(0.0081, 0.0538, 0.0311),
            "new's accuracy is 3.1 points higher than old's (0.8 to 5.4)",
        ),
        (
            HIGHER,
            status(-0.0538, -0.0081, -0.0311),
            "old's accuracy is 3.1 points higher than new's (0.8 to 5.4)",
        ),
        (
            LOWER,
            status(0.0081, 0.0538, 0.0311),
            "new's {name} of harm is 3.1 points lower than old's (0.8 to 5.4)",
        ),
        (
            HIGHER,
            status(0.0, 0.0538, 0.0311),
            "new's accuracy is no lower than old's: 0.0 to 5.4 points higher",
        ),
        (
            HIGHER,
            status(-0.012, 0.0171, 0.0, **asked("equivalent")),
            (
                "old and new are equivalent: their accuracy differs by at most 2 points. new's"
                " accuracy is between 1.2 points lower and 1.8 points higher than old's"
            ),
        ),
    ],
)
def test_two_systems_are_told_apart_by_the_score_of_each(
    score: tuple[str, Better], told: dict[str, Any], said: str
) -> None:
    assert contrast(score=score).sentence(told) == f"{said}{SURE}"


def one(lower: float, upper: float, estimate: float, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return status(lower, upper, estimate, scale={"lower": 0.0, "upper": 1.0}, known=0) | others


ACCURACY = Score("accuracy", "higher", "share")
ERRORS = default_score(LossScale.of("zero_one"), None)


@pytest.mark.parametrize(
    ("score", "told", "words"),
    [
        (
            ACCURACY,
            one(0.2442, 0.3187, 0.28),
            (
                "accuracy 72.0 % (68.1 to 75.6), valid at every look with 95 % confidence,"
                " based on 101 labels."
            ),
        ),
        (
            ERRORS,
            one(0.2442, 0.3187, 0.28, effective_items=40.0, target="population"),
            (
                "weighted error rate of the population 28.0 % (24.4 to 31.9), valid at every look"
                " with 95 % confidence, based on 101 labels."
            ),
        ),
        (
            ERRORS,
            one(0.021, 0.615, 0.2),
            (
                "error rate 2 to 62 % (about 20), valid at every look with 95 % confidence,"
                " based on 101 labels."
            ),
        ),
        (
            Score("quality", "higher", "number"),
            one(1.0, 2.5, 1.5, scale={"lower": 0.0, "upper": 5.0}),
            (
                "quality 2.50 to 4.00 (about 3.50), valid at every look with 95 % confidence,"
                " based on 101 labels."
            ),
        ),
        (
            Score("quality", "higher", "number"),
            one(1.0, 2.0, 1.5, scale={"lower": 0.0, "upper": 5.0}),
            (
                "quality 3.50 (3.00 to 4.00), valid at every look with 95 % confidence,"
                " based on 101 labels."
            ),
        ),
        (
            ACCURACY,
            one(0.0, 1.0, 0.5, rounds={"in_interval": 0, "judged": 0}),
            "Nothing is judged yet: accuracy 0 to 100 %.",
        ),
        (
            ACCURACY,
            one(0.0, 1.0, 0.5, rounds={"in_interval": 0, "judged": 2}),
            "No label is in the interval yet: accuracy 0 to 100 %.",
        ),
        (
            ACCURACY,
            one(0.28, 0.28, 0.28, rounds={"in_interval": 100}),
            "accuracy exactly 72.00 %; every item is judged or known.",
        ),
    ],
)
def test_one_system_is_told_by_its_score(score: Score, told: dict[str, Any], words: str) -> None:
    said = sentence(told, score, None, labels=101)
    assert said.replace("\N{NARROW NO-BREAK SPACE}", " ") == words


def test_without_a_count_none_is_told() -> None:
    said = sentence(one(0.2442, 0.3187, 0.28), ACCURACY, None, labels=None)
    assert said.endswith(
        "(68.1 to 75.6), valid at every look with 95\N{NARROW NO-BREAK SPACE}% confidence."
    )


@pytest.mark.parametrize(
    ("table", "inside", "words"),
    [
        (
            {"account": "each", "claims": 60, "wanted": 60, "met": 12},
            40,
            (
                "12 of 60 claims have met their target; each interval holds by itself,"
                " at every look, with 95\u202f% confidence."
            ),
        ),
        (
            {"account": "together", "claims": 8, "wanted": 5, "met": 0},
            0,
            (
                "Nothing is judged yet: 0 of 5 claims have met their target, 3 more have none;"
                " all intervals hold at once, at every look, with 95\u202f% confidence."
            ),
        ),
        (
            {"account": "closed", "claims": 2, "wanted": 1, "met": 1},
            9,
            (
                "1 of 1 claim has met its target, 1 more has none; no answer yes is"
                " false, at every look, with 95\u202f% confidence."
            ),
        ),
        (
            {"account": "selected", "claims": 1, "wanted": 0, "met": 0},
            9,
            (
                "1 claim without a target; each interval holds by itself, at every look,"
                " with 95\u202f% confidence."
            ),
        ),
    ],
)
def test_a_table_says_how_far_it_is_and_what_its_account_promises(
    table: dict[str, Any], inside: int, words: str
) -> None:
    status = {"state": "active", "table": table, "alpha": 0.05, "rounds": {"in_interval": inside}}
    assert table_sentence(status) == words


SCALES = st.sampled_from(
    [(0.0, 1.0), (1e6, 1e6 + 1), (1e9 - 2, 1e9), (-1e9, -1e9 + 2), (0.0, 1e-15), (-0.25, 0.5)]
)


def decimal(figure: str) -> Decimal:
    return Decimal(figure.replace("\N{MINUS SIGN}", "-"))


@given(SCALES, st.floats(0.0, 1.0), st.floats(1e-8, 1.0))
def test_what_is_shown_of_an_interval_is_never_inside_it(
    scale: tuple[float, float], at: float, share: float
) -> None:
    lower, upper = scale
    value = min(upper, max(lower, lower + at * (upper - lower)))
    width = share * (upper - lower)
    figures = Figures(LossScale.of("bounded", lower, upper), width)
    below, above = decimal(figures.below(value)), decimal(figures.above(value))
    # A number means the shortest decimal that reads back as it
    assert below <= Decimal(repr(value)) <= above
    # No wider than a step, of which a width has at least two
    assert above - below <= max(Decimal(width) / 2, Decimal(ulp(value)))


@pytest.mark.parametrize(
    ("alpha", "said"),
    [
        (0.05, "95"),
        (0.005000000000000001, "99.5"),
        (0.05 / 3, "98.3333333333333"),
        (1e-9, "more than 99.9999"),
    ],
)
def test_confidence_has_the_digits_that_somebody_chose(alpha: float, said: str) -> None:
    assert sure(alpha) == f"{said}\u202f%"
