"""Skipping what one has seen, with draws held, loses the risk in at most alpha of the sessions."""

import pytest

from tests.claims.conftest import PIECES, Runner
from tests.claims.skipping import Skipping, Skips, skips
from tests.claims.test_coverage import credible
from tests.nightly import NIGHTLY

ITEMS = 600
WORLDS = ["informative surrogate", "three quarters drawn"]


def run(runner: Runner, case: Skipping, sessions: int) -> Skips:
    """Skips of all sessions of a case, in as many processes as there are."""
    return runner.sum(skips, sessions, case)


@pytest.mark.parametrize("world", WORLDS if NIGHTLY else WORLDS[:1])
def test_the_best_of_27_rules_to_skip_what_was_seen_gains_nothing(
    world: str, runner: Runner
) -> None:
    counted = run(runner, Skipping("sharp", world, ITEMS), 500 if NIGHTLY else PIECES)
    found = f"missed ever {counted.best}, without skips {counted.honest}"
    runner.note("skips by the best of 27 rules", world, ITEMS, counted.sessions, found)
    assert credible(counted.best, counted.sessions), counted
