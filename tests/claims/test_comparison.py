"""Comparisons of two systems lose the mean, or give a wrong first verdict, in at most alpha."""

import numpy as np
import pytest

from celeus.core.plans.plan import Claim
from celeus.simulation.sessions import seed_of
from study.pools.differences import WORLDS, border
from study.tables.compare import to_exhaustion
from tests.claims.counted import note
from tests.claims.sessions import ALPHA, credible
from tests.nightly import NIGHTLY


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


ITEMS = 300 if NIGHTLY else 60
SESSIONS = 2000 if NIGHTLY else 24
MARGIN = 12
BORDERS = [(0, MARGIN), (1, MARGIN), (-1, MARGIN), (MARGIN, MARGIN), (MARGIN + 1, MARGIN)]
FURTHER = [(-MARGIN - 1, MARGIN), (1, 0), (-1, 0)]


@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_holds_the_mean_difference(world: str) -> None:
    missed = lost(world, ITEMS, SESSIONS)
    note("mean difference", world, ITEMS, SESSIONS, f"missed {missed}")
    assert credible(missed, SESSIONS), missed


@pytest.mark.parametrize("beside", [*BORDERS, *FURTHER] if NIGHTLY else BORDERS, ids=str)
def test_first_verdicts_at_the_border_are_right(beside: tuple[int, int]) -> None:
    missed, wrong = at_border(beside, ITEMS, SESSIONS)
    mean, margin = beside
    pools = f"mean {mean}/{ITEMS}, margin {margin}/{ITEMS}"
    found = f"missed {missed}, wrong first verdicts {wrong}"
    note("verdict", pools, ITEMS, SESSIONS, found)
    assert wrong <= missed
    assert credible(missed, SESSIONS), missed
