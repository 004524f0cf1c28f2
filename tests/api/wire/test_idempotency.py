"""`Idempotency-Key` and `If-Match` over HTTP are kept or refused, never passed over."""

import asyncio
import time
from typing import Any

import httpx
import psycopg
import pytest
from httpx import AsyncClient

from celeus.store.database import Database
from celeus.store.tables import metadata
from tests.api.contract import CONTRACT
from tests.factories import known_pool, opened
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


@pytest.mark.parametrize("header", ["Idempotency-Key", "If-Match"])
async def test_a_header_that_comes_twice_is_refused(
    client: httpx.AsyncClient, database: Database, header: str
) -> None:
    path, arguments = await creating(client, "session")
    before = await counted(database)
    answer = await client.post(path, **arguments, headers=[(header, "*"), (header, "other")])
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == header
    assert await counted(database) == before


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


KEY = {"Idempotency-Key": "k"}


async def test_a_change_meant_for_another_state_is_refused_and_changes_nothing(
    client: AsyncClient,
) -> None:
    session = await opened(client, await known_pool(client, 30))
    path = f"/v1/sessions/{session}"
    seen = (await client.get(path)).headers["ETag"]
    changes: list[dict[str, object]] = [{"tags": ["a"]}, {"precision": 0.3}, {"archived": True}]
    for change in changes:
        before = (await client.get(path)).json()
        old = await client.patch(path, json=change, headers={"If-Match": '"no such"'})
        assert (old.status_code, old.json()["code"]) == (412, "precondition_failed")
        assert (await client.get(path)).json() == before
        now = (await client.get(path)).headers["ETag"]
        # A list, and the weak form in which the tag is sent
        new = await client.patch(path, json=change, headers={"If-Match": f'"other", {now}'})
        assert new.status_code == 200, new.text
    late = await client.patch(path, json={"tags": []}, headers={"If-Match": seen})
    assert late.status_code == 412
    assert (await client.patch(path, json={"tags": []}, headers={"If-Match": "*"})).is_success


async def test_a_closed_session_is_filed_under_its_etag(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 30))
    path = f"/v1/sessions/{session}"
    assert (await client.patch(path, json={"state": "closed"})).is_success
    for change in ({"tags": ["a"]}, {"archived": True}):
        now = (await client.get(path)).headers["ETag"]
        answer = await client.patch(path, json=change, headers={"If-Match": now})
        assert answer.status_code == 200, answer.text
        assert answer.json()["state"] == "closed"
    now = (await client.get(path)).headers["ETag"]
    late = await client.patch(path, json={"state": "active"}, headers={"If-Match": now})
    assert (late.status_code, late.json()["code"]) == (409, "session_closed")


async def test_instructions_are_not_changed_under_an_etag_that_says_nothing_of_them(
    client: AsyncClient,
) -> None:
    session = await opened(client, await known_pool(client, 30))
    change = {"instructions": "Look twice."}
    answer = await client.patch(f"/v1/sessions/{session}", json=change, headers={"If-Match": "*"})
    assert (answer.status_code, answer.json()["field"]) == (422, "If-Match")


async def test_what_has_no_etag_is_changed_under_none(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    path = f"/v1/pools/{pool.id}"
    refused = await client.patch(path, json={"archived": True}, headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert not (await client.get(path)).json()["archived"]
    every = await client.patch(path, json={"archived": True}, headers={"If-Match": "*"})
    assert every.is_success, every.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("If-None-Match", "*"),
        ("If-None-Match", '"no such"'),
        ("If-Unmodified-Since", "Fri, 27 Nov 2026 04:00:00 GMT"),
    ],
)
async def test_conditions_that_no_route_keeps_are_refused_by_changes(
    client: AsyncClient, name: str, value: str
) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    for path in (f"/v1/pools/{pool.id}", f"/v1/sessions/{session}"):
        answer = await client.patch(path, json={"archived": True}, headers={name: value})
        assert (answer.status_code, answer.json().get("code")) == (412, "precondition_failed")
        assert name in answer.json()["detail"]
        assert not (await client.get(path)).json()["archived"]
        assert (await client.get(path, headers={name: value})).status_code in {200, 304}


WITHOUT_KEY = [
    (method.upper(), path)
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
    if method not in {"get", "head"}
    and "Idempotency-Key"
    not in {parameter.get("name") for parameter in operation.get("parameters", ())}
]


async def test_a_key_that_a_route_does_not_keep_is_refused(client: AsyncClient) -> None:
    for method, path in WITHOUT_KEY:
        answer = await client.request(method, path, headers=KEY)
        found = (answer.status_code, answer.json().get("field"))
        assert found == (422, "Idempotency-Key"), (method, path, answer.text)
