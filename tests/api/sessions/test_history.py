"""Trajectory, ledger and the live stream."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.operations.sessions import history, stream
from celeus.settings import Settings
from tests.clients import serving
from tests.factories import drawn, judged, known_pool, labelled, opened
from tests.keys import ADMIN


async def streamed(
    client: AsyncClient, session: str, last_event_id: str | None = None
) -> list[dict[str, Any]]:
    """Every event of the stream until the session is closed, with its id."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    answer = await client.get(f"/v1/sessions/{session}/stream", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = []
    for block in answer.text.replace("\r\n", "\n").split("\n\n"):
        lines = dict(
            line.split(": ", 1) for line in block.split("\n") if not line.startswith(":") and line
        )
        if lines:
            events.append(json.loads(lines["data"]) | {"id": lines["id"]})
    return events


async def close(client: AsyncClient, session: str) -> None:
    answer = await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    assert answer.status_code == 200


def rounds(events: list[dict[str, Any]]) -> list[int]:
    return [point["round"] for event in events for point in event["points"]]


async def test_a_stream_tells_every_round_once_and_ends_when_the_session_is_closed(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    watched = asyncio.create_task(streamed(client, session))
    for _ in range(3):
        await labelled(client, session, pool, 5)
        await asyncio.sleep(0.05)
    await close(client, session)
    events = await asyncio.wait_for(watched, 10)
    assert rounds(events) == list(range(1, 16))
    assert len(events) > 2
    assert [event["reset"] for event in events] == [True] + [False] * (len(events) - 1)
    assert events[-1]["session"]["state"] == "closed"
    assert events[-1]["session"] == (await client.get(f"/v1/sessions/{session}")).json()


def streams(app: FastAPI) -> int:
    taken: int = app.state.context.gates.streams.taken
    return taken


async def test_a_key_has_so_many_streams_at_once_and_each_gives_its_place_back(
    client: AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.state.context.gates.streams, "_limit", 2)
    session = await opened(client, await known_pool(client))
    watched = [asyncio.create_task(streamed(client, session)) for _ in range(2)]
    async with asyncio.timeout(60):
        while streams(app) < 2:  # noqa: ASYNC110 - the application counts them
            await asyncio.sleep(0.01)
    refused = await client.get(f"/v1/sessions/{session}/stream")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert int(refused.headers["Retry-After"]) > 0
    await close(client, session)
    assert [len(await stream) > 0 for stream in watched] == [True, True]
    assert streams(app) == 0
    missing = await client.get(f"/v1/sessions/ses_{0:032x}/stream")
    assert (missing.status_code, streams(app)) == (404, 0)


async def test_a_stream_resumes_behind_the_last_event_seen(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    await labelled(client, session, pool, 4)
    seen = (await client.get(f"/v1/sessions/{session}")).json()
    await labelled(client, session, pool, 3)
    await close(client, session)
    resumed = await streamed(client, session, f"{seen['sequence']}-{seen['revision']}")
    assert rounds(resumed) == [5, 6, 7]
    assert resumed[0]["reset"] is False


async def test_a_stream_that_is_asked_to_says_that_nothing_is_new(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celeus.api.sessions.stream.ALIVE_SECONDS", 0.5)
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    await labelled(client, session, pool, 3)
    path = f"/v1/sessions/{session}/stream?alive=true"
    began = time.monotonic()
    watched = asyncio.create_task(client.get(path))
    await asyncio.sleep(2.5)
    await close(client, session)
    blocks = (await asyncio.wait_for(watched, 10)).text.replace("\r\n", "\n").strip().split("\n\n")
    kinds = [block.partition("\n")[0] for block in blocks]
    assert kinds[0] == kinds[-1] == "event: session"
    assert kinds[1:-1] == ["event: alive"] * (len(kinds) - 2)
    # A busy machine says it less often, and none more often
    assert 1 <= len(kinds) - 2 <= (time.monotonic() - began) / 0.5
    assert "data: {}" in blocks[1]


async def test_an_amendment_makes_the_stream_tell_all_rounds_again(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    await labelled(client, session, pool, 4)
    seen = (await client.get(f"/v1/sessions/{session}")).json()
    body = {"round": 2, "unjudgeable": "torn", "author": "ada", "reason": "looked again"}
    await client.post(f"/v1/sessions/{session}/amendments", json=body)
    await close(client, session)
    events = await streamed(client, session, f"{seen['sequence']}-{seen['revision']}")
    assert (events[0]["reset"], rounds(events)) == (True, [1, 2, 3, 4])


async def corrected(client: AsyncClient, session: str, loss: int) -> None:
    body = {"round": 2, "loss": loss, "author": "ada", "reason": "looked again"}
    answer = await client.post(f"/v1/sessions/{session}/amendments", json=body)
    assert answer.status_code == 200, answer.text


async def test_news_are_read_and_encoded_once_for_all_streams(
    client: AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight streams, each reading for itself, made corrections eight times slower."""
    reads = 0

    async def counted(*arguments: Any) -> Any:  # noqa: ANN401 - handed on as it is
        nonlocal reads
        reads += 1
        return await history.news(*arguments)

    monkeypatch.setattr(stream, "news", counted)
    pool = await known_pool(client, 300)
    session = await opened(client, pool)
    await labelled(client, session, pool, stream.POINTS_INLINE + 20)
    number = UUID(session.removeprefix("ses_"))
    status = (await client.get(f"/v1/sessions/{session}")).json()
    streams = [stream.follow(app.state.context, number, (0, None)) for _ in range(8)]
    try:
        first = await asyncio.gather(*map(anext, streams))
        assert (reads, len({id(news.data) for news in first})) == (1, 1)
        assert json.loads(first[0].data)["session"] == status
        late = stream.follow(app.state.context, number, (status["sequence"] - 2, 1))
        streams.append(late)
        assert [json.loads((await anext(late)).data)["reset"], reads] == [False, 2]
        await corrected(client, session, 1 - pool.losses[0])
        again = await asyncio.gather(*map(anext, streams))
        assert (reads, len({id(news.data) for news in again})) == (3, 1)
        document = json.loads(again[0].data)
        assert (document["reset"], len(document["points"])) == (True, stream.POINTS_INLINE + 20)
    finally:
        for opened_stream in streams:
            await opened_stream.aclose()


async def test_a_stream_is_reset_once_in_a_while_however_often_a_label_is_corrected(
    client: AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "RESET_SECONDS", 3600.0)
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 4)
    number = UUID(session.removeprefix("ses_"))
    follower = stream.follow(app.state.context, number, (0, None))
    await anext(follower)
    following = asyncio.ensure_future(anext(follower))
    for turn in range(6):
        await corrected(client, session, turn % 2)
        await labelled(client, session, pool, 1)
    await close(client, session)
    second = await asyncio.wait_for(following, 60)
    document = json.loads(second.data)
    assert (second.reset, second.last, len(document["points"])) == (True, True, 10)
    assert document["session"]["state"] == "closed"
    assert [news async for news in follower] == []


@pytest.mark.parametrize("position", ["x", "-1", "1-", "1-2-3", "99999999999"])
async def test_a_position_nobody_gave_out_is_refused(client: AsyncClient, position: str) -> None:
    session = await opened(client, await known_pool(client, 10))
    answer = await client.get(f"/v1/sessions/{session}/stream", headers={"Last-Event-ID": position})
    assert answer.status_code == 422


async def test_a_page_of_the_ledger_is_bounded_in_bytes(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason may have 2 000 characters, each six bytes long: ten thousand were 58 MiB."""
    monkeypatch.setattr(history, "PAGE_BYTES", 30_000)
    session = await opened(client, await known_pool(client))
    path = f"/v1/sessions/{session}"
    for draw in (await drawn(client, session, count=6))["draws"]:
        body = {"round": draw["round"], "unjudgeable": "\x01" * 2_000, "worker": "ada"}
        assert (await client.post(f"{path}/observe", json=body)).status_code == 200
    sequences: list[int] = []
    after: int | None = 0
    sizes: list[int] = []
    while after is not None:
        answer = await client.get(f"{path}/ledger", params={"after": after, "limit": 100})
        page = answer.json()
        sizes.append(len(answer.content))
        sequences += [entry["sequence"] for entry in page["data"]]
        after = page["next"]
    assert sequences == list(range(1, 13))
    assert len(sizes) > 2
    assert max(sizes) < 40_000
    monkeypatch.setattr(history, "PAGE_BYTES", 1)
    answer = await client.get(f"{path}/ledger", params={"after": 10})
    assert [entry["sequence"] for entry in answer.json()["data"]] == [11]


async def test_the_ledger_is_paged_and_says_who_did_what(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool, precision=0.3)
    draw = (await drawn(client, session))["draws"][0]
    await judged(client, session, pool, draw)
    await client.patch(f"/v1/sessions/{session}", json={"precision": 0.2})
    body = {"round": 1, "loss": 1, "author": "bob", "reason": "sure"}
    await client.post(f"/v1/sessions/{session}/amendments", json=body)
    first = (await client.get(f"/v1/sessions/{session}/ledger", params={"limit": 3})).json()
    rest = (
        await client.get(f"/v1/sessions/{session}/ledger", params={"after": first["next"]})
    ).json()
    events = first["data"] + rest["data"]
    assert [event["sequence"] for event in events] == [1, 2, 3, 4]
    assert [event["kind"] for event in events] == ["draw", "observation", "change", "amendment"]
    assert events[0]["item"] == draw["item"]["index"]
    assert 0 < events[0]["q"] < 1
    assert {event["detail"].pop("key") for event in events} == {ADMIN.split("_")[1]}
    assert events[1]["detail"] == {"worker": "ada"}
    assert events[2]["detail"] == {"precision": 0.2, "budget": 60, "state": "active"}
    assert events[3]["detail"] == {"author": "bob", "reason": "sure"}


@pytest.fixture
async def alone(database_url: str) -> AsyncIterator[AsyncClient]:
    """A second service on the same database, without Redis."""
    async with serving(Settings(database_url=database_url)) as client:
        yield client


async def test_without_redis_a_stream_sees_what_another_process_writes(
    client: AsyncClient, alone: AsyncClient
) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    watched = asyncio.create_task(streamed(alone, session))
    await labelled(client, session, pool, 3)
    await close(client, session)
    assert rounds(await asyncio.wait_for(watched, 10)) == [1, 2, 3]
