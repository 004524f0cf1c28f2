"""What belongs to another project than the key's does not exist, whichever way one asks."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from fastapi import FastAPI
from httpx import AsyncClient

from tests.api.contract import CLOSED, MISSING, Route, client_with
from tests.factories import KnownPool, drawn, judged, known_pool, opened
from tests.keys import key_in


@dataclass
class Theirs:
    """What another project has."""

    client: AsyncClient
    pool: KnownPool
    session: str
    ids: dict[str, str]


@pytest.fixture
async def theirs(app: FastAPI, database_url: str) -> AsyncIterator[Theirs]:
    """A sealed pool and a session with a judged and a held draw, warm in this very process."""
    async with client_with(app, key_in(database_url, "admin", project="theirs")) as client:
        pool = await known_pool(client, 30)
        session = await opened(client, pool)
        offer = await drawn(client, session, 2)
        await judged(client, session, pool, offer["draws"][0])
        assert (await client.get(f"/v1/sessions/{session}")).status_code == 200
        invited = (await client.post("/v1/invitations", json={"name": "Anna"})).json()
        hook = {"url": "https://8.8.8.8/", "events": ["certificate.issued"]}
        made = await client.post("/v1/webhooks", json=hook)
        theirs = {
            "pool_id": pool.id,
            "session_id": session,
            "webhook_id": made.json()["id"],
            "key_id": invited["key_id"],
            "invitation_id": invited["id"],
        }
        yield Theirs(client, pool, session, MISSING | theirs)


async def test_what_belongs_to_another_project_is_as_missing_as_what_never_was(
    client: AsyncClient, theirs: Theirs
) -> None:
    before = await _everything(theirs)
    for route in CLOSED:
        if "{" in route.path:
            await assert_as_missing(route, client, theirs)
            assert await _everything(theirs) == before, route.path


async def assert_as_missing(route: Route, client: AsyncClient, theirs: Theirs) -> None:
    """The answer about theirs is that about what never was, but for the ids."""
    # To erase comments one has to say which, before anything is looked up
    erases = route.operation["operationId"] == "erase_comments"
    params = {"round": 1} if erases else None
    foreign, missing = [
        await route.ask(client, ids, params=params) for ids in (theirs.ids, MISSING)
    ]
    assert foreign.status_code == 404
    foreign_text = foreign.text
    for name, value in theirs.ids.items():
        foreign_text = foreign_text.replace(value, MISSING[name])
    assert foreign_text == missing.text


async def _everything(theirs: Theirs) -> list[Any]:
    session = f"/v1/sessions/{theirs.session}"
    paths = (
        *("/v1/pools", "/v1/sessions", session, f"{session}/ledger", f"{session}/trajectory"),
        *("/v1/webhooks", "/v1/invitations", "/v1/keys?person=true"),
    )
    return [(await theirs.client.get(path)).json() for path in paths]


async def test_no_session_opens_on_another_projects_pool(
    client: AsyncClient, theirs: Theirs
) -> None:
    answer = await client.post("/v1/sessions", json={"pool_id": theirs.pool.id})
    assert (answer.status_code, answer.json()["code"]) == (404, "pool_not_found")
    # Nor while it is warm in the process by a session of ours on another pool
    mine = await known_pool(client, 30)
    await opened(client, mine)
    answer = await theirs.client.post("/v1/sessions", json={"pool_id": mine.id})
    assert (answer.status_code, answer.json()["code"]) == (404, "pool_not_found")


async def test_lists_hold_nothing_of_another_project_whatever_they_are_asked(
    client: AsyncClient, theirs: Theirs
) -> None:
    mine = await known_pool(client, 30)
    session = await opened(client, mine)
    pools = (await client.get("/v1/pools")).json()["data"]
    assert [pool["id"] for pool in pools] == [mine.id]
    for query in (f"after={theirs.pool.id}", "limit=1000"):
        found = (await client.get(f"/v1/pools?{query}")).json()["data"]
        assert all(pool["id"] == mine.id for pool in found)
    for query in ("limit=200", f"after={theirs.session}", "state=active"):
        found = (await client.get(f"/v1/sessions?{query}")).json()["data"]
        assert all(document["id"] == session for document in found)
    assert (await client.get(f"/v1/sessions?pool_id={theirs.pool.id}")).json()["data"] == []


async def test_a_status_in_redis_is_shown_to_its_own_project_only(
    client: AsyncClient, theirs: Theirs, redis_url: str
) -> None:
    session = await opened(client, await known_pool(client, 30))
    mine = (await client.get(f"/v1/sessions/{session}")).json()
    with redis.Redis.from_url(redis_url) as kept:
        keys = {
            name: f"celeus:status:1:{name.removeprefix('ses_')}"
            for name in (session, theirs.session)
        }
        assert kept.exists(*keys.values()) == 2
        assert (await client.get(f"/v1/sessions/{theirs.session}")).status_code == 404
        # Somebody copies theirs over ours
        kept.hset(keys[session], mapping=kept.hgetall(keys[theirs.session]))
        assert (await client.get(f"/v1/sessions/{session}")).json() == mine


async def test_what_the_service_did_not_write_into_redis_is_not_read(
    client: AsyncClient, redis_url: str
) -> None:
    pool = await known_pool(client, 30)
    session, other = [await opened(client, pool) for _ in range(2)]
    path = f"/v1/sessions/{session}"
    mine = (await client.get(path)).json()
    await client.get(f"/v1/sessions/{other}")
    with redis.Redis.from_url(redis_url) as kept:
        key, another = (f"celeus:status:1:{name.removeprefix('ses_')}" for name in (session, other))
        whole = kept.hget(key, "body")
        head, _, body = whole.partition(b"\n")
        changed = body.replace(b'"alpha":0.05', b'"alpha":0.01')
        assert changed != body
        for value in (
            b"junk",
            b"\xff\xfe\n{}",
            b"one two\n{}",
            whole[:-1],
            body,
            head + b"\n" + changed,
            kept.hget(another, "body"),
        ):
            kept.hset(key, "body", value)
            answer = await client.get(path)
            assert (answer.status_code, answer.json()) == (200, mine), value[:80]
            # It is there again, and right
            assert kept.hget(key, "body") == whole
