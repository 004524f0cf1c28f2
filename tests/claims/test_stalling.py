"""Keeping draws open after seeing their losses loses the risk in at most alpha of the sessions."""

import pytest

from tests.claims.counted import note
from tests.claims.sessions import Case, credible
from tests.claims.stalling import losses_of_risk
from tests.nightly import NIGHTLY, by_day

ITEMS, SESSIONS = (100, 600) if NIGHTLY else (60, 12)
CASES = [
    ("sharp", "pool", "informative surrogate"),
    ("sharp", "pool", "more than half drawn"),
    ("sharp", "pool", "graded losses"),
    # Takes nearly as long as all others together
    *by_day(0, [("sharp", "population", "informative surrogate")]),
    ("uniform", "pool", "more than half drawn"),
    ("celeus", "pool", "informative surrogate"),
]


@pytest.mark.parametrize(("policy", "target", "world"), CASES)
def test_draws_kept_open_by_who_knows_their_losses_gain_nothing(
    policy: str, target: str, world: str
) -> None:
    lost = losses_of_risk(Case(policy, target, world, ITEMS), SESSIONS)
    note("draws open", f"{policy}, {target}, {world}", ITEMS, SESSIONS, f"missed {lost}")
    assert credible(lost, SESSIONS)
