"""100 000 sessions and 10 000 000 items in one database: lists, openings, labels, memory, disk.

One pool and one session are made through the service. The rest are copies of them, made by the
database: same numbers, other ids, names, owners and times, spread over the pools.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from tests.bench.connection import Connection
from tests.bench.judges import Judge
from tests.bench.results import Goal, Line
from tests.bench.scale.footprint import Disk
from tests.bench.scale.processors import Processors, resident_mib
from tests.bench.truths import synthetic
from tests.bench.worlds import World, opened, sealed

POOL_ITEMS = 50_000
LABELS = 10
"""Of every session."""
PAGE = 50
MET = 300
"""Sessions that a process meets one after the other, more than it keeps warm."""
AT_ONCE = 10
PAUSED, ARCHIVED = 100, 3
"""Of so many sessions one is."""
OPENED = 20
"""Pools that sessions are opened on, more than are kept loaded."""
LISTS = {
    "newest first": "",
    "a page further": "&after=ses_01b00000000070008000000000010000",
    "by name": "&order=name",
    "by owner": "&order=-owner",
    "by state": "&order=state",
    "by last activity": "&order=-active",
    "of one pool": "&pool_id={pool}",
    "of one pool, by last activity": "&pool_id={pool}&order=-active",
    "paused": "&state=paused",
    "paused, by name": "&state=paused&order=name",
    "with a tag that one in 1 000 has": "&tag=team-7",
    "with a word that all have": "&q=session",
    "by score": "&order=-score",
    "by progress": "&order=-progress",
}
"""Pages of sessions, by what is asked."""
ALL_READ = {"by score", "by progress", "with a word that all have"}
"""Lists that read every session that fits."""
SHORT = Goal.most(5, "ms")


@dataclass(frozen=True, slots=True)
class Copies:
    """A filled database: ids of its pools, and of the sessions that take labels."""

    pools: list[str]
    sessions: list[str]


async def volume_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Fill a database, then ask; wall time, and processor time where a list is read."""
    sessions, pools = (10_000, 20) if quick else (100_000, 200)
    async with world.services() as urls:
        copies = await filled(world.database_url, urls[0], sessions, pools)
        for line in _disk(world.database_url):
            yield line
        async for line in asked(urls[0], copies):
            yield line


async def filled(database_url: str, url: str, sessions: int, pools: int) -> Copies:
    """Copies of one pool of 50 000 items and of one session with labels."""
    truth = synthetic(POOL_ITEMS, risk=0.5, vagueness=20.0)
    async with Connection.to(url) as connection:
        pool = await sealed(connection, truth)
        session = await opened(connection, pool)
        judge = Judge(connection, session, "judge", truth)
        await judge.begin()
        for _ in range(LABELS - 5):
            await judge.cycle()
    await asyncio.to_thread(_copy, database_url, _uuid(pool), _uuid(session), sessions, pools)
    return Copies(
        [f"pool_{_numbered(number).hex}" for number in range(1, pools + 1)],
        [
            f"ses_{_numbered(number).hex}"
            for number in range(1, sessions + 1)
            if number % PAUSED and number % ARCHIVED
        ],
    )


