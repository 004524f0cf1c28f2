"""A service, and sessions on it whose answers are known."""

from collections.abc import Iterator

import pytest

from tests.servers import Service, running_services


@pytest.fixture(scope="module")
def running(postgres_url: str) -> Iterator[Service]:
    with running_services(1, postgres_url) as services:
        yield services[0]


@pytest.fixture
def service(running: Service, database_url: str) -> Service:
    """The service of the module, with nothing in its database."""
    assert database_url
    return running
