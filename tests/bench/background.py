"""What work that takes long costs judges: their waiting times while it goes on, without a rest."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np
import orjson

from celeus.simulation.sessions import Truth
from tests.bench.connection import Connection
from tests.bench.gaps import AT_ONCE, LONG, Labels, signing
from tests.bench.load import CLIENTS, ITEMS, Offer, offered
from tests.bench.results import Line
from tests.bench.truths import synthetic
from tests.bench.uploads import UPLOADS, items_of
from tests.bench.worlds import World, created, sealed
from tests.keys import key_in

RATE = 50
"""Cycles offered a second."""
FILE_ITEMS = 300_000
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Long:
    """A long session with its pool and certificate, and files to import."""

    url: str
    pool: str
    session: str
    truth: Truth
    certificate: bytes
    files: dict[str, tuple[bytes, str]]


class Work:
    """What asks for work by a key and a connection of its own."""

    def __init__(self, connection: Connection, key: str, long: Long) -> None:
        self.connection = connection
        self.key = key
        self.long = long
        self.labels = Labels(connection, long.session, long.truth)

    async def plan(self, number: int) -> None:
        """Plan a session."""
        asked = orjson.dumps({"precision": 0.02, "seed": number})
        await self._post(f"/v1/pools/{self.long.pool}/planning", asked)

    async def verification(self, _: int) -> None:
        """Have the long session's certificate verified."""
        await self._post("/v1/certificates/verify", self.long.certificate)

    async def claims(self, _: int) -> None:
        """Judge an item, and have the long session bet on again."""
        await self.labels.cycle(1)
        asked = f"session={self.long.session}"
        (await self.connection.get(f"/v1/claims?{asked}", key=self.key)).json()

    async def certificate_made(self, _: int) -> None:
        """Judge an item, so that there is something new to certify."""
        await self.labels.cycle(1)
        # Not read: megabytes of JSON would hold up the judges, who are in this process
        await self.connection.get(f"{self.labels.path}/certificate", key=self.key)

    async def report(self, _: int) -> None:
        """Judge an item, so that there is something new to report."""
        await self.labels.cycle(1)
        await self.connection.get(f"{self.labels.path}/report", key=self.key)

    async def parquet(self, _: int) -> None:
        """Import a file that a process reads."""
        await self._imported("Parquet")

    async def csv(self, _: int) -> None:
        """Import a file that a thread reads."""
        await self._imported("CSV")

    async def _imported(self, form: str) -> None:
        body, media = self.long.files[form]
        await self._post(f"/v1/pools/{await created(self.connection)}/items", body, media)

    async def _post(self, path: str, body: bytes, media: str = "application/json") -> None:
        (await self.connection.post(path, body, media, key=self.key)).json()


KINDS: dict[str, list[Callable[[Work, int], Awaitable[None]]]] = {
    "nothing": [],
    "a plan": [Work.plan],
    "a verification": [Work.verification],
    "claims bet on again": [Work.claims],
    "a plan, a verification, claims and Parquet": [
        *(Work.plan, Work.verification, Work.claims, Work.parquet)
    ],
    "Parquet": [Work.parquet],
    "CSV": [Work.csv],
    "certificates": [Work.certificate_made],
    "reports": [Work.report],
}


async def background_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Waiting times at `RATE` cycles a second, by what goes on meanwhile."""
    repeats, seconds, rounds = (1, 4.0, 2_000) if quick else (3, 8.0, 10_000)
    truth = synthetic(ITEMS, risk=0.5, vagueness=20.0)
    table = items_of(synthetic(FILE_ITEMS).scores.surrogate)
    files = {one.name: (one.write(table), one.media) for one in UPLOADS}
    found: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    with signing() as environment:
        async with world.services(environment=environment) as urls:
            async with Connection.to(urls[0]) as connection:
                pool = await sealed(connection, truth)
                question = {"side": "at_most", "threshold": 0.9}
                asked = LONG | {"pool_id": pool, "questions": [question]}
                asked["stop_when_decided"] = False
                session = str((await connection.send("/v1/sessions", asked))["id"])
                await Labels(connection, session, truth).until(rounds, AT_ONCE)
                certificate = (await connection.get(f"/v1/sessions/{session}/certificate")).body
            long = Long(urls[0], pool, session, truth, certificate, files)
            keys = [key_in(world.database_url, "manage", "read") for _ in range(4)]
            for _ in range(repeats):
                for kind, tasks in KINDS.items():
                    async with _going_on(long, dict(zip(keys, tasks, strict=False))):
                        waits = await offered(urls[0], pool, truth, Offer(CLIENTS, RATE, seconds))
                    times = 1e3 * np.array(waits.cycles)
                    found[kind].append(np.percentile(times, (50, 99)).tolist())
    for kind, runs in found.items():
        for at, share in enumerate(("p50", "p99")):
            yield Line(f"{kind} under way: {share} of a cycle", [run[at] for run in runs], "ms")


@asynccontextmanager
async def _going_on(
    long: Long, tasks: dict[str, Callable[[Work, int], Awaitable[None]]]
) -> AsyncIterator[None]:
    """Have each of them done again and again, by its key, until the block has run."""
    over = asyncio.Event()

    async def again(key: str, do: Callable[[Work, int], Awaitable[None]]) -> None:
        async with Connection.to(long.url) as connection:
            work = Work(connection, key, long)
            while not over.is_set():
                await do(work, next(_NUMBERS))

    async with asyncio.TaskGroup() as group:
        for key, do in tasks.items():
            group.create_task(again(key, do))
        yield
        over.set()
