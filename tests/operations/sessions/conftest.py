"""Two processes of a service, as far as sessions go, and what is checked of a session."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID

import pytest

from celeus.core.session.mean import Mean
from celeus.core.session.session import Session
from celeus.operations.runtime.context import Context, open_context
from celeus.settings import Settings
from celeus.store.database import Database
from tests.operations.replays import Kept, assert_whole, kept
from tests.operations.wire import Wire, listening

Whole = Callable[[UUID], Awaitable[tuple[Kept, Session[Mean]]]]


@pytest.fixture
def settings(database_url: str) -> Settings:
    """Settings of both processes."""
    return Settings(database_url=database_url, database_pool_size=4)


@pytest.fixture
async def two(settings: Settings) -> AsyncIterator[list[Context]]:
    """Two processes."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_context(settings)) for _ in range(2)]


@pytest.fixture
def whole(database: Database, database_url: str) -> Whole:
    """Checks that what is kept of a session is what its ledger says, and gives both."""

    async def check(session: UUID) -> tuple[Kept, Session[Mean]]:
        found = kept(database_url, session.hex)
        return found, await assert_whole(database, found)

    return check


@pytest.fixture
async def wire(context: Context, tmp_path: Path) -> AsyncIterator[Wire]:
    """What the context says to PostgreSQL; its webhooks say nothing in their own time."""
    await context.deliveries.close()
    async with listening(context.database, tmp_path / "wire") as wire:
        yield wire
