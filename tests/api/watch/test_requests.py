"""The line of a request in the log: whose it is, how long it took, where the time went."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from celeus.api.watch.middleware import LOGGER
from celeus.api.watch.requests import WithRequest
from celeus.commands.service.logs import JsonLines, ShortTarget
from celeus.settings import Settings
from tests.api.contract import client_with
from tests.clients import service_of
from tests.factories import drawn, known_pool, opened
from tests.keys import ADMIN
from tests.receivers import until

WAITING_FOR_ME = """
    SELECT count(*) FROM pg_locks
    WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
"""
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What is logged of requests, as JSON, when the test looks."""

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(self.format(record)))

    found: list[dict[str, Any]] = []
    handler, logger = Kept(), logging.getLogger(LOGGER)
    handler.setFormatter(JsonLines())
    handler.addFilter(WithRequest())
    handler.addFilter(ShortTarget())
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield found
    logger.setLevel(level)
    logger.removeHandler(handler)


@asynccontextmanager
async def slow_from(
    settings: Settings, seconds: float
) -> AsyncIterator[tuple[FastAPI, httpx.AsyncClient]]:
    """A service that warns of requests from so many seconds on, and a client of it."""
    with service_of(settings.model_copy(update={"slow_request_seconds": seconds})) as app:
        async with app.router.lifespan_context(app), client_with(app, ADMIN) as client:
            yield app, client


async def test_a_request_has_one_line_with_its_id_key_session_and_time(
    client: httpx.AsyncClient, lines: list[dict[str, Any]]
) -> None:
    session = await opened(client, await known_pool(client))
    lines.clear()
    body = {"worker": "ada", "count": 1}
    sent = {"X-Request-ID": "mine"}
    await client.post(f"/v1/sessions/{session}/next?", json=body, headers=sent)
    (line,) = lines
    assert (line["level"], line["logger"]) == ("info", LOGGER)
    assert line["request_id"] == "mine"
    assert line["key_id"] == ADMIN.split("_")[1]
    assert ADMIN.split("_")[2] not in json.dumps(line)
    assert line["session"] == session
    assert (line["method"], line["status"]) == ("POST", 200)
    assert line["target"] == f"/v1/sessions/{session}/next"
    assert line["route"] == "/v1/sessions/{session_id}/next"
    assert 0 < line["duration_ms"] < 60_000
    assert "parts_ms" not in line


async def test_who_shows_no_key_and_names_nothing_has_none_in_the_log(
    client: httpx.AsyncClient, lines: list[dict[str, Any]]
) -> None:
    await client.get("/v1/sessions/ses_%0a%22,", headers={"Authorization": ""})
    await client.get("/v1/sessions/ses_%0a%22,")
    await client.head("/v1/pools")
    refused, unknown, head = lines
    assert (refused["status"], refused["key_id"], refused["session"]) == (401, None, None)
    assert (unknown["status"], unknown["session"]) == (404, None)
    assert unknown["target"] == "/v1/sessions/ses_%0A%22%2C"
    assert (head["method"], head["route"]) == ("HEAD", "/v1/pools")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("traceparent", f"00-{TRACE}-b7ad6b7169203331-01")], TRACE),
        ([("traceparent", f"00-{TRACE}-b7ad6b7169203331-01"), ("X-Request-ID", "mine")], "mine"),
        ([("traceparent", f"00-{'0' * 32}-b7ad6b7169203331-01")], None),
        ([("traceparent", f"ff-{TRACE}-b7ad6b7169203331-01")], None),
        ([("traceparent", f"00-{TRACE}-b7ad6b7169203331-01 <script>")], None),
        ([("X-Request-ID", "one"), ("X-Request-ID", "two")], None),
        ([("X-Request-ID", '"}\t{"level":"error')], None),
    ],
)
async def test_a_request_is_called_what_its_sender_calls_it_if_that_is_a_plain_name(
    client: httpx.AsyncClient,
    lines: list[dict[str, Any]],
    headers: list[tuple[str, str]],
    expected: str | None,
) -> None:
    answer = await client.get("/healthz", headers=headers)
    given = answer.headers["X-Request-ID"]
    assert lines[0]["request_id"] == given
    if expected is None:
        assert len(given) == 32
        assert given != TRACE
        assert given.isalnum()
    else:
        assert given == expected


async def test_a_slow_request_is_warned_of_with_where_its_time_went(
    settings: Settings, lines: list[dict[str, Any]]
) -> None:
    async with slow_from(settings, 1e-9) as (_, client):
        session = await opened(client, await known_pool(client))
        await drawn(client, session)
    line = lines[-1]
    assert line["level"] == "warning"
    parts = line["parts_ms"]
    assert {"lock", "fold", "statement", "commit", "rest"} <= set(parts)
    assert sum(parts.values()) == pytest.approx(line["duration_ms"], abs=0.5)
    assert all(0 <= took <= line["duration_ms"] for took in parts.values())


async def test_requests_taken_together_know_each_where_their_time_went(
    settings: Settings, lines: list[dict[str, Any]]
) -> None:
    async with slow_from(settings, 1e-9) as (_, client):
        session = await opened(client, await known_pool(client))
        lines.clear()
        await asyncio.gather(*(drawn(client, session, worker=f"w{number}") for number in range(12)))
    assert len(lines) == 12
    for line in lines:
        assert {"lock", "fold", "commit"} <= set(line["parts_ms"])
        assert sum(line["parts_ms"].values()) == pytest.approx(line["duration_ms"], rel=0.05, abs=1)


async def test_waiting_for_a_session_is_the_lock_of_a_slow_request(
    settings: Settings, lines: list[dict[str, Any]]
) -> None:
    async with slow_from(settings, 0.3) as (app, client):
        session = await opened(client, await known_pool(client))
        lines.clear()
        async with app.state.context.transaction() as db:
            raw = (await db.get_raw_connection()).driver_connection
            locking = "SELECT 1 FROM sessions WHERE session_id = %s FOR UPDATE"
            await raw.execute(locking, [session.removeprefix("ses_")])
            asked = asyncio.create_task(drawn(client, session))

            async def waiting() -> bool:
                found = await (await raw.execute(WAITING_FOR_ME)).fetchone()
                return bool(found[0])

            await until(waiting, bool)
            await asyncio.sleep(0.5)
        await asked
    (line,) = lines
    assert 300 < line["parts_ms"]["lock"] < line["duration_ms"]


def test_a_line_of_json_holds_a_traceback_and_what_no_request_logged() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    handler.addFilter(WithRequest())
    try:
        raise KeyError("it")
    except KeyError as error:
        found = (KeyError, error, error.__traceback__)
    record = logging.LogRecord("celeus.store", logging.ERROR, "", 0, "lost %s\n", ("it",), found)
    handler.handle(record)
    (line,) = stream.getvalue().splitlines()
    line_document = json.loads(line)
    assert (line_document["level"], line_document["message"]) == ("error", "lost it\n")
    assert line_document["exception"].endswith("KeyError: 'it'")
    assert "request_id" not in line_document
