"""Keys on the wire: every route of the contract is tried with every key that must not open it."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from httpx import AsyncClient

from celeus.api.wire import json_body
from celeus.api.wire.connections import OPEN
from celeus.main import PAGES, create_app
from celeus.settings import Settings
from tests.api.contract import CLOSED, MISSING, ROUTES, Route, client_with, every
from tests.clients import service_of, serving
from tests.conftest import Execute
from tests.factories import drawn, judged, known_pool, opened
from tests.keys import ADMIN, bearer, key_in

IMPLIED = {
    "admin": {"admin", "manage", "label", "read"},
    "manage": {"manage", "read"},
    "label": {"label"},
    "read": {"read"},
}


@pytest.fixture
async def anonymous(app: FastAPI) -> AsyncIterator[AsyncClient]:
    async with client_with(app, None) as client:
        yield client


def revoked(database_url: str) -> str:
    token = key_in(database_url)
    with psycopg.connect(database_url) as db:
        ending = "UPDATE keys SET revoked_at = now() WHERE key_id = %s"
        db.execute(ending, [token.split("_")[1]])
    return token


KEYS_THAT_DO_NOT_WORK: dict[str, Callable[[str], str]] = {
    "guessed": lambda _: f"ce_{secrets.token_hex(8)}_{secrets.token_urlsafe(32)}",
    "another's secret": lambda url: f"{key_in(url)[:20]}{secrets.token_urlsafe(32)}",
    "cut short": lambda url: key_in(url)[:-1],
    "expired": lambda url: key_in(url, life=timedelta(0)),
    "revoked": revoked,
}


def test_three_routes_are_open_and_no_route_is_missing_from_the_contract() -> None:
    assert {route.path for route in ROUTES if route.needed is None} == OPEN
    app = create_app(Settings(database_url="postgresql://nowhere"))
    served = [
        route
        for included in app.routes
        for route in getattr(getattr(included, "original_router", None), "routes", [included])
    ]
    files = [route for route in served if not isinstance(route, APIRoute)]
    assert {route.path for route in files} == {"/static", "/favicon.ico"}, "all else needs keys"
    served = [route for route in served if isinstance(route, APIRoute)]
    pages = {getattr(route, "path", None) for router in PAGES for route in router.routes}
    assert {route.path for route in served} - pages == {route.path for route in ROUTES}
    assert not pages & {route.path for route in ROUTES}


async def test_a_key_that_does_not_work_opens_no_route(
    anonymous: AsyncClient, database_url: str
) -> None:
    shown = [bearer(make(database_url)) for make in KEYS_THAT_DO_NOT_WORK.values()]
    for route in CLOSED:
        await assert_opens_to_none(route, anonymous, shown)


async def assert_opens_to_none(
    route: Route, anonymous: AsyncClient, shown: list[dict[str, str]]
) -> None:
    """Without a key and with each of these headers the answer is the same."""
    answers = [await route.ask(anonymous, MISSING, headers=headers) for headers in ({}, *shown)]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1, "what is wrong is not told"
    for answer in answers:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "unauthenticated"


@every([route for route in ROUTES if route.needed is None])
async def test_health_readiness_and_version_need_none(route: Route, anonymous: AsyncClient) -> None:
    for token in ("", "Bearer nonsense"):
        answer = await route.ask(anonymous, {}, headers={"Authorization": token})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "path", ["/redoc", "/v1", "/v1/nothing", "/healthz/", "//healthz", "/HEALTHZ"]
)
async def test_paths_that_are_no_routes_are_closed_too(path: str, anonymous: AsyncClient) -> None:
    assert (await anonymous.get(f"http://celeus.test{path}")).status_code == 401


@pytest.mark.parametrize("path", ["/redoc", "/docs/oauth2-redirect"])
async def test_there_are_no_pages_of_the_framework(path: str, client: AsyncClient) -> None:
    assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    "values",
    [
        [b""],
        [b"Bearer"],
        [b"Bearer "],
        [ADMIN.encode()],
        [b"Basic " + ADMIN.encode()],
        [b"Bearer " + ADMIN.encode() + b", Bearer " + ADMIN.encode()],
        [b"Bearer " + ADMIN.encode(), b"Bearer " + ADMIN.encode()],
        [b"Bearer " + ADMIN.encode() + b"\xe9"],
        [b"Bearer \xff\xfe\x00"],
        ["Bearer ce_000000000000000１_".encode() + b"-" * 43],
        [b"Bearer ce_" + b"0" * 10_000 + b"_" + b"x" * 43],
        [b"Bearer ce_0000000000000001_" + b"x" * 10_000],
        [b"Bearer\t" + ADMIN.encode()],
        [b"Bearer ce_0000000000000001_' OR 1=1 -- aaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
    ],
    ids=lambda values: repr(values[0][:40]),
)
async def test_a_malformed_header_is_unauthenticated(
    values: list[bytes], anonymous: AsyncClient
) -> None:
    headers = [(b"Authorization", value) for value in values]
    answer = await anonymous.get("/v1/pools", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert ADMIN not in answer.text


@pytest.mark.parametrize("shown", [f"bearer {ADMIN}", f"BEARER {ADMIN}", f"Bearer   {ADMIN} "])
async def test_the_scheme_is_read_in_any_case(shown: str, anonymous: AsyncClient) -> None:
    answer = await anonymous.get("/v1/pools", headers={"Authorization": shown})
    assert answer.status_code == 200


async def test_a_route_opens_to_the_scopes_it_names_and_to_no_other(
    anonymous: AsyncClient, database_url: str
) -> None:
    keys = {scope: bearer(key_in(database_url, scope)) for scope in IMPLIED}
    for route in CLOSED:
        await assert_opens_to_named(route, anonymous, keys)


async def assert_opens_to_named(
    route: Route, anonymous: AsyncClient, keys: dict[str, dict[str, str]]
) -> None:
    if route.path.endswith("/stream"):
        # It answers 404 for what is missing; a session that is there would be followed
        assert "session_id" in route.path
    for scope, implied in IMPLIED.items():
        answer = await route.ask(anonymous, MISSING, headers=keys[scope])
        if route.opens_to(implied):
            assert answer.status_code not in {401, 403, 500}, scope
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing"), scope
            assert (route.needed or set()) & {answer.json()["rule"].rpartition(" ")[2]}, scope


async def test_a_request_repeated_with_another_key_is_a_repeated_request(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    pool = await known_pool(client, 40)
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    first = await judged(client, session, pool, draw)
    path = f"/v1/sessions/{session}"
    correction = {"round": 1, "loss": 0, "author": "ada", "reason": "sure"}
    amended = (await client.post(f"{path}/amendments", json=correction)).json()
    key = key_in(database_url, "admin")
    async with client_with(app, key) as another:
        corrected = (await another.post(f"{path}/amendments", json=correction)).json()
        again = await drawn(another, session)
        late = await judged(another, session, pool, again["draws"][0])
    assert not first["receipt"]["replayed"]
    assert corrected["receipt"] == amended["receipt"] | {"replayed": True}
    assert not late["receipt"]["replayed"]
    events = (await client.get(f"{path}/ledger")).json()["data"]
    admin = ADMIN.split("_")[1]
    # Draw, judgement and correction by the one; the second judgement and its draw by the other
    assert [event["detail"]["key"] for event in events] == [admin] * 3 + [key.split("_")[1]] * 2


async def test_the_last_use_is_noted_to_the_minute(database_url: str) -> None:
    token = key_in(database_url, "read")
    key_id = token.split("_")[1]
    settings = Settings(database_url=database_url, key_cache_seconds=0)
    with service_of(settings) as app, psycopg.connect(database_url, autocommit=True) as db:

        def last_use() -> Any:  # noqa: ANN401 - a moment, or none
            found = db.execute("SELECT last_used_at FROM keys WHERE key_id = %s", [key_id])
            row = found.fetchone()
            assert row is not None
            return row[0]

        async with app.router.lifespan_context(app), client_with(app, token) as client:
            assert last_use() is None
            assert (await client.get("/v1/pools")).status_code == 200
            noted = last_use()
            assert noted is not None
            assert (await client.get("/v1/pools")).status_code == 200
            assert last_use() == noted
            db.execute("UPDATE keys SET last_used_at = last_used_at - interval '61 seconds'")
            assert (await client.get("/v1/pools")).status_code == 200
            assert last_use() >= noted
            wrong = f"ce_{key_id}_{'x' * 43}"
            db.execute("UPDATE keys SET last_used_at = NULL")
            assert (await client.get("/v1/pools", headers=bearer(wrong))).status_code == 401
            assert last_use() is None, "a guess is no use"


@pytest.mark.parametrize("seconds", [0.0, 1.0])
async def test_a_key_revoked_while_in_use_ends_within_the_time_it_is_remembered(
    seconds: float, database_url: str, execute: Execute
) -> None:
    token = key_in(database_url, "read")
    settings = Settings(database_url=database_url, key_cache_seconds=seconds)
    used = asyncio.Event()

    async def use(client: AsyncClient) -> tuple[float, int]:
        """When the key last came in, and with which status it came in no more."""
        last = 0.0
        while True:
            began = time.monotonic()
            status = (await client.get("/v1/pools")).status_code
            if status != 200:
                return last, status
            last = began
            used.set()

    async with serving(settings) as client:
        client.headers.update(bearer(token))
        users = [asyncio.create_task(use(client)) for _ in range(4)]
        await used.wait()
        ending = "UPDATE keys SET revoked_at = now() WHERE key_id = %s"
        execute(ending, [token.split("_")[1]])
        ended_at = time.monotonic()
        for last, status in await asyncio.gather(*users):
            assert status == 401
            assert last <= ended_at + seconds


REQUESTS = [
    ("label", "/v1/pools"),
    ("label", "/v1/pools/{pool}/planning"),
    ("label", "/v1/sessions"),
    ("read", "/v1/sessions/{session}/next"),
    ("read", "/v1/sessions/{session}/observe"),
    ("read", "/v1/sessions/{session}/amendments"),
    ("label", "/v1/pools/{pool}/items"),
    ("label", "/v1/pool-files?name=a&kind=zero_one"),
]


@pytest.mark.parametrize(("scope", "path"), REQUESTS)
async def test_a_body_is_not_read_of_who_may_not_send_it(
    client: AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch, scope: str, path: str
) -> None:
    pool = await known_pool(client)
    names = {"pool": pool.id, "session": await opened(client, pool)}
    read: list[Any] = []
    monkeypatch.setattr(json_body, "parsed", read.append)

    async def body() -> AsyncIterator[bytes]:
        read.append("the body")
        yield b"{}"

    headers = bearer(key_in(database_url, scope)) | {"Content-Type": "application/json"}
    answer = await client.post(path.format(**names), content=body(), headers=headers)
    assert (answer.status_code, answer.json()["code"], read) == (403, "scope_missing", [])
