"""Sessions with weights lose the weighted mean in at most alpha."""

from functools import reduce
from operator import add

import pytest

from tests.claims.conftest import PIECES, Runner
from tests.claims.test_coverage import credible
from tests.claims.weighing import WORLDS, lost
from tests.nightly import NIGHTLY

ITEMS = 300 if NIGHTLY else 100
SESSIONS = 2000 if NIGHTLY else 40


@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_holds_the_weighted_mean(world: str, runner: Runner) -> None:
    size = SESSIONS // PIECES
    pieces = [runner.pool.submit(lost, world, ITEMS, at * size, size) for at in range(PIECES)]
    counted = reduce(add, (piece.result() for piece in pieces))
    runner.note("weighted mean", world, ITEMS, counted.sessions, f"missed {counted.missed}")
    assert credible(counted.missed, counted.sessions), counted
