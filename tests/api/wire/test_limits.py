"""What a request may cost before anybody knows what it wants."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from celeus.api.pools import items, pools
from celeus.api.sessions import rounds, sessions
from celeus.api.wire import json_body
from celeus.api.wire.json_body import JsonRoute, parsed
from celeus.api.wire.limits import INLINE_LIMIT_BYTES
from celeus.errors import InvalidValue
from celeus.settings import Settings
from tests.api.contract import CONTRACT
from tests.clients import serving
from tests.factories import known_pool, opened
from tests.keys import bearer, key_in

JSON = {"Content-Type": "application/json"}
SESSION = "/v1/sessions/ses_019aa3c4d5e67f8091a2b3c4d5e6f708"
JSON_ROUTES = (
    ("POST", "/v1/pools"),
    ("POST", "/v1/sessions"),
    ("PATCH", SESSION),
    ("POST", f"{SESSION}/next"),
    ("POST", f"{SESSION}/observe"),
    ("POST", f"{SESSION}/amendments"),
)
UPLOAD = "/v1/pools/pool_019aa3c4d5e67f8091a2b3c4d5e6f708/items"


def all_routes() -> Iterator[APIRoute]:
    for module in (pools, items, rounds, sessions):
        router: APIRouter = module.router
        for route in router.routes:
            assert isinstance(route, APIRoute)
            yield route


def test_every_route_that_takes_json_bounds_it() -> None:
    taking = [route for route in all_routes() if route.body_field is not None]
    assert len(taking) >= len(JSON_ROUTES)
    assert all(isinstance(route, JsonRoute) for route in taking)


def test_no_schema_has_as_many_members_as_are_refused() -> None:
    widest = max(
        len(schema.get("properties", ())) for schema in CONTRACT["components"]["schemas"].values()
    )
    assert widest < json_body.MOST_MEMBERS


@pytest.mark.parametrize(("method", "path"), [*JSON_ROUTES, ("POST", UPLOAD)])
async def test_a_packed_body_is_never_unpacked(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    for encoding in ("gzip", "br", "identity, gzip", ""):
        headers = JSON | {"Content-Encoding": encoding}
        answer = await client.request(method, path, content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_format"), encoding
        assert answer.json()["field"] == "Content-Encoding"


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
async def test_a_body_that_is_not_announced_as_json_is_not_read_as_such(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    for media in ("text/plain", "application/x-www-form-urlencoded", "json", ""):
        answer = await client.request(method, path, content=b"{}", headers={"Content-Type": media})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_format"), media


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
async def test_a_body_has_the_limit_of_its_route(
    client: httpx.AsyncClient, settings: Settings, method: str, path: str
) -> None:
    limit = INLINE_LIMIT_BYTES if path == "/v1/pools" else settings.json_limit_bytes
    within = await client.request(method, path, content=b" " * limit, headers=JSON)
    assert within.status_code == 422
    beyond = await client.request(method, path, content=b" " * (limit + 1), headers=JSON)
    assert (beyond.status_code, beyond.json()["code"]) == (413, "upload_too_large")
    assert beyond.headers["Connection"] == "close"


@pytest.mark.parametrize("announced", ["9" * 18, "9" * 5000])
async def test_a_length_of_any_number_of_digits_is_refused(
    client: httpx.AsyncClient, announced: str
) -> None:
    headers = JSON | {"Content-Length": announced}
    answer = await client.post("/v1/sessions", content=b"{}", headers=headers)
    assert answer.status_code == 413


JUNK = {f"k{i}": 1 for i in range(20_000)}


@pytest.mark.parametrize(
    "body",
    [JUNK, {"name": "p", "loss": JUNK}, {"name": "p", "items": [JUNK]}],
    ids=["on top", "in an object", "in a list"],
)
async def test_members_nobody_knows_cost_one_fault_and_not_one_each(
    client: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    problem = (await client.post("/v1/pools", json=body)).json()
    assert (problem["rule"], problem["value"]) == ("at most 64 members", 20_000)
    assert "errors" not in problem


async def test_of_a_list_of_junk_one_element_is_told(client: httpx.AsyncClient) -> None:
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": [1] * 50_000}
    problem = (await client.post("/v1/pools", json=body)).json()
    assert (problem["field"], problem["total_errors"]) == ("items.0", 1)


def test_a_body_of_too_many_values_is_not_even_read() -> None:
    no_json = b"[" + b"{},{" * (json_body.MOST_VALUES // 3 + 1)
    with pytest.raises(InvalidValue, match="too many values"):
        parsed(no_json)


@pytest.mark.parametrize(
    "body",
    [
        '{"worker": "a", "worker": "b"}',
        '{"worker": "a", "observations": [{"round": 1, "round": 2, "loss": 0}]}',
        '{"worker": "a", "w\\u006frker": "b"}',
    ],
)
async def test_a_name_twice_in_an_object_is_refused(client: httpx.AsyncClient, body: str) -> None:
    answer = await client.post(f"{SESSION}/observe", content=body, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["rule"]) == (
        422,
        "invalid_value",
        "every name once in an object",
    )


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
async def test_a_deep_body_is_refused_at_every_depth(
    client: httpx.AsyncClient, opening: str
) -> None:
    for depth in (10, 500, 900, 1000, 5_000, 100_000):
        content = (opening * depth).encode()
        answer = await client.post("/v1/sessions", content=content, headers=JSON)
        assert answer.status_code == 422, depth
        assert answer.json()["code"] == "invalid_value"


@pytest.fixture
async def hasty(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that waits a fifth of a second for a body."""
    async with serving(settings, body_timeout_seconds=0.2) as client:
        yield client


