"""The whole service in this process, and people whose browsers come to it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from tests.api.conftest import app, client, open_app, settings, signing_key_file

__all__ = ["app", "client", "open_app", "settings", "signing_key_file"]


@pytest.fixture
def visiting(app: FastAPI) -> Callable[..., AbstractAsyncContextManager[AsyncClient]]:
    """`visiting()`: somebody who has not signed in; `visiting(token)`: somebody who has."""

    @asynccontextmanager
    async def visit(token: str | None = None) -> AsyncIterator[AsyncClient]:
        transport = ASGITransport(app, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url="http://celeus.test") as browser:
            if token is not None:
                answer = await browser.post("/login", data={"key": token})
                assert answer.status_code == 303, answer.text
            yield browser

    return visit
