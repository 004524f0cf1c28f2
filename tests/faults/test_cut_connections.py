"""The connection to the database cut before and after every message of every writing request."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from httpx import AsyncClient

from celeus.store.database import Database
from tests.factories import KnownPool, drawn, known_pool, opened
from tests.faults.loads import assert_told, assert_worth_repeating, client_of
from tests.faults.processes import serving
from tests.faults.proxies import Cut, Link, Proxy, before_postgres
from tests.faults.tally import Tally
from tests.operations.replays import assert_whole, kept
from tests.servers import data_folder

pytestmark = pytest.mark.nightly

MOST_MESSAGES = 60
ITEMS = 10


@dataclass
class Scissors:
    """Cuts every connection at the ``at``-th piece from now, before it arrives."""

    proxy: Proxy
    side: str = "asked"
    left: int | None = None
    cuts: int = 0

    def arm(self, side: str, at: int) -> None:
        self.left = at
        self.proxy.asked = self.proxy.answered = _pass
        setattr(self.proxy, side, self._count)

    async def _count(self, _link: Link, _piece: bytes) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left == 0:
            self.left = None
            self.cuts += 1
            raise Cut

    @property
    def cut(self) -> bool:
        """The request had as many pieces."""
        return self.left is None

    def disarm(self) -> None:
        self.left = None


async def _pass(_link: Link, _piece: bytes) -> None:
    return


@dataclass
class World:
    """A server behind the proxy, and a session."""

    client: AsyncClient
    scissors: Scissors
    pool: KnownPool
    session: str
    statuses: Counter[int] = field(default_factory=Counter)

    async def cut_everywhere(self, prepare: Callable[[], Awaitable[httpx.Request]]) -> None:
        """Send a prepared request with a cut at each of its messages, then once more without."""
        for side in ("asked", "answered"):
            for at in range(1, MOST_MESSAGES):
                request = await prepare()
                self.scissors.arm(side, at)
                answer = await self.client.send(_again(request))
                whole = not self.scissors.cut
                self.scissors.disarm()
                self.statuses[answer.status_code] += 1
                if answer.is_error:
                    assert_worth_repeating(answer)
                    await self._repeated(request)
                if whole:
                    assert answer.is_success, answer.text
                    break
            else:
                pytest.fail("the request has no end")

    async def _repeated(self, request: httpx.Request) -> None:
        # PostgreSQL may still be taking back what the cut connection held
        async with asyncio.timeout(2):
            while (answer := await self.client.send(_again(request))).is_error:
                assert answer.json()["code"] == "pool_busy", answer.text
                await asyncio.sleep(0.02)


def _again(request: httpx.Request) -> httpx.Request:
    body = request.read()
    return httpx.Request(request.method, request.url, headers=request.headers, content=body)


@asynccontextmanager
async def world(database_url: str) -> AsyncIterator[World]:
    """A session of 300 items, and one database connection for the server under test."""
    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(1, through, database_pool_size=1) as (service,),
            client_of(service.url) as client,
        ):
            pool = await known_pool(client)
            session = await opened(client, pool, lease_seconds=3600)
            yield World(client, Scissors(proxy), pool, session)


async def test_rounds_with_a_cut_connection_are_refused_or_harmless(
    database_url: str, database: Database, tally: Tally
) -> None:
    numbers = itertools.count()

    async def following() -> httpx.Request:
        body = {"worker": f"judge-{next(numbers)}", "count": 1}
        return here.client.build_request("POST", f"{path}/next", json=body)

    async def observed() -> httpx.Request:
        worker = f"judge-{next(numbers)}"
        (draw,) = (await drawn(here.client, here.session, worker=worker))["draws"]
        loss = here.pool.losses[draw["item"]["index"]]
        body = {"round": draw["round"], "loss": loss, "worker": worker}
        judged.append(draw["round"])
        return here.client.build_request("POST", f"{path}/observe", json=body)

    async def amended() -> httpx.Request:
        number = next(numbers)
        body = {"round": judged[0], "loss": number % 2, "author": "ada", "reason": f"no. {number}"}
        return here.client.build_request("POST", f"{path}/amendments", json=body)

    async def changed() -> httpx.Request:
        return here.client.build_request("PATCH", path, json={"budget": 300 - next(numbers) % 2})

    judged: list[int] = []
    async with world(database_url) as here:
        path = f"/v1/sessions/{here.session}"
        for prepare in (following, observed, amended, changed):
            await here.cut_everywhere(prepare)
        found = kept(database_url, here.session)
        await assert_whole(database, found)
        assert {row["round"] for row in found.events if row["kind"] == 2} == set(judged)
        await assert_told(str(here.client.base_url), here.session, found.session["status"])
        tally.count("database connection cut at each message of a request", here.scissors.cuts)


async def test_pools_with_a_cut_connection_are_kept_whole_or_not_at_all(
    database_url: str, tally: Tally
) -> None:
    def once(made: list[str]) -> dict[str, str]:
        made.append(f"{next(numbers)}")
        return {"Idempotency-Key": made[-1]}

    async def made() -> httpx.Request:
        body = {"name": "two", "loss": {"kind": "zero_one"}, "items": [{"id": "a"}], "sealed": True}
        return here.client.build_request("POST", "/v1/pools", json=body, headers=once(pools))

    async def imported() -> httpx.Request:
        lines = "".join(f'{{"id": "i{number}", "surrogate": 0.5}}\n' for number in range(ITEMS))
        return here.client.build_request(
            "POST",
            f"/v1/pools/{await empty_pool(here.client)}/items",
            content=lines,
            headers=once(imports) | {"Content-Type": "application/x-ndjson"},
        )

    async def sealed() -> httpx.Request:
        pool = await empty_pool(here.client, items=[{"id": "a", "surrogate": 0.5}])
        return here.client.build_request("POST", f"/v1/pools/{pool}/seal")

    async def opening() -> httpx.Request:
        body = {"pool_id": here.pool.id}
        return here.client.build_request("POST", "/v1/sessions", json=body, headers=once(sessions))

    numbers = itertools.count()
    pools: list[str] = []
    imports: list[str] = []
    sessions: list[str] = []
    async with world(database_url) as here:
        for prepare in (made, imported, sealed, opening):
            await here.cut_everywhere(prepare)
        # As many as were asked for, each once, whether its first answer was lost or not
        kept_pools = (await here.client.get("/v1/pools?limit=1000")).json()["data"]
        sizes = Counter((pool["name"], pool["items"]) for pool in kept_pools)
        assert sizes["two", 1] == len(pools)
        assert sizes["empty", ITEMS] == len(imports)
        assert sizes["empty", 0] == sizes["two", 0] == 0
        opened_sessions = (await here.client.get("/v1/sessions?limit=200")).json()["data"]
        assert len(opened_sessions) == 1 + len(sessions)
        tally.count("database connection cut at each message of a request", here.scissors.cuts)


async def empty_pool(client: AsyncClient, **more: object) -> str:
    body = {"name": "empty", "loss": {"kind": "zero_one"}} | more
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
