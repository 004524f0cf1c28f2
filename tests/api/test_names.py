"""Names of sessions: for people only."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.factories import known_pool, labelled, opened

NAME = 'digits <script>alert("1")</script> — Größe \U0001f600'


async def test_a_name_is_told_wherever_the_session_is(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool, name=NAME, precision=0.5)
    await labelled(client, session, pool, 2)
    changed = await client.patch(f"/v1/sessions/{session}", json={"precision": 0.4})
    listed = (await client.get("/v1/sessions")).json()["data"]
    told = (await client.get(f"/v1/sessions/{session}")).json()
    assert changed.json()["name"] == told["name"] == listed[0]["name"] == NAME


async def test_a_session_needs_no_name(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 30))
    assert (await client.get(f"/v1/sessions/{session}")).json()["name"] is None


async def test_neither_plan_nor_certificate_knows_the_name(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool, name="very unlikely name")
    await labelled(client, session, pool, 2)
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    assert certificate.status_code == 200
    assert "unlikely" not in certificate.text


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", "\u202eb", "a\u2066", 7, ["x"]])
async def test_a_name_that_cannot_be_kept_is_refused(
    client: AsyncClient,
    name: Any,  # noqa: ANN401 - whatever the wire takes
) -> None:
    pool = await known_pool(client, 10)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id, "name": name})
    assert answer.status_code == 422
    assert answer.json()["field"] == "name"
