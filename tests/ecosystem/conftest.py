"""Tests against the real tools, a folder for every environment these need: `make ecosystem`."""

import os
from collections.abc import Iterator

import pytest

from tests.ecosystem.service import Service, running

ASKED = "CELEUS_ECOSYSTEM" in os.environ

collect_ignore_glob = [] if ASKED else ["*/test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests are not here."""
    if not ASKED:
        terminalreporter.write_line("the tests against the tools themselves: make ecosystem")


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A Celeus that serves all tests of the folder, with a database of its own."""
    with running() as service:
        yield service
