"""Every account of alpha keeps its promise, however badly it is used."""

import math

import pytest

from tests.claims.accounting import PROMISES, broken
from tests.claims.conftest import PIECES, Runner
from tests.claims.test_coverage import credible
from tests.nightly import NIGHTLY

ITEMS = 120 if NIGHTLY else 60
SESSIONS = 1600 if NIGHTLY else 8


@pytest.mark.parametrize("promise", PROMISES)
def test_every_account_keeps_its_promise(promise: str, runner: Runner) -> None:
    size = SESSIONS // PIECES
    pieces = [runner.pool.submit(broken, promise, ITEMS, at * size, size) for at in range(PIECES)]
    counted = sum(piece.result() for piece in pieces)
    found = f"broken {counted:g} times"
    runner.note("account of six claims", promise, ITEMS, size * PIECES, found)
    # A share counts for no more than a whole one: the test is on the safe side
    assert credible(math.floor(counted), size * PIECES), counted
