"""Faults are counted; tests/conftest.py prints the counts of docs/evidence/trust.md."""

import os
from pathlib import Path

import pytest

from tests.faults.tally import TALLY, Tally

LONGEST_SECONDS = 400
"""Servers are started again and again here, which takes its time on a machine that is busy."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder the time they need at worst."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            full = "full" in {os.environ.get("CELEUS_ATTACKS"), os.environ.get("CELEUS_FAULTS")}
            seconds = 0 if full else LONGEST_SECONDS
            item.add_marker(pytest.mark.timeout(seconds))


@pytest.fixture
def tally() -> Tally:
    """Where a test tells how often it tried a fault."""
    return TALLY
