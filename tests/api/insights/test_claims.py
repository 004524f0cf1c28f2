"""Sessions side by side: which may be shown together, and at which level."""

import asyncio
import sys
import threading
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Scores, Strategy, scores
from celeus.operations.access.keys import NewKey, create_key
from celeus.operations.deletion.sessions import delete_session
from celeus.operations.insights import claims as operations
from celeus.operations.insights.claims_worker import Part, job_of
from celeus.operations.runtime.context import open_context
from celeus.operations.runtime.workers import Frame
from celeus.settings import Settings
from tests.api.contract import client_with
from tests.factories import KnownPool, known_pool, labelled, opened
from tests.keys import key_in
from tests.lineups import field

ITEMS = 120
ASKED: dict[str, Any] = {"at_most": 0.999, "precision": 0.1}


async def claims(client: AsyncClient, **query: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await client.get("/v1/claims", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def refused(client: AsyncClient, **query: Any) -> tuple[int, str, str]:  # noqa: ANN401
    answer = await client.get("/v1/claims", params=query)
    document = answer.json()
    return answer.status_code, document["code"], document.get("field") or ""


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
    sessions = [await session_on(client, pool, 20, **ASKED) for pool in pools]
    page = await claims(client, session=sessions[::-1], shown=sessions[1:])
    assert (page["level"], page["opened"], page["shown"]) == (0.05, 3, 2)
    assert [claim["session"] for claim in page["claims"]] == sessions[::-1]
    assert [claim["place"] for claim in page["claims"]] == [3, 2, 1]
    assert [claim["shown"] is None for claim in page["claims"]] == [False, False, True]
    for claim in page["claims"]:
        place = claim["place"]
        assert claim["evidence"]
        assert claim["together"]["level"] == pytest.approx(0.05 / (place * (place + 1)))
        if claim["shown"] is not None:
            assert claim["shown"]["level"] == pytest.approx(0.05 * 2 / (place * (place + 1)))
        parts = [claim[name] for name in ("together", "shown", "alone") if claim[name] is not None]
        widths = [part["upper"] - part["lower"] for part in parts]
        # The less alpha there is, the wider; the last holds at every moment, and not at this one
        assert widths == sorted(widths, reverse=True)
    assert set(page["promises"]) == {"one", "all", "picked"}
    assert page["promises"]["picked"].startswith("2 shown, ")


async def test_no_session_is_shown_at_more_than_the_level_of_the_project(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 20, **ASKED) for _ in range(3)]
    page = await claims(client, session=sessions, shown=sessions)
    levels = [claim["shown"]["level"] for claim in page["claims"]]
    assert levels == pytest.approx([0.05, 0.05 / 2, 0.05 / 4])


async def test_what_is_left_out_deleted_or_asked_nothing_changes_no_level(
    client: AsyncClient,
) -> None:
    """Sessions were opened until one pleased, and the others left out; those asked nothing diluted.

    At level 0.1 one of five that say nothing true was shown in 0.21 of the tries.
    """
    pool = await known_pool(client, ITEMS)
    first = await session_on(client, pool, 20, **ASKED)
    idle = [await session_on(client, pool, 20, precision=0.1) for _ in range(3)]
    last = await session_on(client, pool, 20, **ASKED)
    alone = await claims(client, session=last)
    assert (alone["opened"], alone["claims"][0]["place"]) == (2, 2)
    assert alone["claims"][0]["together"]["level"] == pytest.approx(0.05 / 6)
    beside = await claims(client, session=[*idle, last], shown=last)
    assert beside["shown"] == 1
    for claim in beside["claims"][:3]:
        assert (claim["place"], claim["together"], claim["shown"]) == (None, None, None)
        assert claim["alone"]["lower"] < claim["alone"]["upper"]
    assert beside["claims"][3]["shown"] == alone["claims"][0]["together"]
    assert await refused(client, session=idle[0], shown=idle[0]) == (422, "invalid_value", "shown")
    assert (await claims(client, session=idle))["shown"] == 0
    gone = f"/v1/sessions/{first}"
    assert (await client.patch(gone, json={"archived": True})).status_code == 200
    assert (await client.delete(gone)).status_code == 200
    assert (await claims(client, session=last))["claims"] == alone["claims"]
    another = await session_on(client, pool, 20, **ASKED)
    assert (await claims(client, session=another))["claims"][0]["place"] == 3


async def test_a_session_deleted_while_its_status_is_remembered_is_not_there(
    client: AsyncClient, database_url: str
) -> None:
    """The process that deletes it does not reach the cache that the service reads."""
    session = await session_on(client, await known_pool(client, ITEMS), 20, **ASKED)
    changed = await client.patch(f"/v1/sessions/{session}", json={"archived": True})
    assert changed.status_code == 200
    async with open_context(Settings(database_url=database_url)) as without_redis:
        await delete_session(without_redis, UUID(session.removeprefix("ses_")), None)
    for query in ({}, {"shown": session}):
        found = await refused(client, session=session, **query)
        assert found == (404, "session_not_found", "session_id")


async def test_the_level_is_that_with_which_the_project_was_made(
    app: FastAPI, database_url: str
) -> None:
    async with open_context(Settings(database_url=database_url)) as context:
        new = NewKey("x", ("manage", "label"), "bold", new_project=True, level=0.1)
        made = await create_key(context, new)
    async with client_with(app, made.token) as bold:
        session = await session_on(bold, await known_pool(bold, ITEMS), 20, **ASKED)
        page = await claims(bold, session=session)
        assert (page["level"], page["claims"][0]["together"]["level"]) == (0.1, 0.05)
        answer = await bold.get("/v1/claims", params={"session": session, "level": 0.2})
        assert answer.status_code == 422


async def test_sessions_opened_at_once_have_places_of_their_own(client: AsyncClient) -> None:
    pool = await known_pool(client, ITEMS)
    questions = [{"side": "at_most", "threshold": 0.5}]
    sessions = await asyncio.gather(*(opened(client, pool, questions=questions) for _ in range(6)))
    page = await claims(client, session=sessions)
    assert sorted(claim["place"] for claim in page["claims"]) == [1, 2, 3, 4, 5, 6]


async def test_the_most_that_answer_at_the_level_of_so_many_are_shown(client: AsyncClient) -> None:
    pool = await known_pool(client, ITEMS)
    clear = await session_on(client, pool, 60, at_most=0.95)
    # Few labels: nothing is known of so near a threshold, whatever the seed
    open_ = await session_on(client, pool, 12, at_most=pool.risk - 0.001)
    page = await claims(client, session=[open_, clear])
    assert page["shown"] == 1
    assert page["claims"][0]["shown"] is None
    assert page["claims"][1]["shown"]["answers"] == [
        {"side": "at_most", "threshold": 0.95, "answer": "yes"}
    ]
    none = await claims(client, session=open_)
    assert none["shown"] == 0
    assert "None of the sessions" in none["promises"]["picked"]


async def test_a_session_for_the_population_is_shown_at_the_least_level(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, ITEMS)
    for_population = await session_on(client, pool, 30, 0.999, precision=0.4, target="population")
    other = await session_on(client, pool, 30, 0.999, policy="celeus", precision=0.2)
    page = await claims(client, session=[for_population, other], shown=[for_population, other])
    for claim, level in zip(page["claims"], (0.05 / 2, 0.05 / 6), strict=True):
        assert not claim["evidence"]
        assert claim["shown"] == claim["together"]
        assert claim["shown"]["level"] == pytest.approx(level)
        # Not within each other to the last cell: what is bet at the start follows from the level
        assert claim["together"] != claim["alone"]
    assert "supposes that no loss of their pools was known" in page["promises"]["one"]
    assert "supposes" not in (await claims(client, session=other))["promises"]["one"]


async def test_of_sessions_over_all_runs_it_is_said_that_their_runs_are_their_own(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, ITEMS)
    session = await session_on(client, pool, 10, target="runs", **ASKED)
    page = await claims(client, session=session)
    assert "their runs were made after they were opened" in page["promises"]["one"]
    assert "population" not in page["promises"]["one"]


async def test_a_session_that_stands_where_it_stood_is_not_bet_on_again(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 10, **ASKED) for _ in range(2)]
    first = await claims(client, session=sessions)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert await claims(client, session=sessions) == first
    fewer = (await claims(client, session=sessions[1]))["claims"][0]
    assert fewer["together"] == first["claims"][1]["together"]
    assert (await claims(client, session=sessions[::-1], shown=sessions[0]))["shown"] == 1


