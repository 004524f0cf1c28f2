"""Judges at work over HTTP: each holds one item, judges it and gets the next in the same answer.

A cycle is one ``observe`` with ``next: 1``: the loss is in the ledger, folded and committed, and
the next item is leased. A judge waits for its answer before it sends the next request; all judges
run in the benchmark's own process, never in a server's.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from celeus.simulation.sessions import Truth
from tests.bench.connection import Connection

WARMING_CYCLES = 5


class Judge:
    """One client on one session."""

    def __init__(self, connection: Connection, session: str, worker: str, truth: Truth) -> None:
        self._connection = connection
        self._path = f"/v1/sessions/{session}"
        self._worker = worker
        self._loss = truth.loss
        self._round = 0
        self._item = 0

    async def begin(self) -> None:
        """Take the first item, and warm the session up."""
        await self.draw()
        for _ in range(WARMING_CYCLES):
            await self.cycle()

    async def draw(self) -> None:
        """Take an item."""
        asked = {"worker": self._worker, "count": 1}
        self._take(await self._connection.send(f"{self._path}/next", asked))

    async def cycle(self) -> None:
        """Judge one item and hold the next."""
        judged = {
            "round": self._round,
            "loss": int(self._loss[self._item]),
            "worker": self._worker,
            "next": 1,
        }
        self._take(await self._connection.send(f"{self._path}/observe", judged))

    async def cycles_until(self, end: float) -> int:
        """Go on until the moment ``end``; returns how many cycles that were."""
        done = 0
        while time.perf_counter() < end:
            await self.cycle()
            done += 1
        return done

    def _take(self, answer: Any) -> None:  # noqa: ANN401 - from the wire
        draw = answer["draws"][0]
        self._round = draw["round"]
        self._item = draw["item"]["index"]


async def cycles_a_second(
    places: Sequence[tuple[str, str]], truth: Truth, *, clients: int, seconds: float
) -> float:
    """All judges together; ``places`` are pairs of server and session, shared out in turn."""
    async with AsyncExitStack() as stack:
        judges = []
        for number in range(clients):
            url, session = places[number % len(places)]
            connection = await stack.enter_async_context(Connection.to(url))
            judges.append(Judge(connection, session, f"judge-{number}", truth))
        for judge in judges:
            await judge.begin()
        began = time.perf_counter()
        counts = await asyncio.gather(*(judge.cycles_until(began + seconds) for judge in judges))
        return sum(counts) / (time.perf_counter() - began)
