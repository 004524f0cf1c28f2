"""Skipping what one has seen, with draws held, loses the risk in at most alpha of the sessions."""

import pytest

from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.claims.skipping import Skipping, skips
from tests.nightly import NIGHTLY

ITEMS = 600
SESSIONS = 504 if NIGHTLY else 8


@pytest.mark.nightly
@pytest.mark.parametrize("world", ["informative surrogate", "three quarters drawn"])
def test_the_best_of_27_rules_to_skip_what_was_seen_gains_nothing(world: str) -> None:
    counted = skips(Skipping("sharp", world, ITEMS), SESSIONS)
    found = f"missed ever {counted.best}, without skips {counted.honest}"
    note("skips by the best of 27 rules", world, ITEMS, SESSIONS, found)
    assert credible(counted.best, SESSIONS), counted
