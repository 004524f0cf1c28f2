"""Seeded sessions on the difference of two systems, watched until all is judged."""

import numpy as np

from celeus.core.plans.plan import Claim
from celeus.simulation.sessions import seed_of
from study.pools.differences import WORLDS, border
from study.tables.compare import to_exhaustion
from tests.claims.sessions import ALPHA


def lost(world: str, items: int, sessions: int) -> int:
    """How many sessions with a precision, each on a pool of its own, ever lost the mean."""
    missed = 0
    for number in range(sessions):
        truth = WORLDS[world](np.random.default_rng([number, items, 14]), items)
        claim = Claim(alpha=ALPHA, precision=0.1)
        missed += to_exhaustion(truth, claim, seed_of(number, 14)).missed
    return missed


def at_border(beside: tuple[int, int], items: int, sessions: int) -> tuple[int, int]:
    """How many sessions ever lost the mean, and how many gave a wrong first verdict.

    The mean is ``beside`` items from 0, and the margin that many.
    """
    mean, margin = beside
    missed = wrong = 0
    for number in range(sessions):
        truth = border(np.random.default_rng([number, items, mean % 97, 15]), items, mean)
        claim = Claim(alpha=ALPHA, decide=margin / items)
        watched = to_exhaustion(truth, claim, seed_of(number, 15))
        missed += watched.missed
        wrong += watched.wrong
    return missed, wrong
