"""How long a server stands still for everybody while one session has long work done.

Another process asks for `/healthz` every 5 ms meanwhile (``polling``). Forecasts are off.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.core.certificate.ed25519 import private_to_pem
from celeus.simulation.sessions import Truth
from tests.bench.connection import Connection, UnexpectedAnswerError
from tests.bench.results import Goal, Line
from tests.bench.truths import synthetic
from tests.bench.worlds import World, sealed

ITEMS = 100_000
STARTS = ((0.02, 500, 1_000), (0.01, 2_300, 3_300))
"""Precisions, and the rounds between which the pairs of this pool start."""
LONG = {"pool_id": "", "target": "pool", "precision": 0.004}
"""A session that is not at its precision after 40 000 labels."""
AT_ONCE = 250
STRETCH = 2_000
IDLE_SECONDS = 5.0
BUSY = 409
LONGEST = Goal.most(20, "ms")


@dataclass(slots=True)
class Gaps:
    """Milliseconds of the polls of every repeat, by what happened meanwhile."""

    answers: dict[str, list[list[float]]] = field(default_factory=dict)

    @asynccontextmanager
    async def during(self, what: str, url: str) -> AsyncIterator[None]:
        """Poll the server at ``url`` until the block ends."""
        poller = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.bench.polling", url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            await asyncio.sleep(0.5)
            yield
        finally:
            told, _ = await poller.communicate(b"")
        answers = [seconds * 1e3 for seconds in orjson.loads(told)]
        self.answers.setdefault(what, []).append(answers)

    def lines(self) -> list[Line]:
        """The longest answer of every repeat, and the one that one in a thousand exceeds."""
        lines = []
        for what, repeats in self.answers.items():
            late = [float(np.quantile(answers, 0.999)) for answers in repeats]
            lines.append(Line(f"{what}: p99.9 of /healthz", late, "ms"))
            lines.append(Line("… longest", [max(answers) for answers in repeats], "ms", LONGEST))
        return lines


class Labels:
    """One worker that draws and judges many items with every request."""

    def __init__(self, connection: Connection, session: str, truth: Truth) -> None:
        self._connection = connection
        self.path = f"/v1/sessions/{session}"
        self._loss = truth.loss
        self._draws: list[Any] = []
        self.rounds = 0

    async def until(self, rounds: int, at_once: int) -> None:
        """Judge ``at_once`` items with a request until ``rounds`` are judged."""
        while self.rounds < rounds:
            await self.cycle(at_once)

    async def cycle(self, at_once: int) -> None:
        """Judge what is held and draw ``at_once`` items."""
        judged = [
            {"round": it["round"], "loss": int(self._loss[it["item"]["index"]])}
            for it in self._draws
        ]
        if judged:
            body = {"observations": judged, "worker": "judge", "next": at_once}
            answer = await self._connection.send(f"{self.path}/observe", body)
        else:
            asked = {"worker": "judge", "count": at_once}
            answer = await self._connection.send(f"{self.path}/next", asked)
        self.rounds += len(judged)
        self._draws = answer["draws"]

    async def patient_cycle(self) -> float:
        """A cycle that is tried again while the session is busy; its seconds."""
        began = time.perf_counter()
        while True:
            try:
                await self.cycle(1)
            except UnexpectedAnswerError as error:
                if error.args[0] != BUSY:
                    raise
                await asyncio.sleep(0.05)
            else:
                return time.perf_counter() - began


async def gap_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Pairs that start; a long session labelled, corrected, certified, and met by a new process."""
    repeats, rounds = (1, 8_000) if quick else (3, 40_000)
    truth, gaps = synthetic(ITEMS), Gaps()
    with signing() as environment:
        async with (
            world.services(environment=environment) as urls,
            Connection.to(urls[0]) as connection,
        ):
            pool = await sealed(connection, truth)
            async with gaps.during("nothing", urls[0]):
                await asyncio.sleep(IDLE_SECONDS)
            for _ in range(repeats):
                for precision, before, after in STARTS:
                    asked = {"pool_id": pool, "target": "population", "precision": precision}
                    labels = await _opened(connection, asked, truth)
                    await labels.until(before, AT_ONCE)
                    async with gaps.during(f"pairs to {precision} start", urls[0]):
                        await labels.until(after, 1)
            labels = await _opened(connection, LONG | {"pool_id": pool}, truth)
            await labels.until(rounds - STRETCH * repeats, AT_ONCE)
            for _ in range(repeats):
                async with gaps.during(f"{AT_ONCE} labels in a request", urls[0]):
                    await labels.until(labels.rounds + STRETCH, AT_ONCE)
            slowest = []
            for at in range(repeats):
                async with gaps.during(f"a correction at {rounds:,} rounds", urls[0]):
                    slowest.append(await _corrected(urls[0], labels, at + 1))
                async with gaps.during(f"a certificate at {rounds:,} rounds", urls[0]):
                    (await connection.get(f"{labels.path}/certificate")).json()
        for _ in range(repeats):
            async with world.services(environment=environment) as urls:
                await _met(gaps, urls[0], labels, rounds)
    for line in gaps.lines():
        yield line
    yield Line("slowest label cycle of a session while it is corrected", slowest, "s")


@contextmanager
def signing() -> Iterator[dict[str, str]]:
    """Settings of the servers: certificates signed with a fresh key."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "key.pem"
        file.write_bytes(private_to_pem(Ed25519PrivateKey.generate()))
        yield {"CELEUS_SIGNING_KEY_FILE": str(file)}


async def _met(gaps: Gaps, url: str, labels: Labels, rounds: int) -> None:
    """A process that does not know the session yet is asked for a draw."""
    what = f"a new process at {rounds:,} rounds"
    async with Connection.to(url) as connection, gaps.during(what, url):
        await connection.send(f"{labels.path}/next", {"worker": "new", "count": 1})


async def _opened(connection: Connection, asked: dict[str, Any], truth: Truth) -> Labels:
    session = (await connection.send("/v1/sessions", asked))["id"]
    return Labels(connection, str(session), truth)


async def _corrected(url: str, labels: Labels, round_: int) -> float:
    """Correct a round while labels go on; the seconds of the slowest label.

    A label that is refused because the session is busy is sent again, and waits all that time.
    """
    said = {"round": round_, "author": "bench", "reason": "bench", "loss": 1}
    async with Connection.to(url) as connection:
        correcting = asyncio.create_task(connection.send(f"{labels.path}/amendments", said))
        slowest = 0.0
        while not correcting.done():
            slowest = max(slowest, await labels.patient_cycle())
        await correcting
    return slowest