async def test_many_rounds_are_bet_on_by_several_children(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MOST_ROUNDS", 15)
    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 10, **ASKED) for _ in range(2)]
    page = await claims(client, session=sessions)
    assert [claim["round"] for claim in page["claims"]] == [10] * 2


async def test_what_one_child_is_given_is_bounded_and_made_in_a_thread(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred sessions on a pool of a million items took 1.6 GB, made on the event loop."""
    jobs, threads = list[int](), set[threading.Thread]()

    def job(parts: Sequence[Part], levels: Sequence[Sequence[float]]) -> Frame:
        jobs.append(len(parts))
        return job_of(parts, levels)

    def scored(pool: Pool, strategy: Strategy | None) -> Scores:
        threads.add(threading.current_thread())
        return scores(pool, strategy)

    pool = await known_pool(client, ITEMS)
    sessions = [await session_on(client, pool, 10, **ASKED) for _ in range(2)]
    monkeypatch.setattr(operations, "MOST_BYTES", ITEMS * 8, raising=False)
    monkeypatch.setattr(operations, "job_of", job)
    monkeypatch.setattr(operations, "scores", scored)
    await claims(client, session=sessions)
    assert jobs == [1, 1]
    assert threading.current_thread() not in threads


async def test_a_key_that_asks_for_ever_other_sessions_leaves_a_place_to_others(
    app: FastAPI, client: AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is bet on anew, and one key kept everybody else's claims from being made."""
    began, go_on, under_way = asyncio.Event(), asyncio.Event(), list[int]()
    bet_again = operations._bet_again

    async def waiting(batch: Any, level: float, places: Sequence[int]) -> Any:  # noqa: ANN401
        if places != [1]:
            under_way.extend(places)
            began.set()
            await go_on.wait()
        return await bet_again(batch, level, places)

    pool = await known_pool(client, ITEMS)
    session, *more = [await session_on(client, pool, 10, **ASKED) for _ in range(4)]
    monkeypatch.setattr(operations, "_bet_again", waiting)
    async with client_with(app, key_in(database_url, "read")) as other, asyncio.timeout(60):
        asked = [
            asyncio.create_task(client.get("/v1/claims", params={"session": session}))
            for session in more
        ]
        await began.wait()
        assert (await claims(other, session=session))["level"] == 0.05
        assert 1 <= len(under_way) <= 2
        go_on.set()
        statuses = [(await request).status_code for request in asked]
        assert statuses[0] == 200
        assert {200, 503}.issuperset(statuses), "the rest of the key's wait for it, or are refused"


async def test_what_cannot_be_asked_is_refused_by_name(client: AsyncClient) -> None:
    pool = await known_pool(client, ITEMS)
    first, second = [await opened(client, pool) for _ in range(2)]
    unknown = "ses_" + 32 * "0"
    assert await refused(client) == (422, "invalid_value", "session")
    assert await refused(client, session=[first, first]) == (422, "invalid_value", "session")
    assert await refused(client, session=first, shown=second) == (422, "invalid_value", "shown")
    assert await refused(client, session=first, shown=[first, first]) == (
        422,
        "invalid_value",
        "shown",
    )
    assert (await refused(client, session=first, level="0.1"))[::2] == (422, "query")
    many = [f"ses_{number:032x}" for number in range(operations.MOST_SESSIONS + 1)]
    assert await refused(client, session=many) == (422, "invalid_value", "session")
    assert await refused(client, session=[first, unknown]) == (
        404,
        "session_not_found",
        "session_id",
    )
    assert (await refused(client, session="best"))[0] == 404


async def test_a_session_without_an_interval_is_refused_by_name(client: AsyncClient) -> None:
    pool = await field(client, "answers", 20)
    session = await opened(client, pool, best=True)
    assert await refused(client, session=session) == (422, "invalid_value", "session")


async def test_sessions_of_other_projects_are_not_found(
    app: FastAPI, client: AsyncClient, database_url: str, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client, 20))
    async with client_with(app, key_in(database_url, "read", project="elsewhere")) as stranger:
        assert (await refused(stranger, session=session))[0] == 404
    assert (await refused(ann, session=session))[0] == 403
