"""A family of sessions that grows while somebody looks keeps its false discovery rate."""

from functools import partial

from celeus.core.multiplicity.selection import opened_level
from tests.claims.counted import note
from tests.claims.families import ITEMS, LEVEL, misled
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY

FAMILIES = 1200 if NIGHTLY else 24


def test_sessions_opened_until_one_is_shown_keep_the_level_of_the_project() -> None:
    counted = sum(misled(number, partial(opened_level, LEVEL, 1)) for number in range(FAMILIES))
    what = "sessions opened until one misses, at level 0.1"
    note("family that grows", what, ITEMS, FAMILIES, f"shown {counted}")
    assert credible(counted, FAMILIES, LEVEL), counted
