"""However many candidates are proposed: at most alpha that ever one passes that is not better."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.multiplicity.selection import proposed_level
from celeus.core.pools.losses import LossScale
from celeus.core.session.improvement import ImprovementTest
from celeus.simulation.sessions import seed_of
from tests.claims.counted import note
from tests.claims.sessions import ALPHA, credible
from tests.nightly import NIGHTLY

Floats = NDArray[np.float64]

ITEMS = 24
MARGIN = 0.25
SCALE = LossScale.of("zero_one")
ALL_DIFFER = np.zeros(ITEMS, dtype=bool)

LevelOf = Callable[[int], float]
"""The level of the next test, by the number of proposals rejected so far."""


@dataclass(slots=True)
class Climb:
    """What an agent knows: the incumbent, and how good every candidate looked when it ended."""

    chance: np.random.Generator
    incumbent: Floats
    looks: list[tuple[float, Floats]] = field(default_factory=list)

    def shuffled(self, wrong: int) -> Floats:
        """A candidate with so many wrong outputs, on items of its own."""
        return self.chance.permutation(np.arange(ITEMS) < wrong) * 1.0

    @property
    def wrong(self) -> int:
        """Wrong outputs of the incumbent."""
        return int(self.incumbent.sum())


def ties(climb: Climb) -> Iterator[Floats]:
    """As good as the incumbent, on other items."""
    while True:
        yield climb.shuffled(climb.wrong)


def just_worse(climb: Climb) -> Iterator[Floats]:
    """Worse by one item, which differs from the incumbent on few others."""
    while True:
        candidate = climb.incumbent.copy()
        right = np.flatnonzero(candidate == 0.0)
        candidate[climb.chance.choice(right, 3, replace=False)] = 1.0
        candidate[climb.chance.choice(np.flatnonzero(climb.incumbent), 2, replace=False)] = 0.0
        yield candidate


def best_again(climb: Climb) -> Iterator[Floats]:
    """Whatever looked best so far, tried again, and now and then something new."""
    yield from (climb.shuffled(climb.wrong) for _ in range(3))
    while True:
        yield max(climb.looks, key=lambda look: look[0])[1]
        if climb.chance.random() < 0.2:
            yield climb.shuffled(climb.wrong + int(climb.chance.integers(2)))


def mixed(climb: Climb) -> Iterator[Floats]:
    """Worse ones and ties, and a better one in twenty."""
    while True:
        if climb.chance.random() < 0.05 and climb.wrong >= 3:
            yield climb.incumbent * (np.cumsum(climb.incumbent) > 2)
        else:
            yield climb.shuffled(min(climb.wrong + int(climb.chance.integers(3)), ITEMS))


AGENTS = {agent.__name__: agent for agent in (ties, just_worse, best_again, mixed)}


@dataclass(slots=True)
class Climbed:
    """What became of a climb: whether it accepted one that is not better, and how many that are."""

    misled: bool = False
    improved: int = 0
    judged: int = 0


def climbed(agent: str, number: int, proposals: int, levels: LevelOf) -> Climbed:
    """One agent's proposals up to the first false acceptance."""
    chance = np.random.default_rng([number, sum(map(ord, agent)), 77])
    climb, result, failed = (
        Climb(chance, chance.permutation(np.arange(ITEMS) % 2 * 1.0)),
        Climbed(),
        0,
    )
    candidates = AGENTS[agent](climb)
    for place in range(proposals):
        candidate = next(candidates)
        difference = candidate - climb.incumbent
        test = ImprovementTest.begin(
            SCALE, ALL_DIFFER, levels(failed), MARGIN, seed_of(f"{agent} {number}", place)
        )
        while test.outcome == "undecided":
            draw = test.draw()
            test.judge(draw, float(difference[draw.item]))
            result.judged += 1
        climb.looks.append((-test.session.question.estimate, candidate))
        if test.outcome != "better":
            failed += 1
        elif difference.sum() >= 0.0:
            result.misled = True
            return result
        else:
            result.improved += 1
            climb.incumbent = candidate
    return result


RUNS = 1000 if NIGHTLY else 4
PROPOSALS = {"ties": 500, "just_worse": 500}
"""Candidates of an agent by night; others have fewer, as all after 60 have alpha / 61 together."""
FEW = 60 if NIGHTLY else 8


@pytest.mark.parametrize("agent", AGENTS)
def test_at_most_alpha_of_the_agents_ever_pass_a_candidate_that_is_not_better(agent: str) -> None:
    proposals = PROPOSALS.get(agent, FEW) if NIGHTLY else FEW
    levels = partial(proposed_level, ALPHA)
    climbs = [climbed(agent, number, proposals, levels) for number in range(RUNS)]
    misled = sum(climb.misled for climb in climbs)
    what = f"{proposals} candidates: {agent.replace('_', ' ')}"
    note("gate for proposals", what, ITEMS, RUNS, f"misled {misled}")
    assert credible(misled, RUNS), misled
    if agent == "mixed" and NIGHTLY:
        assert sum(climb.improved for climb in climbs) > RUNS / 2


def test_a_level_that_is_not_spent_is_caught() -> None:
    misled = sum(climbed("ties", number, 60, lambda _: 0.3).misled for number in range(6))
    assert not credible(misled, 6), misled
