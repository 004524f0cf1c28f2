"""The interval that counts open draws at their worst, in the status that somebody reads."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus import stalls
from tests.api.sessions.test_stalled import asked, session_of, told, waiting
from tests.core.worlds import provisional
from tests.factories import status_of
from tests.operations.replays import kept, replayed

WAITING = 60
ASKED: dict[str, dict[str, Any]] = {"table": {"precision": {"faithful": 0.4}}}


@pytest.mark.parametrize("kind", ["pool", "population", "comparison"])
async def test_it_is_that_of_the_ledger_and_of_draws_that_nobody_can_judge(
    app: FastAPI, client: AsyncClient, database_url: str, kind: str
) -> None:
    # Nobody else gets the first draw
    session, says = await session_of(client, kind, raters="assigned")
    await asked(client, session, "slow")
    assert "provisional" not in await status_of(client, session)
    await waiting(client, session, says, WAITING)
    last = (await asked(client, session, "ada"))["draws"][0]
    answer = await told(client, session, "ada", last["round"], **says(last))
    assert "provisional" not in answer["session"]
    status = await status_of(client, session)
    found = status["provisional"]
    state = await replayed(app.state.context.database, kept(database_url, session))
    same = provisional(state)
    assert same is not None
    assert (found["lower"], found["upper"]) == (same.interval.lower, same.interval.upper)
    assert (found["judged"], found["open"]) == (WAITING + 1, 1)
    assert status["lower"] <= found["lower"] < found["upper"] <= status["upper"]
    assert found["upper"] - found["lower"] < status["width"]
    assert found["sentence"].startswith("With the 61 labels that wait, and the open draw counted")
    after = (await told(client, session, "slow", 1, unjudgeable="torn"))["session"]
    assert (after["lower"], after["upper"]) == (found["lower"], found["upper"])
    assert "provisional" not in await status_of(client, session)


async def test_an_answer_of_one_etag_says_one_thing(client: AsyncClient) -> None:
    session, says = await session_of(client, "pool")
    await waiting(client, session, says, 3)
    path = f"/v1/sessions/{session}"
    answers = await asyncio.gather(*(client.get(path) for _ in range(8)))
    first = answers[0]
    assert "provisional" in first.json()
    for answer in answers:
        assert (answer.headers["ETag"], answer.json()) == (first.headers["ETag"], first.json())
    known = {"If-None-Match": first.headers["ETag"]}
    assert (await client.get(path, headers=known)).status_code == 304
    tagged = await client.patch(
        path, json={"tags": ["a"]}, headers={"If-Match": first.headers["ETag"]}
    )
    assert tagged.status_code == 200
    again = await client.get(path, headers=known)
    assert again.status_code == 200
    assert again.json() == first.json() | {"tags": ["a"]}
    draw = (await asked(client, session, "ada"))["draws"][0]
    await told(client, session, "ada", draw["round"], **says(draw))
    later = (await status_of(client, session))["provisional"]
    assert later["judged"] == first.json()["provisional"]["judged"] + 1


async def test_no_other_answer_has_it(client: AsyncClient) -> None:
    session, says = await session_of(client, "pool")
    await waiting(client, session, says, 3)
    assert "provisional" in await status_of(client, session)
    path = f"/v1/sessions/{session}"
    [listed] = (await client.get("/v1/sessions")).json()["data"]
    changed = (await client.patch(path, json={"precision": 0.5})).json()
    closed = (await client.patch(path, json={"state": "closed"})).json()
    for status in (listed, changed, closed, await status_of(client, session)):
        assert status["rounds"]["waiting"] == 3
        assert "provisional" not in status


@pytest.mark.parametrize("kind", ["best", "table"])
async def test_sessions_without_one_interval_have_the_answer_to_their_question(
    client: AsyncClient, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody else gets the first draw
    monkeypatch.setattr(stalls, "LEAST_BEHIND", WAITING + 1)
    session, says = await session_of(client, kind, **ASKED.get(kind, {}))
    first = await waiting(client, session, says, WAITING)
    status = await status_of(client, session)
    found = status["provisional"]
    assert (found["lower"], found["upper"]) == (None, None)
    assert (found["judged"], found["open"]) == (WAITING, 1)
    begins = f"With the {WAITING} labels that wait, and the open draw counted at its worst: "
    if kind == "best":
        assert (found["standing"], found["metrics"]) == (status["best"]["standing"], None)
        text = "No system is out yet: any of the 2 systems may be the best."
        assert found["sentence"] == begins + text
    else:
        assert (found["standing"], found["met"], status["table"]["met"]) == (None, 1, 0)
        own, at_worst = status["table"]["metrics"][0], found["metrics"][0]
        assert (own["met"], at_worst["met"]) == (False, True)
        assert own["lower"] <= at_worst["lower"] < at_worst["upper"] <= own["upper"]
        assert found["sentence"].startswith(f"{begins}1 of 1 claim has met its target, ")
    await told(client, session, "slow", first["round"], **says(first))
    after = await status_of(client, session)
    assert "provisional" not in after
    assert after["stopped"] == (kind == "table")
