"""A file that becomes a pool in one request, or is only looked at."""

import asyncio
import gzip
import io
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI

from celeus.main import create_app
from celeus.settings import Settings
from celeus.store.database import Database
from celeus.store.tables import metadata
from tests.api.serving import served
from tests.intake.made import FIXTURES
from tests.keys import ADMIN, bearer, key_in

CSV = b"id,surrogate,payload.question\na,0.25,Why?\nb,0.75,<b>How?</b>\n"
BAD = b"id,surrogate\na,0.25\nb,1.5\nc,much\nd,0.5,more\n"
FILES = {
    "text/csv": CSV,
    "application/x-ndjson": b'{"id": "a", "surrogate": 0.25, "payload": {"question": "Why?"}}\n'
    b'{"id": "b", "surrogate": 0.75, "payload": {"question": "<b>How?</b>"}}\n',
}


def parquet() -> bytes:
    file = io.BytesIO()
    columns = {
        "id": ["a", "b"],
        "surrogate": [0.25, 0.75],
        "payload.question": ["Why?", "<b>How?</b>"],
    }
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


FILES["application/vnd.apache.parquet"] = parquet()


async def sent(
    client: httpx.AsyncClient,
    body: bytes = CSV,
    media: str = "text/csv",
    headers: dict[str, str] | None = None,
    **query: Any,  # noqa: ANN401 - as the wire takes it
) -> httpx.Response:
    asked = {"name": "exam", "kind": "zero_one"} | query
    return await client.post(
        "/v1/pool-files",
        params=asked,
        content=body,
        headers={"Content-Type": media} | (headers or {}),
    )


@pytest.mark.parametrize(
    ("log", "tool"),
    [("lm-eval/small/samples_toy_mc_*.jsonl", "lm-eval"), ("promptfoo/out.json", "promptfoo")],
)
async def test_the_log_of_a_tool_is_a_file_and_no_items_of_a_pool(
    client: httpx.AsyncClient, log: str, tool: str
) -> None:
    (path,) = FIXTURES.glob(log)
    body = path.read_bytes()
    if path.suffix == ".json":
        results = json.loads(body)["results"]["results"]
        body = b"\n".join(json.dumps({"id": "x", **one}).encode() for one in results)
    given: dict[str, Any] = {"metric": "acc"} if tool == "lm-eval" else {}
    made = await sent(client, body, "application/x-ndjson", **given)
    assert (made.status_code, made.json()["format"]) == (201, tool), made.text
    form = {"name": "a", "loss": {"kind": "zero_one"}}
    pool = (await client.post("/v1/pools", json=form)).json()["id"]
    headers = {"Content-Type": "application/x-ndjson"}
    refused = await client.post(f"/v1/pools/{pool}/items", content=body, headers=headers)
    assert refused.status_code == 422
    told = refused.json()
    assert told["detail"] == f"The file is a log of {tool}, and its rows are no items."
    assert told["rule"] == "the pool that `celeus import` makes of it"


@pytest.fixture
def kept(database: Database) -> Callable[[], Awaitable[int]]:
    """How many pools, items and answers are kept."""

    async def count() -> int:
        async with database.transaction() as db:
            names = ("pools", "items", "chunks", "idempotency")
            tables = [table for table in metadata.sorted_tables if table.name in names]
            return sum([len((await db.execute(table.select())).all()) for table in tables])

    return count


@pytest.mark.parametrize("media", list(FILES))
async def test_a_file_becomes_a_sealed_pool(client: httpx.AsyncClient, media: str) -> None:
    answer = await sent(client, FILES[media], media, preview=5)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["items"], told["skipped"], told["errors"]) == (2, 0, [])
    assert told["numeric"] == ["surrogate.0"]
    assert told["pool"]["sealed"]
    assert (await client.get(f"/v1/pools/{told['pool']['id']}")).json() == told["pool"]
    assert [row["cells"]["id"] for row in told["preview"]] == ["a", "b"]
    assert told["preview"][1]["cells"]["payload.question"] == "<b>How?</b>"


@pytest.mark.parametrize("media", list(FILES))
async def test_a_dry_run_shows_the_rows_and_keeps_nothing(
    client: httpx.AsyncClient, media: str, kept: Callable[[], Awaitable[int]]
) -> None:
    key = {"Idempotency-Key": "once"}
    answer = await sent(client, FILES[media], media, key, dry_run=True, preview=1)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["pool"]["items"], told["items"], told["dry_run"]) == (2, 2, True)
    assert (await client.get(f"/v1/pools/{told['pool']['id']}")).status_code == 404
    assert [row["line"] for row in told["preview"]] == [1 if "csv" not in media else 2]
    assert await kept() == 0


