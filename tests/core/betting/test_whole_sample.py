"""The interval of a sample that is all judged."""

from itertools import product
from math import exp, prod

import numpy as np
import pytest

from celeus.simulation.side_by_side import log_wealth, stakes, whole_sample_interval

ALPHA = 0.05


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("size", [1, 4, 9])
def test_the_wealth_against_the_true_mean_is_1_on_the_average(mean: float, size: int) -> None:
    total = 0.0
    for sample in product((0.0, 1.0), repeat=size):
        losses = np.array(sample)
        chance = prod(mean if loss else 1 - mean for loss in sample)
        total += chance * exp(log_wealth(losses, stakes(losses, ALPHA), mean)[-1])
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("mean", [0.02, 0.5])
@pytest.mark.parametrize("size", [3, 10])
def test_all_samples_that_miss_the_mean_have_a_chance_of_at_most_alpha(
    mean: float, size: int
) -> None:
    missed = 0.0
    for sample in product((0.0, 1.0), repeat=size):
        low, high = whole_sample_interval(np.array(sample), 0.0, 1.0, 0.3)
        if not low <= mean <= high:
            missed += prod(mean if loss else 1 - mean for loss in sample)
    assert missed <= 0.3


def test_the_interval_of_differences_is_about_a_quarter_wider_than_a_normal_one_at_most() -> None:
    random = np.random.default_rng(7)
    ratios = []
    for losses in random.choice([-1.0, 0.0, 1.0], size=(30, 2_000), p=[0.12, 0.8, 0.08]):
        low, high = whole_sample_interval(losses, -1.0, 1.0, ALPHA)
        ratios.append((high - low) / (2 * 1.96 * losses.std() / losses.size**0.5))
    assert 1.0 < np.mean(ratios) < 1.25


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_the_mean_of_the_sample_is_inside_in_any_order(first: float) -> None:
    losses = np.repeat([first, 1.0 - first], 250)
    low, high = whole_sample_interval(losses, 0.0, 1.0, ALPHA)
    assert low <= losses.mean() <= high


def test_turning_the_losses_over_turns_the_interval_over() -> None:
    losses = np.random.default_rng(3).random(200)
    low, high = whole_sample_interval(losses, 0.0, 1.0, ALPHA)
    turned = whole_sample_interval(1.0 - losses, 0.0, 1.0, ALPHA)
    assert turned == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)


def test_losses_that_are_all_alike_leave_a_part_of_the_scale() -> None:
    low, high = whole_sample_interval(np.zeros(400), 0.0, 1.0, ALPHA)
    assert low == 0.0
    assert 0.005 < high < 0.05
