"""Judges who work through every fault, and what they and those who watch them were told."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
from httpx import AsyncClient

from celeus.store.database import Database
from tests.factories import KnownPool, known_pool, opened
from tests.keys import bearer
from tests.operations.replays import Kept, assert_whole, kept

UNANSWERED = 0
"""Stands for a status where a request got none."""

MOST_SECONDS = 200.0


def client_of(url: str, keep: int | None = None) -> AsyncClient:
    """How every test of faults speaks to a server; ``keep`` bounds the connections kept open."""
    return AsyncClient(
        base_url=url,
        timeout=60,
        headers=bearer(),
        limits=httpx.Limits(max_keepalive_connections=keep),
        # Nothing here is encrypted; to prepare for it costs more than a request
        verify=False,  # noqa: S501
    )


@dataclass
class Load:
    """A session, its judges, and what was acknowledged to them."""

    pool: KnownPool
    session: str
    urls: list[str]
    rounds: int
    handed: dict[int, set[str]] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    acknowledged_at: dict[int, float] = field(default_factory=dict)
    answers: Counter[int] = field(default_factory=Counter)
    milestones: dict[int, asyncio.Event] = field(default_factory=dict)
    replays: int = 0
    slowest: float = 0.0
    pause: float = 0.02

    async def judged(self, judges: int = 8, pause: float = 0.02) -> None:
        """Have the whole budget judged, whatever happens to the servers meanwhile.

        Judges think for up to ``pause`` seconds; the load's may be changed on the way.
        """
        self.pause = pause
        # A connection for each request: one that a killed server leaves half open tells nothing
        async with (
            asyncio.timeout(MOST_SECONDS),
            client_of(self.urls[0], keep=0) as client,
            asyncio.TaskGroup() as work,
        ):
            for number in range(judges):
                work.create_task(self._work(client, number))

    async def reached(self, acknowledged: int) -> None:
        """Wait until so many judgements were acknowledged."""
        if len(self.acknowledged) < acknowledged:
            async with asyncio.timeout(MOST_SECONDS):
                await self.milestones.setdefault(acknowledged, asyncio.Event()).wait()

    async def _work(self, client: AsyncClient, number: int) -> None:
        worker = f"judge-{number}"
        rng = random.Random(number)  # noqa: S311 - only delays
        ask = ("next", {"worker": worker, "count": 1})
        verb, body = ask
        while True:
            found = await self._told(client, number, verb, body)
            if verb == "observe":
                self._acknowledge(found["receipt"])
            if found["state"] == "budget_spent":
                return
            if not found["draws"]:
                await asyncio.sleep(0.05)
            await asyncio.sleep(rng.random() * self.pause)
            verb, body = ask
            for draw in found["draws"]:
                self.handed.setdefault(draw["round"], set()).add(worker)
                loss = self.pool.losses[draw["item"]["index"]]
                verb = "observe"
                body = {"round": draw["round"], "loss": loss, "worker": worker, "next": 1}

    async def _told(
        self, client: AsyncClient, number: int, verb: str, body: dict[str, Any]
    ) -> dict[str, Any]:
        """The answer, asked for again as long as a server is lost, busy or without database."""
        while True:
            url = f"{self.urls[number % len(self.urls)]}/v1/sessions/{self.session}/{verb}"
            began = time.monotonic()
            answer = None
            with suppress(httpx.NetworkError, httpx.RemoteProtocolError):
                answer = await client.post(url, json=body)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers[UNANSWERED if answer is None else answer.status_code] += 1
            if answer is None:
                await asyncio.sleep(0.05)
            elif answer.status_code == 200:
                found: dict[str, Any] = answer.json()
                return found
            else:
                assert_worth_repeating(answer)
                await asyncio.sleep(0.1)

    def _acknowledge(self, receipt: dict[str, Any]) -> None:
        self.replays += receipt["replayed"]
        sequence = self.acknowledged.setdefault(receipt["round"], receipt["sequence"])
        assert sequence == receipt["sequence"], "a receipt changed"
        self.acknowledged_at.setdefault(sequence, time.monotonic())
        if (milestone := self.milestones.get(len(self.acknowledged))) is not None:
            milestone.set()


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something that nobody announces."""
    async with asyncio.timeout(MOST_SECONDS):
        while not happened():  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.02)


def assert_worth_repeating(answer: httpx.Response) -> None:
    """Nothing but a lost database or a held lock, and it says when to come back."""
    told = (answer.status_code, answer.json().get("code"))
    assert told in {(503, "database_unavailable"), (503, "overloaded"), (409, "busy")}, answer.text
    assert answer.status_code != 503 or answer.headers["Retry-After"].isdigit()


