"""Every claim of a table loses its risk in at most alpha of the sessions."""

import numpy as np
import pytest

from tests.claims.conftest import PIECES, Runner
from tests.claims.tables import WORLDS, lost_claims
from tests.claims.test_coverage import credible
from tests.nightly import NIGHTLY

ITEMS = 300 if NIGHTLY else 100
SESSIONS = 1600 if NIGHTLY else 16


@pytest.mark.parametrize("world", WORLDS)
def test_every_claim_is_lost_in_at_most_alpha_of_the_sessions(world: str, runner: Runner) -> None:
    size = SESSIONS // PIECES
    pieces = [
        runner.pool.submit(lost_claims, world, ITEMS, at * size, size) for at in range(PIECES)
    ]
    counted = np.sum([piece.result() for piece in pieces], axis=0)
    found = f"lost {', '.join(map(str, counted))} times"
    runner.note("each claim of a table", world, ITEMS, size * PIECES, found)
    assert all(credible(int(missed), size * PIECES) for missed in counted), counted
