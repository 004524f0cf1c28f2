"""Pools deleted for good: archived ones without sessions, whole or not at all."""

import asyncio

import psycopg
from httpx import AsyncClient

from celeus.settings import Settings
from tests.clients import serving
from tests.factories import KnownPool, known_pool, opened


async def archived(client: AsyncClient, items: int = 300) -> KnownPool:
    pool = await known_pool(client, items)
    answer = await client.patch(f"/v1/pools/{pool.id}", json={"archived": True})
    assert answer.status_code == 200
    return pool


def rows(database_url: str, pool: KnownPool) -> int:
    """Rows of the pool in all tables."""
    with psycopg.connect(database_url) as db:
        params = {"pool": pool.id.removeprefix("pool_")}
        query = "SELECT (SELECT count(*) FROM pools WHERE pool_id = %(pool)s::uuid)"
        for table in ("items", "chunks"):
            query += f" + (SELECT count(*) FROM {table} WHERE pool_id = %(pool)s::uuid)"
        found = db.execute(query.encode(), params).fetchone()
    assert found is not None
    return int(found[0])


async def test_an_archived_pool_without_sessions_is_gone_for_good(
    client: AsyncClient, database_url: str
) -> None:
    pool, kept = await archived(client), await known_pool(client, 300)
    before = rows(database_url, kept)
    answer = await client.delete(f"/v1/pools/{pool.id}")
    assert (answer.status_code, answer.json()) == (200, {"id": pool.id, "items": 300})
    assert rows(database_url, pool) == 0
    assert rows(database_url, kept) == before
    for path in ("", "/items", "/columns.npz"):
        assert (await client.get(f"/v1/pools/{pool.id}{path}")).status_code == 404
    again = await client.delete(f"/v1/pools/{pool.id}")
    assert (again.status_code, again.json()["code"]) == (404, "pool_not_found")


async def test_what_is_in_use_or_not_archived_stays(client: AsyncClient, database_url: str) -> None:
    pool = await known_pool(client, 30)
    refused = await client.delete(f"/v1/pools/{pool.id}")
    assert (refused.status_code, refused.json()["code"]) == (409, "pool_not_archived")
    used = await archived(client, 30)
    for _ in range(2):
        await opened(client, used)
    refused = await client.delete(f"/v1/pools/{used.id}")
    assert (refused.status_code, refused.json()["code"]) == (409, "pool_in_use")
    assert "2 sessions" in refused.json()["detail"]
    assert rows(database_url, pool) > 30
    assert rows(database_url, used) > 30


async def test_a_process_that_has_the_pool_in_memory_opens_no_session_on_it(
    client: AsyncClient, settings: Settings
) -> None:
    pool = await archived(client)
    async with serving(settings) as elsewhere:
        assert (await elsewhere.get(f"/v1/pools/{pool.id}/columns.npz")).status_code == 200
        assert (await client.delete(f"/v1/pools/{pool.id}")).status_code == 200
        answer = await elsewhere.post("/v1/sessions", json={"pool_id": pool.id})
        assert (answer.status_code, answer.json()["code"]) == (404, "pool_not_found")


async def test_of_an_opening_and_a_deletion_at_once_one_succeeds(
    client: AsyncClient, database_url: str
) -> None:
    for _ in range(10):
        pool = await archived(client, 30)
        opening, deletion = await asyncio.gather(
            client.post("/v1/sessions", json={"pool_id": pool.id}),
            client.delete(f"/v1/pools/{pool.id}"),
        )
        assert (opening.status_code, deletion.status_code) in {(201, 409), (404, 200)}, (
            opening.text,
            deletion.text,
        )
        assert (rows(database_url, pool) > 0) == (opening.status_code == 201)


async def test_instructions_that_come_while_a_pool_is_deleted_find_no_pool(
    client: AsyncClient, database_url: str
) -> None:
    pool = await archived(client, 30)
    lock = "SELECT pg_advisory_lock(hashtextextended(%s::uuid::text, 15))"
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(lock, [pool.id.removeprefix("pool_")])
        told = asyncio.create_task(
            client.patch(f"/v1/pools/{pool.id}", json={"instructions": "Be strict."})
        )
        while db.execute(waiting).fetchone() != (1,):  # noqa: ASYNC110 - as nobody sets an event
            await asyncio.sleep(0.01)
        deletion = await client.delete(f"/v1/pools/{pool.id}")
        assert deletion.status_code == 200, deletion.text
    answer = await told
    assert (answer.status_code, answer.json()["code"]) == (404, "pool_not_found")


async def test_what_made_the_pool_is_not_answered_again_with_it(client: AsyncClient) -> None:
    body = {"name": "Ada's exam", "loss": {"kind": "zero_one"}, "items": [{"id": "a"}]}
    for path, sent, kind in (
        ("/v1/pools", {"json": body}, "pools"),
        ("/v1/pool-files?name=Ada&kind=zero_one", {"content": b"id\na\n"}, "files"),
    ):
        headers = {"Idempotency-Key": kind, "Content-Type": "application/json"}
        if kind == "files":
            headers["Content-Type"] = "text/csv"
        made = (await client.post(path, **sent, headers=headers)).json()
        pool = made.get("pool", made)["id"]
        assert (await client.patch(f"/v1/pools/{pool}", json={"archived": True})).is_success
        assert (await client.delete(f"/v1/pools/{pool}")).status_code == 200
        again = await client.post(path, **sent, headers=headers)
        assert (again.status_code, again.json()["code"]) == (404, "pool_not_found"), again.text
        assert again.json()["value"] == pool
