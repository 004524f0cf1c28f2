"""Names of groups travel with their pool: what they may come to is bounded at import."""

import json
from typing import Any

import pytest
from httpx import AsyncClient, Response

MOST = 256 << 10
"""Bytes of an answer about pools whose groups have as many and as long names as may be."""


async def imported(client: AsyncClient, names: list[str], **more: Any) -> Response:  # noqa: ANN401 - whatever the wire takes
    items = [{"id": f"i{at}", "group": name} for at, name in enumerate(names)]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items} | more
    return await client.post("/v1/pools", json=body, headers={"Idempotency-Key": names[-1][:4]})


@pytest.mark.parametrize(
    "names",
    [
        [f"{at:05}".ljust(256, "x") for at in range(10_000)],
        [f"{at:04}" for at in range(1_001)],
        [f"{at:04}".ljust(256, "\x01") for at in range(100)],
    ],
    ids=["many and long", "many", "control characters"],
)
async def test_names_of_groups_beyond_their_bound_are_refused(
    client: AsyncClient, names: list[str]
) -> None:
    refused = await imported(client, names)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_value")
    assert refused.json()["field"] == "group"
    assert len(refused.content) < 2_000


async def test_no_answer_is_large_for_the_names_of_groups(client: AsyncClient) -> None:
    names = [f"{number:04}".ljust(250, "é") for number in range(190)]
    first = await imported(client, names)
    assert first.status_code == 201, first.text
    pool = first.json()["id"]
    again = await imported(client, names)
    assert again.content == first.content
    row = {"Content-Type": "application/x-ndjson"}
    line = json.dumps({"id": "more", "group": names[0]})
    path = f"/v1/pools/{pool}"
    dry = await client.post(f"{path}/items?dry_run=1", content=line, headers=row)
    assert dry.status_code == 200, dry.text
    sealed = await client.post(f"{path}/seal")
    assert len(sealed.json()["groups"]) == 190
    answers = {"made": first, "dry run": dry, "sealed": sealed}
    sizes = {name: len(answer.content) for name, answer in answers.items()}
    opened = await client.post("/v1/sessions", json={"pool_id": pool})
    session = f"/v1/sessions/{opened.json()['id']}"
    closed = await client.patch(session, json={"state": "closed"})
    assert closed.status_code == 200
    for name, path in {
        "pool": f"/v1/pools/{pool}",
        "session": session,
        "certificate": f"{session}/certificate",
        "report": f"{session}/report",
    }.items():
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        sizes[name] = len(answer.content)
    assert max(sizes.values()) < MOST, sizes


async def test_a_page_of_pools_ends_when_the_names_of_their_groups_fill_it(
    client: AsyncClient,
) -> None:
    made = []
    for at, groups in enumerate((190, 2, 190, 190, 1)):
        names = [f"{at}{number:03}".ljust(250, "é") for number in range(groups)]
        made.append((await imported(client, names)).json()["id"])
    seen: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        page = await client.get("/v1/pools?limit=1000" + after)
        assert len(page.content) < MOST
        seen.append([one["id"] for one in page.json()["data"]])
        last = page.json()["next"]
        after = None if last is None else f"&after={last}"
    assert [one for ids in seen for one in ids] == made[::-1]
    assert [len(ids) for ids in seen] == [2, 2, 1]
