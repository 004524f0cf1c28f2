"""How many sessions are run, by how many processes, and where the figures go.

``make test`` runs enough to notice an engine that is broken; ``make claims`` (CELEUS_CLAIMS=full)
runs the full counts and writes docs/coverage.md.
"""

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import TypeVar

import pytest

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
    results: dict[Case, Tally] = field(default_factory=dict)
    further: list[str] = field(default_factory=list)

    def run(self, case: Case, sessions: int | None = None) -> Tally:
        """The tally of this case, kept for the report."""
        return self.sum(tally, sessions or self.sessions, case)

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
        found = Runner(pool, *((1200, 200) if FULL else (QUICK, 100)))
        yield found
    if FULL and found.results:
        report(found)


def report(found: Runner) -> None:
    """Write what was counted to docs/coverage.md."""
    lines = [
        "# Coverage, counted",
        "",
        "`make claims` writes this page. Every row counts seeded sessions on fresh pools of",
        f"{found.items} items at alpha 0.05, run beyond the stop until the pool is exhausted. A",
        "session misses when its interval excludes the true risk after any round. The claim is at",
        "most 5 %; a row fails when an exact binomial test rejects that at 1e-3. The last column",
        "is the median share of the pool drawn at the stop.",
        "",
        "| policy | target | pools | sessions | missed to stop | missed ever | drawn at stop |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for case, counted in found.results.items():
        drawn = sorted(counted.drawn)[counted.sessions // 2]
        stop, ever = (n / counted.sessions for n in (counted.missed_by_stop, counted.missed_ever))
        lines.append(
            f"| {case.policy} | {case.target} | {case.world} | {counted.sessions} "
            f"| {stop:.3f} | {ever:.3f} | {drawn:.0%} |"
        )
    lines += ["", *found.further]
    path = Path(__file__).parents[2] / "docs" / "coverage.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines).rstrip() + "\n")
