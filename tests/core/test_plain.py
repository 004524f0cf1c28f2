"""Plain values are read as what they are, or refused at their place."""

import math

import pytest

from celeus.core.plain import Mismatch, number, whole


@pytest.mark.parametrize("value", [True, None, "1", [], math.nan, math.inf, -math.inf, 10**400])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    for read in (number, whole):
        with pytest.raises(Mismatch) as refused:
            read(value, "plan.alpha")
        assert refused.value.where == "plan.alpha"


def test_numbers_are_read_within_their_limits() -> None:
    assert number(2, "x") == 2.0
    assert whole(2.0, "x") == 2
    for value in (-0.1, 1.1):
        with pytest.raises(Mismatch):
            number(value, "x", 0, 1)
    with pytest.raises(Mismatch):
        whole(0.5, "x")
