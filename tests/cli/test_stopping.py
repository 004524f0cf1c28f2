"""How `celeus serve` stops: what is under way, new connections, the log nobody reads."""

import asyncio
import fcntl
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

import httpx
import psycopg
import pytest

from celeus.commands.service import logs
from celeus.commands.service.processes import STOP_SECONDS
from tests.factories import known_pool, opened
from tests.faults.loads import client_of, until
from tests.servers import Service, await_ready, free_port, running_services

PIPE_BYTES = 4096
LINES = 500
DROPPED = r"(\d+) lines of the log were dropped"


@dataclass(frozen=True)
class Held:
    """A request that waits for a lock which this test holds."""

    client: httpx.AsyncClient
    answer: "asyncio.Task[httpx.Response]"


@asynccontextmanager
async def held(service: Service, database_url: str) -> AsyncIterator[Held]:
    """A request under way that does not end by itself."""
    async with client_of(service.url) as client:
        pool = await known_pool(client, 5)
        session = await opened(client, pool)
        with psycopg.connect(database_url) as db:
            db.execute("SELECT FROM sessions FOR UPDATE")
            body = {"worker": "w", "count": 1}
            path = f"/v1/sessions/{session}/next"
            answer = asyncio.create_task(client.post(path, json=body))
            await until(lambda: waits(database_url))
            yield Held(client, answer)


def waits(database_url: str) -> bool:
    with psycopg.connect(database_url) as db:
        row = db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row is not None and row[0] > 0


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        (1, signal.SIGHUP),
        pytest.param(2, signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param(2, signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
async def test_a_stop_refuses_what_it_cannot_finish_and_whoever_comes(
    database_url: str, workers: int, number: signal.Signals
) -> None:
    settings = {"CELEUS_WORKERS": str(workers), "CELEUS_LOCK_TIMEOUT_MS": "60000"}
    running = running_services(1, database_url, None, settings)
    [service] = await asyncio.to_thread(running.__enter__)
    try:
        async with held(service, database_url) as request:
            service.process.send_signal(number)
            await asyncio.to_thread(refused, service.url)
            assert not request.answer.done()
            answer = await request.answer
            assert (answer.status_code, answer.json()["code"]) == (503, "stopping")
            assert answer.headers["Retry-After"]
            await asyncio.to_thread(service.process.wait, 60)
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


def refused(url: str) -> None:
    """Ask on new connections until nobody listens; each gets an answer or none at once."""
    while True:
        try:
            httpx.get(f"{url}/healthz", timeout=STOP_SECONDS)
        except httpx.NetworkError:
            return
        except httpx.RemoteProtocolError:
            # Let in by a worker that then stopped
            continue


@contextmanager
def narrow_pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe that holds no more than the first lines of a log."""
    ends = os.pipe()
    fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    try:
        yield ends
    finally:
        for end in ends:
            with suppress(OSError):
                os.close(end)


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux has narrow pipes")
def test_a_service_whose_log_nobody_reads_goes_on_and_stops(database_url: str) -> None:
    with narrow_pipe() as (_, writer):
        port = free_port()
        own = {name: text for name, text in os.environ.items() if not name.startswith("CELEUS_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "celeus.cli", "serve", "--port", str(port)],
            env=own | {"CELEUS_DATABASE_URL": database_url},
            stdout=writer,
            stderr=writer,
        )
        service = Service(f"http://127.0.0.1:{port}", process)
        try:
            await_ready(service)
            with httpx.Client(base_url=service.url) as client:
                for _ in range(PIPE_BYTES // 40):
                    assert client.get("/healthz").status_code == 200
            process.terminate()
            assert process.wait(60) == -signal.SIGTERM
        finally:
            process.kill()
            process.wait()


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux has narrow pipes")
def test_lines_that_nobody_reads_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_LINES", 50)
    with narrow_pipe() as (reader, writer):
        with os.fdopen(writer, "w", closefd=False) as stream:
            handler = logs.BackgroundHandler(stream)
        for number in range(LINES):
            handler.handle(logging.makeLogRecord({"msg": f"line {number:060}"}))
        text = ""
        while text.count("line 0") + sum(map(int, re.findall(DROPPED, text))) < LINES:
            text += os.read(reader, PIPE_BYTES).decode()
        assert text.count("line 0") < LINES
        handler.handle(logging.makeLogRecord({"msg": "and on it goes"}))
        assert "and on it goes" in os.read(reader, PIPE_BYTES).decode()


def test_long_lines_that_nobody_reads_are_bounded_in_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "MOST_CHARACTERS", 100_000)
    with narrow_pipe() as (reader, writer):
        with os.fdopen(writer, "w", closefd=False) as stream:
            handler = logs.BackgroundHandler(stream)
        for _ in range(LINES):
            handler.handle(logging.makeLogRecord({"msg": "x" * 10_000}))
        text = ""
        while not (dropped := re.findall(DROPPED, text)):
            text += os.read(reader, PIPE_BYTES).decode()
        # Beside those that wait, one is being written
        assert LINES - 12 <= int(dropped[0]) < LINES
