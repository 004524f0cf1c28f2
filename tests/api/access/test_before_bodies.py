"""What a key may not do is refused before anything of its body is read."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.api.wire import json_body
from tests.factories import known_pool, opened
from tests.keys import bearer, key_in

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