async def dripping(pause: float) -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(pause)


@pytest.mark.parametrize("pause", [0.02, 3600])
async def test_a_body_that_stands_still_is_given_up(hasty: httpx.AsyncClient, pause: float) -> None:
    async with asyncio.timeout(5):
        answer = await hasty.post("/v1/sessions", content=dripping(pause), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (408, "body_too_slow")
    assert answer.headers["Connection"] == "close"


async def test_an_upload_that_stands_still_is_given_up_too(hasty: httpx.AsyncClient) -> None:
    made = await hasty.post("/v1/pools", json={"name": "p", "loss": {"kind": "zero_one"}})
    async with asyncio.timeout(5):
        answer = await hasty.post(
            f"/v1/pools/{made.json()['id']}/items",
            content=dripping(0.02),
            headers={"Content-Type": "application/x-ndjson"},
        )
    assert (answer.status_code, answer.json()["code"]) == (408, "body_too_slow")


async def test_a_slow_body_that_goes_on_is_waited_for(hasty: httpx.AsyncClient) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        for part in (b'{"name": "p",', b' "loss": {"kind"', b': "zero_one"}}', b"", b""):
            yield part.ljust(4096)
            await asyncio.sleep(0.1)

    answer = await hasty.post("/v1/pools", content=slowly(), headers=JSON)
    assert answer.status_code == 201


async def test_a_key_may_ask_so_often_and_is_told_when_it_may_again(
    settings: Settings, database_url: str
) -> None:
    # Counted in the process: where Redis does not answer in time each has a count of its own
    async with serving(settings, requests_per_minute=5, redis_url=None) as client:
        answers = [await client.get("/v1/pools") for _ in range(8)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
        problem = answers[-1].json()
        assert (problem["code"], problem["rule"]) == ("rate_limited", "at most 5 a minute")
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
        assert problem["retry_after"] == int(answers[-1].headers["Retry-After"])
        assert answers[-1].headers["RateLimit-Policy"] == '"key";q=5;w=60'
        assert answers[-1].headers["RateLimit"] == f'"key";r=0;t={problem["retry_after"]}'
        assert not {"policy", "quota"} & problem.keys()
        other = key_in(database_url, "read")
        assert (await client.get("/v1/pools", headers=bearer(other))).is_success
        assert (await client.get("/healthz")).is_success


async def test_the_limits_of_requests_may_be_lifted(settings: Settings) -> None:
    async with serving(settings, requests_per_minute=0, failed_keys_per_minute=0) as client:
        answers = [await client.get("/v1/pools") for _ in range(20)]
        answers += [await client.get("/v1/pools", headers=bearer("ce_x")) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {200, 401}


async def test_keys_may_be_guessed_so_often_and_those_that_work_still_do(
    settings: Settings,
) -> None:
    guess = bearer("ce_" + "0" * 16 + "_" + "x" * 43)
    async with serving(settings, failed_keys_per_minute=5, redis_url=None) as client:
        answers = [await client.get("/v1/pools", headers=guess) for _ in range(8)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 3
        assert answers[-1].headers["Retry-After"]
        assert (
            await client.get("/v1/pools", headers={"Authorization": "Basic x"})
        ).status_code == 429
        assert (await client.get("/v1/pools")).is_success


@pytest.mark.own_context
async def test_the_time_of_a_stream_is_no_time_of_an_answer(client: httpx.AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 50))
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    assert (await client.get(f"/v1/sessions/{session}/stream")).is_success
    page = (await client.get("/metrics")).text
    assert 'route="/v1/sessions/{session_id}/stream",status="200"} 1.0' in page
    assert 'seconds_count{method="GET",route="/v1/sessions/{session_id}/stream"' not in page
