"""Sessions side by side: which may be shown together, and at which level."""

import asyncio
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Scores, Strategy, scores
from celeus.operations.insights import claims as operations
from celeus.operations.insights.claims_worker import Part, job_of
from celeus.operations.runtime.workers import Frame
from tests.api.contract import client_with
from tests.factories import KnownPool, known_pool, labelled, opened
from tests.keys import key_in
from tests.lineups import field

ITEMS = 120


async def claims(client: AsyncClient, **query: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await client.get("/v1/claims", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def refused(client: AsyncClient, **query: Any) -> tuple[int, str, str]:  # noqa: ANN401
    answer = await client.get("/v1/claims", params=query)
    told = answer.json()
    return answer.status_code, told["code"], told.get("field") or ""


async def session_on(
    client: AsyncClient,
    pool: KnownPool,
    labels: int,
    at_most: float | None = None,
    **more: Any,  # noqa: ANN401
) -> str:
    questions = [] if at_most is None else [{"side": "at_most", "threshold": at_most}]
    settings = {"questions": questions, "stop_when_decided": False} if questions else {}
    session = await opened(client, pool, **(settings | more))
    await labelled(client, session, pool, labels)
    return session


async def test_what_holds_of_one_of_all_and_of_those_picked(client: AsyncClient) -> None:
    pools = [await known_pool(client, ITEMS, seed) for seed in range(3)]
    sessions = [await session_on(client, pool, 20, precision=0.1) for pool in pools]
    told = await claims(client, session=sessions, shown=sessions[:2])
    assert (told["level"], told["sessions"], told["shown"]) == (0.05, 3, 2)
    assert told["shown_level"] == pytest.approx(0.05 * 2 / 3)
    assert [one["session"] for one in told["claims"]] == sessions
    assert [one["shown"] is None for one in told["claims"]] == [False, False, True]
    for one in told["claims"]:
        assert one["evidence"]
        assert one["together"]["level"] == pytest.approx(0.05 / 3)
        parts = [one[name] for name in ("together", "shown", "alone") if one[name] is not None]
        widths = [part["upper"] - part["lower"] for part in parts]
        # The less alpha there is, the wider; the last holds at every moment, and not at this one
        assert widths == sorted(widths, reverse=True)
    assert set(told["promises"]) == {"one", "all", "picked"}
    assert "2 of the 3 are shown" in told["promises"]["picked"]


async def test_the_most_that_answer_at_the_level_of_so_many_are_shown(client: AsyncClient) -> None:
    pool = await known_pool(client, ITEMS)
    clear = await session_on(client, pool, 60, at_most=0.95)
    # Few labels: nothing is known of so near a threshold, whatever the seed
    open_ = await session_on(client, pool, 12, at_most=pool.risk - 0.001)
    told = await claims(client, session=[open_, clear])
    assert told["shown"] == 1
    assert told["claims"][0]["shown"] is None
    assert told["claims"][1]["shown"]["answers"] == [
        {"side": "at_most", "threshold": 0.95, "answer": "yes"}
    ]
    none = await claims(client, session=open_)
    assert (none["shown"], none["shown_level"]) == (0, None)
    assert "None of the sessions" in none["promises"]["picked"]


async def test_a_session_for_the_population_is_shown_at_the_least_level(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, ITEMS)
    own = await session_on(client, pool, 30, precision=0.4, target="population")
    other = await session_on(client, pool, 30, policy="celeus", precision=0.2)
    told = await claims(client, session=[own, other], shown=own)
    first = told["claims"][0]
    assert not first["evidence"]
    assert first["shown"] == first["together"] | {"level": pytest.approx(0.025)}
    # Not within each other to the last cell: what is bet at the start follows from the level
    assert first["together"] != first["alone"]


async def test_a_session_that_stands_where_it_stood_is_not_bet_on_again(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 10, precision=0.2) for _ in range(2)]
    first = await claims(client, session=sessions)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert await claims(client, session=sessions) == first
    assert (await claims(client, session=sessions[::-1], shown=sessions[0]))["shown"] == 1


async def test_many_rounds_are_bet_on_by_several_children(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MOST_ROUNDS", 15)
    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 10, precision=0.2) for _ in range(2)]
    told = await claims(client, session=sessions)
    assert [one["round"] for one in told["claims"]] == [10] * 2


