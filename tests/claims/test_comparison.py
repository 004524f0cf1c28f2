"""Comparisons of two systems lose the mean, or give a wrong first verdict, in at most alpha."""

import pytest

from study.pools.differences import WORLDS
from tests.claims.comparing import at_border, lost
from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY

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
