"""Clients of a service in the test's own process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from celeus.main import create_app
from celeus.settings import Settings
from tests.keys import bearer


@asynccontextmanager
async def serving(settings: Settings, **changed: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client, with the key of the tests, of a service with these settings."""
    app = create_app(settings.model_copy(update=changed))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://celeus.test", headers=bearer()
        ) as client,
    ):
        yield client
