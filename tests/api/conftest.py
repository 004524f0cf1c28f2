"""The whole service in this process, over a real database and a real Redis."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from celeus.main import create_app
from celeus.operations.certificates.signing_keys import make_key
from celeus.settings import Settings
from tests.api.contract import client_with
from tests.clients import service_of
from tests.conftest import empty
from tests.keys import bearer, key_in


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


MOST_OPEN = 4
"""Services kept open; each has connections to the database."""


@pytest.fixture(scope="session")
async def open_app() -> AsyncIterator[Callable[[Settings], Awaitable[FastAPI]]]:
    """A service with these settings and its context open, which all tests share.

    To make one takes 0.1 s, and to open it 25 ms.
    """
    kept: OrderedDict[Settings, tuple[FastAPI, AsyncExitStack]] = OrderedDict()

    async def opened(settings: Settings) -> FastAPI:
        if settings not in kept:
            stack = AsyncExitStack()
            app = stack.enter_context(service_of(settings))
            await stack.enter_async_context(app.router.lifespan_context(app))
            kept[settings] = app, stack
        kept.move_to_end(settings)
        if len(kept) > MOST_OPEN:
            await kept.popitem(last=False)[1][1].aclose()
        return kept[settings][0]

    yield opened
    for _, stack in kept.values():
        await stack.aclose()


@pytest.fixture
async def app(
    settings: Settings,
    open_app: Callable[[Settings], Awaitable[FastAPI]],
    emptying: psycopg.Connection,
    request: pytest.FixtureRequest,
) -> AsyncIterator[FastAPI]:
    """The service with its context open.

    Tests with the same settings share one; those marked ``own_app`` get one that nobody has used,
    and nobody will; those marked ``own_context`` one that nobody else has open.
    """
    if request.node.get_closest_marker("own_app") is not None:
        app = create_app(settings)
        async with app.router.lifespan_context(app):
            yield app
        return
    if request.node.get_closest_marker("own_context") is not None:
        with service_of(settings) as app:
            async with app.router.lifespan_context(app):
                yield app
        return
    yield await open_app(settings)
    # In a thread: what the service has under way in this loop may hold a lock
    await asyncio.to_thread(empty, emptying)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[AsyncClient]:
    """A client of the service whose key may do everything."""
    transport = ASGITransport(app, raise_app_exceptions=False)
    async with AsyncClient(
        transport=transport, base_url="http://celeus.test", headers=bearer()
    ) as client:
        yield client


@pytest.fixture
async def ann(app: FastAPI, database_url: str) -> AsyncIterator[AsyncClient]:
    """Somebody whose key only labels."""
    async with client_with(app, key_in(database_url, "label")) as labeller:
        yield labeller


@pytest.fixture
async def bob(app: FastAPI, database_url: str) -> AsyncIterator[AsyncClient]:
    """Somebody else whose key only labels."""
    async with client_with(app, key_in(database_url, "label")) as labeller:
        yield labeller