async def asked(url: str, copies: Copies) -> AsyncIterator[Line]:
    """Lists, openings and labels."""
    async with Connection.to(url) as connection:
        for what, query in LISTS.items():
            path = f"/v1/sessions?limit={PAGE}" + query.format(pool=copies.pools[0])
            for line in await _timed(connection, f"sessions {what}", path):
                yield line
        middle = f"/v1/pools/{copies.pools[0]}/items?limit=100&after={POOL_ITEMS // 2}"
        for what, path in {"pools": "/v1/pools", "items from the middle": middle}.items():
            for line in await _timed(connection, what, path):
                yield line
        yield Line("memory of the service before it met sessions", [resident_mib()], "MiB")
        cold: list[float] = []
        warm: list[float] = []
        for pool in copies.pools[:OPENED]:
            for times in (cold, warm):
                began = time.perf_counter()
                await opened(connection, pool)
                times.append(1000.0 * (time.perf_counter() - began))
        yield Line("opening a session, pool not loaded", cold, "ms")
        yield Line("opening a session, pool loaded", warm, "ms")
        first, then = [], []
        truth = synthetic(POOL_ITEMS, risk=0.5, vagueness=20.0)
        step = max(1, len(copies.sessions) // MET)
        for session in copies.sessions[::step][:MET]:
            judge = Judge(connection, session, "judge", truth)
            began = time.perf_counter()
            await judge.draw()
            first.append(1000.0 * (time.perf_counter() - began))
            began = time.perf_counter()
            await judge.cycle()
            then.append(1000.0 * (time.perf_counter() - began))
        yield Line(f"`next` of a session not met before, {MET} of them", first, "ms")
        yield Line("a label cycle on it", then, "ms")
        yield Line(
            f"memory of the service after {MET} sessions on many pools", [resident_mib()], "MiB"
        )


async def _timed(connection: Connection, what: str, path: str) -> list[Line]:
    """Milliseconds of a page, and how many of them PostgreSQL worked."""
    times = []
    (await connection.get(path)).json()
    processors = Processors.now()
    before = processors.seconds()
    for _ in range(AT_ONCE):
        began = time.perf_counter()
        (await connection.get(path)).json()
        times.append(1000.0 * (time.perf_counter() - began))
    after = processors.seconds()
    worked = 1000.0 * (after["database"] - before["database"]) / AT_ONCE
    goal = None if what.removeprefix("sessions ") in ALL_READ else SHORT
    return [Line(what, times, "ms"), Line("… processor time of PostgreSQL", [worked], "ms", goal)]


def _copy(database_url: str, pool: UUID, session: UUID, sessions: int, pools: int) -> None:
    known: dict[str, Any] = {"pool": pool, "session": session, "sessions": sessions, "pools": pools}
    known |= {"paused": PAUSED, "archived": ARCHIVED}
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(_NUMBERED)
        for statement in (_POOLS, _CHUNKS, _SESSIONS):
            db.execute(statement, known)
        # A part at a time: the log of all at once would fill the disk
        for number in range(1, pools + 1):
            db.execute(_ITEMS, known | {"number": number})
        for first in range(1, sessions + 1, _PART):
            part = known | {"first": first, "last": min(first + _PART - 1, sessions)}
            for table, key in _LEDGER.items():
                db.execute(_COPIES.format(table=table, key=key).encode(), part)
        db.execute("VACUUM (ANALYZE)")
        db.execute("CHECKPOINT")


def _disk(database_url: str) -> list[Line]:
    found = Disk.of(database_url)
    lines = []
    for name in ("items", "chunks", "sessions", "events", "trajectory"):
        lines.append(Line(f"{name}: rows", [found.tables[name] / 2**20], "MiB"))
        lines.append(Line("… indexes", [found.indexes[name] / 2**20], "MiB"))
    total = found.tables.total() + found.indexes.total()
    return [*lines, Line("all tables", [total / 2**20], "MiB")]


def _uuid(name: str) -> UUID:
    return UUID(name.partition("_")[2])


def _numbered(number: int) -> UUID:
    return UUID(f"01b00000-0000-7000-8000-{number:012x}")


_PART = 5_000
_NUMBERED = """
    CREATE FUNCTION pg_temp.numbered(number int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN
        ('01b00000-0000-7000-8000-' || lpad(to_hex(number), 12, '0'))::uuid
    """
_POOLS = """
    INSERT INTO pools SELECT made.* FROM generate_series(1, %(pools)s::int) AS number, pools,
        jsonb_populate_record(pools, jsonb_build_object(
            'pool_id', pg_temp.numbered(number), 'name', 'pool ' || number)) AS made
    WHERE pools.pool_id = %(pool)s
    """
_CHUNKS = """
    INSERT INTO chunks SELECT pg_temp.numbered(number), "column", start, project_id, count, dtype,
        data
    FROM generate_series(1, %(pools)s::int) AS number, chunks WHERE pool_id = %(pool)s
    """
_ITEMS = """
    INSERT INTO items SELECT pg_temp.numbered(%(number)s::int), index, project_id, id,
        jsonb_build_object('text', 'What is asked of item ' || index || ', and what was answered?')
    FROM items WHERE pool_id = %(pool)s ORDER BY index
    """
# With the head of the session copied: nothing here recomputes a chain, which starts with the id
_SESSIONS = """
    INSERT INTO sessions SELECT made.*
    FROM generate_series(1, %(sessions)s::int) AS number, sessions,
        jsonb_populate_record(sessions, jsonb_build_object(
            'session_id', pg_temp.numbered(number),
            'pool_id', pg_temp.numbered(1 + number %% %(pools)s::int),
            'name', 'session ' || number,
            'owner', 'owner ' || number %% 50,
            'state', CASE WHEN number %% %(paused)s::int = 0 THEN 'paused' ELSE state END,
            'lifecycle', CASE WHEN number %% %(paused)s::int = 0 THEN 'paused' ELSE lifecycle END,
            'tags', jsonb_build_array('team-' || number %% 1000),
            'words', array_to_tsvector(ARRAY['session', number::text, 'owner',
                (number %% 50)::text, '#team-' || number %% 1000]),
            'active_at', active_at - number * interval '1 minute',
            'archived_at', CASE WHEN number %% %(archived)s::int = 0 THEN now() END,
            'status', status || jsonb_build_object(
                'id', 'ses_' || replace(pg_temp.numbered(number)::text, '-', ''),
                'pool_id', 'pool_' || replace(
                    pg_temp.numbered(1 + number %% %(pools)s::int)::text, '-', ''),
                'name', 'session ' || number,
                'owner', 'owner ' || number %% 50,
                'width', 0.9 * (1 + number) / (1 + %(sessions)s::int),
                'estimate', number::float8 / %(sessions)s::int))) AS made
    WHERE sessions.session_id = %(session)s
    """
# Each is filled for the sessions of one part, in the order of its key
_COPIES = """
    INSERT INTO {table} SELECT made.*
    FROM generate_series(%(first)s::int, %(last)s::int) AS number, {table} AS one,
        jsonb_populate_record(one, jsonb_build_object(
            'session_id', pg_temp.numbered(number))) AS made
    WHERE one.session_id = %(session)s ORDER BY number, made.{key}
    """
_LEDGER = {"events": "sequence", "trajectory": "round", "leases": "round"}
"""The tables of a session's labels, each with what follows in its key."""
