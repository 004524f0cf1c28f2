"""Operations are tested in a context as `create_app` opens it."""

from collections.abc import AsyncIterator

import pytest

from celeus.operations.runtime.context import Context, open_context
from celeus.settings import Settings


@pytest.fixture
async def context(database_url: str) -> AsyncIterator[Context]:
    """A context on an empty database, without Redis."""
    settings = Settings(database_url=database_url, database_pool_size=8)
    async with open_context(settings) as opened:
        yield opened
