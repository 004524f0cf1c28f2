"""A score is the loss by another name, or its scale turned over, to the last digit."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import (
    LONGEST_NAME,
    Better,
    Score,
    declared_score,
    default_score,
    win_rate,
)
from celeus.core.pools.systems import Lineup, Systems
from celeus.errors import InvalidValue

UNIT = Interval(0.0, 1.0)
ACCURACY = Score("accuracy", "higher", "share")
SCALES = st.sampled_from(
    [(0.0, 1.0), (0.0, 5.0), (-2.5, 7.5), (-1.0, 1.0), (1e9, 1e9 + 8), (-1e14, 1e14), (0.0, 1e-9)]
)


def exact(number: float) -> Fraction:
    return Fraction(Decimal(repr(number)))


def test_a_share_is_one_less_the_loss_as_people_write_both() -> None:
    values = ACCURACY.values(Interval(0.244, 0.319), 0.28, UNIT)
    assert values == {
        "name": "accuracy",
        "better": "higher",
        "unit": "share",
        "estimate": 0.72,
        "lower": 0.681,
        "upper": 0.756,
    }


def test_where_less_is_better_the_score_is_the_loss_itself() -> None:
    found = Score("error rate", "lower", "share").image(Interval(0.1, 0.30000000000000004), UNIT)
    assert found == Interval(0.1, 0.30000000000000004)


@given(SCALES, st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.sampled_from(["higher", "lower"]))
def test_the_image_holds_every_score_and_no_more_than_floats_must(
    ends: tuple[float, float], one: float, other: float, better: Better
) -> None:
    scale = Interval(*ends)
    low, high = sorted(
        min(scale.upper, scale.lower + share * scale.width) for share in (one, other)
    )
    image = Score("s", better, "number").image(Interval(low, high), scale)
    turned = [exact(low), exact(high)]
    if better == "higher":
        turned = [exact(scale.lower) + exact(scale.upper) - exact(end) for end in (high, low)]
    assert exact(image.lower) <= turned[0]
    assert turned[1] <= exact(image.upper)
    spare = Fraction(2, 10**15) * max(abs(exact(end)) for end in ends)
    assert turned[0] - exact(image.lower) <= spare
    assert exact(image.upper) - turned[1] <= spare


@given(st.integers(0, 10**6), st.integers(1, 7))
def test_decimals_stay_decimals(steps: int, digits: int) -> None:
    loss = Decimal(min(steps, 10**digits)).scaleb(-digits)
    assert ACCURACY.at(float(loss), UNIT) == float(1 - loss)


@pytest.mark.parametrize(
    ("name", "better", "field"),
    [
        ("", "higher", "score.name"),
        (" accuracy", "higher", "score.name"),
        ("accuracy\n", "higher", "score.name"),
        ("acc\x00uracy", "higher", "score.name"),
        ("\u202eycarucca", "higher", "score.name"),
        ("\ud800", "higher", "score.name"),
        ("a" * (LONGEST_NAME + 1), "higher", "score.name"),
        ("accuracy", "more", "score.better"),
    ],
)
def test_names_and_directions_are_refused_by_name(name: str, better: Better, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        declared_score(name, better, LossScale.of("zero_one"), None)
    assert refused.value.field == field


def test_what_is_a_share_and_what_is_none() -> None:
    share = {
        ("zero_one", None, None): "share",
        ("bounded", 0.0, 1.0): "share",
        ("bounded", 0.0, 5.0): "number",
        ("cross_entropy", None, 1.0): "number",
    }
    for loss, unit in share.items():
        assert declared_score("s", "higher", LossScale.of(*loss), None).unit == unit  # type: ignore[arg-type]
    for kind, upper, unit in (("zero_one", None, "share"), ("bounded", 5.0, "number")):
        two = Systems.of(("old", "new"), (kind, 0.0, upper), "exact")
        assert declared_score("s", "higher", two.scale, two).unit == unit


def test_preferences_and_differences_without_names_have_no_score() -> None:
    two = Systems.of(("old", "new"), ("preference", None, None), "exact")
    for scale, named in ((two.scale, two), (LossScale.of("difference"), None)):
        with pytest.raises(InvalidValue) as refused:
            declared_score("win rate", "higher", scale, named)
        assert refused.value.field == "score"


def test_what_nobody_named_is_called_after_its_loss() -> None:
    two = Systems.of(("old", "new"), ("zero_one", None, None), "exact")
    several = Lineup.of(("x", "y"), ("zero_one", None, None), "exact")
    preferred = Systems.of(("old", "new"), ("preference", None, 2.0), "exact")
    for scale, named, name, unit in (
        (LossScale.of("zero_one"), None, "error rate", "share"),
        (LossScale.of("bounded", 0.0, 1.0), None, "mean loss", "number"),
        (LossScale.of("cross_entropy", upper=5.0), None, "mean cross-entropy loss", "number"),
        (LossScale.of("difference"), None, "difference of mean losses", "number"),
        (several.loss, several, "error rate", "share"),
        (two.scale, two, "difference of errors", "share"),
        (preferred.scale, preferred, "mean preference", "number"),
    ):
        assert default_score(scale, named) == Score(name, "lower", unit)  # type: ignore[arg-type]


@given(st.floats(-1.0, 1.0), st.floats(0.0, 1.0))
def test_a_win_rate_is_never_narrower_than_the_preferences(lower: float, share: float) -> None:
    preference = Interval(lower, max(lower, min(1.0, lower + share * (1.0 - lower))))
    image = win_rate(preference)
    exact = [(1 + Fraction(repr(end))) / 2 for end in (preference.lower, preference.upper)]
    told = [Fraction(repr(end)) for end in (image.lower, image.upper)]
    assert told[0] <= exact[0] <= exact[1] <= told[1]
    assert max(abs(one - other) for one, other in zip(told, exact, strict=True)) < 1e-15


def test_a_win_rate_counts_a_tie_as_half() -> None:
    assert win_rate(Interval(-0.04, 0.16)) == Interval(0.48, 0.58)
    assert win_rate(Interval(-1.0, 1.0)) == Interval(0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "better", "said"),
    [
        ("error rate", "lower", ("Correct", "Wrong")),
        ("Accuracy", "higher", ("Correct", "Wrong")),
        ("faithfulness", "higher", ("faithful", "not faithful")),
        ("toxic", "lower", ("not toxic", "toxic")),
        ("refusal_rate", "lower", ("not refusal", "refusal")),
        ("relevance", "higher", ("relevance", "no relevance")),
        ("toxicity", "lower", ("no toxicity", "toxicity")),
    ],
)
def test_two_values_have_words_by_the_name_and_direction_of_their_score(
    name: str, better: Better, said: tuple[str, str]
) -> None:
    assert Score(name, better, "share").words == said
