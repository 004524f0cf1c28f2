"""A real service, clients of it, and the command line."""

from collections.abc import Iterator

import pytest

from celeus import Client
from tests.cli.calling import Answer, Run, celeus
from tests.keys import ADMIN
from tests.servers import Service, running_services


@pytest.fixture(scope="session")
def running(postgres_url: str) -> Iterator[Service]:
    with running_services(1, postgres_url) as services:
        yield services[0]


@pytest.fixture
def service(running: Service, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The service of all these tests, with nothing in its database."""
    assert database_url
    monkeypatch.setenv("CELEUS_URL", running.url)
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    return running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, ADMIN) as client:
        yield client


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*arguments: object) -> Answer:
        return celeus(monkeypatch, capsys, *arguments)

    return called