async def test_a_dry_run_tells_bad_rows_by_line(
    client: httpx.AsyncClient, kept: Callable[[], Awaitable[int]]
) -> None:
    told = (await sent(client, BAD, dry_run=True, preview=9)).json()
    assert (told["items"], told["skipped"]) == (1, 3)
    assert [(one["line"], one["field"]) for one in told["errors"]] == [
        *((3, "surrogate"), (4, "surrogate"), (5, ""))
    ]
    assert len(told["preview"]) == 4
    assert await kept() == 0


async def test_a_bad_row_refuses_the_file_unless_it_may_be_left_out(
    client: httpx.AsyncClient, kept: Callable[[], Awaitable[int]]
) -> None:
    refused = await sent(client, BAD)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_rows")
    assert refused.json()["total_errors"] == 3
    assert await kept() == 0
    made = await sent(client, BAD, on_error="skip")
    assert (made.status_code, made.json()["pool"]["items"]) == (201, 1)


@pytest.mark.parametrize(
    ("body", "media", "query", "status_code", "code", "field"),
    [
        (b"", "text/csv", {}, 409, "empty_pool", "items"),
        (b"\x89PNG\r\n", "text/csv", {}, 422, "invalid_value", "body"),
        (b"PAR1", "application/vnd.apache.parquet", {}, 422, "invalid_value", "body"),
        (CSV, "image/png", {}, 415, "unsupported_format", "Content-Type"),
        (CSV, "text/csv", {"kind": "bounded"}, 422, "invalid_value", "loss.upper"),
        (CSV, "text/csv", {"kind": "other"}, 422, "invalid_value", "kind"),
        (CSV, "text/csv", {"upper": "nan"}, 422, "invalid_value", "upper"),
        (CSV, "text/csv", {"name": ""}, 422, "invalid_value", "name"),
        (CSV, "text/csv", {"name": "a\0"}, 422, "invalid_value", "name"),
        (CSV, "text/csv", {"preview": 51}, 422, "invalid_value", "preview"),
    ],
)
async def test_a_file_that_is_no_pool_is_refused_by_name_and_nothing_is_kept(  # noqa: PLR0913, PLR0917
    client: httpx.AsyncClient,
    body: bytes,
    media: str,
    query: dict[str, Any],
    status_code: int,
    code: str,
    field: str,
    kept: Callable[[], Awaitable[int]],
) -> None:
    answer = await sent(client, body, media, **query)
    assert (answer.status_code, answer.json()["code"]) == (status_code, code), answer.text
    assert answer.json()["field"] == field
    assert await kept() == 0


async def test_the_same_file_sent_twice_at_once_under_a_key_makes_one_pool(
    client: httpx.AsyncClient, kept: Callable[[], Awaitable[int]]
) -> None:
    key = {"Idempotency-Key": "file-1"}
    answers = await asyncio.gather(*(sent(client, headers=key) for _ in range(2)))
    assert [one.status_code for one in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    before = await kept()
    again = await sent(client, headers=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == answers[0].content
    assert await kept() == before
    other = await sent(client, headers=key, name="another")
    assert other.json()["code"] == "idempotency_key_reused"


async def test_a_file_needs_the_scope_manage(client: httpx.AsyncClient, database_url: str) -> None:
    client.headers.update(bearer(key_in(database_url, "read", "label")))
    answer = await sent(client)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


ROWS = 600_000


def _sent(port: int, key: str, body: bytes) -> socket.socket:
    """A connection on which a dry run is asked for."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = (
        "POST /v1/pool-files?dry_run=true&name=odd&kind=zero_one HTTP/1.1\r\nHost: celeus.test\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/gzip\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    return connection


def _waited(app: FastAPI, taken: int) -> None:
    end = time.monotonic() + 30
    while app.state.context.background.running != taken:
        assert time.monotonic() < end, app.state.context.background.running
        time.sleep(0.05)


def test_a_dry_run_ends_with_its_client_and_a_key_has_half_of_the_places(
    settings: Settings, database_url: str
) -> None:
    other = key_in(database_url, "manage", project="other")
    app = create_app(settings)
    body = gzip.compress(b"\n".join([b'{"question": "a"}'] * ROWS))
    half = settings.background_processes // 2
    with served(settings, app=app) as port:
        connections = [_sent(port, ADMIN, body) for _ in range(half + 2)]
        _waited(app, half)
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/pool-files?name=mine&kind=zero_one",
            json=[{"id": "1"}, {"id": "2"}],
            headers=bearer(other),
            timeout=60,
        )
        assert answer.status_code == 201, answer.text
        for one in connections:
            one.close()
        _waited(app, 0)
