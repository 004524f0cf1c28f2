"""Tests of webhooks have a database of their own."""

import pytest


@pytest.fixture
def database_url(lone_database_url: str) -> str:
    """One that only the test's own service delivers for."""
    return lone_database_url
