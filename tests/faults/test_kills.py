"""A worker killed at the worst moments: what was committed stays, what was not leaves no trace."""

import asyncio
import os
import random
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from httpx import AsyncClient

from celeus.core.ledger import Observation
from celeus.operations.sessions.event_rows import KINDS
from tests.faults.loads import assert_nothing_lost, client_of, loaded, until
from tests.faults.processes import serving
from tests.faults.proxies import Cut, Link, Proxy, before_port, before_postgres
from tests.faults.tally import Tally
from tests.nightly import NIGHTLY
from tests.runs.files import exam
from tests.servers import Service, data_folder, running_redis, started_service

COMMIT = b"COMMIT\x00"
OBSERVATION = f'"kind":{KINDS[Observation]},'.encode()
COMMITS_CUT = 5 if NIGHTLY else 2
ANNOUNCEMENTS_CUT = 2
ANSWERS_DROPPED = 40
ITEMS = 9_000
IMPORTS_CUT = {b"COPY items": 2, b"INSERT INTO chunks": 1, b"UPDATE pools": 1}
"""At which sight of what the worker is killed: between batches, at the end, before the commit."""
PUSHES_CUT = (b"COPY items", b"INSERT INTO sessions", b"COPY events", b"COPY trajectory")

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_PEERCRED"), reason="only Linux says which process asked"
)


class KilledBetweenCommitAndAnswer:
    """Lets a commit arrive and kills the worker that waits for the word of it.

    What the database answers to COMMIT is read here and passed on to nobody: the transaction is
    certainly committed, and the worker certainly has not answered its client.
    """

    def __init__(self, proxy: Proxy, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - only which commit is cut
        self.killed: list[int] = []
        self.wait = 10
        proxy.asked, proxy.answered = self.asked, self.answered

    async def asked(self, link: Link, piece: bytes) -> None:
        if OBSERVATION in piece:
            link.notes.add("observed")
        if COMMIT not in piece or len(self.killed) == COMMITS_CUT:
            return
        self.wait -= 1
        observed = "observed" in link.notes
        link.notes.discard("observed")
        # The first one is of an observation, the others as they come
        if self.wait <= 0 and (observed or self.killed):
            self.wait = self.rng.randint(8, 16)
            link.notes.add("cut")

    async def answered(self, link: Link, piece: bytes) -> None:
        if "cut" in link.notes:
            assert COMMIT in piece
            os.kill(link.peer, signal.SIGKILL)
            self.killed.append(link.peer)
            raise Cut


async def test_a_worker_killed_between_commit_and_answer_has_lost_nothing(
    database_url: str, tally: Tally
) -> None:
    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(1, through, workers=3) as (service,),
            loaded([service.url], rounds=18 * COMMITS_CUT) as load,
        ):
            fault = KilledBetweenCommitAndAnswer(proxy, seed=1)
            await load.judged(pause=0.2)
            assert len(fault.killed) == COMMITS_CUT
            # Only the first one is surely of a request that somebody waits for
            assert load.answers[0] > 0
            assert load.replays > 0, "some of the commits were of observations"
            await assert_nothing_lost(load, database_url)
    tally.count("`kill -9` of a worker between commit and answer", COMMITS_CUT)


@pytest.mark.nightly
async def test_a_server_killed_while_it_announces_a_commit_has_lost_nothing(
    database_url: str, tally: Tally
) -> None:
    """The later half of that gap: the database's word is there, the client's is not."""

    async def kill(_link: Link, piece: bytes) -> None:
        if b"EVAL" in piece and armed.is_set():
            armed.clear()
            service.kill()
            killed.set()
            raise Cut

    armed, killed = asyncio.Event(), asyncio.Event()
    with running_redis() as redis:
        port = int(redis.url.rpartition(":")[2].partition("/")[0])
        async with before_port(port) as (proxy, at):
            cache = f"redis://127.0.0.1:{at}/0"
            service = await asyncio.to_thread(started_service, database_url, cache)
            try:
                async with loaded([service.url], rounds=40) as load:
                    proxy.asked = kill
                    work = asyncio.create_task(load.judged(judges=4))
                    for tries in range(1, ANNOUNCEMENTS_CUT + 1):
                        await load.reached(12 * tries)
                        armed.set()
                        await killed.wait()
                        killed.clear()
                        service = await asyncio.to_thread(started_service, database_url, cache)
                        load.urls[0] = service.url
                    await work
                    await assert_nothing_lost(load, database_url)
            finally:
                service.kill()
    tally.count("`kill -9` between commit and answer, while Redis is told", ANNOUNCEMENTS_CUT)


@pytest.mark.nightly
async def test_answers_dropped_on_the_way_are_asked_for_again(
    database_url: str, tally: Tally
) -> None:
    rng = random.Random(2)  # noqa: S311 - only which answer is dropped
    dropped: list[int] = []

    async def drop(link: Link, _piece: bytes) -> None:
        if len(dropped) < ANSWERS_DROPPED and rng.random() < 0.3:
            dropped.append(link.peer)
            raise Cut

    async with serving(1, database_url) as (service,):
        port = int(service.url.rpartition(":")[2])
        async with (
            before_port(port) as (proxy, at),
            loaded([f"http://127.0.0.1:{at}"], rounds=120) as load,
        ):
            proxy.answered = drop
            await load.judged()
            assert len(dropped) == ANSWERS_DROPPED
            assert load.answers[0] == ANSWERS_DROPPED
            await assert_nothing_lost(load, database_url)
    tally.count("answers lost on the way to the client", ANSWERS_DROPPED)


