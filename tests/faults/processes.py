"""Servers for tests that have proxies of their own to serve meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tests.servers import Service, running_services


@asynccontextmanager
async def serving(
    count: int,
    database_url: str | None,
    redis_url: str | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: object,
) -> AsyncIterator[list[Service]]:
    """`running_services`, started and ended in a thread; ``workers=3`` is CELEUS_WORKERS."""
    chosen = {f"CELEUS_{name.upper()}": str(value) for name, value in settings.items()}
    running = running_services(count, database_url, redis_url, chosen | dict(environment or {}))
    services = await asyncio.to_thread(running.__enter__)
    try:
        yield services
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)
