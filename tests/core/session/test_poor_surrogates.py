"""What a poor surrogate costs in labels, against none; seeded sessions on made-up pools."""

from dataclasses import replace

import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.simulation.sessions import Truth, seed_of, simulate
from study.pools.made_up import judged, world
from tests.nightly import NIGHTLY

SEEDS = 24 if NIGHTLY else 8


def labels(policy: str, name: str, width: float, seeds: int) -> float:
    """Mean labels to a width in a world."""
    return labels_of(world(name), policy, width, seeds)


def labels_of(truth: Truth, policy: str, width: float, seeds: int) -> float:
    """Mean labels to a width."""
    claim = Claim("pool", 0.05, width)
    runs = [
        simulate(truth, policy_named(policy), claim, seed_of(1, run))[0] for run in range(seeds)
    ]
    return sum(run.labels for run in runs) / seeds


@pytest.mark.parametrize(
    ("name", "most"), [("syn-guesses", 1.06), ("syn-graded", 1.08), ("syn-noise", 1.06)]
)
def test_a_poor_surrogate_costs_few_labels(name: str, most: float) -> None:
    sharp, uniform = (labels(policy, name, 0.1, SEEDS) for policy in ("sharp", "uniform"))
    assert sharp <= most * uniform


def test_a_surrogate_upside_down_saves_labels() -> None:
    """Correlation -0.76: labels are nearly as few as with the surrogate the right way."""
    upside_down = labels("sharp", "syn-reversed", 0.1, 8)
    assert upside_down <= 1.15 * labels("sharp", "syn-good", 0.1, 8)
    assert upside_down <= 0.65 * labels("uniform", "syn-reversed", 0.1, 8)


NINE_JUDGES = (0.95, 0.85, 0.7, 0.6, 0.55, 0.5, 0.5, 0.5, 0.5)


def averaged(truth: Truth) -> Truth:
    """The same pool with the mean of its columns alone."""
    return replace(truth, scores=replace(truth.scores, columns=None))


def test_judges_of_different_worth_are_weighed() -> None:
    truth = judged(NINE_JUDGES)
    weighed = labels_of(truth, "sharp", 0.1, 3)
    assert weighed <= 0.85 * labels_of(averaged(truth), "sharp", 0.1, 3)


def test_columns_that_say_nothing_cost_few_labels() -> None:
    truth = judged([0.5] * 9)
    weighed = labels_of(truth, "sharp", 0.15, 3)
    assert weighed <= 1.03 * labels_of(averaged(truth), "sharp", 0.15, 3)
