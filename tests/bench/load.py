"""Label cycles that are offered at a steady rate, timed from the moment each was due.

Who waits for the last answer before asking again slows down with the server, and hides how long
others would have waited: here every cycle has its time, whatever became of those before it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from celeus.simulation.sessions import Truth
from tests.bench.connection import Connection
from tests.bench.judges import Judge
from tests.bench.results import Goal, Line
from tests.bench.truths import synthetic
from tests.bench.worlds import COMMON, LONG, World, opened, sealed

ITEMS = 50_000
CLIENTS = 64
RATES = (25, 50, 100, 150, 200, 250)
"""Cycles offered a second."""
LONGEST_P99 = {100: 25.0, 200: 60.0}
"""Milliseconds that 99 of 100 cycles may take, with a session for every client."""
SHARES = (50.0, 95.0, 99.0, 100.0)
REST_SECONDS = 1.0
DASHBOARDS = 8
"""They poll one of the sessions at the second process, each as soon as it has its answer."""
LEAST_POLLS = Goal.least(2500, "/s")


@dataclass(frozen=True, slots=True)
class Offer:
    """Cycles offered: to how many sessions, how many a second, for how long."""

    sessions: int
    rate: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds from the moment each cycle was due to its answer, and polls a second meanwhile."""

    cycles: list[float]
    polls: float = 0.0

    @property
    def shares(self) -> list[float]:
        """What so many of 100 cycles took at most."""
        return [float(np.percentile(self.cycles, it)) for it in SHARES]


async def load_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Waiting times by rate, with a session for every client and with one for all."""
    repeats, seconds = (1, 3.0) if quick else (3, 8.0)
    truth = synthetic(ITEMS, risk=0.5, vagueness=20.0)
    async with world.services(2) as urls:
        async with Connection.to(urls[0]) as connection:
            pool = await sealed(connection, truth)
        for sessions in (CLIENTS, 1):
            found: dict[int, list[list[float]]] = {rate: [] for rate in RATES}
            for _ in range(repeats):
                for rate in RATES:
                    offer = Offer(sessions, rate, seconds)
                    found[rate].append((await offered(urls[0], pool, truth, offer)).shares)
            for rate, runs in found.items():
                for line in _lines(rate, sessions, runs):
                    yield line
        for rate in RATES:
            offer = Offer(CLIENTS, rate, seconds)
            polled = [await offered(urls[0], pool, truth, offer, urls[1]) for _ in range(repeats)]
            beside = f"beside {rate} cycles/s, {CLIENTS} clients and sessions"
            polls = [run.polls for run in polled]
            yield Line(f"polls a second {beside}", polls, "/s", LEAST_POLLS)
            yield Line(f"… {beside}: p99", [1000.0 * run.shares[2] for run in polled], "ms")


def _lines(rate: int, sessions: int, runs: Sequence[Sequence[float]]) -> list[Line]:
    goals = LONGEST_P99 if sessions > 1 else {}
    place = f"{CLIENTS} clients, {sessions} session{'' if sessions == 1 else 's'}"
    lines = []
    for at, share in enumerate(SHARES):
        name = "longest" if share == 100.0 else f"p{share:.0f}"
        goal = Goal.most(goals[rate], "ms") if share == 99.0 and rate in goals else None
        times = [1000.0 * run[at] for run in runs]
        lines.append(Line(f"{rate} cycles/s offered, {place}: {name}", times, "ms", goal))
    return lines


async def offered(
    url: str, pool: str, truth: Truth, offer: Offer, polled: str | None = None
) -> Waits:
    """How long cycles take at ``url``, while dashboards poll at another process, if any do."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Connection.to(url))
        precision = COMMON if offer.sessions > 1 else LONG
        names = [await opened(first, pool, precision) for _ in range(offer.sessions)]
        judges = []
        for number in range(CLIENTS):
            connection = await stack.enter_async_context(Connection.to(url))
            name = names[number % offer.sessions]
            judges.append(Judge(connection, name, f"judge-{number}", truth))
        for judge in judges:
            await judge.begin()
        await asyncio.sleep(REST_SECONDS)
        began, total = time.perf_counter(), int(offer.rate * offer.seconds)
        waits: list[float] = []

        async def work(judge: Judge, number: int) -> None:
            for at in range(number, total, CLIENTS):
                due = began + at / offer.rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                await judge.cycle()
                waits.append(time.perf_counter() - due)

        async def poll(url: str) -> int:
            done = 0
            async with Connection.to(url) as connection:
                while time.perf_counter() < began + offer.seconds:
                    (await connection.get(f"/v1/sessions/{names[0]}")).json()
                    done += 1
            return done

        polling = [] if polled is None else [poll(polled) for _ in range(DASHBOARDS)]
        counts, _ = await asyncio.gather(
            asyncio.gather(*polling),
            asyncio.gather(*(work(judge, at) for at, judge in enumerate(judges))),
        )
    return Waits(waits, sum(counts) / offer.seconds)
