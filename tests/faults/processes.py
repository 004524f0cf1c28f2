"""Servers for tests that have proxies of their own to serve meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tests.servers import Service, running_services


@asynccontextmanager
async def serving(
    count: int,
    database_url: str,
    redis_url: str | None = None,
    **settings: str,
) -> AsyncIterator[list[Service]]:
    """`running_services`, started and ended in a thread; ``workers="3"`` is CELEUS_WORKERS."""
    environment: Mapping[str, str] = {
        f"CELEUS_{name.upper()}": value for name, value in settings.items()
    }
    running = running_services(count, database_url, redis_url, environment)
    services = await asyncio.to_thread(running.__enter__)
    try:
        yield services
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)