async def test_an_import_killed_in_the_middle_leaves_nothing_and_may_be_repeated_at_once(
    database_url: str, tally: Tally
) -> None:
    left: dict[bytes, int] = {}
    killed: list[int] = []

    async def kill(link: Link, piece: bytes) -> None:
        for word, times in tuple(left.items()):
            left[word] = times - (word in piece)
            if left[word] == 0:
                left.clear()
                os.kill(link.peer, signal.SIGKILL)
                killed.append(link.peer)
                raise Cut

    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(1, through, workers=2) as (service,),
        ):
            proxy.asked = kill
            for word, times in IMPORTS_CUT.items():
                async with client_of(service.url) as client:
                    pool = await open_pool(client)
                    left[word] = times
                    with pytest.raises(httpx.RemoteProtocolError):
                        await upload(client, pool)
                # The worker that is left, or the one that took the killed one's place
                async with client_of(service.url) as client:
                    await assert_empty_and_ready(client, pool)
            assert len(killed) == len(IMPORTS_CUT)
    tally.count("`kill -9` in the middle of an import", len(killed))


@pytest.mark.nightly
async def test_a_push_killed_in_the_middle_leaves_nothing_and_may_be_repeated_at_once(
    database_url: str, tally: Tally, tmp_path: Path
) -> None:
    data = exam(tmp_path / "exam.celeus")
    lines = {"Content-Type": "application/x-ndjson"}
    waited: list[bytes] = []
    killed: list[int] = []

    async def kill(link: Link, piece: bytes) -> None:
        if waited and waited[0] in piece:
            waited.clear()
            os.kill(link.peer, signal.SIGKILL)
            killed.append(link.peer)
            raise Cut

    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(1, through, workers=2) as (service,),
        ):
            proxy.asked = kill
            for word in PUSHES_CUT:
                async with client_of(service.url) as client:
                    waited[:] = [word]
                    with pytest.raises(httpx.RemoteProtocolError):
                        await client.post("/v1/session-files", content=data, headers=lines)
                # The worker that is left, or the one that took the killed one's place
                async with client_of(service.url) as client:
                    for path in ("/v1/sessions", "/v1/pools"):
                        assert (await client.get(path)).json()["data"] == []
            assert len(killed) == len(PUSHES_CUT)
            async with client_of(service.url) as client:
                again = [
                    await client.post("/v1/session-files", content=data, headers=lines)
                    for _ in range(2)
                ]
            assert [answer.status_code for answer in again] == [201, 200]
            assert again[0].json() == again[1].json()
    tally.count("`kill -9` in the middle of a push", len(killed))


@pytest.mark.nightly
async def test_an_upload_whose_server_is_killed_leaves_no_file(
    database_url: str, tally: Tally
) -> None:
    with data_folder() as folder:
        environment = {"TMPDIR": str(folder)}
        service = await asyncio.to_thread(started_service, database_url, None, environment)
        async with client_of(service.url) as client:
            pool = await open_pool(client)
            with pytest.raises(httpx.TransportError):
                await client.post(
                    f"/v1/pools/{pool}/items",
                    content=half_a_body(service),
                    headers={"Content-Type": "application/x-ndjson"},
                )
        assert list(folder.iterdir()) == []
        async with (
            serving(1, database_url) as (other,),
            client_of(other.url) as client,
        ):
            await assert_empty_and_ready(client, pool)
    tally.count("`kill -9` in the middle of an import", 1)


def rows(first: int, count: int) -> bytes:
    lines = [
        f'{{"id": "item-{number}", "surrogate": 0.5, "payload": "{number:0100d}"}}\n'
        for number in range(first, first + count)
    ]
    return "".join(lines).encode()


def written(service: Service) -> int:
    """Bytes that a service has written, to its disk and elsewhere."""
    told = Path(f"/proc/{service.process.pid}/io").read_text().split()
    return int(told[told.index("wchar:") + 1])


async def half_a_body(service: Service) -> AsyncIterator[bytes]:
    """Rows without end, until the server has some of them on its disk and is killed."""
    before, half = written(service), rows(0, ITEMS)
    yield half
    await until(lambda: written(service) - before > len(half) // 2)
    service.kill()
    yield rows(ITEMS // 2, ITEMS // 2)


async def open_pool(client: AsyncClient) -> str:
    answer = await client.post("/v1/pools", json={"name": "big", "loss": {"kind": "zero_one"}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def upload(client: AsyncClient, pool: str) -> httpx.Response:
    return await client.post(
        f"/v1/pools/{pool}/items",
        content=rows(0, ITEMS),
        headers={"Content-Type": "application/x-ndjson"},
    )


async def assert_empty_and_ready(client: AsyncClient, pool: str) -> None:
    """Nothing of the import is kept, and its repetition is taken whole without waiting."""
    shown = (await client.get(f"/v1/pools/{pool}")).json()
    assert (shown["items"], shown["sealed"]) == (0, False)
    assert (await client.get(f"/v1/pools/{pool}/items")).json()["data"] == []
    answer = await upload(client, pool)
    assert answer.status_code == 200, answer.text
    assert answer.json()["added"] == ITEMS
    sealed = await client.post(f"/v1/pools/{pool}/seal")
    assert sealed.json()["items"] == ITEMS
