"""Seeded sessions on the difference of two systems, watched until all is judged."""

from dataclasses import dataclass

import numpy as np

from celeus.core.plans.plan import Claim
from celeus.simulation.sessions import seed_of
from study.pools.differences import WORLDS, border
from study.tables.compare import to_exhaustion
from tests.claims.sessions import ALPHA


@dataclass(frozen=True, slots=True)
class Lost:
    """Of some sessions, how many ever lost the mean and how many gave a wrong first verdict."""

    sessions: int
    missed: int
    wrong: int

    def __add__(self, other: "Lost") -> "Lost":
        return Lost(
            self.sessions + other.sessions, self.missed + other.missed, self.wrong + other.wrong
        )


def lost(world: str, items: int, first: int, sessions: int) -> Lost:
    """Sessions ``first`` and on, with a precision, each on a pool of its own."""
    missed = 0
    for number in range(first, first + sessions):
        truth = WORLDS[world](np.random.default_rng([number, items, 14]), items)
        claim = Claim(alpha=ALPHA, precision=0.1)
        missed += to_exhaustion(truth, claim, seed_of(number, 14)).missed
    return Lost(sessions, missed, 0)


def at_border(beside: tuple[int, int], items: int, first: int, sessions: int) -> Lost:
    """Verdicts where the mean is ``beside`` items from 0, and the margin that many."""
    mean, margin = beside
    missed = wrong = 0
    for number in range(first, first + sessions):
        truth = border(np.random.default_rng([number, items, mean % 97, 15]), items, mean)
        claim = Claim(alpha=ALPHA, decide=margin / items)
        one = to_exhaustion(truth, claim, seed_of(number, 15))
        missed += one.missed
        wrong += one.wrong
    return Lost(sessions, missed, wrong)
