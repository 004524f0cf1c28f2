"""What every route does alike: unknown parameters, HEAD, request ids, addresses of what is new."""

import asyncio
import logging
import logging.config
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from celeus.commands.service.logs import log_config
from tests.api.contract import MISSING, ROUTES, Route
from tests.factories import known_pool, labelled, opened
from tests.keys import bearer

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
