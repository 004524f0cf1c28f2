"""A service killed while it deletes a session: all or nothing is seen, and the rest goes on."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from httpx import AsyncClient

from tests.factories import known_pool, labelled, opened
from tests.faults.loads import client_of, until
from tests.faults.tally import Tally
from tests.servers import Service, started_service

pytestmark = pytest.mark.nightly

EVENTS = 12_000
MOST_SECONDS = 60.0


@asynccontextmanager
async def serving(database_url: str) -> AsyncIterator[tuple[Service, AsyncClient]]:
    """A service that a test may kill, and its client."""
    service = await asyncio.to_thread(started_service, database_url)
    try:
        async with client_of(service.url) as client:
            yield service, client
    finally:
        service.kill()


def remains(db: psycopg.Connection) -> bool:
    """Whether something may be left of the one deleted session."""
    found = db.execute("SELECT remains FROM tombstones").fetchone()
    assert found is not None
    return bool(found[0])


def waits_for_lock(db: psycopg.Connection) -> bool:
    """Whether a transaction waits for the tombstones."""
    query = "SELECT 1 FROM pg_locks WHERE relation = 'tombstones'::regclass AND NOT granted"
    return db.execute(query).fetchone() is not None


def left(db: psycopg.Connection, path: str) -> int:
    """Events of a session."""
    query = "SELECT count(*) FROM events WHERE session_id = %s"
    found = db.execute(query, [path.rpartition("_")[2]]).fetchone()
    assert found is not None
    return int(found[0])


async def archived(client: AsyncClient) -> tuple[str, str]:
    """The path of an archived session of ten labels, and another one with as many."""
    pool = await known_pool(client, 60)
    session, kept = await opened(client, pool), await opened(client, pool)
    for one in (session, kept):
        await labelled(client, one, pool, 10)
    path = f"/v1/sessions/{session}"
    await client.patch(path, json={"archived": True})
    return path, kept


async def test_a_service_killed_before_a_deletion_is_committed_has_deleted_nothing(
    database_url: str, tally: Tally
) -> None:
    with psycopg.connect(database_url) as db:
        async with serving(database_url) as (service, client):
            path, _ = await archived(client)
            before = left(db, path)
            db.execute("LOCK TABLE tombstones")
            asked = asyncio.create_task(client.delete(path))
            with psycopg.connect(database_url, autocommit=True) as other:
                await until(lambda: waits_for_lock(other))
            assert not asked.done()
            service.kill()
            await asyncio.gather(asked, return_exceptions=True)
            db.rollback()
        assert left(db, path) == before > 10
        assert db.execute("SELECT count(*) FROM tombstones").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM sessions").fetchone() == (2,)
    tally.count("`kill -9` before a deletion is committed", 1)


async def test_what_a_killed_service_left_of_a_deleted_session_goes_at_the_next_start(
    database_url: str, tally: Tally
) -> None:
    with (
        psycopg.connect(database_url, autocommit=True) as db,
        psycopg.connect(database_url) as other,
    ):
        async with serving(database_url) as (service, client):
            path, kept = await archived(client)
            plain = path.rpartition("_")[2]
            db.execute(
                "INSERT INTO events (session_id, sequence, kind, detail)"
                " SELECT %s, n, 5, '{}' FROM generate_series(1000, %s) AS n",
                [plain, EVENTS],
            )
            # Holds a part up in its middle
            held = "SELECT 1 FROM events WHERE session_id = %s AND sequence = 5000 FOR UPDATE"
            other.execute(held.encode(), [plain])
            assert (await client.delete(path)).status_code == 200
            await until(lambda: left(db, path) < EVENTS - 3_000)
            assert (await client.get(path)).status_code == 404
            service.kill()
            other.rollback()
        assert EVENTS - 5_000 < left(db, path) < EVENTS - 1_000
        assert remains(db)
        async with serving(database_url) as (service, client):
            deadline = time.monotonic() + MOST_SECONDS
            while remains(db):
                assert time.monotonic() < deadline
                assert (await client.get(path)).status_code == 404
                await asyncio.sleep(0.1)
            assert left(db, path) == 0
            labels = await client.get(f"/v1/sessions/{kept}/labels")
            assert len(labels.json()["data"]) == 10
    tally.count("`kill -9` while what is left of a session is deleted", 1)
