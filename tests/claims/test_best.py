"""The best of k systems is lost in at most alpha of the sessions, whatever k is."""

import pytest

from tests.claims.contests import WORLDS, lost_best
from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY, by_day

ITEMS, SESSIONS = (300, 2000) if NIGHTLY else (50, 24)
OPEN_ITEMS, OPEN_SESSIONS = (100, 600) if NIGHTLY else (50, 24)
"""Where draws are kept open, as many as of other sessions."""


@pytest.mark.parametrize("world", by_day(4, WORLDS))
def test_the_best_is_lost_in_at_most_alpha_of_the_sessions(world: str) -> None:
    counted = lost_best(world, ITEMS, SESSIONS)
    note("best of k", world, ITEMS, SESSIONS, f"lost {counted.first}")
    assert counted.every <= counted.first
    assert credible(counted.first, SESSIONS), counted


@pytest.mark.parametrize("world", by_day(2, WORLDS))
def test_draws_kept_open_by_who_knows_their_losses_gain_nothing(world: str) -> None:
    counted = lost_best(world, OPEN_ITEMS, OPEN_SESSIONS, stalled=True)
    note("best, draws open", world, OPEN_ITEMS, OPEN_SESSIONS, f"lost {counted.first}")
    assert credible(counted.first, OPEN_SESSIONS), counted
