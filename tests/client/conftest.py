"""Clients of a real service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import celeus
from celeus import Client
from tests.client.pools import Exam, exam
from tests.keys import ADMIN
from tests.servers import Service


@pytest.fixture(autouse=True)
def _names_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges of other tests at the same time take no names that a test gets again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, ADMIN) as client:
        yield client


@pytest.fixture
def known(client: Client) -> Exam:
    """A sealed pool of 200 items whose losses the test knows."""
    rows, losses = exam(200)
    return Exam(client.create_pool("exam", rows), losses)


@pytest.fixture
def session(client: Client, known: Exam) -> celeus.Session:
    return client.open_session(known.pool, precision=0.2)
