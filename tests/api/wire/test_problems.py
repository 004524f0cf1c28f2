import asyncio
import html
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from celeus import errors
from celeus.api.wire import problems
from celeus.errors import Refusal
from celeus.shorten import as_json, shortened
from celeus.store.revisions import head
from tests.keys import bearer

SAID = {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity", "1e999": "Infinity"}
MEDIA_TYPE = "application/problem+json"


def tree(root: type[Refusal]) -> Iterator[type[Refusal]]:
    """What the service declines; the client's own refusals never travel."""
    for branch in root.__subclasses__():
        if branch.__module__ == errors.__name__:
            yield branch
            yield from tree(branch)


def test_every_refusal_has_its_status_code_and_title() -> None:
    for refusal in tree(Refusal):
        answer = problems.of_refusal(refusal("why", field="f", rule="r", value=math.nan))
        assert answer.status_code == problems.status_of(refusal), refusal
        assert 400 <= answer.status_code < 600, refusal
        assert b'"value":"NaN"' in answer.body, refusal
        assert refusal.title(), refusal


def test_no_two_refusals_share_a_code() -> None:
    codes = [refusal.code for refusal in tree(Refusal)]
    assert len(set(codes)) == len(codes)


def test_a_code_is_the_name_of_its_class_in_snake_case() -> None:
    codes = {refusal.__name__: refusal.code for refusal in tree(Refusal)}
    assert codes["Busy"] == "busy"
    assert codes["IdempotencyKeyReused"] == "idempotency_key_reused"
    assert Refusal.code == "refused"


async def test_the_type_of_every_problem_leads_to_its_explanation_without_a_key(
    client: httpx.AsyncClient,
) -> None:
    page = await client.get(problems.PROBLEMS_PAGE, headers={"Authorization": ""})
    assert page.status_code == 200
    for refusal in tree(Refusal):
        body = json.loads(bytes(problems.of_refusal(refusal("why")).body))
        address, _, anchor = body["type"].partition("#")
        assert address == problems.PROBLEMS_PAGE
        assert f'id="{anchor}"' in page.text
        assert html.escape(refusal.title()).replace("&#x27;", "&#39;") in page.text
    for answer in (await client.delete("/v1/pools"), await client.get("/v1/nothing")):
        assert f'id="{answer.json()["type"].partition("#")[2]}"' in page.text


def test_unavailable_says_when_to_try_again() -> None:
    answer = problems.of_refusal(errors.DatabaseUnavailable("gone"))
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", '"1"', "true", "1e999", "[]"])
async def test_what_is_no_number_is_quoted_and_not_echoed(
    client: httpx.AsyncClient, literal: str
) -> None:
    body = f'{{"name": "p", "loss": {{"kind": "bounded", "lower": {literal}, "upper": 1}}}}'
    answer = await client.post(
        "/v1/pools", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    problem = answer.json()
    assert problem["code"] == "invalid_value"
    assert problem["field"] == "loss.lower"
    assert problem["rule"]
    assert problem["value"] == SAID.get(literal, json.loads(literal))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "1"),
        (b"[]", "body"),
        (b'{"name": "p"}', "loss"),
        (b'{"name": "p", "loss": {"kind": "squared"}}', "loss.kind"),
        (b'{"name": "", "loss": {"kind": "zero_one"}}', "name"),
        (b'{"name": "\\u0000", "loss": {"kind": "zero_one"}}', "name"),
        (b'{"name": "\\ud800", "loss": {"kind": "zero_one"}}', "name"),
        (b'{"name": "p", "loss": {"kind": "zero_one"}, "more": 1}', "more"),
        (b'{"name": "p", "loss": {"kind": "cross_entropy"}}', "loss.upper"),
        (b'{"name": "p", "loss": {"kind": "bounded", "upper": 1}}', "loss.lower"),
        (b'{"name": "p", "loss": {"kind": "zero_one"}, "items": [1]}', "items.0"),
    ],
)
async def test_a_wrong_body_is_told_by_field(
    client: httpx.AsyncClient, body: bytes, field: str
) -> None:
    answer = await client.post(
        "/v1/pools", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["field"] == field


@pytest.mark.parametrize("body", [b"\xff", b"[" * 50_000, b"[" + b"9" * 5_000 + b"]"])
async def test_a_body_that_cannot_be_read_is_an_invalid_value_too(
    client: httpx.AsyncClient, body: bytes
) -> None:
    answer = await client.post(
        "/v1/pools", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert (answer.json()["code"], answer.json()["field"]) == ("invalid_value", "body")


async def test_of_many_wrong_fields_the_first_are_told_and_all_are_counted(
    client: httpx.AsyncClient,
) -> None:
    session = "ses_019aa3c4d5e67f8091a2b3c4d5e6f708"
    body = {"worker": "ada", "observations": [{"round": "1", "loss": 0}] * 300}
    problem = (await client.post(f"/v1/sessions/{session}/observe", json=body)).json()
    assert (len(problem["errors"]), problem["total_errors"]) == (100, 300)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "nan"),
        ("a" * 200, "'" + "a" * 99),
        ({"a": [1, None], "b": "it's"}, "{'a': [1, None], 'b': \"it's\"}"),
        ("\ud800", "'\\ud800'"),
        (["x" * 50] * 10**6, str(["x" * 50] * 2)[:100]),
    ],
)
def test_a_value_is_told_by_its_beginning(value: object, text: str) -> None:
    assert shortened(value) == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (2**53, str(2**53)),
        (math.nan, "NaN"),
        ([1, -math.inf], [1, "-Infinity"]),
        ("it's", "it's"),
        ("a" * 101, "a" * 100 + "…"),
        (b"\xff", "\\xff"),
        ({"a": [1, None], "b": "x"}, {"a": [1, None], "b": "x"}),
        ("\ud800", "\\ud800"),
        (["x" * 50] * 10**6, json.dumps(["x" * 50] * 2)[:100] + "…"),
    ],
)
def test_a_value_is_json_and_short(value: object, told: object) -> None:
    assert as_json(value) == told
    json.dumps(as_json(value), allow_nan=False)


