"""Seeded sessions that seek the best of k systems, watched until nothing tells them apart."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import Candidates
from celeus.core.session.session import Session, judge_rounds
from celeus.simulation.best import best_systems, plan_for
from celeus.simulation.sessions import seed_of
from tests.claims.sessions import ALPHA
from tests.claims.stalling import LOOKS_APART, kept_open
from tests.core.worlds import provisional

Floats = NDArray[np.float64]
Chance = np.random.Generator
Contest = tuple[Candidates, Floats]


def _answered(chance: Chance, items: int, rates: list[float], *, guess: float = 0.0) -> Contest:
    """Choices among four; ``guess`` is how much surrogates know of the losses.

    The losses of the systems with the least rate have exactly the same mean.
    """
    right = chance.integers(0, 4, items)
    systems = len(rates)
    losses = np.stack([chance.permutation(np.arange(items) < rate * items) for rate in rates], 1)
    wrong = (right[:, None] + chance.integers(1, 4, (items, systems))) % 4
    answer = np.where(losses, wrong, right[:, None]).astype(np.int32)
    surrogate = None
    if guess:
        noise = 0.2 * chance.standard_normal((items, systems))
        surrogate = np.clip(0.5 + guess * (losses - 0.5) + noise, 0.0, 1.0)
    return Candidates(items, systems, answer, surrogate), losses.astype(np.float64)


def _graded(chance: Chance, items: int) -> Contest:
    losses = np.round(chance.random((items, 3)), 2)
    losses[:, 1] = np.roll(losses[:, 0], items // 3)
    losses[:, 2] = np.minimum(losses[:, 2] + 0.05, 1.0)
    return Candidates(items, 3), losses


def _alike(chance: Chance, items: int) -> Contest:
    """Systems that give the same answer to most items; the first two are tied."""
    losses = np.tile((chance.random(items) < 0.3)[:, None], (1, 5))
    place = chance.permutation(items)
    swapped = items // 10
    for one in range(1, 5):
        own = place[: 2 * swapped] if one == 1 else chance.permutation(items)[: swapped * one]
        losses[own, one] = ~losses[own, one]
    # As many better as worse: those of the first system, turned round.
    losses[place[:swapped], 0], losses[place[:swapped], 1] = False, True
    losses[place[swapped : 2 * swapped], 0] = True
    losses[place[swapped : 2 * swapped], 1] = False
    return Candidates(items, 5, losses.astype(np.int32)), losses.astype(np.float64)


WORLDS: dict[str, Callable[[Chance, int], Contest]] = {
    "a tie of two": lambda chance, items: _answered(chance, items, [0.3, 0.3]),
    "a tie of four": lambda chance, items: _answered(chance, items, [0.4] * 4),
    "nearly a tie": lambda chance, items: _answered(chance, items, [0.3, 0.31, 0.31, 0.31]),
    "ties and worse, informative": lambda chance, items: _answered(
        chance, items, [0.3, 0.3, 0.5, 0.6], guess=0.5
    ),
    "ties and worse, anti-correlated": lambda chance, items: _answered(
        chance, items, [0.3, 0.3, 0.35], guess=-0.5
    ),
    "rare losses": lambda chance, items: _answered(chance, items, [0.04, 0.04, 0.06]),
    "answers mostly the same": _alike,
    "graded, answers not given": _graded,
}


@dataclass(frozen=True, slots=True)
class LostBest:
    """Of some sessions, how many ever lost the first of the best systems, and how many all."""

    sessions: int
    first: int
    every: int


def lost_best(world: str, items: int, sessions: int, *, stalled: bool = False) -> LostBest:
    """Sessions, each on a pool of its own.

    ``stalled``: by who sees all losses, and keeps back what speaks for the first of the best. Lost
    is also who is out with open draws at their worst.
    """
    first = every = 0
    for number in range(sessions):
        candidates, losses = WORLDS[world](np.random.default_rng([number, items, 17]), items)
        best = best_systems(losses)
        seed = seed_of(number, 17)
        session = Session.of(Best(plan_for(candidates, ALPHA), candidates, seed), seed)

        def loss(item: int, losses: Floats = losses) -> tuple[float, ...]:
            return tuple(losses[item].tolist())

        def speaks(item: int, losses: Floats = losses, system: int = int(best[0])) -> bool:
            return bool(losses[item, system] < losses[item].mean())

        standing = np.arange(candidates.count)
        for _ in kept_open(session, loss, speaks) if stalled else judge_rounds(session, loss):
            found = None if session.observed % LOOKS_APART else provisional(session)
            if found is not None:
                standing = np.intersect1d(standing, found.race.standing)
        standing = np.intersect1d(standing, session.question.race.standing)
        first += best[0] not in standing
        every += not np.isin(best, standing).any()
    return LostBest(sessions, first, every)
