"""Operations are tested on rooms as `create_app` opens them."""

from collections.abc import AsyncIterator

import pytest

from app.main import open_rooms
from app.operations.rooms import Rooms
from app.settings import Settings


@pytest.fixture
async def rooms(database_url: str) -> AsyncIterator[Rooms]:
    """Rooms on an empty database, without Redis."""
    settings = Settings(database_url=database_url, database_pool_size=8)
    async with open_rooms(settings) as opened:
        yield opened