def test_a_whole_number_of_thousands_of_digits_is_a_value_too() -> None:
    assert as_json(10**5000) == hex(10**5000)[:100] + "…"


def test_a_value_of_a_thousand_levels_is_told_too() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shortened(deep) == "[" * 100
    assert as_json(deep) == "[" * 100 + "…"


async def test_unknown_paths_and_methods_are_problems(client: httpx.AsyncClient) -> None:
    for method, path, status, code in (
        ("GET", "/v1/nothing", 404, "not_found"),
        ("DELETE", "/v1/pools", 405, "method_not_allowed"),
        ("GET", "/v1/pools/pool_xyz", 404, "pool_not_found"),
        ("GET", "/v1/pools/ses_019aa3c4d5e67f8091a2b3c4d5e6f708", 404, "pool_not_found"),
        ("GET", "/v1/pools/pool_019aa3c4d5e67f8091a2b3c4d5e6f708", 404, "pool_not_found"),
        ("GET", "/v1/pools?limit=0", 422, "invalid_value"),
        ("GET", "/v1/pools?after=x", 422, "invalid_value"),
    ):
        answer = await client.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert "GET" in answer.request.method
    refused = await client.delete("/v1/pools")
    assert "Allow" in refused.headers


@pytest.mark.own_app
async def test_others_go_on_while_the_methods_of_a_path_are_looked_up(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    """Anybody could hold up all others for as long as the contract takes to be made, 0.3 s."""
    app.openapi_schema = None
    asked = asyncio.ensure_future(client.delete("/healthz"))
    longest, seen = 0.0, time.thread_time()
    while not asked.done():
        await asyncio.sleep(0)
        seen, before = time.thread_time(), seen
        longest = max(longest, seen - before)
    assert (await asked).headers["Allow"] == "GET, HEAD"
    assert longest < 0.05


@pytest.mark.own_app
async def test_an_error_of_ours_tells_nothing_of_the_inside(app: FastAPI) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise KeyError("secret")

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://celeus", headers=bearer()
    ) as client:
        answer = await client.get("/broken")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal_error"
    assert "secret" not in answer.text
    assert "may have taken effect" in answer.json()["detail"], "it may have failed after a commit"


async def test_what_fails_on_a_schema_of_another_version_is_refused_as_that(
    client: httpx.AsyncClient, alter: Callable[[str], Awaitable[object]]
) -> None:
    pool = {"name": "p", "loss": {"kind": "zero_one"}}
    await alter("ALTER TABLE pools RENAME COLUMN name TO label")
    try:
        await alter("UPDATE alembic_version SET version_num = 'another'")
        answer = await client.post("/v1/pools", json=pool)
        assert (answer.status_code, answer.json()["code"]) == (503, "schema_behind")
        assert (await client.get("/readyz")).json()["code"] == "schema_behind"
    finally:
        await alter(f"UPDATE alembic_version SET version_num = '{head()}'")
        await alter("ALTER TABLE pools RENAME COLUMN label TO name")
    assert (await client.post("/v1/pools", json=pool)).status_code == 201


async def test_what_is_given_up_by_a_server_that_stops_is_refused_as_that() -> None:
    async def endless(scope: Scope, _receive: Receive, _send: Send) -> None:
        assert scope["type"] == "http"
        begun.set()
        await asyncio.Event().wait()

    begun = asyncio.Event()
    transport = httpx.ASGITransport(problems.RefusesWhenStopping(endless, set()))
    async with httpx.AsyncClient(transport=transport, base_url="http://celeus.test") as client:
        task = asyncio.create_task(client.get("/"))
        await begun.wait()
        task.cancel()
        answer = await task
    assert (answer.status_code, answer.json()["code"]) == (503, "stopping")
