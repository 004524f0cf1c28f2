"""What a benchmark runs against: durable PostgreSQL, Redis, and the service as processes."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import orjson
import psycopg

from celeus.simulation.sessions import Truth
from celeus.store import revisions
from celeus.store.embedded import server
from tests.bench.connection import Connection
from tests.servers import data_folder, running_redis, running_services

_COUNTED = {"CELEUS_REQUESTS_PER_MINUTE": str(10**9)}
"""Requests are counted, as in production, but one key may send all of them."""


@dataclass(frozen=True, slots=True)
class World:
    """Addresses of the two servers the service keeps things in."""

    database_url: str
    redis_url: str

    def versions(self) -> str:
        """PostgreSQL's version and what it promises about a commit."""
        with psycopg.connect(self.database_url) as db:
            shown = [
                db.execute(f"SHOW {name}".encode()).fetchone()
                for name in ("server_version", "fsync", "synchronous_commit")
            ]
        told = [row[0] if row else "?" for row in shown]
        return f"PostgreSQL {told[0]}, fsync {told[1]}, synchronous_commit {told[2]}"

    @asynccontextmanager
    async def services(
        self, processes: int = 1, environment: Mapping[str, str] | None = None
    ) -> AsyncIterator[list[str]]:
        """Addresses of as many `celeus serve` processes, ended on leaving."""
        own = _COUNTED | dict(environment or {})
        running = running_services(
            processes, self.database_url, self.redis_url, own, show_log=False
        )
        services = await asyncio.to_thread(running.__enter__)
        try:
            yield [service.url for service in services]
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)

    @contextmanager
    def another_database(self, name: str) -> Iterator[str]:
        """The address of an empty database in the same PostgreSQL, dropped on leaving."""
        with psycopg.connect(self.database_url, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
            try:
                yield self.database_url.replace("/celeus?", f"/{name}?")
            finally:
                db.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def world() -> Iterator[World]:
    """A private PostgreSQL as `celeus serve` starts it, every commit on disk, and a Redis."""
    with data_folder() as folder, server.postgres(folder) as url, running_redis() as redis:
        revisions.upgrade(url)
        yield World(url, redis.url)


async def created(connection: Connection) -> str:
    """Id of an empty open pool of 0-1 losses."""
    pool = await connection.send("/v1/pools", {"name": "bench", "loss": {"kind": "zero_one"}})
    return str(pool["id"])


async def sealed(connection: Connection, truth: Truth) -> str:
    """Id of a sealed pool with the surrogates of ``truth``."""
    pool = await created(connection)
    rows = (
        {"id": f"item-{index:07d}", "surrogate": surrogate}
        for index, surrogate in enumerate(truth.scores.surrogate.tolist())
    )
    body = b"\n".join(map(orjson.dumps, rows))
    (await connection.post(f"/v1/pools/{pool}/items", body, "application/x-ndjson")).json()
    (await connection.post(f"/v1/pools/{pool}/seal", b"")).json()
    return pool


COMMON = 0.05
"""The precision most people ask for."""
LONG = 0.02
"""One that takes so many labels that no session ends while it is measured."""


async def opened(connection: Connection, pool: str, precision: float | None = COMMON) -> str:
    """Id of a session."""
    asked = {"pool_id": pool, "precision": precision}
    return str((await connection.send("/v1/sessions", asked))["id"])
