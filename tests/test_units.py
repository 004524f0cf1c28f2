"""Numbers on a scale, as people write them; those off it are refused with what was meant."""

import math

import pytest

from celeus.errors import InvalidValue
from celeus.units import (
    check_asked_alpha,
    check_margin,
    check_threshold,
    check_width,
    number_on,
    with_point,
)

SHARE, DIFFERENCE, STARS = (0.0, 1.0), (-1.0, 1.0), (1.0, 10.0)


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (0.1, 0.1),
        ("0.1", 0.1),
        ("10%", 0.1),
        ("10 %", 0.1),
        ("10\N{NARROW NO-BREAK SPACE}%", 0.1),
        (" 2pt ", 0.02),
        ("2 pt", 0.02),
        ("0.28%", 0.0028),
        ("-5pt", -0.05),
        ("1e-3", 0.001),
        ("10 percent", 0.1),
        ("10percent", 0.1),
        ("10 points", 0.1),
        ("1 point", 0.01),
        ("2.5 percentage points", 0.025),
        (7, 7.0),
    ],
)
def test_percent_and_points_are_hundredths(written: str | float, number: float) -> None:
    assert number_on(SHARE, written, "precision") == number
    assert number_on(DIFFERENCE, written, "precision") == number


@pytest.mark.parametrize(
    "written",
    [
        *("", "%", "ten", "10%%", "10pt%", "10 percent %", "1_0%", "0,1", "nan", "inf%", "1e999"),
        *("\N{ARABIC-INDIC DIGIT ONE}\N{ARABIC-INDIC DIGIT ZERO}%", "\N{FULLWIDTH DIGIT FIVE}"),
        math.nan,
    ],
)
def test_what_is_no_number_is_refused_by_name(written: str | float) -> None:
    with pytest.raises(InvalidValue, match=r"margin must be a finite number, as 0\.1") as refusal:
        number_on(SHARE, written, "margin")
    assert refusal.value.field == "margin"


@pytest.mark.parametrize(
    ("written", "pointed"),
    [
        ("2,5", "2.5"),
        (" \N{MINUS SIGN}0,125 % ", "-0.125 %"),
        (",125", ".125"),
        ("1000,125", "1000.125"),
        ("1,0001", "1.0001"),
        # They may be thousands, or are no number with either sign
        *((written, written) for written in ("1,000", "-12,345%", "1,000,5", "5,", "1.000,5")),
        *((written, written) for written in ("1,5,5", "1,5.5", "a,5", "0.5")),
    ],
)
def test_a_comma_is_a_point_where_it_cannot_separate_thousands(written: str, pointed: str) -> None:
    assert with_point(written) == pointed


def test_a_scale_of_grades_has_no_percent() -> None:
    assert number_on(STARS, "4.5", "at_most") == 4.5
    for written in ("10%", "2pt"):
        with pytest.raises(InvalidValue, match="the scale, 1 to 10, which is none of shares"):
            number_on(STARS, written, "at_most")


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (10.0, "did you mean 10\N{NARROW NO-BREAK SPACE}% (0.1)?"),
        (1.0, "did you mean 1\N{NARROW NO-BREAK SPACE}% (0.01)?"),
        (99.5, "did you mean 99.5\N{NARROW NO-BREAK SPACE}% (0.995)?"),
        (100.0, ""),
        (0.0, ""),
        (-0.1, ""),
        (-10.0, ""),
        (1.0 - 1e-12, ""),
        (math.inf, ""),
        (math.nan, ""),
    ],
)
def test_a_threshold_off_the_scale_is_refused_with_what_was_meant(number: float, hint: str) -> None:
    with pytest.raises(InvalidValue, match="inside the scale, above 0 and below 1") as refusal:
        check_threshold(number, SHARE, "at_most")
    assert refusal.value.detail.partition("; ")[2] == hint


@pytest.mark.parametrize(
    ("written", "scale", "field", "rule"),
    [
        ("100%", SHARE, "at_most", "above 0% and below 100%"),
        ("150 percent", SHARE, "at_most", "above 0% and below 100%"),
        ("100pt", DIFFERENCE, "margin", "above -100pt and below 100pt"),
        ("-100 points", DIFFERENCE, "at_least", "above -100pt and below 100pt"),
        ("200pt", DIFFERENCE, "precision", "above 0pt and below 200pt"),
    ],
)
def test_what_has_a_unit_is_refused_off_the_scale_without_a_hint(
    written: str, scale: tuple[float, float], field: str, rule: str
) -> None:
    with pytest.raises(InvalidValue, match=f"{field} must be {rule}") as refusal:
        number_on(scale, written, field)
    assert "did you mean" not in refusal.value.detail
    assert number_on(DIFFERENCE, "150pt", "precision") == 1.5


def test_a_scale_of_grades_takes_no_number_for_percent() -> None:
    with pytest.raises(InvalidValue) as refusal:
        check_threshold(11.0, STARS, "at_most")
    assert "did you mean" not in refusal.value.detail
    check_threshold(9.9, STARS, "at_most")


def test_a_margin_and_a_width_are_parts_of_the_scale() -> None:
    for margin in (0.0, 0.02, 0.999):
        check_margin(margin, DIFFERENCE, "margin")
    with pytest.raises(InvalidValue, match=r"not 2; did you mean 2.pt \(0\.02\)\?"):
        check_margin(2.0, DIFFERENCE, "margin")
    for margin in (-0.1, 1.0, math.nan):
        with pytest.raises(InvalidValue, match="at least 0 and below 1"):
            check_margin(margin, DIFFERENCE, "margin")
    with pytest.raises(InvalidValue) as refusal:
        check_margin(-2.0, DIFFERENCE, "margin")
    assert "did you mean" not in refusal.value.detail, "no margin is below 0"
    with pytest.raises(InvalidValue, match=r"not 5; did you mean 5.pt \(0\.05\)\?"):
        check_width(5.0, DIFFERENCE)
    with pytest.raises(InvalidValue) as refusal:
        check_width(-5.0, DIFFERENCE)
    assert "did you mean" not in refusal.value.detail, "no width is below 0"
    check_width(1.5, DIFFERENCE)
    with pytest.raises(InvalidValue, match=r"not 5; did you mean 5.% \(0\.05\)\?"):
        check_width(5.0, SHARE)


@pytest.mark.parametrize(
    ("alpha", "meant"),
    [
        (0.95, "0.05"),
        (0.999, "0.001"),
        (95.0, "0.05"),
        (99.0, "0.01"),
        (5.0, "0.05"),
        (1.0, "0.01"),
        (0.51, "0.49"),
    ],
)
def test_a_confidence_is_not_taken_for_alpha(alpha: float, meant: str) -> None:
    with pytest.raises(InvalidValue, match=f"did you mean {meant}\\?") as refusal:
        check_asked_alpha(alpha)
    assert (refusal.value.field, refusal.value.value) == ("alpha", alpha)


def test_an_alpha_of_one_half_is_as_it_was() -> None:
    for alpha in (1e-12, 0.05, 0.5):
        check_asked_alpha(alpha)
    for alpha in (100.0, 1e300, math.inf):
        with pytest.raises(InvalidValue) as refusal:
            check_asked_alpha(alpha)
        assert "did you mean" not in refusal.value.detail
