"""Processes of a service killed at any moment: nothing is left over, nothing lost."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from celeus.store.embedded import server
from tests import lineups, pairs
from tests.faults import loads
from tests.faults.loads import Load, assert_nothing_lost, client_of, loaded, until
from tests.faults.tally import Tally
from tests.nightly import NIGHTLY
from tests.servers import Service, data_folder, put_cluster, started_service

TRIES = 20 if NIGHTLY else 1
FIRST_START_SECONDS = 6.0
"""About how long a first start takes."""
MOST_SECONDS = 60.0
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux tells what belongs to whom"
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges go on for as many starts as there are."""
    monkeypatch.setattr(loads, "MOST_SECONDS", loads.MOST_SECONDS * TRIES)


def processes_of(folder: Path) -> dict[int, str]:
    """Every process that works in a folder, was started with it, or has it in its environment."""
    word, found = os.fsencode(folder), {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (place / "cmdline").read_bytes()
            told = command + (place / "environ").read_bytes()
            # One that has ended has no command any more
            if command and word in told + os.fsencode((place / "cwd").readlink()):
                found[int(place.name)] = command.replace(b"\0", b" ").decode()
    return found


def awaited(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def assert_nothing_left_over(folder: Path) -> None:
    """All of a service ends with it; what cannot be awaited is named."""
    deadline = time.monotonic() + MOST_SECONDS
    while left := processes_of(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def audited(folder: Path) -> str:
    command = [sys.executable, "-m", "celeus.cli", "admin", "audit", "--data-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def started(folder: Path, told: pytest.FixtureRequest, workers: int = 2) -> Service:
    """A service on a private database in the folder; says how long its start has taken."""
    began = time.monotonic()
    environment = {"CELEUS_DATA_DIR": str(folder), "CELEUS_WORKERS": str(workers)}
    service = started_service(None, None, environment)
    seconds = time.monotonic() - began
    told.node.user_properties.append(("start", f"{seconds:.1f}"))
    return service


def ended(service: Service) -> None:
    service.process.terminate()
    service.process.wait(60)


def tell_slowest(request: pytest.FixtureRequest) -> None:
    starts = [float(told) for name, told in request.node.user_properties if name == "start"]
    line = f"next start within {max(starts):.1f} s at most, of {len(starts)} ({request.node.name})"
    request.node.user_properties.append(("measured", line))


@pytest.mark.nightly
def test_a_first_start_killed_at_any_moment_leaves_nothing_in_the_way(
    tally: Tally, request: pytest.FixtureRequest
) -> None:
    rng = random.Random(11)  # noqa: S311 - only when a start is killed
    for number in range(TRIES):
        with data_folder() as parent:
            folder = parent / "data"
            command = [sys.executable, "-m", "celeus.cli", "serve", "--data-dir", str(folder)]
            log = (parent / "log").open("w")
            with log, subprocess.Popen([*command, "--port", "0"], stderr=log) as process:
                if number % 2:
                    # While the cluster is being made, whatever else this machine does
                    awaited((folder / "postgres.new" / "PG_VERSION").exists)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(rng.uniform(0.0, FIRST_START_SECONDS / (1 + number % 2)))
                process.kill()
            # At once: what the first one has started may not have ended yet
            service = started(folder, request, workers=1)
            ended(service)
            assert_nothing_left_over(folder)
            assert not (folder / "postgres.new").exists()
    tell_slowest(request)
    tally.count("`kill -9` of a first start, and another one at once", TRIES)


async def test_a_service_killed_under_load_takes_workers_and_database_along(
    tally: Tally, request: pytest.FixtureRequest
) -> None:
    with data_folder() as parent:
        folder = put_cluster(parent / "data")
        service = await asyncio.to_thread(started, folder, request)
        try:
            async with loaded([service.url], rounds=30 * (TRIES + 1)) as load:
                work = asyncio.create_task(load.judged(pause=0.05))
                for _ in range(TRIES):
                    await load.reached(len(load.acknowledged) + 10)
                    assert len(processes_of(folder)) > 3
                    service.kill()
                    await asyncio.to_thread(assert_nothing_left_over, folder)
                    service = await asyncio.to_thread(started, folder, request)
                    load.urls[0] = service.url
                await work
                await assert_all_there(load, folder)
        finally:
            await asyncio.to_thread(ended, service)
        assert_nothing_left_over(folder)
        assert "0 differ" in audited(folder)
    tell_slowest(request)
    tally.count("`kill -9` of a service with two workers and its own database", TRIES)


@pytest.mark.nightly
async def test_a_private_database_that_is_killed_is_started_again(
    tally: Tally, request: pytest.FixtureRequest
) -> None:
    with data_folder() as parent:
        folder = put_cluster(parent / "data")
        service = await asyncio.to_thread(started, folder, request, workers=1)
        try:
            async with loaded([service.url], rounds=30 * (TRIES + 1)) as load:
                work = asyncio.create_task(load.judged(pause=0.05))
                for _ in range(TRIES):
                    await load.reached(len(load.acknowledged) + 10)
                    postmaster = server.pid(folder)
                    assert postmaster is not None
                    os.kill(postmaster, signal.SIGKILL)
                await work
                await assert_all_there(load, folder)
                # And the last time while it is being stopped
                postmaster = server.pid(folder)
                assert postmaster is not None
                os.kill(postmaster, signal.SIGKILL)
        finally:
            await asyncio.to_thread(ended, service)
        assert_nothing_left_over(folder)
        assert "0 differ" in audited(folder)
    tally.count("`kill -9` of the private database, under load and while it stops", TRIES + 1)


@dataclass
class Answers:
    """A session in which answers of systems are judged as they are shown, and what was taken."""

    session: str
    truth: list[int]
    taken: dict[int, tuple[int, list[float]]] = field(default_factory=dict)

    async def judged(self, url: str, most: int = 200) -> None:
        """Judge until so many judgements are taken, or the server is gone."""
        with suppress(httpx.TransportError):
            async with client_of(url) as client:
                while len(self.taken) < most:
                    asked = {"worker": "ada", "count": 2}
                    answer = await client.post(f"/v1/sessions/{self.session}/next", json=asked)
                    if _is_refused(answer) or not (draws := answer.json()["draws"]):
                        return
                    for draw in draws:
                        await self._judge(client, draw)

    async def _judge(self, client: httpx.AsyncClient, draw: dict[str, Any]) -> None:
        right = f"option {self.truth[draw['item']['index']]}"
        several = "answers" in draw
        shown = draw["answers"] if several else [draw["left"], draw["right"]]
        losses = [float(one["answer"] != right) for one in shown]
        said = losses if several else dict(zip(("left", "right"), losses, strict=True))
        body = {"round": draw["round"], "worker": "ada", "losses": said}
        answer = await client.post(f"/v1/sessions/{self.session}/observe", json=body)
        if _is_refused(answer):
            return
        receipt = answer.json()["receipt"]
        self.taken[receipt["round"]] = (receipt["sequence"], losses)

    async def assert_there(self, url: str, losses: list[list[float]]) -> None:
        """The ledger holds what was taken, and in its place the loss of every system."""
        async with client_of(url) as client:
            path = f"/v1/sessions/{self.session}/ledger"
            events = (await client.get(path, params={"limit": 1000})).json()["data"]
        items = {one["round"]: one["item"] for one in events if one["kind"] == "draw"}
        kept = {one["sequence"]: one for one in events if one["kind"] == "observation"}
        for round_, (sequence, _) in self.taken.items():
            one, due = kept[sequence], losses[items[round_]]
            assert one["round"] == round_
            losses_kept = one.get("losses")
            assert losses_kept == due if losses_kept else one["loss"] == due[0] - due[1]


@pytest.mark.nightly
async def test_sessions_of_several_systems_go_on_where_a_kill_left_them(
    tally: Tally, request: pytest.FixtureRequest
) -> None:
    # More than are judged until the last kill: some are known, and the search ends by itself
    items = 150 + 24 * TRIES
    with data_folder() as parent:
        folder = parent / "data"
        service = await asyncio.to_thread(started, folder, request)
        try:
            async with client_of(service.url) as client:
                two = await pairs.pair(client, "losses", items)
                several = await lineups.field(client, "answers", items)
                both = [
                    Answers(await _opened(client, two.id), two.truth),
                    Answers(await _opened(client, several.id, best=True), several.truth),
                ]
            for number in range(TRIES):
                work = [asyncio.create_task(one.judged(service.url)) for one in both]
                most = 8 * (number + 1)
                await until(partial(_reached, both, work, most))
                service.kill()
                await asyncio.gather(*work)
                await asyncio.to_thread(assert_nothing_left_over, folder)
                service = await asyncio.to_thread(started, folder, request)
            truths = [[[*it] for it in two.losses], several.losses]
            for one, losses in zip(both, truths, strict=True):
                await one.judged(service.url, len(one.taken) + 8)
                await one.assert_there(service.url, losses)
        finally:
            await asyncio.to_thread(ended, service)
        assert_nothing_left_over(folder)
    tally.count("`kill -9` of a service amid a comparison and a search for the best", TRIES)


def _is_refused(answer: httpx.Response) -> bool:
    """The database was gone before its server, and nothing was taken."""
    assert answer.status_code in {200, 503}, answer.text
    return answer.status_code == 503


def _reached(both: list[Answers], work: list[asyncio.Task[None]], most: int) -> bool:
    """So many judgements are taken in both sessions, or somebody has stopped judging."""
    return any(one.done() for one in work) or all(len(one.taken) >= most for one in both)


async def _opened(client: httpx.AsyncClient, pool: str, **more: object) -> str:
    answer = await client.post("/v1/sessions", json={"pool_id": pool, "alpha": 1e-9} | more)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def assert_all_there(load: Load, folder: Path) -> None:
    assert set(load.answers) <= {0, 200, 503}
    url = server.running(folder)
    assert url is not None
    await assert_nothing_lost(load, url)
