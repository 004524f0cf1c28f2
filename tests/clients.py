"""Clients of a service in the test's own process."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
from fastapi import FastAPI

from celeus.api.watch.metrics import Metrics
from celeus.main import create_app
from celeus.settings import Settings
from tests.keys import bearer

_UNUSED: defaultdict[Settings, list[FastAPI]] = defaultdict(list)


@contextmanager
def service_of(settings: Settings) -> Iterator[FastAPI]:
    """A service with these settings, whose context may be opened; others get its routes afterwards.

    To build these takes 0.1 s. What was counted before is forgotten.
    """
    unused = _UNUSED[settings]
    app = unused.pop() if unused else create_app(settings)
    app.state.metrics, app.middleware_stack = Metrics(), None
    yield app
    unused.append(app)


@asynccontextmanager
async def serving(settings: Settings, **changed: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client, with the key of the tests, of a service with these settings."""
    async with visited(settings.model_copy(update=changed)) as client:
        client.headers.update(bearer())
        yield client


@asynccontextmanager
async def visited(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service with these settings, which shows no key."""
    with service_of(settings) as app:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://celeus.test") as client,
        ):
            yield client
