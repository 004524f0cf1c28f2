"""Many judges, two server processes, one session; and a process killed among them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from httpx import ASGITransport, AsyncClient

from celeus.main import create_app
from celeus.settings import Settings
from celeus.store.database import Database
from tests.factories import KnownPool, drawn, known_pool, opened
from tests.keys import bearer
from tests.operations.replays import assert_whole, kept
from tests.servers import running_services

WORKERS = 16
ROUNDS = 96


@dataclass
class Load:
    """What the workers saw: who was handed which round, and which judgements were acknowledged."""

    pool: KnownPool
    session: str
    urls: list[str]
    handed: dict[int, set[str]] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    third: asyncio.Event = field(default_factory=asyncio.Event)
    failed: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, number: int) -> None:
        """Judge until nothing is left, trying again whenever a server does not answer."""
        worker = f"worker-{number}"
        rng = random.Random(number)  # noqa: S311 - only delays
        ask = ("next", {"worker": worker, "count": 1})
        verb, body = ask
        async with AsyncClient(timeout=30, headers=bearer()) as client:
            while True:
                found = await self._asked(client, number, verb, body)
                if verb == "observe":
                    self._acknowledge(found["receipt"])
                if found["state"] == "budget_spent":
                    return
                await asyncio.sleep(rng.random() * 0.02)
                verb, body = ask
                for draw in found["draws"]:
                    self.handed.setdefault(draw["round"], set()).add(worker)
                    loss = self.pool.losses[draw["item"]["index"]]
                    verb = "observe"
                    body = {"round": draw["round"], "loss": loss, "worker": worker, "next": 1}

    async def _asked(
        self, client: AsyncClient, number: int, verb: str, body: dict[str, Any]
    ) -> dict[str, Any]:
        while True:
            url = f"{self.urls[number % len(self.urls)]}/v1/sessions/{self.session}/{verb}"
            try:
                answer = await client.post(url, json=body)
            except httpx.TransportError:
                self.failed.set()
                await asyncio.sleep(0.05)
            else:
                assert answer.status_code == 200, answer.text
                found: dict[str, Any] = answer.json()
                return found

    def _acknowledge(self, receipt: dict[str, Any]) -> None:
        self.acknowledged[receipt["round"]] = receipt["sequence"]
        if len(self.acknowledged) == ROUNDS // 3:
            self.third.set()


@asynccontextmanager
async def loaded(urls: list[str]) -> AsyncIterator[Load]:
    """A session with a budget of ROUNDS, ready to be worked on."""
    async with AsyncClient(base_url=urls[0], timeout=30, headers=bearer()) as client:
        pool = await known_pool(client, 200)
        session = await opened(client, pool, budget=ROUNDS, lease_seconds=300)
    yield Load(pool, session, urls)


async def test_sixteen_workers_on_two_processes_lose_and_double_nothing(
    database_url: str, database: Database, redis_url: str
) -> None:
    with running_services(2, database_url, redis_url) as services:
        async with loaded([service.url for service in services]) as load:
            await asyncio.gather(*(load.work(number) for number in range(WORKERS)))
        found = kept(database_url, load.session)
        assert sorted(load.handed) == list(range(1, ROUNDS + 1))
        assert all(len(workers) == 1 for workers in load.handed.values())
        assert sorted(load.acknowledged) == list(range(1, ROUNDS + 1))
        state = await assert_whole(database, found)
        assert state.folded == ROUNDS
        async with AsyncClient(base_url=services[1].url, headers=bearer()) as client:
            served = (await client.get(f"/v1/sessions/{load.session}")).json()
        assert served["sequence"] == found.session["sequence"]


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[list[AsyncClient]]:
    """Clients of two services that share a database and nothing else."""
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            app = create_app(Settings(database_url=database_url))
            await stack.enter_async_context(app.router.lifespan_context(app))
            client = AsyncClient(
                transport=ASGITransport(app), base_url="http://celeus.test", headers=bearer()
            )
            clients.append(await stack.enter_async_context(client))
        yield clients


async def test_one_worker_asking_twice_at_once_gets_one_draw(
    two: list[AsyncClient], database: Database, database_url: str
) -> None:
    session = await opened(two[0], await known_pool(two[0]))
    answers = await asyncio.gather(*(drawn(two[i % 2], session) for i in range(8)))
    assert {answer["draws"][0]["round"] for answer in answers} == {1}
    await assert_whole(database, kept(database_url, session))


async def test_one_judgement_sent_twice_at_once_is_kept_once(
    two: list[AsyncClient], database: Database, database_url: str
) -> None:
    session = await opened(two[0], await known_pool(two[0]))
    await drawn(two[0], session)
    body = {"round": 1, "loss": 1, "worker": "ada"}
    url = f"/v1/sessions/{session}/observe"
    answers = await asyncio.gather(*(two[i % 2].post(url, json=body) for i in range(8)))
    receipts = [answer.json()["receipt"] for answer in answers]
    assert {receipt["sequence"] for receipt in receipts} == {2}
    assert sorted(receipt["replayed"] for receipt in receipts) == [False] + [True] * 7
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


async def test_one_amendment_sent_twice_at_once_is_kept_once(
    two: list[AsyncClient], database: Database, database_url: str
) -> None:
    session = await opened(two[0], await known_pool(two[0]))
    await drawn(two[0], session)
    await two[0].post(
        f"/v1/sessions/{session}/observe", json={"round": 1, "loss": 1, "worker": "ada"}
    )
    body = {"round": 1, "loss": 0, "author": "ada", "reason": "typo"}
    url = f"/v1/sessions/{session}/amendments"
    answers = await asyncio.gather(*(two[i % 2].post(url, json=body) for i in range(6)))
    assert sorted(a.json()["receipt"]["replayed"] for a in answers) == [False] + [True] * 5
    await assert_whole(database, kept(database_url, session))


async def test_one_change_sent_twice_at_once_is_kept_once(
    two: list[AsyncClient], database: Database, database_url: str
) -> None:
    session = await opened(two[0], await known_pool(two[0]), precision=0.3)
    url = f"/v1/sessions/{session}"
    answers = await asyncio.gather(
        *(two[i % 2].patch(url, json={"precision": 0.2}) for i in range(6))
    )
    assert {answer.json()["sequence"] for answer in answers} == {1}
    await assert_whole(database, kept(database_url, session))


async def test_two_sessions_opened_at_once_are_two(two: list[AsyncClient]) -> None:
    pool = await known_pool(two[0])
    sessions = await asyncio.gather(*(opened(two[i % 2], pool) for i in range(4)))
    assert len(set(sessions)) == 4
