"""Two connections, many requests, and locks that others hold: refused in time, never a hang."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx
import psycopg
import pytest

from celeus.settings import Settings
from tests.api.serving import served
from tests.conftest import Execute
from tests.factories import KnownPool, known_pool, opened
from tests.keys import bearer

MANY = 50
QUEUE = 4
PATIENCE_SECONDS = 2.0
"""How long a request waits for a lock or a connection; each may need both, one after the other."""


@pytest.fixture
async def narrow(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server with two connections and a second's patience."""
    tight = {"database_pool_size": 2, "lock_timeout_ms": int(PATIENCE_SECONDS * 1000)}
    with served(settings.model_copy(update=tight)) as port:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=bearer(), timeout=60, limits=limits
        ) as client:
            yield client


async def answers(
    client: httpx.AsyncClient, *requests: tuple[str, str, Any]
) -> list[httpx.Response]:
    """The answers to requests sent at once; none is waited for longer than the client waits."""
    return await asyncio.gather(
        *(client.request(verb, path, json=body) for verb, path, body in requests)
    )


def locked(admin: psycopg.Connection, table: str) -> None:
    admin.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())


async def test_one_locked_session_costs_its_judges_their_patience_and_no_more(
    narrow: httpx.AsyncClient, database_url: str
) -> None:
    pool = await known_pool(narrow, 100)
    session, other = await opened(narrow, pool), await opened(narrow, pool)
    with psycopg.connect(database_url) as admin:
        admin.execute("SELECT 1 FROM sessions WHERE session_id = %s FOR UPDATE", (session[4:],))
        asked = [("POST", f"/v1/sessions/{session}/next", {"worker": f"w{i}"}) for i in range(MANY)]
        next_request = ("POST", f"/v1/sessions/{other}/next", {"worker": "ada"})
        *found, free = await answers(narrow, *asked, next_request)
        admin.rollback()
    assert {answer.status_code for answer in found} <= {409, 503}
    assert {answer.json()["code"] for answer in found} <= {"busy", "overloaded"}
    assert free.status_code == 200, "one session's judges use one connection at most"
    assert (await narrow.post(asked[0][1], json=asked[0][2])).status_code == 200


async def test_a_locked_database_answers_503_and_when_to_try_again(
    narrow: httpx.AsyncClient, database_url: str
) -> None:
    pool = await known_pool(narrow, 100)
    sessions = [await opened(narrow, pool) for _ in range(4)]
    await narrow.get("/v1/pools")
    with psycopg.connect(database_url) as admin:
        locked(admin, "pools, sessions, idempotency")
        found = await answers(
            narrow,
            *[
                ("POST", f"/v1/sessions/{sessions[i % 4]}/next", {"worker": "a"})
                for i in range(MANY)
            ],
            *[("GET", "/v1/pools", None)] * 10,
            *[("POST", "/v1/pools", {"name": "p", "loss": {"kind": "zero_one"}})] * 10,
        )
        assert (await narrow.get("/healthz")).status_code == 200
        admin.rollback()
    assert {answer.status_code for answer in found} <= {409, 503}
    unavailable = [answer for answer in found if answer.status_code == 503]
    assert unavailable
    assert all(answer.headers["Retry-After"] == "1" for answer in unavailable)
    assert (await narrow.get("/v1/pools")).status_code == 200
    assert (await narrow.post(f"/v1/sessions/{sessions[0]}/next", json={"worker": "a"})).is_success


async def test_more_requests_than_may_wait_are_refused_while_the_others_wait(
    settings: Settings, database_url: str
) -> None:
    tight = {"database_pool_size": 1, "queue_limit": QUEUE, "lock_timeout_ms": 60_000}
    with served(settings.model_copy(update=tight)) as port, psycopg.connect(database_url) as admin:
        locked(admin, "pools")
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=bearer(), timeout=60
        ) as client:
            found = asyncio.Queue[httpx.Response]()

            async def ask() -> None:
                found.put_nowait(await client.get("/v1/pools"))

            asking = [asyncio.create_task(ask()) for _ in range(MANY)]
            refused = [await found.get() for _ in range(MANY - QUEUE - 1)]
            assert (await client.get("/healthz")).status_code == 200
            admin.rollback()
            await asyncio.gather(*asking)
            answered = [await found.get() for _ in range(QUEUE + 1)]
    assert {(refusal.status_code, refusal.json()["code"]) for refusal in refused} == {
        (503, "overloaded")
    }
    assert all(refusal.headers["Retry-After"] == "1" for refusal in refused)
    assert [answer.status_code for answer in answered] == [200] * (QUEUE + 1)


async def test_streams_hold_no_connection(narrow: httpx.AsyncClient, database_url: str) -> None:
    pool = await known_pool(narrow, 100)
    session = await opened(narrow, pool)
    seen: list[str] = []

    async def follow() -> None:
        async with narrow.stream("GET", f"/v1/sessions/{session}/stream") as stream:
            async for line in stream.aiter_lines():
                seen.extend([line] if line.startswith("id:") else [])

    following = [asyncio.create_task(follow()) for _ in range(20)]
    try:
        await until(lambda: len(seen) >= 20)
        found = await answers(narrow, *[("GET", f"/v1/sessions/{session}/ledger", None)] * 20)
        assert {answer.status_code for answer in found} == {200}
        with psycopg.connect(database_url, autocommit=True) as admin:
            # A stream's own look at the ledger may be under way; none may stay
            standing = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in trans%'"
            )
            await until(lambda: admin.execute(standing).fetchone() == (0,))
        await judged(narrow, session, pool)
        await until(lambda: len(seen) >= 40)
    finally:
        for task in following:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*following)


async def judged(client: httpx.AsyncClient, session: str, pool: KnownPool) -> None:
    answer = await client.post(f"/v1/sessions/{session}/next", json={"worker": "ada"})
    draw = answer.json()["draws"][0]
    body = {"round": draw["round"], "loss": pool.losses[draw["item"]["index"]], "worker": "ada"}
    assert (await client.post(f"/v1/sessions/{session}/observe", json=body)).is_success


async def until(holds: Any) -> None:  # noqa: ANN401 - a condition
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is waited for is counted, not told
            await asyncio.sleep(0.05)


async def test_a_slow_upload_holds_no_connection(
    narrow: httpx.AsyncClient, execute: Execute
) -> None:
    made = (await narrow.post("/v1/pools", json={"name": "p", "loss": {"kind": "zero_one"}})).json()
    go_on = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"id": "a"}\n'
        await go_on.wait()
        yield b'{"id": "b"}\n'

    async def upload() -> httpx.Response:
        headers = {"Content-Type": "application/x-ndjson"}
        path = f"/v1/pools/{made['id']}/items?dry_run=true"
        return await narrow.post(path, content=slowly(), headers=headers)

    uploads = [asyncio.create_task(upload()) for _ in range(10)]
    await asyncio.sleep(0.5)
    found = await answers(narrow, *[("GET", "/v1/pools", None)] * 10)
    assert {answer.status_code for answer in found} == {200}
    standing = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in trans%'"
    assert execute(standing).fetchone() == (0,)
    go_on.set()
    done = {answer.status_code for answer in await asyncio.gather(*uploads)}
    assert done <= {200, 409, 503}, "into one pool one at a time"
    assert 200 in done
