"""The interval loses the true risk in at most alpha of the sessions, at any moment of them.

A claim fails when an exact binomial test rejects it at 1e-3; the last tests show that it can.
"""

import pytest
from scipy.stats import binomtest

from celeus.core.eprocess.signals import RangeLeft
from tests.claims.conftest import Runner
from tests.claims.sessions import ALPHA, FURTHER_WORLDS, HARDEST, WORLDS, Case, Tally, tally
from tests.nightly import NIGHTLY
from tests.study import broken

REJECTED_AT = 1e-3
ALL_WORLDS = (*WORLDS, *FURTHER_WORLDS)
POLICIES = ("celeus", "no_surrogate", "evalue", "oracle")
QUICK_WORLDS = (*HARDEST, "graded losses")
"""Where `make test` looks at what it looks at in every world for one policy and target."""


def credible(missed: int, sessions: int, alpha: float = ALPHA) -> bool:
    """An exact test does not reject that at most ``alpha`` of the sessions miss."""
    return bool(binomtest(missed, sessions, alpha, alternative="greater").pvalue >= REJECTED_AT)


@pytest.mark.parametrize("world", WORLDS if NIGHTLY else QUICK_WORLDS)
@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize("policy", POLICIES)
def test_at_most_alpha_of_the_sessions_ever_lose_the_risk(
    policy: str, target: str, world: str, runner: Runner
) -> None:
    case = Case(policy, target, world, runner.items)
    counted = runner.keep(case)
    assert counted.missed_by_stop <= counted.missed_ever
    assert credible(counted.missed_ever, counted.sessions), counted


BY_GOAL = [
    *(("sharp", "pool", world) for world in ALL_WORLDS),
    *(("sharp", "population", world) for world in (ALL_WORLDS if NIGHTLY else QUICK_WORLDS)),
    *(("uniform", target, "informative surrogate") for target in ("pool", "population")),
]


@pytest.mark.parametrize(("policy", "target", "world"), BY_GOAL)
def test_at_most_alpha_of_the_sessions_with_a_goal_ever_lose_the_risk(
    policy: str, target: str, world: str, runner: Runner
) -> None:
    case = Case(policy, target, world, runner.items)
    counted = runner.keep(case, goal_sessions(runner, target))
    assert credible(counted.missed_ever, counted.sessions), counted


@pytest.mark.parametrize("world", ALL_WORLDS if NIGHTLY else HARDEST)
@pytest.mark.parametrize("target", ["pool", "population"])
def test_at_most_alpha_lose_it_when_the_precision_is_changed_twice_by_looking(
    target: str, world: str, runner: Runner
) -> None:
    case = Case("sharp", target, world, runner.items, changing=True)
    counted = runner.keep(case, goal_sessions(runner, target))
    assert credible(counted.missed_ever, counted.sessions), counted


def goal_sessions(runner: Runner, target: str) -> int:
    """Full counts are larger, since the level is nearly used up; else pairs take their time."""
    if NIGHTLY:
        return 1500
    return runner.sessions if target == "pool" else 24


def test_without_knowledge_more_than_half_of_the_pool_is_drawn_before_the_stop(
    runner: Runner,
) -> None:
    counted = runner.run(Case("celeus", "pool", "more than half drawn", runner.items), 80)
    assert sorted(counted.drawn)[counted.sessions // 2] > 0.5


def test_an_engine_with_a_larger_alpha_is_caught(runner: Runner) -> None:
    broken = Case("evalue", "pool", "more than half drawn", runner.items, engine_alpha=0.9)
    counted = runner.run(broken, 160)
    assert not credible(counted.missed_ever, counted.sessions), counted


def quick(policy: str, world: str) -> Tally:
    return tally(Case(policy, "pool", world, 400), 0, 60)


def test_probabilities_other_than_those_of_the_draws_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken.draws_recorded_as_even(monkeypatch)
    counted = quick("oracle", "rare losses")
    assert not credible(counted.missed_ever, counted.sessions), counted


def test_a_range_that_is_too_narrow_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    broken.narrow_floor(monkeypatch)
    with pytest.raises(RangeLeft):
        quick("celeus", "informative surrogate")
