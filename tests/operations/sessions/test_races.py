"""Many judges, two server processes, one session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.settings import Settings
from celeus.store.database import Database
from tests.clients import serving
from tests.factories import drawn, known_pool, opened
from tests.faults.loads import assert_nothing_lost, loaded
from tests.operations.replays import assert_whole, kept
from tests.servers import running_services

WORKERS = 16
ROUNDS = 96


async def test_sixteen_workers_on_two_processes_lose_and_double_nothing(
    database_url: str, redis_url: str
) -> None:
    with running_services(2, database_url, redis_url) as services:
        urls = [service.url for service in services]
        async with loaded(urls, ROUNDS, lease_seconds=300) as load:
            await load.judged(WORKERS)
            await assert_nothing_lost(load, database_url, shared_rounds=False)


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[list[AsyncClient]]:
    """Clients of two services that share a database and nothing else."""
    settings = Settings(database_url=database_url)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(serving(settings)) for _ in range(2)]


async def test_one_request_sent_eight_times_at_once_has_one_effect(
    two: list[AsyncClient], database: Database, database_url: str
) -> None:
    session = await opened(two[0], await known_pool(two[0]), precision=0.3)

    async def sent(verb: str, path: str, **body: object) -> list[Any]:
        url = f"/v1/sessions/{session}{path}"
        asked = (two[i % 2].request(verb, url, json=body) for i in range(8))
        return [answer.json() for answer in await asyncio.gather(*asked)]

    offers = await sent("POST", "/next", worker="ada", count=1)
    assert {offer["draws"][0]["round"] for offer in offers} == {1}
    judgement = {"round": 1, "loss": 1, "worker": "ada"}
    correction = {"round": 1, "loss": 0, "author": "ada", "reason": "typo"}
    for path, body, sequence in (("/observe", judgement, 2), ("/amendments", correction, 3)):
        receipts = [answer["receipt"] for answer in await sent("POST", path, **body)]
        assert {receipt["sequence"] for receipt in receipts} == {sequence}
        assert sorted(receipt["replayed"] for receipt in receipts) == [False] + [True] * 7
    assert {answer["sequence"] for answer in await sent("PATCH", "", precision=0.2)} == {4}
    await assert_whole(database, kept(database_url, session))


async def test_of_two_judgements_at_once_one_wins_and_one_is_told(
    two: list[AsyncClient], database: Database, database_url: str
) -> None:
    session = await opened(two[0], await known_pool(two[0]))
    await drawn(two[0], session)
    url = f"/v1/sessions/{session}/observe"
    answers = await asyncio.gather(
        *(two[i].post(url, json={"round": 1, "loss": i, "worker": f"worker-{i}"}) for i in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    await assert_whole(database, kept(database_url, session))


async def test_two_sessions_opened_at_once_are_two(two: list[AsyncClient]) -> None:
    pool = await known_pool(two[0])
    sessions = await asyncio.gather(*(opened(two[i % 2], pool) for i in range(4)))
    assert len(set(sessions)) == 4
