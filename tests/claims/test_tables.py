"""Every claim of a table loses its risk in at most alpha of the sessions."""

import pytest

from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.claims.tables import WORLDS, lost_at_worst, lost_claims
from tests.nightly import NIGHTLY, by_day

ITEMS = 300 if NIGHTLY else 60
SESSIONS = 1600 if NIGHTLY else 16
OPEN_ITEMS, OPEN_SESSIONS = (100, 600) if NIGHTLY else (40, 8)
"""Where draws are kept open, as many as of other sessions."""


@pytest.mark.parametrize("world", WORLDS)
def test_every_claim_is_lost_in_at_most_alpha_of_the_sessions(world: str) -> None:
    counted = lost_claims(world, ITEMS, SESSIONS)
    found = f"lost {', '.join(map(str, counted))}"
    note("each claim of a table", world, ITEMS, SESSIONS, found)
    assert all(credible(int(missed), SESSIONS) for missed in counted), counted


@pytest.mark.parametrize("world", by_day(1, WORLDS))
def test_draws_kept_open_by_who_knows_their_losses_gain_nothing(world: str) -> None:
    counted = lost_at_worst(world, OPEN_ITEMS, OPEN_SESSIONS)
    found = f"lost {', '.join(map(str, counted))}"
    note("each claim, draws open", world, OPEN_ITEMS, OPEN_SESSIONS, found)
    assert all(credible(int(missed), OPEN_SESSIONS) for missed in counted), counted
