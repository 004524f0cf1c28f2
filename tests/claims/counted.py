"""docs/evidence/coverage.md: what was counted, a row for every claim.

A run brings the rows of the claims it counted and leaves all others: some of the claims can be
counted by themselves, and a run that is ended early keeps what it has. Words are written by hand.
"""

import fcntl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.claims.sessions import Case, Tally
from tests.nightly import NIGHTLY

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "coverage.md"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page, found by its header; the first ``named`` columns name a row."""

    columns: tuple[str, ...]
    named: int

    @property
    def header(self) -> str:
        """Its first line."""
        return line_of(self.columns)

    def name(self, line: str) -> list[str]:
        """What names the row in this line."""
        return line.split(" | ")[: self.named]


POOLS = Table(("policy", "target", "pools", "missed to stop", "missed ever", "drawn at stop"), 3)
FURTHER = Table(("claim", "pools", "items", "sessions", "counted"), 3)


def line_of(cells: Sequence[object]) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def with_row(page: str, table: Table, cells: Sequence[object]) -> str:
    """The page with this row in place of the one of its name, or at the end of the table."""
    lines, row = page.splitlines(), line_of(cells)
    first = end = lines.index(table.header) + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    at = next((at for at in range(first, end) if table.name(lines[at]) == table.name(row)), end)
    lines[at : min(at + 1, end)] = [row]
    return "\n".join(lines) + "\n"


def keep(table: Table, cells: Sequence[object], path: Path = PAGE) -> None:
    """Write a row into the page, which other processes may be writing into as well."""
    with path.open("r+") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        text = with_row(page.read(), table, cells)
        page.seek(0)
        page.write(text)
        page.truncate()


def keep_case(case: Case, counted: Tally) -> None:
    """Write the row of a case into the page, where counts are full."""
    if NIGHTLY:
        keep(POOLS, row_of(case, counted))


def note(claim: str, pools: str, items: int, sessions: int, counted: str) -> None:
    """Write what was counted of a claim on these pools into the page, where counts are full."""
    if NIGHTLY:
        keep(FURTHER, (claim, pools, items, sessions, counted))


def row_of(case: Case, counted: Tally) -> tuple[object, ...]:
    """The row of a case in the first table."""
    drawn = sorted(counted.drawn)[counted.sessions // 2]
    stop, ever = (n / counted.sessions for n in (counted.missed_by_stop, counted.missed_ever))
    pools = f"{case.world}, changed twice" if case.changing else case.world
    shares = f"{stop:.3f}", f"{ever:.3f}", f"{drawn:.0%}"
    return case.policy, case.target, pools, *shares