@asynccontextmanager
async def loaded(urls: list[str], rounds: int, **settings: Any) -> AsyncIterator[Load]:  # noqa: ANN401 - whatever the wire takes
    """A session with a budget of ``rounds`` that nobody has worked on yet."""
    async with client_of(urls[0]) as client:
        pool = await known_pool(client, 2 * rounds)
        session = await opened(client, pool, budget=rounds, **settings)
    yield Load(pool, session, list(urls), rounds)


async def assert_nothing_lost(load: Load, database_url: str, *, shared_rounds: bool = True) -> Kept:
    """Every acknowledged loss is there with its sequence, and the whole equals its replay.

    ``shared_rounds`` says that a round may have been handed to several judges one after another.
    """
    found = kept(database_url, load.session)
    written = {row["round"]: row["sequence"] for row in found.events if row["kind"] == 2}
    lost = load.acknowledged.items() - written.items()
    assert not lost, f"{len(lost)} acknowledged judgements lost"
    assert sorted(load.acknowledged) == list(range(1, load.rounds + 1))
    for row in found.events:
        if row["kind"] == 2:
            assert row["loss"] == load.pool.losses[_item(found, row["round"])]
    assert shared_rounds or all(len(workers) == 1 for workers in load.handed.values())
    database = Database.connect(database_url, pool_size=1)
    try:
        state = await assert_whole(database, found)
    finally:
        await database.close()
    assert state.folded == load.rounds
    for url in load.urls:
        await assert_told(url, load.session, found.session["status"])
    return found


def _item(found: Kept, round_: int) -> int:
    (item,) = (row["item"] for row in found.events if row["kind"] == 1 and row["round"] == round_)
    return int(item)


async def assert_told(url: str, session: str, status: dict[str, Any]) -> None:
    """GET and stream of this server show the kept status."""
    async with client_of(url) as client:
        answer = await client.get(f"/v1/sessions/{session}")
        assert answer.status_code == 200, answer.text
        assert answer.json() == status
        async for event in events(client, session):
            assert event["session"] == status
            break


async def events(client: AsyncClient, session: str) -> AsyncIterator[dict[str, Any]]:
    """What a stream says, until it is closed from either side."""
    async with client.stream("GET", f"/v1/sessions/{session}/stream") as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                yield orjson.loads(line.removeprefix("data:"))


@dataclass
class Watch:
    """Dashboards beside the judges: each status seen, by polling and by streams, and when."""

    load: Load
    seen: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    streamed: list[dict[str, Any]] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch on every server while the block runs."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(watcher(url))
                for url in self.load.urls
                for watcher in self._watchers()
            ]
            yield
            for task in tasks:
                task.cancel()

    def assert_true(self, found: Kept, most_behind_seconds: float) -> None:
        """No status seen was ever another than the ledger's at its sequence, nor too old."""
        for asked_at, status in self.seen:
            _assert_status_of(status, found)
            assert self._behind(asked_at, status["sequence"]) <= most_behind_seconds
        for status in self.streamed:
            _assert_status_of(status, found)
        assert self.seen
        assert self.streamed

    def _watchers(self) -> list[Callable[[str], Any]]:
        return [self._poll, self._follow]

    async def _poll(self, url: str) -> None:
        async with client_of(url) as client:
            while True:
                asked_at = time.monotonic()
                answer = await client.get(f"/v1/sessions/{self.load.session}")
                self.answers[answer.status_code] += 1
                if answer.status_code == 200:
                    self.seen.append((asked_at, answer.json()))
                else:
                    assert_worth_repeating(answer)
                await asyncio.sleep(0.02)

    async def _follow(self, url: str) -> None:
        async with client_of(url) as client:
            async for event in events(client, self.load.session):
                self.streamed.append(event["session"])

    def _behind(self, asked_at: float, sequence: int) -> float:
        """For how long a newer status had been acknowledged when this one was asked for."""
        newer = [at for known, at in self.load.acknowledged_at.items() if known > sequence]
        return max(0.0, asked_at - min(newer, default=asked_at))


def _assert_status_of(status: dict[str, Any], found: Kept) -> None:
    sequence = status["sequence"]
    events_then = found.events[:sequence]
    assert len(events_then) == sequence, "a status of a moment that never was"
    assert status["id"] == found.session["status"]["id"]
    assert status["rounds"]["drawn"] == sum(row["kind"] == 1 for row in events_then)
    assert status["rounds"]["judged"] == sum(row["kind"] == 2 for row in events_then)
    folded = [row for row in found.trajectory if row["sequence"] <= sequence]
    assert status["rounds"]["in_interval"] == len(folded)
    if folded:
        last = folded[-1]
        told = (status["estimate"], status["lower"], status["upper"])
        assert told == (last["estimate"], last["lower"], last["upper"])
