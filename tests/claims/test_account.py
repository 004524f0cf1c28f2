"""Every account of alpha keeps its promise, however badly it is used."""

import math

import pytest

from tests.claims.accounting import PROMISES, broken
from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY

ITEMS = 120 if NIGHTLY else 40
SESSIONS = 1600 if NIGHTLY else 8


@pytest.mark.parametrize("promise", PROMISES)
def test_every_account_keeps_its_promise(promise: str) -> None:
    counted = broken(promise, ITEMS, SESSIONS)
    note("account of six claims", promise, ITEMS, SESSIONS, f"broken {counted:g}")
    # A share counts for no more than a whole one: the test is on the safe side
    assert credible(math.floor(counted), SESSIONS), counted
