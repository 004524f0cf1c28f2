"""Polls of a session's status, served from Redis, with proof that PostgreSQL all but slept."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psycopg

from tests.bench.connection import Connection, UnexpectedAnswerError
from tests.bench.judges import Judge
from tests.bench.results import Goal, Line
from tests.bench.truths import synthetic
from tests.bench.worlds import World, opened, sealed

CLIENTS = 8
ITEMS = 10_000


@dataclass(frozen=True, slots=True)
class Polled:
    """Polls a second, and the statements that reached PostgreSQL meanwhile."""

    rate: float
    connections_used: int


async def poll_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Whole answers and 304s by eight dashboards on one session."""
    # Less than a status lives in Redis: then not even the first poll has to fill it
    repeats, seconds = (1, 1.5) if quick else (5, 4.0)
    truth = synthetic(ITEMS)
    found: dict[int, list[Polled]] = {200: [], 304: []}
    async with world.services() as urls, AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(Connection.to(urls[0])) for _ in range(CLIENTS)
        ]
        session = await opened(connections[0], await sealed(connections[0], truth))
        judge = Judge(connections[0], session, "judge", truth)
        await judge.begin()
        for _ in range(repeats):
            for status, polled in found.items():
                await judge.cycle()
                polled.append(await _polled(world, connections, session, status, seconds))
    for status, polls in found.items():
        rates = [polled.rate for polled in polls]
        yield Line(f"status polls a second, {CLIENTS} clients, answered {status}", rates, "/s")
    used = [float(polled.connections_used) for polls in found.values() for polled in polls]
    # The key is looked up every few seconds; never a status
    what = "database connections of the server that did anything meanwhile, for the key"
    yield Line(what, used, "", Goal.most(1))


async def _polled(
    world: World, connections: list[Connection], session: str, status: int, seconds: float
) -> Polled:
    path = f"/v1/sessions/{session}"
    etag = (await connections[0].get(path)).etag
    headers = f"If-None-Match: {etag}\r\n" if status == 304 else ""
    end = time.perf_counter() + seconds

    async def poll(connection: Connection) -> int:
        done = 0
        while time.perf_counter() < end:
            answer = await connection.get(path, headers)
            if answer.status != status:
                raise UnexpectedAnswerError(answer.status, answer.body[:500])
            done += 1
        return done

    before = _last_statements(world)
    began = time.perf_counter()
    counts = await asyncio.gather(*(poll(connection) for connection in connections))
    rate = sum(counts) / (time.perf_counter() - began)
    after = _last_statements(world)
    return Polled(rate, len(after.items() - before.items()))


def _last_statements(world: World) -> dict[int, object]:
    """When each connection of the service began its last statement, by PostgreSQL itself."""
    with psycopg.connect(world.database_url) as db:
        rows = db.execute(
            "SELECT pid, query_start FROM pg_stat_activity WHERE application_name = 'celeus'"
        )
        return dict(rows.fetchall())
