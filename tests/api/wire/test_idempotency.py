"""The header `Idempotency-Key` over HTTP, and a process that ends between commit and answer."""

import asyncio
import time
from typing import Any

import httpx
import psycopg
import pytest

from celeus.store.database import Database
from celeus.store.tables import metadata
from tests.factories import known_pool
from tests.keys import bearer, key_in
from tests.servers import running_services

ZERO_ONE = {"name": "p", "loss": {"kind": "zero_one"}}
ROW = b'{"id": "a", "surrogate": 0.5}\n'
NDJSON = {"Content-Type": "application/x-ndjson"}


def keyed(key: str = "k") -> dict[str, str]:
    return {"Idempotency-Key": key}


async def counted(database: Database) -> dict[str, int]:
    async with database.transaction() as db:
        return {
            table.name: len((await db.execute(table.select())).all())
            for table in metadata.sorted_tables
        }


async def creating(client: httpx.AsyncClient, what: str) -> tuple[str, dict[str, Any]]:
    """Path and arguments of a request that creates something."""
    if what == "pool":
        return "/v1/pools", {"json": ZERO_ONE | {"items": [{"id": "a"}]}}
    if what == "session":
        pool = await known_pool(client, 50)
        return "/v1/sessions", {"json": {"pool_id": pool.id, "precision": 0.2}}
    made = await client.post("/v1/pools", json=ZERO_ONE)
    headers = NDJSON
    return f"/v1/pools/{made.json()['id']}/items", {"content": ROW, "headers": headers}


async def sent(
    client: httpx.AsyncClient, path: str, arguments: dict[str, Any], key: str = "k"
) -> httpx.Response:
    headers = arguments.get("headers", {}) | keyed(key)
    return await client.post(path, **(arguments | {"headers": headers}))


KINDS = pytest.mark.parametrize("what", ["pool", "items", "session"])


@KINDS
async def test_a_repeated_request_gets_the_same_bytes(
    client: httpx.AsyncClient, database: Database, what: str
) -> None:
    path, arguments = await creating(client, what)
    first = await sent(client, path, arguments)
    assert first.is_success, first.text
    assert "Idempotency-Replayed" not in first.headers
    before = await counted(database)
    for _ in range(2):
        again = await sent(client, path, arguments)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
        assert again.headers["Idempotency-Replayed"] == "true"
    assert await counted(database) == before


async def test_five_uploads_at_once_have_one_effect(
    client: httpx.AsyncClient, database: Database
) -> None:
    path, arguments = await creating(client, "items")
    answers = await asyncio.gather(*(sent(client, path, arguments) for _ in range(5)))
    assert len({answer.content for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 4
    after = await counted(database)
    assert (after["items"], after["idempotency"]) == (1, 1)


@KINDS
async def test_another_body_path_or_query_under_the_key_is_refused(
    client: httpx.AsyncClient, what: str
) -> None:
    path, arguments = await creating(client, what)
    assert (await sent(client, path, arguments)).is_success
    other = {"content": ROW + b"\n"} if what == "items" else {"json": arguments["json"] | {"x": 1}}
    if what == "pool":
        other = {"json": arguments["json"] | {"name": "q"}}
    elif what == "session":
        other = {"json": arguments["json"] | {"precision": 0.3}}
    requests = [(path, arguments | other)]
    if what == "items":
        requests.append((f"{path}?on_error=skip", arguments))
    for place, changed in requests:
        answer = await sent(client, place, changed)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "idempotency_key_reused")
        assert (problem["field"], problem["value"]) == ("Idempotency-Key", "k")


async def test_without_a_key_every_request_makes_its_own(client: httpx.AsyncClient) -> None:
    made = [(await client.post("/v1/pools", json=ZERO_ONE)).json()["id"] for _ in range(2)]
    assert made[0] != made[1]


@pytest.mark.parametrize(
    "key", ["", "x" * 256, "tab\there", " space", "space ", "caf\u00e9", "\x7f"]
)
async def test_a_key_that_is_none_is_refused(client: httpx.AsyncClient, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    answer = await client.post("/v1/pools", json=ZERO_ONE, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value")
    assert answer.json()["field"] == "Idempotency-Key"


@pytest.mark.parametrize("key", ["x" * 255, "~!' \"; DROP TABLE pools --", "%00\\u0000"])
async def test_any_printable_key_works(client: httpx.AsyncClient, key: str) -> None:
    first = await client.post("/v1/pools", json=ZERO_ONE, headers=keyed(key))
    again = await client.post("/v1/pools", json=ZERO_ONE, headers=keyed(key))
    assert first.status_code == 201
    assert again.content == first.content


async def test_an_upload_is_asked_for_again_after_the_seal(client: httpx.AsyncClient) -> None:
    path, arguments = await creating(client, "items")
    first = await sent(client, path, arguments)
    await client.post(path.replace("/items", "/seal"))
    assert (await sent(client, path, arguments)).content == first.content
    refused = await sent(client, path, arguments, "another")
    assert (refused.status_code, refused.json()["code"]) == (409, "pool_sealed")


async def test_a_dry_run_is_not_kept(client: httpx.AsyncClient, database: Database) -> None:
    path, arguments = await creating(client, "items")
    for _ in range(2):
        dry = await sent(client, f"{path}?dry_run=true", arguments)
        assert "Idempotency-Replayed" not in dry.headers
    assert (await counted(database))["idempotency"] == 0
    assert (await sent(client, path, arguments)).json()["added"] == 1


async def test_two_keys_of_one_project_share_its_requests(
    client: httpx.AsyncClient, database_url: str
) -> None:
    mine = await client.post("/v1/pools", json=ZERO_ONE, headers=keyed())
    token = key_in(database_url, "manage")
    other = await client.post("/v1/pools", json=ZERO_ONE, headers=keyed() | bearer(token))
    assert other.content == mine.content


def until_a_commit_waits(admin: psycopg.Connection) -> None:
    """Return when a commit is written and not yet told."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    while admin.execute(waiting).fetchone() is None:
        time.sleep(0.02)


async def test_a_process_killed_between_commit_and_answer_has_made_one_pool(
    database_url: str, database: Database
) -> None:
    """The commit is on disk when the process dies: PostgreSQL only waits for a standby."""
    waiting = f"{database_url}&options=-c%20synchronous_commit%3Don"
    with running_services(2, waiting) as services, psycopg.connect(database_url) as admin:
        admin.autocommit = True

        def wait_for(standby: str) -> None:
            admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'".encode())
            admin.execute("SELECT pg_reload_conf()")

        async with httpx.AsyncClient(headers=bearer() | keyed(), timeout=30) as client:
            # The key's use is noted before, so that the commit that waits is the pool's.
            await client.get(f"{services[0].url}/v1/pools")
            wait_for("nobody")
            try:
                lost = asyncio.create_task(
                    client.post(f"{services[0].url}/v1/pools", json=ZERO_ONE)
                )
                await asyncio.to_thread(until_a_commit_waits, admin)
                services[0].kill()
                with pytest.raises(httpx.TransportError):
                    await lost
            finally:
                wait_for("")
            again = await client.post(f"{services[1].url}/v1/pools", json=ZERO_ONE)
        assert again.status_code == 201
        assert again.headers["Idempotency-Replayed"] == "true"
    found = await counted(database)
    assert (found["pools"], found["idempotency"]) == (1, 1)
