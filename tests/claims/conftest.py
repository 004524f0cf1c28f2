"""How many sessions are run, by how many processes, and where the figures go.

``make test`` runs enough to notice an engine that is broken; ``make claims`` (CELEUS_CLAIMS=full)
runs the full counts and writes them into docs/coverage.md.
"""

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

import pytest

from tests.claims.counted import FURTHER, POOLS, keep, row_of
from tests.claims.sessions import Case, Tally, tally
from tests.workers import number

Counted = TypeVar("Counted")

FULL = os.environ.get("CELEUS_CLAIMS") == "full"
PROCESSES = max(1, 2 // number()[1])
"""In each worker of a run: together as many as the smallest machine has cores."""
PIECES = 8
QUICK = 24
"""Sessions of a case in `make test`: broken engines show in nearly as many cases as with 160.

Of 20 cases, each a policy in a world, alpha taken for 0.5 shows in 11 with 24 sessions, in 12 with
48 and in 14 with 160; a floor or a range that is too narrow shows in 8 of 30 with any of them.
"""


@dataclass(slots=True)
class Runner:
    """Runs the sessions of a case in several processes; the counts do not depend on how many."""

    pool: ProcessPoolExecutor
    sessions: int
    items: int

    def run(self, case: Case, sessions: int | None = None) -> Tally:
        """The tally of this case."""
        return self.sum(tally, sessions or self.sessions, case)

    def keep(self, case: Case, sessions: int | None = None) -> Tally:
        """The tally of this case, which full counts write into the page."""
        counted = self.run(case, sessions)
        if FULL:
            keep(POOLS, row_of(case, counted))
        return counted

    def note(self, claim: str, pools: str, items: int, sessions: int, counted: str) -> None:
        """Write what full counts found of a claim on these pools into the page."""
        if FULL:
            keep(FURTHER, (claim, pools, items, sessions, counted))

    def sum(self, count: Callable[..., Counted], sessions: int, *case: object) -> Counted:
        """What ``count`` finds, which is told a case, the first session and how many, in pieces."""
        size = -(-sessions // PIECES)
        pieces = [self.pool.submit(count, *case, piece * size, size) for piece in range(PIECES)]
        return reduce(add, (piece.result() for piece in pieces))


def _be_strict() -> None:
    warnings.simplefilter("error")


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    """Sessions by the hundred."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context, initializer=_be_strict) as pool:
        yield Runner(pool, *((1200, 200) if FULL else (QUICK, 100)))
