"""The whole service in this process, over a real database and a real Redis."""

from collections.abc import AsyncIterator
from functools import lru_cache
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from celeus.main import create_app
from celeus.operations.certificates.signing_keys import make_key
from celeus.settings import Settings
from tests.keys import bearer


@pytest.fixture(scope="session")
def signing_key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key that certificates are signed with."""
    path = tmp_path_factory.mktemp("key") / "signing.pem"
    make_key(path)
    return path


@pytest.fixture
def settings(database_url: str, redis_url: str, signing_key_file: Path) -> Settings:
    """Settings of the service under test."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        signing_key_file=signing_key_file,
    )


_app_of = lru_cache(maxsize=8)(create_app)


@pytest.fixture
async def app(settings: Settings, request: pytest.FixtureRequest) -> AsyncIterator[FastAPI]:
    """The service with its context open.

    Tests with the same settings share one, as to make it takes 0.1 s; those marked ``own_app`` get
    one that nobody has used, and nobody will.
    """
    own = request.node.get_closest_marker("own_app") is not None
    app = create_app(settings) if own else _app_of(settings)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[AsyncClient]:
    """A client of the service whose key may do everything."""
    transport = ASGITransport(app, raise_app_exceptions=False)
    async with AsyncClient(
        transport=transport, base_url="http://celeus.test", headers=bearer()
    ) as client:
        yield client
