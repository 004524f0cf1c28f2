import io
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from celeus.api.wire.limits import INLINE_LIMIT_BYTES
from celeus.settings import Settings
from celeus.store.database import Database
from celeus.store.tables import metadata
from tests.clients import serving

NDJSON = {"Content-Type": "application/x-ndjson"}
LIMIT_BYTES = 1 << 20
Contents = dict[str, list[str]]
Read = Callable[[], Awaitable[Contents]]


@pytest.fixture
async def narrow(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service for which uploads of more than 1 MiB are too large."""
    async with serving(settings, upload_limit_bytes=LIMIT_BYTES) as client:
        yield client


@pytest.fixture
def contents(database: Database) -> Read:
    """All rows of all tables, to compare before and after."""

    async def read() -> Contents:
        async with database.transaction() as db:
            return {
                table.name: sorted(str(tuple(row)) for row in await db.execute(table.select()))
                for table in metadata.sorted_tables
                # Coming in leaves its time there
                if table.name != "keys"
            }

    return read


async def created(client: httpx.AsyncClient, **more: object) -> dict[str, Any]:
    body = {"name": "exam", "loss": {"kind": "zero_one"}} | more
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def uploaded(
    client: httpx.AsyncClient, pool_id: str, body: bytes, media: str = "application/x-ndjson"
) -> httpx.Response:
    return await client.post(
        f"/v1/pools/{pool_id}/items", content=body, headers={"Content-Type": media}
    )


def parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


async def test_a_pool_comes_back_as_it_was_made(client: httpx.AsyncClient) -> None:
    items = [{"id": "a", "surrogate": 0.5, "payload": {"q": "Why?"}}, {"id": "b", "surrogate": 1}]
    made = await created(client, items=items, sealed=True)
    assert (made["sealed"], made["items"], made["columns"]) == (True, 2, ["surrogate.0"])
    assert (await client.get(f"/v1/pools/{made['id']}")).json() == made
    listed = (await client.get(f"/v1/pools/{made['id']}/items?limit=1")).json()
    assert listed == {"data": [{"index": 0, "id": "a", "payload": {"q": "Why?"}}], "next": 0}
    rest = (await client.get(f"/v1/pools/{made['id']}/items?after=0")).json()
    assert rest == {"data": [{"index": 1, "id": "b", "payload": None}], "next": None}


async def test_the_columns_come_as_an_archive_with_their_digest(client: httpx.AsyncClient) -> None:
    item = {"id": "a", "target_probs": [0.25, 0.75], "surrogate_probs": [1, 0], "group": "g"}
    made = await created(client, items=[item], sealed=True)
    answer = await client.get(f"/v1/pools/{made['id']}/columns.npz")
    assert answer.headers["ETag"] == f'"{made["digest"]}"'
    with np.load(io.BytesIO(answer.content)) as archive:
        assert str(archive["digest"]) == made["digest"]
        assert archive["target_probs"].tolist() == [[0.25, 0.75]]
        assert archive["groups"].tolist() == ["g"]
        assert set(made["columns"]) < set(archive)


async def test_pools_are_paged_by_their_last_id(client: httpx.AsyncClient) -> None:
    made = [(await created(client, name=f"{number}"))["id"] for number in range(5)]
    seen: list[str] = []
    after = ""
    while True:
        page = (await client.get(f"/v1/pools?limit=2{after}")).json()
        seen += [pool["id"] for pool in page["data"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == made[::-1]


async def test_skipped_rows_are_told_and_a_dry_run_keeps_nothing(
    client: httpx.AsyncClient, contents: Read
) -> None:
    made = await created(client)
    before = await contents()
    body = b'{"id": "a", "surrogate": 0.5}\n{"id": "b", "surrogate": NaN}\nnot json\n'
    path = f"/v1/pools/{made['id']}/items?on_error=skip"
    dry = await client.post(f"{path}&dry_run=true", content=body, headers=NDJSON)
    assert await contents() == before
    wet = await client.post(path, content=body, headers=NDJSON)
    assert (wet.json()["added"], wet.json()["skipped"]) == (1, 2)
    assert dry.json() == wet.json() | {"dry_run": True}
    assert [error["line"] for error in wet.json()["errors"]] == [2, 3]
    assert wet.json()["errors"][0] | {"rule": ""} == {
        "line": 2,
        "field": "surrogate",
        "rule": "",
        "value": "NaN",
    }


# Of each kind one: `tests/core/pools/rows` has every field and rule
BAD_UPLOADS = {
    "a surrogate that is NaN": b'{"id": "x", "surrogate": NaN}',
    "an id twice": b'{"id": "x", "surrogate": 0}\n{"id": "x", "surrogate": 0}',
    "an id the pool has": b'{"id": "kept", "surrogate": 0}',
    "a payload the database cannot hold": b'{"id": "x", "surrogate": 0, "payload": "\\u0000"}',
    "a payload too deep to be written again": b'{"id": "x", "surrogate": 0, "payload": '
    + b'{"a": ' * 400
    + b"1"
    + b"}" * 401,
    "a surrogate of a thousand lists": b'{"id": "x", "surrogate": '
    + b"[" * 1000
    + b"]" * 1000
    + b"}",
    "a field that is no text": b'{"id": "x", "surrogate": 0, "\\ud800": 1}',
    "no JSON": b"id,surrogate",
}


@pytest.mark.parametrize("body", BAD_UPLOADS.values(), ids=BAD_UPLOADS)
async def test_a_bad_row_leaves_the_database_as_it_was(
    client: httpx.AsyncClient, contents: Read, body: bytes
) -> None:
    made = await created(client, items=[{"id": "kept", "surrogate": 0.5}])
    before = await contents()
    good = b'{"id": "good", "surrogate": 0.5}\n'
    answer = await uploaded(client, made["id"], good + body)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_rows")
    error = answer.json()["errors"][0]
    assert error["line"] >= 2
    assert error["rule"]
    assert "value" in error
    assert await contents() == before


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("text/csv", b"id,colour\na,1\n"),
        ("text/csv", b'id\n"a'),
        ("application/vnd.apache.parquet", parquet({"id": ["a", "b"]})[:-7]),
        ("application/vnd.apache.parquet", b""),
    ],
)
async def test_a_file_that_cannot_be_read_leaves_the_database_as_it_was(
    client: httpx.AsyncClient, contents: Read, media: str, body: bytes
) -> None:
    made = await created(client)
    before = await contents()
    answer = await uploaded(client, made["id"], body, media)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_value")
    assert problem["field"]
    assert problem["rule"]
    assert await contents() == before


async def test_a_pool_with_a_bad_item_or_none_to_seal_is_not_made(
    client: httpx.AsyncClient, contents: Read
) -> None:
    before = await contents()
    for more, status, code in (
        ({"items": [{"id": "a"}, {"id": "a"}]}, 422, "bad_rows"),
        ({"items": [{"id": "a", "surrogate": "1"}]}, 422, "bad_rows"),
        ({"items": [], "sealed": True}, 409, "empty_pool"),
        ({"sealed": True}, 409, "empty_pool"),
        ({"loss": {"kind": "cross_entropy"}}, 422, "invalid_value"),
    ):
        body = {"name": "p", "loss": {"kind": "zero_one"}} | more
        answer = await client.post("/v1/pools", json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert await contents() == before


async def test_a_sealed_pool_takes_no_items(client: httpx.AsyncClient, contents: Read) -> None:
    made = await created(client, items=[{"id": "a"}], sealed=True)
    before = await contents()
    answer = await uploaded(client, made["id"], b'{"id": "b"}')
    assert (answer.status_code, answer.json()["code"]) == (409, "pool_sealed")
    again = await client.post(f"/v1/pools/{made['id']}/seal")
    assert again.json() == made
    assert await contents() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/json"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {},
        NDJSON | {"Content-Encoding": "gzip"},
    ],
)
async def test_other_formats_and_encodings_are_not_accepted(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    made = await created(client)
    path = f"/v1/pools/{made['id']}/items"
    answer = await client.post(path, content=b'{"id": "a"}', headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_format")
    assert answer.json()["field"] in {"Content-Type", "Content-Encoding"}


class Gigabyte:
    """A body of a gigabyte that counts what was asked of it."""

    def __init__(self) -> None:
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        part = (b'{"id": "' + b"x" * 200 + b'"}\n') * 300
        while self.taken < 1 << 30:
            self.taken += len(part)
            yield part


async def test_a_gigabyte_is_refused_while_it_arrives(
    narrow: httpx.AsyncClient, contents: Read
) -> None:
    made = await created(narrow)
    before = await contents()
    body = Gigabyte()
    tracemalloc.start()
    answer = await narrow.post(
        f"/v1/pools/{made['id']}/items", content=_stream(body), headers=NDJSON
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (answer.status_code, answer.json()["code"]) == (413, "upload_too_large")
    assert body.taken < 3 * LIMIT_BYTES
    assert peak < 10 * LIMIT_BYTES
    assert await contents() == before


async def test_an_announced_gigabyte_is_refused_before_it_arrives(
    narrow: httpx.AsyncClient,
) -> None:
    made = await created(narrow)
    headers = NDJSON | {"Content-Length": str(1 << 30)}
    body = Gigabyte()
    answer = await narrow.post(
        f"/v1/pools/{made['id']}/items", content=_stream(body), headers=headers
    )
    assert answer.status_code == 413
    assert body.taken == 0


@pytest.mark.parametrize("announced", [True, False])
async def test_a_json_body_is_limited_too(client: httpx.AsyncClient, *, announced: bool) -> None:
    headers = {"Content-Type": "application/json"}
    if announced:
        headers["Content-Length"] = str(1 << 30)
    body = Gigabyte()
    answer = await client.post("/v1/pools", content=_stream(body), headers=headers)
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "upload_too_large"
    assert body.taken <= (0 if announced else INLINE_LIMIT_BYTES + (1 << 17))


async def _stream(body: Gigabyte) -> AsyncIterator[bytes]:
    async for part in body.__aiter__():
        yield part
