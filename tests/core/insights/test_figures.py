"""Figures bound what they stand for, on every scale."""

from decimal import Decimal
from math import ulp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.insights.figures import Figures, sure
from celeus.core.pools.losses import LossScale

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
