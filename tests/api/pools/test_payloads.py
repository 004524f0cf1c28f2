"""Payloads in answers: as many as fit, as the database writes them, read by nobody on the way."""

import asyncio
import gc
import threading
from typing import Any

import psycopg
import pytest
from httpx import AsyncClient

from celeus.core.pools.rows import growth
from celeus.core.pools.rows.assembly import Assembly
from celeus.core.pools.rows.tables import assemble_table
from tests.factories import drawn

MEGABYTE = 10**6
ITEMS = 7
ON_A_PAGE = 5
"""Payloads of a megabyte until 4 MiB are full."""


@pytest.fixture
async def pool(client: AsyncClient) -> str:
    """A sealed pool of payloads that do not go into one answer."""
    items = [{"id": f"i{at}", "payload": str(at) * MEGABYTE} for at in range(ITEMS)]
    body = {"name": "large", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
async def session(client: AsyncClient, pool: str) -> str:
    """A session on it."""
    answer = await client.post("/v1/sessions", json={"pool_id": pool})
    return str(answer.json()["id"])


async def test_a_page_of_items_ends_when_its_bytes_are_full(client: AsyncClient, pool: str) -> None:
    first = (await client.get(f"/v1/pools/{pool}/items?limit=1000")).json()
    assert ([item["index"] for item in first["data"]], first["next"]) == ([0, 1, 2, 3, 4], 4)
    rest = (await client.get(f"/v1/pools/{pool}/items?limit=1000&after=4")).json()
    assert ([item["index"] for item in rest["data"]], rest["next"]) == ([5, 6], None)
    assert [item["payload"][0] for item in first["data"] + rest["data"]] == list("0123456")
    assert all(len(item["payload"]) == MEGABYTE for item in first["data"] + rest["data"])


async def test_draws_end_when_their_bytes_are_full_and_go_on_when_those_are_judged(
    client: AsyncClient, session: str
) -> None:
    first = (await drawn(client, session, 256))["draws"]
    assert [draw["round"] for draw in first] == list(range(1, ON_A_PAGE + 1))
    observed = [{"round": draw["round"], "loss": 0} for draw in first]
    told = {"observations": observed, "worker": "ada", "next": 256}
    rest = (await client.post(f"/v1/sessions/{session}/observe", json=told)).json()["draws"]
    assert [draw["round"] for draw in rest] == list(range(ON_A_PAGE + 1, ITEMS + 1))
    indices = {draw["item"]["index"] for draw in first + rest}
    assert indices == set(range(ITEMS))
    for draw in first + rest:
        assert draw["item"]["payload"] == str(draw["item"]["index"]) * MEGABYTE


async def test_a_payload_goes_through_as_the_database_writes_it(
    client: AsyncClient, session: str, pool: str, database_url: str
) -> None:
    """One that is wide and deep, from before such were refused, costs its bytes and no more."""
    wide = '{"a": [' + ", ".join(["[]"] * 120_000) + "]}"
    deep = '{"a": ' * 3000 + "1e-300" + "}" * 3000
    with psycopg.connect(database_url) as db:
        db.execute("UPDATE items SET payload = %s::jsonb WHERE index > 0", [wide])
        db.execute("UPDATE items SET payload = %s::jsonb WHERE index = 0", [deep])
    written = wide.encode(), deep.encode().replace(b"1e-300", b"0." + b"0" * 299 + b"1")
    listed = await client.get(f"/v1/pools/{pool}/items")
    asked: dict[str, Any] = {"worker": "ada", "count": ITEMS}
    handed_out = await client.post(f"/v1/sessions/{session}/next", json=asked)
    for answer in (listed, handed_out):
        assert answer.status_code == 200
        assert all(payload in answer.content for payload in written)


@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        ('{"a":[' + ",".join(["[]"] * 100_000) + "]}", "members and elements"),
        ('{"a":[' + ",".join(["1e-300"] * 4_000) + "]}", "every number written out"),
        ('{"a":' * 101 + "1" + "}" * 101, "within each other"),
    ],
)
async def test_what_costs_its_readers_more_than_its_bytes_is_refused_at_import(
    client: AsyncClient, payload: str, rule: str
) -> None:
    body = {"name": "hostile", "loss": {"kind": "zero_one"}}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    lines = '{"id":"good","payload":{"a":1}}\n{"id":"bad","payload":' + payload + "}\n"
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await client.post(f"/v1/pools/{pool}/items", content=lines, headers=headers)
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["line"], fault["field"]) == (422, 2, "payload")
    assert rule in fault["rule"]
    assert len(answer.content) < 1000


async def test_batches_are_read_few_at_once_and_without_collections(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six uploads of three million lists each stood the service still for 19 s."""
    inside, most = set[int](), 0

    def watched(*args: Any) -> Assembly:  # noqa: ANN401 -- as `assemble` takes them
        nonlocal most
        inside.add(threading.get_ident())
        most = max(most, len(inside))
        assert not gc.isenabled()
        result = assemble_table(*args)
        inside.remove(threading.get_ident())
        return result

    monkeypatch.setattr(growth, "assemble_table", watched)
    deep: object = 1
    for _ in range(90):
        deep = [deep]
    items = [{"id": f"i{at}", "payload": {"a": deep}} for at in range(300)]
    body = {"name": "deep", "loss": {"kind": "zero_one"}, "items": items}
    answers = await asyncio.gather(*(client.post("/v1/pools", json=body) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {201}
    assert 1 <= most <= 2
    assert gc.isenabled()
