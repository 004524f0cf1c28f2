"""A real service, and clients of it."""

from collections.abc import Iterator

import pytest

from celeus import Client
from tests.keys import ADMIN
from tests.servers import Service


@pytest.fixture
def service(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The service that all tests share, named in the environment."""
    monkeypatch.setenv("CELEUS_URL", service.url)
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    return service


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, ADMIN) as client:
        yield client
