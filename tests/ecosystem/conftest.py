"""Tests against the real tools, a folder for every environment these need: `make ecosystem`."""

import os
from collections.abc import Iterator

import pytest

from tests.ecosystem.service import Service, running

collect_ignore_glob = [] if "CELEUS_ECOSYSTEM" in os.environ else ["*/test_*.py"]


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A Celeus that serves all tests of the folder, with a database of its own."""
    with running() as service:
        yield service
