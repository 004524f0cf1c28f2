"""Seeded agents that propose candidate after candidate; none should pass but the better ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.session.improvement import ImprovementTest
from celeus.simulation.sessions import seed_of

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
