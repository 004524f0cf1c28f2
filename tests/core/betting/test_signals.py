"""Signals and ranges by hand."""

import numpy as np
import pytest

from celeus.core.betting.signals import (
    Extremes,
    Range,
    RangeLeft,
    check,
    exact_range,
    floor_range,
    global_range,
    signal,
)

POOL = Extremes(items=10, lower=-1.0, upper=3.0, least_surrogate=0.0, largest_surrogate=2.0)


def test_the_signal_is_the_plug_in_part_and_the_residual_over_n_q() -> None:
    assert signal(0.5, -0.25, 10, 0.05) == 0.5 - 0.25 / 0.5


def test_the_floor_range_takes_the_floor_of_the_items_left() -> None:
    found = floor_range(0.5, 5, 0.4, POOL)
    assert found.lower == pytest.approx(0.5 + (-1.0 - 2.0) * 5 / (10 * 0.4))
    assert found.upper == pytest.approx(0.5 + (3.0 - 0.0) * 5 / (10 * 0.4))


def test_the_global_range_is_that_of_the_paper() -> None:
    found = global_range(0.4, POOL)
    q_min = 0.4 / 10
    assert found.lower == pytest.approx(-1.0 - 4.0 * (1.0 - q_min) / (10 * q_min))
    assert found.upper == pytest.approx(3.0 + 4.0 * (1.0 - q_min) / (10 * q_min))


def test_the_exact_range_is_that_of_the_extreme_items() -> None:
    found = exact_range(0.5, np.array([0.0, 2.0]), np.array([0.25, 0.75]), POOL)
    assert found == Range(0.5 + min(-1.0 / 2.5, -3.0 / 7.5), 0.5 + max(3.0 / 2.5, 1.0 / 7.5))


@pytest.mark.parametrize("value", [-0.001, 1.001, 7.0])
def test_a_signal_outside_its_range_is_an_error_and_never_clipped(value: float) -> None:
    with pytest.raises(RangeLeft, match="outside"):
        check(value, Range(0.0, 1.0))


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0, 1.0 + 1e-12])
def test_rounding_at_the_ends_of_the_range_is_forgiven(value: float) -> None:
    check(value, Range(0.0, 1.0))
