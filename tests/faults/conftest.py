"""Faults are counted; tests/conftest.py prints the counts of docs/evidence/trust.md."""

import pytest

from tests.faults.tally import TALLY, Tally


@pytest.fixture
def tally() -> Tally:
    """Where a test tells how often it tried a fault."""
    return TALLY