async def test_what_one_child_is_given_is_bounded_and_made_in_a_thread(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred sessions on a pool of a million items took 1.6 GB, made on the event loop."""
    jobs, threads = list[int](), set[threading.Thread]()

    def job(parts: Sequence[Part], level: float, count: int) -> Frame:
        jobs.append(len(parts))
        return job_of(parts, level, count)

    def scored(pool: Pool, strategy: Strategy | None) -> Scores:
        threads.add(threading.current_thread())
        return scores(pool, strategy)

    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 10, precision=0.2) for _ in range(2)]
    monkeypatch.setattr(operations, "MOST_BYTES", ITEMS * 8, raising=False)
    monkeypatch.setattr(operations, "job_of", job)
    monkeypatch.setattr(operations, "scores", scored)
    await claims(client, session=sessions)
    assert jobs == [1, 1]
    assert threading.current_thread() not in threads


async def test_a_key_that_asks_for_ever_other_levels_leaves_a_place_to_others(
    app: FastAPI, client: AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level is bet on anew, and one key kept everybody else's claims from being made."""
    began, go_on, under_way = asyncio.Event(), asyncio.Event(), list[float]()
    bet_again = operations._bet_again

    async def waiting(batch: Any, level: float, count: int) -> list[operations.FamilyClaim]:  # noqa: ANN401
        if level != 0.05:
            under_way.append(level)
            began.set()
            await go_on.wait()
        return await bet_again(batch, level, count)

    pool = await known_pool(client, ITEMS)
    session = await session_on(client, pool, 10, precision=0.2)
    monkeypatch.setattr(operations, "_bet_again", waiting)
    levels = [0.1, 0.11, 0.12]
    async with client_with(app, key_in(database_url, "read")) as other, asyncio.timeout(60):
        asked = [
            asyncio.create_task(client.get("/v1/claims", params={"session": session, "level": one}))
            for one in levels
        ]
        await began.wait()
        assert (await claims(other, session=session))["level"] == 0.05
        assert 1 <= len(under_way) <= 2
        go_on.set()
        told = [(await one).status_code for one in asked]
        assert told[0] == 200
        assert {200, 503}.issuperset(told), "the rest of the key's wait for it, or are refused"


async def test_what_cannot_be_asked_is_refused_by_name(client: AsyncClient) -> None:
    pool = await known_pool(client, ITEMS)
    one, other = [await opened(client, pool) for _ in range(2)]
    unknown = "ses_" + 32 * "0"
    assert await refused(client) == (422, "invalid_value", "session")
    assert await refused(client, session=[one, one]) == (422, "invalid_value", "session")
    assert await refused(client, session=one, shown=other) == (422, "invalid_value", "shown")
    assert await refused(client, session=one, shown=[one, one]) == (422, "invalid_value", "shown")
    for level in ("0", "0.6", "nan", "none"):
        assert await refused(client, session=one, level=level) == (422, "invalid_value", "level")
    many = [f"ses_{at:032x}" for at in range(operations.MOST_SESSIONS + 1)]
    assert await refused(client, session=many) == (422, "invalid_value", "session")
    assert await refused(client, session=[one, unknown]) == (404, "session_not_found", "session_id")
    assert (await refused(client, session="best"))[0] == 404


async def test_a_session_without_an_interval_is_refused_by_name(client: AsyncClient) -> None:
    pool = await field(client, "answers", 20)
    session = await opened(client, KnownPool(pool.id, []), best=True)
    assert await refused(client, session=session) == (422, "invalid_value", "session")


async def test_sessions_of_other_projects_are_not_found(
    app: FastAPI, client: AsyncClient, database_url: str
) -> None:
    session = await opened(client, await known_pool(client, 20))
    async with client_with(app, key_in(database_url, "read", project="elsewhere")) as stranger:
        assert (await refused(stranger, session=session))[0] == 404
    async with client_with(app, key_in(database_url, "label")) as judge:
        assert (await refused(judge, session=session))[0] == 403
