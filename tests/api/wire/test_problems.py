"""Refusals, and what every answer has."""

import asyncio
import html
import json
import logging
import logging.config
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from celeus import errors
from celeus.api.wire import problems
from celeus.commands.service.logs import log_config
from celeus.errors import Refusal
from celeus.shorten import as_json, shortened
from celeus.store.revisions import head
from tests.api.contract import MISSING, ROUTES, Route
from tests.factories import known_pool, labelled, opened
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
    words = html.unescape(re.sub("<[^>]*>", "", page.text))
    for refusal in tree(Refusal):
        body = json.loads(bytes(problems.of_refusal(refusal("why")).body))
        address, _, anchor = body["type"].partition("#")
        assert address == problems.PROBLEMS_PAGE
        assert f'id="{anchor}"' in page.text
        assert refusal.title().replace("`", "") in words
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


PAGES = [
    *("/", "/docs", "/docs/gate", "/reference", "/login", "/sessions/new", "/people"),
    "/webhooks",
]


async def test_every_route_refuses_a_query_parameter_it_does_not_know(
    client: httpx.AsyncClient,
) -> None:
    for route in ROUTES:
        await assert_refuses_parameter(client, route)


async def assert_refuses_parameter(client: httpx.AsyncClient, route: Route) -> None:
    answer = await route.ask(client, MISSING, params={"dryrun": "true"})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_value"), answer.text
    assert (problem["field"], problem["value"]) == ("query", "dryrun")
    known = {
        parameter["name"]
        for parameter in route.operation.get("parameters", ())
        if parameter.get("in") == "query"
    }
    named = problem["rule"].removeprefix("one of ").split(", ")
    assert set(named) == (known or {"no query parameters"})


async def test_a_page_leaves_parameters_to_its_script(client: httpx.AsyncClient) -> None:
    answer = await client.get("/sessions/new", params={"pool": MISSING["pool_id"], "nxt": "/"})
    assert answer.status_code == 200


async def test_a_misspelt_dry_run_makes_no_pool(client: httpx.AsyncClient) -> None:
    answer = await client.post(
        "/v1/pool-files",
        params={"name": "p", "kind": "zero_one", "dryrun": "true"},
        content="id\na\n",
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 422
    assert "dry_run" in answer.json()["rule"]
    assert (await client.get("/v1/pools")).json()["data"] == []


async def test_head_answers_wherever_get_does_with_its_headers_and_no_body(
    client: httpx.AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 3)
    ids = MISSING | {"pool_id": pool.id, "session_id": session, "round": "1"}
    for route in ROUTES:
        # What goes on for ever is tried below
        if route.method != "GET" or route.path.endswith("/stream"):
            continue
        path = route.path.format_map(ids)
        answer, head = await client.get(path), await client.head(path)
        assert (head.status_code, head.content) == (answer.status_code, b""), path
        changing = {"x-request-id", "content-length"} if path == "/metrics" else {"x-request-id"}
        for name in answer.headers.keys() - changing:
            assert head.headers[name] == answer.headers[name], (path, name)
    stream = await client.head(f"/v1/sessions/{session}/stream")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.content == b""
    for path in PAGES:
        assert (await client.head(path)).status_code == (await client.get(path)).status_code
    refused = await client.head("/v1/certificates/verify")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert (await client.delete("/v1/pools")).headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2_Z", True), ("", False), ("a b", False), ("x" * 129, False)]
)
async def test_every_answer_carries_the_id_of_its_request(
    client: httpx.AsyncClient, given: str, *, kept: bool
) -> None:
    headers = {"X-Request-ID": given}
    for method, path in (
        ("GET", "/healthz"),
        ("GET", "/v1/pools"),
        ("GET", "/v1/nothing"),
        ("POST", "/v1/pools"),
        ("GET", "/login"),
        ("HEAD", "/v1/pools"),
    ):
        answer = await client.request(method, path, headers=headers)
        sent = answer.headers["X-Request-ID"]
        assert (sent == given) is kept
        assert len(sent) == (len(given) if kept else 32)
    nobody = await client.get("/v1/pools", headers=headers | {"Authorization": ""})
    assert nobody.status_code == 401
    assert (nobody.headers["X-Request-ID"] == given) is kept


@pytest.mark.own_app
async def test_the_id_stands_in_the_lines_logged_for_a_request_errors_included(
    app: FastAPI, capfd: pytest.CaptureFixture[str]
) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise KeyError("secret")

    transport = httpx.ASGITransport(app)
    config = log_config(form="text")
    loggers = [logging.getLogger(), *map(logging.getLogger, config["loggers"])]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    logging.config.dictConfig(config)
    try:
        async with httpx.AsyncClient(transport=transport, headers=bearer()) as client:
            with pytest.raises(KeyError):
                await client.get("http://celeus.test/broken", headers={"X-Request-ID": "mine"})
            # As the server does, in the task that the error came to
            logging.getLogger("uvicorn.error").error("Exception in ASGI application")
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
    logged = ""
    async with asyncio.timeout(60):
        # A thread writes it
        while "[mine] Exception in ASGI" not in logged:
            logged += capfd.readouterr().err
            await asyncio.sleep(0.01)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, headers=bearer()) as client:
        answer = await client.get("http://celeus.test/broken", headers={"X-Request-ID": "mine"})
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (500, "mine")


async def test_what_is_created_is_found_where_location_says(client: httpx.AsyncClient) -> None:
    small: dict[str, Any] = {
        "name": "p",
        "loss": {"kind": "zero_one"},
        "items": [{"id": "a"}, {"id": "b"}],
        "sealed": True,
    }
    key = {"Idempotency-Key": "once"}
    made = await client.post("/v1/pools", json=small, headers=key)
    again = await client.post("/v1/pools", json=small, headers=key)
    assert made.headers["Location"] == again.headers["Location"] == f"/v1/pools/{made.json()['id']}"
    assert (await client.get(made.headers["Location"])).json() == made.json()
    opening = await client.post("/v1/sessions", json={"pool_id": made.json()["id"]})
    session = (await client.get(opening.headers["Location"])).json()
    assert session["id"] == opening.json()["id"]
    file = await client.post(
        "/v1/pool-files",
        params={"name": "p", "kind": "zero_one"},
        content="id\na\n",
        headers={"Content-Type": "text/csv"},
    )
    assert (await client.get(file.headers["Location"])).json() == file.json()["pool"]
    issued = await client.post(f"{opening.headers['Location']}/certificate")
    assert (await client.get(issued.headers["Location"])).content == issued.content
