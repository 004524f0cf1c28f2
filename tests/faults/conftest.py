"""Faults are counted; the counts stand at the end of the run, beside docs/trust.md."""

import pytest

from tests.faults.tally import TALLY, Tally


@pytest.fixture
def tally() -> Tally:
    """Where a test tells how often it tried a fault."""
    return TALLY


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was tried."""
    if TALLY.rows:
        terminalreporter.write_sep("-", "faults survived")
        for line in TALLY.lines():
            terminalreporter.write_line(line)
