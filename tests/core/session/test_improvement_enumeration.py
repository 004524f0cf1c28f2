"""A candidate that is not better passes with probability at most the level, over every draw."""

import itertools

import numpy as np
import pytest

from celeus.core.pools.losses import LossScale
from celeus.core.session.improvement import ImprovementTest

SCALE = LossScale.of("zero_one")


def passes(difference: list[float], level: float, known: int = 0) -> float:
    """The probability that a candidate passes, over every order in which items can be drawn.

    The last ``known`` items have the same output of both.
    """
    same = np.arange(len(difference)) >= len(difference) - known
    unknown = difference[: len(difference) - known]
    total = passed = 0.0
    for losses in sorted(set(itertools.permutations(unknown))):
        test = ImprovementTest.begin(SCALE, same, level, 0.5, b"an order of its own")
        left, weight = list(enumerate(unknown)), 1.0
        for loss in losses:
            # Items with one loss are the same to the test
            alike = [item for item, its_loss in left if its_loss == loss]
            draw = test.session.chance(alike[0])
            test.session.apply(draw)
            weight *= draw.q * len(alike)
            left.remove((alike[0], loss))
            test.judge(draw, loss)
        total += weight
        passed += weight * (test.outcome == "better")
    assert total == pytest.approx(1.0)
    return passed


@pytest.mark.parametrize("level", [0.3, 0.6])
@pytest.mark.parametrize(
    ("difference", "known"),
    [([-1.0, -1.0, 0.0, 1.0, 1.0], 0), ([-1.0, -1.0, 1.0, 1.0, 0.0, 0.0], 2)],
)
def test_a_tie_passes_with_at_most_the_probability_of_its_level(
    difference: list[float], known: int, level: float
) -> None:
    assert passes(difference, level, known) <= level


def test_with_all_judged_a_better_candidate_passes_and_no_other_one() -> None:
    assert passes([-1.0, 0.0, 0.0, 0.0], 0.001) == pytest.approx(1.0)
    assert passes([1.0, 0.0, 0.0, -1.0], 0.001) == 0.0
