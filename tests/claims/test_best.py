"""The best of k systems is lost in at most alpha of the sessions, whatever k is."""

import pytest

from tests.claims.contests import WORLDS, lost_best
from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY, by_day

ITEMS = 300 if NIGHTLY else 50
SESSIONS = 2000 if NIGHTLY else 24


@pytest.mark.parametrize("world", by_day(4, WORLDS))
def test_the_best_is_lost_in_at_most_alpha_of_the_sessions(world: str) -> None:
    counted = lost_best(world, ITEMS, SESSIONS)
    found = f"lost the first of the best {counted.first}, all of them {counted.every}"
    note("best of k", world, ITEMS, SESSIONS, found)
    assert counted.every <= counted.first
    assert credible(counted.first, SESSIONS), counted


@pytest.mark.parametrize("world", by_day(2, WORLDS))
def test_draws_kept_open_by_who_knows_their_losses_gain_nothing(world: str) -> None:
    counted = lost_best(world, ITEMS, SESSIONS, stalled=True)
    found = f"lost the first of the best {counted.first}, all of them {counted.every}"
    note("best of k, draws kept open", world, ITEMS, SESSIONS, found)
    assert credible(counted.first, SESSIONS), counted
