"""Sessions with weights lose the weighted mean in at most alpha."""

import pytest

from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.claims.weighing import WORLDS, lost
from tests.nightly import NIGHTLY

ITEMS = 300 if NIGHTLY else 60
SESSIONS = 2000 if NIGHTLY else 24


@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_holds_the_weighted_mean(world: str) -> None:
    missed = lost(world, ITEMS, SESSIONS)
    note("weighted mean", world, ITEMS, SESSIONS, f"missed {missed}")
    assert credible(missed, SESSIONS), missed
