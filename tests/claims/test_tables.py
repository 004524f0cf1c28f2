"""Every claim of a table loses its risk in at most alpha of the sessions."""

import pytest

from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.claims.tables import WORLDS, lost_claims
from tests.nightly import NIGHTLY

ITEMS = 300 if NIGHTLY else 60
SESSIONS = 1600 if NIGHTLY else 16


@pytest.mark.parametrize("world", WORLDS)
def test_every_claim_is_lost_in_at_most_alpha_of_the_sessions(world: str) -> None:
    counted = lost_claims(world, ITEMS, SESSIONS)
    found = f"lost {', '.join(map(str, counted))}"
    note("each claim of a table", world, ITEMS, SESSIONS, found)
    assert all(credible(int(missed), SESSIONS) for missed in counted), counted
